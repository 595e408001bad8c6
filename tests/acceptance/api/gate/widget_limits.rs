//! The limits of the widget's calls.

use std::net::IpAddr;

use acceptance::{ACME, Call, Gate, Setup, WIDGET};
use gate_core::limits::Group;
use partner_core::PartnerStatus;
use serde_json::json;

use super::widget::{
    OPTIONS, SESSION, plain, preflight, token_of_session, token_with, version, waiting, widget,
    with,
};
use super::widget_payments::{Widget, purchase};
use crate::throttles::{tier, tier_status};

fn few(setup: &mut Setup) {
    if let Some(limits) = &mut setup.gate_limits {
        limits.set(Group::Embed, vec![tier("short", 6, 60)]);
        let few = ["short", "medium", "long"].map(|name| tier(name, 1, 60));
        limits.set(Group::Global, few.into());
    }
}

// rule: throttle.embed
#[tokio::test]
async fn quotes_and_payments_have_limits_of_their_own() {
    let gate = Gate::with(|setup| {
        if let Some(limits) = &mut setup.gate_limits {
            limits.set(Group::EmbedQuotes, vec![tier("short", 2, 60)]);
            limits.set(Group::EmbedPayments, vec![tier("short", 1, 60)]);
        }
    })
    .await;
    let (token, made) = widget(&gate, &plain()).await;
    let other = token_of_session(&gate, &made).await;
    for (path, limit) in [("/v1/embed/quotes", 2), ("/v1/embed/payments", 1)] {
        let call = |token| with(token, Call::post(path).json(&json!({})).key("k"));
        for _ in 0..limit {
            let refused = gate.send(call(&token)).await;
            refused.refused(400, "invalid_request");
        }
        let full = gate.send(call(&token)).await;
        full.refused(429, "rate_limited");
        let of_other = gate.send(call(&other)).await;
        of_other.refused(400, "invalid_request");
    }
    gate.send(with(&token, Call::get(SESSION))).await.ok();
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: throttle.embed
#[tokio::test]
async fn calls_are_limited_by_token_and_client() {
    let gate = Gate::with(few).await;
    let (token, made) = widget(&gate, &plain()).await;
    let other = token_of_session(&gate, &made).await;
    let here: IpAddr = [198, 51, 100, 7].into();
    let there: IpAddr = [198, 51, 100, 8].into();
    let shown = gate.send(with(&token, Call::get(SESSION)).from(here)).await;
    assert_eq!(shown.number("x-ratelimit-remaining-short"), 5);
    let shown = shown.ok();
    // A wait counts once, preflights do not count, refusals do.
    let wait = with(&token, waiting(version(&shown), 1)).from(here);
    let waited = gate.send(wait).await;
    assert_eq!(waited.number("x-ratelimit-remaining-short"), 4);
    for _ in 0..10 {
        let call = preflight(SESSION, WIDGET, "GET").from(here);
        gate.preflight(call).await;
    }
    let bad = with(&token, Call::get(SESSION).query("wait=x")).from(here);
    let bad = gate.send(bad).await.refused(400, "invalid_request");
    assert_eq!(bad.number("x-ratelimit-remaining-short"), 3);
    let operator = gate.world().operator();
    operator.put_partner(ACME, PartnerStatus::Suspended).await;
    let call = || with(&token, Call::get(SESSION)).from(here);
    let refused = gate.send(call()).await;
    let refused = refused.refused(403, "organization_suspended");
    assert_eq!(refused.number("x-ratelimit-remaining-short"), 2);
    operator.put_partner(ACME, PartnerStatus::Active).await;
    for _ in 0..2 {
        gate.send(with(&token, Call::get(OPTIONS)).from(here))
            .await
            .ok();
    }
    let full = gate.send(call()).await.refused(429, "rate_limited");
    assert!(full.number("retry-after") <= 60);
    operator.put_partner(ACME, PartnerStatus::Suspended).await;
    gate.send(call()).await.refused(429, "rate_limited");
    operator.put_partner(ACME, PartnerStatus::Active).await;
    gate.send(with(&token, Call::get(SESSION)).from(there))
        .await
        .ok();
    gate.send(with(&other, Call::get(SESSION)).from(here))
        .await
        .ok();
    // Calls without a valid token count under the global tiers.
    let answer = gate.send(with("dead", Call::get(SESSION)).from(here)).await;
    let answer = answer.refused(401, "unauthorized");
    assert_eq!(answer.number("x-ratelimit-remaining-long"), 0);
    let full = gate.send(Call::get(SESSION).from(here)).await;
    full.refused(429, "rate_limited");
    let elsewhere = gate
        .send(with("dead", Call::get(SESSION)).from(there))
        .await;
    elsewhere.refused(401, "unauthorized");
    gate.send(with(&other, Call::get(SESSION)).from(here))
        .await
        .ok();
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: throttle.embed-session, throttle.headers, throttle.refusal
#[tokio::test]
async fn tokens_of_a_session_share_a_limit_per_client() {
    let gate = Gate::with(|setup| {
        let limits = setup.gate_limits.as_mut().unwrap();
        for group in [Group::Embed, Group::EmbedQuotes, Group::EmbedPayments] {
            limits.set(group, vec![tier("short", 1, 60)]);
        }
    })
    .await;
    let (first, made) = widget(&gate, &plain()).await;
    let mut tokens = vec![first];
    for _ in 0..3 {
        tokens.push(token_of_session(&gate, &made).await);
    }
    let other = gate.acme().open("other").await;
    let other = token_of_session(&gate, &other).await;
    let here: IpAddr = [198, 51, 100, 7].into();
    let there: IpAddr = [198, 51, 100, 8].into();
    let write = |path| Call::post(path).json(&json!({})).key("k");
    for call in [
        Call::get(SESSION),
        write("/v1/embed/quotes"),
        write("/v1/embed/payments"),
    ] {
        let send =
            async |token: &str, from: IpAddr| gate.send(with(token, call.clone()).from(from)).await;
        for (at, token) in tokens.iter().take(3).enumerate() {
            let answer = send(token, here).await;
            assert_ne!(answer.status, 429, "{}", answer.asked);
            assert_eq!(tier_status(&answer, "short"), (1, 0, 60));
            assert_eq!(tier_status(&answer, "medium"), (3, 2 - at as u64, 60));
        }
        // The refused call counts in neither limit.
        for _ in 0..2 {
            let full = send(&tokens[3], here).await.refused(429, "rate_limited");
            let waits = (
                full.number("retry-after"),
                full.number("retry-after-medium"),
            );
            assert_eq!(waits, (60, 60));
            assert_eq!(full.number("retry-after-short"), 60);
            assert_eq!(tier_status(&full, "short"), (1, 1, 60));
        }
        assert_eq!(tier_status(&send(&tokens[3], there).await, "medium").1, 2);
        assert_eq!(tier_status(&send(&other, here).await, "medium").1, 2);
    }
    // A token without a session has its own limit alone.
    let open = token_with(&gate, &json!(null)).await;
    let answer = gate.send(with(&open, Call::get(OPTIONS)).from(here)).await;
    assert_eq!(answer.header("x-ratelimit-limit-medium"), None);
    answer.ok();
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: idempotency.malformed, error.body-too-large, idempotency.only-success
#[tokio::test]
async fn payment_with_long_key_or_large_body_leaves_its_quote() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.00").await;
    let quote = widget.quote().await;
    let body = purchase(&quote);
    let key = "k".repeat(256);
    let refused = widget.pay(&key, body.clone()).await;
    refused.refused(400, "idempotency_key_invalid");
    let large = json!({ "quote_id": quote["id"], "wallet_address": "T".repeat(65 * 1024) });
    let refused = widget.pay("k", large).await;
    refused.refused(413, "body_too_large");
    assert_eq!(gate.world().database().count("rail_records").await, 0);
    widget.pay("k", body).await.created();
    gate.settle_rails().await;
    assert_eq!(widget.session().await["status"], "completed");
    gate.world().notice_all().await;
    gate.finish().await;
}
