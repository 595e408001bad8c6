//! What is logged about a request, and what is never logged.

use acceptance::{
    ACME, ACME_PUBLISHABLE, ACME_SECRET, ACME_SECRET_2, Call, Logs, QueueFault, World, purchase,
};
use serde_json::json;

use crate::routes;

// rule: auth.keys-never-logged, program.logs
#[tokio::test]
async fn keys_are_never_logged() {
    let (logs, _caught) = Logs::catch();
    let world = World::new().await;
    world.operator().credit(ACME, "1000.00", "EUR").await;
    let (quote, trade) = world.acme().trade("EUR-USDT", "100.31").await;
    world.acme().poll(&quote).await.ok();
    let escaped: String = ACME_SECRET
        .bytes()
        .map(|byte| format!("%{byte:02X}"))
        .collect();
    for (_, call) in routes::all(None) {
        for key in [
            ACME_SECRET,
            ACME_PUBLISHABLE,
            "sk_live_AcmeAcmeAcmeAcmeAcmeAcmeAcme0001",
        ] {
            world.send(call.clone().bearer(key)).await;
            world.send(call.clone().header("x-secret-key", key)).await;
            world.send(call.clone().header("authorization", key)).await;
            world
                .send(
                    call.clone()
                        .header("x-request-id", key)
                        .header("idempotency-key", key),
                )
                .await;
            world
                .send(
                    call.clone()
                        .header("user-agent", key)
                        .header("x-forwarded-for", key),
                )
                .await;
        }
        world
            .send(call.clone().query(&format!("k={ACME_SECRET}")))
            .await;
        world
            .send(call.clone().query(&format!("k={escaped}")))
            .await;
    }
    for path in [
        format!("/v1/pools/{ACME_SECRET}/capabilities"),
        format!("/v1/pools/quotes/{ACME_SECRET_2}"),
        format!("/{ACME_SECRET}"),
    ] {
        world.acme().get(&path).await;
    }
    world.send(Call::new(ACME_SECRET, "/v1/pools")).await;
    world.send(Call::new(ACME_SECRET, "/nowhere")).await;
    let body = json!({ "quoteId": ACME_SECRET, "side": ACME_SECRET, "x": ACME_SECRET });
    for operation in ["quote", "transact"] {
        let call = Call::post(&format!("/v1/pools/EUR-USDT/{operation}"))
            .json(&body)
            .key(ACME_SECRET);
        world.acme().send(call).await;
    }
    let text = logs.text();
    assert!(text.lines().count() > 100, "requests are logged");
    for canary in ["AcmeAcme", &escaped[..60], "whsec_"] {
        let line = text.lines().find(|line| line.contains(canary));
        assert_eq!(line, None, "{canary} is logged");
    }
    world.notice(ACME, &trade).await;
    world.finish().await;
}

// rule: response.client-request-id
#[tokio::test]
async fn harmless_client_request_id_is_logged() {
    let (logs, _caught) = Logs::catch();
    let world = World::new().await;
    let (long, longer) = ("a".repeat(64), "a".repeat(65));
    for (id, logged) in [
        ("trace-1.2_3", true),
        (&*long, true),
        ("A", true),
        (&*longer, false),
        ("", false),
        ("a b", false),
        ("a\"b", false),
        ("a:b", false),
        ("é", false),
        ("\u{1b}[31m", false),
        ("{}", false),
        ("a/b", false),
        (ACME_SECRET_2, false),
    ] {
        let call = Call::get("/v1/pools").bearer(ACME_SECRET);
        let Some(call) = call.try_header("x-request-id", id) else {
            continue;
        };
        let answer = world.send(call).await;
        let lines = logs.of(answer.header("x-request-id").unwrap());
        let found = lines
            .iter()
            .find_map(|line| line["client_request_id"].as_str());
        assert_eq!(found, logged.then_some(id), "{id:?}");
    }
    world.finish().await;
}

// rule: error.internal-generic, error.panic-contained
#[tokio::test]
async fn cause_of_a_failure_is_logged_under_its_request() {
    let (logs, _caught) = Logs::catch();
    let world = World::new().await;
    world.operator().credit(ACME, "100.00", "EUR").await;
    let quote = world.acme().buy("EUR-USDT", "10").await;
    for (fault, words) in [
        (QueueFault::Away, "the disk is away"),
        (QueueFault::LostUnheard, "the connection broke"),
    ] {
        world.fail_next_commit(fault);
        let answer = world.acme().transact("EUR-USDT", &quote, "k").await;
        assert!(!String::from_utf8_lossy(&answer.bytes).contains(words));
        let lines = logs.of(answer.header("x-request-id").unwrap());
        assert!(
            lines
                .iter()
                .any(|line| line["level"] == "ERROR" && line.to_string().contains(words)),
            "{lines:?}"
        );
    }
    world.engine().meanwhile(|_| async { panic!("canary") });
    let answer = world.acme().transact("EUR-USDT", &quote, "k").await;
    let lines = logs.of(answer.header("x-request-id").unwrap());
    assert!(
        lines.iter().any(|line| line["level"] == "ERROR"),
        "{lines:?}"
    );
    world.finish().await;
}

// rule: error.default-codes, response.request-id
#[tokio::test]
async fn every_request_has_one_line_with_its_outcome() {
    let (logs, _caught) = Logs::catch();
    let world = World::new().await;
    for (call, status, code, partner) in [
        (
            Call::get("/v1/pools").bearer(ACME_SECRET),
            200,
            None,
            Some("acme"),
        ),
        (Call::get("/v1/pools"), 401, Some("unauthorized"), None),
        (
            Call::get("/v1/pools/quotes/x").bearer(ACME_SECRET),
            404,
            Some("resource_not_found"),
            Some("acme"),
        ),
        (
            Call::get("/nowhere?x=secret"),
            404,
            Some("route_not_found"),
            None,
        ),
    ] {
        let line = logs.line_of(&world.send(call).await);
        assert_eq!(
            (&line["http.status"], line["error.code"].as_str()),
            (&json!(status), code)
        );
        assert_eq!(line["partner.id"].as_str(), partner);
        assert!(!line.to_string().contains("secret"), "no query: {line}");
    }
    world.finish().await;
}

// rule: logs.object-ids
#[tokio::test]
async fn line_of_request_names_its_quote_and_trade() {
    let (logs, _caught) = Logs::catch();
    let world = World::new().await;
    world.operator().credit(ACME, "1000.00", "EUR").await;
    let acme = world.acme();
    let quoted = acme.ask("EUR-USDT", &purchase("EUR-USDT", "100.31")).await;
    let quote = quoted["quoteId"].as_str().unwrap();
    let executed = acme.transact("EUR-USDT", quote, "k").await;
    let trade = executed["transactId"].as_str().unwrap();
    let (of_quote, of_trade) = (("quote.id", quote), ("trade.id", trade));
    for (answer, ids) in [
        (&quoted, &[of_quote][..]),
        (&executed, &[of_quote, of_trade]),
        (
            &acme.transact("EUR-USDT", quote, "k").await,
            &[of_quote, of_trade],
        ),
        (&acme.poll(quote).await, &[of_quote, of_trade]),
        (&acme.quote(quote).await, &[of_quote]),
        (&acme.reject(quote).await, &[of_quote]),
        (&acme.read(trade).await, &[of_trade]),
        // The ids of a refused request are logged too.
        (&world.rival().read(trade).await, &[of_trade]),
        (
            &world
                .send(Call::get(&format!("/v1/pools/trades/{trade}")))
                .await,
            &[of_trade],
        ),
    ] {
        logs.expect_ids(answer, ids);
    }
    for path in ["canary", &format!("{trade}x"), ACME_SECRET] {
        let line = logs.line_of(&acme.read(path).await);
        assert_eq!(line.get("trade.id"), None, "{line}");
    }
    world.notice(ACME, trade).await;
    world.finish().await;
}
