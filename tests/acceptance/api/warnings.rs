//! The header `Penstock-Warning` of the pools API.

use acceptance::{ACME, Call, Logs, World, purchase};

const WARNING: &str = "penstock-warning";

// rule: warning.unknown-parameter, request.unknown-query
#[tokio::test]
async fn read_names_the_parameters_that_it_ignores() {
    let (logs, _caught) = Logs::catch();
    let world = World::new().await;
    world.operator().credit(ACME, "100.00", "EUR").await;
    let acme = world.acme();
    let (_, trade) = acme.trade("EUR-USDT", "10.00").await;
    for (path, query, ignored) in [
        ("/v1/pools", "limit=0", Some("limit")),
        ("/v1/pools/trades", "limit=5&side=on_ramp", None),
        (
            "/v1/pools/trades",
            "from=1&limit=5&Limit=6&from=2",
            Some("from Limit"),
        ),
        (
            "/v1/pools/ledger",
            "created%5Bgte%5D=1&currency=EUR",
            Some("created[gte]"),
        ),
        ("/v1/pools/EUR-USDT/balance", "a=1", Some("a")),
        (
            format!("/v1/pools/trades/{trade}").as_str(),
            "a=1",
            Some("a"),
        ),
    ] {
        let answer = acme.get(&format!("{path}?{query}")).await;
        let expected = ignored.map(|names| format!("unknown_parameter; {names}"));
        assert_eq!(answer.header(WARNING), expected.as_deref(), "{query}");
        assert_eq!(answer.status, 200);
    }
    // The names are the client's own text, so they are not logged.
    acme.get("/v1/pools/trades?canary=1").await.ok();
    let text = logs.text();
    assert!(text.contains("unknown_parameter") && !text.contains("canary"));
    // A refusal has no warning, and a write reads no query.
    let refused = acme.get("/v1/pools/trades?limit=0&a=1").await;
    assert_eq!(refused.header(WARNING), None);
    refused.refused(400, "invalid_request");
    let quote = Call::post("/v1/pools/EUR-USDT/quote?a=1");
    let quote = acme.send(quote.json(&purchase("EUR-USDT", "10.00"))).await;
    assert_eq!((quote.status, quote.header(WARNING)), (200, None));
    world.notice_all().await;
    world.finish().await;
}

// rule: warning.safe
#[tokio::test]
async fn name_of_a_parameter_adds_no_header() {
    let world = World::new().await;
    let answer = world
        .acme()
        .get("/v1/pools/trades?a%0d%0aset-cookie:b=1&%C3%A9%F0%9F%92%B0=1&%00=1")
        .await;
    assert_eq!(answer.header("set-cookie"), None);
    assert_eq!(
        answer.header(WARNING),
        Some("unknown_parameter; a??set-cookie:b ?? ?")
    );
    world.finish().await;
}
