//! Quotes, and the terms that quotes and trades have in common. Each engine has its own insert of quotes.

use async_trait::async_trait;
use kernel::{Cas, Mid, Mode, Rate, Seen, StoreResult, Timestamp};
use partner_core::Tenant;
use pools_core::destination::{DeliveryAddress, DestNetwork, Destination};
use pools_core::ports::{NewQuote, QuoteTx};
use pools_core::profile::{Network, PoolId};
use pools_core::quote::{Quote, QuoteId, QuoteOutcome, Side, Terms};

use crate::statement::with_clock;
use crate::store_tx::guard;
use crate::{Connection, Reader, Row, Statement, StoreTx, exactly, values};

#[async_trait]
impl QuoteTx for StoreTx {
    async fn quote_lock(&mut self, who: &Tenant, id: QuoteId) -> StoreResult<Option<Quote>> {
        let found = find(self.locked(who).await?, who, id).await?;
        let quote = found.map(|(quote, _)| quote);
        if let Some(quote) = &quote {
            self.engine.after(quote.created_at);
        }
        Ok(quote)
    }

    async fn quote_reject(&mut self, who: &Tenant, id: QuoteId, at: Timestamp) -> StoreResult<Cas> {
        let values = values![who.mode, &who.partner, id.in_mode(who.mode), at];
        self.swap_around("quote.reject", who, &REJECT, values).await
    }
}

static REJECT: Statement = Statement::new(
    "quotes",
    "UPDATE quotes SET rejected_at = $4
     WHERE mode = $1 AND partner_id = $2 AND id = $3
       AND consumed_at IS NULL AND rejected_at IS NULL AND $4 < expires_at",
);

/// Every column that [`quote`] reads, each after the table's prefix, such as `"q."` or `""`.
#[macro_export]
macro_rules! quote_columns {
    ($table:literal) => {
        $crate::prefixed!(
            $table:
            "partner_id", "id", "pool", "side", "network", "fiat", "crypto", "rate", "spread_bps", "fee_bps", "notional",
            "dest_address", "dest_network", "created_at", "expires_at", "consumed_at", "rejected_at", "mid"
        )
    };
}

/// A quote, with the store's instant after it was read.
pub async fn get(
    reader: &mut dyn Reader,
    who: &Tenant,
    id: QuoteId,
) -> StoreResult<Option<Seen<Quote>>> {
    let Some((value, row)) = find(reader.connection(), who, id).await? else {
        return Ok(None);
    };
    let at = reader.instant_of(&*row)?;
    Ok(Some(Seen { value, at }))
}

/// A quote and its row, which on Postgres has the server's instant after the quote was read.
pub async fn find(
    connection: &mut dyn Connection,
    who: &Tenant,
    id: QuoteId,
) -> StoreResult<Option<(Quote, Box<dyn Row>)>> {
    let values = values![who.mode, &who.partner, id.in_mode(who.mode)];
    let Some(row) = connection.fetch_optional(&FIND, values).await? else {
        return Ok(None);
    };
    Ok(Some((quote(&*row, who.mode)?, row)))
}

pub static FIND: Statement = Statement::per_engine(
    "quotes",
    with_clock!(
        quote_columns!(""),
        " FROM quotes WHERE mode = $1 AND partner_id = $2 AND id = $3"
    ),
);

pub fn quote(row: &dyn Row, mode: Mode) -> StoreResult<Quote> {
    let outcome = match (
        row.opt_instant("consumed_at")?,
        row.opt_instant("rejected_at")?,
    ) {
        (None, None) => QuoteOutcome::Open,
        (Some(at), None) => QuoteOutcome::Consumed(at),
        (None, Some(at)) => QuoteOutcome::Rejected(at),
        (Some(_), Some(_)) => return Err(row.bad("rejected_at")),
    };
    Ok(Quote {
        id: row.id("id", mode)?,
        terms: terms(row)?,
        created_at: row.instant("created_at")?,
        expires_at: row.instant("expires_at")?,
        outcome,
    })
}

/// A quote, or `None` if the statement's outer join found none.
pub fn opt_quote(row: &dyn Row, mode: Mode) -> StoreResult<Option<Quote>> {
    if row.opt_text("pool")?.is_none() {
        return Ok(None);
    }
    quote(row, mode).map(Some)
}

/// The terms, which have the same columns on quotes and trades. Their currencies are the pool's.
pub fn terms(row: &dyn Row) -> StoreResult<Terms> {
    let pool = row.parsed("pool", PoolId::parse)?;
    Ok(Terms {
        pool,
        side: row.parsed("side", Side::parse)?,
        network: row.parsed("network", Network::parse)?,
        fiat: row.amount("fiat", pool.fiat())?,
        crypto: row.amount("crypto", pool.crypto())?,
        rate: row.parsed("rate", Rate::parse)?,
        mid: row.opt_parsed("mid", Mid::parse)?,
        spread_bps: row.small("spread_bps")?,
        fee_bps: row.small("fee_bps")?,
        notional: row.integer("notional")?,
        destination: destination(row)?,
    })
}

fn destination(row: &dyn Row) -> StoreResult<Option<Destination>> {
    let address = row.opt_parsed("dest_address", DeliveryAddress::stored)?;
    let network = row.opt_parsed("dest_network", DestNetwork::parse)?;
    let both = row.pair("dest_network", address, network)?;
    Ok(both.map(|(address, network)| Destination { address, network }))
}

/// A new quote has its tenant's mode, and its legs have its pool's currencies.
pub fn check_new(new: &NewQuote) -> StoreResult<()> {
    let terms = &new.terms;
    let pool_fits =
        terms.fiat.asset() == terms.pool.fiat() && terms.crypto.asset() == terms.pool.crypto();
    guard(pool_fits && new.id.mode() == new.who.mode, || {
        let id = new.id;
        format!("quotes: {id} has another mode or currencies other than its pool's")
    })
}

/// The quotes of a batch that was inserted at this instant. The insert must have written all of them.
pub fn inserted(batch: &[NewQuote], at: Timestamp, written: u64) -> StoreResult<Vec<Quote>> {
    exactly("quotes", batch.len(), written)?;
    let quotes = batch.iter().map(|new| Quote {
        id: new.id,
        terms: new.terms.clone(),
        created_at: at,
        expires_at: at.plus(new.ttl),
        outcome: QuoteOutcome::Open,
    });
    Ok(quotes.collect())
}
