//! The events of terminal trades, with their final bytes.
//!
//! The body is flat: the event's id and type, then the fields of the trade as `GET` on the trade returns them. The id
//! is the hex SHA-256 of `<transactId>:<type>`, so a trade has at most one event per type.

use kernel::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::trade::{Trade, TradeEvent};

/// The id of a trade's event.
#[must_use]
pub fn event_id(trade: &Trade, event: TradeEvent) -> String {
    hex::encode(Sha256::digest(format!("{}:{}", trade.id, event.as_str())))
}

/// The body of a trade's event: the bytes that are stored, signed and sent.
///
/// # Errors
/// The JSON error of the body. Its fields are strings, numbers and null, so none is expected.
pub fn event_body(trade: &Trade, event: TradeEvent) -> Result<Vec<u8>, serde_json::Error> {
    let terms = &trade.terms;
    serde_json::to_vec(&Body {
        event_id: event_id(trade, event),
        kind: event.as_str(),
        transact_id: trade.id.to_string(),
        quote_id: trade.quote.to_string(),
        pool_id: terms.pool.to_string(),
        pair: terms.pool.pair(),
        side: terms.side.as_str(),
        status: trade.state.status().as_str(),
        fiat_currency: terms.pool.fiat().code(),
        crypto_currency: terms.pool.crypto().code(),
        crypto_network: terms.network.as_str(),
        fiat_amount: terms.fiat.to_string(),
        crypto_amount: terms.crypto.to_string(),
        quoted_rate: terms.rate.to_string(),
        spread_bps: terms.spread_bps,
        fee_bps: terms.fee_bps,
        total_bps: terms.spread_bps.saturating_add(terms.fee_bps),
        engine_fill_tx_id: trade
            .state
            .settlement()
            .map(|settlement| settlement.fill.as_str()),
        created_at: trade.created_at.to_string(),
        settled_at: trade
            .state
            .settlement()
            .map(|settlement| text(settlement.at)),
    })
}

/// Whether a stored body belongs to this event: its id, type and trade match.
#[must_use]
pub fn tells_of(body: &[u8], id: &str, kind: &str, object: &str) -> bool {
    let told: Result<About, _> = serde_json::from_slice(body);
    told.is_ok_and(|told| {
        (
            told.event_id.as_str(),
            told.kind.as_str(),
            told.transact_id.as_str(),
        ) == (id, kind, object)
    })
}

/// The first fields of every body.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct About {
    event_id: String,
    #[serde(rename = "type")]
    kind: String,
    transact_id: String,
}

fn text(at: Timestamp) -> String {
    at.to_string()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'t> {
    event_id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    transact_id: String,
    quote_id: String,
    pool_id: String,
    pair: String,
    side: &'static str,
    status: &'static str,
    fiat_currency: &'t str,
    crypto_currency: &'t str,
    crypto_network: &'static str,
    fiat_amount: String,
    crypto_amount: String,
    quoted_rate: String,
    spread_bps: u16,
    fee_bps: u16,
    total_bps: u16,
    engine_fill_tx_id: Option<&'t str>,
    created_at: String,
    settled_at: Option<String>,
}
