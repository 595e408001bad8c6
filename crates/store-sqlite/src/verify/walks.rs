//! Sums and chains, walked row by row and added in 128 bits.

use std::collections::BTreeMap;

use futures_util::TryStreamExt as _;
use kernel::StoreError;
use partner_core::ports::AuditReport;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};

use super::Breaches;
use crate::errors;

/// Mode, partner and currency.
type Place = (String, String, String);

pub(super) async fn walk(
    conn: &mut SqliteConnection,
    report: &mut AuditReport,
) -> Result<(), StoreError> {
    let (chain, ends) = chains(conn).await?;
    report.findings.push(chain.finding("ledger-chains"));
    let balances = balances(conn, ends).await?;
    report
        .findings
        .push(balances.finding("balance-is-sum-of-entries"));
    let sums = sums(conn).await?;
    report
        .findings
        .push(sums.zero().finding("accounts-sum-to-zero"));
    let reserved = reserved(conn, sums.reserved).await?;
    report
        .findings
        .push(reserved.finding("reserved-is-open-reserves"));
    report
        .findings
        .push(velocity(conn).await?.finding("velocity-total-is-plain-sum"));
    Ok(())
}

/// Where an account's entries have led.
struct End {
    sequence: i64,
    balance: i128,
    at: i64,
}

/// Each account's entries, in order: numbered without gaps from one, each balance the one before
/// it and its amount, never negative, never earlier than the one before.
async fn chains(
    conn: &mut SqliteConnection,
) -> Result<(Breaches, BTreeMap<Place, End>), StoreError> {
    let mut breaches = Breaches::default();
    let mut ends: BTreeMap<Place, End> = BTreeMap::new();
    let mut rows = sqlx::query(
        "SELECT mode, partner_id, asset, account_sequence, balance_after, amount, credit, created_at, id
         FROM ledger_entries WHERE account_sequence IS NOT NULL
         ORDER BY mode, partner_id, asset, account_sequence",
    )
    .fetch(conn);
    while let Some(row) = rows.try_next().await.map_err(errors::statement)? {
        let place = place(&row)?;
        let end = ends.entry(place.clone()).or_insert(End {
            sequence: 0,
            balance: 0,
            at: i64::MIN,
        });
        let amount = i128::from(integer(&row, "amount")?);
        let moved = if text(&row, "credit")? == "partner" {
            amount
        } else {
            -amount
        };
        let (sequence, balance) = (
            integer(&row, "account_sequence")?,
            i128::from(integer(&row, "balance_after")?),
        );
        let at = integer(&row, "created_at")?;
        let follows =
            Some(sequence) == end.sequence.checked_add(1) && balance == end.balance + moved;
        if !follows || balance < 0 || at < end.at {
            let id = text(&row, "id")?;
            breaches.add(|| {
                format!(
                    "{} entry {id} does not follow the one before it",
                    shown(&place)
                )
            });
        }
        *end = End {
            sequence,
            balance,
            at,
        };
    }
    Ok((breaches, ends))
}

/// Each account stands where its entries have led, and nowhere else.
async fn balances(
    conn: &mut SqliteConnection,
    mut ends: BTreeMap<Place, End>,
) -> Result<Breaches, StoreError> {
    let mut breaches = Breaches::default();
    let mut rows = sqlx::query("SELECT mode, partner_id, asset, available, sequence FROM accounts")
        .fetch(conn);
    while let Some(row) = rows.try_next().await.map_err(errors::statement)? {
        let place = place(&row)?;
        let (available, sequence) = (integer(&row, "available")?, integer(&row, "sequence")?);
        let end = ends.remove(&place).unwrap_or(End {
            sequence: 0,
            balance: 0,
            at: 0,
        });
        if i128::from(available) != end.balance || sequence != end.sequence || available < 0 {
            breaches.add(|| {
                format!(
                    "{} holds {available}, its {} entries lead to {}",
                    shown(&place),
                    end.sequence,
                    end.balance
                )
            });
        }
    }
    for place in ends.keys() {
        breaches.add(|| format!("{} has entries and no account", shown(place)));
    }
    Ok(breaches)
}

/// The sums of all entries, and of what the partners' own accounts say they hold.
#[derive(Default)]
struct Sums {
    /// Per mode and currency: what each kind of account has come to. A partner's own stands here
    /// as it is stored; the others keep no balance, so they are their entries.
    accounts: BTreeMap<(String, String), BTreeMap<String, i128>>,
    /// Per partner: the value reserved by open trades.
    reserved: BTreeMap<Place, i128>,
}

impl Sums {
    fn add(&mut self, (mode, _, asset): &Place, kind: String, moved: i128) {
        let accounts = self
            .accounts
            .entry((mode.clone(), asset.clone()))
            .or_default();
        *accounts.entry(kind).or_default() += moved;
    }

    /// Value is moved, never made: all accounts of a currency together are nothing, and nobody
    /// but the outside owes anything.
    fn zero(&self) -> Breaches {
        let mut breaches = Breaches::default();
        for ((mode, asset), accounts) in &self.accounts {
            let total: i128 = accounts.values().sum();
            let owing = accounts
                .iter()
                .any(|(kind, sum)| *sum < 0 && matches!(kind.as_str(), "partner" | "reserved"));
            if total != 0 || owing {
                breaches.add(|| format!("{mode} {asset}: {accounts:?} come to {total}"));
            }
        }
        breaches
    }
}

async fn sums(conn: &mut SqliteConnection) -> Result<Sums, StoreError> {
    let mut sums = Sums::default();
    let mut rows =
        sqlx::query("SELECT mode, partner_id, asset, debit, credit, amount FROM ledger_entries")
            .fetch(&mut *conn);
    while let Some(row) = rows.try_next().await.map_err(errors::statement)? {
        let place = place(&row)?;
        let amount = i128::from(integer(&row, "amount")?);
        for (side, moved) in [("debit", -amount), ("credit", amount)] {
            let kind = text(&row, side)?;
            if kind == "reserved" {
                *sums.reserved.entry(place.clone()).or_default() += moved;
            }
            if kind != "partner" {
                sums.add(&place, kind, moved);
            }
        }
    }
    drop(rows);
    let mut rows =
        sqlx::query("SELECT mode, partner_id, asset, available FROM accounts").fetch(conn);
    while let Some(row) = rows.try_next().await.map_err(errors::statement)? {
        let available = i128::from(integer(&row, "available")?);
        sums.add(&place(&row)?, "partner".to_owned(), available);
    }
    Ok(sums)
}

/// What stands reserved is what the open trades have reserved, partner by partner.
async fn reserved(
    conn: &mut SqliteConnection,
    mut reserved: BTreeMap<Place, i128>,
) -> Result<Breaches, StoreError> {
    let mut breaches = Breaches::default();
    let mut rows = sqlx::query(
        "SELECT mode, partner_id, reserved,
                CASE side WHEN 'on_ramp' THEN substr(pool, 1, instr(pool, '-') - 1)
                ELSE substr(pool, instr(pool, '-') + 1) END AS asset
         FROM trades WHERE status = 'reserved' AND reserved IS NOT NULL",
    )
    .fetch(conn);
    while let Some(row) = rows.try_next().await.map_err(errors::statement)? {
        let amount = i128::from(integer(&row, "reserved")?);
        *reserved.entry(place(&row)?).or_default() -= amount;
    }
    for (place, left) in reserved.iter().filter(|(_, left)| **left != 0) {
        breaches.add(|| {
            format!(
                "{} has {left} reserved beyond its open trades",
                shown(place)
            )
        });
    }
    Ok(breaches)
}

/// Each running total is the plain sum of the trades it counts.
async fn velocity(conn: &mut SqliteConnection) -> Result<Breaches, StoreError> {
    let mut plain: BTreeMap<(String, String), i128> = BTreeMap::new();
    let mut rows = sqlx::query(
        "SELECT t.mode, t.partner_id, t.notional, v.floor IS NULL AS unknown
         FROM trades AS t
         LEFT JOIN velocity AS v ON v.mode = t.mode AND v.partner_id = t.partner_id
         WHERE t.status NOT IN ('released', 'failed') AND (v.floor IS NULL OR t.created_at > v.floor)",
    )
    .fetch(&mut *conn);
    while let Some(row) = rows.try_next().await.map_err(errors::statement)? {
        let partner = (text(&row, "mode")?, text(&row, "partner_id")?);
        *plain.entry(partner).or_default() += i128::from(integer(&row, "notional")?);
    }
    drop(rows);
    let mut breaches = Breaches::default();
    let mut rows = sqlx::query("SELECT mode, partner_id, total FROM velocity").fetch(conn);
    while let Some(row) = rows.try_next().await.map_err(errors::statement)? {
        let partner = (text(&row, "mode")?, text(&row, "partner_id")?);
        let total = text(&row, "total")?;
        let sum = plain.remove(&partner).unwrap_or_default();
        if total != sum.to_string() {
            breaches.add(|| {
                format!(
                    "{}/{} has a running total of {total}, its trades sum to {sum}",
                    partner.0, partner.1
                )
            });
        }
    }
    for (mode, partner) in plain.keys() {
        breaches.add(|| format!("{mode}/{partner} has trades and no running total"));
    }
    Ok(breaches)
}

fn place(row: &SqliteRow) -> Result<Place, StoreError> {
    Ok((
        text(row, "mode")?,
        text(row, "partner_id")?,
        text(row, "asset")?,
    ))
}

fn shown((mode, partner, asset): &Place) -> String {
    format!("{mode}/{partner} {asset}")
}

fn text(row: &SqliteRow, column: &str) -> Result<String, StoreError> {
    row.try_get(column).map_err(errors::statement)
}

fn integer(row: &SqliteRow, column: &str) -> Result<i64, StoreError> {
    row.try_get(column).map_err(errors::statement)
}
