//! Transactions: rows in and out.

use async_trait::async_trait;
use gate_core::ports::{TransactionFilter, TransactionTx};
use gate_core::transaction::{RefId, Transaction, TransactionState, TransactionStatus};
use instruments::failpoint::{Step, around};
use kernel::{Cas, StoreError, Timestamp};
use partner_core::Tenant;
use sqlx::SqliteConnection;
use store_sql::transactions::{check_new, transaction};

use crate::errors;
use crate::row::{Columns, key, own_key};
use crate::tx::SqliteTx;

#[async_trait]
impl TransactionTx for SqliteTx {
    async fn transaction_insert(
        &mut self,
        who: &Tenant,
        transaction: &Transaction,
    ) -> Result<(), StoreError> {
        let inserting = insert(self.conn(), who, transaction);
        around(Step::TransactionInsert, inserting).await
    }

    async fn transaction_end(
        &mut self,
        who: &Tenant,
        refid: RefId,
        state: TransactionState,
    ) -> Result<Cas, StoreError> {
        let ending = end(self.conn(), who, refid, state);
        let outcome = around(Step::TransactionEnd, ending).await?;
        Ok(self.record_race(outcome))
    }
}

pub(crate) async fn find(
    conn: &mut SqliteConnection,
    who: &Tenant,
    refid: RefId,
) -> Result<Option<Transaction>, StoreError> {
    let Some(key) = own_key(who, refid.id()) else {
        return Ok(None);
    };
    let row = sqlx::query(
        "SELECT partner_id, id, session_id, action, status, token, network, currency, payment_method, fiat_amount,
                token_amount, exchange_rate, total_fees, local_rail_transaction_id, created_at, completed_at
         FROM transactions WHERE mode = ?1 AND partner_id = ?2 AND id = ?3",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key)
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    row.map(|row| transaction(&Columns::new("transactions", &row), who.mode))
        .transpose()
}

/// A page by (`created_at`, id) descending, after a transaction of the tenant's.
pub(crate) async fn page(
    conn: &mut SqliteConnection,
    who: &Tenant,
    filter: &TransactionFilter,
    limit: u32,
) -> Result<Vec<Transaction>, StoreError> {
    let session = filter.session.map(|session| own_key(who, session));
    if session == Some(None) {
        return Ok(Vec::new());
    }
    let below = match filter.after {
        None => (i64::MAX, String::new()),
        Some(after) => match find(conn, who, after).await? {
            None => return Ok(Vec::new()),
            Some(after) => (after.created_at.millis(), key(after.refid.id())),
        },
    };
    let statement = match (session.is_some(), filter.status) {
        (true, _) => PAGE_OF_SESSION,
        (false, Some(_)) => PAGE_OF_STATUS,
        (false, None) => PAGE,
    };
    let mut query = sqlx::query(statement)
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(below.0)
        .bind(below.1)
        .bind(limit);
    if session.is_some() || filter.status.is_some() {
        query = query.bind(filter.status.map(TransactionStatus::as_str));
    }
    if let Some(session) = session {
        query = query.bind(session);
    }
    let rows = query.fetch_all(conn).await.map_err(errors::statement)?;
    rows.iter()
        .map(|row| transaction(&Columns::new("transactions", row), who.mode))
        .collect()
}

pub(crate) const PAGE: &str =
    "SELECT partner_id, id, session_id, action, status, token, network, currency, payment_method, fiat_amount,
            token_amount, exchange_rate, total_fees, local_rail_transaction_id, created_at, completed_at
     FROM transactions
     WHERE mode = ?1 AND partner_id = ?2 AND (created_at, id) < (?3, ?4)
     ORDER BY created_at DESC, id DESC LIMIT +?5";

pub(crate) const PAGE_OF_STATUS: &str =
    "SELECT partner_id, id, session_id, action, status, token, network, currency, payment_method, fiat_amount,
            token_amount, exchange_rate, total_fees, local_rail_transaction_id, created_at, completed_at
     FROM transactions
     WHERE mode = ?1 AND partner_id = ?2 AND (created_at, id) < (?3, ?4) AND status = ?6
     ORDER BY created_at DESC, id DESC LIMIT +?5";

/// A session has few of them, so a status is looked for among those.
pub(crate) const PAGE_OF_SESSION: &str =
    "SELECT partner_id, id, session_id, action, status, token, network, currency, payment_method, fiat_amount,
            token_amount, exchange_rate, total_fees, local_rail_transaction_id, created_at, completed_at
     FROM transactions
     WHERE mode = ?1 AND partner_id = ?2 AND (created_at, id) < (?3, ?4) AND (?6 IS NULL OR status = ?6)
       AND session_id = ?7
     ORDER BY created_at DESC, id DESC LIMIT +?5";

async fn insert(
    conn: &mut SqliteConnection,
    who: &Tenant,
    transaction: &Transaction,
) -> Result<(), StoreError> {
    check_new(who, transaction)?;
    sqlx::query(
        "INSERT INTO transactions (mode, partner_id, id, session_id, action, status, token, network, currency,
                                   payment_method, fiat_amount, token_amount, exchange_rate, total_fees,
                                   local_rail_transaction_id, created_at, completed_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key(transaction.refid.id()))
    .bind(key(transaction.session))
    .bind(transaction.action.as_str())
    .bind(transaction.state.status().as_str())
    .bind(&transaction.token)
    .bind(&transaction.network)
    .bind(&transaction.currency)
    .bind(&transaction.payment_method)
    .bind(&transaction.fiat_amount)
    .bind(&transaction.token_amount)
    .bind(&transaction.exchange_rate)
    .bind(&transaction.total_fees)
    .bind(&transaction.local_rail_transaction_id)
    .bind(transaction.created_at.millis())
    .bind(transaction.state.completed_at().map(Timestamp::millis))
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}

async fn end(
    conn: &mut SqliteConnection,
    who: &Tenant,
    refid: RefId,
    state: TransactionState,
) -> Result<Cas, StoreError> {
    let Some(key) = own_key(who, refid.id()) else {
        return Ok(Cas::Lost);
    };
    let written = sqlx::query(
        "UPDATE transactions SET status = ?4, completed_at = ?5
         WHERE mode = ?1 AND partner_id = ?2 AND id = ?3 AND status = 'processing'",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key)
    .bind(state.status().as_str())
    .bind(state.completed_at().map(Timestamp::millis))
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Cas::from_rows(written.rows_affected())
}
