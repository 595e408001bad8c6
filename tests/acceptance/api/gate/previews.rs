//! Quote previews: the arithmetic of each method, refusals, and the lock that one session uses.

use acceptance::{ACME, Answer, Call, Gate, GateClient, RIVAL_SHOP, SHOP};
use serde_json::{Value, json};

use super::races::one_winner;
use super::rails::in_turn;

const PREVIEW: &str = "/v1/quotes/preview";

fn order() -> Value {
    json!({ "currency": "EUR", "asset": "USDT", "amount": "100.00", "side": "on_ramp" })
}

/// The order with some fields changed; null removes a field.
fn with(changes: Value) -> Value {
    let mut body = order();
    for (field, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(body.as_object_mut().unwrap().remove(field)),
            value => body[field] = value.clone(),
        }
    }
    body
}

async fn asked(client: &GateClient, changes: Value) -> Answer {
    client.send(Call::post(PREVIEW).json(&with(changes))).await
}

async fn id(client: &GateClient) -> String {
    let preview = asked(client, json!({})).await.ok();
    preview["quote_preview_id"].as_str().unwrap().to_owned()
}

/// A session that matches the order.
fn session(preview: &str) -> Value {
    json!({
        "amount": "100.0", "currency": "EUR", "return_url": format!("{SHOP}/done"), "flow": "on_ramp",
        "target_token": "usdt", "quote_preview_id": preview,
    })
}

/// An available method. The fees are the total, the service's and the network's.
fn option(method: &str, fiat: &str, crypto: &str, rate: &str, fees: &str) -> Value {
    let [total, service, network] = fees.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{fees}")
    };
    json!({
        "payment_method": method, "fiat_amount": fiat, "crypto_amount": crypto, "exchange_rate": rate,
        "fees": { "total": total, "service": service, "network": network, "currency": "EUR" },
        "unavailable_reason": null,
    })
}

// rule: gate.preview.answer, gate.preview.options, gate.price.purchase, gate.price.sale, gate.price.fees, gate.preview.id
#[tokio::test]
async fn order_is_priced_by_each_method() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let bought = asked(&acme, json!({ "currency": "eur", "asset": "usdt" }))
        .await
        .ok();
    // 1.0850 less 25 bps; (100 - fees) x 1.0822875, cut to six digits.
    let rate = "1.0822875";
    let sepa = option("sepa", "100.00", "106.605318", rate, "1.50 0.50 1.00");
    let card = option("card", "100.00", "104.440743", rate, "3.50 2.50 1.00");
    assert_eq!(bought["options"], json!([sepa, card]));
    for (field, value) in order().as_object().unwrap() {
        assert_eq!(bought[field], *value, "{field}");
    }
    assert_eq!(bought["object"], "quote_preview");
    assert_eq!(bought["expires_at"], "2026-05-25T12:05:00.000Z");
    let id = bought["quote_preview_id"].as_str().unwrap();
    assert!(
        id.len() == 24
            && id
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')),
        "{id}"
    );
    let sale = json!({ "side": "off_ramp", "amount": "100", "country_code": "de" });
    let sold = asked(&acme, sale).await.ok();
    // 0.9975 / 1.0850 cut to eight digits; 91.935483 cut to 91.93, less 0.46.
    let sepa = option("sepa", "91.47", "100", "0.91935483", "0.46 0.46 0.00");
    assert_eq!(sold["options"], json!([sepa]));
    assert_eq!(sold["amount"], "100");
    let dear = json!({ "network": "ethereum", "payment_method": "sepa", "country_code": "DE" });
    let dear = asked(&acme, dear).await.ok();
    let sepa = option("sepa", "100.00", "104.981887", rate, "3.00 0.50 2.50");
    assert_eq!(dear["options"], json!([sepa]));
    gate.finish().await;
}

// rule: gate.preview.unavailable
#[tokio::test]
async fn unavailable_method_shows_its_reason() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for (field, value, method, reason) in [
        ("asset", "BTC", "sepa", "rate_unavailable"),
        ("amount", "100.13", "sepa", "rate_unavailable"),
        ("country_code", "JP", "card", "country_not_supported"),
        ("country_code", "BR", "card", "country_not_supported"),
        ("country_code", "GB", "sepa", "corridor_not_available"),
        ("amount", "1.20", "card", "amount_out_of_range"),
    ] {
        let preview = asked(&acme, json!({ field: value })).await.ok();
        let options = preview["options"].as_array().unwrap();
        assert_eq!(options.len(), 2, "{field}: {value}");
        let option = options
            .iter()
            .find(|it| it["payment_method"] == method)
            .unwrap();
        let expected = json!({
            "payment_method": method, "fiat_amount": preview["amount"], "crypto_amount": null, "exchange_rate": null,
            "fees": null, "unavailable_reason": reason,
        });
        assert_eq!(option, &expected, "{field}: {value}");
    }
    // Available by one method only: a card payment is fifty cents at least.
    let cheap = asked(&acme, json!({ "amount": "1.20", "network": "tron" }))
        .await
        .ok();
    let reasons = [0, 1].map(|at| cheap["options"][at]["unavailable_reason"].clone());
    assert_eq!(reasons, [json!(null), json!("amount_out_of_range")]);
    let yen = asked(&acme, json!({ "currency": "JPY", "amount": "100" }))
        .await
        .ok();
    assert_eq!(yen["options"], json!([]));
    gate.finish().await;
}

// rule: gate.preview.out-of-range
#[tokio::test]
async fn amount_outside_every_method_is_refused() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for changes in [
        json!({ "amount": "1.01" }),
        json!({ "amount": "1.20", "payment_method": "card" }),
        json!({ "amount": "0.01", "side": "off_ramp" }),
        json!({ "amount": "9999999999.99" }),
        json!({ "amount": "99999999999" }),
    ] {
        let refusal = asked(&acme, changes).await;
        refusal
            .refused(400, "amount_out_of_range")
            .saying("`amount`");
    }
    assert_eq!(gate.world().database().count("quote_previews").await, 0);
    gate.finish().await;
}

// rule: gate.preview.refusals, gate.order.catalogue, gate.order.digits, gate.order.codes, error.names-the-field
#[tokio::test]
async fn wrong_field_is_named() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for (field, value, code) in [
        ("currency", json!("CHF"), "unknown_currency"),
        ("currency", json!("euro"), "unknown_currency"),
        ("asset", json!("DOGE"), "unknown_currency"),
        ("network", json!("TRON"), "network_not_supported"),
        ("network", json!("bitcoin"), "network_not_supported"),
        ("payment_method", json!("ach"), "invalid_request"),
        ("country_code", json!("XX"), "invalid_request"),
        ("amount", json!("100.001"), "amount_precision"),
        ("amount", json!("10000000000.01"), "amount_out_of_range"),
        ("amount", json!("0"), "invalid_request"),
        ("amount", json!("1e2"), "invalid_request"),
        ("amount", json!(100), "invalid_request"),
        ("side", json!("swap"), "invalid_request"),
        ("side", Value::Null, "invalid_request"),
        ("currency", Value::Null, "invalid_request"),
    ] {
        let refused = asked(&acme, json!({ field: value })).await;
        refused.refused(400, code).saying(&format!("`{field}`"));
    }
    let sale = json!({ "amount": "100.0000001", "side": "off_ramp" });
    let refused = asked(&acme, sale).await;
    refused.refused(400, "amount_precision").saying("`amount`");
    gate.finish().await;
}

// rule: gate.preview.locks, gate.preview.ignores-key
#[tokio::test]
async fn preview_without_locks_has_no_id_and_writes_nothing() {
    let gate = Gate::new().await;
    let operator = gate.world().operator();
    operator
        .change_gate(ACME, |profile| profile.preview_locks = false)
        .await;
    gate.world().after(5_000);
    let before = gate.world().database().digest().await;
    let preview = asked(&gate.acme(), json!({})).await.ok();
    assert_eq!(preview["quote_preview_id"], json!(null));
    assert_eq!(preview["expires_at"], "2026-05-25T12:05:05.000Z");
    assert_eq!(gate.world().database().digest().await, before);
    // The route ignores an Idempotency-Key.
    let rival = gate.rival();
    let call = || Call::post(PREVIEW).json(&order()).key("same");
    let [one, two] = [rival.send(call()).await.ok(), rival.send(call()).await.ok()];
    assert_ne!(one["quote_preview_id"], two["quote_preview_id"]);
    rival
        .send(Call::post(PREVIEW).json(&order()).key(""))
        .await
        .ok();
    gate.finish().await;
}

// rule: gate.preview.match, gate.preview.once, gate.preview.expiry, gate.session.preview-missing
#[tokio::test]
async fn one_session_that_agrees_uses_a_preview_in_time() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let preview = id(&acme).await;
    for (field, value) in [
        ("amount", json!("100.01")),
        ("currency", json!("USD")),
        ("target_token", json!("USDC")),
        ("target_token", json!(null)),
        ("flow", json!("off_ramp")),
        ("flow", json!("swap")),
        ("flow", json!(null)),
    ] {
        let mut other = session(&preview);
        other[field] = value;
        let refused = acme.create(&other, "key").await;
        refused.refused(400, "quote_preview_mismatch");
    }
    let foreign = gate.rival().create(&session(&preview), "key").await;
    // Rival has other pages and does not own the preview.
    foreign
        .refused(400, "invalid_request")
        .saying("`return_url`");
    let mut rivals = session(&preview);
    rivals["return_url"] = json!(format!("{}/done", RIVAL_SHOP));
    gate.rival()
        .create(&rivals, "key")
        .await
        .refused(400, "quote_preview_missing");
    for missing in [
        "0".repeat(24),
        "0".repeat(23),
        preview.to_uppercase() + "x",
        String::new(),
    ] {
        let refused = acme.create(&session(&missing), "key").await;
        refused.refused(400, "quote_preview_missing");
    }
    // No refusal used the preview, and a repeat under the winning key is replayed.
    let created = acme.create(&session(&preview), "key").await;
    let first = created.clone().created();
    assert_eq!(
        acme.create(&session(&preview), "key").await.created(),
        first
    );
    let again = acme.create(&session(&preview), "other").await;
    again.refused(400, "quote_preview_used");
    let late = id(&acme).await;
    gate.world().after(299_999);
    let mut wrong = session(&late);
    wrong["amount"] = json!("1");
    acme.create(&wrong, "wrong")
        .await
        .refused(400, "quote_preview_mismatch");
    gate.world().after(1);
    acme.create(&session(&late), "late")
        .await
        .refused(400, "quote_preview_expired");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.preview.match
#[tokio::test]
async fn sale_preview_binds_the_crypto_amount() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let sold = asked(&acme, json!({ "side": "off_ramp", "amount": "50.5" }))
        .await
        .ok();
    let mut body = session(sold["quote_preview_id"].as_str().unwrap());
    body["flow"] = json!("off_ramp");
    body["amount"] = json!("50.50");
    acme.create(&body, "key").await.created();
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.preview.once
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_twenty_concurrent_sessions_uses_a_preview() {
    let gate = Gate::new().await;
    let preview = id(&gate.acme()).await;
    let creates = (0..20).map(|at| {
        let (client, body) = (gate.acme(), session(&preview));
        async move {
            let key = format!("key-{at}");
            in_turn(|| client.create(&body, &key)).await
        }
    });
    one_winner(creates, 400, "quote_preview_used").await;
    assert_eq!(gate.world().database().count("sessions").await, 1);
    gate.world().notice_all().await;
    gate.finish().await;
}
