//! The published events of the pools.

use http_kit::openapi::{Contract, WebhookDoc};
use serde_json::json;
use utoipa::PartialSchema;

use crate::trades::TradeEventBody;

/// Adds all events to the contract.
pub(crate) fn with_events(contract: Contract) -> Contract {
    contract
        .schema("TradeEvent", TradeEventBody::schema())
        .webhooks(&webhooks(), "Pools-Signature")
}

fn webhooks() -> [WebhookDoc; 3] {
    [
        webhook(
            "pool.transaction.settled",
            "A trade settled",
            "The crypto was delivered, or the payout was issued. No event announces a later return: keep polling, or read the ledger.",
            "settled",
        ),
        webhook(
            "pool.transaction.failed",
            "A trade failed",
            "The trade was attempted and could not complete. The reservation was returned to your balance.",
            "failed",
        ),
        webhook(
            "pool.transaction.released",
            "A trade was released",
            "The reservation was returned to your balance before the trade was attempted.",
            "released",
        ),
    ]
}

fn webhook(
    name: &'static str,
    summary: &'static str,
    description: &'static str,
    status: &'static str,
) -> WebhookDoc {
    let settled = status == "settled";
    let example = json!({
        "eventId": "9f0b1f3f6b7f4f0b8f2d3f7c7b1f7d6e4c0b8a6f5e4d3c2b1a09f8e7d6c5b4a3",
        "type": name,
        "transactId": "txn_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
        "quoteId": "pq_test_01KSFVT0G0W8D4R7Q2M3N5P6T9",
        "poolId": "EUR-USDT",
        "pair": "EUR/USDT",
        "side": "on_ramp",
        "status": status,
        "fiatCurrency": "EUR",
        "cryptoCurrency": "USDT",
        "cryptoNetwork": "ethereum",
        "fiatAmount": "100.00",
        "cryptoAmount": "107.90325",
        "quotedRate": "1.0790325",
        "spreadBps": 25,
        "feeBps": 30,
        "totalBps": 55,
        "engineFillTxId": settled.then_some("sbx_01KSFVT4Z2V6B9C1D3F5G7H8JK"),
        "createdAt": "2026-05-25T12:00:00.000Z",
        "settledAt": settled.then_some("2026-05-25T12:00:01.000Z"),
    });
    WebhookDoc {
        name,
        summary,
        description,
        schema: "TradeEvent",
        example,
    }
}
