//! What the lists of the gate have in common: their range of creation instants.

use acceptance::{Gate, GateClient};
use serde_json::{Value, json};

use super::sessions::walk;

/// The lists, with the field that identifies their items.
const LISTS: [(&str, &str); 4] = [
    ("/v1/gate_sessions", "id"),
    ("/v1/transactions", "refid"),
    ("/v1/customers", "id"),
    ("/v1/webhooks/deliveries", "id"),
];

/// Objects of every list at four instants, several of them at one instant.
async fn filled() -> Gate {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for second in 0..4 {
        for twin in 0..2 {
            let key = format!("{second}-{twin}");
            let session = acme.open_id(&key).await;
            acme.complete(&session).await.ok();
            let customer = json!({ "email": format!("{key}@example.com") });
            acme.create_customer(&customer, &key).await.created();
        }
        gate.world().after(1_000);
    }
    gate
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap()
}

async fn all(client: &GateClient, list: &str) -> Vec<Value> {
    let whole = client.get(&format!("{list}?limit=100")).await.ok();
    assert_eq!(whole["has_more"], false);
    whole["data"].as_array().unwrap().clone()
}

// rule: list.created-range, list.no-loss
#[tokio::test]
async fn range_excludes_its_start_and_includes_its_end() {
    let gate = filled().await;
    let acme = gate.acme();
    let instant = |second: u32| format!("2026-05-25T12:00:0{second}.000Z");
    let ends = [None, Some(0), Some(2), Some(3), Some(9)];
    for (list, field) in LISTS {
        let items = all(&acme, list).await;
        assert!(items.len() >= 8, "{list}");
        for after in ends.map(|second| second.map(instant)) {
            for before in ends.map(|second| second.map(instant)) {
                let is_wanted = |at: &str| {
                    after.as_deref().is_none_or(|after| at > after)
                        && before.as_deref().is_none_or(|before| at <= before)
                };
                let wanted = items.iter().filter(|it| is_wanted(text(it, "created_at")));
                let wanted: Vec<&str> = wanted.map(|it| text(it, field)).collect();
                let bounds = [("created_after", &after), ("created_before", &before)];
                let bounds = bounds.map(|(name, bound)| match bound {
                    Some(bound) => format!("{name}={bound}"),
                    None => String::new(),
                });
                let query = format!("{list}?{}", bounds.join("&"));
                assert_eq!(walk(&acme, &query, field).await, wanted, "{query}");
            }
        }
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: list.created-range
#[tokio::test]
async fn range_combines_with_other_filters() {
    let gate = filled().await;
    let acme = gate.acme();
    let at = "created_after=2026-05-25T12:00:00Z&created_before=2026-05-25T12:00:02Z";
    let count = async |path: &str| {
        let page = acme.get(&format!("/v1/{path}&{at}&limit=100")).await.ok();
        page["data"].as_array().unwrap().len()
    };
    assert_eq!(count("gate_sessions?status=completed").await, 4);
    assert_eq!(count("gate_sessions?status=open").await, 0);
    assert_eq!(count("transactions?status=completed").await, 4);
    assert_eq!(count("customers?email=1-0@example.com").await, 1);
    assert_eq!(count("customers?email=0-0@example.com").await, 0);
    assert_eq!(count("customers?email=3-0@example.com").await, 0);
    // Each instant has two sessions with two events each, and two customers with one.
    assert_eq!(count("webhooks/deliveries?status=pending").await, 12);
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: list.created-range, time.input-offset, time.input-date, time.input-plus
#[tokio::test]
async fn bounds_are_instants_or_dates() {
    let gate = filled().await;
    let acme = gate.acme();
    for (list, _) in LISTS {
        let first = acme.get(&format!("{list}?created_after=2026-05-26")).await;
        assert_eq!(first.ok()["data"], json!([]), "{list}");
        // An instant between two milliseconds is no later than the second of them.
        for (bound, is_empty) in [
            ("created_after=2026-05-25T12:00:02.9999999Z", false),
            ("created_after=2026-05-25T12:00:03.0000001Z", true),
            ("created_after=2026-05-25T14:00:02.999%2B02:00", false),
            ("created_before=2026-05-25", true),
            ("created_before=2026-05-26", false),
        ] {
            let page = acme.get(&format!("{list}?{bound}")).await.ok();
            let data = page["data"].as_array().unwrap();
            assert_eq!(data.is_empty(), is_empty, "{list} {bound}");
        }
        for bad in ["soon", "", "2026-13-01"] {
            for name in ["created_after", "created_before"] {
                let answer = acme.get(&format!("{list}?{name}={bad}")).await;
                answer.refused(400, "invalid_request").saying(name);
            }
        }
        let plus = format!("{list}?created_after=2026-05-25T12:00:03+02:00");
        let answer = acme.get(&plus).await;
        answer.refused(400, "invalid_request").saying("%2B");
    }
    gate.world().notice_all().await;
    gate.finish().await;
}
