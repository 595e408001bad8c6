//! Inserts quotes.

use kernel::{StoreResult, Timestamp};
use pools_core::ports::NewQuote;
use pools_core::quote::Quote;
use serde::Serialize;
use sqlx::SqliteConnection;
use store_sql::quotes::{check_new, inserted};

use crate::errors;
use crate::row::{json, key};

pub(crate) use store_sql::quotes::quote;

/// The columns of a new quote, in the order in which [`insert_all`] reads them.
fn new_row(new: &NewQuote, at: Timestamp) -> StoreResult<impl Serialize> {
    check_new(new)?;
    let terms = &new.terms;
    let destination = terms.destination.as_ref();
    Ok((
        new.who.mode.as_str(),
        new.who.partner.as_str(),
        key(new.id),
        terms.pool.to_string(),
        terms.side.as_str(),
        terms.network.as_str(),
        terms.fiat.units(),
        terms.crypto.units(),
        terms.rate.to_string(),
        terms.spread_bps,
        terms.fee_bps,
        terms.notional,
        destination.map(|destination| destination.address.as_str()),
        destination.map(|destination| destination.network.as_str()),
        at.plus(new.ttl).millis(),
        terms.mid.map(|mid| mid.to_string()),
    ))
}

/// Inserts a batch of quotes with one statement.
pub(crate) async fn insert_all(
    conn: &mut SqliteConnection,
    batch: &[NewQuote],
    at: Timestamp,
) -> StoreResult<Vec<Quote>> {
    let rows = batch
        .iter()
        .map(|new| new_row(new, at))
        .collect::<Result<Vec<_>, _>>()?;
    let written = sqlx::query(
        "INSERT INTO quotes (mode, partner_id, id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps,
                             notional, dest_address, dest_network, created_at, expires_at, mid)
         SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
                value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, ?1,
                value ->> 14, value ->> 15
         FROM json_each(?2)",
    )
    .bind(at.millis())
    .bind(json(&rows)?)
    .execute(conn)
    .await
    .map_err(errors::statement)?
    .rows_affected();
    inserted(batch, at, written)
}
