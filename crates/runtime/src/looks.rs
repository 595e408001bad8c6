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

#[cfg(test)]
mod tests {
    use kernel::{Amount, Mode, Rate, Timestamp};
    use partner_core::PartnerId;
    use partner_core::idempotency::IdempotencyKey;
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

    /// Knows no quote.
    struct Empty;

    #[async_trait]
    impl TransactLooks for Empty {
        async fn transact_look(
            &self,
            _: &Scope,
            _: QuoteId,
        ) -> Result<Seen<TransactLook>, StoreError> {
            Ok(Seen {
                at: Stopped(NOON).now(),
                value: TransactLook {
                    answered: None,
                    quote: None,
                    trade: None,
                },
            })
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

    /// What looks find so many milliseconds after a quote of `acme`'s was made here.
    async fn found(partner: &str, after: i64, looks: usize) -> Vec<bool> {
        let recent = Arc::<RecentQuotes>::default();
        recent.put(tenant("acme"), &quote());
        let clock: Arc<dyn Clock> = Arc::new(Stopped(NOON + after));
        let looking = Looks::new(&recent, Arc::new(Empty), &clock);
        let scope = Scope {
            tenant: tenant(partner),
            route: "POST /v1/pools/EUR-USDT/transact".to_owned(),
            key: IdempotencyKey::parse(b"first").unwrap(),
        };
        let mut found = Vec::new();
        for _ in 0..looks {
            let seen = looking.transact_look(&scope, quote().id).await.unwrap();
            assert!(seen.at <= clock.now());
            found.push(seen.value.quote == Some(quote()));
        }
        found
    }

    #[tokio::test]
    async fn a_quote_that_was_just_made_is_remembered_once() {
        assert_eq!(found("acme", 9_999, 3).await, [true, false, false]);
    }

    #[tokio::test]
    async fn one_that_may_have_expired_by_the_stores_clock_is_looked_for() {
        assert_eq!(found("acme", 10_000, 1).await, [false]);
    }

    // rule: tenancy.nothing-crosses
    #[tokio::test]
    async fn another_partners_is_not_theirs() {
        assert_eq!(found("umbrella", 0, 1).await, [false]);
    }
}
