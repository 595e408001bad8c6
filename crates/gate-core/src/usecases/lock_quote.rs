//! Locking a quote: a signed one, for a rail to redeem.
//!
//! The rate is asked for before a transaction is opened. In it the key is looked up again, and
//! quote and answer are written together.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kernel::StoreError;
use partner_core::idempotency::{Fingerprint, IdempotencyKey, Scope};
use partner_core::ports::RateSource;
use partner_core::races::{LostRace, retry_lost_races};
use partner_core::stored_response::{
    Begin, IdempotentRequest, IdempotentResponse, Render, ResponseStore, ResponseStoreError,
};
use partner_core::{Access, Denial};
use serde_json::json;

use super::expiry::GateContext;
use crate::catalogue::{Catalogue, Ineligible};
use crate::order::{OrderDraft, OrderError};
use crate::pricing::OutOfRange;
use crate::signed_quote::{Issue, QuoteTerms, SignedQuote, SignedQuoteId, Unsigned};

/// The route an idempotency key is scoped by.
pub const ROUTE: &str = "POST /v1/quotes";

/// Locks quotes.
#[derive(Clone)]
pub struct LockQuote {
    /// The store, and what signs.
    pub sessions: GateContext,
    /// Keeps answers.
    pub answers: ResponseStore,
    /// What is offered.
    pub catalogue: Arc<Catalogue>,
    /// Where rates come from.
    pub rates: Arc<dyn RateSource>,
    /// How long a quote can be redeemed.
    pub ttl: Duration,
}

impl fmt::Debug for LockQuote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Locking")
    }
}

/// What is to be locked, as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockDraft {
    /// The order.
    pub order: OrderDraft,
    /// `payment_method`
    pub payment_method: String,
}

/// Why no quote was given; the key stays free.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// A request with the same key is being worked on.
    #[error("a request with the same idempotency key is in progress")]
    InProgress,
    /// A field is wrong.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The method does not move the currency this way.
    #[error("`payment_method`: expected a method of the currency and side, such as \"sepa\"")]
    UnknownMethod,
    /// What is asked for is not offered there.
    #[error("the order is not offered: {}", .0.as_str())]
    NotOffered(Ineligible),
    /// No rate is young enough.
    #[error("there is no rate at present")]
    RateUnavailable,
    /// A leg is nothing, or too much.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// The key is no longer good.
    #[error(transparent)]
    Denied(#[from] Denial),
    /// The quote could not be signed.
    #[error(transparent)]
    Unsigned(#[from] Unsigned),
    /// The answer could not be given or kept.
    #[error(transparent)]
    Answer(#[from] ResponseStoreError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LostRace for LockError {
    fn lost_race(&self) -> bool {
        match self {
            Self::Answer(fault) => fault.lost_race(),
            Self::Store(error) => error.lost_race(),
            Self::InProgress
            | Self::Order(_)
            | Self::UnknownMethod
            | Self::NotOffered(_)
            | Self::RateUnavailable
            | Self::OutOfRange(_)
            | Self::Denied(_)
            | Self::Unsigned(_) => false,
        }
    }
}

impl LockDraft {
    fn fingerprint(&self) -> Fingerprint {
        let order = &self.order;
        let read = json!([
            order.currency,
            order.asset,
            order.amount,
            order.side.as_str(),
            order.network,
            order.country_code,
            self.payment_method,
        ]);
        Fingerprint::of(read.to_string().as_bytes())
    }
}

impl LockQuote {
    /// Gives a quote, or the answer its key was first given.
    ///
    /// # Errors
    /// [`LockError`].
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all)]
    pub async fn lock(
        &self,
        access: &Access,
        key: IdempotencyKey,
        draft: &LockDraft,
        render: &Render<'_, SignedQuote>,
    ) -> Result<IdempotentResponse, LockError> {
        let call = IdempotentRequest {
            scope: Scope {
                tenant: access.tenant.clone(),
                route: ROUTE.to_owned(),
                key,
            },
            fingerprint: draft.fingerprint(),
        };
        let _ticket = match self.answers.enter(Some(&call)).await? {
            Begin::Answered(given) => return Ok(given),
            Begin::Busy => return Err(LockError::InProgress),
            Begin::Free(ticket) => ticket,
        };
        let terms = self.price(draft).await?;
        retry_lost_races(|| self.lock_once(access, &call, &terms, render)).await
    }

    async fn price(&self, draft: &LockDraft) -> Result<QuoteTerms, LockError> {
        let order = draft.order.judge(&self.catalogue)?;
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
            side: order.side,
            network: order.network.chain.clone(),
            payment_method: method.id.clone(),
            priced: order.price(&source, method)?,
        })
    }

    async fn lock_once(
        &self,
        access: &Access,
        call: &IdempotentRequest,
        terms: &QuoteTerms,
        render: &Render<'_, SignedQuote>,
    ) -> Result<IdempotentResponse, LockError> {
        let who = &access.tenant;
        let installation = self.sessions.store.installation_get().await?;
        let mut tx = self.sessions.store.gate_begin("signed_quote_lock").await?;
        let kept = self.answers.lock(tx.as_mut(), Some(call)).await?;
        let access = tx.access_get(who, access.key.id).await?;
        let access = access.ok_or(Denial::KeyRevoked)?;
        let now = tx.now().await?;
        // A twin may have finished since the first look.
        if let Some(given) = self.answers.given(call, kept.as_ref(), now)? {
            return Ok(given);
        }
        access.may_use_rails(now)?;
        let GateContext {
            sealer, entropy, ..
        } = &self.sessions;
        let id = SignedQuoteId::new(who.mode, now, entropy.as_ref());
        let issue = Issue {
            installation: &installation,
            tenant: who,
        };
        let expires_at = now.plus(self.ttl);
        let quote = SignedQuote::give(id, terms.clone(), now, expires_at, issue, sealer)?;
        tx.signed_quote_insert(who, &quote).await?;
        let answer = render(&quote).map_err(ResponseStoreError::from)?;
        self.answers
            .keep(tx.as_mut(), Some(call), kept.as_ref(), &answer, now)
            .await?;
        tx.commit().await?;
        Ok(IdempotentResponse::Fresh(answer))
    }
}
