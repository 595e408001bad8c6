//! Inserts quotes.

use std::time::Duration;

use crate::conn::Conn;
use kernel::StoreResult;
use pools_core::ports::NewQuote;
use store_sql::quotes::check_new;

use crate::durability::raise_synchronous_commit;
use crate::errors;
use crate::row::{Columns, column, key};

pub(crate) use store_sql::quotes::opt_quote;

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
    /// The number of inserted quotes.
    pub(crate) rows: u64,
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
) -> StoreResult<Inserted> {
    batch.iter().try_for_each(check_new)?;
    let destinations = column(batch, |new| new.terms.destination.as_ref());
    let row = sqlx::query(INSERT)
        .bind(instants.given)
        .bind(instants.last)
        .bind(millis(tolerance))
        .bind(column(batch, |new| new.who.mode.as_str()))
        .bind(column(batch, |new| new.who.partner.as_str()))
        .bind(column(batch, |new| key(new.id)))
        .bind(column(batch, |new| new.terms.pool.to_string()))
        .bind(column(batch, |new| new.terms.side.as_str()))
        .bind(column(batch, |new| new.terms.network.as_str()))
        .bind(column(batch, |new| new.terms.fiat.units()))
        .bind(column(batch, |new| new.terms.crypto.units()))
        .bind(column(batch, |new| new.terms.rate.to_string()))
        .bind(column(batch, |new| new.terms.spread_bps.cast_signed()))
        .bind(column(batch, |new| new.terms.fee_bps.cast_signed()))
        .bind(column(batch, |new| new.terms.notional))
        .bind(column(&destinations, |to| to.map(|to| to.address.as_str())))
        .bind(column(&destinations, |to| to.map(|to| to.network.as_str())))
        .bind(column(batch, |new| millis(new.ttl)))
        .bind(column(batch, |new| {
            new.terms.mid.map(|mid| mid.to_string())
        }))
        .bind(instants.latest)
        .fetch_one(conn)
        .await
        .map_err(errors::commit)?;
    let row = Columns::new("quotes", &row);
    Ok(Inserted {
        base: row.integer("base")?,
        at: row.integer("at")?,
        rows: row.count("written")?,
    })
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
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
