//! Transactions.

use gate_core::session::Flow;
use gate_core::transaction::{RefId, Transaction, TransactionState, TransactionStatus};
use kernel::{Mode, StoreError};
use partner_core::Tenant;

use crate::Row;

pub fn transaction(row: &dyn Row, mode: Mode) -> Result<Transaction, StoreError> {
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

/// A new transaction is the tenant's.
pub fn check_new(who: &Tenant, transaction: &Transaction) -> Result<(), StoreError> {
    if transaction.refid.in_mode(who.mode).is_some() {
        return Ok(());
    }
    Err(StoreError::Guard(format!(
        "transactions: {} is of another mode",
        transaction.refid
    )))
}
