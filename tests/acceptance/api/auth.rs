//! Authentication: keys, and where requests carry them. `security.rs` has the table of every credential on every route.

use std::time::Duration;

use acceptance::{
    ACME, ACME_PUBLISHABLE, ACME_SECRET, ACME_SECRET_2, Call, RIVAL, RIVAL_PUBLISHABLE,
    RIVAL_SECRET, World,
};
use kernel::{Clock as _, Mode};
use partner_core::PartnerStatus;

use crate::routes::{self, Class, Ids};

const UNKNOWN_SECRET: &str = "sk_test_NobodyNobodyNobodyNobodyNobody99";

// rule: auth.unknown, auth.bearer-first
#[tokio::test]
async fn malformed_credential_is_refused() {
    let world = World::new().await;
    let read = || Call::get("/v1/pools");
    let bearer = |value: &str| read().header("authorization", value);
    for bad in [
        read().bearer(""),
        read().bearer(&ACME_SECRET[..39]),
        read().bearer(&format!("{ACME_SECRET}0")),
        read().bearer(&ACME_SECRET.to_lowercase()),
        read().bearer("sk_prod_AcmeAcmeAcmeAcmeAcmeAcmeAcme0001"),
        read().bearer("sk_test_AcmeAcme-cmeAcmeAcmeAcmeAcme0001"),
        read().bearer("sk_test_ÀcmeAcmeAcmeAcmeAcmeAcmeAcme000"),
        read().bearer("whsec_AAAA"),
        bearer(ACME_SECRET),
        bearer("Bearer"),
        bearer(&format!("Bearer{ACME_SECRET}")),
        bearer(&format!("Bearer \"{ACME_SECRET}\"")),
        read()
            .header("x-secret-key", ACME_SECRET)
            .header("x-secret-key", ACME_SECRET),
    ] {
        let answer = world.send(bad.clone()).await;
        assert_eq!(answer["code"], "unauthorized", "{bad:?}");
    }
    world.finish().await;
}

// rule: auth.names-scheme, auth.missing, auth.keys-never-logged
#[tokio::test]
async fn refusal_says_what_authorization_has_in_place_of_a_bearer() {
    let world = World::new().await;
    let cut = &ACME_SECRET[..20];
    for (value, found) in [
        (
            Some(format!("Basic {ACME_SECRET}")),
            "`Authorization: Basic …` is not accepted",
        ),
        (Some(ACME_SECRET.to_owned()), "one word without a scheme"),
        (
            Some(format!("Key {ACME_SECRET}")),
            "another scheme than `Bearer`",
        ),
        (None, "An API key is required"),
    ] {
        let call = Call::get("/v1/pools");
        let call = match &value {
            Some(value) => call.header("authorization", value),
            None => call,
        };
        let answer = world.send(call).await.refused(401, "unauthorized");
        let answer = answer
            .saying(found)
            .saying("send `Authorization: Bearer <API key>`.");
        let shown = String::from_utf8_lossy(&answer.bytes);
        assert!(!shown.contains(cut), "{shown}");
    }
    world.finish().await;
}

// rule: auth.bearer-first
#[tokio::test]
async fn key_is_read_from_each_header() {
    let world = World::new().await;
    let path = "/v1/pools/funding";
    let reference = async |call: Call| {
        let funding = world.send(call).await.ok();
        funding["reference"].as_str().unwrap().to_owned()
    };
    let bearer =
        |scheme: &str| Call::get(path).header("authorization", &format!("{scheme} {ACME_SECRET}"));
    for call in [
        bearer("Bearer"),
        bearer("bearer"),
        bearer("BEARER"),
        bearer("Bearer  "),
        Call::get(path).header("x-secret-key", ACME_SECRET),
        Call::get(path)
            .header("X-Secret-Key", ACME_SECRET)
            .header("x-publishable-key", RIVAL_PUBLISHABLE),
        bearer("Bearer").header("x-secret-key", RIVAL_SECRET),
        bearer("Bearer")
            .header("x-secret-key", "garbage")
            .header("x-publishable-key", "garbage"),
        Call::get(path)
            .header("authorization", "Basic dTpw")
            .header("x-secret-key", ACME_SECRET),
    ] {
        assert_eq!(reference(call).await, "ACME-7F3K");
    }
    let list = world
        .send(Call::get("/v1/pools").header("x-publishable-key", ACME_PUBLISHABLE))
        .await;
    assert_eq!(list.ok(), world.acme().get("/v1/pools").await.ok());
    world.finish().await;
}

// rule: auth.other-mode, access.order
#[tokio::test]
async fn key_of_other_mode_is_refused_known_or_not() {
    let live = World::with(|setup| setup.mode = Mode::Live).await;
    for key in [ACME_SECRET, ACME_PUBLISHABLE, UNKNOWN_SECRET] {
        let answer = live.client(key).get("/v1/pools").await;
        answer.refused(403, "key_mode_mismatch");
    }
    live.acme().get("/v1/pools/funding").await.ok();
    live.finish().await;
}

// rule: auth.expired
#[tokio::test]
async fn expired_key_is_refused_from_its_instant() {
    let world = World::new().await;
    let end = world.clock().now().plus(Duration::from_secs(1));
    for key in [ACME_SECRET, ACME_PUBLISHABLE] {
        world.operator().expire(key, end).await;
    }
    for (millis, code) in [(999, None), (1, Some("key_expired"))] {
        world.after(millis);
        for key in [ACME_SECRET, ACME_PUBLISHABLE] {
            let answer = world.client(key).get("/v1/pools").await;
            assert_eq!(answer["code"].as_str(), code, "{key}");
        }
    }
    world.client(ACME_SECRET_2).get("/v1/pools").await.ok();
    world.finish().await;
}

// rule: auth.secret-in-query, auth.keys-never-logged
#[tokio::test]
async fn secret_key_in_query_is_refused_with_any_header() {
    let world = World::new().await;
    let escaped: String = ACME_SECRET
        .bytes()
        .map(|byte| format!("%{byte:02x}"))
        .collect();
    for query in [
        format!("api_key={ACME_SECRET}"),
        format!("limit=5&x={ACME_SECRET}&y=1"),
        ACME_SECRET.to_owned(),
        format!("{ACME_SECRET}=1"),
        format!("x={}", ACME_SECRET.replace('_', "%5F")),
        format!("x={}", ACME_SECRET.replace('_', "%255f")),
        format!("x={escaped}"),
        format!("x=prefix{ACME_SECRET}"),
        "x=sk_live_NobodyNobodyNobodyNobodyNobody99".to_owned(),
    ] {
        let call = Call::get("/v1/pools").bearer(ACME_SECRET_2).query(&query);
        let answer = world.send(call).await.refused(401, "secret_key_in_query");
        let shown = String::from_utf8_lossy(&answer.bytes);
        assert!(!shown.contains("AcmeAcme"), "{answer:?}");
    }
    // A publishable key in the query is not refused as a secret, but does not authenticate either.
    let call = Call::get("/v1/pools").query(&format!("publishable_key={ACME_PUBLISHABLE}"));
    world.send(call.clone()).await.refused(401, "unauthorized");
    world.send(call.bearer(ACME_SECRET)).await.ok();
    world.finish().await;
}

// rule: auth.before-body
#[tokio::test]
async fn key_is_checked_before_the_body() {
    let world = World::new().await;
    for operation in ["quote", "transact"] {
        let path = format!("/v1/pools/EUR-USDT/{operation}");
        let call = || {
            Call::post(&path)
                .body("x".repeat(70_000))
                .header("content-type", "text/plain")
        };
        world.send(call()).await.refused(401, "unauthorized");
        world
            .send(call().bearer(UNKNOWN_SECRET))
            .await
            .refused(401, "unauthorized");
        world
            .send(call().bearer(ACME_PUBLISHABLE))
            .await
            .refused(403, "key_mode_mismatch");
        let call = call().bearer(ACME_SECRET);
        let answer = world.send(call).await;
        assert!(answer.status == 415 || answer.status == 413, "{answer:?}");
    }
    world.finish().await;
}

// rule: access.not-enabled, access.suspended, access.kyc, access.checked-routes, access.unchecked-routes, access.denial-order
#[tokio::test]
async fn entitlement_is_checked_on_four_routes_only() {
    use pools_core::profile::{Kyc, PoolsAccess, PoolsProfile};
    type Change = (&'static str, fn(&mut PoolsProfile));
    let changes: [Change; 5] = [
        ("kyc_not_approved", |profile| profile.kyc = Kyc::Pending),
        ("kyc_not_approved", |profile| profile.kyc = Kyc::Revoked),
        ("pool_access_suspended", |profile| {
            profile.access = PoolsAccess::Suspended
        }),
        ("pools_not_enabled", |profile| profile.enabled = false),
        ("pools_not_enabled", |profile| profile.allowed.clear()),
    ];
    let world = World::new().await;
    world.operator().credit(ACME, "1000.00", "EUR").await;
    let (quote, trade) = world.acme().trade("EUR-USDT", "100.21").await;
    let ids = Ids { quote, trade };
    for (code, change) in changes {
        world.operator().change(ACME, change).await;
        for (operation, call) in routes::all(Some(&ids)) {
            let answer = world.send(call.bearer(ACME_SECRET)).await;
            match routes::class(operation) {
                Class::Entitled => drop(answer.refused(403, code)),
                Class::AnyKey | Class::Secret if operation.id == "rejectQuote" => {
                    drop(answer.refused(409, "quote_consumed"));
                }
                Class::AnyKey | Class::Secret => drop(answer.ok()),
            }
        }
    }
    // The other partner is unaffected.
    world
        .rival()
        .get("/v1/pools/EUR-USDT/capabilities")
        .await
        .ok();
    world.notice_all().await;
    world.finish().await;
}

// rule: access.pool-not-allowed, access.unchecked-routes
#[tokio::test]
async fn removed_pool_is_denied_and_its_trades_stay_readable() {
    let world = World::new().await;
    world.operator().credit(ACME, "1000.00", "EUR").await;
    let acme = world.acme();
    let (quote, trade) = acme.trade("EUR-USDT", "100").await;
    let open = acme.buy("EUR-USDT", "100").await;
    world
        .operator()
        .change(ACME, |profile| profile.allowed.clear())
        .await;
    for answer in [
        acme.get("/v1/pools/EUR-USDT/capabilities").await,
        acme.get("/v1/pools/EUR-USDT/balance").await,
        acme.transact("EUR-USDT", &open, "k").await,
        acme.transact("EUR-USDT", &quote, "k").await,
    ] {
        answer.refused(403, "pool_not_allowed");
    }
    acme.ask("EUR-USDT", &acceptance::purchase("EUR-USDT", "100"))
        .await
        .refused(404, "resource_not_found");
    acme.read(&trade).await.ok();
    acme.reject(&open).await.ok();
    assert_eq!(acme.status(&quote).await, "settled");
    world.notice(ACME, &trade).await;
    world.finish().await;
}

// rule: access.not-enabled
#[tokio::test]
async fn partner_without_the_product_is_refused() {
    let world = World::new().await;
    let stranger = "sk_test_StrangerStrangerStrangerStrang01";
    world
        .operator()
        .put_partner("stranger", PartnerStatus::Active)
        .await;
    world.operator().put_key("stranger", stranger).await;
    let client = world.client(stranger);
    assert_eq!(
        client.get("/v1/pools").await.ok(),
        serde_json::json!({ "pools": [] })
    );
    let order = acceptance::purchase("EUR-USDT", "100");
    for answer in [
        client.get("/v1/pools/EUR-USDT/capabilities").await,
        // The same for an unknown pool: a partner without entitlement learns nothing about pools.
        client.get("/v1/pools/CHF-USDT/capabilities").await,
        client.ask("EUR-USDT", &order).await,
    ] {
        answer.refused(403, "pools_not_enabled");
    }
    client
        .get("/v1/pools/funding")
        .await
        .refused(404, "funding_not_enabled");
    assert_eq!(
        client.get("/v1/pools/ledger").await.ok()["available"],
        "0.00"
    );
    world.finish().await;
}

// rule: access.not-by-api, base.unknown-keys-not-cached
#[tokio::test]
async fn new_key_works_at_once_after_a_refusal_as_unknown() {
    let world = World::new().await;
    let client = world.client(UNKNOWN_SECRET);
    client
        .get("/v1/pools/funding")
        .await
        .refused(401, "unauthorized");
    world.operator().put_key(RIVAL, UNKNOWN_SECRET).await;
    assert_eq!(
        client.get("/v1/pools/funding").await.ok()["reference"],
        "RIVAL-1"
    );
    world.finish().await;
}

// rule: auth.key-hash-only, base.sealed
#[tokio::test]
async fn database_holds_keys_and_secrets_hashed_or_sealed() {
    let world = World::new().await;
    world.operator().credit(ACME, "100.00", "EUR").await;
    let (quote, trade) = world.acme().trade("EUR-USDT", "10").await;
    world.acme().poll(&quote).await.ok();
    let hex = |text: &str| {
        text.bytes()
            .map(|byte| format!("{byte:02X}"))
            .collect::<String>()
    };
    let whole = world
        .database()
        .digest()
        .await
        .into_values()
        .collect::<Vec<_>>()
        .join("\n");
    // One store prints bytes in upper case, the other in lower case.
    let has_bytes = |text: &str| whole.to_uppercase().contains(&hex(text));
    for secret in [&ACME_SECRET[20..], &ACME_PUBLISHABLE[20..], &"A".repeat(20)] {
        assert!(!whole.contains(secret) && !has_bytes(secret), "{secret}");
    }
    // The event's body is sealed; the trade's row is not.
    assert!(!has_bytes("pool.transaction.settled\",\"transactId"));
    world.notice(ACME, &trade).await;
    world.finish().await;
}

// rule: auth.revocation-reaches-all, base.config-spreads, base.unknown-keys-not-cached
#[tokio::test]
async fn every_change_reaches_another_process_within_five_seconds() {
    let world = World::new().await;
    let replica = world.replica().await;
    let watching = replica.operator().watch();
    let path = "/v1/pools/EUR-USDT/capabilities";
    let there = replica.acme();
    replica
        .client(UNKNOWN_SECRET)
        .get(path)
        .await
        .refused(401, "unauthorized");
    assert_eq!(there.get(path).await.ok()["tier"], "standard");
    world.operator().put_key(RIVAL, UNKNOWN_SECRET).await;
    replica.client(UNKNOWN_SECRET).get(path).await.ok();
    world
        .operator()
        .change(ACME, |profile| profile.tier = "gold".to_owned())
        .await;
    world.operator().revoke(ACME_SECRET_2).await;
    // Five seconds on an idle machine.
    let arrival = tokio::time::timeout(std::time::Duration::from_secs(30), async {
        let second = replica.client(ACME_SECRET_2);
        while second.get(path).await.status == 200 || there.get(path).await.ok()["tier"] != "gold" {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    });
    arrival.await.expect("both changes arrive in time");
    replica
        .client(ACME_SECRET_2)
        .get(path)
        .await
        .refused(403, "key_revoked");
    watching.abort();
    replica.close().await;
    world.finish().await;
}
