//! The order of a transact's checks: of two errors, the earlier check is reported.

use std::time::Duration;

use acceptance::{ACME, ACME_SECRET_2, Answer, Call, Reply, World};
use partner_core::throttle::Tier;
use pools_core::ports::Hold;
use pools_core::profile::{Kyc, PoolsAccess};
use serde_json::json;

const PATH: &str = "/v1/pools/EUR-USDT/transact";
const UNKNOWN: &str = "pq_test_01HF7YAT00408104G208104081";

async fn post(world: &World, body: &str, key: Option<&str>) -> Answer {
    let call = Call::post(PATH)
        .body(body.to_owned())
        .header("content-type", "application/json");
    let call = match key {
        Some(key) => call.key(key),
        None => call,
    };
    world.acme().send(call).await
}

// rule: pools.transact.order, access.order, access.denial-order, throttle.not-velocity
#[tokio::test]
async fn entitlement_and_throttle_are_checked_before_the_body() {
    let tier = Tier {
        name: "short",
        limit: 1,
        per: Duration::from_secs(1),
    };
    let world = World::with(|setup| setup.tiers = Some(vec![tier])).await;
    let operator = world.operator();
    world.acme().get("/v1/pools").await.ok();
    operator
        .change(ACME, |profile| {
            profile.enabled = false;
            profile.access = PoolsAccess::Suspended;
            profile.kyc = Kyc::Pending;
            profile.allowed.clear();
        })
        .await;
    // The window is full, the body is not JSON and there is no key.
    post(&world, "{", None)
        .await
        .refused(403, "pools_not_enabled");
    operator
        .change(ACME, |profile| profile.enabled = true)
        .await;
    post(&world, "{", None)
        .await
        .refused(403, "pool_access_suspended");
    operator
        .change(ACME, |profile| profile.access = PoolsAccess::Active)
        .await;
    post(&world, "{", None)
        .await
        .refused(403, "kyc_not_approved");
    operator
        .change(ACME, |profile| profile.kyc = Kyc::Approved)
        .await;
    post(&world, "{", None).await.refused(429, "rate_limited");
    world.after(1_000);
    post(&world, "{", None)
        .await
        .refused(403, "pool_not_allowed");
    operator
        .change(ACME, |profile| {
            profile
                .allowed
                .extend(pools_core::profile::PoolId::parse("EUR-USDT"))
        })
        .await;
    world.after(1_000);
    post(&world, "{", None).await.refused(400, "invalid_json");
    world.finish().await;
}

// rule: pools.transact.order, idempotency.required, idempotency.malformed
#[tokio::test]
async fn json_is_checked_before_key_and_quote_id() {
    let world = World::new().await;
    for key in [None, Some("two words")] {
        post(&world, "{", key).await.refused(400, "invalid_json");
        post(&world, "[]", key).await.refused(400, "invalid_json");
    }
    for body in [
        "{}",
        r#"{"quoteId":null}"#,
        r#"{"quoteId":7}"#,
        r#"{"quoteId":"x"}"#,
    ] {
        post(&world, body, None)
            .await
            .refused(400, "idempotency_key_required");
        post(&world, body, Some("two words"))
            .await
            .refused(400, "idempotency_key_invalid");
        post(&world, body, Some(""))
            .await
            .refused(400, "idempotency_key_invalid");
        post(&world, body, Some("k"))
            .await
            .refused(400, "invalid_request")
            .saying("quoteId");
    }
    world.finish().await;
}

// rule: pools.transact.order, idempotency.reused, idempotency.in-flight
#[tokio::test]
async fn key_in_use_is_checked_before_the_quote() {
    let world = World::new().await;
    let acme = world.acme();
    world.operator().credit(ACME, "1000.00", "EUR").await;
    let (first, second) = (
        acme.buy("EUR-USDT", "100").await,
        acme.buy("EUR-USDT", "100").await,
    );
    acme.transact("EUR-USDT", &first, "used").await.ok();
    acme.transact("EUR-USDT", UNKNOWN, "used")
        .await
        .refused(409, "idempotency_key_reused");
    let meddler = acme.clone();
    let met = std::sync::Arc::new(parking_lot::Mutex::new(0));
    let notes = met.clone();
    world.engine().meanwhile(move |_| {
        let (meddler, notes) = (meddler.clone(), notes.clone());
        async move {
            for quote in [UNKNOWN, "pq_live_01HF7YAT00408104G208104081"] {
                let twin = meddler.transact("EUR-USDT", quote, "busy").await;
                twin.refused(409, "idempotency_in_progress");
                let malformed = meddler.transact("EUR-USDT", "x", "busy").await;
                malformed.refused(400, "invalid_request");
                *notes.lock() += 1;
            }
        }
    });
    acme.transact("EUR-USDT", &second, "busy").await.ok();
    // Twice: during the hold and during the confirmation.
    assert_eq!(*met.lock(), 4);
    world.engine().in_peace();
    world.finish().await;
}

// rule: pools.transact.order, pools.transact.idempotent
#[tokio::test]
async fn existing_trade_is_checked_before_the_quote() {
    let world = World::new().await;
    let acme = world.acme();
    world.operator().credit(ACME, "100", "USDT").await;
    let quote = acme.sell("EUR-USDT", "100").await;
    let ack = acme.transact("EUR-USDT", &quote, "k").await.ok();
    world
        .operator()
        .terms(ACME, "EUR-USDT", |terms| terms.off_ramp = false)
        .await;
    world
        .operator()
        .change(ACME, |profile| profile.velocity_cap = Some(0))
        .await;
    world.engine().hold(Reply::Silent);
    world.after(60_000);
    let repeat = acme.transact("EUR-USDT", &quote, "k2").await.ok();
    assert_eq!(
        (&repeat["transactId"], &repeat["idempotent"]),
        (&ack["transactId"], &json!(true))
    );
    world.finish().await;
}

// rule: pools.transact.order, idempotency.reused
#[tokio::test]
async fn key_in_use_is_checked_before_pool_and_side_of_a_new_quote() {
    let world = World::new().await;
    let acme = world.acme();
    world.operator().credit(ACME, "100.00", "EUR").await;
    let first = acme.buy("EUR-USDC", "100").await;
    acme.transact("EUR-USDC", &first, "used").await.ok();
    let elsewhere = acme.buy("EUR-USDT", "100").await;
    let sale = acme.sell("EUR-USDC", "100").await;
    for quote in [&elsewhere, &sale] {
        acme.transact("EUR-USDC", quote, "used")
            .await
            .refused(409, "idempotency_key_reused");
    }
    world.finish().await;
}

// rule: pools.transact.order, pools.transact.idempotent
#[tokio::test]
async fn trade_of_another_process_is_checked_before_the_side() {
    let world = World::new().await;
    world.operator().credit(ACME, "100", "USDT").await;
    let quote = world.acme().sell("EUR-USDT", "100").await;
    let replica = world.replica().await;
    let made = replica.acme().transact("EUR-USDT", &quote, "k").await.ok();
    replica.close().await;
    world
        .operator()
        .terms(ACME, "EUR-USDT", |terms| terms.off_ramp = false)
        .await;
    let repeat = world.acme().transact("EUR-USDT", &quote, "k2").await.ok();
    assert_eq!(
        (&repeat["transactId"], &repeat["idempotent"]),
        (&made["transactId"], &json!(true))
    );
    world.finish().await;
}

// rule: pools.transact.order, pools.transact.side
#[tokio::test]
async fn side_is_checked_before_rejected_and_expired() {
    let world = World::new().await;
    let acme = world.acme();
    world
        .operator()
        .change(ACME, |profile| profile.velocity_cap = Some(0))
        .await;
    let quote = acme.sell("EUR-USDC", "100").await;
    let other = acme.sell("EUR-USDC", "100").await;
    acme.reject(&quote).await.ok();
    acme.transact("EUR-USDC", &quote, "k")
        .await
        .refused(501, "side_not_enabled");
    world.after(15_000);
    acme.transact("EUR-USDC", &quote, "k")
        .await
        .refused(501, "side_not_enabled");
    acme.transact("EUR-USDC", &other, "k")
        .await
        .refused(501, "side_not_enabled");
    world
        .operator()
        .terms(ACME, "EUR-USDC", |terms| terms.off_ramp = true)
        .await;
    acme.transact("EUR-USDC", &quote, "k")
        .await
        .refused(409, "quote_rejected");
    acme.transact("EUR-USDC", &other, "k")
        .await
        .refused(409, "quote_expired");
    world.finish().await;
}

// rule: pools.transact.order, pools.transact.refusal-leaves-nothing
#[tokio::test]
async fn quote_outcome_is_checked_before_velocity_balance_and_engine() {
    for reply in [Reply::Silent, Reply::Says(Hold::Refused)] {
        let world = World::new().await;
        let acme = world.acme();
        let silent = reply == Reply::Silent;
        world.engine().hold(reply);
        world
            .operator()
            .change(ACME, |profile| profile.velocity_cap = Some(0))
            .await;
        let (rejected, expired) = (
            acme.buy("EUR-USDT", "100").await,
            acme.buy("EUR-USDT", "100").await,
        );
        acme.reject(&rejected).await.ok();
        world.after(15_000);
        acme.transact("EUR-USDT", &rejected, "k")
            .await
            .refused(409, "quote_rejected");
        acme.transact("EUR-USDT", &expired, "k")
            .await
            .refused(409, "quote_expired");
        let quote = acme.buy("EUR-USDT", "100").await;
        acme.transact("EUR-USDT", &quote, "k")
            .await
            .refused(429, "velocity_cap_exceeded");
        world
            .operator()
            .change(ACME, |profile| profile.velocity_cap = None)
            .await;
        acme.transact("EUR-USDT", &quote, "k")
            .await
            .refused(402, "insufficient_balance");
        world.operator().credit(ACME, "100.00", "EUR").await;
        let answer = acme.transact("EUR-USDT", &quote, "k").await;
        if silent {
            answer.refused(503, "engine_unavailable");
        } else {
            answer.refused(409, "reservation_failed");
        }
        world.engine().hold(Reply::Sandbox);
        assert_eq!(
            acme.transact("EUR-USDT", &quote, "k").await.ok()["idempotent"],
            false
        );
        world.finish().await;
    }
}

// rule: auth.revocation-beats-money, access.order
#[tokio::test]
async fn access_lost_during_the_engine_request_is_checked_before_any_write() {
    type Change = (&'static str, fn(&mut pools_core::profile::PoolsProfile));
    let changes: [Change; 4] = [
        ("pools_not_enabled", |profile| profile.enabled = false),
        ("pool_access_suspended", |profile| {
            profile.access = PoolsAccess::Suspended
        }),
        ("kyc_not_approved", |profile| profile.kyc = Kyc::Revoked),
        ("pool_not_allowed", |profile| profile.allowed.clear()),
    ];
    for (code, change) in changes {
        let world = World::new().await;
        world.operator().credit(ACME, "100.00", "EUR").await;
        let quote = world.acme().buy("EUR-USDT", "100").await;
        let operator = world.operator().clone();
        world.engine().meanwhile(move |_| {
            let operator = operator.clone();
            async move { operator.change(ACME, change).await }
        });
        world
            .acme()
            .transact("EUR-USDT", &quote, "k")
            .await
            .refused(403, code);
        assert_eq!(
            (
                world.database().count("trades").await,
                world.database().count("idempotency_keys").await
            ),
            (0, 0)
        );
        world.engine().in_peace();
        world.finish().await;
    }
}

// rule: auth.expired
#[tokio::test]
async fn key_that_expires_before_the_commit_commits_nothing() {
    let world = World::new().await;
    world.operator().credit(ACME, "100.00", "EUR").await;
    let quote = world.acme().buy("EUR-USDT", "100").await;
    let second = std::time::Duration::from_secs(1);
    let end = kernel::Clock::now(world.clock()).plus(second);
    let key = acceptance::ACME_SECRET;
    world.operator().expire(key, end).await;
    let late = world.clone();
    world.engine().meanwhile(move |_| {
        let late = late.clone();
        async move { late.clock().advance(second) }
    });
    let answer = world.acme().transact("EUR-USDT", &quote, "k").await;
    world.engine().in_peace();
    answer.refused(403, "key_expired");
    assert_eq!(world.database().count("trades").await, 0);
    let other = world.client(ACME_SECRET_2);
    let trade = other.transact("EUR-USDT", &quote, "k").await.ok();
    assert_eq!(trade["idempotent"], false);
    world.finish().await;
}

// rule: auth.revocation-beats-money, auth.revoked
#[tokio::test]
async fn concurrent_revocation_or_suspension_commits_nothing() {
    for revoke in [true, false] {
        let world = World::new().await;
        world.operator().credit(ACME, "100.00", "EUR").await;
        let quote = world.acme().buy("EUR-USDT", "100").await;
        let operator = world.operator().clone();
        let once = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        world.engine().meanwhile(move |_| {
            let (operator, first) = (
                operator.clone(),
                !once.swap(true, std::sync::atomic::Ordering::SeqCst),
            );
            async move {
                match (first, revoke) {
                    (true, true) => operator.revoke(acceptance::ACME_SECRET).await,
                    (true, false) => {
                        operator
                            .put_partner(ACME, partner_core::PartnerStatus::Suspended)
                            .await
                    }
                    (false, _) => {}
                }
            }
        });
        let answer = world.acme().transact("EUR-USDT", &quote, "k").await;
        world.engine().in_peace();
        if revoke {
            answer.refused(403, "key_revoked");
            assert_eq!(
                world
                    .client(ACME_SECRET_2)
                    .transact("EUR-USDT", &quote, "k")
                    .await
                    .ok()["idempotent"],
                false
            );
        } else {
            answer.refused(403, "organization_suspended");
            assert_eq!(world.database().count("trades").await, 0);
        }
        world.finish().await;
    }
}

// rule: pools.transact.order, pools.transact.side
#[tokio::test]
async fn selling_disabled_concurrently_is_refused_before_the_expiry() {
    for late in [false, true] {
        let world = World::new().await;
        world.operator().credit(ACME, "100", "USDT").await;
        let quote = world.acme().sell("EUR-USDT", "100").await;
        let meddler = world.clone();
        world.engine().meanwhile(move |_| {
            let meddler = meddler.clone();
            async move {
                let operator = meddler.operator();
                operator
                    .terms(ACME, "EUR-USDT", |terms| terms.off_ramp = false)
                    .await;
                meddler.after(if late { 15_000 } else { 0 });
            }
        });
        let answer = world.acme().transact("EUR-USDT", &quote, "k").await;
        answer.refused(501, "side_not_enabled");
        world.engine().in_peace();
        assert_eq!(world.acme().ledger("USDT").await["available"], "100");
        world.finish().await;
    }
}

// rule: pools.transact.order, pools.transact.idempotent
#[tokio::test]
async fn concurrent_duplicate_is_replayed_before_quote_checks() {
    let world = World::new().await;
    world.operator().credit(ACME, "100.00", "EUR").await;
    let quote = world.acme().buy("EUR-USDT", "100").await;
    // A twin in the same process would wait.
    let replica = world.replica().await;
    let (meddler, id) = (replica.clone(), quote.clone());
    let once = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    world.engine().meanwhile(move |_| {
        let (meddler, id) = (meddler.clone(), id.clone());
        let first = !once.swap(true, std::sync::atomic::Ordering::SeqCst);
        async move {
            if first {
                let twin = Box::pin(meddler.acme().transact("EUR-USDT", &id, "twin")).await;
                assert_eq!(twin.ok()["idempotent"], false);
                meddler.after(15_000);
                meddler
                    .operator()
                    .change(ACME, |profile| profile.velocity_cap = Some(0))
                    .await;
            }
        }
    });
    // The quote is now expired, and the cap and the balance are zero.
    let ack = world.acme().transact("EUR-USDT", &quote, "k").await.ok();
    assert_eq!(
        (&ack["idempotent"], &ack["status"]),
        (&json!(true), &json!("reserved"))
    );
    world.engine().in_peace();
    replica.close().await;
    assert_eq!(world.database().count("trades").await, 1);
    assert_eq!(
        world.database().count("idempotency_keys").await,
        1,
        "the duplicate's own key stays free"
    );
    world.finish().await;
}
