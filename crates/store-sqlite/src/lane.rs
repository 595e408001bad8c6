//! The batched writes: one transaction, and one statement per table, whatever the batch's size.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use instruments::store::Transaction as Measured;
use kernel::{Asset, Mode, StoreError, Timestamp};
use partner_core::PartnerId;
use partner_core::idempotency::Scope;
use pools_core::books::{Answered, Books, Command, Opened, Outcome, Refusal};
use pools_core::ledger::Account;
use pools_core::ports::{DecideBatch, NewQuote, QuoteBooks, TransactBooks};
use pools_core::quote::{Quote, QuoteId};
use pools_core::trade::Trade;
use pools_core::velocity::{self, Velocity};
use serde::Serialize;
use sqlx::SqliteConnection;

use crate::access::names;
use crate::open::Inner;
use crate::row::{Columns, json, key};
use crate::velocity::velocity_of;
use crate::{SqliteStore, errors, idempotency, ledger, quotes, trades};

#[async_trait]
impl QuoteBooks for SqliteStore {
    async fn quotes_open(&self, batch: &[NewQuote]) -> Result<Vec<Quote>, StoreError> {
        let mut tx = self.inner.write().await?;
        let measured = Measured::begin("quotes_open");
        let opened = quotes::insert_all(&mut tx, batch, self.inner.clock.now()).await?;
        measured
            .commit(async { tx.commit().await.map_err(errors::commit) })
            .await?;
        Ok(opened)
    }
}

#[async_trait]
impl TransactBooks for SqliteStore {
    async fn transact(
        &self,
        batch: &[Command],
        decide: DecideBatch,
    ) -> Result<Vec<Result<Outcome, Refusal>>, StoreError> {
        let Some(mode) = one_mode(batch)? else {
            return Ok(Vec::new());
        };
        // The writer's lock is everybody's lock: from here on nothing else changes.
        let mut tx = self.inner.write().await?;
        let mut measured = Measured::begin("transact");
        let lane = Lane {
            mode,
            now: self.inner.clock.now(),
        };
        let mut loaded = lane.load(&self.inner, &mut tx, batch).await?;
        let outcomes = decide(&mut loaded.books, batch, lane.now);
        lane.write(&mut tx, &loaded).await?;
        measured.step("none", "reserved", loaded.books.opened.len());
        measured
            .commit(async { tx.commit().await.map_err(errors::commit) })
            .await?;
        Ok(outcomes)
    }
}

/// A process runs in one mode, so a batch has one; the books know partners by their name alone.
fn one_mode(batch: &[Command]) -> Result<Option<Mode>, StoreError> {
    let modes: BTreeSet<Mode> = batch
        .iter()
        .map(|command| command.scope.tenant.mode)
        .collect();
    if modes.len() > 1 {
        return Err(StoreError::unexpected("a batch of commands of both modes"));
    }
    Ok(modes.first().copied())
}

#[derive(Clone, Copy)]
struct Lane {
    mode: Mode,
    now: Timestamp,
}

/// The books, and what the writes repeat of the state they were decided on.
struct Loaded {
    books: Books,
    /// The sequence numbers the accounts had.
    sequences: BTreeMap<(PartnerId, Asset), i64>,
    /// Partners whose running total has moved with the window.
    slid: BTreeSet<PartnerId>,
}

// ---------------------------------------------------------------------------------------------
// Loading
// ---------------------------------------------------------------------------------------------

/// Names a quote of a partner in a set-based statement.
#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
struct QuoteKey<'c> {
    partner: &'c str,
    quote: String,
}

#[derive(Serialize)]
struct ScopeKey<'c> {
    partner: &'c str,
    route: &'c str,
    key: &'c str,
}

#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
struct AccountKey<'c> {
    partner: &'c str,
    asset: String,
}

impl Lane {
    async fn load(
        self,
        inner: &Inner,
        conn: &mut SqliteConnection,
        batch: &[Command],
    ) -> Result<Loaded, StoreError> {
        let keys = batch.iter().map(|command| command.key).collect();
        let asked = self.quote_keys(batch)?;
        let accounts = self.accounts(conn, batch).await?;
        let (velocity, slid) = self.velocity(inner, conn, batch).await?;
        let books = Books {
            access: inner.access_of(conn, self.mode, &keys).await?,
            answered: self.answered(conn, batch).await?,
            quotes: self.quotes(conn, &asked).await?,
            trades: self.trades(conn, &asked).await?,
            accounts,
            velocity,
            window: inner.options.velocity_window,
            idempotency_ttl: inner.options.idempotency_ttl,
            opened: Vec::new(),
        };
        let sequences = books
            .accounts
            .iter()
            .map(|(key, account)| (key.clone(), account.sequence))
            .collect();
        Ok(Loaded {
            books,
            sequences,
            slid,
        })
    }

    /// The quotes named, as far as they can be of their partner: an id of the other mode is not.
    fn quote_keys(self, batch: &[Command]) -> Result<String, StoreError> {
        let keys: BTreeSet<QuoteKey<'_>> = batch
            .iter()
            .filter(|command| command.quote.mode() == self.mode)
            .map(|command| QuoteKey {
                partner: command.scope.tenant.partner.as_str(),
                quote: key(command.quote),
            })
            .collect();
        json(&keys)
    }

    async fn answered(
        self,
        conn: &mut SqliteConnection,
        batch: &[Command],
    ) -> Result<BTreeMap<Scope, Answered>, StoreError> {
        let scopes: Vec<ScopeKey<'_>> = batch
            .iter()
            .map(|command| ScopeKey {
                partner: command.scope.tenant.partner.as_str(),
                route: &command.scope.route,
                key: command.scope.key.as_str(),
            })
            .collect();
        let rows = sqlx::query(ANSWERED)
            .bind(self.mode.as_str())
            .bind(json(&scopes)?)
            .fetch_all(conn)
            .await
            .map_err(errors::statement)?;
        let mut answered = BTreeMap::new();
        for row in &rows {
            let row = Columns::new("idempotency_keys", row);
            let place = usize::try_from(row.integer("place")?).map_err(|_| row.bad("place"))?;
            let command = batch.get(place).ok_or_else(|| row.bad("place"))?;
            answered.insert(command.scope.clone(), idempotency::answered(&row)?);
        }
        Ok(answered)
    }

    async fn quotes(
        self,
        conn: &mut SqliteConnection,
        asked: &str,
    ) -> Result<BTreeMap<(PartnerId, QuoteId), Quote>, StoreError> {
        let rows = sqlx::query(QUOTES)
            .bind(self.mode.as_str())
            .bind(asked)
            .fetch_all(conn)
            .await
            .map_err(errors::statement)?;
        rows.iter()
            .map(|row| {
                let row = Columns::new("quotes", row);
                let quote = quotes::quote(&row, self.mode)?;
                Ok(((row.partner()?, quote.id), quote))
            })
            .collect()
    }

    async fn trades(
        self,
        conn: &mut SqliteConnection,
        asked: &str,
    ) -> Result<BTreeMap<(PartnerId, QuoteId), Trade>, StoreError> {
        let rows = sqlx::query(TRADES)
            .bind(self.mode.as_str())
            .bind(asked)
            .fetch_all(conn)
            .await
            .map_err(errors::statement)?;
        rows.iter()
            .map(|row| {
                let trade = trades::trade(row, self.mode)?;
                Ok(((Columns::new("trades", row).partner()?, trade.quote), trade))
            })
            .collect()
    }

    async fn accounts(
        self,
        conn: &mut SqliteConnection,
        batch: &[Command],
    ) -> Result<BTreeMap<(PartnerId, Asset), Account>, StoreError> {
        let keys: BTreeSet<AccountKey<'_>> = batch
            .iter()
            .flat_map(|command| {
                let partner = command.scope.tenant.partner.as_str();
                [command.pool.fiat(), command.pool.crypto()].map(|asset| AccountKey {
                    partner,
                    asset: asset.code().to_owned(),
                })
            })
            .collect();
        let rows = sqlx::query(ACCOUNTS)
            .bind(self.mode.as_str())
            .bind(json(&keys)?)
            .fetch_all(conn)
            .await
            .map_err(errors::statement)?;
        rows.iter()
            .map(|row| {
                let row = Columns::new("accounts", row);
                let account = ledger::account_of(&row)?;
                Ok(((row.partner()?, account.asset()), account))
            })
            .collect()
    }

    /// The running totals, moved to the present window with what has left it or come back to it.
    async fn velocity(
        self,
        inner: &Inner,
        conn: &mut SqliteConnection,
        batch: &[Command],
    ) -> Result<(BTreeMap<PartnerId, Velocity>, BTreeSet<PartnerId>), StoreError> {
        let cutoff = velocity::cutoff(self.now, inner.options.velocity_window);
        let partners = json(&names(
            batch.iter().map(|command| &command.scope.tenant.partner),
        ))?;
        let rows = sqlx::query(VELOCITY)
            .bind(self.mode.as_str())
            .bind(&partners)
            .fetch_all(&mut *conn)
            .await
            .map_err(errors::statement)?;
        let mut crossed = self.crossed(conn, &partners, cutoff).await?;
        let slid = crossed.keys().cloned().collect();
        let mut totals = BTreeMap::new();
        for row in &rows {
            let row = Columns::new("velocity", row);
            let (partner, total) = (row.partner()?, velocity_of(&row)?);
            let between = crossed.remove(&partner).unwrap_or_default();
            totals.insert(partner, total.slide(cutoff, &between));
        }
        Ok((totals, slid))
    }

    /// The notionals of the counting trades between each partner's floor and the cutoff.
    async fn crossed(
        self,
        conn: &mut SqliteConnection,
        partners: &str,
        cutoff: Timestamp,
    ) -> Result<BTreeMap<PartnerId, Vec<i64>>, StoreError> {
        let rows = sqlx::query(CROSSED)
            .bind(self.mode.as_str())
            .bind(partners)
            .bind(cutoff.millis())
            .fetch_all(conn)
            .await
            .map_err(errors::statement)?;
        let mut crossed: BTreeMap<PartnerId, Vec<i64>> = BTreeMap::new();
        for row in &rows {
            let row = Columns::new("trades", row);
            crossed
                .entry(row.partner()?)
                .or_default()
                .push(row.integer("notional")?);
        }
        Ok(crossed)
    }
}

const ANSWERED: &str =
    "SELECT j.key AS place, i.partner_id, i.key, i.fingerprint, i.created_at AS answered_at
     FROM json_each(?2) AS j
     CROSS JOIN idempotency_keys AS i ON i.mode = ?1 AND i.partner_id = j.value ->> 'partner'
          AND i.route = j.value ->> 'route' AND i.key = j.value ->> 'key'";

const QUOTES: &str =
    "SELECT q.partner_id, q.id, q.pool, q.side, q.network, q.fiat, q.crypto, q.rate, q.spread_bps, q.fee_bps,
            q.notional, q.dest_address, q.dest_network, q.created_at, q.expires_at, q.consumed_at, q.rejected_at
     FROM json_each(?2) AS j
     CROSS JOIN quotes AS q ON q.mode = ?1 AND q.partner_id = j.value ->> 'partner' AND q.id = j.value ->> 'quote'";

const TRADES: &str =
    "SELECT t.partner_id, t.id, t.quote_id, t.pool, t.side, t.network, t.fiat, t.crypto, t.rate, t.spread_bps,
            t.fee_bps, t.notional, t.dest_address, t.dest_network, t.reserved, t.status, t.created_at, t.settled_at,
            t.fill, t.released_at, t.failed_at, t.returned_at, t.attempts, t.lease_token, t.lease_until
     FROM json_each(?2) AS j
     CROSS JOIN trades AS t
          ON t.mode = ?1 AND t.partner_id = j.value ->> 'partner' AND t.quote_id = j.value ->> 'quote'";

const ACCOUNTS: &str =
    "SELECT a.partner_id, a.asset, a.available, a.sequence
     FROM json_each(?2) AS j
     CROSS JOIN accounts AS a ON a.mode = ?1 AND a.partner_id = j.value ->> 'partner' AND a.asset = j.value ->> 'asset'";

const VELOCITY: &str = "SELECT v.partner_id, v.total, v.floor
     FROM json_each(?2) AS j
     CROSS JOIN velocity AS v ON v.mode = ?1 AND v.partner_id = j.value";

const CROSSED: &str = "SELECT t.partner_id, t.notional
     FROM json_each(?2) AS j
     CROSS JOIN velocity AS v ON v.mode = ?1 AND v.partner_id = j.value
     CROSS JOIN trades AS t ON t.mode = ?1 AND t.partner_id = v.partner_id
          AND t.created_at > min(v.floor, ?3) AND t.created_at <= max(v.floor, ?3)
     WHERE t.status NOT IN ('released', 'failed')";

// ---------------------------------------------------------------------------------------------
// Writing
// ---------------------------------------------------------------------------------------------

#[derive(Serialize)]
struct TradeRow<'o> {
    partner: &'o str,
    id: String,
    quote: String,
    reserved: Option<i64>,
    at: i64,
}

#[derive(Serialize)]
struct EntryRow<'o> {
    partner: &'o str,
    id: String,
    asset: String,
    debit: &'static str,
    credit: &'static str,
    amount: i64,
    reason: &'static str,
    sequence: Option<i64>,
    balance: Option<i64>,
    reference: &'o str,
    trade: Option<String>,
    part: Option<&'static str>,
    at: i64,
}

#[derive(Serialize)]
struct AccountRow<'o> {
    partner: &'o str,
    asset: String,
    available: i64,
    sequence: i64,
    before: i64,
}

#[derive(Serialize)]
struct VelocityRow<'o> {
    partner: &'o str,
    total: String,
    floor: i64,
}

#[derive(Serialize)]
struct AnsweredRow<'o> {
    partner: &'o str,
    route: &'o str,
    key: &'o str,
    fingerprint: String,
    trade: String,
    at: i64,
}

impl Lane {
    async fn write(self, conn: &mut SqliteConnection, loaded: &Loaded) -> Result<(), StoreError> {
        let books = &loaded.books;
        self.write_velocity(conn, loaded).await?;
        if books.opened.is_empty() {
            return Ok(());
        }
        let trades: Vec<TradeRow<'_>> = books.opened.iter().map(trade_row).collect();
        let trades = json(&trades)?;
        let opened = books.opened.len();
        self.exactly(conn, "quotes", CONSUME, &trades, opened)
            .await?;
        self.exactly(conn, "trades", OPEN, &trades, opened).await?;
        self.write_entries(conn, loaded).await?;
        let answered: Vec<AnsweredRow<'_>> = books.opened.iter().map(answered_row).collect();
        self.exactly(conn, "idempotency_keys", ANSWER, &json(&answered)?, opened)
            .await
    }

    async fn write_entries(
        self,
        conn: &mut SqliteConnection,
        loaded: &Loaded,
    ) -> Result<(), StoreError> {
        let entries: Vec<EntryRow<'_>> = loaded.books.opened.iter().filter_map(entry_row).collect();
        if entries.is_empty() {
            return Ok(());
        }
        self.exactly(
            conn,
            "ledger_entries",
            POST,
            &json(&entries)?,
            entries.len(),
        )
        .await?;
        let touched = loaded.books.touched_accounts();
        let accounts: Vec<AccountRow<'_>> = touched
            .iter()
            .map(|(partner, account)| account_row(partner, account, &loaded.sequences))
            .collect();
        self.exactly(conn, "accounts", BALANCE, &json(&accounts)?, accounts.len())
            .await
    }

    /// Totals that only moved with the window are kept too, so that no trade is subtracted twice
    /// over by partners who are refused again and again.
    async fn write_velocity(
        self,
        conn: &mut SqliteConnection,
        loaded: &Loaded,
    ) -> Result<(), StoreError> {
        let touched = loaded.books.touched_velocity();
        let slid = loaded
            .books
            .velocity
            .iter()
            .filter(|(partner, _)| loaded.slid.contains(*partner));
        let rows: BTreeMap<&PartnerId, VelocityRow<'_>> = touched
            .into_iter()
            .chain(slid)
            .map(|(partner, velocity)| (partner, velocity_row(partner, velocity)))
            .collect();
        if rows.is_empty() {
            return Ok(());
        }
        let rows: Vec<VelocityRow<'_>> = rows.into_values().collect();
        self.exactly(conn, "velocity", TOTAL, &json(&rows)?, rows.len())
            .await
    }

    /// Runs a statement that must write so many rows, no more and no less.
    async fn exactly(
        self,
        conn: &mut SqliteConnection,
        table: &'static str,
        statement: &'static str,
        rows: &str,
        expected: usize,
    ) -> Result<(), StoreError> {
        let written = sqlx::query(statement)
            .bind(self.mode.as_str())
            .bind(rows)
            .bind(self.now.millis())
            .execute(conn)
            .await
            .map_err(errors::statement)?
            .rows_affected();
        if usize::try_from(written) == Ok(expected) {
            Ok(())
        } else {
            Err(errors::rows(table, expected, written))
        }
    }
}

fn trade_row(opened: &Opened) -> TradeRow<'_> {
    TradeRow {
        partner: opened.partner.as_str(),
        id: key(opened.trade.id),
        quote: key(opened.trade.quote),
        reserved: opened.trade.reserved.map(|amount| amount.units()),
        at: opened.trade.created_at.millis(),
    }
}

fn entry_row(opened: &Opened) -> Option<EntryRow<'_>> {
    let entry = opened.entry.as_ref()?;
    Some(EntryRow {
        partner: opened.partner.as_str(),
        id: key(entry.id),
        asset: entry.transfer.amount.asset().code().to_owned(),
        debit: entry.transfer.debit.as_str(),
        credit: entry.transfer.credit.as_str(),
        amount: entry.transfer.amount.units(),
        reason: entry.transfer.reason.as_str(),
        sequence: entry.mark.map(|mark| mark.sequence),
        balance: entry.mark.map(|mark| mark.balance_after.units()),
        reference: &entry.reference,
        trade: entry.trade.map(|(trade, _)| key(trade)),
        part: entry.trade.map(|(_, part)| part.as_str()),
        at: entry.created_at.millis(),
    })
}

fn account_row<'o>(
    partner: &'o PartnerId,
    account: &Account,
    sequences: &BTreeMap<(PartnerId, Asset), i64>,
) -> AccountRow<'o> {
    AccountRow {
        partner: partner.as_str(),
        asset: account.asset().code().to_owned(),
        available: account.available.units(),
        sequence: account.sequence,
        before: sequences
            .get(&(partner.clone(), account.asset()))
            .copied()
            .unwrap_or_default(),
    }
}

fn velocity_row<'o>(partner: &'o PartnerId, velocity: &Velocity) -> VelocityRow<'o> {
    VelocityRow {
        partner: partner.as_str(),
        total: velocity.total.to_string(),
        floor: velocity.floor.millis(),
    }
}

fn answered_row(opened: &Opened) -> AnsweredRow<'_> {
    AnsweredRow {
        partner: opened.partner.as_str(),
        route: &opened.scope.route,
        key: opened.scope.key.as_str(),
        fingerprint: hex(&opened.fingerprint.0),
        trade: key(opened.trade.id),
        at: opened.trade.created_at.millis(),
    }
}

/// JSON has no bytes; the statement turns them back.
fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const CONSUME: &str =
    "UPDATE quotes SET consumed_at = ?3
     WHERE mode = ?1
       AND (partner_id, id) IN (SELECT j.value ->> 'partner', j.value ->> 'quote' FROM json_each(?2) AS j)
       AND consumed_at IS NULL AND rejected_at IS NULL AND ?3 < expires_at";

/// The terms are copied from the quote that was just consumed, inside the database.
const OPEN: &str =
    "INSERT INTO trades (mode, partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps,
                         fee_bps, notional, dest_address, dest_network, reserved, status, created_at)
     SELECT q.mode, q.partner_id, j.value ->> 'id', q.id, q.pool, q.side, q.network, q.fiat, q.crypto, q.rate,
            q.spread_bps, q.fee_bps, q.notional, q.dest_address, q.dest_network, j.value ->> 'reserved', 'reserved',
            j.value ->> 'at'
     FROM json_each(?2) AS j
     CROSS JOIN quotes AS q ON q.mode = ?1 AND q.partner_id = j.value ->> 'partner' AND q.id = j.value ->> 'quote'
     WHERE q.consumed_at = ?3";

const POST: &str =
    "INSERT INTO ledger_entries (mode, partner_id, id, asset, debit, credit, amount, reason, account_sequence,
                                 balance_after, reference, trade_id, part, created_at)
     SELECT ?1, j.value ->> 'partner', j.value ->> 'id', j.value ->> 'asset', j.value ->> 'debit',
            j.value ->> 'credit', j.value ->> 'amount', j.value ->> 'reason', j.value ->> 'sequence',
            j.value ->> 'balance', j.value ->> 'reference', j.value ->> 'trade', j.value ->> 'part', j.value ->> 'at'
     FROM json_each(?2) AS j";

/// Selects the accounts that still are as the rules saw them, and meets each as a conflict: said
/// as an UPDATE, the planner would go through every account for every row.
const BALANCE: &str = "INSERT INTO accounts (mode, partner_id, asset, available, sequence)
     SELECT a.mode, a.partner_id, a.asset, j.value ->> 'available', j.value ->> 'sequence'
     FROM json_each(?2) AS j
     CROSS JOIN accounts AS a ON a.mode = ?1 AND a.partner_id = j.value ->> 'partner'
          AND a.asset = j.value ->> 'asset' AND a.sequence = j.value ->> 'before'
     WHERE true
     ON CONFLICT (mode, partner_id, asset) DO UPDATE SET
         available = excluded.available, sequence = excluded.sequence";

const TOTAL: &str =
    "INSERT INTO velocity (mode, partner_id, total, floor)
     SELECT ?1, j.value ->> 'partner', j.value ->> 'total', j.value ->> 'floor' FROM json_each(?2) AS j
     WHERE true
     ON CONFLICT (mode, partner_id) DO UPDATE SET total = excluded.total, floor = excluded.floor";

/// Only a record that the rules let pass is overwritten: one that has expired, or one for the
/// same request.
const ANSWER: &str =
    "INSERT INTO idempotency_keys (mode, partner_id, route, key, fingerprint, trade_id, created_at)
     SELECT ?1, j.value ->> 'partner', j.value ->> 'route', j.value ->> 'key', unhex(j.value ->> 'fingerprint'),
            j.value ->> 'trade', j.value ->> 'at'
     FROM json_each(?2) AS j
     WHERE true
     ON CONFLICT (mode, partner_id, route, key) DO UPDATE SET
         fingerprint = excluded.fingerprint, trade_id = excluded.trade_id, created_at = excluded.created_at";
