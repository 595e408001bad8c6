//! Reads and writes quotes.

use async_trait::async_trait;
use instruments::failpoint::around;
use kernel::{Cas, StoreError, Timestamp};
use partner_core::Tenant;
use pools_core::ports::{NewQuote, QuoteTx};
use pools_core::quote::{Quote, QuoteId, QuoteOutcome};
use serde::Serialize;
use sqlx::SqliteConnection;
use store_sql::quotes::check_new;

use crate::errors;
use crate::row::{Columns, json, key, own_key};
use crate::tx::SqliteTx;

pub(crate) use store_sql::quotes::quote;

pub(crate) async fn find(
    conn: &mut SqliteConnection,
    who: &Tenant,
    id: QuoteId,
) -> Result<Option<Quote>, StoreError> {
    let Some(key) = own_key(who, id) else {
        return Ok(None);
    };
    let row = sqlx::query(concat!(
        "SELECT ",
        store_sql::quote_columns!(""),
        " FROM quotes WHERE mode = ?1 AND partner_id = ?2 AND id = ?3"
    ))
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key)
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    row.map(|row| quote(&Columns::new("quotes", &row), who.mode))
        .transpose()
}

/// The columns of a new quote, in the order in which [`insert_all`] reads them.
fn new_row(new: &NewQuote, at: Timestamp) -> Result<impl Serialize, StoreError> {
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
) -> Result<Vec<Quote>, StoreError> {
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
    if usize::try_from(written) != Ok(batch.len()) {
        return Err(errors::rows("quotes", batch.len(), written));
    }
    Ok(batch
        .iter()
        .map(|new| Quote {
            id: new.id,
            terms: new.terms.clone(),
            created_at: at,
            expires_at: at.plus(new.ttl),
            fate: QuoteOutcome::Open,
        })
        .collect())
}

#[async_trait]
impl QuoteTx for SqliteTx {
    async fn quote_lock(&mut self, who: &Tenant, id: QuoteId) -> Result<Option<Quote>, StoreError> {
        find(self.conn(), who, id).await
    }

    async fn quote_reject(
        &mut self,
        who: &Tenant,
        id: QuoteId,
        at: Timestamp,
    ) -> Result<Cas, StoreError> {
        let Some(key) = own_key(who, id) else {
            return Ok(Cas::Lost);
        };
        let rejecting = sqlx::query(
            "UPDATE quotes SET rejected_at = ?4
             WHERE mode = ?1 AND partner_id = ?2 AND id = ?3
               AND consumed_at IS NULL AND rejected_at IS NULL AND ?4 < expires_at",
        )
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(key)
        .bind(at.millis())
        .execute(self.conn());
        let rejecting = async { rejecting.await.map_err(errors::statement) };
        let rows = around("quote.reject", rejecting).await?.rows_affected();
        Ok(self.record_race(Cas::from_rows(rows)?))
    }
}
