//! Transactions: their rows, their pages, and the steps that end them.

use async_trait::async_trait;
use gate_core::ports::{TransactionFilter, TransactionTx};
use gate_core::session::Flow;
use gate_core::transaction::{RefId, Transaction, TransactionState, TransactionStatus};
use kernel::{Cas, Mode, StoreResult};
use partner_core::Tenant;

use crate::bounds::{exclusive_lower_bound, upper_bound};
use crate::store_tx::guard;
use crate::{Connection, Reader, Row, Statement, StoreTx, values};

#[async_trait]
impl TransactionTx for StoreTx {
    async fn transaction_insert(
        &mut self,
        who: &Tenant,
        transaction: &Transaction,
    ) -> StoreResult<()> {
        guard(transaction.refid.in_mode(who.mode).is_some(), || {
            format!("transactions: {} has another mode", transaction.refid)
        })?;
        let values = values![
            who.mode,
            &who.partner,
            transaction.refid.id(),
            transaction.session,
            transaction.action.as_str(),
            transaction.state.status().as_str(),
            &transaction.token,
            &transaction.network,
            &transaction.currency,
            &transaction.payment_method,
            &transaction.fiat_amount,
            &transaction.token_amount,
            &transaction.exchange_rate,
            &transaction.total_fees,
            &transaction.local_rail_transaction_id,
            transaction.created_at,
            transaction.state.completed_at(),
        ];
        self.insert_around("transaction.insert", who, &INSERT, values)
            .await
    }

    async fn transaction_end(
        &mut self,
        who: &Tenant,
        refid: RefId,
        state: TransactionState,
    ) -> StoreResult<Cas> {
        let id = refid.id().in_mode(who.mode);
        let (status, completed) = (state.status().as_str(), state.completed_at());
        let values = values![who.mode, &who.partner, id, status, completed];
        self.swap_around("transaction.end", who, &END, values).await
    }
}

pub async fn find(
    connection: &mut dyn Connection,
    who: &Tenant,
    refid: RefId,
) -> StoreResult<Option<Transaction>> {
    let values = values![who.mode, &who.partner, refid.id().in_mode(who.mode)];
    let row = connection.fetch_optional(&FIND, values).await?;
    row.map(|row| transaction(&*row, who.mode)).transpose()
}

/// Every column that [`transaction`] reads.
macro_rules! columns {
    () => {
        "partner_id, id, session_id, action, status, token, network, currency, payment_method, fiat_amount, token_amount,
         exchange_rate, total_fees, local_rail_transaction_id, created_at, completed_at"
    };
}
pub(crate) use columns;

pub static FIND: Statement = Statement::new(
    "transactions",
    concat!(
        "SELECT ",
        columns!(),
        " FROM transactions WHERE mode = $1 AND partner_id = $2 AND id = $3"
    ),
);

/// A page by (`created_at`, id) descending, after one of the tenant's transactions.
pub async fn page(
    reader: &mut dyn Reader,
    who: &Tenant,
    filter: &TransactionFilter,
    limit: u32,
) -> StoreResult<Vec<Transaction>> {
    let connection = reader.connection();
    let cursor = match filter.after {
        None => None,
        Some(after) => match find(connection, who, after).await? {
            None => return Ok(Vec::new()),
            Some(after) => Some((after.created_at.millis(), after.refid.id().ulid())),
        },
    };
    let (before, id) = upper_bound(filter.created.before, cursor);
    let after = exclusive_lower_bound(filter.created.after);
    let status = filter.status.map(TransactionStatus::as_str);
    let (mode, partner) = (who.mode, &who.partner);
    let rows = match (filter.session, status) {
        (Some(session), _) => {
            let session = session.in_mode(mode);
            let values = values![mode, partner, before, id, after, limit, status, session];
            connection.fetch_all(&PAGE_OF_SESSION, values).await?
        }
        (None, Some(_)) => {
            let values = values![mode, partner, before, id, after, limit, status];
            connection.fetch_all(&PAGE_OF_STATUS, values).await?
        }
        (None, None) => {
            let values = values![mode, partner, before, id, after, limit];
            connection.fetch_all(&PAGE, values).await?
        }
    };
    rows.iter().map(|row| transaction(&**row, mode)).collect()
}

macro_rules! page {
    ($filter:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM transactions
             WHERE mode = $1 AND partner_id = $2 AND (created_at, id) < ($3, $4) AND created_at > $5",
            $filter,
            " ORDER BY created_at DESC, id DESC LIMIT CAST($6 AS bigint)"
        )
    };
}

pub static PAGE: Statement = Statement::new("transactions", page!(""));

pub static PAGE_OF_STATUS: Statement = Statement::new("transactions", page!(" AND status = $7"));

/// A session has few transactions, so no index has the status too.
pub static PAGE_OF_SESSION: Statement = Statement::new(
    "transactions",
    page!(" AND (CAST($7 AS text) IS NULL OR status = $7) AND session_id = $8"),
);

pub(crate) fn transaction(row: &dyn Row, mode: Mode) -> StoreResult<Transaction> {
    let status = row.parsed("status", TransactionStatus::parse)?;
    let state = TransactionState::stored(status, row.opt_instant("completed_at")?);
    Ok(Transaction {
        refid: RefId::from(row.id("id", mode)?),
        session: row.id("session_id", mode)?,
        action: row.parsed("action", Flow::parse)?,
        state: state.ok_or_else(|| row.bad("status"))?,
        token: row.opt_string("token")?,
        network: row.opt_string("network")?,
        currency: row.text("currency")?.to_owned(),
        payment_method: row.opt_string("payment_method")?,
        fiat_amount: row.opt_string("fiat_amount")?,
        token_amount: row.opt_string("token_amount")?,
        exchange_rate: row.opt_string("exchange_rate")?,
        total_fees: row.opt_string("total_fees")?,
        local_rail_transaction_id: row.opt_string("local_rail_transaction_id")?,
        created_at: row.instant("created_at")?,
    })
}

static INSERT: Statement = Statement::new(
    "transactions",
    "INSERT INTO transactions (mode, partner_id, id, session_id, action, status, token, network, currency,
                               payment_method, fiat_amount, token_amount, exchange_rate, total_fees,
                               local_rail_transaction_id, created_at, completed_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
);

pub static END: Statement = Statement::new(
    "transactions",
    "UPDATE transactions SET status = $4, completed_at = $5
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND status = 'processing'",
);
