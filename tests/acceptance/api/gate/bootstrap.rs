//! `POST /v1/embed/bootstrap`: which pages get a token, and the token's claims.

use std::net::IpAddr;

use acceptance::{
    ACME, ACME_PUBLISHABLE, ACME_SECRET, Answer, Call, Gate, RIVAL, RIVAL_PUBLISHABLE, RIVAL_SHOP,
    SHOP, WIDGET,
};
use gate_core::embed::{Claims, Scope};
use gate_core::limits::Group;
use gate_core::token::TokenKey;
use kernel::{Clock, Mode};
use partner_core::sealing::{DerivedKeys, MasterKey};
use serde_json::{Value, json};

use super::rails::with as changed;
use crate::throttles::{tier, tier_status};

const PATH: &str = "/v1/embed/bootstrap";

/// A call from acme's page.
fn call() -> Call {
    Call::post(PATH).header("origin", SHOP)
}

async fn ask(gate: &Gate, call: Call) -> Answer {
    let key = gate.world().of_mode(ACME_PUBLISHABLE);
    gate.send(call.bearer(&key)).await
}

async fn with(gate: &Gate, body: &Value) -> Answer {
    ask(gate, call().json(body)).await
}

/// Decrypts a token with the installation's key.
fn claims(gate: &Gate, answer: &Value) -> Option<Claims> {
    let key = TokenKey::new(&DerivedKeys::of(&MasterKey::new([7; 32])));
    let token = answer["embed_token"].as_str().unwrap();
    let mode = gate.world().setup().mode;
    Claims::open(token, &key, mode, gate.world().clock().now())
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap()
}

// rule: gate.bootstrap.session-fields, gate.bootstrap.token-claims, time.output
#[tokio::test]
async fn bootstrap_without_client_secret_shows_no_session() {
    let gate = Gate::new().await;
    // A token is issued at a whole second.
    gate.world().after(999);
    let answer = ask(&gate, call()).await.ok();
    let expected = json!({
        "object": "embed_token",
        "available": true,
        "embed_token": answer["embed_token"],
        "expires_at": "2026-05-25T13:00:00.000Z",
        "partner_id": "acme",
        "mode": "test",
        "session_id": null,
        "amount": null,
        "currency": null,
        "target_token": null,
        "target_network": null,
        "return_url": null,
        "flow": null,
        "branding": {
            "object": "branding", "logo_url": null, "primary_color": null, "secondary_color": null,
            "accent_color": null, "brand_name": null,
        },
        "unavailable_reason": null,
    });
    assert_eq!(answer, expected);
    let said = claims(&gate, &answer).unwrap();
    assert_eq!((said.tenant.partner.as_str(), said.session), (ACME, None));
    assert!(Scope::ALL.iter().all(|scope| said.scopes.allow(*scope)));
    let other = ask(&gate, call()).await.ok();
    assert_ne!(claims(&gate, &other).unwrap().id, said.id);
    gate.world().after(60 * 60 * 1000 - 1_000);
    assert_eq!(claims(&gate, &answer), Some(said));
    gate.world().after(1);
    assert_eq!(claims(&gate, &answer), None, "the session has ended");
    gate.finish().await;
}

// rule: gate.bootstrap.session-fields, gate.bootstrap.token-claims
#[tokio::test]
async fn client_secret_binds_the_token_to_its_session() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let colour = json!({ "primary_color": "#1A2B3C" });
    let branded = Call::new("PATCH", "/v1/branding").json(&colour);
    acme.send(branded).await.ok();
    let body = json!({
        "amount": "7.50", "currency": "eur", "return_url": "https://shop.example/done#x",
        "target_token": "usdt", "target_network": "tron", "flow": "off_ramp",
    });
    let made = acme.create(&body, "k").await.created();
    let answer = with(&gate, &json!({ "clientSecret": made["client_secret"] })).await;
    let answer = answer.ok();
    for field in [
        "amount",
        "currency",
        "target_token",
        "target_network",
        "return_url",
        "flow",
    ] {
        assert_eq!(answer[field], made[field], "{field}");
        assert!(!answer[field].is_null());
    }
    assert_eq!(answer["session_id"], made["id"]);
    assert_eq!(answer["branding"]["primary_color"], "#1A2B3C");
    let said = claims(&gate, &answer).unwrap();
    let token = said.session.unwrap();
    assert_eq!(token.session.to_string(), text(&made, "id"));
    assert_eq!(token.number, 1);
    assert!(!answer.to_string().contains(text(&made, "client_secret")));
    gate.notice(ACME, text(&made, "id")).await;
    gate.finish().await;
}

// rule: gate.bootstrap.origin, gate.origin.default-port
#[tokio::test]
async fn only_pages_of_allowed_domains_get_a_token() {
    let gate = Gate::new().await;
    let page = |origin: Option<&str>, referer: Option<&str>| {
        let call = Call::post(PATH);
        let call = origin.map_or(call.clone(), |it| call.header("origin", it));
        referer.map_or(call.clone(), |it| call.header("referer", it))
    };
    for (origin, referer) in [
        (Some(SHOP), None),
        (Some(SHOP), Some("https://other.example/")),
        (None, Some("https://shop.example/cart?a=b")),
        (None, Some("https://shop.example:443/cart")),
        (None, Some("https://SHOP.example")),
    ] {
        let answer = ask(&gate, page(origin, referer)).await;
        assert_eq!(answer.status, 200, "{origin:?} {referer:?}");
    }
    for (origin, referer) in [
        (None, None),
        (Some("null"), Some("https://shop.example/cart")),
        (Some(""), Some("https://shop.example/cart")),
        (Some("https://shop.example/"), None),
        (Some("https://SHOP.example"), None),
        (Some("http://shop.example"), None),
        (Some("https://shop.example:8443"), None),
        (Some("https://shop.example.evil.example"), None),
        (Some("https://shop.example https://evil.example"), None),
        (Some(RIVAL_SHOP), None),
        (Some("https://m\u{fc}ller.example"), None),
        (None, Some("shop.example/cart")),
        (None, Some("https://evil.example/?https://shop.example")),
    ] {
        let answer = ask(&gate, page(origin, referer)).await;
        answer.refused(403, "origin_not_allowed");
    }
    let twice = call().header("origin", SHOP);
    ask(&gate, twice).await.refused(403, "origin_not_allowed");
    gate.finish().await;
}

// rule: gate.bootstrap.widget-origin, gate.bootstrap.secret, gate.bootstrap.origin
#[tokio::test]
async fn widget_page_needs_a_client_secret() {
    let gate = Gate::new().await;
    let made = gate.acme().open("k").await;
    let home = || Call::post(PATH).header("origin", WIDGET);
    let refused = ask(&gate, home()).await;
    refused.refused(403, "client_secret_invalid");
    let refused = ask(&gate, home().json(&json!({ "clientSecret": null }))).await;
    refused.refused(403, "client_secret_invalid");
    let body = json!({ "clientSecret": made["client_secret"] });
    let answer = ask(&gate, home().json(&body)).await.ok();
    assert_eq!(answer["session_id"], made["id"]);
    // The secret admits no other page.
    let elsewhere = Call::post(PATH).header("origin", RIVAL_SHOP).json(&body);
    let refused = ask(&gate, elsewhere).await;
    refused.refused(403, "origin_not_allowed");
    gate.notice(ACME, text(&made, "id")).await;
    gate.finish().await;
}

// rule: gate.bootstrap.secret, tenancy.nothing-crosses
#[tokio::test]
async fn wrong_client_secret_reads_like_one_of_another_partner() {
    let gate = Gate::new().await;
    let made = gate.acme().open("k").await;
    let rivals = gate.rival().open("k").await;
    let secret = text(&made, "client_secret");
    let changed = format!("{}x", &secret[..secret.len() - 1]);
    let unknown = secret.replace(text(&made, "id"), "gs_test_01HF7YAT00408104G208104081");
    let wrong = [
        text(&rivals, "client_secret").to_owned(),
        changed,
        unknown,
        secret.replace("_test_", "_live_"),
    ];
    let mut seen = Vec::new();
    for wrong in wrong {
        let answer = with(&gate, &json!({ "clientSecret": wrong })).await;
        let answer = answer.refused(403, "client_secret_invalid");
        let answer = answer.saying("`clientSecret`: no session of this partner has");
        seen.push(answer.anonymous());
    }
    seen.dedup();
    assert_eq!(seen.len(), 1, "the refusals are equal");
    // Rival's key with acme's secret, from rival's page.
    let call = Call::post(PATH)
        .header("origin", RIVAL_SHOP)
        .json(&json!({ "clientSecret": secret }))
        .bearer(RIVAL_PUBLISHABLE);
    let answer = gate.send(call).await.refused(403, "client_secret_invalid");
    assert_eq!(answer.anonymous(), seen[0]);
    gate.notice(ACME, text(&made, "id")).await;
    gate.notice(RIVAL, text(&rivals, "id")).await;
    gate.finish().await;
}

// rule: gate.bootstrap.secret, gate.bootstrap.secret-form, auth.keys-never-logged
#[tokio::test]
async fn client_secret_that_is_not_whole_is_told_from_an_unknown_one() {
    let gate = Gate::new().await;
    let made = gate.acme().open("k").await;
    let secret = text(&made, "client_secret");
    for wrong in [
        &secret[..secret.len() - 1],
        &format!("{secret}0"),
        &secret.to_uppercase(),
        &format!(" {secret}"),
        text(&made, "id"),
        "gsec_",
        "",
        &"x".repeat(60_000),
    ] {
        let answer = with(&gate, &json!({ "clientSecret": wrong })).await;
        let answer = answer.refused(403, "client_secret_invalid");
        let answer = answer.saying("`clientSecret`: expected the whole client secret");
        let shown = String::from_utf8_lossy(&answer.bytes);
        assert!(!shown.contains(text(&made, "id")), "{shown}");
    }
    let home = Call::post(PATH).header("origin", WIDGET);
    let refused = ask(&gate, home).await.refused(403, "client_secret_invalid");
    refused.saying("`clientSecret`: expected the client secret of a session, found none");
    gate.notice(ACME, text(&made, "id")).await;
    gate.finish().await;
}

// rule: gate.bootstrap.not-open, gate.session.lazy-expiry
#[tokio::test]
async fn ended_session_gets_no_token() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for end in ["completed", "cancelled", "expired"] {
        let made = acme.open(end).await;
        let id = text(&made, "id");
        match end {
            "completed" => drop(acme.complete(id).await.ok()),
            "cancelled" => drop(acme.cancel(id).await.created()),
            _ => gate.world().after(24 * 60 * 60 * 1000),
        }
        let body = json!({ "clientSecret": made["client_secret"] });
        for _ in 0..2 {
            let refused = with(&gate, &body).await.refused(403, "session_not_open");
            refused.saying(end);
        }
        let kinds = gate.notice(ACME, id).await;
        assert_eq!(
            kinds,
            [
                "gate_session.created".to_owned(),
                format!("gate_session.{end}")
            ]
        );
    }
    gate.finish().await;
}

// rule: gate.bootstrap.scopes
#[tokio::test]
async fn requested_scopes_narrow_the_token() {
    let gate = Gate::new().await;
    for (asked, allowed) in [
        (json!(null), &Scope::ALL[..]),
        (json!([]), &[]),
        (json!(["kyc:submit"]), &[Scope::KycSubmit]),
        (
            json!(["branding:read", "session:read", "session:read"]),
            &[Scope::SessionRead, Scope::BrandingRead],
        ),
    ] {
        let answer = with(&gate, &json!({ "requested_scopes": asked })).await;
        let said = claims(&gate, &answer.ok()).unwrap();
        for scope in Scope::ALL {
            assert_eq!(
                said.scopes.allow(scope),
                allowed.contains(&scope),
                "{asked}"
            );
        }
    }
    let answer = with(
        &gate,
        &json!({ "requested_scopes": ["session:read", "all"] }),
    )
    .await;
    let answer = answer.refused(400, "invalid_request");
    answer.saying("requested_scopes[1]");
    gate.finish().await;
}

// rule: gate.keys.publishable-query, gate.keys.codes, auth.secret-in-query, auth.bearer-first
#[tokio::test]
async fn bootstrap_reads_the_key_from_the_headers_first() {
    let gate = Gate::new().await;
    let in_query = format!("publishable_key={ACME_PUBLISHABLE}");
    let partner = |answer: Answer| answer.ok()["partner_id"].clone();
    let answer = gate.send(call().query(&in_query)).await;
    assert_eq!(partner(answer), ACME);
    let header = call().header("x-publishable-key", ACME_PUBLISHABLE);
    assert_eq!(partner(gate.send(header).await), ACME);
    // Rival's key is used, and rival does not allow the page.
    for over in [
        call().query(&in_query).bearer(RIVAL_PUBLISHABLE),
        call()
            .query(&in_query)
            .header("x-publishable-key", RIVAL_PUBLISHABLE),
        call()
            .header("x-publishable-key", ACME_PUBLISHABLE)
            .bearer(RIVAL_PUBLISHABLE),
    ] {
        gate.send(over).await.refused(403, "origin_not_allowed");
    }
    let secret = call().bearer(ACME_SECRET);
    gate.send(secret).await.refused(403, "key_kind_not_allowed");
    let exposed = call().query(&format!("publishable_key={ACME_SECRET}"));
    gate.send(exposed).await.refused(401, "secret_key_in_query");
    for nobody in ["publishable_key=", "publishable_key=pk_test_x", "key=x"] {
        let answer = gate.send(call().query(nobody)).await;
        answer.refused(401, "unauthorized");
    }
    let elsewhere = Call::get("/v1/branding").query(&in_query);
    gate.send(elsewhere).await.refused(401, "unauthorized");
    gate.finish().await;
}

// rule: gate.bootstrap.unavailable
#[tokio::test]
async fn exhausted_quota_returns_a_neutral_response() {
    let gate = Gate::with(|setup| setup.mode = Mode::Live).await;
    let operator = gate.world().operator();
    operator
        .change_gate(ACME, |gate| gate.live_session_quota = Some(1))
        .await;
    let state = async || {
        let answer = ask(&gate, call()).await.ok();
        assert!(answer["embed_token"].is_string());
        (
            answer["available"].clone(),
            answer["unavailable_reason"].clone(),
        )
    };
    assert_eq!(state().await, (json!(true), json!(null)));
    let made = gate.acme().open("k").await;
    assert_eq!(state().await, (json!(false), json!("quota_exhausted")));
    // The session that used the last of the quota was already counted.
    let body = json!({ "clientSecret": made["client_secret"] });
    let answer = with(&gate, &body).await.ok();
    assert_eq!(
        (&answer["available"], &answer["mode"]),
        (&json!(true), &json!("live"))
    );
    // In the next month the quota is full again.
    gate.world().after(7 * 24 * 60 * 60 * 1000);
    assert_eq!(state().await, (json!(true), json!(null)));
    gate.notice(ACME, text(&made, "id")).await;
    gate.finish().await;
}

// rule: gate.bootstrap.not-offered, gate.catalogue.swaps
#[tokio::test]
async fn session_that_no_choice_can_pay_returns_a_neutral_response() {
    let gate = Gate::with(|setup| {
        let swaps = "[[swaps]]\ncurrency = \"GBP\"\n";
        let (before, after) = setup.catalogue.split_once(swaps).unwrap();
        let (_, next) = after.split_once("[[swaps]]").unwrap();
        setup.catalogue = format!("{before}[[swaps]]{next}");
    })
    .await;
    // Yen are listed, but without a payment method.
    for (number, (changes, reason)) in [
        (json!({}), ""),
        (json!({ "target_token": "btc" }), ""),
        (json!({ "flow": "swap" }), ""),
        (json!({ "flow": "off_ramp", "target_token": "USDT" }), ""),
        (json!({ "currency": "CHF" }), "currency_not_supported"),
        (json!({ "target_token": "DOGE" }), "asset_not_supported"),
        (json!({ "currency": "JPY" }), "corridor_not_available"),
        (json!({ "target_network": "FOO" }), "network_not_supported"),
        (json!({ "target_network": "tron" }), ""),
        (json!({ "wallet_address": "x" }), "invalid_address"),
        (json!({ "amount": "10.001" }), "amount_precision"),
        (json!({ "amount": "0.01" }), ""),
        (
            json!({ "amount": "0.01", "flow": "on_ramp" }),
            "amount_out_of_range",
        ),
        (json!({ "currency": "GBP" }), ""),
        (
            json!({ "currency": "GBP", "flow": "swap" }),
            "corridor_not_available",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let body = changed(acceptance::session(SHOP), &changes);
        let made = gate
            .acme()
            .create(&body, &number.to_string())
            .await
            .created();
        let answer = with(&gate, &json!({ "clientSecret": made["client_secret"] })).await;
        let answer = answer.ok();
        let found = answer["unavailable_reason"].as_str().unwrap_or_default();
        assert_eq!(found, reason, "{changes}");
        assert_eq!(answer["available"], reason.is_empty(), "{changes}");
        assert_eq!(answer["session_id"], made["id"]);
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

/// A gate with these limits per key and network, and per key.
async fn limited(own: u32, ceiling: u32) -> Gate {
    Gate::with(|setup| {
        let limits = setup.gate_limits.as_mut().unwrap();
        limits.set(Group::Bootstrap, vec![tier("short", own, 60)]);
        limits.set(Group::BootstrapCeiling, vec![tier("medium", ceiling, 60)]);
    })
    .await
}

// rule: throttle.bootstrap, throttle.exact, throttle.network
#[tokio::test]
async fn bootstrap_counts_key_and_client_network() {
    let gate = limited(2, 100).await;
    let from = |address: &str| call().from(address.parse::<IpAddr>().unwrap());
    let first = ask(&gate, from("203.0.113.1")).await;
    assert_eq!(tier_status(&first, "short"), (2, 1, 60));
    assert_eq!(tier_status(&first, "medium"), (100, 99, 60));
    // A refusal for a reason other than the page's origin counts like a success.
    let wrong = from("::ffff:203.0.113.1").json(&json!({ "clientSecret": "nonsense" }));
    ask(&gate, wrong)
        .await
        .refused(403, "client_secret_invalid");
    let full = ask(&gate, from("203.0.113.1")).await;
    let full = full.refused(429, "rate_limited");
    assert_eq!(full.number("retry-after-short"), 60);
    assert_eq!(full.header("retry-after-medium"), None);
    assert_eq!(tier_status(&full, "medium"), (100, 98, 60));
    // Another key from this address, and this key from another address, have their own limits.
    let other = Call::post(PATH).header("origin", RIVAL_SHOP);
    let other = other.from([203, 0, 113, 1]).bearer(RIVAL_PUBLISHABLE);
    gate.send(other).await.ok();
    for address in ["2001:db8:0:1::1", "2001:db8:0:1::2"] {
        ask(&gate, from(address)).await.ok();
    }
    let full = ask(&gate, from("2001:db8:0:1::3")).await;
    full.refused(429, "rate_limited");
    ask(&gate, from("2001:db8:0:2::1")).await.ok();
    gate.world().after(60_000);
    ask(&gate, from("203.0.113.1")).await.ok();
    gate.finish().await;
}

// rule: throttle.bootstrap-foreign
#[tokio::test]
async fn foreign_pages_use_up_nothing_of_the_shop() {
    let gate = limited(3, 4).await;
    for at in 0..24_u8 {
        // From many addresses, and repeatedly from the address of the shop's customer.
        let address = if at % 2 == 0 { 1 } else { at };
        let foreign = match at % 3 {
            0 => Call::post(PATH).header("origin", "https://attacker.example"),
            1 => Call::post(PATH).header("origin", "null"),
            _ => Call::post(PATH),
        };
        let answer = ask(&gate, foreign.from([203, 0, 113, address])).await;
        let code = answer["code"].as_str().unwrap_or_default().to_owned();
        let found = (answer.status, code.as_str());
        assert!(
            matches!(found, (403, "origin_not_allowed") | (429, "rate_limited")),
            "{found:?}"
        );
        assert_eq!(tier_status(&answer, "medium"), (4, 4, 60));
    }
    // A foreign page has its own limit.
    let foreign = Call::post(PATH).header("origin", "https://attacker.example");
    let refused = ask(&gate, foreign.from([203, 0, 113, 1])).await;
    refused.refused(429, "rate_limited");
    let answer = ask(&gate, call().from([203, 0, 113, 1])).await;
    assert_eq!(tier_status(&answer, "short"), (3, 2, 60));
    answer.ok();
    gate.finish().await;
}

// rule: throttle.bootstrap-ceiling, throttle.exact
#[tokio::test]
async fn customers_with_addresses_of_their_own_start_up_to_the_ceiling() {
    let gate = limited(3, 4).await;
    for customer in 1..=4 {
        let answer = ask(&gate, call().from([203, 0, 113, customer])).await;
        assert_eq!(tier_status(&answer, "short"), (3, 2, 60));
        assert_eq!(tier_status(&answer, "medium").1, 4 - u64::from(customer));
        answer.ok();
    }
    for _ in 0..3 {
        let answer = ask(&gate, call().from([203, 0, 113, 99])).await;
        let refused = answer.refused(429, "rate_limited");
        assert_eq!(refused.number("retry-after-medium"), 60);
        assert_eq!(refused.number("retry-after-short"), 60);
        assert_eq!(tier_status(&refused, "short"), (3, 3, 60));
    }
    gate.world().after(60_000);
    let answer = ask(&gate, call().from([203, 0, 113, 99])).await;
    assert_eq!(tier_status(&answer, "short"), (3, 2, 60));
    answer.ok();
    gate.finish().await;
}

// rule: request.unknown-fields, idempotency.gate-optional
#[tokio::test]
async fn bootstrap_body_is_optional_and_read_strictly() {
    let gate = Gate::new().await;
    for body in [
        json!({}),
        json!({ "clientSecret": null, "requested_scopes": null, "partner_id": "rival", "mode": "live" }),
    ] {
        let answer = with(&gate, &body).await.ok();
        assert_eq!(
            (&answer["partner_id"], &answer["mode"]),
            (&json!("acme"), &json!("test"))
        );
    }
    for (body, field) in [
        (json!({ "clientSecret": 1 }), "clientSecret"),
        (
            json!({ "requested_scopes": "session:read" }),
            "requested_scopes",
        ),
        (json!({ "requested_scopes": [null] }), "requested_scopes"),
    ] {
        let answer = with(&gate, &body).await.refused(400, "invalid_request");
        answer.saying(field);
    }
    let answer = ask(&gate, call().body("{}")).await;
    answer.refused(415, "unsupported_media_type");
    // Bootstrap is not a write, so the idempotency header is ignored.
    let keyed = call().header("idempotency-key", "a b");
    ask(&gate, keyed).await.ok();
    gate.finish().await;
}
