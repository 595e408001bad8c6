//! What the published events of the gate share.

use serde_json::{Value, json};

/// The headers of every delivery.
pub(crate) const DELIVERY_HEADERS: &[(&str, &str)] = &[
    (
        "Gate-Signature",
        "`t=<unix seconds>,v1=<hex>`: HMAC-SHA256, keyed with your signing secret, over `<t>.<raw body>`.",
    ),
    (
        "webhook-id",
        "The event's id, as in Standard Webhooks. It is the same on every attempt.",
    ),
    (
        "webhook-timestamp",
        "The time of this attempt's signature, in unix seconds.",
    ),
    (
        "webhook-signature",
        "`v1,<base64>`: the signature as in Standard Webhooks.",
    ),
];

/// An event of a type, with a sample id and instant.
pub(crate) fn envelope(kind: &str, data: &Value) -> Value {
    json!({
        "id": "0b8f6f0e-2f5d-4c39-9d6c-6c1a1f0f7a11",
        "object": "event",
        "type": kind,
        "created_at": 1_779_710_400,
        "data": data,
    })
}
