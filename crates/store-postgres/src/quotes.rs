//! Inserts quotes.

use std::time::Duration;

use crate::conn::Conn;
use kernel::{StoreError, Timestamp};
use pools_core::ports::NewQuote;
use pools_core::quote::Quote;
use sqlx::types::Uuid;
use store_sql::quotes::{check_new, inserted};

use crate::durability::raise_synchronous_commit;
use crate::errors;
use crate::row::{Columns, key};

pub(crate) use store_sql::quotes::opt_quote;

/// A batch of quotes, column by column.
#[derive(Default)]
struct Batch<'b> {
    modes: Vec<&'static str>,
    partners: Vec<&'b str>,
    ids: Vec<Uuid>,
    pools: Vec<String>,
    sides: Vec<&'static str>,
    networks: Vec<&'static str>,
    fiat: Vec<i64>,
    crypto: Vec<i64>,
    rates: Vec<String>,
    spread_bps: Vec<i16>,
    fee_bps: Vec<i16>,
    notionals: Vec<i64>,
    addresses: Vec<Option<&'b str>>,
    dest_networks: Vec<Option<&'static str>>,
    ttls: Vec<i64>,
    mids: Vec<Option<String>>,
}

impl<'b> Batch<'b> {
    fn of(batch: &'b [NewQuote]) -> Result<Self, StoreError> {
        let mut columns = Self::default();
        for new in batch {
            columns.add(new)?;
        }
        Ok(columns)
    }

    fn add(&mut self, new: &'b NewQuote) -> Result<(), StoreError> {
        check_new(new)?;
        let terms = &new.terms;
        let destination = terms.destination.as_ref();
        self.modes.push(new.who.mode.as_str());
        self.partners.push(new.who.partner.as_str());
        self.ids.push(key(new.id));
        self.pools.push(terms.pool.to_string());
        self.sides.push(terms.side.as_str());
        self.networks.push(terms.network.as_str());
        self.fiat.push(terms.fiat.units());
        self.crypto.push(terms.crypto.units());
        self.rates.push(terms.rate.to_string());
        self.spread_bps.push(terms.spread_bps.cast_signed());
        self.fee_bps.push(terms.fee_bps.cast_signed());
        self.notionals.push(terms.notional);
        self.addresses
            .push(destination.map(|at| at.address.as_str()));
        self.dest_networks
            .push(destination.map(|at| at.network.as_str()));
        let ttl = i64::try_from(new.ttl.as_millis()).unwrap_or(i64::MAX);
        self.ttls.push(ttl);
        self.mids.push(terms.mid.map(|mid| mid.to_string()));
        Ok(())
    }
}

/// The instants that bound the instant of a batch.
pub(crate) struct Instants {
    /// Replaces the server's clock in tests.
    pub(crate) given: Option<i64>,
    /// The last instant used.
    pub(crate) last: i64,
    /// The latest instant of the clock that is not a jump.
    pub(crate) latest: i64,
}

/// The result of inserting a batch.
pub(crate) struct Inserted {
    /// The clock's instant.
    pub(crate) base: i64,
    /// The instant of the quotes, if they were inserted.
    pub(crate) at: i64,
    rows: i64,
}

/// Inserts a batch of quotes with one statement that commits by itself.
///
/// The instant of the quotes is the clock's, or `last` if it is later. Inserts nothing if `last` is later by more than
/// `tolerance`, or if the clock is later than `latest`.
pub(crate) async fn insert_all(
    conn: &mut Conn,
    batch: &[NewQuote],
    instants: Instants,
    tolerance: Duration,
) -> Result<Inserted, StoreError> {
    let columns = Batch::of(batch)?;
    let row = sqlx::query(INSERT)
        .bind(instants.given)
        .bind(instants.last)
        .bind(i64::try_from(tolerance.as_millis()).unwrap_or(i64::MAX))
        .bind(columns.modes)
        .bind(columns.partners)
        .bind(columns.ids)
        .bind(columns.pools)
        .bind(columns.sides)
        .bind(columns.networks)
        .bind(columns.fiat)
        .bind(columns.crypto)
        .bind(columns.rates)
        .bind(columns.spread_bps)
        .bind(columns.fee_bps)
        .bind(columns.notionals)
        .bind(columns.addresses)
        .bind(columns.dest_networks)
        .bind(columns.ttls)
        .bind(columns.mids)
        .bind(instants.latest)
        .fetch_one(conn)
        .await
        .map_err(errors::commit)?;
    let row = Columns::new("quotes", &row);
    Ok(Inserted {
        base: row.integer("base")?,
        at: row.integer("at")?,
        rows: row.integer("written")?,
    })
}

impl Inserted {
    /// The inserted quotes.
    pub(crate) fn quotes(
        &self,
        batch: &[NewQuote],
        at: Timestamp,
    ) -> Result<Vec<Quote>, StoreError> {
        inserted(batch, at, self.rows.unsigned_abs())
    }
}

/// The statement is a transaction of its own, so it also raises `synchronous_commit`.
pub(crate) const INSERT: &str = concat!(
    "WITH durable AS MATERIALIZED (SELECT ",
    raise_synchronous_commit!(),
    " AS level), clock AS MATERIALIZED (
         SELECT coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS base FROM durable
     ), moment AS MATERIALIZED (
         SELECT base, greatest(base, $2::bigint) AS at FROM clock
     ), written AS (
         INSERT INTO quotes (mode, partner_id, id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps,
                             notional, dest_address, dest_network, created_at, expires_at, mid)
         SELECT n.mode, n.partner_id, n.id, n.pool, n.side, n.network, n.fiat, n.crypto, n.rate, n.spread_bps,
                n.fee_bps, n.notional, n.dest_address, n.dest_network, m.at, m.at + n.ttl, n.mid
         FROM moment AS m
         CROSS JOIN unnest($4::text[], $5::text[], $6::uuid[], $7::text[], $8::text[], $9::text[], $10::bigint[],
                           $11::bigint[], $12::text[], $13::smallint[], $14::smallint[], $15::bigint[], $16::text[],
                           $17::text[], $18::bigint[], $19::text[])
              AS n (mode, partner_id, id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps, notional,
                    dest_address, dest_network, ttl, mid)
         WHERE m.at - m.base <= $3 AND m.base <= $20
         RETURNING 1
     )
     SELECT base, at, (SELECT count(*) FROM written) AS written FROM moment"
);
