//! Writes the trades that a batch opened, with one statement for all tables.

use std::collections::{BTreeMap, BTreeSet};

use crate::conn::Conn;
use kernel::{Asset, StoreError};
use partner_core::PartnerId;
use partner_core::idempotency::Scope;
use pools_core::batch::NewTrade;
use pools_core::engine::EngineName;
use pools_core::ledger::{Account, Entry};
use pools_core::velocity::Velocity;
use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::Query;
use sqlx::types::Uuid;

use super::BatchContext;
use super::load::Loaded;
use crate::errors;
use crate::row::{Columns, key};

type Statement<'q> = Query<'q, Postgres, PgArguments>;

impl BatchContext {
    pub(super) async fn write(self, conn: &mut Conn, loaded: &Loaded) -> Result<(), StoreError> {
        let trades = Trades::of(&loaded.state.opened);
        let records = IdempotencyRecords::of(&loaded.state.opened);
        let entries = Entries::of(&loaded.state.opened);
        let accounts = Accounts::of(&loaded.state.touched_accounts(), &loaded.sequences);
        let totals = Totals::of(loaded);
        let credits = ContingentCredits::of(&loaded.state.touched_commitments());
        let partners: BTreeSet<&str> = trades.partners.iter().copied().collect();
        let expected = [
            ("quotes", trades.ids.len()),
            ("trades", trades.ids.len()),
            ("ledger_entries", entries.ids.len()),
            ("accounts", accounts.assets.len()),
            ("velocity", totals.totals.len()),
            ("commitments", credits.assets.len()),
            ("idempotency_keys", records.keys.len()),
            ("books", partners.len()),
        ];
        let query = sqlx::query(WRITE)
            .bind(self.mode.as_str())
            .bind(self.now.millis())
            .bind(partners.into_iter().collect::<Vec<_>>());
        let (trades, engines) = trades.and_engines();
        let query = entries.bind(records.bind(trades.bind(query)));
        let query = credits.bind(totals.bind(accounts.bind(query)));
        let query = query.bind(engines);
        let row = query.fetch_one(conn).await.map_err(errors::statement)?;
        let row = Columns::new("books", &row);
        for (table, rows) in expected {
            errors::exactly(table, rows, row.count(table)?)?;
        }
        Ok(())
    }
}

/// The opened trades with their quotes.
#[derive(Default)]
struct Trades<'o> {
    partners: Vec<&'o str>,
    quotes: Vec<Uuid>,
    ids: Vec<Uuid>,
    reserved: Vec<Option<i64>>,
    engines: Vec<Option<&'o str>>,
}

impl<'o> Trades<'o> {
    fn of(opened: &'o [NewTrade]) -> Self {
        let mut columns = Self::default();
        for one in opened {
            columns.partners.push(one.partner.as_str());
            columns.quotes.push(key(one.trade.quote));
            columns.ids.push(key(one.trade.id));
            let reserved = one.trade.reserved.map(|amount| amount.units());
            columns.reserved.push(reserved);
            let engine = one.trade.engine.as_ref();
            columns.engines.push(engine.map(EngineName::as_str));
        }
        columns
    }

    /// Splits off the engines, which are the statement's last parameter.
    fn and_engines(mut self) -> (Self, Vec<Option<&'o str>>) {
        let engines = std::mem::take(&mut self.engines);
        (self, engines)
    }

    fn bind(self, query: Statement<'o>) -> Statement<'o> {
        query
            .bind(self.partners)
            .bind(self.quotes)
            .bind(self.ids)
            .bind(self.reserved)
    }
}

/// The idempotency records. If several trades have one key, the last record counts.
#[derive(Default)]
struct IdempotencyRecords<'o> {
    partners: Vec<&'o str>,
    routes: Vec<&'o str>,
    keys: Vec<&'o str>,
    fingerprints: Vec<&'o [u8]>,
    trades: Vec<Uuid>,
    until: Vec<i64>,
}

impl<'o> IdempotencyRecords<'o> {
    fn of(opened: &'o [NewTrade]) -> Self {
        let last: BTreeMap<&Scope, &NewTrade> =
            opened.iter().map(|one| (&one.scope, one)).collect();
        let mut columns = Self::default();
        for (scope, one) in last {
            columns.partners.push(one.partner.as_str());
            columns.routes.push(scope.route.as_str());
            columns.keys.push(scope.key.as_str());
            columns
                .fingerprints
                .push(one.answered.fingerprint.0.as_slice());
            columns.until.push(one.answered.expires_at.millis());
            columns.trades.push(key(one.trade.id));
        }
        columns
    }

    fn bind(self, query: Statement<'o>) -> Statement<'o> {
        query
            .bind(self.partners)
            .bind(self.routes)
            .bind(self.keys)
            .bind(self.fingerprints)
            .bind(self.trades)
            .bind(self.until)
    }
}

/// The ledger entries of the trades' reserves.
#[derive(Default)]
struct Entries<'o> {
    partners: Vec<&'o str>,
    ids: Vec<Uuid>,
    assets: Vec<String>,
    debits: Vec<&'static str>,
    credits: Vec<&'static str>,
    amounts: Vec<i64>,
    reasons: Vec<&'static str>,
    sequences: Vec<Option<i64>>,
    balances: Vec<Option<i64>>,
    references: Vec<&'o str>,
    trades: Vec<Option<Uuid>>,
    parts: Vec<Option<&'static str>>,
}

impl<'o> Entries<'o> {
    fn of(opened: &'o [NewTrade]) -> Self {
        let mut columns = Self::default();
        for one in opened {
            if let Some(entry) = &one.entry {
                columns.partners.push(one.partner.as_str());
                columns.add(entry);
            }
        }
        columns
    }

    fn add(&mut self, entry: &'o Entry) {
        let transfer = &entry.transfer;
        self.ids.push(key(entry.id));
        self.assets.push(transfer.amount.asset().code().to_owned());
        self.debits.push(transfer.debit.as_str());
        self.credits.push(transfer.credit.as_str());
        self.amounts.push(transfer.amount.units());
        self.reasons.push(transfer.reason.as_str());
        self.sequences.push(entry.mark.map(|mark| mark.sequence));
        self.balances
            .push(entry.mark.map(|mark| mark.balance_after.units()));
        self.references.push(entry.reference.as_str());
        self.trades.push(entry.trade.map(|(trade, _)| key(trade)));
        self.parts.push(entry.trade.map(|(_, part)| part.as_str()));
    }

    fn bind(self, query: Statement<'o>) -> Statement<'o> {
        query
            .bind(self.partners)
            .bind(self.ids)
            .bind(self.assets)
            .bind(self.debits)
            .bind(self.credits)
            .bind(self.amounts)
            .bind(self.reasons)
            .bind(self.sequences)
            .bind(self.balances)
            .bind(self.references)
            .bind(self.trades)
            .bind(self.parts)
    }
}

/// The accounts after the batch, with their sequence numbers before it.
#[derive(Default)]
struct Accounts<'o> {
    partners: Vec<&'o str>,
    assets: Vec<String>,
    before: Vec<i64>,
    available: Vec<i64>,
    sequences: Vec<i64>,
}

impl<'o> Accounts<'o> {
    fn of(
        touched: &[(&'o PartnerId, &Account)],
        sequences: &BTreeMap<(PartnerId, Asset), i64>,
    ) -> Self {
        let mut columns = Self::default();
        for (partner, account) in touched {
            let place = ((*partner).clone(), account.asset());
            let before = sequences.get(&place).copied().unwrap_or_default();
            columns.partners.push(partner.as_str());
            columns.assets.push(account.asset().code().to_owned());
            columns.before.push(before);
            columns.available.push(account.available.units());
            columns.sequences.push(account.sequence);
        }
        columns
    }

    fn bind(self, query: Statement<'o>) -> Statement<'o> {
        query
            .bind(self.partners)
            .bind(self.assets)
            .bind(self.before)
            .bind(self.available)
            .bind(self.sequences)
    }
}

/// The running totals. Totals that only dropped trades are written too, so that the next batch of a refused partner does not
/// drop them again.
#[derive(Default)]
struct Totals<'o> {
    partners: Vec<&'o str>,
    totals: Vec<String>,
    floors: Vec<i64>,
}

impl<'o> Totals<'o> {
    fn of(loaded: &'o Loaded) -> Self {
        let slid = loaded
            .state
            .velocity
            .iter()
            .filter(|(partner, _)| loaded.slid.contains(*partner));
        let touched = loaded.state.touched_velocity();
        let totals: BTreeMap<&PartnerId, &Velocity> = touched.into_iter().chain(slid).collect();
        let mut columns = Self::default();
        for (partner, velocity) in totals {
            columns.partners.push(partner.as_str());
            columns.totals.push(velocity.total.to_string());
            columns.floors.push(velocity.floor.millis());
        }
        columns
    }

    fn bind(self, query: Statement<'o>) -> Statement<'o> {
        query
            .bind(self.partners)
            .bind(self.totals)
            .bind(self.floors)
    }
}

/// The contingent credits (table `commitments`) of accounts.
#[derive(Default)]
struct ContingentCredits<'o> {
    partners: Vec<&'o str>,
    assets: Vec<String>,
    totals: Vec<i64>,
}

impl<'o> ContingentCredits<'o> {
    fn of(touched: &[(&'o PartnerId, Asset, i64)]) -> Self {
        let mut columns = Self::default();
        for (partner, asset, total) in touched {
            columns.partners.push(partner.as_str());
            columns.assets.push(asset.code().to_owned());
            columns.totals.push(*total);
        }
        columns
    }

    fn bind(self, query: Statement<'o>) -> Statement<'o> {
        query
            .bind(self.partners)
            .bind(self.assets)
            .bind(self.totals)
    }
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
