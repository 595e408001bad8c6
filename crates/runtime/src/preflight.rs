//! The preflight of a transact. For a quote that this process has just created, it uses memory instead of the store.
//!
//! The queues of quotes and transacts are started here, because each of their batches updates that memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use coordination::{BatchQueueOptions, Locks, PartnerQueues, TakeOnceCache};
use kernel::{Clock, Entropy, Seen, StoreResult};
use partner_core::Tenant;
use partner_core::idempotency::Scope;
use pools_core::batch::{Decision, Funds, Refusal, TransactCommand, TransactOutcome};
use pools_core::ports::{NewQuote, Recalled, TransactPreflight, TransactSnapshot, TransactStore};
use pools_core::profile::PoolId;
use pools_core::quote::{Quote, QuoteId};
use pools_core::trade::Trade;
use tokio::time::Instant;

use crate::store::Store;

/// Maximum number of remembered quotes: about ten megabytes.
const MAX_QUOTES: u64 = 32_768;
/// A quote that expires sooner by this process's clock is read from the store. The store's clock decides expiry, and may
/// be ahead.
const EXPIRY_MARGIN: Duration = Duration::from_secs(5);

/// Starts the queues that store quotes. Each stored quote is remembered for its first transact.
///
/// Must be called within a tokio runtime.
pub fn start_quote_queues(
    store: &Arc<dyn Store>,
    preflight: &Arc<CachedPreflight>,
    entropy: &Arc<dyn Entropy>,
) -> PartnerQueues<NewQuote, Quote> {
    let (quotes, preflight) = (Arc::clone(store), Arc::clone(preflight));
    // A quote needs no partner lock, so both kinds of run are the same.
    let run = move |batch: Arc<Vec<NewQuote>>, _: Locks| {
        let (quotes, preflight) = (Arc::clone(&quotes), Arc::clone(&preflight));
        async move {
            let stored = quotes.quotes_open(&batch).await?;
            preflight.remember_quotes(&batch, &stored);
            Ok(stored.into_iter().map(Some).collect())
        }
    };
    PartnerQueues::start(
        store.batch_queue_count(),
        BatchQueueOptions::new("quote"),
        |quote| &quote.who,
        run,
        store.clone(),
        Arc::clone(entropy),
    )
}

/// Starts the queues that run transacts on `transacts`. What they spend is subtracted from the remembered funds.
///
/// Must be called within a tokio runtime.
pub fn start_transact_queues(
    store: &Arc<dyn Store>,
    transacts: Arc<dyn TransactStore>,
    preflight: &Arc<CachedPreflight>,
    entropy: &Arc<dyn Entropy>,
) -> PartnerQueues<TransactCommand, Decision> {
    let preflight = Arc::clone(preflight);
    let run = move |batch: Arc<Vec<TransactCommand>>, locks| {
        let (transacts, preflight) = (Arc::clone(&transacts), Arc::clone(&preflight));
        async move {
            let decisions = match locks {
                Locks::Skip => transacts.transact_unlocked(&batch).await?,
                Locks::Wait => {
                    let decisions = transacts.transact(&batch).await?;
                    decisions.into_iter().map(Some).collect()
                }
            };
            preflight.remember_decisions(&batch, &decisions);
            Ok(decisions)
        }
    };
    PartnerQueues::start(
        store.batch_queue_count(),
        // A command finds the trade that an earlier run of it has created.
        BatchQueueOptions::new("transact").repeatable(),
        |command| &command.scope.tenant,
        run,
        store.clone(),
        Arc::clone(entropy),
    )
}

/// Maximum number of partners whose funds are remembered. One more partner clears the memory.
const MAX_PARTNERS: usize = 10_000;
/// Age at which remembered funds are read again.
const FUNDS_LIFE: Duration = Duration::from_secs(5);

/// Funds that this process has read recently, minus what it has spent since.
///
/// Remembers one pool for each partner: the last one that the partner traded in. Changes by other processes and by credits
/// are missing, so remembered funds can save a read but never refuse a trade.
#[derive(Default)]
struct RecentFunds(Mutex<HashMap<Tenant, Known>>);

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
        if all.len() >= MAX_PARTNERS {
            all.clear();
        }
        all.insert(who, Known { pool, funds, read });
    }

    /// Applies the decision on a command of the partner.
    fn apply(&self, who: &Tenant, decision: &Decision) {
        match decision {
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

/// Uses the recent quotes and funds if possible, otherwise the store.
pub struct CachedPreflight {
    /// Quotes that this process has stored recently. Each is returned once, to the first attempt to execute it.
    ///
    /// So a new quote is executed without a read. Later attempts read the store, with the key and the trade of the first
    /// attempt.
    quotes: TakeOnceCache<(Tenant, QuoteId), Quote>,
    funds: RecentFunds,
    store: Arc<dyn TransactPreflight>,
    clock: Arc<dyn Clock>,
}

impl CachedPreflight {
    /// A preflight without remembered quotes.
    #[must_use]
    pub fn new(store: Arc<dyn TransactPreflight>, clock: Arc<dyn Clock>) -> Self {
        Self {
            quotes: TakeOnceCache::new(MAX_QUOTES),
            funds: RecentFunds::default(),
            store,
            clock,
        }
    }

    fn remember_quotes(&self, batch: &[NewQuote], stored: &[Quote]) {
        let pairs = batch.iter().zip(stored);
        for (new, quote) in pairs.filter(|(new, quote)| new.id == quote.id) {
            self.remember_quote(new.who.clone(), quote);
        }
    }

    fn remember_quote(&self, who: Tenant, quote: &Quote) {
        let life = quote.expires_at.since(quote.created_at);
        self.quotes.put((who, quote.id), quote.clone(), life);
    }

    /// Applies the decisions on a batch to the remembered funds.
    fn remember_decisions(&self, batch: &[TransactCommand], decisions: &[Option<Decision>]) {
        for (command, decision) in batch.iter().zip(decisions) {
            if let Some(decision) = decision {
                self.funds.apply(&command.scope.tenant, decision);
            }
        }
    }
}

#[async_trait]
impl TransactPreflight for CachedPreflight {
    fn quote_recall(&self, who: &Tenant, id: QuoteId) -> Option<Recalled> {
        let quote = self.quotes.take(&(who.clone(), id))?;
        let at = self.clock.now();
        let in_time = at.plus(EXPIRY_MARGIN) < quote.expires_at;
        let funds = self.funds.get(who, &quote.terms.pool).filter(|_| in_time)?;
        Some(Recalled { quote, funds, at })
    }

    async fn transact_snapshot(
        &self,
        scope: &Scope,
        pool: &PoolId,
        quote: QuoteId,
    ) -> StoreResult<Seen<TransactSnapshot>> {
        let read = Instant::now();
        let seen = self.store.transact_snapshot(scope, pool, quote).await?;
        let funds = seen.value.funds.clone();
        self.funds.put(scope.tenant.clone(), *pool, funds, read);
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Amount, Mode, Rate, StoreError, Timestamp};
    use partner_core::PartnerId;
    use pools_core::ledger::Account;
    use pools_core::profile::{Network, PoolId};
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

    /// A store that fails every read.
    struct UnavailableStore;

    #[async_trait]
    impl TransactPreflight for UnavailableStore {
        async fn transact_snapshot(
            &self,
            _: &Scope,
            _: &PoolId,
            _: QuoteId,
        ) -> StoreResult<Seen<TransactSnapshot>> {
            Err(StoreError::unavailable("away"))
        }
    }

    /// A sale of 100 USDT that is executable for 15 seconds.
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
            outcome: QuoteOutcome::Open,
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

    /// A preflight that remembers a quote of `acme`, this many milliseconds later.
    fn remembered(after: i64) -> CachedPreflight {
        let clock = Arc::new(Stopped(NOON + after));
        let preflight = CachedPreflight::new(Arc::new(UnavailableStore), clock);
        preflight.remember_quote(tenant("acme"), &quote());
        preflight
    }

    /// Recalls a quote of `acme` this many milliseconds after its creation, this many times.
    fn recalled(partner: &str, after: i64, times: usize) -> Vec<Option<Quote>> {
        let preflight = remembered(after);
        let pool = quote().terms.pool;
        preflight
            .funds
            .put(tenant(partner), pool, funds(), Instant::now());
        let recall = || {
            let recalled = preflight.quote_recall(&tenant(partner), quote().id)?;
            assert_eq!(recalled.funds, funds());
            Some(recalled.quote)
        };
        std::iter::repeat_with(recall).take(times).collect()
    }

    /// A trade of the quote.
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

    /// The balance and the velocity total that are recalled with the quote.
    fn recalled_funds(preflight: &CachedPreflight) -> Option<(String, Option<i128>)> {
        preflight.remember_quote(tenant("acme"), &quote());
        let recalled = preflight.quote_recall(&tenant("acme"), quote().id)?;
        let available = recalled.funds.accounts[0].available.to_string();
        Some((available, recalled.funds.velocity.map(|it| it.total)))
    }

    #[test]
    fn quote_is_read_from_store_without_recent_funds() {
        let preflight = remembered(0);
        assert_eq!(recalled_funds(&preflight), None);
        let old = Instant::now().checked_sub(FUNDS_LIFE).unwrap();
        let pool = quote().terms.pool;
        preflight.funds.put(tenant("acme"), pool, funds(), old);
        assert_eq!(recalled_funds(&preflight), None);
        let elsewhere = PoolId::parse("EUR-USDC").unwrap();
        let now = Instant::now();
        preflight.funds.put(tenant("acme"), elsewhere, funds(), now);
        assert_eq!(recalled_funds(&preflight), None);
    }

    #[test]
    fn recalled_funds_exclude_what_was_spent() {
        let preflight = remembered(0);
        let put = || {
            let pool = quote().terms.pool;
            preflight
                .funds
                .put(tenant("acme"), pool, funds(), Instant::now());
        };
        put();
        let opened = Ok(TransactOutcome::Opened(trade()));
        for (left, total) in [("200", 10_000_000_000), ("100", 20_000_000_000)] {
            preflight.funds.apply(&tenant("acme"), &opened);
            let expected = Some((left.to_owned(), Some(total)));
            assert_eq!(recalled_funds(&preflight), expected);
        }
        preflight
            .funds
            .apply(&tenant("acme"), &Ok(TransactOutcome::Existing(trade())));
        assert!(recalled_funds(&preflight).is_some());
        for refusal in [Refusal::VelocityCapExceeded, Refusal::InsufficientBalance] {
            put();
            preflight.funds.apply(&tenant("acme"), &Err(refusal));
            assert_eq!(recalled_funds(&preflight), None, "{refusal}");
        }
    }

    #[test]
    fn new_quote_is_recalled_once() {
        assert_eq!(recalled("acme", 9_999, 3), [Some(quote()), None, None]);
    }

    #[test]
    fn quote_near_expiry_is_read_from_store() {
        assert_eq!(recalled("acme", 10_000, 1), [None]);
    }

    // rule: tenancy.nothing-crosses
    #[test]
    fn quote_of_another_partner_is_not_recalled() {
        assert_eq!(recalled("umbrella", 0, 1), [None]);
    }
}
