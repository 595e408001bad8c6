//! Accounts and entries.

use kernel::{Mode, StoreError};
use pools_core::ledger::{Account, AccountKind, Entry, Mark, Part, Reason, Transfer};

use crate::Row;

pub fn account_of(row: &dyn Row) -> Result<Account, StoreError> {
    let asset = row.asset("asset")?;
    Ok(Account {
        available: row.amount("available", asset)?,
        sequence: row.integer("sequence")?,
    })
}

pub fn entry_of(row: &dyn Row, mode: Mode) -> Result<Entry, StoreError> {
    let asset = row.asset("asset")?;
    let mark = match (
        row.opt_integer("account_sequence")?,
        row.opt_amount("balance_after", asset)?,
    ) {
        (None, None) => None,
        (Some(sequence), Some(balance_after)) => Some(Mark {
            sequence,
            balance_after,
        }),
        (Some(_), None) | (None, Some(_)) => return Err(row.bad("balance_after")),
    };
    let trade = match (
        row.opt_id("trade_id", mode)?,
        row.opt_parsed("part", Part::parse)?,
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
