//! The ports under the real use cases.
//!
//! A use case in progress is stored as the views that its calls have received. Its next step runs it again from the start: earlier
//! calls return their stored views, one more call runs on the current state, and the call after that one never returns. A
//! transaction is one call, whatever it reads and writes, because the stores are serializable and a crash within a transaction
//! leaves no trace. So the explored code is the production code down to its ports.

mod engine;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{
    Amount, Asset, Cas, Clock, Entropy, Mode, Readable, Seen, StoreError, StoreResult, Timestamp,
    TraceParent, UpstreamName,
};
use parking_lot::Mutex;
use partner_core::Tenant;
use partner_core::events::NewEvent;
use partner_core::idempotency::Scope;
use partner_core::ports::{EventTx, InFlight, Submit, Ticket, UnitOfWork};
use pools_core::batch::{Decision, Funds, TransactCommand, TransactOutcome, decide_batch};
use pools_core::contingent_credit::{Amounts, Range, Recount};
use pools_core::ledger::{Account, Entry};
use pools_core::ports::{
    Confirmation, Deposit, Depth, Engine, Hold, LedgerFilter, LedgerPage, LedgerTx, Order,
    PoolsReads, PoolsStore, PoolsTx, QuoteTx, TradeFilter, TradeReportRequest, TradeTx,
    TransactPreflight, TransactSnapshot, VelocityRange, VelocityTx,
};
use pools_core::profile::PoolId;
use pools_core::quote::{Quote, QuoteId};
use pools_core::trade::{EngineReport, Lease, Step, Trade, TradeId, TradeStatus};
use pools_core::velocity::{CountedTrades, TradesRead, Velocity};

pub(crate) use crate::call::{Call, Fault};
use crate::db::{Db, facts};
use crate::digest::Digest;
use crate::engine::{EngineState, contradiction};
use crate::world::at;

/// The view that a call receives.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) db: Arc<Db>,
    pub(crate) engine: Arc<EngineState>,
    pub(crate) tick: u8,
    /// Whether another request on the same server uses the idempotency key.
    pub(crate) twin: bool,
    pub(crate) fault: Fault,
}

/// One run of a use case over its views.
pub(crate) struct Run {
    views: Vec<View>,
    /// Seed of the ids and tokens of this request.
    request: u64,
    state: Mutex<Progress>,
}

/// Progress of a run.
pub(crate) struct Progress {
    /// Number of calls.
    at: usize,
    /// Numbers drawn.
    drawn: u64,
    /// The call at which the run waits.
    pub(crate) next: Option<Call>,
    /// Digest of all results that the run has received.
    pub(crate) received: Digest,
    /// The idempotency scope that the run has entered.
    pub(crate) entered: Option<Scope>,
    /// Whether the trade that the run locked last was settled.
    pub(crate) knows_settled: bool,
    /// The state after its last call.
    pub(crate) db: Option<Db>,
    pub(crate) engine: Option<EngineState>,
}

impl Run {
    pub(crate) fn new(views: Vec<View>, request: u64) -> Arc<Self> {
        Arc::new(Self {
            views,
            request,
            state: Mutex::new(Progress {
                at: 0,
                drawn: 0,
                next: None,
                received: Digest::new(),
                entered: None,
                knows_settled: false,
                db: None,
                engine: None,
            }),
        })
    }

    /// Returns the progress of a run whose use case was dropped.
    pub(crate) fn ended(self: Arc<Self>) -> Progress {
        let run = Arc::try_unwrap(self)
            .ok()
            .expect("the use case has been dropped");
        run.state.into_inner()
    }

    /// Waits for the next turn. Returns the view of the call and whether the call runs now.
    async fn turn(&self, call: Call) -> (&View, bool) {
        let at = {
            let mut state = self.state.lock();
            state.next = Some(call);
            state.at
        };
        let Some(view) = self.views.get(at) else {
            return std::future::pending().await;
        };
        self.state.lock().at += 1;
        (view, at + 1 == self.views.len())
    }

    fn receive(&self, fact: &impl std::fmt::Debug) {
        self.state.lock().received.add(fact);
    }

    fn view(&self) -> Option<&View> {
        let made = self.state.lock().at;
        self.views.get(made.checked_sub(1)?)
    }

    fn leave_engine(&self, now: bool, engine: EngineState) {
        if now {
            self.state.lock().engine = Some(engine);
        }
    }
}

/// The ports that the use cases hold.
#[derive(Clone)]
pub(crate) struct Ports(pub(crate) Arc<Run>);

impl Clock for Ports {
    /// The clock of the last call. Only ids use it.
    fn now(&self) -> Timestamp {
        at(self.0.view().map_or(0, |view| view.tick))
    }
}

impl Entropy for Ports {
    fn fill(&self, buffer: &mut [u8]) {
        let drawn = {
            let mut state = self.0.state.lock();
            state.drawn += 1;
            state.drawn
        };
        let number = ((self.0.request << 8) | drawn).to_be_bytes();
        for (slot, byte) in buffer.iter_mut().rev().zip(number.iter().rev().cycle()) {
            *slot = *byte;
        }
    }
}

#[async_trait]
impl InFlight for Ports {
    async fn enter(&self, scope: &Scope) -> Option<Ticket> {
        let (view, _) = self.0.turn(Call::Enter).await;
        self.0.receive(&view.twin);
        if view.twin {
            return None;
        }
        self.0.state.lock().entered = Some(scope.clone());
        Some(Ticket(Box::new(())))
    }

    /// Keeps no transacts of one quote apart, which is the worst case.
    async fn enter_within(&self, _: &Scope, _: Duration) -> Option<Ticket> {
        Some(Ticket(Box::new(())))
    }
}

#[async_trait]
impl PoolsReads for Ports {
    async fn quote_get(&self, _: &Tenant, id: QuoteId) -> StoreResult<Option<Seen<Quote>>> {
        let (view, _) = self.0.turn(Call::Read).await;
        let quote = view.db.quotes.get(&id).cloned();
        self.0
            .receive(&(quote.as_ref().map(|quote| quote.outcome), view.tick));
        Ok(quote.map(|value| Seen {
            value,
            at: at(view.tick),
        }))
    }

    /// Reads at once: a transaction of the model is one step, so none is in progress.
    async fn quote_get_behind_writes(
        &self,
        who: &Tenant,
        id: QuoteId,
    ) -> StoreResult<Option<Seen<Quote>>> {
        self.quote_get(who, id).await
    }

    async fn trade_by_quote(&self, _: &Tenant, quote: QuoteId) -> StoreResult<Option<Seen<Trade>>> {
        let (view, _) = self.0.turn(Call::Read).await;
        let trade = view.db.trades.get(&quote).cloned();
        self.0.receive(&(trade.as_ref().map(facts), view.tick));
        Ok(trade.map(|value| Seen {
            value,
            at: at(view.tick),
        }))
    }

    async fn trade_get(&self, _: &Tenant, _: TradeId) -> StoreResult<Option<Trade>> {
        Err(no_lists())
    }

    async fn trades_page(&self, _: &Tenant, _: &TradeFilter, _: u32) -> StoreResult<Vec<Trade>> {
        Err(no_lists())
    }

    async fn account_get(&self, _: &Tenant, _: Asset) -> StoreResult<Option<Account>> {
        Err(no_lists())
    }

    async fn ledger_page(
        &self,
        _: &Tenant,
        _: Asset,
        _: &LedgerFilter,
        _: u32,
    ) -> StoreResult<Option<LedgerPage>> {
        Err(no_lists())
    }

    async fn counted_trades(&self, _: &Tenant, _: u32) -> StoreResult<Option<Seen<CountedTrades>>> {
        Err(no_lists())
    }
}

fn no_lists() -> StoreError {
    StoreError::unexpected("no use case of the model reads this")
}

#[async_trait]
impl Submit<TransactCommand, Decision> for Ports {
    async fn submit(&self, command: TransactCommand) -> StoreResult<Decision> {
        let (view, now) = self.0.turn(Call::Write).await;
        let mut db = (*view.db).clone();
        let mut state = db.state(at(view.tick));
        let batch = [command];
        let decided = decide_batch(&mut state, &batch, at(view.tick)).remove(0);
        let written = db.write(&state, &batch);
        let answer = commit(&self.0, view, now, db, written);
        let facts = decided.as_ref().map(|outcome| match outcome {
            TransactOutcome::Opened(trade) => (true, trade.id),
            TransactOutcome::Existing(trade) => (false, trade.id),
        });
        self.0.receive(&(facts, answer.is_ok()));
        answer.map(|()| decided)
    }
}

/// Ends a transaction as its fault requires.
fn commit(run: &Run, view: &View, now: bool, db: Db, written: StoreResult<()>) -> StoreResult<()> {
    written?;
    let (kept, answer) = match view.fault {
        Fault::Away => (false, Err(StoreError::unavailable("the store is away"))),
        Fault::Lost => (false, Err(StoreError::CommitUnknown("no answer".into()))),
        Fault::Unheard => (true, Err(StoreError::CommitUnknown("no answer".into()))),
        Fault::None | Fault::Refused | Fault::Lapsed | Fault::Earlier | Fault::Contradiction => {
            (true, Ok(()))
        }
    };
    if kept && now {
        run.state.lock().db = Some(db);
    }
    answer
}

#[async_trait]
impl TransactPreflight for Ports {
    async fn transact_snapshot(
        &self,
        scope: &Scope,
        pool: &PoolId,
        quote: QuoteId,
    ) -> StoreResult<Seen<TransactSnapshot>> {
        let (view, _) = self.0.turn(Call::Read).await;
        let answered = view.db.answered.get(scope);
        let snapshot = TransactSnapshot {
            answered: answered.copied(),
            quote: view.db.quotes.get(&quote).cloned(),
            trade: view.db.trades.get(&quote).cloned(),
            funds: Funds {
                accounts: [pool.fiat(), pool.crypto()]
                    .map(|asset| view.db.account(asset))
                    .into(),
                velocity: view.db.velocity,
            },
        };
        let available = snapshot
            .funds
            .accounts
            .iter()
            .map(|account| account.available.units());
        self.0
            .receive(&(available.collect::<Vec<_>>(), snapshot.funds.velocity));
        self.0.receive(&(
            answered.map(|record| (record.fingerprint.0, record.expires_at)),
            view.tick,
        ));
        self.0.receive(&(
            snapshot.quote.as_ref().map(|quote| quote.outcome),
            snapshot.trade.as_ref().map(facts),
        ));
        Ok(Seen {
            value: snapshot,
            at: at(view.tick),
        })
    }
}

#[async_trait]
impl PoolsStore for Ports {
    async fn begin(&self, _: &'static str) -> StoreResult<Box<dyn PoolsTx>> {
        let (view, now) = self.0.turn(Call::Write).await;
        Ok(Box::new(Tx {
            run: Arc::clone(&self.0),
            view: view.clone(),
            now,
            db: (*view.db).clone(),
        }))
    }

    async fn commitments_above(&self, _: Mode, _: i64) -> StoreResult<Readable<(Tenant, Asset)>> {
        Err(no_lists())
    }
}

/// A transaction, which changes the state only by a commit.
struct Tx {
    run: Arc<Run>,
    view: View,
    now: bool,
    db: Db,
}

#[async_trait]
impl UnitOfWork for Tx {
    async fn now(&mut self) -> StoreResult<Timestamp> {
        self.run.receive(&self.view.tick);
        Ok(at(self.view.tick))
    }

    async fn commit(self: Box<Self>) -> StoreResult<()> {
        let answer = commit(&self.run, &self.view, self.now, self.db, Ok(()));
        self.run.receive(&answer.is_ok());
        answer
    }
}

#[async_trait]
impl QuoteTx for Tx {
    async fn quote_lock(&mut self, _: &Tenant, id: QuoteId) -> StoreResult<Option<Quote>> {
        let quote = self.db.quotes.get(&id).cloned();
        self.run.receive(&quote.as_ref().map(|quote| quote.outcome));
        Ok(quote)
    }

    async fn quote_reject(&mut self, _: &Tenant, id: QuoteId, at: Timestamp) -> StoreResult<Cas> {
        Ok(self.db.reject(id, at))
    }
}

#[async_trait]
impl TradeTx for Tx {
    async fn trade_lock(&mut self, _: &Tenant, id: TradeId) -> StoreResult<Option<Trade>> {
        let trade = self.db.trade(id).cloned();
        self.run.receive(&trade.as_ref().map(facts));
        let status = trade.as_ref().map(|trade| trade.state.status());
        self.run.state.lock().knows_settled = status == Some(TradeStatus::Settled);
        Ok(trade)
    }

    async fn trade_claim(
        &mut self,
        _: &Tenant,
        id: TradeId,
        attempt: u32,
        lease: Lease,
    ) -> StoreResult<Cas> {
        Ok(self.db.claim(id, attempt, lease))
    }

    async fn trade_unclaim(&mut self, _: &Tenant, id: TradeId, token: u64) -> StoreResult<Cas> {
        Ok(self.db.unclaim(id, token))
    }

    async fn trade_rest(&mut self, _: &Tenant, id: TradeId, lease: Lease) -> StoreResult<Cas> {
        Ok(self.db.rest(id, lease))
    }

    async fn trade_apply(
        &mut self,
        _: &Tenant,
        before: &Trade,
        steps: &[Step],
        token: u64,
    ) -> StoreResult<Cas> {
        Ok(self.db.apply(before, steps, token))
    }
}

#[async_trait]
impl LedgerTx for Tx {
    async fn account_lock(&mut self, _: &Tenant, asset: Asset) -> StoreResult<Account> {
        let account = self.db.account(asset);
        self.run.receive(&account);
        Ok(account)
    }

    async fn entry_post(&mut self, _: &Tenant, before: &Account, entry: &Entry) -> StoreResult<()> {
        self.db.post(before, entry)
    }

    /// Counts the balance alone, because no account of the model comes near its limit.
    async fn commitment_get(&mut self, _: &Tenant, asset: Asset) -> StoreResult<Option<i64>> {
        let account = self.db.account(asset);
        self.run.receive(&account);
        Ok(Some(account.available.units()))
    }

    async fn commitment_put(&mut self, _: &Tenant, _: Asset, _: i64) -> StoreResult<()> {
        Ok(())
    }

    async fn recount_get(&mut self, _: &Tenant, _: Asset) -> StoreResult<Option<Recount>> {
        Err(no_lists())
    }

    async fn recount_put(&mut self, _: &Tenant, _: Asset, _: &Recount) -> StoreResult<()> {
        Err(no_lists())
    }

    async fn refundable(&mut self, _: &Tenant, _: Asset, _: Range, _: u32) -> StoreResult<Amounts> {
        Err(no_lists())
    }

    /// Every deposit of the model is stored with the form of comparison.
    async fn deposits_compare(&mut self, _: &Tenant, _: u32) -> StoreResult<u32> {
        Ok(0)
    }

    async fn deposit_find(&mut self, _: &Tenant, reference: &str) -> StoreResult<Option<Deposit>> {
        let found = self.db.deposits.get(reference).cloned();
        self.run.receive(&found.is_some());
        Ok(found)
    }

    async fn deposit_insert(&mut self, _: &Tenant, deposit: &Deposit) -> StoreResult<()> {
        self.db
            .deposits
            .insert(deposit.reference.clone(), deposit.clone());
        Ok(())
    }
}

#[async_trait]
impl VelocityTx for Tx {
    async fn velocity_lock(&mut self, _: &Tenant) -> StoreResult<Option<Velocity>> {
        self.run.receive(&self.db.velocity);
        Ok(self.db.velocity)
    }

    async fn velocity_put(&mut self, _: &Tenant, velocity: &Velocity) -> StoreResult<()> {
        self.db.velocity = Some(*velocity);
        Ok(())
    }

    async fn velocity_read(
        &mut self,
        _: &Tenant,
        _: VelocityRange,
        _: u32,
    ) -> StoreResult<TradesRead> {
        Err(no_lists())
    }
}

#[async_trait]
impl EventTx for Tx {
    fn caused_by(&mut self, _: Option<TraceParent>) {}

    async fn event_insert(&mut self, event: &NewEvent) -> StoreResult<()> {
        self.db.insert_event(event)
    }
}
