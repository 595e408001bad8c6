//! Reads that can never write.

use async_trait::async_trait;
use kernel::{Asset, Seen, StoreError};
use partner_core::Tenant;
use partner_core::idempotency::Scope;
use pools_core::ledger::Account;
use pools_core::ports::{
    LedgerFilter, LedgerPage, PoolsReads, TradeFilter, TransactPreflight, TransactSnapshot,
};
use pools_core::profile::PoolId;
use pools_core::quote::{Quote, QuoteId, QuoteOutcome};
use pools_core::trade::{Trade, TradeId};
use sqlx::{Row as _, SqliteConnection};
use store_sql::ledger::funds;

use crate::row::{Columns, own_key};
use crate::{SqliteStore, errors, idempotency, ledger, quotes, trades};

#[async_trait]
impl PoolsReads for SqliteStore {
    async fn quote_get(
        &self,
        who: &Tenant,
        id: QuoteId,
    ) -> Result<Option<Seen<Quote>>, StoreError> {
        let mut conn = self.inner.reader().await?;
        let quote = quotes::find(&mut conn, who, id).await?;
        Ok(quote.map(|value| self.seen(value)))
    }

    async fn quote_get_behind_writes(
        &self,
        who: &Tenant,
        id: QuoteId,
    ) -> Result<Option<Seen<Quote>>, StoreError> {
        let mut conn = self.inner.writer().await?;
        let quote = quotes::find(&mut conn, who, id).await?;
        Ok(quote.map(|value| self.seen(value)))
    }

    async fn trade_by_quote(
        &self,
        who: &Tenant,
        quote: QuoteId,
    ) -> Result<Option<Seen<Trade>>, StoreError> {
        let mut conn = self.inner.reader().await?;
        let trade = trades::find_by_quote(&mut conn, who, quote).await?;
        Ok(trade.map(|value| self.seen(value)))
    }

    async fn trade_get(&self, who: &Tenant, id: TradeId) -> Result<Option<Trade>, StoreError> {
        let mut conn = self.inner.reader().await?;
        trades::find(&mut conn, who, id).await
    }

    async fn trades_page(
        &self,
        who: &Tenant,
        filter: &TradeFilter,
        limit: u32,
    ) -> Result<Vec<Trade>, StoreError> {
        let mut conn = self.inner.reader().await?;
        trades::page(&mut conn, who, filter, limit).await
    }

    async fn account_get(&self, who: &Tenant, asset: Asset) -> Result<Option<Account>, StoreError> {
        let mut conn = self.inner.reader().await?;
        ledger::account(&mut conn, who, asset).await
    }

    async fn ledger_page(
        &self,
        who: &Tenant,
        asset: Asset,
        filter: &LedgerFilter,
        limit: u32,
    ) -> Result<Option<LedgerPage>, StoreError> {
        let mut snapshot = self.inner.snapshot().await?;
        let page = ledger::page(&mut snapshot, who, asset, filter, limit).await?;
        snapshot.rollback().await.map_err(errors::statement)?;
        Ok(page)
    }
}

#[async_trait]
impl TransactPreflight for SqliteStore {
    /// One statement is one snapshot. A quote that is not consumed in it has no trade in it; only
    /// a consumed one pays for a transaction over three reads.
    async fn transact_snapshot(
        &self,
        scope: &Scope,
        pool: &PoolId,
        quote: QuoteId,
    ) -> Result<Seen<TransactSnapshot>, StoreError> {
        let mut conn = self.inner.reader().await?;
        let found = read_snapshot(&mut conn, scope, pool, quote).await?;
        drop(conn);
        match &found.quote {
            Some(Quote {
                fate: QuoteOutcome::Consumed(_),
                ..
            }) => {}
            _ => return Ok(self.seen(found)),
        }
        let mut snapshot = self.inner.snapshot().await?;
        let mut found = read_snapshot(&mut snapshot, scope, pool, quote).await?;
        found.trade = trades::find_by_quote(&mut snapshot, &scope.tenant, quote).await?;
        snapshot.rollback().await.map_err(errors::statement)?;
        Ok(self.seen(found))
    }
}

impl SqliteStore {
    /// The clock is asked after the read, so that what was seen had happened by then.
    pub(crate) fn seen<T>(&self, value: T) -> Seen<T> {
        Seen {
            value,
            at: self.inner.clock.now(),
        }
    }
}

/// What the idempotency key was used for, the quote, and the partner's funds in the pool, from one statement.
async fn read_snapshot(
    conn: &mut SqliteConnection,
    scope: &Scope,
    pool: &PoolId,
    quote: QuoteId,
) -> Result<TransactSnapshot, StoreError> {
    let row = sqlx::query(
        "SELECT i.fingerprint,
                CASE WHEN i.expires_at > i.created_at THEN i.expires_at ELSE i.created_at + 86400000 END AS answered_until,
                q.partner_id, q.id, q.pool, q.side, q.network, q.fiat, q.crypto, q.rate, q.spread_bps, q.fee_bps,
                q.notional, q.dest_address, q.dest_network, q.created_at, q.expires_at, q.consumed_at, q.rejected_at, q.mid,
                f.available AS fiat_available, f.sequence AS fiat_sequence,
                y.available AS crypto_available, y.sequence AS crypto_sequence, v.total, v.floor
         FROM (SELECT 1)
         LEFT JOIN idempotency_keys AS i ON i.mode = ?1 AND i.partner_id = ?2 AND i.route = ?3 AND i.key = ?4
         LEFT JOIN quotes AS q ON q.mode = ?1 AND q.partner_id = ?2 AND q.id = ?5
         LEFT JOIN accounts AS f ON f.mode = ?1 AND f.partner_id = ?2 AND f.asset = ?6
         LEFT JOIN accounts AS y ON y.mode = ?1 AND y.partner_id = ?2 AND y.asset = ?7
         LEFT JOIN velocity AS v ON v.mode = ?1 AND v.partner_id = ?2",
    )
    .bind(scope.tenant.mode.as_str())
    .bind(scope.tenant.partner.as_str())
    .bind(&scope.route)
    .bind(scope.key.as_str())
    .bind(own_key(&scope.tenant, quote))
    .bind(pool.fiat().code())
    .bind(pool.crypto().code())
    .fetch_one(conn)
    .await
    .map_err(errors::statement)?;
    let answered = row
        .try_get::<Option<i64>, _>("answered_until")
        .map_err(errors::statement)?
        .map(|_| idempotency::answered(&Columns::new("idempotency_keys", &row)))
        .transpose()?;
    let quote = row
        .try_get::<Option<&str>, _>("id")
        .map_err(errors::statement)?
        .map(|_| quotes::quote(&Columns::new("quotes", &row), scope.tenant.mode))
        .transpose()?;
    Ok(TransactSnapshot {
        answered,
        quote,
        trade: None,
        funds: funds(&Columns::new("accounts", &row), pool)?,
    })
}
