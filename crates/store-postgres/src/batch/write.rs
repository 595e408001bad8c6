//! Writes the trades that a batch opened, with one statement for all tables.

use std::collections::{BTreeMap, BTreeSet};

use crate::conn::Conn;
use kernel::{Asset, StoreResult, UpstreamName};
use partner_core::PartnerId;
use partner_core::idempotency::Scope;
use pools_core::batch::NewTrade;
use pools_core::ledger::{Account, Entry};
use pools_core::velocity::Velocity;
use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::Query;

use super::BatchContext;
use super::load::Loaded;
use crate::errors;
use crate::row::{Columns, column, key};

type Statement = Query<'static, Postgres, PgArguments>;

impl BatchContext {
    pub(super) async fn write(self, conn: &mut Conn, loaded: &Loaded) -> StoreResult<()> {
        let opened = loaded.state.opened.as_slice();
        let records = last_of_each_key(opened);
        let entries = entries(opened);
        let accounts = loaded.state.touched_accounts();
        let totals = totals(loaded);
        let credits = loaded.state.touched_commitments();
        let partners: BTreeSet<&str> = opened.iter().map(|one| one.partner.as_str()).collect();
        let expected = [
            ("quotes", opened.len()),
            ("trades", opened.len()),
            ("ledger_entries", entries.len()),
            ("accounts", accounts.len()),
            ("velocity", totals.len()),
            ("commitments", credits.len()),
            ("idempotency_keys", records.len()),
            ("books", partners.len()),
        ];
        let query = sqlx::query(WRITE)
            .bind(self.mode.as_str())
            .bind(self.now.millis())
            .bind(partners.into_iter().collect::<Vec<_>>());
        let query = bind_trades(query, opened);
        let query = bind_records(query, &records);
        let query = bind_entries(query, &entries);
        let query = bind_accounts(query, &accounts, &loaded.sequences);
        let query = query
            .bind(column(&totals, |(partner, _)| partner.as_str()))
            .bind(column(&totals, |(_, total)| total.total.to_string()))
            .bind(column(&totals, |(_, total)| total.floor.millis()))
            .bind(column(&credits, |(partner, ..)| partner.as_str()))
            .bind(column(&credits, |(_, asset, _)| asset.code()))
            .bind(column(&credits, |(.., total)| *total))
            .bind(column(opened, |one| {
                one.trade.engine.as_ref().map(UpstreamName::as_str)
            }));
        let row = query.fetch_one(conn).await.map_err(errors::statement)?;
        let row = Columns::new("books", &row);
        for (table, rows) in expected {
            errors::exactly(table, rows, row.count(table)?)?;
        }
        Ok(())
    }
}

/// The trades whose idempotency records are written. If several trades have one key, the last record counts.
fn last_of_each_key(opened: &[NewTrade]) -> Vec<&NewTrade> {
    let last: BTreeMap<&Scope, &NewTrade> = opened.iter().map(|one| (&one.scope, one)).collect();
    last.into_values().collect()
}

/// The ledger entries of the trades' reserves, with their partners.
fn entries(opened: &[NewTrade]) -> Vec<(&PartnerId, &Entry)> {
    opened
        .iter()
        .filter_map(|one| Some((&one.partner, one.entry.as_ref()?)))
        .collect()
}

/// The running totals. Totals that only dropped trades are written too, so that the next batch of a refused partner does not
/// drop them again.
fn totals(loaded: &Loaded) -> Vec<(&PartnerId, &Velocity)> {
    let slid = loaded
        .state
        .velocity
        .iter()
        .filter(|(partner, _)| loaded.slid.contains(*partner));
    let touched = loaded.state.touched_velocity();
    let totals: BTreeMap<_, _> = touched.into_iter().chain(slid).collect();
    totals.into_iter().collect()
}

fn bind_trades(query: Statement, opened: &[NewTrade]) -> Statement {
    query
        .bind(column(opened, |one| one.partner.as_str()))
        .bind(column(opened, |one| key(one.trade.quote)))
        .bind(column(opened, |one| key(one.trade.id)))
        .bind(column(opened, |one| {
            one.trade.reserved.map(|amount| amount.units())
        }))
}

fn bind_records(query: Statement, records: &[&NewTrade]) -> Statement {
    query
        .bind(column(records, |one| one.partner.as_str()))
        .bind(column(records, |one| one.scope.route.as_str()))
        .bind(column(records, |one| one.scope.key.as_str()))
        .bind(column(records, |one| one.answered.fingerprint.0.as_slice()))
        .bind(column(records, |one| key(one.trade.id)))
        .bind(column(records, |one| one.answered.expires_at.millis()))
}

fn bind_entries(query: Statement, entries: &[(&PartnerId, &Entry)]) -> Statement {
    let assets = column(entries, |(_, entry)| entry.transfer.amount.asset());
    query
        .bind(column(entries, |(partner, _)| partner.as_str()))
        .bind(column(entries, |(_, entry)| key(entry.id)))
        .bind(column(&assets, Asset::code))
        .bind(column(entries, |(_, entry)| entry.transfer.debit.as_str()))
        .bind(column(entries, |(_, entry)| entry.transfer.credit.as_str()))
        .bind(column(entries, |(_, entry)| entry.transfer.amount.units()))
        .bind(column(entries, |(_, entry)| entry.transfer.reason.as_str()))
        .bind(column(entries, |(_, entry)| {
            entry.mark.map(|mark| mark.sequence)
        }))
        .bind(column(entries, |(_, entry)| {
            entry.mark.map(|mark| mark.balance_after.units())
        }))
        .bind(column(entries, |(_, entry)| entry.reference.as_str()))
        .bind(column(entries, |(_, entry)| {
            entry.trade.map(|(trade, _)| key(trade))
        }))
        .bind(column(entries, |(_, entry)| {
            entry.trade.map(|(_, part)| part.as_str())
        }))
}

/// Binds the accounts after the batch, with their sequence numbers before it.
fn bind_accounts(
    query: Statement,
    accounts: &[(&PartnerId, &Account)],
    sequences: &BTreeMap<(PartnerId, Asset), i64>,
) -> Statement {
    let before = |(partner, account): &(&PartnerId, &Account)| {
        let place = ((*partner).clone(), account.asset());
        sequences.get(&place).copied().unwrap_or_default()
    };
    let assets = column(accounts, |(_, account)| account.asset());
    query
        .bind(column(accounts, |(partner, _)| partner.as_str()))
        .bind(column(&assets, Asset::code))
        .bind(column(accounts, before))
        .bind(column(accounts, |(_, account)| account.available.units()))
        .bind(column(accounts, |(_, account)| account.sequence))
}

/// Writes the batch and returns the number of rows written in each table. Each write repeats the preconditions of the decision.
///
/// The statement copies a trade's terms from the consumed quote. It overwrites an idempotency record only if the record has
/// expired or belongs to the same request; the batch may keep a record without an expiry for longer than a day. Each row has the mode, for the reason given at the batch's read.
pub(crate) const WRITE: &str = "WITH executed AS MATERIALIZED (
         SELECT $1::text AS mode, n.*
         FROM unnest($4::text[], $5::uuid[], $6::uuid[], $7::bigint[], $37::text[])
              AS n (partner_id, quote_id, trade_id, reserved, engine)
     ), touched AS MATERIALIZED (
         SELECT $1::text AS mode, n.*
         FROM unnest($26::text[], $27::text[], $28::bigint[], $29::bigint[], $30::bigint[])
              AS n (partner_id, asset, before, available, sequence)
     ), written AS MATERIALIZED (
         SELECT $1::text AS mode, n.* FROM unnest($3::text[]) AS n (partner_id)
     ), consumed AS (
         UPDATE quotes AS q SET consumed_at = $2
         FROM executed AS n
         WHERE q.mode = n.mode AND q.partner_id = n.partner_id AND q.id = n.quote_id
           AND q.consumed_at IS NULL AND q.rejected_at IS NULL AND $2 < q.expires_at
         RETURNING q.partner_id, n.trade_id, q.id, q.pool, q.side, q.network, q.fiat, q.crypto, q.rate, q.spread_bps,
                   q.fee_bps, q.notional, q.dest_address, q.dest_network, n.reserved, n.engine, q.mid
     ), opened AS (
         INSERT INTO trades (mode, partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps,
                             fee_bps, notional, dest_address, dest_network, reserved, status, created_at, engine,
                             mid)
         SELECT $1, c.partner_id, c.trade_id, c.id, c.pool, c.side, c.network, c.fiat, c.crypto, c.rate, c.spread_bps,
                c.fee_bps, c.notional, c.dest_address, c.dest_network, c.reserved, 'reserved', $2, c.engine,
                c.mid
         FROM consumed AS c
         RETURNING 1
     ), posted AS (
         INSERT INTO ledger_entries (mode, partner_id, id, asset, debit, credit, amount, reason, account_sequence,
                                     balance_after, reference, trade_id, part, created_at)
         SELECT $1, n.*, $2
         FROM unnest($14::text[], $15::uuid[], $16::text[], $17::text[], $18::text[], $19::bigint[], $20::text[],
                     $21::bigint[], $22::bigint[], $23::text[], $24::uuid[], $25::text[]) AS n
         RETURNING 1
     ), moved AS (
         UPDATE accounts AS a SET available = n.available, sequence = n.sequence
         FROM touched AS n
         WHERE a.mode = n.mode AND a.partner_id = n.partner_id AND a.asset = n.asset AND a.sequence = n.before
         RETURNING 1
     ), counted AS (
         INSERT INTO velocity (mode, partner_id, total, floor)
         SELECT $1, n.* FROM unnest($31::text[], $32::text[], $33::bigint[]) AS n
         ON CONFLICT (mode, partner_id) DO UPDATE SET total = excluded.total, floor = excluded.floor
         RETURNING 1
     ), committed AS (
         INSERT INTO commitments (mode, partner_id, asset, total)
         SELECT $1, n.* FROM unnest($34::text[], $35::text[], $36::bigint[]) AS n
         ON CONFLICT (mode, partner_id, asset) DO UPDATE SET total = excluded.total
         RETURNING 1
     ), answered AS (
         INSERT INTO idempotency_keys (mode, partner_id, route, key, fingerprint, trade_id, created_at, expires_at)
         SELECT $1, n.partner_id, n.route, n.key, n.fingerprint, n.trade_id, $2, n.expires_at
         FROM unnest($8::text[], $9::text[], $10::text[], $11::bytea[], $12::uuid[], $13::bigint[])
              AS n (partner_id, route, key, fingerprint, trade_id, expires_at)
         ON CONFLICT (mode, partner_id, route, key) DO UPDATE SET
             fingerprint = excluded.fingerprint, trade_id = excluded.trade_id, created_at = excluded.created_at,
             expires_at = excluded.expires_at
         WHERE CASE WHEN idempotency_keys.expires_at > idempotency_keys.created_at THEN idempotency_keys.expires_at
               ELSE idempotency_keys.created_at + 86400000 END <= $2
            OR idempotency_keys.fingerprint = excluded.fingerprint
         RETURNING 1
     ), kept AS (
         UPDATE books AS b SET at = $2
         FROM written AS n
         WHERE b.mode = n.mode AND b.partner_id = n.partner_id AND b.at <= $2
         RETURNING 1
     )
     SELECT (SELECT count(*) FROM consumed) AS quotes, (SELECT count(*) FROM opened) AS trades,
            (SELECT count(*) FROM posted) AS ledger_entries, (SELECT count(*) FROM moved) AS accounts,
            (SELECT count(*) FROM counted) AS velocity, (SELECT count(*) FROM committed) AS commitments,
            (SELECT count(*) FROM answered) AS idempotency_keys, (SELECT count(*) FROM kept) AS books";
