//! `POST /v1/embed/outcome`: how a session ended, and the addresses that lead back to the shop.

use acceptance::{
    ACME, ACME_PUBLISHABLE, Answer, Call, Gate, Logs, RIVAL_PUBLISHABLE, RIVAL_SHOP, SHOP, WIDGET,
};
use gate_core::limits::Group;
use gate_core::profile::GateProfile;
use partner_core::origin::AllowedDomain;
use serde_json::{Value, json};

use super::rails::{self, DAY, PAY_INS, id, redeem};
use super::widget::{SESSION, plain, version, waiting, waits_while, widget, with};
use super::widget_payments::{Widget, purchase};
use super::widget_sales::sell;
use super::widget_swaps;
use crate::throttles::{tier, tier_status};

const PATH: &str = "/v1/embed/outcome";
const BOOTSTRAP: &str = "/v1/embed/bootstrap";

/// A call of acme's page with this body.
async fn ask(gate: &Gate, body: &Value) -> Answer {
    ask_from(gate, SHOP, body).await
}

/// A call of this page, with acme's key.
async fn ask_from(gate: &Gate, page: &str, body: &Value) -> Answer {
    let key = gate.world().of_mode(ACME_PUBLISHABLE);
    let call = Call::post(PATH).header("origin", page).json(body);
    gate.send(call.bearer(&key)).await
}

async fn outcome(gate: &Gate, client_secret: &str) -> Answer {
    ask(gate, &json!({ "clientSecret": client_secret })).await
}

fn secret(made: &Value) -> &str {
    made["client_secret"].as_str().unwrap()
}

// rule: gate.outcome.fields, gate.outcome.receipt, gate.outcome.reads-only
#[tokio::test]
async fn outcome_of_a_purchase_shows_its_receipt() {
    let (logs, _caught) = Logs::catch();
    let gate = Gate::new().await;
    let cancel_url = format!("{SHOP}/cart");
    let widget = Widget::open(&gate, json!({ "cancel_url": cancel_url })).await;
    let paid = widget.buy("k").await;
    gate.world().after(1_000);
    gate.settle_rails().await;
    let before = gate.world().database().digest().await;
    let answer = outcome(&gate, &widget.client_secret).await;
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    logs.expect_ids(&answer, &[("session.id", &widget.session)]);
    let shown = answer.ok();
    let expected = json!({
        "object": "embed_outcome", "session_id": widget.session, "mode": "test", "status": "completed",
        "branding": {
            "object": "branding", "logo_url": null, "primary_color": null, "secondary_color": null,
            "accent_color": null, "brand_name": null,
        },
        "merchant": {
            "legal_name": null, "support_url": null, "terms_url": null, "privacy_url": null,
        },
        "amount": "100.00", "currency": "EUR", "flow": null, "return_url": format!("{SHOP}/done"),
        "cancel_url": cancel_url, "ended_at": "2026-05-25T12:00:01.000Z", "payment_id": paid["id"],
        "receipt": {
            "reference": paid["tx_refid"], "side": "on_ramp", "payment_method": "sepa",
            "fiat_amount": "100.00", "currency": "EUR", "crypto_amount": paid["crypto_amount"],
            "exchange_rate": paid["exchange_rate"], "fees": paid["fees"], "asset": "USDT",
            "network": "tron", "source_asset": null, "source_network": null, "source_amount": null,
            "wallet_address": "TJRabP…RTv8", "created_at": paid["created_at"],
        },
    });
    assert_eq!(shown, expected);
    assert_eq!(gate.world().database().digest().await, before);
    for text in [shown.to_string(), logs.text()] {
        assert!(!text.contains(&widget.client_secret), "{text}");
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.outcome.receipt
#[tokio::test]
async fn receipt_says_what_was_exchanged_and_names_no_account() {
    let gate = widget_swaps::gate().await;
    let sale = Widget::open(&gate, json!({ "flow": "off_ramp" })).await;
    sell(&sale, "k").await.created();
    let swap = Widget::open(&gate, json!({ "flow": "swap" })).await;
    let quote = widget_swaps::quoted(&swap).await;
    swap.pay("k", purchase(&quote)).await.created();
    let by_server = Widget::of_amount(&gate, "200.00").await;
    let locked = rails::purchase(&gate.acme(), "q", "200.00").await;
    let redeemed = redeem(&gate.acme(), PAY_INS, "k", &id(&locked), &by_server.session).await;
    redeemed.created();
    gate.settle_rails().await;
    for (widget, side, wallet) in [
        (&sale, "off_ramp", json!(null)),
        (&swap, "swap", json!("TJRabP…RTv8")),
        (&by_server, "on_ramp", json!(null)),
    ] {
        let payment = widget.payment().await;
        let shown = outcome(&gate, &widget.client_secret).await.ok();
        assert_eq!(shown["payment_id"], payment["id"], "{side}");
        let receipt = &shown["receipt"];
        let found = (&receipt["side"], &receipt["wallet_address"]);
        assert_eq!(found, (&json!(side), &wallet));
        for field in ["source_asset", "source_network", "source_amount", "fees"] {
            assert_eq!(receipt[field], payment[field], "{side} {field}");
        }
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.outcome.receipt, gate.outcome.open
#[tokio::test]
async fn payment_that_did_not_complete_the_session_is_named_without_a_receipt() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.31").await;
    let failed = widget.buy("k").await;
    let open = async || {
        let refused = outcome(&gate, &widget.client_secret).await;
        refused.refused(409, "session_open").saying("Bootstrap it");
    };
    // A payment in progress keeps its session open, also after the session's time.
    open().await;
    gate.world().after(DAY);
    open().await;
    gate.settle_rails().await;
    let shown = outcome(&gate, &widget.client_secret).await.ok();
    let found = ["status", "payment_id", "receipt"].map(|field| &shown[field]);
    assert_eq!(found, [&json!("expired"), &failed["id"], &json!(null)]);
    // One that the partner completes by hand was not paid.
    let made = gate.acme().open("k").await;
    gate.acme().complete(&id(&made)).await.ok();
    let shown = outcome(&gate, secret(&made)).await.ok();
    let found = ["status", "payment_id", "receipt"].map(|field| &shown[field]);
    assert_eq!(found, [&json!("completed"), &json!(null), &json!(null)]);
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.outcome.open, gate.outcome.window, gate.session.lazy-expiry
#[tokio::test]
async fn outcome_is_shown_for_thirty_days_after_the_end() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for end in ["completed", "cancelled", "expired"] {
        let made = acme.open(end).await;
        let refused = outcome(&gate, secret(&made)).await;
        refused.refused(409, "session_open");
        match end {
            "completed" => drop(acme.complete(&id(&made)).await.ok()),
            "cancelled" => drop(acme.cancel(&id(&made)).await.created()),
            _ => gate.world().after(DAY),
        }
        let ended_at = gate.now().to_string();
        for later in [0, 30 * DAY] {
            gate.world().after(later);
            let shown = outcome(&gate, secret(&made)).await.ok();
            let found = (&shown["status"], &shown["ended_at"]);
            assert_eq!(found, (&json!(end), &json!(ended_at)));
        }
        gate.world().after(1);
        let refused = outcome(&gate, secret(&made)).await;
        refused.refused(403, "session_not_open").saying(end);
        let kinds = gate.notice(ACME, &id(&made)).await;
        let expected = [
            "gate_session.created".to_owned(),
            format!("gate_session.{end}"),
        ];
        assert_eq!(kinds, expected);
    }
    gate.finish().await;
}

// rule: gate.outcome.caller, tenancy.nothing-crosses
#[tokio::test]
async fn outcome_needs_the_page_and_the_client_secret() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let made = acme.open("k").await;
    acme.cancel(&id(&made)).await.created();
    let rivals = gate.rival().open("k").await;
    let good = json!({ "clientSecret": made["client_secret"] });
    for page in [SHOP, WIDGET] {
        ask_from(&gate, page, &good).await.ok();
    }
    for page in [RIVAL_SHOP, "null"] {
        let refused = ask_from(&gate, page, &good).await;
        refused.refused(403, "origin_not_allowed");
    }
    let changed = format!("{}x", &secret(&made)[..secret(&made).len() - 1]);
    for body in [
        json!({}),
        json!({ "clientSecret": null }),
        json!({ "clientSecret": "" }),
        json!({ "clientSecret": changed }),
        json!({ "clientSecret": made["id"] }),
        json!({ "clientSecret": rivals["client_secret"] }),
    ] {
        let refused = ask(&gate, &body).await;
        refused.refused(403, "client_secret_invalid");
    }
    let refused = ask(&gate, &json!({ "clientSecret": 1 })).await;
    refused
        .refused(400, "invalid_request")
        .saying("clientSecret");
    let call = || Call::post(PATH).header("origin", SHOP);
    let none = gate.send(call().bearer(ACME_PUBLISHABLE)).await;
    none.refused(403, "client_secret_invalid");
    let of_rival = Call::post(PATH).header("origin", RIVAL_SHOP).json(&good);
    let refused = gate.send(of_rival.bearer(RIVAL_PUBLISHABLE)).await;
    refused.refused(403, "client_secret_invalid");
    let of_nobody = gate.send(call().json(&good)).await;
    of_nobody.refused(401, "unauthorized");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: throttle.bootstrap
#[tokio::test]
async fn outcomes_and_bootstraps_count_in_the_same_tiers() {
    let gate = Gate::with(|setup| {
        let limits = setup.gate_limits.as_mut().unwrap();
        limits.set(Group::Bootstrap, vec![tier("short", 3, 60)]);
    })
    .await;
    for (path, left) in [(BOOTSTRAP, 2), (PATH, 1), (BOOTSTRAP, 0)] {
        let call = Call::post(path).header("origin", SHOP);
        let answer = gate.send(call.bearer(ACME_PUBLISHABLE)).await;
        assert_eq!(tier_status(&answer, "short"), (3, left, 60), "{path}");
    }
    let full = ask(&gate, &json!({})).await;
    full.refused(429, "rate_limited");
    gate.finish().await;
}

// rule: gate.embed.way-back
#[tokio::test]
async fn widget_learns_no_address_of_an_origin_that_the_partner_no_longer_allows() {
    let gate = Gate::new().await;
    let operator = gate.world().operator();
    let former = AllowedDomain::stored("https://former.example").unwrap();
    let allow = async |allowed: bool| {
        let change = |profile: &mut GateProfile| {
            if allowed {
                profile.allowed_domains.insert(former.clone());
            } else {
                profile.allowed_domains.remove(&former);
            }
        };
        operator.change_gate(ACME, change).await;
    };
    allow(true).await;
    let mut body = plain();
    body["return_url"] = json!("https://former.example/done");
    let (token, made) = widget(&gate, &body).await;
    let send = async |call: Call| gate.send(with(&token, call)).await.ok();
    let start = json!({ "clientSecret": made["client_secret"] });
    let bootstrap = async || {
        let call = Call::post(BOOTSTRAP).header("origin", SHOP).json(&start);
        gate.send(call.bearer(ACME_PUBLISHABLE)).await.ok()
    };
    let shown = send(Call::get(SESSION)).await;
    for answer in [&shown, &bootstrap().await] {
        assert_eq!(answer["return_url"], made["return_url"]);
    }
    // A widget that waits learns of the change.
    let wait = waiting(version(&shown), 20);
    let changed = waits_while(&gate, &token, wait, allow(false)).await.ok();
    assert_ne!(version(&changed), version(&shown));
    let read = gate.acme().read(&id(&made)).await.ok();
    assert_eq!(read["return_url"], made["return_url"]);
    let bootstrapped = bootstrap().await;
    let cancelled = send(Call::post("/v1/embed/cancel")).await;
    let ended = outcome(&gate, secret(&made)).await.ok();
    for answer in [&changed, &bootstrapped, &cancelled, &ended] {
        assert_eq!(answer["return_url"], json!(null), "{answer}");
    }
    for answer in [&changed, &cancelled, &ended] {
        assert_eq!(answer["cancel_url"], made["cancel_url"], "{answer}");
    }
    allow(true).await;
    let again = outcome(&gate, secret(&made)).await.ok();
    assert_eq!(again["return_url"], made["return_url"]);
    gate.world().notice_all().await;
    gate.finish().await;
}
