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
}

impl fmt::Debug for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Looks")
    }
}

#[async_trait]
impl TransactLooks for Looks {
    fn quote_recall(&self, who: &Tenant, id: QuoteId) -> Option<Quote> {
        let quote = self.recent.0.take(&(who.clone(), id))?;
        let in_time = self.clock.now().plus(MARGIN) < quote.expires_at;
        in_time.then_some(quote)
    }

    async fn transact_look(
        &self,
        scope: &Scope,
        quote: QuoteId,
    ) -> Result<Seen<TransactLook>, StoreError> {
        self.store.transact_look(scope, quote).await
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Amount, Mode, Rate, Timestamp};
    use partner_core::PartnerId;
    use partner_core::pools::{Network, PoolId};
    use pools_core::quote::{Fate, Side, Terms};

    use super::*;

    const NOON: i64 = 1_780_000_000_000;

    struct Stopped(i64);

    impl Clock for Stopped {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(self.0).unwrap()
        }
    }

    /// Is not asked.
    struct Away;

    #[async_trait]
    impl TransactLooks for Away {
        async fn transact_look(
            &self,
            _: &Scope,
            _: QuoteId,
        ) -> Result<Seen<TransactLook>, StoreError> {
            Err(StoreError::unavailable("away"))
        }
    }

    /// A sale of 100 USDT, good for a quarter of a minute.
    fn quote() -> Quote {
        let pool = PoolId::parse("EUR-USDT").unwrap();
        let noon = Stopped(NOON).now();
        Quote {
            id: QuoteId::parse("pq_test_01KSFVT4Z2V6B9C1D3F5G7H8JK").unwrap(),
            terms: Terms {
                pool,
                side: Side::OffRamp,
                network: Network::Ethereum,
                fiat: Amount::parse("91.65", pool.fiat()).unwrap(),
                crypto: Amount::parse("100", pool.crypto()).unwrap(),
                rate: Rate::parse("0.91658986").unwrap(),
                spread_bps: 25,
                fee_bps: 30,
                notional: 10_000_000_000,
                destination: None,
            },
            created_at: noon,
            expires_at: noon.plus(Duration::from_secs(15)),
            fate: Fate::Open,
        }
    }

    fn tenant(partner: &str) -> Tenant {
        Tenant {
            partner: PartnerId::parse(partner).unwrap(),
            mode: Mode::Test,
        }
    }

    /// What is recalled, asked for so often so many milliseconds after a quote of `acme`'s was made here.
    fn recalled(partner: &str, after: i64, times: usize) -> Vec<Option<Quote>> {
        let recent = Arc::<RecentQuotes>::default();
        recent.put(tenant("acme"), &quote());
        let clock: Arc<dyn Clock> = Arc::new(Stopped(NOON + after));
        let looks = Looks::new(&recent, Arc::new(Away), &clock);
        let recall = || looks.quote_recall(&tenant(partner), quote().id);
        std::iter::repeat_with(recall).take(times).collect()
    }

    #[test]
    fn a_quote_that_was_just_made_is_remembered_once() {
        assert_eq!(recalled("acme", 9_999, 3), [Some(quote()), None, None]);
    }

    #[test]
    fn one_that_may_have_expired_by_the_stores_clock_is_not() {
        assert_eq!(recalled("acme", 10_000, 1), [None]);
    }

    // rule: tenancy.nothing-crosses
    #[test]
    fn another_partners_is_not_theirs() {
        assert_eq!(recalled("umbrella", 0, 1), [None]);
    }
}
