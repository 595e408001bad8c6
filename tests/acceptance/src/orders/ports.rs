//! The ports that wait for their turn before each call.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{
    Amount, Asset, Cas, Mode, Named, Readable, Seen, StoreResult, Timestamp, TraceParent,
    UpstreamName,
};
use partner_core::Tenant;
use partner_core::events::NewEvent;
use partner_core::idempotency::Scope;
use partner_core::ports::{EventTx, Submit, UnitOfWork};
use pools_core::batch::{Decision, TransactCommand};
use pools_core::contingent_credit::{Amounts, Range, Recount};
use pools_core::ledger::{Account, Entry};
use pools_core::ports::{
    Confirmation, Deposit, Depth, Engine, Hold, LedgerFilter, LedgerPage, LedgerTx, Order,
    PoolsReads, PoolsStore, PoolsTx, QuoteTx, TradeFilter, TradeReportRequest, TradeTx,
    TransactPreflight, TransactSnapshot, VelocityRange, VelocityTx,
};
use pools_core::profile::PoolId;
use pools_core::quote::{Quote, QuoteId};
use pools_core::trade::{EngineReport, Lease, Step, Trade, TradeId};
use pools_core::velocity::{CountedTrades, TradesRead, Velocity};
use runtime::Store;

use super::Pace;
use crate::engine::ScriptedEngine;
use crate::queues::Queues;

pub(super) struct Ports {
    pub(super) store: Arc<dyn Store>,
    pub(super) queues: Arc<Queues>,
    pub(super) engine: Arc<ScriptedEngine>,
    pub(super) pace: Pace,
}

#[async_trait]
impl PoolsReads for Ports {
    async fn quote_get(&self, who: &Tenant, id: QuoteId) -> StoreResult<Option<Seen<Quote>>> {
        self.pace.turn(false).await?;
        self.store.quote_get(who, id).await
    }

    async fn quote_get_behind_writes(
        &self,
        who: &Tenant,
        id: QuoteId,
    ) -> StoreResult<Option<Seen<Quote>>> {
        self.pace.turn(true).await?;
        self.store.quote_get_behind_writes(who, id).await
    }

    async fn trade_by_quote(
        &self,
        who: &Tenant,
        quote: QuoteId,
    ) -> StoreResult<Option<Seen<Trade>>> {
        self.pace.turn(false).await?;
        self.store.trade_by_quote(who, quote).await
    }

    async fn trade_get(&self, who: &Tenant, id: TradeId) -> StoreResult<Option<Trade>> {
        self.pace.turn(false).await?;
        self.store.trade_get(who, id).await
    }

    async fn trades_page(
        &self,
        who: &Tenant,
        filter: &TradeFilter,
        limit: u32,
    ) -> StoreResult<Vec<Trade>> {
        self.pace.turn(false).await?;
        self.store.trades_page(who, filter, limit).await
    }

    async fn account_get(&self, who: &Tenant, asset: Asset) -> StoreResult<Option<Account>> {
        self.pace.turn(false).await?;
        self.store.account_get(who, asset).await
    }

    async fn ledger_page(
        &self,
        who: &Tenant,
        asset: Asset,
        filter: &LedgerFilter,
        limit: u32,
    ) -> StoreResult<Option<LedgerPage>> {
        self.pace.turn(false).await?;
        self.store.ledger_page(who, asset, filter, limit).await
    }

    async fn counted_trades(
        &self,
        who: &Tenant,
        limit: u32,
    ) -> StoreResult<Option<Seen<CountedTrades>>> {
        self.pace.turn(false).await?;
        self.store.counted_trades(who, limit).await
    }
}

#[async_trait]
impl TransactPreflight for Ports {
    async fn transact_snapshot(
        &self,
        scope: &Scope,
        pool: &PoolId,
        quote: QuoteId,
    ) -> StoreResult<Seen<TransactSnapshot>> {
        self.pace.turn(false).await?;
        self.store.transact_snapshot(scope, pool, quote).await
    }
}

#[async_trait]
impl Submit<TransactCommand, Decision> for Ports {
    async fn submit(&self, command: TransactCommand) -> StoreResult<Decision> {
        self.pace.turn(true).await?;
        self.queues.submit(command).await
    }
}

impl Named for Ports {
    fn name(&self) -> UpstreamName {
        self.engine.name()
    }
}

/// Engine calls about a stored trade affect no other request, so their order does not matter.
/// Only the hold, before the trade exists, has a turn.
#[async_trait]
impl Engine for Ports {
    async fn depth(&self, who: &Tenant, order: &Order) -> Option<Depth> {
        Engine::depth(&*self.engine, who, order).await
    }

    async fn hold(
        &self,
        who: &Tenant,
        trade: TradeId,
        order: &Order,
        output: Amount,
    ) -> Option<Hold> {
        self.pace.turn(false).await.ok()?;
        Engine::hold(&*self.engine, who, trade, order, output).await
    }

    async fn confirm(&self, who: &Tenant, trade: TradeId) -> Option<Confirmation> {
        Engine::confirm(&*self.engine, who, trade).await
    }

    async fn release(&self, who: &Tenant, trade: TradeId) -> Option<()> {
        Engine::release(&*self.engine, who, trade).await
    }

    async fn report(&self, who: &Tenant, request: &TradeReportRequest) -> Option<EngineReport> {
        Engine::report(&*self.engine, who, request).await
    }

    fn timeout(&self) -> Duration {
        Engine::timeout(&*self.engine)
    }
}

#[async_trait]
impl PoolsStore for Ports {
    async fn begin(&self, name: &'static str) -> StoreResult<Box<dyn PoolsTx>> {
        self.pace.turn(true).await?;
        let tx = self.store.begin(name).await?;
        let pace = self.pace.clone();
        Ok(Box::new(Tx { tx, pace }))
    }

    async fn commitments_above(
        &self,
        mode: Mode,
        total: i64,
    ) -> StoreResult<Readable<(Tenant, Asset)>> {
        self.pace.turn(false).await?;
        self.store.commitments_above(mode, total).await
    }
}

/// A transaction with one turn at its beginning and one at its commit: in between no other request can write the locked rows
/// or see the writes. It holds the lock by its commit: one store locks at the beginning, the other when the transaction
/// locks the partner's first row. A refused transaction is dropped without a turn.
pub(super) struct Tx<T: ?Sized> {
    pub(super) tx: Box<T>,
    pub(super) pace: Pace,
}

#[async_trait]
impl<T: UnitOfWork + ?Sized> UnitOfWork for Tx<T> {
    async fn now(&mut self) -> StoreResult<Timestamp> {
        self.tx.now().await
    }

    async fn commit(self: Box<Self>) -> StoreResult<()> {
        let Self { tx, pace } = *self;
        let before = pace.turns.0.lock().replace(pace.who);
        assert_eq!(
            before, None,
            "two transactions of a partner wrote concurrently"
        );
        let turn = pace.turn(true).await;
        // The store releases its lock before it returns.
        *pace.turns.0.lock() = None;
        turn?;
        tx.commit().await
    }
}

#[async_trait]
impl QuoteTx for Tx<dyn PoolsTx> {
    async fn quote_lock(&mut self, who: &Tenant, id: QuoteId) -> StoreResult<Option<Quote>> {
        self.tx.quote_lock(who, id).await
    }

    async fn quote_reject(&mut self, who: &Tenant, id: QuoteId, at: Timestamp) -> StoreResult<Cas> {
        self.tx.quote_reject(who, id, at).await
    }
}

#[async_trait]
impl TradeTx for Tx<dyn PoolsTx> {
    async fn trade_lock(&mut self, who: &Tenant, id: TradeId) -> StoreResult<Option<Trade>> {
        self.tx.trade_lock(who, id).await
    }

    async fn trade_claim(
        &mut self,
        who: &Tenant,
        id: TradeId,
        attempt: u32,
        lease: Lease,
    ) -> StoreResult<Cas> {
        self.tx.trade_claim(who, id, attempt, lease).await
    }

    async fn trade_unclaim(&mut self, who: &Tenant, id: TradeId, token: u64) -> StoreResult<Cas> {
        self.tx.trade_unclaim(who, id, token).await
    }

    async fn trade_rest(&mut self, who: &Tenant, id: TradeId, lease: Lease) -> StoreResult<Cas> {
        self.tx.trade_rest(who, id, lease).await
    }

    async fn trade_apply(
        &mut self,
        who: &Tenant,
        before: &Trade,
        steps: &[Step],
        token: u64,
    ) -> StoreResult<Cas> {
        self.tx.trade_apply(who, before, steps, token).await
    }
}

#[async_trait]
impl LedgerTx for Tx<dyn PoolsTx> {
    async fn account_lock(&mut self, who: &Tenant, asset: Asset) -> StoreResult<Account> {
        self.tx.account_lock(who, asset).await
    }

    async fn entry_post(
        &mut self,
        who: &Tenant,
        before: &Account,
        entry: &Entry,
    ) -> StoreResult<()> {
        self.tx.entry_post(who, before, entry).await
    }

    async fn refundable(
        &mut self,
        who: &Tenant,
        asset: Asset,
        range: Range,
        limit: u32,
    ) -> StoreResult<Amounts> {
        self.tx.refundable(who, asset, range, limit).await
    }

    async fn recount_get(&mut self, who: &Tenant, asset: Asset) -> StoreResult<Option<Recount>> {
        self.tx.recount_get(who, asset).await
    }

    async fn recount_put(
        &mut self,
        who: &Tenant,
        asset: Asset,
        recount: &Recount,
    ) -> StoreResult<()> {
        self.tx.recount_put(who, asset, recount).await
    }

    async fn commitment_get(&mut self, who: &Tenant, asset: Asset) -> StoreResult<Option<i64>> {
        self.tx.commitment_get(who, asset).await
    }

    async fn commitment_put(&mut self, who: &Tenant, asset: Asset, total: i64) -> StoreResult<()> {
        self.tx.commitment_put(who, asset, total).await
    }

    async fn deposits_compare(&mut self, who: &Tenant, limit: u32) -> StoreResult<u32> {
        self.tx.deposits_compare(who, limit).await
    }

    async fn deposit_find(
        &mut self,
        who: &Tenant,
        reference: &str,
    ) -> StoreResult<Option<Deposit>> {
        self.tx.deposit_find(who, reference).await
    }

    async fn deposit_insert(&mut self, who: &Tenant, deposit: &Deposit) -> StoreResult<()> {
        self.tx.deposit_insert(who, deposit).await
    }
}

#[async_trait]
impl VelocityTx for Tx<dyn PoolsTx> {
    async fn velocity_lock(&mut self, who: &Tenant) -> StoreResult<Option<Velocity>> {
        self.tx.velocity_lock(who).await
    }

    async fn velocity_put(&mut self, who: &Tenant, velocity: &Velocity) -> StoreResult<()> {
        self.tx.velocity_put(who, velocity).await
    }

    async fn velocity_read(
        &mut self,
        who: &Tenant,
        range: VelocityRange,
        limit: u32,
    ) -> StoreResult<TradesRead> {
        self.tx.velocity_read(who, range, limit).await
    }
}

#[async_trait]
impl<T: EventTx + ?Sized> EventTx for Tx<T> {
    fn caused_by(&mut self, request: Option<TraceParent>) {
        self.tx.caused_by(request);
    }

    async fn event_insert(&mut self, event: &NewEvent) -> StoreResult<()> {
        self.tx.event_insert(event).await
    }
}
