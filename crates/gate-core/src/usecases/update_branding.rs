//! Updating the branding: what is named changes, the rest stays.

use std::fmt;
use std::sync::Arc;

use kernel::StoreError;
use partner_core::Tenant;
use partner_core::idempotency::{Fingerprint, IdempotencyKey, Scope};
use partner_core::races::{LostRace, retry_lost_races};
use partner_core::stored_response::{
    Begin, IdempotentRequest, IdempotentResponse, Render, ResponseStore, ResponseStoreError,
};
use serde_json::{Value, json};

use crate::branding::{Branding, BrandingInputError, BrandingUpdate};
use crate::change::Change;
use crate::ports::GateStore;

/// The route an idempotency key is scoped by.
pub const ROUTE: &str = "PATCH /v1/branding";

/// Updates branding.
#[derive(Clone)]
pub struct UpdateBranding {
    /// The store.
    pub store: Arc<dyn GateStore>,
    /// Keeps answers.
    pub answers: ResponseStore,
}

impl fmt::Debug for UpdateBranding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rebranding")
    }
}

/// Why nothing was changed; the key stays free.
#[derive(Debug, thiserror::Error)]
pub enum RebrandError {
    /// A request with the same key is being worked on.
    #[error("a request with the same idempotency key is in progress")]
    InProgress,
    /// A field is wrong.
    #[error(transparent)]
    Field(#[from] BrandingInputError),
    /// The answer could not be given or kept.
    #[error(transparent)]
    Answer(#[from] ResponseStoreError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LostRace for RebrandError {
    fn lost_race(&self) -> bool {
        match self {
            Self::Answer(fault) => fault.lost_race(),
            Self::Store(error) => error.lost_race(),
            Self::InProgress | Self::Field(_) => false,
        }
    }
}

impl UpdateBranding {
    /// Applies an update, or gives the answer its key was first given.
    ///
    /// # Errors
    /// [`RebrandError`].
    pub async fn update(
        &self,
        who: &Tenant,
        key: Option<IdempotencyKey>,
        update: &BrandingUpdate,
        render: &Render<'_, Branding>,
    ) -> Result<IdempotentResponse, RebrandError> {
        let call = key.map(|key| IdempotentRequest {
            scope: Scope {
                tenant: who.clone(),
                route: ROUTE.to_owned(),
                key,
            },
            fingerprint: fingerprint(update),
        });
        let _ticket = match self.answers.enter(call.as_ref()).await? {
            Begin::Answered(given) => return Ok(given),
            Begin::Busy => return Err(RebrandError::InProgress),
            Begin::Free(ticket) => ticket,
        };
        update.judge()?;
        retry_lost_races(|| self.update_once(who, call.as_ref(), update, render)).await
    }

    async fn update_once(
        &self,
        who: &Tenant,
        call: Option<&IdempotentRequest>,
        update: &BrandingUpdate,
        render: &Render<'_, Branding>,
    ) -> Result<IdempotentResponse, RebrandError> {
        let mut tx = self.store.gate_begin("branding_update").await?;
        let kept = self.answers.lock(tx.as_mut(), call).await?;
        let before = tx.branding_lock(who).await?;
        let now = tx.now().await?;
        if let Some(call) = call
            && let Some(given) = self.answers.given(call, kept.as_ref(), now)?
        {
            return Ok(given);
        }
        let after = before.updated(update);
        tx.branding_put(who, &after).await?.won()?;
        let answer = render(&after).map_err(ResponseStoreError::from)?;
        self.answers
            .keep(tx.as_mut(), call, kept.as_ref(), &answer, now)
            .await?;
        tx.commit().await?;
        Ok(IdempotentResponse::Fresh(answer))
    }
}

fn fingerprint(update: &BrandingUpdate) -> Fingerprint {
    let said = |change: &Change| match change {
        Change::Leave => json!([]),
        Change::Clear => Value::Null,
        Change::Set(value) => json!(value),
    };
    let read = json!([
        said(&update.logo_url),
        said(&update.primary_color),
        said(&update.secondary_color),
        said(&update.accent_color),
        said(&update.brand_name),
    ]);
    Fingerprint::of(read.to_string().as_bytes())
}
