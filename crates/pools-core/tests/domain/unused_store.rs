//! A store for use cases that must not open a transaction.

use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Asset, Mode, Readable, Seen, StoreError, StoreResult};
use partner_core::Tenant;
use partner_core::idempotency::Scope;
use pools_core::ports::{
    LedgerFilter, LedgerPage, PoolsReads, PoolsStore, PoolsTx, TradeFilter, TransactPreflight,
    TransactSnapshot,
};
use pools_core::profile::PoolId;
use pools_core::quote::{Quote, QuoteId};
use pools_core::trade::{Trade, TradeId};
use pools_core::usecases::catch_up::CatchUpVelocity;

use crate::fixtures::DAY;

/// A catch-up whose store returns an error for every call.
pub(crate) fn catch_up() -> CatchUpVelocity {
    CatchUpVelocity {
        store: Arc::new(UnusedStore),
        window: DAY,
    }
}

struct UnusedStore;

fn unused<T>() -> StoreResult<T> {
    Err(StoreError::unexpected("the store is not used"))
}

#[async_trait]
impl PoolsReads for UnusedStore {
    async fn quote_get(&self, _: &Tenant, _: QuoteId) -> StoreResult<Option<Seen<Quote>>> {
        unused()
    }

    async fn quote_get_behind_writes(
        &self,
        _: &Tenant,
        _: QuoteId,
    ) -> StoreResult<Option<Seen<Quote>>> {
        unused()
    }

    async fn trade_by_quote(&self, _: &Tenant, _: QuoteId) -> StoreResult<Option<Seen<Trade>>> {
        unused()
    }

    async fn trade_get(&self, _: &Tenant, _: TradeId) -> StoreResult<Option<Trade>> {
        unused()
    }

    async fn trades_page(&self, _: &Tenant, _: &TradeFilter, _: u32) -> StoreResult<Vec<Trade>> {
        unused()
    }

    async fn account_get(
        &self,
        _: &Tenant,
        _: Asset,
    ) -> StoreResult<Option<pools_core::ledger::Account>> {
        unused()
    }

    async fn ledger_page(
        &self,
        _: &Tenant,
        _: Asset,
        _: &LedgerFilter,
        _: u32,
    ) -> StoreResult<Option<LedgerPage>> {
        unused()
    }

    async fn counted_trades(
        &self,
        _: &Tenant,
        _: u32,
    ) -> StoreResult<Option<Seen<pools_core::velocity::CountedTrades>>> {
        unused()
    }
}

#[async_trait]
impl TransactPreflight for UnusedStore {
    async fn transact_snapshot(
        &self,
        _: &Scope,
        _: &PoolId,
        _: QuoteId,
    ) -> StoreResult<Seen<TransactSnapshot>> {
        unused()
    }
}

#[async_trait]
impl PoolsStore for UnusedStore {
    async fn begin(&self, _: &'static str) -> StoreResult<Box<dyn PoolsTx>> {
        unused()
    }

    async fn commitments_above(&self, _: Mode, _: i64) -> StoreResult<Readable<(Tenant, Asset)>> {
        unused()
    }
}
