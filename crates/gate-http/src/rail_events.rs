//! The published events of rails.

use gate_core::events::QUOTE_CONSUMED;
use gate_core::rail::RailKind;
use http_kit::openapi::WebhookDoc;
use serde_json::{Value, json};

use crate::event_shape::envelope;

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
    let quote = with_terms(json!({
        "id": "qt_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
        "object": "signed_quote",
        "status": "consumed",
        "side": "on_ramp",
        "network": "tron",
        "expires_at": "2026-05-25T12:01:00.000Z",
        "consumed_at": "2026-05-25T12:00:20.000Z",
        "created_at": "2026-05-25T12:00:00.000Z",
        "signature": "7d1f6c2e0b9a48375665748392a1b0cfdeedfc0b1a29384756657483920a1b2c",
    }));
    WebhookDoc {
        name: QUOTE_CONSUMED,
        summary: "A signed quote was redeemed",
        description: "Sent once, together with `rail.pay_in.processing` or `rail.pay_out.processing`; for a swap in the widget, which has no `rail.*` events, alone.",
        schema: "QuoteEvent",
        example: envelope(QUOTE_CONSUMED, &quote),
    }
}

fn of_rail(name: &'static str, summary: &'static str, description: &'static str) -> WebhookDoc {
    let status = name.rsplit('.').next().unwrap_or_default();
    let (kind, id, schema, instructions) = if name.starts_with("rail.pay_in.") {
        let payer = json!({ "type": "sandbox", "reference": "pi_test_01KSFVT5B3X8D0E2F4G6H8J0KM" });
        let id = "pi_test_01KSFVT5B3X8D0E2F4G6H8J0KM";
        (RailKind::PayIn, id, "PayInEvent", payer)
    } else {
        let id = "po_test_01KSFVT5B3X8D0E2F4G6H8J0KM";
        (RailKind::PayOut, id, "PayOutEvent", Value::Null)
    };
    let record = with_terms(json!({
        "id": id,
        "object": kind.object(),
        "kind": kind.as_str(),
        "status": status,
        "quote_id": "qt_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
        "session_id": "gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
        "instructions": instructions,
        "failure_code": (status == "failed").then_some("provider_declined"),
        "created_at": "2026-05-25T12:00:20.000Z",
        "updated_at": "2026-05-25T12:00:21.000Z",
        "settled_at": (status == "settled").then_some("2026-05-25T12:00:21.000Z"),
    }));
    WebhookDoc {
        name,
        summary,
        description,
        schema,
        example: envelope(name, &record),
    }
}

/// Adds the terms of a quote, which its record repeats.
fn with_terms(mut object: Value) -> Value {
    let terms = json!({
        "currency": "EUR",
        "asset": "USDT",
        "payment_method": "sepa",
        "fiat_amount": "100.00",
        "crypto_amount": "106.605318",
        "exchange_rate": "1.0822875",
        "fees": { "total": "1.50", "service": "0.50", "network": "1.00", "currency": "EUR" },
    });
    if let (Some(fields), Value::Object(terms)) = (object.as_object_mut(), terms) {
        fields.extend(terms);
    }
    object
}
