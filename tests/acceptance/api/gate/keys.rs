//! Authentication of the gate, and the order of its checks.

use std::sync::Arc;

use acceptance::{
    ACME, ACME_PUBLISHABLE, ACME_SECRET, ACME_SECRET_2, Call, Contract, Gate, Operation,
    RIVAL_SECRET,
};
use axum::Router;
use axum::body::Body;
use axum::http::{Extensions, Request};
use axum::routing::get;
use coordination::MemoryThrottle;
use gate_core::profile::GateProfile;
use http_kit::{
    Class, Door, DoorConfig, Embedded, PresentedToken, ProductErrorCodes, ReadToken,
    TrustedProxies, codes,
};
use kernel::{Clock, Mode, Timestamp};
use partner_core::PartnerStatus;
use test_support::recorded::{recorded, unknown_for};
use tower::ServiceExt;

/// A request about unknown objects for every operation that takes a secret key.
fn calls() -> Vec<(&'static Operation, Call)> {
    let operations = Contract::gate().operations.iter();
    operations
        .filter(|operation| operation.credentials == ["secretKey"])
        .map(|operation| {
            let record = recorded(&operation.id).about(unknown_for);
            (operation, Call::of(&record))
        })
        .collect()
}

// rule: gate.keys.codes, access.order, gate.keys.entitled, access.organisation-suspended
#[tokio::test]
async fn every_route_checks_the_key_in_one_order() {
    let gate = Gate::new().await;
    let live = ACME_SECRET.replace("_test_", "_live_");
    let stranger = "sk_test_NobodyNobodyNobodyNobodyNobody99";
    let suspend = async |status| {
        let operator = gate.world().operator();
        operator.put_partner(ACME, status).await;
    };
    let enable = async |enabled: bool| {
        let change = |profile: &mut gate_core::profile::GateProfile| profile.enabled = enabled;
        gate.world().operator().change_gate(ACME, change).await;
    };
    suspend(PartnerStatus::Suspended).await;
    enable(false).await;
    let before = gate.world().database().digest().await;
    for (operation, call) in calls() {
        for (key, status, code) in [
            (live.as_str(), 403, "live_key_on_sandbox"),
            (
                "pk_live_NobodyNobodyNobodyNobodyNobody99",
                403,
                "live_key_on_sandbox",
            ),
            (stranger, 401, "unauthorized"),
            ("sk_test_short", 401, "unauthorized"),
            (ACME_PUBLISHABLE, 403, "key_kind_not_allowed"),
            (ACME_SECRET, 403, "organization_suspended"),
        ] {
            let answer = gate.send(call.clone().bearer(key)).await;
            assert_eq!(answer["code"], code, "{} {key}", operation.id);
            assert_eq!(answer.status, status);
        }
        let nobody = gate.send(call.clone()).await.refused(401, "unauthorized");
        assert_eq!(nobody.header("www-authenticate"), Some("Bearer"));
        let exposed = call.query(&format!("k={ACME_SECRET}"));
        let exposed = gate.send(exposed.bearer(RIVAL_SECRET)).await;
        exposed.refused(401, "secret_key_in_query");
    }
    suspend(PartnerStatus::Active).await;
    for (_, call) in calls() {
        let disabled = gate.send(call.bearer(ACME_SECRET)).await;
        disabled.refused(403, "gate_not_enabled");
    }
    enable(true).await;
    suspend(PartnerStatus::Active).await;
    let after = gate.world().database().digest().await;
    assert_eq!(after["sessions"], before["sessions"]);
    gate.finish().await;
}

// rule: gate.keys.codes
#[tokio::test]
async fn live_process_accepts_live_keys_and_refuses_test_helpers() {
    let gate = Gate::new().await;
    let live = gate.other_mode().await;
    for (operation, call) in calls() {
        let test = live.send(call.clone().bearer(ACME_SECRET)).await;
        test.refused(403, "test_key_on_live");
        if !operation.template.contains("test_helpers") {
            continue;
        }
        let publishable = live.client(ACME_PUBLISHABLE).send(call.clone()).await;
        publishable.refused(403, "key_kind_not_allowed");
        // Refused before the request is read.
        let broken = call.body("{").key("");
        let helper = live.acme().send(broken).await;
        helper.refused(403, "live_keys_not_allowed");
    }
    live.close().await;
    gate.finish().await;
}

// rule: auth.bearer-first, gate.keys.publishable-query
#[tokio::test]
async fn secret_key_is_accepted_in_its_own_header() {
    let gate = Gate::new().await;
    let read = || Call::get("/v1/branding");
    gate.send(read().header("x-secret-key", ACME_SECRET))
        .await
        .ok();
    let query = read().query(&format!("publishable_key={ACME_PUBLISHABLE}"));
    gate.send(query).await.refused(401, "unauthorized");
    gate.finish().await;
}

// rule: auth.revoked, auth.expired
#[tokio::test]
async fn revoked_or_expired_key_is_refused() {
    let gate = Gate::new().await;
    let operator = gate.world().operator();
    operator.revoke(ACME_SECRET).await;
    operator.expire(ACME_SECRET_2, gate.now()).await;
    for (_, call) in calls() {
        for (key, code) in [(ACME_SECRET, "key_revoked"), (ACME_SECRET_2, "key_expired")] {
            let answer = gate.send(call.clone().bearer(key)).await;
            answer.refused(403, code);
        }
    }
    gate.finish().await;
}

// rule: error.route-not-found, error.method-not-allowed, auth.unknown-route-first
#[tokio::test]
async fn unknown_routes_and_methods_return_the_envelope_without_a_key() {
    let gate = Gate::new().await;
    for (method, path, status, code) in [
        ("GET", "/v1/pools", 404, "route_not_found"),
        ("GET", "/v1/gate_sessions/a/b", 404, "route_not_found"),
        ("POST", "/v1/customers/a/b", 404, "route_not_found"),
        ("PUT", "/v1/customers", 405, "method_not_allowed"),
        ("DELETE", "/v1/gate_sessions", 405, "method_not_allowed"),
        ("PUT", "/v1/branding", 405, "method_not_allowed"),
        ("PUT", "/v1/embed/session", 405, "method_not_allowed"),
    ] {
        let answer = gate.send(Call::new(method, path)).await;
        let answer = answer.refused(status, code);
        assert_eq!(answer.header("x-ratelimit-limit-short"), None, "{path}");
    }
    let allow = gate.send(Call::new("DELETE", "/v1/gate_sessions")).await;
    let mut methods: Vec<&str> = allow.header("allow").unwrap().split(',').collect();
    methods.sort_unstable();
    assert_eq!(methods, ["GET", "HEAD", "POST"]);
    gate.finish().await;
}

/// One route of the widget's class over the gate's store.
fn widget_route(gate: &Gate, read_token: Option<ReadToken>) -> Router {
    let clock: Arc<dyn Clock> = gate.world().ticking();
    let door = Door::<GateProfile>::new(DoorConfig {
        mode: Mode::Test,
        directory: gate.world().store(),
        throttle: Arc::new(MemoryThrottle::new(Arc::clone(&clock))),
        proxies: TrustedProxies::default(),
        // The service has other codes. These have the same status.
        error_codes: ProductErrorCodes {
            test_key_on_live: codes::KEY_REVOKED,
            live_key_on_test: codes::KEY_REVOKED,
            wrong_kind: codes::KEY_REVOKED,
            not_in_live: codes::KEY_REVOKED,
        },
        failed_auth_limit: None,
        clock,
        entitled: |_| Ok(()),
    });
    let layer = match read_token {
        Some(read_token) => door.embedded(None, read_token),
        None => door.of(Class::Embedded, None),
    };
    let inside = async |_: Embedded<GateProfile>| "in";
    layer.around(Router::new().route("/", get(inside)))
}

/// The status of a request with this header.
async fn status_with(route: Router, name: &str, value: &str) -> u16 {
    let request = Request::get("/").header(name, value);
    let request = request.body(Body::empty()).unwrap();
    let Ok(answer) = route.oneshot(request).await;
    answer.status().as_u16()
}

/// The gate mounts no widget's call without a reader of tokens.
#[tokio::test]
async fn widget_class_without_reader_admits_no_key_and_no_token() {
    let gate = Gate::new().await;
    for (name, value) in [
        ("x-embed-token", "token"),
        ("x-publishable-key", ACME_PUBLISHABLE),
        ("x-secret-key", ACME_SECRET),
    ] {
        let route = widget_route(&gate, None);
        assert_eq!(status_with(route, name, value).await, 401, "{name}");
    }
    gate.finish().await;
}

/// A bootstrap issues tokens for publishable keys only.
#[tokio::test]
async fn token_of_a_secret_key_is_refused() {
    let gate = Gate::new().await;
    for (key, status) in [(ACME_PUBLISHABLE, 200), (ACME_SECRET, 403)] {
        let access = gate.access(key).await;
        let token = PresentedToken {
            id: "token".to_owned(),
            session: None,
            tenant: access.tenant.clone(),
            key: access.key.id,
            claims: Extensions::new(),
        };
        let read_token: ReadToken = Arc::new(move |_: &str, _: Timestamp| Some(token.clone()));
        let route = widget_route(&gate, Some(read_token));
        let found = status_with(route, "x-embed-token", "token").await;
        assert_eq!(found, status, "{key}");
    }
    gate.finish().await;
}
