//! The order of a transact's checks that are not the core's: HTTP, keys in flight, and what changes during the engine's request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acceptance::{ACME, ACME_SECRET, ACME_SECRET_2, Answer, Call, World};
use kernel::Clock as _;
use partner_core::PartnerStatus;
use partner_core::throttle::Tier;
use pools_core::profile::{Kyc, PoolsAccess, PoolsProfile};
use serde_json::json;

const SECOND: Duration = Duration::from_secs(1);
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
    type Correction = (&'static str, fn(&mut PoolsProfile));
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
    let corrections: [Correction; 3] = [
        ("pools_not_enabled", |profile| profile.enabled = true),
        ("pool_access_suspended", |profile| {
            profile.access = PoolsAccess::Active
        }),
        ("kyc_not_approved", |profile| profile.kyc = Kyc::Approved),
    ];
    for (code, correct) in corrections {
        post(&world, "{", None).await.refused(403, code);
        operator.change(ACME, correct).await;
    }
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
        for (key, code) in [
            (None, "idempotency_key_required"),
            (Some("two words"), "idempotency_key_invalid"),
            (Some(""), "idempotency_key_invalid"),
            (Some("k"), "invalid_request"),
        ] {
            let refused = post(&world, body, key).await.refused(400, code);
            if key == Some("k") {
                refused.saying("quoteId");
            }
        }
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
    let met = Arc::new(parking_lot::Mutex::new(0));
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

/// Withdraws acme's access, so that a request is refused with this code.
async fn withdraw(world: &World, code: &str) {
    let operator = world.operator();
    match code {
        "pools_not_enabled" => operator.change(ACME, |it| it.enabled = false).await,
        "pool_access_suspended" => {
            let suspend = |it: &mut PoolsProfile| it.access = PoolsAccess::Suspended;
            operator.change(ACME, suspend).await;
        }
        "kyc_not_approved" => operator.change(ACME, |it| it.kyc = Kyc::Revoked).await,
        "pool_not_allowed" => operator.change(ACME, |it| it.allowed.clear()).await,
        "organization_suspended" => operator.put_partner(ACME, PartnerStatus::Suspended).await,
        "key_revoked" => operator.revoke(ACME_SECRET).await,
        "key_expired" => world.clock().advance(SECOND),
        other => panic!("{other}"),
    }
}

// rule: auth.revocation-beats-money, auth.revoked, auth.expired, access.order
#[tokio::test]
async fn access_lost_during_the_engine_request_is_checked_before_any_write() {
    for code in [
        "pools_not_enabled",
        "pool_access_suspended",
        "kyc_not_approved",
        "pool_not_allowed",
        "organization_suspended",
        "key_revoked",
        "key_expired",
    ] {
        let world = World::new().await;
        world.operator().credit(ACME, "100.00", "EUR").await;
        let quote = world.acme().buy("EUR-USDT", "100").await;
        if code == "key_expired" {
            let end = world.clock().now().plus(SECOND);
            world.operator().expire(ACME_SECRET, end).await;
        }
        let (meddler, open) = (world.clone(), Arc::new(AtomicBool::new(true)));
        world.engine().meanwhile(move |_| {
            let (meddler, first) = (meddler.clone(), open.swap(false, Ordering::SeqCst));
            async move {
                if first {
                    withdraw(&meddler, code).await;
                }
            }
        });
        let answer = world.acme().transact("EUR-USDT", &quote, "k").await;
        world.engine().in_peace();
        answer.refused(403, code);
        for table in ["trades", "idempotency_keys"] {
            assert_eq!(world.database().count(table).await, 0, "{code}: {table}");
        }
        if code.starts_with("key_") {
            // The partner's other key executes the quote.
            let other = world.client(ACME_SECRET_2);
            let trade = other.transact("EUR-USDT", &quote, "k").await.ok();
            assert_eq!(trade["idempotent"], false, "{code}");
        }
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
    let open = Arc::new(AtomicBool::new(true));
    world.engine().meanwhile(move |_| {
        let (meddler, id) = (meddler.clone(), id.clone());
        let first = open.swap(false, Ordering::SeqCst);
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
