//! The ports of the pools domain.

mod engine;

use std::time::Duration;

use crate::profile::{Network, PoolId};
use async_trait::async_trait;
use kernel::{Amount, Asset, Cas, Mode, Readable, Seen, StoreResult, Timestamp, UpstreamName};
use partner_core::Tenant;
use partner_core::export::{Pages, Window};
use partner_core::idempotency::Scope;
use partner_core::ports::{EventTx, Submit, UnitOfWork};

use crate::batch::{Decision, Funds, IdempotencyRecord, TransactCommand};
use crate::contingent_credit::{Amounts, Range, Recount};
use crate::export::ExportedEntry;
use crate::ledger::{Account, Entry, EntryId};
use crate::quote::{Quote, QuoteId, Side, Terms};
use crate::trade::{Lease, Step, Trade, TradeId, TradeStatus};
use crate::velocity::{CountedTrades, TradesRead, Velocity};

pub use engine::{Confirmation, Depth, Engine, Hold, Order, TradeReportRequest};

// Reads

/// Reads that never write. Handlers of pure reads receive only this port.
#[async_trait]
pub trait PoolsReads: Send + Sync {
    /// A quote of the tenant. `Seen` carries the store's instant, taken after the row was read.
    async fn quote_get(&self, who: &Tenant, id: QuoteId) -> StoreResult<Option<Seen<Quote>>>;

    /// A quote, read after the writes in progress. A caller that is about to report `expired` reads again here, so
    /// that no reader sees `expired` change to `consumed`.
    async fn quote_get_behind_writes(
        &self,
        who: &Tenant,
        id: QuoteId,
    ) -> StoreResult<Option<Seen<Quote>>>;

    /// The trade of a quote. `Seen` carries the store's instant, taken after the row was read.
    async fn trade_by_quote(
        &self,
        who: &Tenant,
        quote: QuoteId,
    ) -> StoreResult<Option<Seen<Trade>>>;

    /// A trade of the tenant.
    async fn trade_get(&self, who: &Tenant, id: TradeId) -> StoreResult<Option<Trade>>;

    /// A page of at most `limit` trades, by (`created_at`, id) descending. An unknown cursor returns an empty page.
    async fn trades_page(
        &self,
        who: &Tenant,
        filter: &TradeFilter,
        limit: u32,
    ) -> StoreResult<Vec<Trade>>;

    /// An account of the tenant; `None` before its first entry.
    async fn account_get(&self, who: &Tenant, asset: Asset) -> StoreResult<Option<Account>>;

    /// An account and at most `limit` of its entries, by sequence descending, from one snapshot. `None` before the
    /// account's first entry.
    async fn ledger_page(
        &self,
        who: &Tenant,
        asset: Asset,
        filter: &LedgerFilter,
        limit: u32,
    ) -> StoreResult<Option<LedgerPage>>;

    /// The running total of the tenant with at most `limit` of the trades after its floor, from one snapshot. `None` before the first
    /// trade. `Seen` carries the store's instant, taken after the rows were read.
    async fn counted_trades(
        &self,
        who: &Tenant,
        limit: u32,
    ) -> StoreResult<Option<Seen<CountedTrades>>>;
}

/// The reads before the engine is asked.
#[async_trait]
pub trait TransactPreflight: Send + Sync {
    /// A quote that this process created recently, with the partner's funds. Each quote is returned once, and only
    /// while the process remembers it. Later changes of the quote are not reflected.
    fn quote_recall(&self, _who: &Tenant, _id: QuoteId) -> Option<Recalled> {
        None
    }

    /// Reads the state that a transact in a pool needs before it asks the engine, from one snapshot.
    async fn transact_snapshot(
        &self,
        scope: &Scope,
        pool: &PoolId,
        quote: QuoteId,
    ) -> StoreResult<Seen<TransactSnapshot>>;
}

/// A quote that this process remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recalled {
    pub quote: Quote,
    /// The partner's funds in the quote's pool, at most 5 seconds old.
    pub funds: Funds,
    /// The process's clock.
    pub at: Timestamp,
}

/// Filters of a page of trades.
#[derive(Debug, Clone, Default)]
pub struct TradeFilter {
    /// Only trades after this one in the order of the list.
    pub cursor: Option<TradeId>,
    /// Only trades of this side.
    pub side: Option<Side>,
    /// Only trades with this status.
    pub status: Option<TradeStatus>,
    /// Only trades created at this instant or later.
    pub created_after: Option<Timestamp>,
    /// Only trades created at this instant or earlier.
    pub created_before: Option<Timestamp>,
}

/// Filters of a page of ledger entries.
#[derive(Debug, Clone, Default)]
pub struct LedgerFilter {
    /// Only entries with a smaller sequence number.
    pub before_sequence: Option<i64>,
    /// Only entries created at this instant or later.
    pub created_after: Option<Timestamp>,
    /// Only entries created at this instant or earlier.
    pub created_before: Option<Timestamp>,
}

/// An account and a page of its entries.
#[derive(Debug, Clone)]
pub struct LedgerPage {
    /// The account as of the snapshot.
    pub account: Account,
    /// Entries that debit or credit the account.
    pub entries: Vec<Entry>,
}

/// The stored state that a transact reads before the engine is asked.
#[derive(Debug, Clone)]
pub struct TransactSnapshot {
    /// The record of the idempotency key, also if it has expired.
    pub answered: Option<IdempotencyRecord>,
    /// The tenant's quote.
    pub quote: Option<Quote>,
    /// The quote's trade.
    pub trade: Option<Trade>,
    /// The tenant's funds in the pool.
    pub funds: Funds,
}

/// Exports of a partner's trades and entries for the operator. Each window is read from one snapshot.
#[async_trait]
pub trait Exports: Send + Sync {
    /// The trades created in a window, by (`created_at`, id).
    async fn trades_export(
        &self,
        who: &Tenant,
        window: Window,
    ) -> StoreResult<Box<dyn Pages<Trade>>>;

    /// The entries created in a window, of every currency, by `created_at`.
    ///
    /// Entries of the same instant are ordered by the code of their currency, then by their sequence number in the
    /// partner's own account. Entries outside that account come last.
    async fn ledger_export(
        &self,
        who: &Tenant,
        window: Window,
    ) -> StoreResult<Box<dyn Pages<ExportedEntry>>>;
}

/// Figures for metrics, read every few seconds. An implementation must not scan a table.
#[async_trait]
pub trait StatsReads: Send + Sync {
    /// The status figures of all partners' trades of a mode.
    async fn trade_stats(&self, mode: Mode) -> StoreResult<TradeStats>;

    /// The number of reserved trades of a mode per engine other than these, of which there are at most two. Trades that name no engine
    /// are not counted.
    async fn trades_held_elsewhere(
        &self,
        mode: Mode,
        engines: &[UpstreamName],
    ) -> StoreResult<Vec<(UpstreamName, u64)>>;

    /// The number of trades of a mode per engine other than these that settled within the return window. `None` are those that
    /// name no engine. They are older than the column.
    ///
    /// It reads the settled trades of the window, about `slice` with a statement, so it may take seconds. Call it rarely.
    async fn trades_returnable_elsewhere(
        &self,
        mode: Mode,
        engines: &[UpstreamName],
        slice: u32,
    ) -> StoreResult<Vec<(Option<UpstreamName>, u64)>>;

    /// Names this engine in the reserved trades of a mode that name none, and returns their number. Such trades are
    /// older than the column.
    async fn trades_claim(&self, mode: Mode, engine: &UpstreamName) -> StoreResult<u64>;
}

/// Status figures of trades.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TradeStats {
    /// The number of trades per status.
    pub by_status: [(TradeStatus, u64); TradeStatus::ALL.len()],
    /// The age of the oldest reserved trade.
    pub oldest_reserved: Option<Duration>,
}

/// Keeps the table of quotes bounded. It deletes quotes that were never executed some time after their expiry; a
/// deleted quote is unknown.
#[async_trait]
pub trait QuoteRetention: Send + Sync {
    /// Partners of a mode with quotes to examine, at most `limit`. The oldest quote that was not examined yet must
    /// have expired this long ago.
    async fn quotes_overdue(
        &self,
        mode: Mode,
        expired_for: Duration,
        limit: u32,
    ) -> StoreResult<Readable<Tenant>>;

    /// Examines the next `limit` quotes of a partner and deletes those that expired this long ago and were never
    /// executed. The position is stored, so that each quote is examined once.
    async fn quotes_forget(
        &self,
        who: &Tenant,
        expired_for: Duration,
        limit: u32,
    ) -> StoreResult<Forgotten>;
}

/// The outcome of one deletion step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forgotten {
    /// The number of deleted quotes.
    pub deleted: u64,
    /// Whether more quotes remain to examine.
    pub more: bool,
}

// Batched writes: the money path

/// Maximum lead of a store's clock over its time source. Above it the store creates no quote and no trade.
///
/// A store's clock never runs backwards. After the time source was set back, the store's clock is stopped for that
/// long, and a quote would live too long.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(2);

/// Runs batches of transacts.
#[async_trait]
pub trait TransactStore: Send + Sync {
    /// Runs a batch in one transaction: locks every row that the batch touches, loads the rows with the clock, calls
    /// [`decide_batch`](crate::batch::decide_batch), writes the trades it opened and commits once.
    ///
    /// # Errors
    /// The store's own errors, and [`StoreError::Unavailable`](kernel::StoreError::Unavailable) if the batch would open a trade while the store's clock is
    /// ahead by more than [`CLOCK_TOLERANCE`].
    async fn transact(&self, batch: &[TransactCommand]) -> StoreResult<Vec<Decision>>;

    /// As [`TransactStore::transact`], without waiting for a partner's lock. Returns `None` for each command of a
    /// partner whose row another transaction has locked. A store with one lock for all partners waits for that lock.
    async fn transact_unlocked(
        &self,
        batch: &[TransactCommand],
    ) -> StoreResult<Vec<Option<Decision>>> {
        let decisions = self.transact(batch).await?;
        Ok(decisions.into_iter().map(Some).collect())
    }
}

/// Runs batches of new quotes.
#[async_trait]
pub trait QuoteStore: Send + Sync {
    /// Stores a batch of quotes in one transaction. All of them get the store's instant as `created_at`.
    ///
    /// # Errors
    /// As [`TransactStore::transact`].
    async fn quotes_open(&self, batch: &[NewQuote]) -> StoreResult<Vec<Quote>>;
}

/// A firm quote to be stored.
#[derive(Debug, Clone)]
pub struct NewQuote {
    /// The partner and mode.
    pub who: Tenant,
    pub id: QuoteId,
    /// The locked terms.
    pub terms: Terms,
    /// The time from creation to expiry.
    pub ttl: Duration,
}

/// Accepts transacts. Queued commands share a transaction.
pub type TransactQueue = dyn Submit<TransactCommand, Decision>;

/// Accepts new quotes. Queued quotes share a transaction.
pub type QuoteQueue = dyn Submit<NewQuote, Quote>;

// Transactions

/// Opens write transactions.
#[async_trait]
pub trait PoolsStore: PoolsReads + TransactPreflight {
    /// Opens a write transaction. `name` labels it in metrics and logs.
    async fn begin(&self, name: &'static str) -> StoreResult<Box<dyn PoolsTx>>;

    /// The accounts of a mode whose contingent credits exceed an amount, in units of 10^-8.
    async fn commitments_above(
        &self,
        mode: Mode,
        total: i64,
    ) -> StoreResult<Readable<(Tenant, Asset)>>;
}

/// One transaction over every entity that a pools use case may touch. Every use case takes its locks in the order
/// velocity, quote, account, trade.
pub trait PoolsTx: QuoteTx + TradeTx + LedgerTx + VelocityTx + EventTx + UnitOfWork {}
impl<T: QuoteTx + TradeTx + LedgerTx + VelocityTx + EventTx + UnitOfWork> PoolsTx for T {}

/// Quotes in a transaction.
#[async_trait]
pub trait QuoteTx: Send {
    /// Loads and locks a quote. `None` also if the quote belongs to another partner.
    async fn quote_lock(&mut self, who: &Tenant, id: QuoteId) -> StoreResult<Option<Quote>>;

    /// Rejects a quote. Guard: neither consumed nor rejected, `at < expires_at`.
    async fn quote_reject(&mut self, who: &Tenant, id: QuoteId, at: Timestamp) -> StoreResult<Cas>;
}

/// Trades in a transaction.
#[async_trait]
pub trait TradeTx: Send {
    /// Loads and locks a trade. `None` also if the trade belongs to another partner.
    async fn trade_lock(&mut self, who: &Tenant, id: TradeId) -> StoreResult<Option<Trade>>;

    /// Counts an attempt and sets its lease. Guard: the trade has `attempt - 1` attempts.
    async fn trade_claim(
        &mut self,
        who: &Tenant,
        id: TradeId,
        attempt: u32,
        lease: Lease,
    ) -> StoreResult<Cas>;

    /// Ends the lease with `token` and leaves the trade unchanged. Guard: the trade has this lease.
    async fn trade_unclaim(&mut self, who: &Tenant, id: TradeId, token: u64) -> StoreResult<Cas>;

    /// Extends the lease with this token. Guard: the trade has this lease.
    async fn trade_rest(&mut self, who: &Tenant, id: TradeId, lease: Lease) -> StoreResult<Cas>;

    /// Applies steps in order, stores a transition for each, and ends the lease with `token`. Empty steps change
    /// nothing. Guard: the trade has the status of `before` and this lease.
    async fn trade_apply(
        &mut self,
        who: &Tenant,
        before: &Trade,
        steps: &[Step],
        token: u64,
    ) -> StoreResult<Cas>;
}

/// Accounts and entries in a transaction.
#[async_trait]
pub trait LedgerTx: Send {
    /// Loads and locks an account; [`Account::empty`] before its first entry.
    async fn account_lock(&mut self, who: &Tenant, asset: Asset) -> StoreResult<Account>;

    /// Writes an entry, and the account after it if the entry has a position in the account. Guard: the stored
    /// sequence number is the one of `before`.
    async fn entry_post(
        &mut self,
        who: &Tenant,
        before: &Account,
        entry: &Entry,
    ) -> StoreResult<()>;

    /// The stored contingent credits of an account, in units of 10^-8; see
    /// [`BatchState::commitments`](crate::batch::BatchState::commitments). `None` if none were ever stored.
    async fn commitment_get(&mut self, who: &Tenant, asset: Asset) -> StoreResult<Option<i64>>;

    /// Stores the contingent credits of an account, in units of 10^-8; see
    /// [`BatchState::commitments`](crate::batch::BatchState::commitments).
    async fn commitment_put(&mut self, who: &Tenant, asset: Asset, total: i64) -> StoreResult<()>;

    /// The latest recount of an account, running or ended.
    async fn recount_get(&mut self, who: &Tenant, asset: Asset) -> StoreResult<Option<Recount>>;

    /// Stores the progress of a recount.
    async fn recount_put(
        &mut self,
        who: &Tenant,
        asset: Asset,
        recount: &Recount,
    ) -> StoreResult<()>;

    /// The sum of what the trades of a range may still credit to an account.
    ///
    /// A reserved trade counts with its reserve in this currency. A reserved or settled sale counts with its fiat,
    /// and a settled purchase with what a return would credit. Reads trades up to the `limit`-th of the range, and
    /// all others of the same instant.
    async fn refundable(
        &mut self,
        who: &Tenant,
        asset: Asset,
        range: Range,
        limit: u32,
    ) -> StoreResult<Amounts>;

    /// Stores the form of comparison of references that an earlier version stored without it, of at most `limit` deposits. Returns
    /// their number.
    async fn deposits_compare(&mut self, who: &Tenant, limit: u32) -> StoreResult<u32>;

    /// The deposit whose reference equals this one in the form of
    /// [`compared_reference`](crate::deposits::compared_reference), if there is one. Among several of earlier versions: the one with
    /// this spelling, or else the first.
    async fn deposit_find(&mut self, who: &Tenant, reference: &str)
    -> StoreResult<Option<Deposit>>;

    /// Stores a deposit under its reference, with the form in which references are compared.
    async fn deposit_insert(&mut self, who: &Tenant, deposit: &Deposit) -> StoreResult<()>;
}

/// An incoming deposit or receipt, unique by its reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deposit {
    /// The operator's reference, unique per partner and mode in the form of
    /// [`compared_reference`](crate::deposits::compared_reference).
    pub reference: String,
    pub amount: Amount,
    /// The chain of a crypto receipt; `None` for fiat.
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
    async fn velocity_lock(&mut self, who: &Tenant) -> StoreResult<Option<Velocity>>;

    /// Stores the total.
    async fn velocity_put(&mut self, who: &Tenant, velocity: &Velocity) -> StoreResult<()>;

    /// The trades created after `after` and up to `up_to` that count. Reads up to the `limit`-th trade of the range,
    /// and all others of the same instant.
    async fn velocity_read(
        &mut self,
        who: &Tenant,
        range: VelocityRange,
        limit: u32,
    ) -> StoreResult<TradesRead>;
}

/// The range of trades that a velocity total is about to lose or gain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VelocityRange {
    /// Only trades created after this instant.
    pub after: Timestamp,
    /// Only trades created at this instant or earlier.
    pub up_to: Timestamp,
    /// Whether the newest trade is read first; otherwise the oldest.
    pub newest_first: bool,
}
