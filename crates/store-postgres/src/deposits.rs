//! Deposits: once per reference of the operator's.

use crate::conn::Conn;
use kernel::StoreError;
use partner_core::Tenant;
use pools_core::ports::Deposit;
use pools_core::profile::Network;
use store_sql::deposits::deposit;

use crate::errors;
use crate::row::{Columns, key};

/// References are scoped by product as well; this is the one there is.
const PRODUCT: &str = "pools";

pub(crate) async fn find(
    conn: &mut Conn,
    who: &Tenant,
    reference: &str,
) -> Result<Option<Deposit>, StoreError> {
    let row = sqlx::query(
        "SELECT partner_id, reference, asset, amount, network, entry_id, created_at FROM deposits
         WHERE mode = $1 AND partner_id = $2 AND product = $3 AND reference = $4",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(PRODUCT)
    .bind(reference)
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    row.map(|row| deposit(&Columns::new("deposits", &row), who.mode))
        .transpose()
}

pub(crate) async fn insert(
    conn: &mut Conn,
    who: &Tenant,
    deposit: &Deposit,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO deposits (mode, partner_id, product, reference, asset, amount, network, entry_id, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(PRODUCT)
    .bind(&deposit.reference)
    .bind(deposit.amount.asset().code())
    .bind(deposit.amount.units())
    .bind(deposit.network.map(Network::as_str))
    .bind(key(deposit.entry))
    .bind(deposit.created_at.millis())
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}
