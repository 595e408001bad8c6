//! The widget's own calls: tokens, the session, waiting for a change, and cancelling.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use acceptance::{
    ACME, ACME_PUBLISHABLE, Answer, Call, Contract, Gate, GateClient, Logs, RIVAL_PUBLISHABLE,
    RIVAL_SHOP, SHOP, WIDGET,
};
use gate_core::embed::{Claims, SessionToken};
use gate_core::profile::GateProfile;
use gate_core::session::SessionId;
use gate_core::token::TokenKey;
use http_kit::Waiting;
use kernel::{Clock, Mode};
use partner_core::PartnerStatus;
use partner_core::sealing::{DerivedKeys, MasterKey};
use serde_json::{Value, json};
use test_support::recorded::recorded;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::rails::paying;

pub(super) const SESSION: &str = "/v1/embed/session";
pub(super) const OPTIONS: &str = "/v1/embed/options";
const CANCEL: &str = "/v1/embed/cancel";
const BOOTSTRAP: &str = "/v1/embed/bootstrap";

/// A call with this token.
pub(super) fn with(token: &str, call: Call) -> Call {
    call.header("x-embed-token", token)
}

/// The recorded request of every operation that takes a widget's token.
pub(super) fn calls() -> Vec<Call> {
    let operations = Contract::gate().operations.iter();
    let of_widget = operations.filter(|operation| operation.credentials == ["embedToken"]);
    let calls: Vec<Call> = of_widget.map(|it| Call::of(recorded(&it.id))).collect();
    assert!(calls.len() >= 7, "{calls:?}");
    calls
}

/// A token of acme's open widget with these scopes.
pub(super) async fn token_with(gate: &Gate, scopes: &Value) -> String {
    let body = json!({ "requested_scopes": scopes });
    bootstrapped(gate, SHOP, ACME_PUBLISHABLE, &body).await
}

async fn bootstrapped(gate: &Gate, page: &str, key: &str, body: &Value) -> String {
    let key = gate.world().of_mode(key);
    let call = Call::post(BOOTSTRAP).header("origin", page).bearer(&key);
    let embed = gate.send(call.json(body)).await.ok();
    embed["embed_token"].as_str().unwrap().to_owned()
}

/// The token of a new session of acme, and the session.
pub(super) async fn widget(gate: &Gate, body: &Value) -> (String, Value) {
    let acme = gate.acme();
    let mut hasher = DefaultHasher::new();
    body.to_string().hash(&mut hasher);
    let key = hasher.finish().to_string();
    let made = acme.create(body, &key).await.created();
    let start = json!({ "clientSecret": made["client_secret"] });
    let token = bootstrapped(gate, SHOP, ACME_PUBLISHABLE, &start).await;
    gate.notice(ACME, made["id"].as_str().unwrap()).await;
    (token, made)
}

pub(super) fn plain() -> Value {
    json!({
        "amount": "100.00", "currency": "EUR", "return_url": format!("{SHOP}/done"),
        "cancel_url": format!("{SHOP}/cart"), "user_reference": "user-secret-17",
        "metadata": { "cart": "cart-secret-17" },
    })
}

/// A token of the rival for a new session of its own.
pub(super) async fn rival_token(gate: &Gate) -> String {
    let body = json!({ "amount": "100.00", "currency": "EUR", "return_url": format!("{RIVAL_SHOP}/done") });
    let made = gate.rival().create(&body, "rival").await.created();
    let start = json!({ "clientSecret": made["client_secret"] });
    bootstrapped(gate, RIVAL_SHOP, RIVAL_PUBLISHABLE, &start).await
}

pub(super) fn version(session: &Value) -> &str {
    session["version"].as_str().unwrap()
}

pub(super) fn waiting(after: &str, wait: u32) -> Call {
    Call::get(SESSION).query(&format!("after={after}&wait={wait}"))
}

fn signer() -> TokenKey {
    TokenKey::new(&DerivedKeys::of(&MasterKey::new([7; 32])))
}

pub(super) fn claims(gate: &Gate, token: &str) -> Claims {
    let now = gate.world().clock().now();
    Claims::open(token, &signer(), Mode::Test, now).unwrap()
}

/// The first token of a session.
fn first_token(session: &str) -> Option<SessionToken> {
    let session = SessionId::parse(session)?;
    Some(SessionToken { session, number: 1 })
}

// rule: gate.embed.session, gate.embed.merchant, gate.embed.version
#[tokio::test]
async fn session_is_shown_without_the_partners_own_data() {
    let gate = Gate::new().await;
    let (token, made) = widget(&gate, &plain()).await;
    let read = async || gate.send(with(&token, Call::get(SESSION))).await.ok();
    let shown = read().await;
    let expected = json!({
        "object": "embed_session", "id": made["id"], "mode": "test", "status": "open",
        "amount": "100.00", "currency": "EUR", "flow": null, "target_token": null,
        "target_network": null, "wallet_address": null, "return_url": made["return_url"],
        "cancel_url": made["cancel_url"], "expires_at": made["expires_at"],
        "server_time": "2026-05-25T12:00:00.000Z",
        "branding": {
            "object": "branding", "logo_url": null, "primary_color": null,
            "secondary_color": null, "accent_color": null, "brand_name": null,
        },
        "merchant": {
            "legal_name": null, "support_url": null, "terms_url": null, "privacy_url": null,
        },
        "verification": { "status": "not_required", "reason": null },
        "payment": null, "version": version(&shown),
    });
    assert_eq!(shown, expected);
    let text = shown.to_string();
    let secret = made["client_secret"].as_str().unwrap();
    for hidden in ["user-secret-17", "cart-secret-17", secret] {
        assert!(!text.contains(hidden), "{text}");
    }
    gate.world().after(1_000);
    let later = read().await;
    assert_eq!(version(&later), version(&shown));
    assert_ne!(later["server_time"], shown["server_time"]);
    let branding = Call::new("PATCH", "/v1/branding").json(&json!({ "brand_name": "Acme" }));
    gate.acme().send(branding).await.ok();
    assert_ne!(version(&read().await), version(&shown));
    gate.finish().await;
}

// rule: gate.embed.merchant, gate.embed.version
#[tokio::test]
async fn session_names_who_takes_the_money() {
    let gate = Gate::new().await;
    let (token, made) = widget(&gate, &plain()).await;
    let send = async |call: Call| gate.send(with(&token, call)).await.ok();
    let unnamed = send(Call::get(SESSION)).await;
    let change = |profile: &mut GateProfile| {
        profile.merchant.legal_name = Some("Acme Payments GmbH".to_owned());
        profile.merchant.terms_url = Some(format!("{SHOP}/terms"));
    };
    gate.world().operator().change_gate(ACME, change).await;
    let named = send(Call::get(SESSION)).await;
    let expected = json!({
        "legal_name": "Acme Payments GmbH", "support_url": null,
        "terms_url": format!("{SHOP}/terms"), "privacy_url": null,
    });
    assert_eq!(named["merchant"], expected);
    assert_ne!(version(&named), version(&unnamed));
    let cancelled = send(Call::post(CANCEL)).await;
    assert_eq!(cancelled["merchant"], expected);
    gate.notice(ACME, made["id"].as_str().unwrap()).await;
    gate.finish().await;
}

/// A further token of a session.
pub(super) async fn token_of_session(gate: &Gate, made: &Value) -> String {
    let start = json!({ "clientSecret": made["client_secret"] });
    bootstrapped(gate, SHOP, ACME_PUBLISHABLE, &start).await
}

// rule: gate.embed.token, gate.embed.tenancy
#[tokio::test]
async fn dead_forged_and_foreign_tokens_are_unknown() {
    let gate = Gate::new().await;
    let live = gate.other_mode().await;
    let (token, _) = widget(&gate, &plain()).await;
    let rivals = bootstrapped(&gate, RIVAL_SHOP, RIVAL_PUBLISHABLE, &json!({})).await;
    let mut crossed = claims(&gate, &rivals);
    crossed.tenant = claims(&gate, &token).tenant;
    let crossed = crossed.sign(&signer()).unwrap();
    let other = TokenKey::new(&DerivedKeys::of(&MasterKey::new([8; 32])));
    let forged = claims(&gate, &token).sign(&other).unwrap();
    for call in calls() {
        for bad in ["", "x", &token[1..], &forged, &crossed, ACME_PUBLISHABLE] {
            let answer = gate.send(with(bad, call.clone())).await;
            answer
                .refused(401, "unauthorized")
                .saying("`X-Embed-Token`");
        }
        let none = gate.send(call.clone().bearer(ACME_PUBLISHABLE)).await;
        none.refused(401, "unauthorized").saying("`X-Embed-Token`");
        let twice = gate.send(with(&token, with(&token, call.clone()))).await;
        twice
            .refused(401, "unauthorized")
            .saying("`X-Embed-Token` header must not be repeated");
        let live = live.send(with(&token, call.clone())).await;
        live.refused(401, "unauthorized");
    }
    gate.world().after(60 * 60 * 1_000);
    for call in calls() {
        let expired = gate.send(with(&token, call)).await;
        expired.refused(401, "unauthorized");
    }
    live.close().await;
    gate.finish().await;
}

// rule: gate.embed.token, auth.keys-never-logged
#[tokio::test]
async fn token_counts_only_in_its_header_and_is_never_logged() {
    let (logs, _caught) = Logs::catch();
    let gate = Gate::new().await;
    let (token, _) = widget(&gate, &plain()).await;
    for call in calls() {
        for name in ["X-Embed-Token", "x-embed-token", "embed_token", "token"] {
            let call = call.clone().query(&format!("{name}={token}"));
            let answer = gate.send(call).await;
            answer
                .refused(401, "unauthorized")
                .saying("`X-Embed-Token`");
        }
        let answer = gate.send(call.clone().bearer(&token)).await;
        answer.refused(401, "unauthorized");
        gate.send(with(&token, call)).await;
    }
    let text = logs.text();
    let options = text.lines().filter(|line| line.contains(OPTIONS));
    assert!(options.count() >= 6, "requests are logged");
    for part in token.split('.') {
        let line = text.lines().find(|line| line.contains(part));
        assert_eq!(line, None, "the token is logged");
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.embed.tenancy
#[tokio::test]
async fn session_of_another_partner_is_absent() {
    let gate = Gate::new().await;
    let (token, made) = widget(&gate, &plain()).await;
    let rivals = bootstrapped(&gate, RIVAL_SHOP, RIVAL_PUBLISHABLE, &json!({})).await;
    let mut claims = claims(&gate, &rivals);
    claims.session = first_token(made["id"].as_str().unwrap());
    let stray = claims.sign(&signer()).unwrap();
    for call in calls() {
        let answer = gate.send(with(&stray, call)).await;
        answer.refused(404, "resource_not_found");
    }
    let shown = gate.send(with(&token, Call::get(SESSION))).await.ok();
    assert_eq!(shown["status"], "open");
    gate.finish().await;
}

// rule: gate.embed.scopes, gate.embed.session-required
#[tokio::test]
async fn call_needs_its_scope_and_a_session() {
    let gate = Gate::new().await;
    let made = gate.acme().open("k").await;
    gate.notice(ACME, made["id"].as_str().unwrap()).await;
    let token = async |scopes: Value, session: bool| {
        let mut body = json!({ "requested_scopes": scopes });
        if session {
            body["clientSecret"] = made["client_secret"].clone();
        }
        bootstrapped(&gate, SHOP, ACME_PUBLISHABLE, &body).await
    };
    let none = token(json!([]), true).await;
    for call in calls() {
        let answer = gate.send(with(&none, call)).await;
        answer.refused(403, "scope_missing");
    }
    let pay = token(json!(["session:pay", "kyc:submit"]), true).await;
    for path in [SESSION, OPTIONS] {
        let answer = gate.send(with(&pay, Call::get(path))).await;
        answer.refused(403, "scope_missing").saying("session:read");
    }
    let read = token(json!(["session:read"]), true).await;
    gate.send(with(&read, Call::get(SESSION))).await.ok();
    let cancel = gate.send(with(&read, Call::post(CANCEL))).await;
    cancel.refused(403, "scope_missing").saying("session:pay");
    // The scope is checked first, then the session, then the request.
    let open = token(json!(["session:read", "session:pay"]), false).await;
    let malformed = Call::get(SESSION).query("wait=x");
    for call in [malformed, Call::post(CANCEL)] {
        let answer = gate.send(with(&open, call)).await;
        answer.refused(403, "session_required");
    }
    gate.send(with(&open, Call::get(OPTIONS))).await.ok();
    let open = token(json!(["branding:read"]), false).await;
    let answer = gate.send(with(&open, Call::get(SESSION))).await;
    answer.refused(403, "scope_missing");
    gate.finish().await;
}

// rule: gate.embed.dies
#[tokio::test]
async fn token_ends_with_its_partner_gate_and_key() {
    let gate = Gate::new().await;
    let (token, _) = widget(&gate, &plain()).await;
    let operator = gate.world().operator();
    let refused = async |code: &str| {
        for call in calls() {
            let answer = gate.send(with(&token, call)).await;
            answer.refused(403, code);
        }
    };
    operator.put_partner(ACME, PartnerStatus::Suspended).await;
    refused("organization_suspended").await;
    operator.put_partner(ACME, PartnerStatus::Active).await;
    let enable = |on| move |profile: &mut GateProfile| profile.enabled = on;
    operator.change_gate(ACME, enable(false)).await;
    refused("gate_not_enabled").await;
    operator.change_gate(ACME, enable(true)).await;
    gate.send(with(&token, Call::get(SESSION))).await.ok();
    operator.revoke(ACME_PUBLISHABLE).await;
    refused("key_revoked").await;
    gate.finish().await;
}

/// A call that waits for a change of the session while this happens. It ends before its time.
pub(super) async fn waits_while(
    gate: &Gate,
    token: &str,
    wait: Call,
    happens: impl Future,
) -> Answer {
    let begun = Instant::now();
    let (answer, _) = tokio::join!(gate.send(with(token, wait)), async {
        sleep(Duration::from_millis(200)).await;
        happens.await
    });
    assert!(begun.elapsed() < Duration::from_secs(18));
    answer
}

// rule: gate.embed.dies
#[tokio::test]
async fn waiting_call_is_refused_when_its_key_ends() {
    let gate = Gate::new().await;
    let (token, _) = widget(&gate, &plain()).await;
    let shown = gate.send(with(&token, Call::get(SESSION))).await.ok();
    let wait = waiting(version(&shown), 20);
    let revoked = gate.world().operator().revoke(ACME_PUBLISHABLE);
    let answer = waits_while(&gate, &token, wait, revoked).await;
    answer.refused(403, "key_revoked");
    gate.finish().await;
}

// rule: gate.embed.wait, gate.embed.version
#[tokio::test]
async fn call_waits_until_the_session_changes() {
    let gate = Gate::new().await;
    let (token, made) = widget(&gate, &plain()).await;
    let id = made["id"].as_str().unwrap();
    let send = async |call: Call| gate.send(with(&token, call)).await;
    let shown = send(Call::get(SESSION)).await.ok();
    let begun = Instant::now();
    let same = send(waiting(version(&shown), 1)).await.ok();
    assert_eq!(version(&same), version(&shown));
    assert!(begun.elapsed() >= Duration::from_secs(1));
    // Unknown versions, and calls that do not wait, are answered at once.
    let begun = Instant::now();
    for call in [
        waiting("0123456789abcdef", 25),
        Call::get(SESSION).query("wait=25"),
        waiting(version(&shown), 0),
        Call::get(SESSION).query(&format!("after={}", version(&shown))),
    ] {
        assert_eq!(version(&send(call).await.ok()), version(&shown));
    }
    assert!(begun.elapsed() < Duration::from_secs(18));
    for bad in ["", "unknown", "0123456789ABCDEF", "0123456789abcdef0"] {
        let refused = send(waiting(bad, 25)).await;
        refused.refused(400, "invalid_request").saying("after");
    }
    let acme = gate.acme();
    let wait = waiting(version(&shown), 20);
    let changed = waits_while(&gate, &token, wait, acme.cancel(id)).await;
    let changed = changed.ok();
    assert_eq!(changed["status"], "cancelled");
    assert_ne!(version(&changed), version(&shown));
    gate.notice(ACME, id).await;
    gate.finish().await;
}

// rule: gate.embed.wait, gate.session.lazy-expiry
#[tokio::test]
async fn read_expires_an_overdue_session() {
    let gate = Gate::with(|setup| setup.session_ttl = Duration::from_secs(60)).await;
    let (token, made) = widget(&gate, &plain()).await;
    let send = async |call: Call| gate.send(with(&token, call)).await;
    let shown = send(Call::get(SESSION)).await.ok();
    let wait = waiting(version(&shown), 20);
    let passes = async { gate.world().after(60_000) };
    let expired = waits_while(&gate, &token, wait, passes).await;
    assert_eq!(expired.ok()["status"], "expired");
    let cancel = send(Call::post(CANCEL)).await;
    cancel.refused(409, "session_not_open").saying("expired");
    let said = gate.notice(ACME, made["id"].as_str().unwrap()).await;
    assert_eq!(said, ["gate_session.created", "gate_session.expired"]);
    gate.finish().await;
}

// rule: gate.embed.wait
#[tokio::test]
async fn waiting_call_ends_when_its_token_expires() {
    let gate = Gate::new().await;
    let (token, _) = widget(&gate, &plain()).await;
    let shown = gate.send(with(&token, Call::get(SESSION))).await.ok();
    let left = claims(&gate, &token)
        .expires_at
        .since(gate.world().clock().now());
    let left = u64::try_from(left.as_millis()).unwrap();
    let wait = waiting(version(&shown), 20);
    let passes = async { gate.world().after(left) };
    let ended = waits_while(&gate, &token, wait, passes).await;
    ended.refused(401, "unauthorized");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.embed.wait
#[tokio::test]
async fn waiting_calls_hold_no_connection_to_the_database() {
    let gate = Gate::new().await;
    let (token, _) = widget(&gate, &plain()).await;
    let shown = gate.send(with(&token, Call::get(SESSION))).await.ok();
    let stop = CancellationToken::new();
    let mut waits = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let call = waiting(version(&shown), 25).within(Waiting::until(stop.clone()));
        let (gate, call) = (gate.clone(), with(&token, call));
        waits.spawn(async move { gate.send(call).await.ok() });
    }
    sleep(Duration::from_millis(700)).await;
    for at in 0..20 {
        gate.acme()
            .create(&plain(), &format!("meanwhile-{at}"))
            .await
            .created();
    }
    assert_eq!(waits.len(), 100);
    assert!(waits.try_join_next().is_none(), "the calls still wait");
    stop.cancel();
    for answer in waits.join_all().await {
        assert_eq!(version(&answer), version(&shown));
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.embed.wait
#[tokio::test]
async fn waiting_call_ends_when_the_service_stops() {
    let gate = Gate::new().await;
    let (token, _) = widget(&gate, &plain()).await;
    let shown = gate.send(with(&token, Call::get(SESSION))).await.ok();
    let stop = CancellationToken::new();
    let wait = waiting(version(&shown), 25).within(Waiting::until(stop.clone()));
    let stops = async { stop.cancel() };
    let answer = waits_while(&gate, &token, wait, stops).await;
    assert_eq!(version(&answer.ok()), version(&shown));
    gate.finish().await;
}

// rule: gate.embed.wait-range
#[tokio::test]
async fn wait_is_a_whole_number_from_0_to_25() {
    let gate = Gate::new().await;
    let (token, _) = widget(&gate, &plain()).await;
    for bad in ["-1", "26", "1.5", "", "x", "1e1", "99999999999999999999"] {
        let call = Call::get(SESSION).query(&format!("wait={bad}"));
        let answer = gate.send(with(&token, call)).await;
        answer.refused(400, "invalid_request").saying("`wait`");
    }
    let call = Call::get(SESSION).query("after=a&after=b");
    let answer = gate.send(with(&token, call)).await;
    answer.refused(400, "invalid_request").saying("`after`");
    gate.finish().await;
}

// rule: gate.embed.cancel
#[tokio::test]
async fn user_cancels_an_open_session_once() {
    let gate = Gate::new().await;
    let (token, made) = widget(&gate, &plain()).await;
    let send = async |call: Call| gate.send(with(&token, call)).await;
    let shown = send(Call::get(SESSION)).await.ok();
    let cancelled = send(Call::post(CANCEL)).await.ok();
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(cancelled["cancel_url"], made["cancel_url"]);
    assert_ne!(version(&cancelled), version(&shown));
    // Reads are allowed, and show the same version.
    assert_eq!(send(Call::get(SESSION)).await.ok(), cancelled);
    send(Call::get(OPTIONS)).await.ok();
    let again = send(Call::post(CANCEL)).await;
    again.refused(409, "session_not_open").saying("cancelled");
    let said = gate.notice(ACME, made["id"].as_str().unwrap()).await;
    assert_eq!(said, ["gate_session.created", "gate_session.cancelled"]);
    gate.finish().await;
}

// rule: gate.embed.cancel
#[tokio::test]
async fn user_cancels_no_session_that_is_being_paid_or_over() {
    let gate = Gate::new().await;
    let acme: GateClient = gate.acme();
    let (session, _) = paying(&acme, "first", "100.33").await;
    let (token, _) = widget(&gate, &plain()).await;
    let mut claims = claims(&gate, &token);
    claims.session = first_token(&session);
    let paying = claims.sign(&signer()).unwrap();
    let refused = gate.send(with(&paying, Call::post(CANCEL))).await;
    refused.refused(409, "session_payment_in_progress");
    assert_eq!(acme.status(&session).await, "open");
    gate.settle_rails().await;
    gate.world().notice_all().await;
    let made = acme.open_id("second").await;
    claims.session = first_token(&made);
    acme.complete(&made).await.ok();
    let paid = claims.sign(&signer()).unwrap();
    let refused = gate.send(with(&paid, Call::post(CANCEL))).await;
    refused.refused(409, "session_not_open").saying("completed");
    gate.world().notice_all().await;
    gate.finish().await;
}

pub(super) fn preflight(path: &str, origin: &str, method: &str) -> Call {
    Call::new("OPTIONS", path)
        .header("origin", origin)
        .header("access-control-request-method", method)
}

pub(super) fn admitted(answer: &Answer) -> Option<&str> {
    answer.header("access-control-allow-origin")
}

// rule: gate.embed.cors
#[tokio::test]
async fn only_the_widgets_origin_may_call_and_read() {
    let gate = Gate::new().await;
    for call in calls() {
        let (path, method) = call.target();
        let answer = gate.preflight(preflight(path, WIDGET, method)).await;
        assert_eq!((answer.status, admitted(&answer)), (204, Some(WIDGET)));
        let methods = answer.header("access-control-allow-methods");
        assert_eq!(methods, Some("GET, POST"));
        let headers = answer.header("access-control-allow-headers");
        let expected = "content-type, idempotency-key, x-embed-token";
        assert_eq!(headers, Some(expected));
        assert_eq!(answer.header("vary"), Some("origin"));
        for stranger in [SHOP, RIVAL_SHOP, "https://other.example", "null"] {
            let answer = gate.preflight(preflight(path, stranger, method)).await;
            assert_eq!((answer.status, admitted(&answer)), (204, None));
        }
    }
    let (token, _) = widget(&gate, &plain()).await;
    for call in calls() {
        for (origin, expected) in [(WIDGET, Some(WIDGET)), (SHOP, None)] {
            let call = call.clone().header("origin", origin);
            for token in [token.as_str(), "dead"] {
                let answer = gate.send(with(token, call.clone())).await;
                assert_eq!(admitted(&answer), expected, "{}", answer.asked);
                assert_eq!(answer.header("vary"), Some("origin"));
                let seen = answer.header("access-control-expose-headers");
                let shown = seen.is_some_and(|it| it.contains("retry-after-short"));
                assert_eq!(shown, expected.is_some());
                // The dead token counts in the tiers of the client's address.
                let sent = answer.headers.keys().map(|name| name.as_str());
                let limits = sent.filter(|name| name.starts_with("x-ratelimit-"));
                for name in limits.filter(|_| shown) {
                    let is_exposed = seen.is_some_and(|it| it.split(", ").any(|it| it == name));
                    assert!(is_exposed, "{name}: {seen:?}");
                }
            }
        }
    }
    gate.world().notice_all().await;
    gate.finish().await;
}
