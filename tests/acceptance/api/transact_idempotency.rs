//! `Idempotency-Key` on transact.

use std::time::Duration;

use acceptance::{ACME, ACME_SECRET_2, Call, Client, QueueFault, RIVAL, Reply, World};
use kernel::Mode;
use partner_core::events::Service;
use serde_json::{Value, json};

const PATH: &str = "/v1/pools/EUR-USDT/transact";
const DAY: u64 = 24 * 60 * 60 * 1000;

async fn funded() -> World {
    let world = World::new().await;
    world.operator().credit(ACME, "10000.00", "EUR").await;
    world
}

/// The trade of a response, and whether it is a repeat.
fn trade(ack: &Value) -> (String, bool) {
    (
        ack["transactId"].as_str().unwrap().to_owned(),
        ack["idempotent"].as_bool().unwrap(),
    )
}

/// Expects that the transact of a quote under a key is refused.
async fn refuse(client: &Client, quote: &str, key: &str, status: u16, code: &str) {
    let answer = client.transact("EUR-USDT", quote, key).await;
    answer.refused(status, code);
}

/// Expects that a key belongs to another quote.
async fn refuse_reuse(client: &Client, quote: &str, key: &str) {
    refuse(client, quote, key, 409, "idempotency_key_reused").await;
}

// rule: idempotency.required, idempotency.malformed, idempotency.any-text
#[tokio::test]
async fn idempotency_header_is_validated() {
    let world = funded().await;
    let acme = world.acme();
    let quote = acme.buy("EUR-USDT", "10").await;
    let call = || Call::post(PATH).json(&json!({ "quoteId": quote }));
    acme.send(call())
        .await
        .refused(400, "idempotency_key_required");
    let long = "x".repeat(256);
    for bad in ["", "a b", "é", "\"a", &long, &format!("\"{long}\"")] {
        acme.send(call().key(bad))
            .await
            .refused(400, "idempotency_key_invalid");
    }
    for second in ["a", "b"] {
        let twice = acme.send(call().key("a").key(second)).await;
        twice.refused(400, "idempotency_key_invalid");
    }
    assert_eq!(world.database().count("idempotency_keys").await, 0);
    let (id, _) = trade(&acme.send(call().key(&long[1..])).await.ok());
    for good in ["!", "a\"b", "%00", "';DROPTABLEtrades;--"] {
        assert_eq!(
            trade(&acme.send(call().key(good)).await.ok()),
            (id.clone(), true),
            "{good}"
        );
    }
    world.finish().await;
}

// rule: pools.transact.idempotent, pools.transact.repeat-leaves-key, idempotency.reused, idempotency.quoted, pools.transact.once
#[tokio::test]
async fn same_body_is_replayed_and_another_body_conflicts() {
    let world = funded().await;
    let acme = world.acme();
    let (first, second, third) = (
        acme.buy("EUR-USDT", "10").await,
        acme.buy("EUR-USDT", "20").await,
        acme.buy("EUR-USDT", "30").await,
    );
    let (id, repeat) = trade(&acme.transact("EUR-USDT", &first, "k").await.ok());
    assert!(!repeat);
    let before = world.database().digest().await;
    for key in ["k", "other"] {
        assert_eq!(
            trade(&acme.transact("EUR-USDT", &first, key).await.ok()),
            (id.clone(), true)
        );
    }
    for key in ["k", "\"k\""] {
        refuse_reuse(&acme, &second, key).await;
    }
    assert_eq!(
        world.database().digest().await,
        before,
        "repeats change no row"
    );
    assert_eq!(acme.quote(&second).await.ok()["status"], "active");
    // The key of a repeat is free, and a key in upper case is another key.
    for (quote, key) in [(&second, "other"), (&third, "K")] {
        let ack = acme.transact("EUR-USDT", quote, key).await.ok();
        assert!(!trade(&ack).1, "{key}");
    }
    world.finish().await;
}

// rule: pools.transact.idempotent, idempotency.transact-stores-no-answer
#[tokio::test]
async fn repeat_shows_the_trades_current_status() {
    for (amount, statuses) in [
        ("10.31", &["failed"][..]),
        ("10.32", &["released"]),
        ("10.41", &["settled", "returned"]),
        ("10.21", &["reserved", "settled"]),
    ] {
        let world = funded().await;
        let acme = world.acme();
        let (quote, id) = acme.trade("EUR-USDT", amount).await;
        for status in statuses {
            assert_eq!(acme.status(&quote).await, *status);
            for key in [format!("trade-{quote}"), "another".to_owned()] {
                let ack = acme.transact("EUR-USDT", &quote, &key).await.ok();
                assert_eq!(
                    ack,
                    json!({ "transactId": id, "status": status, "quoteId": quote, "idempotent": true })
                );
            }
        }
        world.notice(ACME, &id).await;
        world.finish().await;
    }
}

// rule: idempotency.only-success, idempotency.shape-first
#[tokio::test]
async fn every_refusal_leaves_the_key_free() {
    let world = World::new().await;
    let acme = world.acme();
    let expired = acme.buy("EUR-USDT", "10").await;
    world.after(15_000);
    let (quote, rejected) = (
        acme.buy("EUR-USDT", "10").await,
        acme.buy("EUR-USDT", "10").await,
    );
    acme.reject(&rejected).await.ok();
    let sale = acme.sell("EUR-USDT", "10").await;
    refuse(&acme, "x", "k", 400, "invalid_request").await;
    let unknown = "pq_test_01HF7YAT00408104G208104081";
    refuse(&acme, unknown, "k", 404, "resource_not_found").await;
    refuse(&acme, &expired, "k", 409, "quote_expired").await;
    refuse(&acme, &rejected, "k", 409, "quote_rejected").await;
    refuse(&acme, &quote, "k", 402, "insufficient_balance").await;
    refuse(&acme, &sale, "k", 402, "insufficient_balance").await;
    world
        .operator()
        .terms(ACME, "EUR-USDT", |terms| terms.off_ramp = false)
        .await;
    refuse(&acme, &sale, "k", 501, "side_not_enabled").await;
    world
        .operator()
        .change(ACME, |profile| profile.velocity_cap = Some(1))
        .await;
    refuse(&acme, &quote, "k", 429, "velocity_cap_exceeded").await;
    world
        .operator()
        .change(ACME, |profile| profile.velocity_cap = None)
        .await;
    world.operator().credit(ACME, "10.00", "EUR").await;
    world.engine().hold(Reply::Silent);
    refuse(&acme, &quote, "k", 503, "engine_unavailable").await;
    world.engine().hold(Reply::Sandbox);
    for fault in [QueueFault::Away, QueueFault::Full, QueueFault::LostUnheard] {
        world.fail_next_commit(fault);
        assert_eq!(acme.transact("EUR-USDT", &quote, "k").await.status, 503);
    }
    assert!(!trade(&acme.transact("EUR-USDT", &quote, "k").await.ok()).1);
    world.finish().await;
}

// rule: idempotency.kept
#[tokio::test]
async fn key_is_kept_for_exactly_a_day() {
    let world = funded().await;
    let acme = world.acme();
    let first = acme.buy("EUR-USDT", "10").await;
    let (id, _) = trade(&acme.transact("EUR-USDT", &first, "k").await.ok());
    world.after(DAY - 1);
    let second = acme.buy("EUR-USDT", "20").await;
    refuse_reuse(&acme, &second, "k").await;
    world.after(1);
    let (other, repeat) = trade(&acme.transact("EUR-USDT", &second, "k").await.ok());
    assert!(!repeat && other != id);
    // The quote keeps its trade for ever; its old key now belongs to another trade.
    refuse_reuse(&acme, &first, "k").await;
    assert_eq!(
        trade(&acme.transact("EUR-USDT", &first, "k3").await.ok()),
        (id.clone(), true)
    );
    world.after(DAY);
    assert_eq!(
        trade(&acme.transact("EUR-USDT", &first, "k").await.ok()),
        (id, true)
    );
    world.finish().await;
}

/// An earlier release stored no expiry, and may have kept keys for a week.
// rule: idempotency.no-expiry
#[tokio::test]
async fn key_without_expiry_counts_for_a_day_or_the_configured_time() {
    for (seconds, counts) in [(2, DAY), (7 * 24 * 60 * 60, 7 * DAY)] {
        let ttl = Duration::from_secs(seconds);
        let world = World::with(|setup| setup.idempotency_ttl = ttl).await;
        world.operator().credit(ACME, "100.00", "EUR").await;
        let acme = world.acme();
        let first = acme.buy("EUR-USDT", "10").await;
        acme.transact("EUR-USDT", &first, "k").await.ok();
        world
            .damage("UPDATE idempotency_keys SET expires_at = NULL")
            .await;
        world.after(counts - 1);
        let operator = world.operator();
        operator.sweep_keys(Service::Pools, Mode::Test, ttl).await;
        let second = acme.buy("EUR-USDT", "20").await;
        refuse_reuse(&acme, &second, "k").await;
        world.after(1);
        acme.transact("EUR-USDT", &second, "k").await.ok();
        world.finish().await;
    }
}

// rule: idempotency.scope
#[tokio::test]
async fn key_belongs_to_partner_and_path_across_api_keys() {
    let world = funded().await;
    world.operator().credit(RIVAL, "100.00", "EUR").await;
    let acme = world.acme();
    let (first, second) = (
        acme.buy("EUR-USDT", "10").await,
        acme.buy("EUR-USDT", "10").await,
    );
    let elsewhere = acme.buy("EUR-USDC", "10").await;
    let foreign = world.rival().buy("EUR-USDT", "10").await;
    let (id, _) = trade(&acme.transact("EUR-USDT", &first, "k").await.ok());
    let other_key = world.client(ACME_SECRET_2);
    refuse_reuse(&other_key, &second, "k").await;
    assert_eq!(
        trade(&other_key.transact("EUR-USDT", &first, "k").await.ok()),
        (id, true)
    );
    assert!(!trade(&acme.transact("EUR-USDC", &elsewhere, "k").await.ok()).1);
    assert!(!trade(&world.rival().transact("EUR-USDT", &foreign, "k").await.ok()).1);
    world.finish().await;
}

// rule: idempotency.canonical
#[tokio::test]
async fn bodies_are_compared_by_the_fields_of_the_route() {
    let world = funded().await;
    let acme = world.acme();
    let quote = acme.buy("EUR-USDT", "10").await;
    let (id, _) = trade(&acme.transact("EUR-USDT", &quote, "k").await.ok());
    for body in [
        format!(r#"{{"quoteId":"{quote}"}}"#),
        format!("\n\t {{ \"x\" : [ 1 , 2 ] , \"quoteId\" : \"{quote}\" }} "),
        format!(r#"{{"side":"off_ramp","quoteId":"{quote}"}}"#),
        format!(r#"{{"\u0071uoteId":"\u0070{}"}}"#, &quote[1..]),
    ] {
        let call = Call::post(PATH)
            .body(body)
            .header("content-type", "application/json; charset=utf-8")
            .key("k");
        assert_eq!(trade(&acme.send(call).await.ok()), (id.clone(), true));
    }
    world.finish().await;
}

// rule: idempotency.unknown-commit, pools.transact.atomic
#[tokio::test]
async fn unknown_commit_is_503_and_the_retry_finds_the_outcome() {
    for (fault, committed) in [
        (QueueFault::CommittedUnheard, true),
        (QueueFault::LostUnheard, false),
    ] {
        let world = funded().await;
        let acme = world.acme();
        let quote = acme.buy("EUR-USDT", "10").await;
        world.fail_next_commit(fault);
        let answer = acme.transact("EUR-USDT", &quote, "k").await;
        assert_eq!(
            (answer.status, &answer["type"]),
            (503, &json!("server_error"))
        );
        let status = if committed { "consumed" } else { "active" };
        assert_eq!(acme.quote(&quote).await.ok()["status"], status);
        let (id, repeat) = trade(&acme.transact("EUR-USDT", &quote, "k").await.ok());
        assert_eq!(repeat, committed);
        assert_eq!(acme.balance("EUR-USDT").await, "9990.00");
        assert_eq!(acme.status(&quote).await, "settled");
        world.notice(ACME, &id).await;
        world.finish().await;
    }
}

// rule: idempotency.cache-decides-nothing, idempotency.same-transaction
#[tokio::test]
async fn another_process_with_empty_caches_returns_the_same_response() {
    let world = funded().await;
    let (first, second) = (
        world.acme().buy("EUR-USDT", "10").await,
        world.acme().buy("EUR-USDT", "10").await,
    );
    let (id, _) = trade(&world.acme().transact("EUR-USDT", &first, "k").await.ok());
    let replica = world.replica().await;
    assert_eq!(
        trade(&replica.acme().transact("EUR-USDT", &first, "k").await.ok()),
        (id, true)
    );
    refuse_reuse(&replica.acme(), &second, "k").await;
    replica.close().await;
    world.finish().await;
}
