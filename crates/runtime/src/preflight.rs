//! The look before the engine is asked, saved where the quote was made here a moment ago.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use coordination::TakeOnceCache;
use kernel::{Clock, Seen, StoreError};
use partner_core::Tenant;
use partner_core::idempotency::Scope;
use partner_core::pools::PoolId;
use pools_core::batch::{Funds, Refusal, TransactOutcome};
use pools_core::ports::{Recalled, TransactPreflight, TransactSnapshot};
use pools_core::quote::{Quote, QuoteId};
use pools_core::trade::Trade;
use tokio::time::Instant;

/// Quotes remembered at most: some ten megabytes of them.
const MOST: u64 = 32_768;
/// A quote that expires sooner, as this process's clock has it, is looked for: the store's clock judges expiry, and may
/// be ahead.
const MARGIN: Duration = Duration::from_secs(5);

/// The quotes that this process has stored lately, each given out once: to the first attempt to execute it. So a quote that
/// was just made is executed without reading it first, and whoever comes again is looked for in the store, with the key and
/// the trade of the first attempt.
#[derive(Debug)]
pub(crate) struct RecentQuotes(TakeOnceCache<(Tenant, QuoteId), Quote>);

impl Default for RecentQuotes {
    fn default() -> Self {
        Self(TakeOnceCache::new(MOST))
    }
}

impl RecentQuotes {
    pub(crate) fn put(&self, who: Tenant, quote: &Quote) {
        let life = quote.expires_at.since(quote.created_at);
        self.0.put((who, quote.id), quote.clone(), life);
    }
}

/// Partners whose funds are remembered at most; one more, and all are forgotten.
const MOST_PARTNERS: usize = 10_000;
/// Funds that were read longer ago are read again.
const FUNDS_LIFE: Duration = Duration::from_secs(5);

/// The funds that this process has read lately, less what it has spent of them since. Of each partner
/// only those of the pool that it traded in last. What other processes and credits have changed is
/// missing, so funds only ever save a read: they refuse nothing.
#[derive(Debug, Default)]
pub(crate) struct RecentFunds(Mutex<HashMap<Tenant, Known>>);

#[derive(Debug)]
struct Known {
    pool: PoolId,
    funds: Funds,
    read: Instant,
}

impl RecentFunds {
    fn get(&self, who: &Tenant, pool: &PoolId) -> Option<Funds> {
        let known = self.lock();
        let known = known.get(who).filter(|known| known.pool == *pool)?;
        (known.read.elapsed() < FUNDS_LIFE).then(|| known.funds.clone())
    }

    fn put(&self, who: Tenant, pool: PoolId, funds: Funds, read: Instant) {
        let mut all = self.lock();
        if all.len() >= MOST_PARTNERS {
            all.clear();
        }
        all.insert(who, Known { pool, funds, read });
    }

    /// Notes what has become of a command of the partner.
    pub(crate) fn note(&self, who: &Tenant, decided: &Result<TransactOutcome, Refusal>) {
        match decided {
            Ok(TransactOutcome::Opened(trade)) => self.spend(who, trade),
            Err(Refusal::VelocityCapExceeded | Refusal::InsufficientBalance) => {
                self.lock().remove(who);
            }
            Ok(TransactOutcome::Existing(_)) | Err(_) => {}
        }
    }

    fn spend(&self, who: &Tenant, trade: &Trade) {
        let mut all = self.lock();
        let Some(known) = all.get_mut(who) else {
            return;
        };
        let left = known.funds.after(trade);
        match left.filter(|_| known.pool == trade.terms.pool) {
            Some(left) => known.funds = left,
            None => drop(all.remove(who)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Tenant, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers from the recent quotes and funds, or from the store.
pub struct CachedPreflight {
    recent: Arc<RecentQuotes>,
    funds: Arc<RecentFunds>,
    store: Arc<dyn TransactPreflight>,
    clock: Arc<dyn Clock>,
}

impl CachedPreflight {
    /// The looks of a process; `recent` and `funds` are what its lanes have stored and spent.
    pub(crate) fn new(
        recent: &Arc<RecentQuotes>,
        funds: &Arc<RecentFunds>,
        store: Arc<dyn TransactPreflight>,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        Self {
            recent: Arc::clone(recent),
            funds: Arc::clone(funds),
            store,
            clock: Arc::clone(clock),
        }
    }
}

impl fmt::Debug for CachedPreflight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Looks")
    }
}

#[async_trait]
impl TransactPreflight for CachedPreflight {
    fn quote_recall(&self, who: &Tenant, id: QuoteId) -> Option<Recalled> {
        let quote = self.recent.0.take(&(who.clone(), id))?;
        let at = self.clock.now();
        let in_time = at.plus(MARGIN) < quote.expires_at;
        let funds = self.funds.get(who, &quote.terms.pool).filter(|_| in_time)?;
        Some(Recalled { quote, funds, at })
    }

    async fn transact_look(
        &self,
        scope: &Scope,
        pool: &PoolId,
        quote: QuoteId,
    ) -> Result<Seen<TransactSnapshot>, StoreError> {
        let read = Instant::now();
        let seen = self.store.transact_look(scope, pool, quote).await?;
        let funds = seen.value.funds.clone();
        self.funds.put(scope.tenant.clone(), *pool, funds, read);
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Amount, Mode, Rate, Timestamp};
    use partner_core::PartnerId;
    use partner_core::pools::{Network, PoolId};
    use pools_core::ledger::Account;
    use pools_core::quote::{QuoteOutcome, Side, Terms};
    use pools_core::trade::{TradeId, TradeState};

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
    impl TransactPreflight for Away {
        async fn transact_look(
            &self,
            _: &Scope,
            _: &PoolId,
            _: QuoteId,
        ) -> Result<Seen<TransactSnapshot>, StoreError> {
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
                mid: None,
                spread_bps: 25,
                fee_bps: 30,
                notional: 10_000_000_000,
                destination: None,
            },
            created_at: noon,
            expires_at: noon.plus(Duration::from_secs(15)),
            fate: QuoteOutcome::Open,
        }
    }

    fn tenant(partner: &str) -> Tenant {
        Tenant {
            partner: PartnerId::parse(partner).unwrap(),
            mode: Mode::Test,
        }
    }

    fn funds() -> Funds {
        let crypto = Amount::parse("300", quote().terms.pool.crypto()).unwrap();
        Funds {
            accounts: vec![Account {
                available: crypto,
                sequence: 7,
            }],
            velocity: None,
        }
    }

    struct Remembered {
        looks: CachedPreflight,
        recent: Arc<RecentQuotes>,
        funds: Arc<RecentFunds>,
    }

    /// A quote of `acme`'s was made here so many milliseconds ago.
    fn remembered(after: i64) -> Remembered {
        let (recent, funds) = (Arc::<RecentQuotes>::default(), Arc::default());
        recent.put(tenant("acme"), &quote());
        let clock: Arc<dyn Clock> = Arc::new(Stopped(NOON + after));
        let looks = CachedPreflight::new(&recent, &funds, Arc::new(Away), &clock);
        Remembered {
            looks,
            recent,
            funds,
        }
    }

    /// What is recalled, asked for so often so many milliseconds after a quote of `acme`'s was made here.
    fn recalled(partner: &str, after: i64, times: usize) -> Vec<Option<Quote>> {
        let Remembered { looks, funds, .. } = remembered(after);
        funds.put(
            tenant(partner),
            quote().terms.pool,
            self::funds(),
            Instant::now(),
        );
        let recall = || {
            let recalled = looks.quote_recall(&tenant(partner), quote().id)?;
            assert_eq!(recalled.funds, self::funds());
            Some(recalled.quote)
        };
        std::iter::repeat_with(recall).take(times).collect()
    }

    /// A trade of that quote.
    fn trade() -> Trade {
        let Quote {
            id,
            terms,
            created_at,
            ..
        } = quote();
        Trade {
            id: TradeId::parse("txn_test_01KSFVT4Z2V6B9C1D3F5G7H8JK").unwrap(),
            quote: id,
            engine: None,
            reserved: Some(terms.crypto),
            terms,
            created_at,
            state: TradeState::Reserved,
            attempts: 0,
            lease: None,
        }
    }

    /// The funds recalled with the quote, as balance and velocity total.
    fn recalled_funds(remembered: &Remembered) -> Option<(String, Option<i128>)> {
        remembered.recent.put(tenant("acme"), &quote());
        let recalled = remembered.looks.quote_recall(&tenant("acme"), quote().id)?;
        let available = recalled.funds.accounts[0].available.to_string();
        Some((available, recalled.funds.velocity.map(|it| it.total)))
    }

    #[test]
    fn quote_is_not_recalled_without_recent_funds() {
        let remembered = remembered(0);
        assert_eq!(recalled_funds(&remembered), None);
        let old = Instant::now().checked_sub(FUNDS_LIFE).unwrap();
        let pool = quote().terms.pool;
        remembered.funds.put(tenant("acme"), pool, funds(), old);
        assert_eq!(recalled_funds(&remembered), None);
        let elsewhere = PoolId::parse("EUR-USDC").unwrap();
        let now = Instant::now();
        remembered
            .funds
            .put(tenant("acme"), elsewhere, funds(), now);
        assert_eq!(recalled_funds(&remembered), None);
    }

    #[test]
    fn funds_are_less_what_was_spent_of_them() {
        let remembered = remembered(0);
        let put = || {
            let pool = quote().terms.pool;
            remembered
                .funds
                .put(tenant("acme"), pool, funds(), Instant::now());
        };
        put();
        let opened = Ok(TransactOutcome::Opened(trade()));
        for (left, total) in [("200", 10_000_000_000), ("100", 20_000_000_000)] {
            remembered.funds.note(&tenant("acme"), &opened);
            let expected = Some((left.to_owned(), Some(total)));
            assert_eq!(recalled_funds(&remembered), expected);
        }
        remembered
            .funds
            .note(&tenant("acme"), &Ok(TransactOutcome::Existing(trade())));
        assert!(recalled_funds(&remembered).is_some());
        for refusal in [Refusal::VelocityCapExceeded, Refusal::InsufficientBalance] {
            put();
            remembered.funds.note(&tenant("acme"), &Err(refusal));
            assert_eq!(recalled_funds(&remembered), None, "{refusal}");
        }
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
