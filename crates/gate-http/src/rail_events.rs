//! The published events of rails.

use gate_core::events::QUOTE_CONSUMED;
use http_kit::openapi::WebhookDoc;
use serde_json::{Value, json};

use crate::event_shape::{envelope, recorded};

/// Every event of rails.
pub(crate) fn webhooks() -> [WebhookDoc; 8] {
    [
        consumed(),
        of_rail(
            "rail.pay_in.processing",
            "A pay-in was created",
            "A quote was redeemed. `instructions` tell the payer how to pay.",
        ),
        of_rail(
            "rail.pay_in.settled",
            "A pay-in settled",
            "The user has paid. An open session is completed at the same time.",
        ),
        of_rail(
            "rail.pay_in.failed",
            "A pay-in failed",
            "`failure_code` is the reason. The session stays open, and the quote stays consumed.",
        ),
        of_rail(
            "rail.pay_in.cancelled",
            "A pay-in was cancelled",
            "The user has not paid. The session stays open, and the quote stays consumed.",
        ),
        of_rail(
            "rail.pay_out.processing",
            "A pay-out was created",
            "A quote was redeemed, and the rail is moving the money.",
        ),
        of_rail(
            "rail.pay_out.settled",
            "A pay-out settled",
            "The user was paid. An open session is completed at the same time.",
        ),
        of_rail(
            "rail.pay_out.failed",
            "A pay-out failed",
            "`failure_code` is the reason. The session stays open, and the quote stays consumed.",
        ),
    ]
}

fn consumed() -> WebhookDoc {
    let changes = json!({ "status": "consumed", "consumed_at": "2026-05-25T12:00:20.000Z" });
    WebhookDoc {
        name: QUOTE_CONSUMED,
        summary: "A signed quote was redeemed",
        description: "Sent once, together with `rail.pay_in.processing` or `rail.pay_out.processing`; for a swap in the widget, which has no `rail.*` events, alone.",
        schema: "QuoteEvent",
        example: envelope(QUOTE_CONSUMED, &recorded("retrieveSignedQuote", changes)),
    }
}

fn of_rail(name: &'static str, summary: &'static str, description: &'static str) -> WebhookDoc {
    let status = name.rsplit('.').next().unwrap_or_default();
    let (created, settled, schema) = if name.starts_with("rail.pay_in.") {
        ("createPayIn", "retrievePayIn", "PayInEvent")
    } else {
        ("createPayOut", "retrievePayOut", "PayOutEvent")
    };
    let record = match status {
        "processing" => recorded(created, Value::Null),
        "settled" => recorded(settled, Value::Null),
        _ => {
            let code = (status == "failed").then_some("provider_declined");
            let ended = json!({ "status": status, "failure_code": code, "settled_at": null });
            recorded(settled, ended)
        }
    };
    WebhookDoc {
        name,
        summary,
        description,
        schema,
        example: envelope(name, &record),
    }
}
