//! What the pools domain needs of the outside, as traits.

use std::time::Duration;

use crate::profile::{Network, PoolId};
use async_trait::async_trait;
use kernel::{Amount, Asset, Cas, Mode, Seen, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::idempotency::Scope;
use partner_core::ports::{EventTx, Submit, UnitOfWork};

use crate::batch::{Decision, Funds, IdempotencyRecord, TransactCommand};
use crate::contingent_credit::{Amounts, Range, Recount};
use crate::destination::Destination;
use crate::engine::EngineName;
use crate::export::{ExportedEntry, Window};
use crate::ledger::{Account, Entry, EntryId};
use crate::quote::{Quote, QuoteId, Side, Terms};
use crate::trade::{Contradiction, EngineReport, Lease, Step, Trade, TradeId, TradeStatus};
use crate::velocity::{Crossed, Velocity};

// Reads

/// Reads that can never write. A handler for a pure read is given only this.
#[async_trait]
pub trait PoolsReads: Send + Sync {
    /// A quote of the tenant. `Seen` carries the store's instant, taken after the row was read.
    async fn quote_get(&self, who: &Tenant, id: QuoteId)
    -> Result<Option<Seen<Quote>>, StoreError>;

    /// The same, read behind every write that is under way: a reader about to answer "expired"
    /// asks again here, so that nobody sees `expired` turn into `consumed`.
    async fn quote_get_behind_writes(
        &self,
        who: &Tenant,
        id: QuoteId,
    ) -> Result<Option<Seen<Quote>>, StoreError>;

    /// The trade of a quote. `Seen` carries the store's instant, taken after the row was read.
    async fn trade_by_quote(
        &self,
        who: &Tenant,
        quote: QuoteId,
    ) -> Result<Option<Seen<Trade>>, StoreError>;

    /// A trade.
    async fn trade_get(&self, who: &Tenant, id: TradeId) -> Result<Option<Trade>, StoreError>;

    /// A page of trades, by (`created_at`, id) descending, at most `limit`. An unknown cursor
    /// gives none.
    async fn trades_page(
        &self,
        who: &Tenant,
        filter: &TradeFilter,
        limit: u32,
    ) -> Result<Vec<Trade>, StoreError>;

    /// An account; `None` before its first entry.
    async fn account_get(&self, who: &Tenant, asset: Asset) -> Result<Option<Account>, StoreError>;

    /// An account and a page of its entries by sequence descending, at most `limit`, from one
    /// snapshot; `None` before the account's first entry.
    async fn ledger_page(
        &self,
        who: &Tenant,
        asset: Asset,
        filter: &LedgerFilter,
        limit: u32,
    ) -> Result<Option<LedgerPage>, StoreError>;
}

/// The read before the engine is asked.
#[async_trait]
pub trait TransactPreflight: Send + Sync {
    /// A quote that this process has just created, with the partner's funds. Returns each quote once, and only while it is
    /// remembered. Later changes of the quote are unknown.
    fn quote_recall(&self, _who: &Tenant, _id: QuoteId) -> Option<Recalled> {
        None
    }

    /// Reads everything that a transact in a pool needs before it asks the engine, from one snapshot.
    async fn transact_snapshot(
        &self,
        scope: &Scope,
        pool: &PoolId,
        quote: QuoteId,
    ) -> Result<Seen<TransactSnapshot>, StoreError>;
}

/// What this process remembers about a quote that it created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recalled {
    /// The quote.
    pub quote: Quote,
    /// The partner's funds in the quote's pool, at most a few seconds old.
    pub funds: Funds,
    /// The process's clock.
    pub at: Timestamp,
}

/// What narrows a page of trades.
#[derive(Debug, Clone, Default)]
pub struct TradeFilter {
    /// Only trades after this one in the order of the list.
    pub cursor: Option<TradeId>,
    /// Only this side.
    pub side: Option<Side>,
    /// Only this status.
    pub status: Option<TradeStatus>,
    /// Only trades made at this instant or later.
    pub created_after: Option<Timestamp>,
    /// Only trades made at this instant or earlier.
    pub created_before: Option<Timestamp>,
}

/// What narrows a page of ledger entries.
#[derive(Debug, Clone, Default)]
pub struct LedgerFilter {
    /// Only entries with a smaller sequence number.
    pub before_sequence: Option<i64>,
    /// Only entries made at this instant or later.
    pub created_after: Option<Timestamp>,
    /// Only entries made at this instant or earlier.
    pub created_before: Option<Timestamp>,
}

/// An account and some of its entries.
#[derive(Debug, Clone)]
pub struct LedgerPage {
    /// The account as of the snapshot.
    pub account: Account,
    /// Entries that have the account as a leg.
    pub entries: Vec<Entry>,
}

/// The stored state that a transact reads before the engine is asked.
#[derive(Debug, Clone)]
pub struct TransactSnapshot {
    /// What the idempotency key was last used for.
    pub answered: Option<IdempotencyRecord>,
    /// The tenant's quote.
    pub quote: Option<Quote>,
    /// The quote's trade.
    pub trade: Option<Trade>,
    /// The tenant's funds in the pool.
    pub funds: Funds,
}

/// A partner's books for the operator: whole windows, each from one snapshot.
#[async_trait]
pub trait Exports: Send + Sync {
    /// The trades made in a window, by (`created_at`, id).
    async fn trades_export(
        &self,
        who: &Tenant,
        window: Window,
    ) -> Result<Box<dyn Pages<Trade>>, StoreError>;

    /// The entries made in a window, of every currency, by `created_at`. Those of one instant are
    /// in the order of their currencies' codes, within a currency by their number in the partner's
    /// account, and those that are not in it come last.
    async fn ledger_export(
        &self,
        who: &Tenant,
        window: Window,
    ) -> Result<Box<dyn Pages<ExportedEntry>>, StoreError>;
}

/// Rows of one snapshot, a page at a time.
#[async_trait]
pub trait Pages<T>: Send {
    /// The next rows, at most `limit`; none at the end.
    async fn next(&mut self, limit: u32) -> Result<Vec<T>, StoreError>;
}

/// What an operator watches. Asked every few seconds, so no answer may go through a table.
#[async_trait]
pub trait StatsReads: Send + Sync {
    /// How the trades of a mode stand, over all partners.
    async fn trades_standing(&self, mode: Mode) -> Result<TradeStats, StoreError>;

    /// How many reserved trades of a mode other engines than this one hold, by their names. Trades that
    /// name no engine are not among them.
    async fn trades_held_elsewhere(
        &self,
        mode: Mode,
        engine: &EngineName,
    ) -> Result<Vec<(EngineName, u64)>, StoreError>;

    /// Names this engine in the reserved trades of a mode that name none: they are from before trades named their engine. Answers how
    /// many they were.
    async fn trades_claim(&self, mode: Mode, engine: &EngineName) -> Result<u64, StoreError>;
}

/// How trades stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TradeStats {
    /// How many have each status.
    pub by_status: [(TradeStatus, u64); 5],
    /// How long the oldest reserved one has been reserved.
    pub oldest_reserved: Option<Duration>,
}

/// Keeps the table of quotes bounded: a quote that was never executed is deleted some time after it expired, and is unknown
/// from then on.
#[async_trait]
pub trait QuoteRetention: Send + Sync {
    /// Partners of a mode that have quotes to be looked at: the oldest one after those that have been looked at expired this
    /// long ago. At most `limit` partners.
    async fn quotes_overdue(
        &self,
        mode: Mode,
        expired_for: Duration,
        limit: u32,
    ) -> Result<Vec<Tenant>, StoreError>;

    /// Looks at the next `limit` quotes of a partner, and deletes those that expired this long ago and were never executed.
    /// How far it has come is stored, so that no quote is looked at twice.
    async fn quotes_forget(
        &self,
        who: &Tenant,
        expired_for: Duration,
        limit: u32,
    ) -> Result<Forgotten, StoreError>;
}

/// What one step of forgetting quotes has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forgotten {
    /// Quotes deleted.
    pub deleted: u64,
    /// Are there more to be looked at?
    pub more: bool,
}

// Batched writes: the money path

/// How far a store's clock may be ahead of the clock it is given, before nothing is quoted and
/// traded on it. A store's clock never runs backwards: where the given one was set back it stands
/// still meanwhile, and a quote would live too long.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(2);

/// Runs batches of transacts.
#[async_trait]
pub trait TransactStore: Send + Sync {
    /// Runs a batch in one transaction: locks every row that the batch touches, loads the rows with the clock, calls
    /// [`decide_batch`](crate::batch::decide_batch), writes the trades it opened and commits once.
    ///
    /// # Errors
    /// The store's own errors, and [`StoreError::Unavailable`] if the batch would open a trade while the store's clock is
    /// ahead by more than [`CLOCK_TOLERANCE`].
    async fn transact(&self, batch: &[TransactCommand]) -> Result<Vec<Decision>, StoreError>;

    /// As [`TransactStore::transact`], but waits for no partner's lock. Returns `None` for each command of a partner whose
    /// row another transaction holds. A store with one lock for all partners waits for that lock.
    async fn transact_unlocked(
        &self,
        batch: &[TransactCommand],
    ) -> Result<Vec<Option<Decision>>, StoreError> {
        let decisions = self.transact(batch).await?;
        Ok(decisions.into_iter().map(Some).collect())
    }
}

/// Runs batches of new quotes.
#[async_trait]
pub trait QuoteStore: Send + Sync {
    /// Stores a batch of quotes in one transaction. All of them are created at the store's instant.
    ///
    /// # Errors
    /// As [`TransactStore::transact`].
    async fn quotes_open(&self, batch: &[NewQuote]) -> Result<Vec<Quote>, StoreError>;
}

/// A firm quote to be given.
#[derive(Debug, Clone)]
pub struct NewQuote {
    /// Whose.
    pub who: Tenant,
    /// Its id.
    pub id: QuoteId,
    /// What it locks.
    pub terms: Terms,
    /// How long it is executable.
    pub ttl: Duration,
}

/// Accepts transacts; commands that queue up share a transaction.
pub type TransactQueue = dyn Submit<TransactCommand, Decision>;

/// Accepts new quotes; quotes that queue up share a transaction.
pub type QuoteQueue = dyn Submit<NewQuote, Quote>;

// Transactions

/// Opens write transactions.
#[async_trait]
pub trait PoolsStore: PoolsReads + TransactPreflight {
    /// Opens a write transaction. `name` labels it in metrics and logs.
    async fn begin(&self, name: &'static str) -> Result<Box<dyn PoolsTx>, StoreError>;

    /// The accounts of a mode whose commitment is above a total.
    async fn commitments_above(
        &self,
        mode: Mode,
        total: i64,
    ) -> Result<Vec<(Tenant, Asset)>, StoreError>;
}

/// One transaction over every noun a pools use case may touch. Locks are taken in the order
/// velocity, quote, account, trade, here and everywhere.
pub trait PoolsTx: QuoteTx + TradeTx + LedgerTx + VelocityTx + EventTx + UnitOfWork {}
impl<T: QuoteTx + TradeTx + LedgerTx + VelocityTx + EventTx + UnitOfWork> PoolsTx for T {}

/// Quotes in a transaction.
#[async_trait]
pub trait QuoteTx: Send {
    /// Loads and locks. `None` also when the quote belongs to another partner.
    async fn quote_lock(&mut self, who: &Tenant, id: QuoteId) -> Result<Option<Quote>, StoreError>;

    /// Marks a quote rejected. Guard: neither consumed nor rejected, `at < expires_at`.
    async fn quote_reject(
        &mut self,
        who: &Tenant,
        id: QuoteId,
        at: Timestamp,
    ) -> Result<Cas, StoreError>;
}

/// Trades in a transaction.
#[async_trait]
pub trait TradeTx: Send {
    /// Loads and locks.
    async fn trade_lock(&mut self, who: &Tenant, id: TradeId) -> Result<Option<Trade>, StoreError>;

    /// Counts an attempt and sets its lease. Guard: the trade still has `attempt - 1` attempts.
    async fn trade_claim(
        &mut self,
        who: &Tenant,
        id: TradeId,
        attempt: u32,
        lease: Lease,
    ) -> Result<Cas, StoreError>;

    /// Ends the lease of `token` and leaves the trade as it is. Guard: the lease is still that one.
    async fn trade_unclaim(
        &mut self,
        who: &Tenant,
        id: TradeId,
        token: u64,
    ) -> Result<Cas, StoreError>;

    /// Prolongs the lease of a token. Guard: the lease is still that one.
    async fn trade_rest(
        &mut self,
        who: &Tenant,
        id: TradeId,
        lease: Lease,
    ) -> Result<Cas, StoreError>;

    /// Applies steps in their order, notes a transition for each and ends the lease of `token`. No
    /// steps change nothing. Guard: the trade still has the status of `before`, and the lease is
    /// still that one.
    async fn trade_apply(
        &mut self,
        who: &Tenant,
        before: &Trade,
        steps: &[Step],
        token: u64,
    ) -> Result<Cas, StoreError>;
}

/// Accounts and entries in a transaction.
#[async_trait]
pub trait LedgerTx: Send {
    /// Loads and locks an account; [`Account::empty`] before its first entry.
    async fn account_lock(&mut self, who: &Tenant, asset: Asset) -> Result<Account, StoreError>;

    /// Writes an entry, and where the account is a leg of it, the account after it. Guard: the
    /// account still has the sequence number `before` it.
    async fn entry_post(
        &mut self,
        who: &Tenant,
        before: &Account,
        entry: &Entry,
    ) -> Result<(), StoreError>;

    /// An account's contingent credits as stored; see [`BatchState::commitments`](crate::batch::BatchState::commitments). `None` before the first.
    async fn commitment_get(
        &mut self,
        who: &Tenant,
        asset: Asset,
    ) -> Result<Option<i64>, StoreError>;

    /// Stores an account's contingent credits; see [`BatchState::commitments`](crate::batch::BatchState::commitments).
    async fn commitment_put(
        &mut self,
        who: &Tenant,
        asset: Asset,
        total: i64,
    ) -> Result<(), StoreError>;

    /// The recount of an account that goes on, or the last one that has ended.
    async fn recount_get(
        &mut self,
        who: &Tenant,
        asset: Asset,
    ) -> Result<Option<Recount>, StoreError>;

    /// Stores how far the recount of an account has come.
    async fn recount_put(
        &mut self,
        who: &Tenant,
        asset: Asset,
        recount: &Recount,
    ) -> Result<(), StoreError>;

    /// What trades of a range may still credit to the account of a currency: reserved ones what they have reserved of it, and
    /// sales their fiat, which may settle and be returned; settled ones what a return would credit. Reads the trades up to the
    /// `limit`-th of the range, with all that share its instant, and no others.
    async fn refundable(
        &mut self,
        who: &Tenant,
        asset: Asset,
        range: Range,
        limit: u32,
    ) -> Result<Amounts, StoreError>;

    /// An earlier deposit under the operator's reference.
    async fn deposit_find(
        &mut self,
        who: &Tenant,
        reference: &str,
    ) -> Result<Option<Deposit>, StoreError>;

    /// Records a deposit under its reference.
    async fn deposit_insert(&mut self, who: &Tenant, deposit: &Deposit) -> Result<(), StoreError>;
}

/// An incoming deposit or receipt, once per reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deposit {
    /// The operator's reference, unique per partner and mode.
    pub reference: String,
    /// How much came in.
    pub amount: Amount,
    /// The chain it came in on; `None` for fiat.
    pub network: Option<Network>,
    /// The ledger entry that credited it.
    pub entry: EntryId,
    /// When it was credited.
    pub created_at: Timestamp,
}

/// The running velocity total in a transaction.
#[async_trait]
pub trait VelocityTx: Send {
    /// Loads and locks the partner's total; `None` before its first trade.
    async fn velocity_lock(&mut self, who: &Tenant) -> Result<Option<Velocity>, StoreError>;

    /// Stores the total.
    async fn velocity_put(&mut self, who: &Tenant, velocity: &Velocity) -> Result<(), StoreError>;

    /// The counting trades made after `after` and up to `up_to`: those up to the `limit`-th trade of the range,
    /// with all that share its instant. Reads no more trades than that.
    async fn velocity_read(
        &mut self,
        who: &Tenant,
        range: VelocityRange,
        limit: u32,
    ) -> Result<Crossed, StoreError>;
}

/// Trades that a velocity total is about to lose or to gain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VelocityRange {
    /// Only trades made after this instant.
    pub after: Timestamp,
    /// Only trades made at this instant or earlier.
    pub up_to: Timestamp,
    /// From the newest trade to the oldest, instead of the other way.
    pub newest_first: bool,
}

// The far end

/// An order as the engine is asked about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The pool.
    pub pool: PoolId,
    /// The side.
    pub side: Side,
    /// The input leg: fiat on a purchase, crypto on a sale.
    pub amount: Amount,
    /// The chain the crypto leg moves on.
    pub network: Network,
    /// Where a purchase is delivered.
    pub destination: Option<Destination>,
}

/// The liquidity engine: holds liquidity for a trade, delivers, pays out.
///
/// Every call about a trade carries its id, and repeating a call changes nothing. `None` means
/// that the engine did not answer in time; nothing is ever decided on that.
#[async_trait]
pub trait Engine: Send + Sync {
    /// Has the engine depth for an order?
    async fn depth(&self, order: &Order) -> Option<Depth>;

    /// Holds liquidity for a trade until it is confirmed, let go, or lapses. `output` is the other
    /// leg, fixed by the quote: what is delivered of a purchase, what is paid out of a sale.
    async fn hold(&self, trade: TradeId, order: &Order, output: Amount) -> Option<Hold>;

    /// Confirms a hold, so that the engine may deliver.
    async fn confirm(&self, trade: TradeId) -> Option<Confirmation>;

    /// Gives a hold back. Whether the engine answered is for those who measure it.
    async fn let_go(&self, trade: TradeId) -> Option<()>;

    /// What has become of a trade.
    async fn report(&self, enquiry: &TradeReportRequest) -> Option<EngineReport>;

    /// Which engine it is: what trades record, and what decides whether it may be asked about one.
    fn name(&self) -> EngineName;

    /// The rules found that a report of the engine contradicts what it reported before. An engine
    /// ignores it; whoever measures the engine counts it.
    fn contradicted(&self, _: &Contradiction) {}

    /// How long a call may take: what a poll's lease is measured by.
    fn timeout(&self) -> Duration;
}

/// Has the engine depth for an order?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// It has.
    Enough,
    /// It has not.
    Insufficient,
}

/// The engine's answer to a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Liquidity is held.
    Held,
    /// It refuses.
    Refused,
}

/// The engine's answer to a confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// The hold stands.
    Confirmed,
    /// The hold lapsed before it was confirmed.
    Lapsed,
}

/// A question to the engine about a trade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TradeReportRequest {
    /// The trade.
    pub trade: TradeId,
    /// Its order.
    pub order: Order,
    /// Which attempt this is, from one.
    pub attempt: u32,
    /// The status the trade is known to have.
    pub known: TradeStatus,
}
