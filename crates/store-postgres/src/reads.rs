//! Reads that can never write.

use crate::conn::Conn;
use async_trait::async_trait;
use kernel::{Asset, Seen, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::idempotency::Scope;
use partner_core::pools::PoolId;
use pools_core::ledger::Account;
use pools_core::ports::{
    LedgerFilter, LedgerPage, PoolsReads, TradeFilter, TransactPreflight, TransactSnapshot,
};
use pools_core::quote::{Quote, QuoteId, QuoteOutcome};
use pools_core::trade::{Trade, TradeId};
use store_sql::ledger::funds;

use crate::row::{Columns, own_key};
use crate::{PostgresStore, clock, errors, idempotency, ledger, partner_lock, quotes, trades};

#[async_trait]
impl PoolsReads for PostgresStore {
    async fn quote_get(
        &self,
        who: &Tenant,
        id: QuoteId,
    ) -> Result<Option<Seen<Quote>>, StoreError> {
        let mut conn = self.inner.conn().await?;
        let found = quotes::find_at(&mut conn, who, id).await?;
        found.map(|(quote, at)| self.seen(quote, at)).transpose()
    }

    /// Whoever writes the partner's money is waited for, and nobody begins before the clock was
    /// read: a quote that is still open at that instant was not consumed before it.
    async fn quote_get_behind_writes(
        &self,
        who: &Tenant,
        id: QuoteId,
    ) -> Result<Option<Seen<Quote>>, StoreError> {
        let turn = self.inner.turns.take(who).await?;
        let mut tx = self.inner.write().await?;
        partner_lock::share(&mut tx, who).await?;
        drop(turn);
        let found = quotes::find_at(&mut tx, who, id).await?;
        tx.rollback().await.map_err(errors::statement)?;
        found.map(|(quote, at)| self.seen(quote, at)).transpose()
    }

    async fn trade_by_quote(
        &self,
        who: &Tenant,
        quote: QuoteId,
    ) -> Result<Option<Seen<Trade>>, StoreError> {
        let mut conn = self.inner.conn().await?;
        let found = trades::find_by_quote_at(&mut conn, who, quote).await?;
        found.map(|(trade, at)| self.seen(trade, at)).transpose()
    }

    async fn trade_get(&self, who: &Tenant, id: TradeId) -> Result<Option<Trade>, StoreError> {
        let mut conn = self.inner.conn().await?;
        trades::find(&mut conn, who, id).await
    }

    async fn trades_page(
        &self,
        who: &Tenant,
        filter: &TradeFilter,
        limit: u32,
    ) -> Result<Vec<Trade>, StoreError> {
        let mut conn = self.inner.conn().await?;
        trades::page(&mut conn, who, filter, limit).await
    }

    async fn account_get(&self, who: &Tenant, asset: Asset) -> Result<Option<Account>, StoreError> {
        let mut conn = self.inner.conn().await?;
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
impl TransactPreflight for PostgresStore {
    /// One statement is one snapshot. A quote that is not consumed in it has no trade in it; one
    /// that is has had its trade since, which a second statement finds.
    async fn transact_snapshot(
        &self,
        scope: &Scope,
        pool: &PoolId,
        quote: QuoteId,
    ) -> Result<Seen<TransactSnapshot>, StoreError> {
        let mut conn = self.inner.conn().await?;
        let (mut snapshot, mut at) = read_snapshot(&mut conn, scope, pool, quote).await?;
        let consumed = |quote: &Quote| matches!(quote.fate, QuoteOutcome::Consumed(_));
        if snapshot.quote.as_ref().is_some_and(consumed) {
            snapshot.trade = trades::find_by_quote(&mut conn, &scope.tenant, quote).await?;
            at = clock::server(&mut conn).await?;
        }
        self.seen(snapshot, at)
    }
}

impl PostgresStore {
    /// What was seen when the server's clock said `server`.
    pub(crate) fn seen<T>(&self, value: T, server: i64) -> Result<Seen<T>, StoreError> {
        let at = self.inner.clock.seen(server, 0)?;
        Ok(Seen { value, at })
    }

    /// The instant outside any transaction.
    pub(crate) async fn instant(&self, conn: &mut Conn) -> Result<Timestamp, StoreError> {
        let server = clock::server(conn).await?;
        self.inner.clock.seen(server, 0)
    }
}

/// What the idempotency key was used for, the quote, and the partner's funds in the pool, from one statement; and what the server's
/// clock said then.
async fn read_snapshot(
    conn: &mut Conn,
    scope: &Scope,
    pool: &PoolId,
    quote: QuoteId,
) -> Result<(TransactSnapshot, i64), StoreError> {
    let row = sqlx::query(
        "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS clock, i.fingerprint,
                CASE WHEN i.expires_at > i.created_at THEN i.expires_at ELSE i.created_at + 86400000 END AS answered_until,
                q.partner_id, q.id, q.pool, q.side, q.network, q.fiat, q.crypto, q.rate, q.spread_bps, q.fee_bps,
                q.notional, q.dest_address, q.dest_network, q.created_at, q.expires_at, q.consumed_at, q.rejected_at, q.mid,
                f.available AS fiat_available, f.sequence AS fiat_sequence,
                y.available AS crypto_available, y.sequence AS crypto_sequence, v.total, v.floor
         FROM (SELECT 1) AS one
         LEFT JOIN idempotency_keys AS i ON i.mode = $1 AND i.partner_id = $2 AND i.route = $3 AND i.key = $4
         LEFT JOIN quotes AS q ON q.mode = $1 AND q.partner_id = $2 AND q.id = $5
         LEFT JOIN accounts AS f ON f.mode = $1 AND f.partner_id = $2 AND f.asset = $6
         LEFT JOIN accounts AS y ON y.mode = $1 AND y.partner_id = $2 AND y.asset = $7
         LEFT JOIN velocity AS v ON v.mode = $1 AND v.partner_id = $2",
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
    let answered = idempotency::opt_answered(&Columns::new("idempotency_keys", &row))?;
    let quote = quotes::opt_quote(&Columns::new("quotes", &row), scope.tenant.mode)?;
    let snapshot = TransactSnapshot {
        answered,
        quote,
        trade: None,
        funds: funds(&Columns::new("accounts", &row), pool)?,
    };
    Ok((snapshot, Columns::new("quotes", &row).integer("clock")?))
}
