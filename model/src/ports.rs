//! The ports the real use cases run over.
//!
//! A use case under way is kept as what it was shown at each call so far. To take its next step it is run again from its
//! beginning: the calls it has made already are answered from what they were shown then, one more call is made on the
//! state of now, and at the call after that it is left waiting. A transaction is one call, whatever it reads and writes:
//! the stores are serializable, and a crash within one leaves nothing. So the code that is explored is the code that runs
//! in production, up to its ports.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Amount, Asset, Cas, Clock, Entropy, Mode, Seen, StoreError, Timestamp};
use parking_lot::Mutex;
use partner_core::Tenant;
use partner_core::events::NewEvent;
use partner_core::idempotency::Scope;
use partner_core::ports::{EventTx, InFlight, Ticket, Unit};
use pools_core::books::{Command, Outcome, Refusal, decide_batch};
use pools_core::ledger::{Account, Entry};
use pools_core::ports::{
    Confirmation, Deposit, Depth, Engine, Enquiry, Hold, LedgerFilter, LedgerPage, LedgerTx, Order,
    PoolsReads, PoolsStore, PoolsTx, QuoteTx, TradeFilter, TradeTx, TransactDesk, TransactLook,
    TransactLooks, VelocityTx,
};
use pools_core::quote::{Quote, QuoteId};
use pools_core::trade::{EngineReport, Lease, Step, Trade, TradeId};
use pools_core::velocity::Velocity;

use crate::db::{Db, facts};
use crate::digest::Digest;
use crate::far::Far;
use crate::world::at;

/// What a call is shown.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) db: Arc<Db>,
    pub(crate) far: Arc<Far>,
    pub(crate) tick: u8,
    /// Is the request's idempotency key in use by another request on the same server?
    pub(crate) twin: bool,
    pub(crate) fault: Fault,
}

/// How a call goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    None,
    /// Nothing was done, and the caller knows.
    Away,
    /// It was done, and the answer is lost.
    Unheard,
    /// It was not done, and the caller cannot tell.
    Lost,
    /// The engine refuses.
    Refused,
    /// The engine tells of a reversal before we know of the delivery.
    Early,
}

/// Where a use case waits: the call it is about to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Call {
    Enter,
    Read,
    /// A transaction, or the lane's.
    Write,
    Hold,
    Confirm,
    LetGo,
    Report,
}

impl Call {
    pub(crate) const ALL: [Self; 7] = [
        Self::Enter,
        Self::Read,
        Self::Write,
        Self::Hold,
        Self::Confirm,
        Self::LetGo,
        Self::Report,
    ];

    /// The ways it can go wrong.
    pub(crate) const fn faults(self) -> &'static [Fault] {
        match self {
            Self::Enter | Self::Read => &[],
            Self::Write => &[Fault::Away, Fault::Unheard, Fault::Lost],
            Self::Hold => &[Fault::Refused, Fault::Unheard, Fault::Lost],
            Self::Confirm => &[Fault::Unheard, Fault::Lost],
            Self::LetGo => &[Fault::Lost],
            Self::Report => &[Fault::Lost, Fault::Early],
        }
    }

    pub(crate) const fn to_the_engine(self) -> bool {
        matches!(
            self,
            Self::Hold | Self::Confirm | Self::LetGo | Self::Report
        )
    }
}

/// One run of a use case over its views.
pub(crate) struct Run {
    views: Vec<View>,
    /// Makes the ids and tokens of this request its own.
    request: u64,
    state: Mutex<Progress>,
}

/// What a run has come to.
pub(crate) struct Progress {
    /// Calls made.
    at: usize,
    /// Numbers drawn.
    drawn: u64,
    /// The call it waits at.
    pub(crate) next: Option<Call>,
    /// All it has been told.
    pub(crate) told: Digest,
    /// The scope it has entered.
    pub(crate) entered: Option<Scope>,
    /// What the last of its calls has left.
    pub(crate) db: Option<Db>,
    pub(crate) far: Option<Far>,
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
                told: Digest::new(),
                entered: None,
                db: None,
                far: None,
            }),
        })
    }

    /// What the run has come to; the use case itself is gone by now.
    pub(crate) fn ended(self: Arc<Self>) -> Progress {
        let run = Arc::try_unwrap(self)
            .ok()
            .expect("the use case has been dropped");
        run.state.into_inner()
    }

    /// Waits for its turn; the view of this call, and whether it is made now.
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

    fn told(&self, fact: &impl std::fmt::Debug) {
        self.state.lock().told.add(fact);
    }

    fn view(&self) -> Option<&View> {
        let made = self.state.lock().at;
        self.views.get(made.checked_sub(1)?)
    }

    fn leave_far(&self, now: bool, far: Far) {
        if now {
            self.state.lock().far = Some(far);
        }
    }
}

/// The handle the use cases hold.
#[derive(Clone)]
pub(crate) struct Ports(pub(crate) Arc<Run>);

impl Clock for Ports {
    /// The clock of the last call: ids alone are made from it.
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
        self.0.told(&view.twin);
        if view.twin {
            return None;
        }
        self.0.state.lock().entered = Some(scope.clone());
        Some(Ticket(Box::new(())))
    }
}

#[async_trait]
impl PoolsReads for Ports {
    async fn quote_get(&self, _: &Tenant, id: QuoteId) -> Result<Option<Seen<Quote>>, StoreError> {
        let (view, _) = self.0.turn(Call::Read).await;
        let quote = view.db.quotes.get(&id).cloned();
        self.0
            .told(&(quote.as_ref().map(|quote| quote.fate), view.tick));
        Ok(quote.map(|value| Seen {
            value,
            at: at(view.tick),
        }))
    }

    /// A transaction of this model is one step, so none is ever under way.
    async fn quote_get_behind_writes(
        &self,
        who: &Tenant,
        id: QuoteId,
    ) -> Result<Option<Seen<Quote>>, StoreError> {
        self.quote_get(who, id).await
    }

    async fn trade_by_quote(
        &self,
        _: &Tenant,
        quote: QuoteId,
    ) -> Result<Option<Trade>, StoreError> {
        let (view, _) = self.0.turn(Call::Read).await;
        let trade = view.db.trades.get(&quote).cloned();
        self.0.told(&trade.as_ref().map(facts));
        Ok(trade)
    }

    async fn trade_get(&self, _: &Tenant, _: TradeId) -> Result<Option<Trade>, StoreError> {
        Err(no_lists())
    }

    async fn trades_page(
        &self,
        _: &Tenant,
        _: &TradeFilter,
        _: u32,
    ) -> Result<Vec<Trade>, StoreError> {
        Err(no_lists())
    }

    async fn account_get(&self, _: &Tenant, _: Asset) -> Result<Option<Account>, StoreError> {
        Err(no_lists())
    }

    async fn ledger_page(
        &self,
        _: &Tenant,
        _: Asset,
        _: &LedgerFilter,
        _: u32,
    ) -> Result<Option<LedgerPage>, StoreError> {
        Err(no_lists())
    }
}

fn no_lists() -> StoreError {
    StoreError::unexpected("no use case of the model reads this")
}

#[async_trait]
impl TransactDesk for Ports {
    async fn transact(&self, command: Command) -> Result<Result<Outcome, Refusal>, StoreError> {
        let (view, now) = self.0.turn(Call::Write).await;
        let mut db = (*view.db).clone();
        let mut books = db.books(at(view.tick));
        let batch = [command];
        let decided = decide_batch(&mut books, &batch, at(view.tick)).remove(0);
        let written = db.write(&books, &batch);
        let answer = commit(&self.0, view, now, db, written);
        let facts = decided.as_ref().map(|outcome| match outcome {
            Outcome::Opened(trade) => (true, trade.id),
            Outcome::Existing(trade) => (false, trade.id),
        });
        self.0.told(&(facts, answer.is_ok()));
        answer.map(|()| decided)
    }
}

/// Ends a transaction as its fault will have it.
fn commit(
    run: &Run,
    view: &View,
    now: bool,
    db: Db,
    written: Result<(), StoreError>,
) -> Result<(), StoreError> {
    written?;
    let (kept, answer) = match view.fault {
        Fault::Away => (false, Err(StoreError::unavailable("the store is away"))),
        Fault::Lost => (false, Err(StoreError::CommitUnknown("no answer".into()))),
        Fault::Unheard => (true, Err(StoreError::CommitUnknown("no answer".into()))),
        Fault::None | Fault::Refused | Fault::Early => (true, Ok(())),
    };
    if kept && now {
        run.state.lock().db = Some(db);
    }
    answer
}

#[async_trait]
impl TransactLooks for Ports {
    async fn transact_look(
        &self,
        scope: &Scope,
        quote: QuoteId,
    ) -> Result<Seen<TransactLook>, StoreError> {
        let (view, _) = self.0.turn(Call::Read).await;
        let answered = view.db.answered.get(scope);
        let look = TransactLook {
            answered: answered.map(|record| (record.fingerprint, record.created_at)),
            quote: view.db.quotes.get(&quote).cloned(),
            trade: view.db.trades.get(&quote).cloned(),
        };
        self.0.told(&(
            answered.map(|record| (record.fingerprint.0, record.created_at)),
            view.tick,
        ));
        self.0.told(&(
            look.quote.as_ref().map(|quote| quote.fate),
            look.trade.as_ref().map(facts),
        ));
        Ok(Seen {
            value: look,
            at: at(view.tick),
        })
    }
}

#[async_trait]
impl PoolsStore for Ports {
    async fn begin(&self, _: &'static str) -> Result<Box<dyn PoolsTx>, StoreError> {
        let (view, now) = self.0.turn(Call::Write).await;
        Ok(Box::new(Tx {
            run: Arc::clone(&self.0),
            view: view.clone(),
            now,
            db: (*view.db).clone(),
        }))
    }

    async fn commitments_above(&self, _: Mode, _: i64) -> Result<Vec<(Tenant, Asset)>, StoreError> {
        Err(no_lists())
    }
}

/// A transaction: nothing of it is left unless it commits.
struct Tx {
    run: Arc<Run>,
    view: View,
    now: bool,
    db: Db,
}

#[async_trait]
impl Unit for Tx {
    async fn now(&mut self) -> Result<Timestamp, StoreError> {
        self.run.told(&self.view.tick);
        Ok(at(self.view.tick))
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let answer = commit(&self.run, &self.view, self.now, self.db, Ok(()));
        self.run.told(&answer.is_ok());
        answer
    }
}

#[async_trait]
impl QuoteTx for Tx {
    async fn quote_lock(&mut self, _: &Tenant, id: QuoteId) -> Result<Option<Quote>, StoreError> {
        let quote = self.db.quotes.get(&id).cloned();
        self.run.told(&quote.as_ref().map(|quote| quote.fate));
        Ok(quote)
    }

    async fn quote_reject(
        &mut self,
        _: &Tenant,
        id: QuoteId,
        at: Timestamp,
    ) -> Result<Cas, StoreError> {
        Ok(self.db.reject(id, at))
    }
}

#[async_trait]
impl TradeTx for Tx {
    async fn trade_lock(&mut self, _: &Tenant, id: TradeId) -> Result<Option<Trade>, StoreError> {
        let trade = self.db.trade(id).cloned();
        self.run.told(&trade.as_ref().map(facts));
        Ok(trade)
    }

    async fn trade_claim(
        &mut self,
        _: &Tenant,
        id: TradeId,
        attempt: u32,
        lease: Lease,
    ) -> Result<Cas, StoreError> {
        Ok(self.db.claim(id, attempt, lease))
    }

    async fn trade_unclaim(
        &mut self,
        _: &Tenant,
        id: TradeId,
        token: u64,
    ) -> Result<Cas, StoreError> {
        Ok(self.db.unclaim(id, token))
    }

    async fn trade_apply(
        &mut self,
        _: &Tenant,
        before: &Trade,
        step: &Step,
        token: u64,
    ) -> Result<Cas, StoreError> {
        Ok(self.db.apply(before, step, token))
    }
}

#[async_trait]
impl LedgerTx for Tx {
    async fn account_lock(&mut self, _: &Tenant, asset: Asset) -> Result<Account, StoreError> {
        let account = self.db.account(asset);
        self.run.told(&account);
        Ok(account)
    }

    async fn entry_post(
        &mut self,
        _: &Tenant,
        before: &Account,
        entry: &Entry,
    ) -> Result<(), StoreError> {
        self.db.post(before, entry)
    }

    async fn refundable(
        &mut self,
        _: &Tenant,
        asset: Asset,
        settled_after: Timestamp,
    ) -> Result<i128, StoreError> {
        let refundable = self.db.refundable(asset, settled_after);
        self.run.told(&refundable);
        Ok(refundable)
    }

    /// No account of the model comes near its limit, so what it is committed to is counted anew each time.
    async fn commitment_put(&mut self, _: &Tenant, _: Asset, _: i64) -> Result<(), StoreError> {
        Ok(())
    }

    async fn deposit_find(
        &mut self,
        _: &Tenant,
        reference: &str,
    ) -> Result<Option<Deposit>, StoreError> {
        let found = self.db.deposits.get(reference).cloned();
        self.run.told(&found.is_some());
        Ok(found)
    }

    async fn deposit_insert(&mut self, _: &Tenant, deposit: &Deposit) -> Result<(), StoreError> {
        self.db
            .deposits
            .insert(deposit.reference.clone(), deposit.clone());
        Ok(())
    }
}

#[async_trait]
impl VelocityTx for Tx {
    async fn velocity_lock(&mut self, _: &Tenant) -> Result<Option<Velocity>, StoreError> {
        self.run.told(&self.db.velocity);
        Ok(self.db.velocity)
    }

    async fn velocity_put(&mut self, _: &Tenant, velocity: &Velocity) -> Result<(), StoreError> {
        self.db.velocity = Some(*velocity);
        Ok(())
    }
}

#[async_trait]
impl EventTx for Tx {
    async fn event_insert(&mut self, event: &NewEvent) -> Result<(), StoreError> {
        self.db.insert_event(event)
    }
}

#[async_trait]
impl Engine for Ports {
    async fn depth(&self, _: &Order) -> Option<Depth> {
        None
    }

    async fn hold(&self, trade: TradeId, _: &Order, _: Amount) -> Option<Hold> {
        let (view, now) = self.0.turn(Call::Hold).await;
        let mut far = (*view.far).clone();
        let answer = match view.fault {
            Fault::Refused => Some(Hold::Refused),
            Fault::Lost => None,
            Fault::Unheard => {
                far.hold(trade);
                None
            }
            Fault::None | Fault::Away | Fault::Early => Some(far.hold(trade)),
        };
        self.0.leave_far(now, far);
        self.0.told(&answer);
        answer
    }

    async fn confirm(&self, trade: TradeId) -> Option<Confirmation> {
        let (view, now) = self.0.turn(Call::Confirm).await;
        let mut far = (*view.far).clone();
        let answer = match view.fault {
            Fault::Lost => None,
            Fault::Unheard => {
                far.confirm(trade);
                None
            }
            Fault::None | Fault::Away | Fault::Refused | Fault::Early => Some(far.confirm(trade)),
        };
        self.0.leave_far(now, far);
        self.0.told(&answer);
        answer
    }

    async fn let_go(&self, trade: TradeId) -> Option<()> {
        let (view, now) = self.0.turn(Call::LetGo).await;
        let mut far = (*view.far).clone();
        let answer = (view.fault == Fault::None).then(|| far.let_go(trade));
        self.0.leave_far(now, far);
        answer
    }

    async fn report(&self, enquiry: &Enquiry) -> Option<EngineReport> {
        let (view, _) = self.0.turn(Call::Report).await;
        let answer = match view.fault {
            Fault::Lost | Fault::Unheard => None,
            Fault::Early => Some(EngineReport::Reversed),
            Fault::None | Fault::Away | Fault::Refused => {
                Some(view.far.report(enquiry.trade, enquiry.known))
            }
        };
        self.0.told(&answer);
        answer
    }

    /// Nothing: a lease lasts what it lasts beyond this.
    fn timeout(&self) -> Duration {
        Duration::ZERO
    }
}
