//! The header `Penstock-Warning` of the gate API.

use acceptance::{Answer, Call, Gate, Logs, SHOP, session};
use serde_json::{Value, json};

const WARNING: &str = "penstock-warning";

fn changed(changes: &Value) -> Value {
    let mut body = session(SHOP);
    for (field, value) in changes.as_object().unwrap() {
        body[field] = value.clone();
    }
    body
}

/// The code of the warning of a response; empty without one.
fn code(answer: &Answer) -> &str {
    let warning = answer.header(WARNING).unwrap_or_default();
    warning.split("; ").next().unwrap()
}

// rule: warning.unpayable, warning.safe
#[tokio::test]
async fn session_that_no_choice_can_pay_is_created_with_a_warning() {
    let (logs, _caught) = Logs::catch();
    let gate = Gate::new().await;
    gate.world().rates().set("EUR-USDT", "1.0850", 25);
    let acme = gate.acme();
    let hostile = "a,\r\nSet-Cookie: é";
    for (at, (changes, expected)) in [
        (json!({ "amount": "100.101" }), "amount_precision"),
        (json!({ "currency": "JPY" }), "corridor_not_available"),
        (
            json!({ "amount": "0.01", "flow": "on_ramp" }),
            "amount_out_of_range",
        ),
        (
            json!({ "amount": "9999999999.00", "target_token": "USDT" }),
            "amount_out_of_range",
        ),
        (
            json!({ "wallet_address": "0x123", "target_network": "polygon" }),
            "invalid_address",
        ),
        (json!({ "wallet_address": hostile }), "invalid_address"),
        (json!({ "target_network": "FOO" }), "network_not_supported"),
        (json!({}), ""),
        (json!({ "amount": "100.1000" }), ""),
        (json!({ "amount": "60000.00", "target_token": "USDT" }), ""),
    ]
    .into_iter()
    .enumerate()
    {
        let body = changed(&changes);
        let made = acme.create(&body, &at.to_string()).await;
        assert_eq!((made.status, code(&made)), (201, expected), "{changes}");
        let text = made.header(WARNING).unwrap_or_default();
        assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        let lines = logs.of(made.header("x-request-id").unwrap());
        let warned = lines.iter().filter(|line| line["level"] == "WARN");
        let codes: Vec<&str> = warned
            .filter_map(|line| line["warning.code"].as_str())
            .collect();
        let logged: &[&str] = if expected.is_empty() {
            &[]
        } else {
            &[expected]
        };
        assert_eq!(codes, logged, "{changes}");
        // A client that lost the response learns the same from the repeat.
        let again = acme.create(&body, &at.to_string()).await;
        assert_eq!((again.status, code(&again)), (201, expected), "{changes}");
    }
    // A repeat with another body shows a session with other terms.
    let other = acme
        .create(&changed(&json!({ "currency": "JPY" })), "0")
        .await;
    assert_eq!(
        (other.status, code(&other)),
        (201, "idempotency_body_ignored")
    );
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: warning.unknown-parameter
#[tokio::test]
async fn read_names_the_parameters_that_it_ignores() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let open = acme.open_id("k").await;
    for (path, query, ignored) in [
        (
            "gate_sessions",
            "from=2026&created%5Bgte%5D=1&limit=5",
            Some("from created[gte]"),
        ),
        (
            "gate_sessions",
            "limit=5&status=open&created_after=2026-05-25&created_before=2026-05-26",
            None,
        ),
        ("transactions", "session=x", Some("session")),
        ("transactions", format!("session_id={open}").as_str(), None),
        ("customers", "name=a&email=a%40b.example", Some("name")),
        ("webhooks/deliveries", "offset=1&skip=0", Some("offset")),
        ("capabilities/assets", "side=on_ramp&limit=1", Some("limit")),
        (format!("gate_sessions/{open}").as_str(), "a=1", Some("a")),
    ] {
        let answer = acme.get(&format!("/v1/{path}?{query}")).await;
        let expected = ignored.map(|names| format!("unknown_parameter; {names}"));
        assert_eq!(answer.header(WARNING), expected.as_deref(), "{path}");
        assert_eq!(answer.status, 200, "{path}");
    }
    let stranger = gate.send(Call::get("/v1/gate_sessions?a=1")).await;
    assert_eq!(stranger.header(WARNING), None);
    stranger.refused(401, "unauthorized");
    gate.world().notice_all().await;
    gate.finish().await;
}
