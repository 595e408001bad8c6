//! CORS: preflights, and which pages may read a response.

use acceptance::{ACME, ACME_PUBLISHABLE, Call, Gate, RIVAL_PUBLISHABLE, RIVAL_SHOP, SHOP, WIDGET};
use partner_core::PartnerStatus;

use super::widget::{self, admitted};

const PATH: &str = "/v1/embed/bootstrap";
const OUTCOME: &str = "/v1/embed/outcome";

fn preflight(path: &str, origin: &str) -> Call {
    widget::preflight(path, origin, "POST").header(
        "access-control-request-headers",
        "authorization,content-type",
    )
}

// rule: gate.cors.preflight
#[tokio::test]
async fn preflight_allows_the_pages_of_every_active_partner() {
    let gate = Gate::new().await;
    for origin in [SHOP, RIVAL_SHOP, WIDGET] {
        let answer = gate.preflight(preflight(PATH, origin)).await;
        assert_eq!((answer.status, admitted(&answer)), (204, Some(origin)));
        assert_eq!(answer.header("vary"), Some("origin"));
        assert_eq!(answer.header("access-control-allow-methods"), Some("POST"));
        let headers = answer.header("access-control-allow-headers").unwrap();
        for name in [
            "authorization",
            "content-type",
            "x-publishable-key",
            "x-embed-token",
        ] {
            assert!(headers.split(", ").any(|known| known == name), "{name}");
        }
        assert_eq!(answer.header("access-control-allow-credentials"), None);
        let other = gate.preflight(preflight(OUTCOME, origin)).await;
        assert_eq!((other.status, admitted(&other)), (204, Some(origin)));
    }
    for stranger in [
        "https://other.example",
        "null",
        "*",
        "https://shop.example/",
        "",
    ] {
        let answer = gate.preflight(preflight(PATH, stranger)).await;
        assert_eq!(
            (answer.status, admitted(&answer)),
            (204, None),
            "{stranger}"
        );
        assert_eq!(answer.header("vary"), Some("origin"));
        assert_eq!(answer.header("access-control-allow-methods"), None);
    }
    let twice = preflight(PATH, SHOP).header("origin", RIVAL_SHOP);
    assert_eq!(admitted(&gate.preflight(twice).await), None);
    gate.finish().await;
}

// rule: gate.cors.preflight
#[tokio::test]
async fn preflight_follows_the_operators_changes() {
    let gate = Gate::new().await;
    let operator = gate.world().operator();
    let allowed = async |origin| {
        let answer = gate.preflight(preflight(PATH, origin)).await;
        admitted(&answer).is_some()
    };
    assert!(allowed(SHOP).await);
    operator.put_partner(ACME, PartnerStatus::Suspended).await;
    assert!(!allowed(SHOP).await && allowed(RIVAL_SHOP).await);
    operator.put_partner(ACME, PartnerStatus::Active).await;
    assert!(allowed(SHOP).await);
    operator
        .change_gate(ACME, |gate| gate.allowed_domains.clear())
        .await;
    assert!(!allowed(SHOP).await);
    gate.finish().await;
}

// rule: gate.cors.answer
#[tokio::test]
async fn response_is_readable_by_pages_of_its_partner_only() {
    let gate = Gate::new().await;
    let ask = async |origin: &str, key: &str| {
        let call = Call::post(PATH).header("origin", origin).bearer(key);
        gate.send(call).await
    };
    let own = ask(SHOP, ACME_PUBLISHABLE).await;
    assert_eq!((own.status, admitted(&own)), (200, Some(SHOP)));
    let seen = own.header("access-control-expose-headers").unwrap();
    assert!(
        ["x-request-id", "retry-after-short", "penstock-warning"]
            .iter()
            .all(|name| seen.contains(name)),
        "{seen}"
    );
    // Rival's page is known, but acme does not allow it.
    let foreign = ask(RIVAL_SHOP, ACME_PUBLISHABLE).await;
    assert_eq!((foreign.status, admitted(&foreign)), (403, None));
    let rivals = ask(RIVAL_SHOP, RIVAL_PUBLISHABLE).await;
    assert_eq!((rivals.status, admitted(&rivals)), (200, Some(RIVAL_SHOP)));
    let stranger = ask(SHOP, "pk_test_NobodyNobodyNobodyNobodyNobody99").await;
    assert_eq!((stranger.status, admitted(&stranger)), (401, None));
    // The widget's own page can read the refusal.
    let home = ask(WIDGET, ACME_PUBLISHABLE).await;
    assert_eq!((home.status, admitted(&home)), (403, Some(WIDGET)));
    let none = gate.send(Call::post(PATH).bearer(ACME_PUBLISHABLE)).await;
    for answer in [own, foreign, rivals, stranger, home, none] {
        assert_eq!(answer.header("vary"), Some("origin"), "{}", answer.status);
    }
    gate.finish().await;
}

// rule: gate.cors.answer, gate.keys.entitled
#[tokio::test]
async fn refusals_of_a_known_key_are_readable_by_pages() {
    let gate = Gate::new().await;
    let call = |path: &str, body: &str| {
        Call::post(path)
            .header("origin", SHOP)
            .header("content-type", "application/json")
            .body(body.to_owned())
            .bearer(ACME_PUBLISHABLE)
    };
    for path in [PATH, OUTCOME] {
        for (body, status) in [("{", 400), (r#"{"clientSecret":"x"}"#, 403)] {
            let answer = gate.send(call(path, body)).await;
            assert_eq!((answer.status, admitted(&answer)), (status, Some(SHOP)));
        }
    }
    let operator = gate.world().operator();
    operator
        .change_gate(ACME, |gate| gate.enabled = false)
        .await;
    let answer = gate.send(call(PATH, "{}")).await;
    let answer = answer.refused(403, "gate_not_enabled");
    assert_eq!(admitted(&answer), Some(SHOP));
    gate.finish().await;
}

// rule: gate.cors.preflight, gate.cors.answer
#[tokio::test]
async fn other_routes_send_no_cors_headers() {
    let gate = Gate::new().await;
    for path in ["/v1/gate_sessions", "/v1/branding", "/v1/webhooks/test"] {
        let answer = gate.send(preflight(path, SHOP)).await;
        answer.refused(405, "method_not_allowed");
    }
    let answer = gate.send(preflight("/v1/embed/other", SHOP)).await;
    answer.refused(404, "route_not_found");
    // Every response of these tests is also checked for absent CORS headers.
    let read = Call::get("/v1/branding").header("origin", SHOP);
    gate.acme().send(read).await.ok();
    gate.finish().await;
}
