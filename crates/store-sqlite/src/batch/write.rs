//! Writes the trades that a batch opened, with their entries, balances and records.

use std::collections::BTreeMap;

use instruments::failpoint::around;
use kernel::{Asset, StoreResult, UpstreamName};
use partner_core::PartnerId;
use pools_core::batch::NewTrade;
use pools_core::ledger::Account;
use pools_core::velocity::Velocity;
use serde::Serialize;
use sqlx::SqliteConnection;

use super::BatchContext;
use super::load::Loaded;
use crate::row::{json, key};
use crate::{clock, errors};

impl BatchContext {
    pub(super) async fn write(
        self,
        conn: &mut SqliteConnection,
        loaded: &Loaded,
    ) -> StoreResult<()> {
        let opened = &loaded.state.opened;
        self.write_velocity(conn, loaded).await?;
        if opened.is_empty() {
            return Ok(());
        }
        let consumed: Vec<_> = opened.iter().map(consumed_row).collect();
        let consuming = self.exactly(conn, "quotes", CONSUME, &consumed);
        around("quote.consume", consuming).await?;
        let trades: Vec<_> = opened.iter().map(trade_row).collect();
        let opening = self.exactly(conn, "trades", OPEN, &trades);
        around("trade.insert", opening).await?;
        self.write_entries(conn, loaded).await?;
        self.write_contingent_credits(conn, loaded).await?;
        let records: Vec<_> = opened.iter().map(idempotency_row).collect();
        let recording = self.exactly(conn, "idempotency_keys", RECORD, &records);
        around("idempotency.insert", recording).await?;
        clock::put(conn, self.now).await
    }

    async fn write_entries(self, conn: &mut SqliteConnection, loaded: &Loaded) -> StoreResult<()> {
        let entries: Vec<_> = loaded.state.opened.iter().filter_map(entry_row).collect();
        if entries.is_empty() {
            return Ok(());
        }
        let posting = self.exactly(conn, "ledger_entries", POST, &entries);
        around("ledger.insert", posting).await?;
        let touched = loaded.state.touched_accounts();
        let accounts: Vec<_> = touched
            .iter()
            .map(|(partner, account)| account_row(partner, account, &loaded.sequences))
            .collect();
        let moving = self.exactly(conn, "accounts", BALANCE, &accounts);
        around("balance.update", moving).await
    }

    async fn write_contingent_credits(
        self,
        conn: &mut SqliteConnection,
        loaded: &Loaded,
    ) -> StoreResult<()> {
        let touched = loaded.state.touched_commitments();
        if touched.is_empty() {
            return Ok(());
        }
        let rows: Vec<_> = touched
            .iter()
            .map(|(partner, asset, total)| (partner.as_str(), asset.code(), total))
            .collect();
        self.exactly(conn, "commitments", CONTINGENT_CREDITS, &rows)
            .await
    }

    /// Also writes totals that only dropped trades, so that the next batch of a refused partner does not drop them again.
    async fn write_velocity(self, conn: &mut SqliteConnection, loaded: &Loaded) -> StoreResult<()> {
        let slid = loaded
            .state
            .velocity
            .iter()
            .filter(|(partner, _)| loaded.slid.contains(*partner));
        let touched = loaded.state.touched_velocity();
        let totals: BTreeMap<&PartnerId, &Velocity> = touched.into_iter().chain(slid).collect();
        if totals.is_empty() {
            return Ok(());
        }
        let rows: Vec<_> = totals
            .into_iter()
            .map(|(partner, velocity)| {
                (
                    partner.as_str(),
                    velocity.total.to_string(),
                    velocity.floor.millis(),
                )
            })
            .collect();
        self.exactly(conn, "velocity", TOTAL, &rows).await
    }

    /// Runs a statement and fails unless it writes exactly one row for each of `rows`.
    async fn exactly(
        self,
        conn: &mut SqliteConnection,
        table: &'static str,
        statement: &'static str,
        rows: &[impl Serialize],
    ) -> StoreResult<()> {
        let written = sqlx::query(statement)
            .bind(self.mode.as_str())
            .bind(json(&rows)?)
            .bind(self.now.millis())
            .execute(conn)
            .await
            .map_err(errors::statement)?
            .rows_affected();
        errors::exactly(table, rows.len(), written)
    }
}

// Each row is an array. Its statement, below, reads the columns by position.

fn consumed_row(opened: &NewTrade) -> impl Serialize {
    (opened.partner.as_str(), key(opened.trade.quote))
}

fn trade_row(opened: &NewTrade) -> impl Serialize {
    (
        opened.partner.as_str(),
        key(opened.trade.quote),
        key(opened.trade.id),
        opened.trade.reserved.map(|amount| amount.units()),
        opened.trade.created_at.millis(),
        opened.trade.engine.as_ref().map(UpstreamName::as_str),
    )
}

fn entry_row(opened: &NewTrade) -> Option<impl Serialize> {
    let entry = opened.entry.as_ref()?;
    Some((
        opened.partner.as_str(),
        key(entry.id),
        entry.transfer.amount.asset().code().to_owned(),
        entry.transfer.debit.as_str(),
        entry.transfer.credit.as_str(),
        entry.transfer.amount.units(),
        entry.transfer.reason.as_str(),
        entry.mark.map(|mark| mark.sequence),
        entry.mark.map(|mark| mark.balance_after.units()),
        entry.reference.as_str(),
        entry.trade.map(|(trade, _)| key(trade)),
        entry.trade.map(|(_, part)| part.as_str()),
        entry.created_at.millis(),
    ))
}

fn account_row<'o>(
    partner: &'o PartnerId,
    account: &Account,
    sequences: &BTreeMap<(PartnerId, Asset), i64>,
) -> impl Serialize + use<'o> {
    let key = (partner.clone(), account.asset());
    (
        partner.as_str(),
        account.asset().code().to_owned(),
        sequences.get(&key).copied().unwrap_or_default(),
        account.available.units(),
        account.sequence,
    )
}

fn idempotency_row(opened: &NewTrade) -> impl Serialize {
    (
        opened.partner.as_str(),
        opened.scope.route.as_str(),
        opened.scope.key.as_str(),
        hex(&opened.answered.fingerprint.0),
        key(opened.trade.id),
        opened.trade.created_at.millis(),
        opened.answered.expires_at.millis(),
    )
}

/// JSON has no bytes, so the statement decodes hex with `unhex`.
fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) const CONSUME: &str =
    "UPDATE quotes SET consumed_at = ?3
     WHERE mode = ?1 AND (partner_id, id) IN (SELECT j.value ->> 0, j.value ->> 1 FROM json_each(?2) AS j)
       AND consumed_at IS NULL AND rejected_at IS NULL AND ?3 < expires_at";

/// Copies the terms from the consumed quote inside the database.
pub(crate) const OPEN: &str =
    "INSERT INTO trades (mode, partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps,
                         fee_bps, notional, dest_address, dest_network, reserved, status, created_at, engine, mid)
     SELECT q.mode, q.partner_id, j.value ->> 2, q.id, q.pool, q.side, q.network, q.fiat, q.crypto, q.rate,
            q.spread_bps, q.fee_bps, q.notional, q.dest_address, q.dest_network, j.value ->> 3, 'reserved',
            j.value ->> 4, j.value ->> 5, q.mid
     FROM json_each(?2) AS j
     CROSS JOIN quotes AS q ON q.mode = ?1 AND q.partner_id = j.value ->> 0 AND q.id = j.value ->> 1
     WHERE q.consumed_at = ?3";

pub(crate) const POST: &str =
    "INSERT INTO ledger_entries (mode, partner_id, id, asset, debit, credit, amount, reason, account_sequence,
                                 balance_after, reference, trade_id, part, created_at)
     SELECT ?1, j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4, j.value ->> 5,
            j.value ->> 6, j.value ->> 7, j.value ->> 8, j.value ->> 9, j.value ->> 10, j.value ->> 11,
            j.value ->> 12
     FROM json_each(?2) AS j";

/// Updates the accounts whose sequence number is unchanged since the batch was loaded. It is written as an upsert, because
/// SQLite would run an `UPDATE` with a scan of all accounts for each row.
pub(crate) const BALANCE: &str =
    "INSERT INTO accounts (mode, partner_id, asset, available, sequence)
     SELECT a.mode, a.partner_id, a.asset, j.value ->> 3, j.value ->> 4
     FROM json_each(?2) AS j
     CROSS JOIN accounts AS a ON a.mode = ?1 AND a.partner_id = j.value ->> 0 AND a.asset = j.value ->> 1
          AND a.sequence = j.value ->> 2
     WHERE true
     ON CONFLICT (mode, partner_id, asset) DO UPDATE SET
         available = excluded.available, sequence = excluded.sequence";

pub(crate) const CONTINGENT_CREDITS: &str =
    "INSERT INTO commitments (mode, partner_id, asset, total)
     SELECT ?1, j.value ->> 0, j.value ->> 1, j.value ->> 2 FROM json_each(?2) AS j
     WHERE true
     ON CONFLICT (mode, partner_id, asset) DO UPDATE SET total = excluded.total";

pub(crate) const TOTAL: &str = "INSERT INTO velocity (mode, partner_id, total, floor)
     SELECT ?1, j.value ->> 0, j.value ->> 1, j.value ->> 2 FROM json_each(?2) AS j
     WHERE true
     ON CONFLICT (mode, partner_id) DO UPDATE SET total = excluded.total, floor = excluded.floor";

/// Overwrites a record only if it has expired or belongs to the same request. The batch has checked this already; a mistake
/// would show as a wrong number of rows. The batch may keep a record without an expiry for longer than a day.
pub(crate) const RECORD: &str =
    "INSERT INTO idempotency_keys (mode, partner_id, route, key, fingerprint, trade_id, created_at, expires_at)
     SELECT ?1, j.value ->> 0, j.value ->> 1, j.value ->> 2, unhex(j.value ->> 3), j.value ->> 4, j.value ->> 5,
            j.value ->> 6
     FROM json_each(?2) AS j
     WHERE true
     ON CONFLICT (mode, partner_id, route, key) DO UPDATE SET
         fingerprint = excluded.fingerprint, trade_id = excluded.trade_id, created_at = excluded.created_at,
         expires_at = excluded.expires_at
     WHERE CASE WHEN idempotency_keys.expires_at > idempotency_keys.created_at THEN idempotency_keys.expires_at
           ELSE idempotency_keys.created_at + 86400000 END <= ?3
        OR idempotency_keys.fingerprint = excluded.fingerprint";
