//! Deposits, one for each of the operator's references.

use kernel::{Mode, StoreError};
use partner_core::Tenant;
use pools_core::ports::Deposit;
use pools_core::profile::Network;

use crate::{Connection, Row, Statement, values};

/// The product of a reference, within which it is unique. Only one product has deposits.
const PRODUCT: &str = "pools";

pub(crate) async fn find(
    connection: &mut dyn Connection,
    who: &Tenant,
    reference: &str,
) -> Result<Option<Deposit>, StoreError> {
    let values = values![who.mode, &who.partner, PRODUCT, reference];
    let row = connection.fetch_optional(&FIND, values).await?;
    row.map(|row| deposit(&*row, who.mode)).transpose()
}

static FIND: Statement = Statement::new(
    "deposits",
    "SELECT partner_id, reference, asset, amount, network, entry_id, created_at FROM deposits
     WHERE mode = $1 AND partner_id = $2 AND product = $3 AND reference = $4",
);

pub(crate) async fn insert(
    connection: &mut dyn Connection,
    who: &Tenant,
    deposit: &Deposit,
) -> Result<(), StoreError> {
    let asset = deposit.amount.asset();
    let values = values![
        who.mode,
        &who.partner,
        PRODUCT,
        &deposit.reference,
        asset.code(),
        deposit.amount.units(),
        deposit.network.map(Network::as_str),
        deposit.entry,
        deposit.created_at,
    ];
    connection.execute(&INSERT, values).await.map(drop)
}

static INSERT: Statement = Statement::new(
    "deposits",
    "INSERT INTO deposits (mode, partner_id, product, reference, asset, amount, network, entry_id, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
);

fn deposit(row: &dyn Row, mode: Mode) -> Result<Deposit, StoreError> {
    Ok(Deposit {
        reference: row.text("reference")?.to_owned(),
        amount: row.amount("amount", row.asset("asset")?)?,
        network: network(row)?,
        entry: row.id("entry_id", mode)?,
        created_at: row.instant("created_at")?,
    })
}

/// The network of a crypto receipt.
pub fn network(row: &dyn Row) -> Result<Option<Network>, StoreError> {
    row.opt_parsed("network", Network::parse)
}
