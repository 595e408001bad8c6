//! The tokens of a session: at most ten are valid, and a further one ends the oldest.

use acceptance::{ACME, Call, Gate};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::widget::{
    SESSION, calls, claims, plain, token_of_session, version, waiting, waits_while, widget, with,
};
use super::widget_payments::purchase;

/// Makes ten tokens of a session, which end all earlier ones; returns the newest.
async fn ten_tokens(gate: &Gate, made: &Value) -> String {
    for _ in 0..9 {
        token_of_session(gate, made).await;
    }
    token_of_session(gate, made).await
}

// rule: gate.bootstrap.token-limit, gate.embed.version
#[tokio::test]
async fn eleventh_token_of_a_session_ends_the_oldest() {
    let gate = Gate::new().await;
    let (oldest, made) = widget(&gate, &plain()).await;
    let id = made["id"].as_str().unwrap();
    let read = async |token: &str| gate.send(with(token, Call::get(SESSION))).await.ok();
    let shown = read(&oldest).await;
    let object = gate.acme().read(id).await.ok();
    let second = token_of_session(&gate, &made).await;
    for _ in 0..8 {
        token_of_session(&gate, &made).await;
    }
    assert_eq!(read(&oldest).await, shown);
    let newest = token_of_session(&gate, &made).await;
    for call in calls() {
        let ended = gate.send(with(&oldest, call)).await;
        let ended = ended.refused(401, "unauthorized");
        ended.saying("`X-Embed-Token`");
    }
    for token in [&second, &newest] {
        assert_eq!(version(&read(token).await), version(&shown));
    }
    assert_eq!(gate.acme().read(id).await.ok(), object);
    // The tokens of another session, and those without one, are counted apart.
    let other = gate.acme().open("other").await;
    let token = token_of_session(&gate, &other).await;
    assert_eq!(claims(&gate, &token).session.unwrap().number, 1);
    gate.notice(ACME, other["id"].as_str().unwrap()).await;
    gate.finish().await;
}

// rule: gate.bootstrap.token-limit
#[tokio::test]
async fn concurrent_bootstraps_get_different_numbers() {
    let gate = Gate::new().await;
    let (_, made) = widget(&gate, &plain()).await;
    let mut racing = JoinSet::new();
    for _ in 0..8 {
        let (gate, made) = (gate.clone(), made.clone());
        racing.spawn(async move { token_of_session(&gate, &made).await });
    }
    let tokens = racing.join_all().await;
    let tokens = tokens.iter().map(|token| claims(&gate, token));
    let mut numbers: Vec<u32> = tokens.map(|it| it.session.unwrap().number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3, 4, 5, 6, 7, 8, 9]);
    gate.finish().await;
}

// rule: gate.bootstrap.token-limit, gate.embed.wait
#[tokio::test]
async fn waiting_call_ends_when_newer_tokens_end_its_token() {
    let gate = Gate::new().await;
    let (token, made) = widget(&gate, &plain()).await;
    let shown = gate.send(with(&token, Call::get(SESSION))).await.ok();
    let wait = waiting(version(&shown), 20);
    let ended = waits_while(&gate, &token, wait, ten_tokens(&gate, &made)).await;
    ended.refused(401, "unauthorized");
    gate.finish().await;
}

// rule: gate.bootstrap.token-limit
#[tokio::test]
async fn ended_token_gets_no_replay_of_its_payment() {
    let gate = Gate::new().await;
    let (token, made) = widget(&gate, &plain()).await;
    let order =
        json!({ "side": "on_ramp", "asset": "USDT", "network": "tron", "payment_method": "sepa" });
    let quote = with(&token, Call::post("/v1/embed/quotes").json(&order));
    let quote = gate.send(quote).await.created();
    let pay = |token: &str| {
        let call = Call::post("/v1/embed/payments").json(&purchase(&quote));
        with(token, call.key("k"))
    };
    let paid = gate.send(pay(&token)).await;
    let first = paid.bytes.clone();
    paid.created();
    let newest = ten_tokens(&gate, &made).await;
    let refused = gate.send(pay(&token)).await;
    refused.refused(401, "unauthorized");
    let again = gate.send(pay(&newest)).await;
    assert_eq!(again.bytes, first);
    gate.settle_rails().await;
    gate.world().notice_all().await;
    gate.finish().await;
}
