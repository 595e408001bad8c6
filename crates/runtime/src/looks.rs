//! The look before the engine is asked, saved where the quote was made here a moment ago.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coordination::Once;
use kernel::{Clock, Seen, StoreError};
use partner_core::Tenant;
use partner_core::idempotency::Scope;
use pools_core::ports::{TransactLook, TransactLooks};
use pools_core::quote::{Quote, QuoteId};

/// Quotes remembered at most: some ten megabytes of them.
const MOST: u64 = 32_768;
/// A quote that expires sooner, as this process's clock has it, is looked for: the store's clock judges expiry, and may
/// be ahead.
const MARGIN: Duration = Duration::from_secs(5);

/// The quotes that this process has stored lately, each given out once: to the first attempt to execute it. So a quote that
/// was just made is executed without reading it first, and whoever comes again is looked for in the store, with the key and
/// the trade of the first attempt.
#[derive(Debug)]
pub(crate) struct RecentQuotes(Once<(Tenant, QuoteId), Quote>);

impl Default for RecentQuotes {
    fn default() -> Self {
        Self(Once::new(MOST))
    }
}

impl RecentQuotes {
    pub(crate) fn put(&self, who: Tenant, quote: &Quote) {
        let life = quote.expires_at.since(quote.created_at);
        self.0.put((who, quote.id), quote.clone(), life);
    }
}

/// Answers from the recent quotes, or from the store.
pub struct Looks {
    recent: Arc<RecentQuotes>,
    store: Arc<dyn TransactLooks>,
    clock: Arc<dyn Clock>,
}

impl Looks {
    /// The looks of a process; `recent` is what its lanes have stored.
    pub(crate) fn new(
        recent: &Arc<RecentQuotes>,
        store: Arc<dyn TransactLooks>,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        Self {
            recent: Arc::clone(recent),
            store,
            clock: Arc::clone(clock),
        }
    }

    fn recall(&self, who: &Tenant, quote: QuoteId) -> Option<Quote> {
        let quote = self.recent.0.take(&(who.clone(), quote))?;
        let in_time = self.clock.now().plus(MARGIN) < quote.expires_at;
        in_time.then_some(quote)
    }
}

impl fmt::Debug for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Looks")
    }
}

#[async_trait]
impl TransactLooks for Looks {
    /// A quote that is remembered is as it was when it was made; that its key is used, or the quote no longer open, is found
    /// in the lane.
    async fn transact_look(
        &self,
        scope: &Scope,
        quote: QuoteId,
    ) -> Result<Seen<TransactLook>, StoreError> {
        let Some(quote) = self.recall(&scope.tenant, quote) else {
            return self.store.transact_look(scope, quote).await;
        };
        Ok(Seen {
            at: quote.created_at,
            value: TransactLook {
                answered: None,
                quote: Some(quote),
                trade: None,
            },
        })
    }
}
