use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

const ID: &str = "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK";

fn read<T: DeserializeOwned>(body: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(&body.replace("ID", ID))
}

fn instructions(given: &Value) -> Result<InstructionsAnswer, serde_json::Error> {
    serde_json::from_value(json!({ "id": ID, "instructions": given }))
}

// rule: rail.http.reports
#[test]
fn each_report_has_its_meaning() {
    let failed = |reason| RailReport::Failed {
        code: "account_closed".to_owned(),
        reason,
    };
    let settled = |reference: Option<&str>| RailReport::Settled {
        reference: reference.map(str::to_owned),
    };
    for (body, expected) in [
        (
            r#"{"id":"ID","status":"processing"}"#,
            RailReport::InProgress,
        ),
        (r#"{"id":"ID","status":"settled"}"#, settled(None)),
        (
            r#"{"status":"settled","reference":null,"id":"ID"}"#,
            settled(None),
        ),
        (
            r#"{"id":"ID","status":"settled","reference":"e2e-1","reason":7}"#,
            settled(Some("e2e-1")),
        ),
        (
            r#"{"id":"ID","status":"failed","code":"account_closed"}"#,
            failed(None),
        ),
        (
            r#"{"id":"ID","status":"failed","code":"account_closed","reason":null}"#,
            failed(None),
        ),
        (
            r#"{"reason":"expired","status":"failed","code":"account_closed","id":"ID"}"#,
            failed(Some(FailureReason::Expired)),
        ),
        (r#"{"id":"ID","status":"cancelled"}"#, RailReport::Cancelled),
        (r#"{"id":"ID","status":"returned"}"#, RailReport::Returned),
    ] {
        let report: Report = read(body).unwrap();
        assert_eq!(report.id(), ID);
        let reported = Reported::from(report);
        assert_eq!(reported.report, expected, "{body}");
        assert_eq!(reported.receipt, None, "{body}");
    }
    let settled: Report = read(r#"{"id":"ID","status":"settled","reference":"e2e-1"}"#).unwrap();
    assert_eq!(settled.reference(), Some("e2e-1"));
}

// rule: rail.http.reports
#[test]
fn each_reason_of_the_core_can_be_reported() {
    for reason in FailureReason::ALL {
        let body = json!({ "id": ID, "status": "failed", "code": "x", "reason": reason.as_str() });
        let report: Report = serde_json::from_value(body).unwrap();
        let expected = RailReport::Failed {
            code: "x".to_owned(),
            reason: Some(reason),
        };
        assert_eq!(Reported::from(report).report, expected);
    }
}

fn receipt(amount: &str) -> Receipt {
    Receipt {
        amount: amount.to_owned(),
        currency: None,
        asset: None,
        network: None,
        at: None,
    }
}

/// What a report of this status says has arrived.
fn received(status: &str, given: &Value) -> Result<Option<Receipt>, serde_json::Error> {
    let body = json!({ "id": ID, "status": status, "code": "x", "received": given });
    let report: Report = serde_json::from_value(body)?;
    Ok(Reported::from(report).receipt)
}

// rule: rail.received
#[test]
fn every_report_may_say_what_has_arrived() {
    let fiat = Receipt {
        currency: Some("EUR".to_owned()),
        ..receipt("20.00")
    };
    let crypto = Receipt {
        asset: Some("USDT".to_owned()),
        network: Some("tron".to_owned()),
        at: Timestamp::parse("2026-05-25T12:10:00Z", Bound::Lower).ok(),
        ..receipt("1.123456789")
    };
    for (given, expected) in [
        (json!({ "amount": "20" }), Some(receipt("20"))),
        (
            json!({ "amount": "20.00", "currency": "EUR", "at": null, "news": 1 }),
            Some(fiat),
        ),
        (
            json!({
                "amount": "1.123456789", "asset": "USDT", "network": "tron", "at": "2026-05-25T12:10:00Z",
            }),
            Some(crypto),
        ),
        (
            json!({ "amount": "5", "currency": null, "asset": null, "network": null }),
            Some(receipt("5")),
        ),
        // Nothing has arrived.
        (json!({ "amount": "0.00" }), Some(receipt("0.00"))),
        (Value::Null, None),
    ] {
        for status in ["processing", "settled", "failed", "cancelled", "returned"] {
            let found = received(status, &given).unwrap();
            assert_eq!(found, expected, "{status} {given}");
        }
    }
}

// rule: rail.received, rail.http.silence
#[test]
fn malformed_arrival_is_refused() {
    for given in [
        json!("20.00"),
        json!(20),
        json!([]),
        json!({}),
        json!({ "currency": "EUR" }),
        json!({ "amount": null }),
        json!({ "amount": 20 }),
        json!({ "amount": "" }),
        json!({ "amount": "-1" }),
        json!({ "amount": "+1" }),
        json!({ "amount": "01" }),
        json!({ "amount": "1." }),
        json!({ "amount": "1e3" }),
        json!({ "amount": "1,00" }),
        json!({ "amount": "1 " }),
        json!({ "amount": "1", "currency": 7 }),
        json!({ "amount": "1", "asset": ["USDT"] }),
        json!({ "amount": "1", "at": "yesterday" }),
        json!({ "amount": "1", "at": 1_780_000_000 }),
        json!({ "amount": "1", "at": "" }),
    ] {
        for status in ["processing", "settled", "returned"] {
            assert!(received(status, &given).is_err(), "{status} {given}");
        }
    }
    let twice = r#"{"id":"ID","status":"processing","received":{"amount":"1","amount":"2"}}"#;
    assert!(read::<Report>(twice).is_err());
}

// rule: rail.http.silence
#[test]
fn malformed_report_is_refused() {
    for body in [
        "",
        "{}",
        r#"{"id":"ID"}"#,
        r#"{"status":"settled"}"#,
        r#"{"id":7,"status":"settled"}"#,
        r#"{"id":null,"status":"settled"}"#,
        r#"{"id":"ID","status":"Settled"}"#,
        r#"{"id":"ID","status":"unknown"}"#,
        r#"{"id":"ID","status":null}"#,
        r#"{"id":"ID","status":{"settled":null}}"#,
        r#"{"id":"ID","status":{"cancelled":null}}"#,
        r#"{"id":"ID","status":"settled","status":"failed","code":"x"}"#,
        r#"{"id":"ID","id":"ID","status":"settled"}"#,
        r#"{"id":"ID","status":"settled","reference":""}"#,
        r#"{"id":"ID","status":"settled","reference":"a b"}"#,
        r#"{"id":"ID","status":"settled","reference":7}"#,
        r#"{"id":"ID","status":"failed"}"#,
        r#"{"id":"ID","status":"failed","code":null}"#,
        r#"{"id":"ID","status":"failed","code":""}"#,
        r#"{"id":"ID","status":"failed","code":"Account_Closed"}"#,
        r#"{"id":"ID","status":"failed","code":"account closed"}"#,
        r#"{"id":"ID","status":"failed","code":"x","reason":""}"#,
        r#"{"id":"ID","status":"failed","code":"x","reason":"Expired"}"#,
        r#"{"id":"ID","status":"failed","code":"x","reason":"other"}"#,
        r#"{"id":"ID","status":"failed","code":"x","reason":7}"#,
        r#"{"id":"ID","status":"failed","code":"x","reason":{"expired":null}}"#,
        r#"{"id":"ID","status":"failed","reason":"expired"}"#,
        r#"{"id":"ID","status":"settled"} {}"#,
        r#"{"id":"ID","status":"settled""#,
    ] {
        assert!(read::<Report>(body).is_err(), "{body}");
    }
    let report = |field: &str, length: usize| {
        let status = if field == "code" { "failed" } else { "settled" };
        let body = json!({ "id": ID, "status": status, field: "x".repeat(length) });
        serde_json::from_value::<Report>(body)
    };
    assert!(report("code", 64).is_ok() && report("code", 65).is_err());
    assert!(report("reference", 128).is_ok() && report("reference", 129).is_err());
}

// rule: rail.http.silence
#[test]
fn malformed_acceptance_is_refused() {
    assert!(read::<BeginAnswer>(r#"{"id":"ID","status":"accepted"}"#).is_ok());
    for body in [
        r#"{"id":"ID"}"#,
        r#"{"status":"accepted"}"#,
        r#"{"id":"ID","status":"settled"}"#,
        r#"{"id":"ID","status":{"accepted":null}}"#,
        r#"{"id":"ID","status":"accepted","status":"accepted"}"#,
    ] {
        assert!(read::<BeginAnswer>(body).is_err(), "{body}");
    }
}

// rule: rail.http.instructions
#[test]
fn instructions_are_named_texts_within_bounds() {
    let good = json!({ "iban": "DE89 3704", "note": "Grüße", "a_1": "" });
    let read_back = Instructions::from(instructions(&good).unwrap());
    assert_eq!(json!(read_back.0), good);
    let of = |count: usize| {
        let names = (0..count).map(|index| (format!("name_{index}"), json!("x")));
        Value::Object(names.collect())
    };
    assert!(instructions(&of(0)).is_ok() && instructions(&of(32)).is_ok());
    assert!(instructions(&of(33)).is_err());
    // The length of a text counts characters, not bytes.
    assert!(instructions(&json!({ "a": "é".repeat(512) })).is_ok());
    assert!(instructions(&json!({ "a": "é".repeat(513) })).is_err());
    assert!(instructions(&json!({ "x".repeat(64): "" })).is_ok());
    for name in ["", "IBAN", "a-b", "a b", "é", &"x".repeat(65)] {
        assert!(instructions(&json!({ name: "x" })).is_err(), "{name}");
    }
    for text in ["a\nb", "\u{0}", "\u{1b}[2J", "\u{7f}", "\u{85}"] {
        assert!(instructions(&json!({ "a": text })).is_err(), "{text:?}");
    }
}

// rule: rail.http.instructions
#[test]
fn malformed_instructions_are_refused() {
    for given in [
        json!(null),
        json!([]),
        json!("x"),
        json!({ "a": 7 }),
        json!({ "a": null }),
    ] {
        assert!(instructions(&given).is_err(), "{given}");
    }
    for body in [
        r#"{"id":"ID"}"#,
        r#"{"instructions":{}}"#,
        r#"{"id":"ID","instructions":{"iban":"a","iban":"b"}}"#,
        r#"{"id":"ID","instructions":{},"instructions":{}}"#,
    ] {
        assert!(read::<InstructionsAnswer>(body).is_err(), "{body}");
    }
}
