//! Rejecting a firm quote: a compare-and-swap that succeeds exactly once. No money moves.

use std::sync::Arc;

use kernel::StoreError;
use partner_core::Tenant;
use partner_core::races::{LostRace, retry_lost_races};

use crate::ports::PoolsStore;
use crate::quote::{Quote, QuoteClosed, QuoteId};

#[derive(Clone)]
pub struct RejectQuote {
    store: Arc<dyn PoolsStore>,
}

/// Why a quote was not rejected.
#[derive(Debug, thiserror::Error)]
pub enum RejectError {
    /// The partner has no such quote.
    #[error("no such quote")]
    NotFound,
    /// The quote is consumed, rejected or expired.
    #[error(transparent)]
    Closed(#[from] QuoteClosed),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LostRace for RejectError {
    fn lost_race(&self) -> bool {
        matches!(self, Self::Store(error) if error.lost_race())
    }
}

impl RejectQuote {
    /// Rejects through the given store.
    #[must_use]
    pub fn new(store: Arc<dyn PoolsStore>) -> Self {
        Self { store }
    }

    /// Rejects an active quote and returns it.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(quote.id = %id))]
    pub async fn reject(&self, who: &Tenant, id: QuoteId) -> Result<Quote, RejectError> {
        let id = id.in_mode(who.mode).ok_or(RejectError::NotFound)?;
        retry_lost_races(|| self.reject_once(who, id)).await
    }

    async fn reject_once(&self, who: &Tenant, id: QuoteId) -> Result<Quote, RejectError> {
        let mut tx = self.store.begin("quote_reject").await?;
        let quote = tx.quote_lock(who, id).await?.ok_or(RejectError::NotFound)?;
        let now = tx.now().await?;
        let rejected = quote.reject(now)?;
        tx.quote_reject(who, id, now).await?.won()?;
        tx.commit().await?;
        Ok(rejected)
    }
}
