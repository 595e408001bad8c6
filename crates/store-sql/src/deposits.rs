//! Deposits, one for each of the operator's references.

use kernel::{Mode, StoreError};
use partner_core::Tenant;
use pools_core::deposits::compared_reference;
use pools_core::ports::Deposit;
use pools_core::profile::Network;

use crate::{Connection, Row, Statement, values};

/// The product of a reference, within which it is unique. Only one product has deposits.
const PRODUCT: &str = "pools";

/// Fills in the compared references of deposits that an earlier version stored, of at most `limit` deposits. Returns their number.
pub(crate) async fn compare(
    connection: &mut dyn Connection,
    who: &Tenant,
    limit: u32,
) -> Result<u32, StoreError> {
    let values = values![who.mode, &who.partner, PRODUCT, limit];
    let rows = connection.fetch_all(&UNCOMPARED, values).await?;
    let mut compared = 0_u32;
    for row in rows {
        let reference = row.text("reference")?;
        let form = compared_reference(reference);
        let values = values![who.mode, &who.partner, PRODUCT, reference, &form];
        connection.execute(&COMPARE, values).await?;
        compared = compared.saturating_add(1);
    }
    Ok(compared)
}

pub static UNCOMPARED: Statement = Statement::new(
    "deposits",
    "SELECT partner_id, reference FROM deposits
     WHERE mode = $1 AND partner_id = $2 AND product = $3 AND compared IS NULL
     LIMIT CAST($4 AS bigint)",
);

static COMPARE: Statement = Statement::new(
    "deposits",
    "UPDATE deposits SET compared = $5
     WHERE mode = $1 AND partner_id = $2 AND product = $3 AND reference = $4",
);

/// The deposit with an equal reference. Deposits of earlier versions may share one: then the deposit with the same spelling is
/// preferred, and the oldest after it.
pub(crate) async fn find(
    connection: &mut dyn Connection,
    who: &Tenant,
    reference: &str,
) -> Result<Option<Deposit>, StoreError> {
    let form = compared_reference(reference);
    let values = values![who.mode, &who.partner, PRODUCT, &form, reference];
    let row = connection.fetch_optional(&FIND, values).await?;
    row.map(|row| deposit(&*row, who.mode)).transpose()
}

pub static FIND: Statement = Statement::new(
    "deposits",
    "SELECT partner_id, reference, asset, amount, network, entry_id, created_at FROM deposits
     WHERE mode = $1 AND partner_id = $2 AND product = $3 AND compared = $4
     ORDER BY CASE WHEN reference = $5 THEN 0 ELSE 1 END, created_at, entry_id LIMIT 1",
);

pub(crate) async fn insert(
    connection: &mut dyn Connection,
    who: &Tenant,
    deposit: &Deposit,
) -> Result<(), StoreError> {
    let asset = deposit.amount.asset();
    let form = compared_reference(&deposit.reference);
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
        &form,
    ];
    connection.execute(&INSERT, values).await.map(drop)
}

static INSERT: Statement = Statement::new(
    "deposits",
    "INSERT INTO deposits (mode, partner_id, product, reference, asset, amount, network, entry_id, created_at, compared)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
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
