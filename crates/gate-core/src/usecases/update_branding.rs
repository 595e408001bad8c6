//! Updating the branding: the named fields change, the other fields stay.

use async_trait::async_trait;
use kernel::{StoreResult, Timestamp};
use partner_core::Tenant;
use partner_core::idempotency::{Fingerprint, OperationKey};
use partner_core::stored_response::{IdempotentRequest, IdempotentResponse, Render};
use serde_json::json;

use crate::branding::{Branding, BrandingInputError, BrandingUpdate};
use crate::error::GateError;
use crate::idempotent::{Decision, GateWrite, Idempotent};
use crate::ports::GateTx;

#[derive(Clone)]
pub struct UpdateBranding {
    /// Runs the write.
    pub idempotent: Idempotent,
}

/// Why nothing was changed. The idempotency key stays unused.
#[derive(Debug, thiserror::Error)]
pub enum RebrandError {
    /// A field is invalid.
    #[error(transparent)]
    Field(#[from] BrandingInputError),
    /// The use case could not finish.
    #[error(transparent)]
    Failed(#[from] GateError),
}

impl UpdateBranding {
    /// Applies an update, or replays the response that is stored under the request's key.
    pub async fn update(
        &self,
        who: &Tenant,
        key: Option<OperationKey>,
        update: &BrandingUpdate,
        render: &Render<'_, Branding>,
    ) -> Result<IdempotentResponse, RebrandError> {
        let request = key.map(|key| IdempotentRequest::new(who, key, fingerprint(update)));
        let prepare = async {
            update.validate()?;
            Ok(BrandingWrite { who, update })
        };
        self.idempotent.run(request, prepare, render).await
    }
}

struct BrandingWrite<'w> {
    who: &'w Tenant,
    update: &'w BrandingUpdate,
}

#[async_trait]
impl GateWrite for BrandingWrite<'_> {
    type Rows = Branding;
    type Done = Branding;
    type Error = RebrandError;

    fn name(&self) -> &'static str {
        "branding_update"
    }

    async fn lock(&self, tx: &mut dyn GateTx) -> StoreResult<Branding> {
        tx.branding_lock(self.who).await
    }

    async fn decide(
        &self,
        tx: &mut dyn GateTx,
        before: Branding,
        _: Timestamp,
    ) -> Result<Decision<Branding, RebrandError>, GateError> {
        let after = before.updated(self.update);
        tx.branding_put(self.who, &after).await?.won()?;
        Ok(Decision::Done(after))
    }
}

fn fingerprint(update: &BrandingUpdate) -> Fingerprint {
    Fingerprint::of_json(&json!([
        update.logo_url.in_fingerprint(),
        update.primary_color.in_fingerprint(),
        update.secondary_color.in_fingerprint(),
        update.accent_color.in_fingerprint(),
        update.brand_name.in_fingerprint(),
    ]))
}
