//! Deposits.

use kernel::{Mode, StoreError};
use pools_core::ports::Deposit;
use pools_core::profile::Network;

use crate::Row;

pub fn deposit(row: &dyn Row, mode: Mode) -> Result<Deposit, StoreError> {
    Ok(Deposit {
        reference: row.text("reference")?.to_owned(),
        amount: row.amount("amount", row.asset("asset")?)?,
        network: network(row)?,
        entry: row.id("entry_id", mode)?,
        created_at: row.instant("created_at")?,
    })
}

/// The network that a receipt of crypto came on.
pub fn network(row: &dyn Row) -> Result<Option<Network>, StoreError> {
    row.opt_parsed("network", Network::parse)
}
