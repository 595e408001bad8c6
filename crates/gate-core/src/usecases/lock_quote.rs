//! Locking a signed quote, which a rail record redeems later.
//!
//! The rate is requested before the transaction. The transaction writes the quote and the response.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{StoreResult, Timestamp};
use partner_core::Denial;
use partner_core::idempotency::{Fingerprint, OperationKey};
use partner_core::ports::RateSource;
use partner_core::stored_response::{IdempotentRequest, IdempotentResponse, Render};
use serde_json::json;

use super::context::GateContext;
use crate::access::{GateAccess, GateDenial, may_use_rails};
use crate::catalogue::{Catalogue, Ineligible};
use crate::error::GateError;
use crate::idempotent::{Decision, GateWrite, Idempotent};
use crate::order::{OrderDraft, OrderError};
use crate::ports::GateTx;
use crate::pricing::OutOfRange;
use crate::signed_quote::{Conversion, Installation, Issue, QuoteTerms, SignedQuote};

/// Creates signed quotes.
#[derive(Clone)]
pub struct LockQuote {
    /// The store, the sealer that signs, and the source of ids.
    pub context: GateContext,
    /// Runs the write.
    pub idempotent: Idempotent,
    pub catalogue: Arc<Catalogue>,
    /// The source of rates.
    pub rates: Arc<dyn RateSource>,
    /// The time from creation to expiry.
    pub ttl: Duration,
}

/// The fields of the request, unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockDraft {
    pub order: OrderDraft,
    pub payment_method: String,
}

/// Why no quote was created. The idempotency key stays unused.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// A field is invalid.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The catalogue has no such method for the currency and side.
    #[error("`payment_method`: expected a method of the currency and side, such as \"sepa\"")]
    UnknownMethod,
    /// The catalogue does not offer the order.
    #[error("the order is not offered: {}", .0.as_str())]
    NotOffered(Ineligible),
    /// No source has a fresh rate.
    #[error("there is no rate at present")]
    RateUnavailable,
    /// A leg rounds to zero, does not cover the fees, or exceeds 10^10.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// The API key was revoked or has expired.
    #[error(transparent)]
    Denied(#[from] GateDenial),
    /// The use case could not finish.
    #[error(transparent)]
    Failed(#[from] GateError),
}

impl LockDraft {
    fn fingerprint(&self) -> Fingerprint {
        let order = &self.order;
        Fingerprint::of_json(&json!([
            order.currency,
            order.asset,
            order.amount,
            order.side.as_str(),
            order.network,
            order.country_code,
            self.payment_method,
        ]))
    }
}

impl LockQuote {
    /// Creates a signed quote, or replays the response that is stored under the request's key.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all)]
    pub async fn lock(
        &self,
        access: &GateAccess,
        key: OperationKey,
        draft: &LockDraft,
        render: &Render<'_, SignedQuote>,
    ) -> Result<IdempotentResponse, LockError> {
        let request = IdempotentRequest::new(&access.tenant, key, draft.fingerprint());
        let prepare = async {
            let terms = self.price(draft).await?;
            let installation = self.context.store.installation_get().await;
            Ok(NewQuote {
                context: &self.context,
                ttl: self.ttl,
                access,
                terms,
                installation: installation.map_err(GateError::from)?,
            })
        };
        self.idempotent.run(Some(request), prepare, render).await
    }

    async fn price(&self, draft: &LockDraft) -> Result<QuoteTerms, LockError> {
        let order = draft.order.validate(&self.catalogue)?;
        let id = draft.payment_method.as_str();
        let method = self.catalogue.method(order.side, order.currency, id);
        let method = method.ok_or(LockError::UnknownMethod)?;
        let (listing, asset) = (order.listing, order.listing.asset);
        self.catalogue
            .offers(order.side, order.currency, listing, order.country)
            .map_err(LockError::NotOffered)?;
        let source = self.rates.rate(order.currency, asset, order.amount);
        let source = source.await.ok_or(LockError::RateUnavailable)?;
        Ok(QuoteTerms {
            conversion: Conversion::ramp(order.side, method.id.clone()),
            network: order.network.chain.clone(),
            priced: order.price(&source, method)?,
        })
    }
}

/// The write of a new quote.
struct NewQuote<'w> {
    context: &'w GateContext,
    ttl: Duration,
    access: &'w GateAccess,
    terms: QuoteTerms,
    installation: Installation,
}

#[async_trait]
impl GateWrite for NewQuote<'_> {
    type Rows = Option<Arc<GateAccess>>;
    type Done = SignedQuote;
    type Error = LockError;

    fn name(&self) -> &'static str {
        "signed_quote_lock"
    }

    async fn lock(&self, tx: &mut dyn GateTx) -> StoreResult<Option<Arc<GateAccess>>> {
        tx.access_get(&self.access.tenant, self.access.key.id).await
    }

    async fn decide(
        &self,
        tx: &mut dyn GateTx,
        access: Option<Arc<GateAccess>>,
        now: Timestamp,
    ) -> Result<Decision<SignedQuote, LockError>, GateError> {
        let access = access.ok_or(GateDenial::Access(Denial::KeyRevoked));
        if let Err(denial) = access.and_then(|access| may_use_rails(&access, now)) {
            return Ok(Decision::Refused(denial.into()));
        }
        let who = &self.access.tenant;
        let issue = Issue {
            installation: &self.installation,
            tenant: who,
        };
        let (context, terms) = (self.context, self.terms.clone());
        let quote = context.sign_quote(issue, terms, None, now, self.ttl)?;
        tx.signed_quote_insert(who, &quote).await?;
        Ok(Decision::Done(quote))
    }
}
