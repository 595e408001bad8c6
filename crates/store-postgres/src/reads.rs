//! Reads of the pools API.

use async_trait::async_trait;
use kernel::{Asset, Seen, StoreResult};
use partner_core::Tenant;
use pools_core::ledger::Account;
use pools_core::ports::{LedgerFilter, LedgerPage, PoolsReads, TradeFilter};
use pools_core::quote::{Quote, QuoteId};
use pools_core::trade::{Trade, TradeId};
use pools_core::velocity::CountedTrades;
use store_sql::{ReadStore as _, Reader as _, ledger, quotes, trades, velocity};

use crate::{PostgresStore, errors, partner_lock};

#[async_trait]
impl PoolsReads for PostgresStore {
    async fn quote_get(&self, who: &Tenant, id: QuoteId) -> StoreResult<Option<Seen<Quote>>> {
        quotes::get(&mut self.reader().await?, who, id).await
    }

    /// Waits for the transactions that write the partner's money, and keeps others out until the clock is read. So a quote that is
    /// open at that instant was not consumed before it.
    async fn quote_get_behind_writes(
        &self,
        who: &Tenant,
        id: QuoteId,
    ) -> StoreResult<Option<Seen<Quote>>> {
        let turn = self.inner.turns.take(who).await?;
        let mut tx = self.inner.write().await?;
        partner_lock::share(&mut tx, who).await?;
        drop(turn);
        let found = quotes::find(&mut *tx, who, id).await?;
        tx.rollback().await.map_err(errors::statement)?;
        let Some((value, row)) = found else {
            return Ok(None);
        };
        let at = self.inner.clock.seen(row.integer("clock")?, 0)?;
        Ok(Some(Seen { value, at }))
    }

    async fn trade_by_quote(
        &self,
        who: &Tenant,
        quote: QuoteId,
    ) -> StoreResult<Option<Seen<Trade>>> {
        trades::get_by_quote(&mut self.reader().await?, who, quote).await
    }

    async fn trade_get(&self, who: &Tenant, id: TradeId) -> StoreResult<Option<Trade>> {
        trades::find(self.reader().await?.connection(), who, id).await
    }

    async fn trades_page(
        &self,
        who: &Tenant,
        filter: &TradeFilter,
        limit: u32,
    ) -> StoreResult<Vec<Trade>> {
        let mut reader = self.page_reader(who).await?;
        trades::page(reader.connection(), who, filter, limit).await
    }

    async fn account_get(&self, who: &Tenant, asset: Asset) -> StoreResult<Option<Account>> {
        ledger::account(self.reader().await?.connection(), who, asset).await
    }

    async fn ledger_page(
        &self,
        who: &Tenant,
        asset: Asset,
        filter: &LedgerFilter,
        limit: u32,
    ) -> StoreResult<Option<LedgerPage>> {
        let _turn = self.inner.page_turns.take(who).await?;
        let mut snapshot = self.inner.snapshot().await?;
        let page = ledger::page(&mut *snapshot, who, asset, filter, limit).await?;
        snapshot.rollback().await.map_err(errors::statement)?;
        Ok(page)
    }

    async fn counted_trades(
        &self,
        who: &Tenant,
        limit: u32,
    ) -> StoreResult<Option<Seen<CountedTrades>>> {
        velocity::counted(&mut self.page_reader(who).await?, who, limit).await
    }
}
