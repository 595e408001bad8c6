//! The events of terminal trades.
//!
//! The body is flat: the event's id and type, then the fields of the trade as `GET trade` returns them. The id is the hex SHA-256 of
//! `<transactId>:<type>`, so a trade has one event per type.

use partner_core::stored_response::RenderError;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::trade::{Trade, TradeEvent};

/// The id of a trade's event.
#[must_use]
pub fn event_id(trade: &Trade, event: TradeEvent) -> String {
    hex::encode(Sha256::digest(format!("{}:{}", trade.id, event.as_str())))
}

/// Renders the body of a trade's event: the bytes that are stored, signed and sent. The HTTP crate does it, because the body has the
/// fields of the trade as `GET trade` returns them, and their wire shape is written once.
pub type RenderTradeEvent = fn(&Trade, TradeEvent) -> Result<Vec<u8>, RenderError>;

/// Is this the body of the event?
#[must_use]
pub fn tells_of(body: &[u8], id: &str, kind: &str, object: &str) -> bool {
    serde_json::from_slice(body).is_ok_and(|body: Identity| {
        let found = [&body.event_id, &body.kind, &body.transact_id];
        found == [id, kind, object]
    })
}

/// The fields that every body begins with.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    event_id: String,
    #[serde(rename = "type")]
    kind: String,
    transact_id: String,
}
