//! Accounts and entries.

use kernel::{Asset, Mode, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::pools::PoolId;
use pools_core::batch::Funds;
use pools_core::ledger::{Account, AccountKind, Entry, Posting, Reason, Transfer, TransferRole};

use crate::velocity::opt_velocity;
use crate::{Connection, Row, Statement, values};

/// The sequence number of an account's last entry made at an instant or earlier, or zero. Instants never decrease along the sequence,
/// which has no gaps, so the statement halves the range.
pub async fn last_up_to(
    connection: &mut dyn Connection,
    who: &Tenant,
    account: &Account,
    at: Timestamp,
) -> Result<i64, StoreError> {
    let asset = account.asset();
    let values = values![who.mode, &who.partner, asset.code(), account.sequence, at];
    let row = connection.fetch_one(&LAST_UP_TO, values).await?;
    row.integer("low")
}

/// `CROSS JOIN` makes SQLite look up one entry for each half; its planner would read the whole account.
pub static LAST_UP_TO: Statement = Statement::new(
    "ledger_entries",
    "WITH RECURSIVE halves (low, high) AS (
         SELECT CAST(0 AS bigint), CAST($4 AS bigint)
         UNION ALL
         SELECT CASE WHEN created_at <= $5 THEN (low + high + 1) / 2 ELSE low END,
                CASE WHEN created_at <= $5 THEN high ELSE (low + high + 1) / 2 - 1 END
         FROM halves CROSS JOIN ledger_entries
         WHERE mode = $1 AND partner_id = $2 AND asset = $3 AND account_sequence = (low + high + 1) / 2
           AND low < high
     )
     SELECT low FROM halves WHERE low >= high",
);

pub fn account_of(row: &dyn Row) -> Result<Account, StoreError> {
    let asset = row.asset("asset")?;
    Ok(Account {
        available: row.amount("available", asset)?,
        sequence: row.integer("sequence")?,
    })
}

/// The columns of a pool's accounts, where a row shows both beside something else: balance and
/// sequence number.
pub const FIAT: (&str, &str) = ("fiat_available", "fiat_sequence");
pub const CRYPTO: (&str, &str) = ("crypto_available", "crypto_sequence");

/// An account of such columns, if the outer join has found one.
pub fn opt_account(
    row: &dyn Row,
    asset: Asset,
    (available, sequence): (&'static str, &'static str),
) -> Result<Option<Account>, StoreError> {
    let Some(available) = row.opt_amount(available, asset)? else {
        return Ok(None);
    };
    let sequence = row.integer(sequence)?;
    Ok(Some(Account {
        available,
        sequence,
    }))
}

/// What a partner could spend in a pool, from a row that shows both accounts and the running total.
pub fn funds(row: &dyn Row, pool: &PoolId) -> Result<Funds, StoreError> {
    let fiat = opt_account(row, pool.fiat(), FIAT)?;
    let crypto = opt_account(row, pool.crypto(), CRYPTO)?;
    Ok(Funds {
        accounts: fiat.into_iter().chain(crypto).collect(),
        velocity: opt_velocity(row)?,
    })
}

pub fn entry_of(row: &dyn Row, mode: Mode) -> Result<Entry, StoreError> {
    let asset = row.asset("asset")?;
    let mark = match (
        row.opt_integer("account_sequence")?,
        row.opt_amount("balance_after", asset)?,
    ) {
        (None, None) => None,
        (Some(sequence), Some(balance_after)) => Some(Posting {
            sequence,
            balance_after,
        }),
        (Some(_), None) | (None, Some(_)) => return Err(row.bad("balance_after")),
    };
    let trade = match (
        row.opt_id("trade_id", mode)?,
        row.opt_parsed("part", TransferRole::parse)?,
    ) {
        (None, None) => None,
        (Some(trade), Some(part)) => Some((trade, part)),
        (Some(_), None) | (None, Some(_)) => return Err(row.bad("part")),
    };
    Ok(Entry {
        id: row.id("id", mode)?,
        transfer: Transfer {
            debit: row.parsed("debit", AccountKind::parse)?,
            credit: row.parsed("credit", AccountKind::parse)?,
            amount: row.amount("amount", asset)?,
            reason: row.parsed("reason", Reason::parse)?,
        },
        mark,
        reference: row.text("reference")?.to_owned(),
        trade,
        created_at: row.instant("created_at")?,
    })
}
