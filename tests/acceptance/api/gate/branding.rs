//! Branding: merged field by field, and strict.

use acceptance::{Call, Gate, GateClient};
use serde_json::{Value, json};

const PATH: &str = "/v1/branding";

fn patch(body: &Value) -> Call {
    Call::new("PATCH", PATH).json(body)
}

async fn update(client: &GateClient, body: Value) -> Value {
    client.send(patch(&body)).await.ok()
}

// rule: gate.branding.fields, gate.branding.merge
#[tokio::test]
async fn update_changes_the_named_fields_only() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let none = json!({
        "object": "branding", "logo_url": null, "primary_color": null, "secondary_color": null,
        "accent_color": null, "brand_name": null,
    });
    assert_eq!(acme.get(PATH).await.ok(), none);
    assert_eq!(update(&acme, json!({})).await, none);
    let first = json!({ "logo_url": "https://cdn.example/logo.svg", "primary_color": "#1a2B3c", "brand_name": "Acme & Söhne" });
    let mut expected = none.clone();
    for (name, value) in first.as_object().unwrap() {
        expected[name] = value.clone();
    }
    assert_eq!(update(&acme, first).await, expected);
    let second = json!({ "logo_url": null, "accent_color": "#000000" });
    expected["logo_url"] = Value::Null;
    expected["accent_color"] = json!("#000000");
    assert_eq!(update(&acme, second).await, expected);
    assert_eq!(acme.get(PATH).await.ok(), expected);
    // Rival's branding and the other mode's are separate.
    assert_eq!(gate.rival().get(PATH).await.ok(), none);
    let live = gate.other_mode().await;
    assert_eq!(live.acme().get(PATH).await.ok(), none);
    live.close().await;
    gate.finish().await;
}

// rule: gate.branding.rules, error.names-the-field
#[tokio::test]
async fn each_field_has_its_rule_and_unknown_fields_are_refused() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let before = update(&acme, json!({ "brand_name": "Acme" })).await;
    let long = |length: usize| "é".repeat(length);
    for (field, value) in [
        ("logo_url", json!("http://cdn.example/logo.svg")),
        ("logo_url", json!("/logo.svg")),
        ("logo_url", json!("javascript:alert(1)")),
        (
            "logo_url",
            json!(format!("https://cdn.example/{}", "x".repeat(2048))),
        ),
        ("logo_url", json!("")),
        ("primary_color", json!("red")),
        ("secondary_color", json!("#12345")),
        ("accent_color", json!("#12345G")),
        ("accent_color", json!(123_456)),
        ("brand_name", json!(long(65))),
        ("brand_name", json!(["Acme"])),
        ("accent_colors", json!("#000000")),
        ("object", json!("branding")),
        ("partner_id", json!("rival")),
    ] {
        let body = json!({ "secondary_color": "#ffffff", field: value });
        let answer = acme.send(patch(&body)).await;
        let answer = answer.refused(400, "invalid_request");
        answer.saying(&format!("`{field}`"));
    }
    for (body, code) in [
        ("[]", "invalid_json"),
        ("", "invalid_json"),
        (r#"{"brand_name":"a","brand_name":"b"}"#, "invalid_json"),
    ] {
        let call = Call::new("PATCH", PATH)
            .body(body)
            .header("content-type", "application/json");
        acme.send(call).await.refused(400, code);
    }
    assert_eq!(acme.get(PATH).await.ok(), before);
    let longest = update(&acme, json!({ "brand_name": long(64) })).await;
    assert_eq!(longest["brand_name"], long(64));
    gate.finish().await;
}

// rule: error.accepted-fields
#[tokio::test]
async fn refusal_of_an_unknown_field_lists_the_accepted_ones() {
    let gate = Gate::new().await;
    let answer = gate.acme().send(patch(&json!({ "name": "Acme" }))).await;
    answer.refused(400, "invalid_request").saying(
        "`name`: this field is not accepted here; the accepted fields are \
         `logo_url`, `primary_color`, `secondary_color`, `accent_color`, `brand_name`.",
    );
    gate.finish().await;
}

// rule: idempotency.gate-optional
#[tokio::test]
async fn update_is_replayed_under_its_key() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let call = |name: &str, key: &str| patch(&json!({ "brand_name": name })).key(key);
    let first = acme.send(call("one", "k")).await;
    acme.send(call("two", "l")).await.ok();
    let again = acme.send(call("three", "k")).await;
    assert_eq!(again.bytes, first.bytes);
    assert_eq!(again.header("x-request-id"), first.header("x-request-id"));
    assert_eq!(acme.get(PATH).await.ok()["brand_name"], "two");
    let bad = acme.send(call("four", "")).await;
    bad.refused(400, "idempotency_key_invalid");
    gate.finish().await;
}

// rule: gate.branding.no-lost-update
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_updates_lose_nothing() {
    let gate = Gate::new().await;
    let fields = ["primary_color", "secondary_color", "accent_color"];
    let updating = fields.map(|field| {
        let acme = gate.acme();
        tokio::spawn(async move {
            for shade in 1..=5 {
                let body = json!({ field: format!("#00000{shade}") });
                acme.send(patch(&body)).await.ok();
            }
        })
    });
    for one in updating {
        one.await.unwrap();
    }
    let branding = gate.acme().get(PATH).await.ok();
    for field in fields {
        assert_eq!(branding[field], "#000005");
    }
    gate.finish().await;
}
