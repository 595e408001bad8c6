//! `POST /v1/gate_sessions`: the terms of a session, and refusals.

use acceptance::{ACME, ACME_PUBLISHABLE, Call, Contract, Gate, RIVAL, SHOP, WIDGET, session};
use gate_core::profile::GateProfile;
use kernel::Mode;
use serde_json::{Value, json};
use test_support::recorded::recorded;

use super::customers::hex;
use super::widget::{plain, widget, with as with_token};

const PATH: &str = "/v1/gate_sessions";

/// A plain body with some fields changed; null removes a field.
fn with(fields: &Value) -> Value {
    let mut body = session(SHOP);
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

// rule: error.content-encoding
#[tokio::test]
async fn encoded_body_is_refused_by_every_route_that_reads_a_body() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let (token, _) = widget(&gate, &plain()).await;
    let key = gate.world().of_mode(ACME_PUBLISHABLE);
    let operations = Contract::gate().operations.iter();
    let reading: Vec<_> = operations.filter(|it| it.takes_body).collect();
    assert!(reading.len() >= 13, "{reading:?}");
    for operation in reading {
        let call = Call::of(recorded(&operation.id)).header("content-encoding", "gzip");
        let credentials: Vec<&str> = operation.credentials.iter().map(String::as_str).collect();
        let answer = match credentials[..] {
            ["secretKey"] => acme.send(call).await,
            ["publishableKey"] => gate.send(call.bearer(&key)).await,
            ["embedToken"] => gate.send(with_token(&token, call)).await,
            _ => panic!("{}: {credentials:?}", operation.id),
        };
        let refused = answer.refused(415, "unsupported_media_type");
        refused.saying("`Content-Encoding: gzip`");
    }
    gate.finish().await;
}

// rule: gate.session.url
#[tokio::test]
async fn link_names_newest_active_publishable_key() {
    let gate = Gate::new().await;
    let (acme, world) = (gate.acme(), gate.world());
    let (older, newer) = (
        "pk_test_AcmeAcmeAcmeAcmeAcmeAcmeAcme0004",
        "pk_test_AcmeAcmeAcmeAcmeAcmeAcmeAcme0005",
    );
    for (partner, text) in [
        (ACME, older),
        (ACME, newer),
        (ACME, "sk_test_AcmeAcmeAcmeAcmeAcmeAcmeAcme0006"),
        (RIVAL, "pk_test_RivalRivalRivalRivalRivalRiv0007"),
    ] {
        world.after(1000);
        world.operator().put_key(partner, text).await;
    }
    let key_in_link = async |name: &str| {
        let made = acme.create(&session(SHOP), name).await.created();
        let events = gate.events(ACME, made["id"].as_str().unwrap()).await;
        assert_eq!(events[0].1.get("url"), Some(&Value::Null));
        let (_, fragment) = made["url"].as_str()?.split_once("publishable_key=")?;
        Some(fragment.split_once('&')?.0.to_owned())
    };
    assert_eq!(key_in_link("newest").await.as_deref(), Some(newer));
    world.operator().revoke(newer).await;
    assert_eq!(key_in_link("revoked").await.as_deref(), Some(older));
    world.operator().expire(older, gate.now()).await;
    let oldest = Some(ACME_PUBLISHABLE);
    assert_eq!(key_in_link("expired").await.as_deref(), oldest);
    world.operator().revoke(ACME_PUBLISHABLE).await;
    assert_eq!(key_in_link("none").await, None);
    // An older version stored no texts.
    let older =
        format!("UPDATE api_keys SET publishable_sealed = NULL WHERE partner_id = '{RIVAL}'");
    world.damage(&older).await;
    let made = gate.rival().open("k").await;
    assert_eq!(made.get("url"), Some(&Value::Null));
    gate.notice(RIVAL, made["id"].as_str().unwrap()).await;
    gate.finish().await;
}

// rule: gate.session.created, gate.session.secret-once, gate.session.secret-hashed, gate.session.expires, gate.session.url, time.output
#[tokio::test]
async fn created_session_is_open_and_shows_its_secret_once() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let made = acme.open("k").await;
    let id = made["id"].as_str().unwrap();
    assert!(id.starts_with("gs_test_"), "{id}");
    let secret = made["client_secret"].as_str().unwrap();
    let random = secret.strip_prefix(&format!("gsec_{id}_")).unwrap();
    assert_eq!(random.len(), 32);
    let rows = gate.world().database().digest().await;
    // One store prints bytes in upper case, the other in lower case.
    let rows = rows.into_values().collect::<String>().to_lowercase();
    assert!(!rows.contains(&random.to_lowercase()) && !rows.contains(&hex(random)));
    let expected = json!({
        "id": id,
        "object": "gate_session",
        "partner_id": "acme",
        "mode": "test",
        "amount": "100.00",
        "currency": "EUR",
        "return_url": "https://shop.example/done",
        "cancel_url": null,
        "status": "open",
        "expires_at": "2026-05-26T12:00:00.000Z",
        "created_at": "2026-05-25T12:00:00.000Z",
        "flow": null,
        "target_token": null,
        "target_network": null,
        "wallet_address": null,
        "user_reference": null,
        "kyc_pre_verified": false,
        "metadata": {},
        "client_secret": secret,
        "url": format!(
            "{WIDGET}/checkout#publishable_key={}&client_secret={secret}",
            gate.world().of_mode(ACME_PUBLISHABLE)
        ),
    });
    assert_eq!(made, expected);
    let mut read = expected;
    read.as_object_mut().unwrap().remove("client_secret");
    read["url"] = Value::Null;
    assert_eq!(acme.read(id).await.ok(), read);
    let listed = acme.get(PATH).await.ok();
    assert_eq!(listed["data"], json!([read]));
    let cancelled = acme.cancel(id).await.created();
    let once = (cancelled.get("client_secret"), &cancelled["url"]);
    assert_eq!(once, (None, &Value::Null));
    let events = gate.events(ACME, id).await;
    assert!(!format!("{events:?}").contains("gsec_"));
    gate.finish().await;
}

// rule: gate.session.amount-as-sent, gate.session.upper-case, gate.session.metadata-exact, gate.origin.as-sent, gate.event.kyc-package
#[tokio::test]
async fn create_accepts_every_documented_field() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let text = r#"{"amount":"007.50000000","currency":"eur","return_url":"HTTPS://SHOP.example:443/done#paid",
        "cancel_url":"https://shop.example/cart?a=b","target_token":"usdt","target_network":"tron","flow":"off_ramp",
        "wallet_address":"TJRabPrwbZy45sbavfcjinPJC18kjpRTv8","user_reference":"user ☂ 1",
        "metadata":{"order": 1.10, "big": 12345678901234567890.50, "nested": {"a": [true, null]}},
        "kyc_package":{"level": 2}, "unknown": 1, "quote_preview_id": null}"#;
    let call = Call::post(PATH)
        .body(text)
        .header("content-type", "application/json; charset=utf-8")
        .key("k");
    let answer = acme.send(call).await;
    let raw = String::from_utf8(answer.bytes.to_vec()).unwrap();
    let made = answer.created();
    assert!(
        raw.contains(
            r#""metadata":{"order":1.10,"big":12345678901234567890.50,"nested":{"a":[true,null]}}"#
        ),
        "{raw}"
    );
    for (field, value) in [
        ("amount", json!("007.50000000")),
        ("currency", json!("EUR")),
        ("return_url", json!("HTTPS://SHOP.example:443/done#paid")),
        ("cancel_url", json!("https://shop.example/cart?a=b")),
        ("target_token", json!("USDT")),
        ("target_network", json!("TRON")),
        ("flow", json!("off_ramp")),
        (
            "wallet_address",
            json!("TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"),
        ),
        ("user_reference", json!("user ☂ 1")),
        ("kyc_pre_verified", json!(true)),
    ] {
        assert_eq!(made[field], value, "{field}");
    }
    assert_eq!(made.get("kyc_package"), None);
    let id = made["id"].as_str().unwrap();
    let kinds = gate.notice(ACME, id).await;
    let expected = ["gate_session.created", "gate_session.kyc_package_accepted"];
    assert_eq!(kinds, expected);
    gate.finish().await;
}

// rule: gate.session.amount-grammar, gate.session.amount-range, gate.session.currency, gate.origin.https, gate.origin.allowed, gate.origin.strict, gate.session.text-limits, gate.session.code-limits, gate.session.metadata, gate.session.preview-missing, gate.session.kyc-package, gate.session.flow
#[tokio::test]
async fn invalid_field_is_refused_with_its_reason() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let long = |length: usize| json!("x".repeat(length));
    let many: Value = (0..51).map(|key| (key.to_string(), json!(1))).collect();
    let refused = async |field: &str, value: Value, code: &str, words: &str| {
        let answer = acme.create(&with(&json!({ field: value })), "k").await;
        let answer = answer.refused(400, code).saying(words);
        answer.saying(&format!("`{field}`"));
    };
    let excess = json!("10000000000.1");
    refused("amount", excess, "amount_out_of_range", "10000000000").await;
    for currency in ["XXX", "DEM"] {
        refused("currency", json!(currency), "unknown_currency", "ISO 4217").await;
    }
    for preview in ["0123456789abcdef01234567", "short"] {
        let (field, code) = ("quote_preview_id", "quote_preview_missing");
        refused(field, json!(preview), code, "preview").await;
    }
    for (field, url, words) in [
        ("return_url", "http://shop.example/done", "https"),
        ("return_url", "https://evil.example/", "allowed_domains"),
        ("return_url", "https://rival.example/", "allowed_domains"),
        (
            "return_url",
            "https://shop.example@evil.example/",
            "absolute",
        ),
        ("return_url", "/done", "absolute"),
        (
            "cancel_url",
            "https://shop.example:8443/",
            "allowed_domains",
        ),
    ] {
        refused(field, json!(url), "invalid_request", words).await;
    }
    let large = json!({ "a": "x".repeat(16_384) });
    for (field, value, words) in [
        ("amount", json!("1e3"), "decimal"),
        ("amount", json!("0.00"), "greater than zero"),
        ("amount", json!("1.123456789"), "8 fractional"),
        ("amount", json!(100), "must be a string such as \"100.00\"."),
        ("amount", Value::Null, "required"),
        ("currency", Value::Null, "required"),
        ("return_url", Value::Null, "required"),
        ("cancel_url", json!(["https://shop.example/"]), "a string"),
        ("flow", json!("buy"), "`on_ramp`, `off_ramp`, `swap`"),
        ("target_token", long(33), "expected at most 32"),
        ("target_network", long(33), "expected at most 32"),
        ("wallet_address", long(129), "128"),
        ("user_reference", long(129), "128"),
        ("metadata", json!([1]), "object"),
        ("metadata", many, "50 keys"),
        ("metadata", large, "16 KiB"),
        ("kyc_package", json!({}), "at least one key"),
        ("kyc_package", json!("yes"), "object"),
    ] {
        refused(field, value, "invalid_request", words).await;
    }
    // The key stayed free, and no row was written.
    assert_eq!(gate.world().database().count("sessions").await, 0);
    assert_eq!(gate.world().database().count("answers").await, 0);
    let id = acme.open_id("k").await;
    gate.notice(ACME, &id).await;
    gate.finish().await;
}

// rule: gate.session.order-of-checks, gate.session.kyc-trusted, gate.session.flow-not-enabled, gate.quota.exhausted
// rule: idempotency.only-success
#[tokio::test]
async fn quota_is_checked_between_package_and_flow() {
    let gate = Gate::with(|setup| setup.mode = Mode::Live).await;
    let acme = gate.acme();
    let quota = async |quota: u64| {
        let change = |profile: &mut GateProfile| {
            profile.flow_sessions = false;
            profile.kyc_trusted = false;
            profile.live_session_quota = Some(quota);
        };
        gate.world().operator().change_gate(ACME, change).await;
    };
    quota(0).await;
    let mut fields = json!({ "amount": "0", "flow": "swap", "kyc_package": { "a": 1 } });
    for (status, code, corrected) in [
        (400, "invalid_request", "amount"),
        (403, "kyc_package_not_trusted", "kyc_package"),
    ] {
        acme.create(&with(&fields), "k").await.refused(status, code);
        fields.as_object_mut().unwrap().remove(corrected);
    }
    let exhausted = acme.create(&with(&fields), "k").await;
    exhausted.refused(403, "quota_exhausted");
    quota(1).await;
    let flow = acme.create(&with(&fields), "k").await;
    flow.refused(403, "kit_blocks_not_enabled");
    // The refused creates did not count, and left the key free.
    let neither = with(&json!({ "flow": null, "kyc_package": null }));
    let made = acme.create(&neither, "k").await.created();
    gate.notice(ACME, made["id"].as_str().unwrap()).await;
    // Both features need their right in test mode too.
    let test = gate.other_mode().await;
    let denied = |profile: &mut GateProfile| {
        profile.flow_sessions = false;
        profile.kyc_trusted = false;
    };
    test.world().operator().change_gate(ACME, denied).await;
    for (field, code) in [
        (
            json!({ "kyc_package": { "a": 1 } }),
            "kyc_package_not_trusted",
        ),
        (json!({ "flow": "swap" }), "kit_blocks_not_enabled"),
    ] {
        let refused = test.acme().create(&with(&field), "k").await;
        refused.refused(403, code);
    }
    test.close().await;
    gate.finish().await;
}

// rule: gate.quota.exhausted, gate.quota.live-only
#[tokio::test]
async fn quota_counts_live_sessions_of_the_month() {
    let gate = Gate::new().await;
    let live = gate.other_mode().await;
    for gate in [&gate, &live] {
        let quota = |profile: &mut GateProfile| profile.live_session_quota = Some(2);
        gate.world().operator().change_gate(ACME, quota).await;
    }
    let mut made = Vec::new();
    for at in 0..3 {
        made.push(gate.acme().open_id(&format!("k{at}")).await);
    }
    for at in 0..2 {
        let id = live.acme().open_id(&format!("k{at}")).await;
        assert!(id.starts_with("gs_live_"));
        live.notice(ACME, &id).await;
    }
    let body = session(SHOP);
    let refused = live.acme().create(&body, "k2").await;
    refused.refused(403, "quota_exhausted");
    // A repeat creates no session, so it does not count.
    live.acme().create(&body, "k1").await.created();
    // 2026-06-01
    live.world()
        .after(6 * 24 * 60 * 60 * 1000 + 12 * 60 * 60 * 1000);
    let id = live.acme().open_id("k2").await;
    live.notice(ACME, &id).await;
    for id in made {
        gate.notice(ACME, &id).await;
        assert_eq!(gate.acme().status(&id).await, "expired");
        gate.notice(ACME, &id).await;
    }
    for id in live.acme().get(PATH).await.ok()["data"].as_array().unwrap() {
        live.notice(ACME, id["id"].as_str().unwrap()).await;
    }
    live.world().notice_all().await;
    live.close().await;
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.origin.https, gate.origin.default-port
#[tokio::test]
async fn loopback_page_is_allowed_in_the_sandbox_only() {
    let gate = Gate::new().await;
    let live = gate.other_mode().await;
    let local = partner_core::origin::AllowedDomain::stored("http://localhost:3000").unwrap();
    for gate in [&gate, &live] {
        let page = local.clone();
        let allow = |profile: &mut GateProfile| {
            profile.allowed_domains.insert(page);
        };
        gate.world().operator().change_gate(ACME, allow).await;
    }
    let body = with(&json!({ "return_url": "http://localhost:3000/done" }));
    let made = gate.acme().create(&body, "k").await.created();
    gate.notice(ACME, made["id"].as_str().unwrap()).await;
    let refused = live.acme().create(&body, "k").await;
    refused.refused(400, "invalid_request").saying("https");
    live.close().await;
    gate.finish().await;
}

// rule: error.all-missing
#[tokio::test]
async fn create_names_every_missing_field() {
    let gate = Gate::new().await;
    let answer = gate.acme().create(&json!({}), "k").await;
    let answer = answer.refused(400, "invalid_request");
    assert_eq!(
        answer["message"],
        "`amount`, `currency` and `return_url` are required."
    );
    let body =
        json!({ "amount": "100.00", "currency": "EUR", "returnUrl": format!("{SHOP}/done") });
    let answer = gate.acme().create(&body, "k").await;
    let answer = answer.refused(400, "invalid_request");
    assert_eq!(
        answer["message"],
        "`return_url` is required. `returnUrl` is no field of this request: did you mean `return_url`?"
    );
    gate.finish().await;
}
