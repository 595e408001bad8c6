//! Deposits, one for each of the operator's references.

use kernel::{Mode, StoreResult};
use pools_core::ports::Deposit;
use pools_core::profile::Network;

use crate::{Row, Statement};

/// The product of a reference, within which it is unique. Only one product has deposits.
pub(crate) const PRODUCT: &str = "pools";

/// Deposits that an earlier version stored without their compared references.
pub static UNCOMPARED: Statement = Statement::new(
    "deposits",
    "SELECT partner_id, reference FROM deposits
     WHERE mode = $1 AND partner_id = $2 AND product = $3 AND compared IS NULL
     LIMIT CAST($4 AS bigint)",
);

pub(crate) static COMPARE: Statement = Statement::new(
    "deposits",
    "UPDATE deposits SET compared = $5
     WHERE mode = $1 AND partner_id = $2 AND product = $3 AND reference = $4",
);

/// The deposit with an equal reference. Deposits of earlier versions may share one: then the deposit with the same spelling is
/// preferred, and the oldest after it.
pub static FIND: Statement = Statement::new(
    "deposits",
    "SELECT partner_id, reference, asset, amount, network, entry_id, created_at FROM deposits
     WHERE mode = $1 AND partner_id = $2 AND product = $3 AND compared = $4
     ORDER BY CASE WHEN reference = $5 THEN 0 ELSE 1 END, created_at, entry_id LIMIT 1",
);

pub(crate) static INSERT: Statement = Statement::new(
    "deposits",
    "INSERT INTO deposits (mode, partner_id, product, reference, asset, amount, network, entry_id, created_at, compared)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
);

pub(crate) fn deposit(row: &dyn Row, mode: Mode) -> StoreResult<Deposit> {
    Ok(Deposit {
        reference: row.text("reference")?.to_owned(),
        amount: row.amount("amount", row.asset("asset")?)?,
        network: network(row)?,
        entry: row.id("entry_id", mode)?,
        created_at: row.instant("created_at")?,
    })
}

/// The network of a crypto receipt.
pub fn network(row: &dyn Row) -> StoreResult<Option<Network>> {
    row.opt_parsed("network", Network::parse)
}
