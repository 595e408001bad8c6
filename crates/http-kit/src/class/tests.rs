//! Tests of a door, called as a router calls it.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use kernel::{Id, StoreError, Timestamp};
use parking_lot::Mutex;
use partner_core::key::{KeyHash, KeyRecord, PresentedKey};
use partner_core::ports::ConfigVersions;
use partner_core::throttle::{Bucket, ThrottleDecision, Tier, TierStatus};
use partner_core::{Partner, PartnerId, PartnerStatus};
use serde_json::Value;

use super::*;
use crate::json::Json;
use crate::request_layer::finish;
use crate::service_info::testing::{call, site};
use crate::throttle::LimitBy;

mod tokens;

const LIMIT: u32 = 3;

const POOLS_NOT_ENABLED: &ErrorCode = &forbidden("pools_not_enabled");
const KYC_NOT_APPROVED: &ErrorCode = &forbidden("kyc_not_approved");
const POOL_ACCESS_SUSPENDED: &ErrorCode = &forbidden("pool_access_suspended");
const KEY_MODE_MISMATCH: &ErrorCode = &forbidden("key_mode_mismatch");
const LIVE_KEYS_NOT_ALLOWED: &ErrorCode = &forbidden("live_keys_not_allowed");

const fn forbidden(text: &'static str) -> ErrorCode {
    ErrorCode::new(text, StatusCode::FORBIDDEN, "", "")
}

/// What a partner may do with a product of the tests.
#[derive(Debug, Clone, Default)]
struct Product {
    /// The code of the refusal; `None`: the partner is entitled.
    refused: Option<&'static ErrorCode>,
}

impl Profile for Product {
    type Listing = [u8];
    const LISTING: &'static str = "pools";
}

type Access = partner_core::Access<Product>;

fn entitled(product: &Product) -> Result<(), ApiError> {
    match product.refused {
        Some(code) => Err(ApiError::new(code, "This partner is not entitled.")),
        None => Ok(()),
    }
}

/// A directory that finds keys by their hash.
#[derive(Default)]
struct Keys(HashMap<[u8; 32], Arc<Access>>, bool);

#[async_trait]
impl ConfigVersions for Keys {
    async fn config_version(&self) -> Result<i64, StoreError> {
        Ok(1)
    }
}

#[async_trait]
impl Directory<Product> for Keys {
    async fn access_find(
        &self,
        _: Mode,
        hash: &KeyHash,
    ) -> Result<Option<Arc<Access>>, StoreError> {
        if self.1 {
            return Err(StoreError::unavailable("gone"));
        }
        Ok(self.0.get(&hash.0).cloned())
    }

    async fn access_of(&self, who: &Tenant, key: KeyId) -> Result<Option<Arc<Access>>, StoreError> {
        let mut all = self.0.values();
        let found = all.find(|access| access.key.id == key && access.tenant == *who);
        Ok(found.cloned())
    }

    async fn listing(&self, _: Mode) -> Result<Arc<[u8]>, StoreError> {
        Ok(Arc::new([]))
    }
}

/// A throttle whose windows never end.
#[derive(Default)]
struct Counter(Mutex<HashMap<Bucket, u32>>);

impl Counter {
    fn decision(count: u32, tiers: &[Tier], exhausted: bool) -> ThrottleDecision {
        let status = |tier: &Tier| TierStatus {
            tier: tier.name,
            limit: tier.limit,
            remaining: tier.limit - count,
            reset: Duration::from_millis(1500),
            exhausted,
        };
        ThrottleDecision {
            statuses: tiers.iter().map(status).collect(),
        }
    }
}

#[async_trait]
impl Throttle for Counter {
    async fn take(&self, bucket: &Bucket, tiers: &[Tier]) -> ThrottleDecision {
        let mut counts = self.0.lock();
        let count = counts.entry(bucket.clone()).or_default();
        let full = *count == LIMIT;
        *count += u32::from(!full);
        Self::decision(*count, tiers, full)
    }

    async fn peek(&self, bucket: &Bucket, tiers: &[Tier]) -> ThrottleDecision {
        let count = self.0.lock().get(bucket).copied().unwrap_or_default();
        Self::decision(count, tiers, false)
    }
}

fn text_of(kind: &str, name: char) -> String {
    format!("{kind}_test_{}", name.to_string().repeat(32))
}

/// A clock that always shows midnight.
struct Midnight;
impl kernel::Clock for Midnight {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0).unwrap()
    }
}

fn access(text: &str, change: impl FnOnce(&mut Access)) -> ([u8; 32], Arc<Access>) {
    let presented = PresentedKey::parse(text).unwrap();
    let at = Timestamp::from_millis(0).unwrap();
    let partner = PartnerId::parse("acme").unwrap();
    let key = KeyRecord {
        id: Id::from_parts(Mode::Test, ulid_of(&presented)),
        kind: presented.kind,
        prefix: String::new(),
        last4: String::new(),
        generated: true,
        created_at: at,
        revoked_at: None,
        label: None,
        expires_at: None,
    };
    let partner = Partner {
        id: partner,
        name: "Acme".to_owned(),
        status: PartnerStatus::Active,
    };
    let mut access = Access::new(Mode::Test, key, partner, Product::default());
    change(&mut access);
    (presented.hash.0, Arc::new(access))
}

/// A ULID that is different for each key.
fn ulid_of(key: &PresentedKey) -> ulid::Ulid {
    let [.., a, b] = key.hash.0;
    ulid::Ulid::from_parts(1, u128::from(a) << 8 | u128::from(b))
}

fn suspend(access: &mut Access) {
    access.partner.status = PartnerStatus::Suspended;
}

fn keys() -> Keys {
    let at = Timestamp::from_millis(1).unwrap();
    Keys(
        HashMap::from([
            access(&text_of("sk", 'a'), |_| {}),
            access(&text_of("pk", 'a'), |_| {}),
            access(&text_of("sk", 'r'), |access| {
                access.key.revoked_at = Some(at);
                suspend(access);
            }),
            access(&text_of("pk", 'r'), |access| {
                access.key.revoked_at = Some(at)
            }),
            access(&text_of("sk", 's'), |access| {
                suspend(access);
                access.profile.refused = Some(POOLS_NOT_ENABLED);
            }),
            access(&text_of("pk", 's'), suspend),
            access(&text_of("sk", 'd'), |access| {
                access.profile.refused = Some(POOLS_NOT_ENABLED)
            }),
            access(&text_of("sk", 'k'), |access| {
                access.profile.refused = Some(KYC_NOT_APPROVED)
            }),
            access(&text_of("sk", 'p'), |access| {
                access.profile.refused = Some(POOL_ACCESS_SUSPENDED);
            }),
        ]),
        false,
    )
}

fn app_over(directory: Keys, scope: LimitBy) -> Router {
    app_in(Mode::Test, directory, scope)
}

fn app_in(mode: Mode, directory: Keys, scope: LimitBy) -> Router {
    let tier = |name| Tier {
        name,
        limit: LIMIT,
        per: Duration::from_secs(10),
    };
    let limit = Limit::new("pools", scope, [tier("short"), tier("medium")]);
    let door = Door::new(DoorConfig {
        mode,
        directory: Arc::new(directory),
        throttle: Arc::new(Counter::default()),
        proxies: TrustedProxies::default(),
        error_codes: ProductErrorCodes {
            test_key_on_live: KEY_MODE_MISMATCH,
            live_key_on_test: KEY_MODE_MISMATCH,
            wrong_kind: KEY_MODE_MISMATCH,
            not_in_live: LIVE_KEYS_NOT_ALLOWED,
        },
        failed_auth_limit: Some(limit.with_scope(LimitBy::Client)),
        clock: Arc::new(Midnight),
        entitled,
    });
    let any = Router::new().route(
        "/v1/any",
        get(async |who: AnyKey<Product>| who.tenant().partner.to_string()),
    );
    let secret = Router::new()
        .route("/v1/secret", get(async |_: Secret<Product>| "secret"))
        .route(
            "/v1/panic",
            get(async |_: Secret<Product>| -> &'static str { panic!("deliberate") }),
        )
        .route(
            "/v1/missing",
            get(async |_: Secret<Product>| ApiError::not_found("thing")),
        )
        .route("/v1/astray", get(async |_: Entitled<Product>| "never"));
    let entitled = Router::new().route(
        "/v1/entitled",
        post(async |_: Entitled<Product>, _: Json<Value>| "entitled"),
    );
    let publishable = Router::new().route(
        "/v1/publishable",
        get(async |who: Publishable<Product>| who.tenant().partner.to_string()),
    );
    let sandbox = Router::new().route("/v1/sandbox", get(async |_: Sandbox<Product>| "sandbox"));
    let embedded = Router::new().route(
        "/v1/embedded",
        get(async |who: Embedded<Product>| who.tenant().partner.to_string()),
    );
    let unread = Router::new().route("/v1/unread", get(async |_: Embedded<Product>| "never"));
    let routes = Router::new()
        .merge(unread.route_layer(door.of(Class::Embedded, Some(limit.clone()))))
        .merge(embedded.route_layer(door.embedded(Some(limit.clone()), Arc::new(read_token))))
        .merge(
            publishable.route_layer(door.publishable(Some(limit.clone()), Arc::new(|_, _| true))),
        )
        .merge(sandbox.route_layer(door.of(Class::Sandbox, Some(limit.clone()))))
        .merge(any.route_layer(door.of(Class::AnyKey, Some(limit.clone()))))
        .merge(secret.route_layer(door.of(Class::Secret, Some(limit.clone()))))
        .merge(entitled.route_layer(door.of(Class::Entitled, Some(limit))));
    finish(routes, site())
}

/// Reads `<id> <partner> <key>`; the tokens of the tests have no signature.
fn read_token(text: &str, now: Timestamp) -> Option<PresentedToken> {
    assert_eq!(now, kernel::Clock::now(&Midnight));
    let [id, partner, key] = text.split(' ').collect::<Vec<_>>().try_into().ok()?;
    Some(PresentedToken {
        id: id.to_owned(),
        tenant: Tenant {
            partner: PartnerId::parse(partner)?,
            mode: Mode::Test,
        },
        key: Id::from_parts(Mode::Test, ulid_of(&PresentedKey::parse(key)?)),
        claims: Extensions::new(),
    })
}

fn app() -> Router {
    app_over(keys(), LimitBy::Credential)
}

struct Got {
    status: StatusCode,
    headers: HeaderMap,
    code: String,
}

async fn send(app: &Router, method: &str, path: &str, key: Option<&str>) -> Got {
    let bearer = key.map(|key| format!("Bearer {key}"));
    let header = bearer.as_deref().map(|bearer| ("authorization", bearer));
    send_with(app, method, path, header.as_slice()).await
}

async fn send_with(app: &Router, method: &str, path: &str, headers: &[(&str, &str)]) -> Got {
    let mut request = axum::http::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (parts, body) = call(app, request.body(Body::from("{}")).unwrap()).await;
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    Got {
        status: parts.status,
        headers: parts.headers,
        code: body["code"].as_str().unwrap_or_default().to_owned(),
    }
}

async fn code_of(app: &Router, method: &str, path: &str, key: &str) -> (u16, String) {
    let got = send(app, method, path, Some(key)).await;
    (got.status.as_u16(), got.code)
}

#[tokio::test]
async fn each_class_takes_its_keys() {
    let app = app();
    for (path, kind, status) in [
        ("/v1/any", "sk", 200),
        ("/v1/any", "pk", 200),
        ("/v1/secret", "sk", 200),
        ("/v1/secret", "pk", 403),
        ("/v1/publishable", "pk", 200),
        ("/v1/publishable", "sk", 403),
        ("/v1/sandbox", "sk", 200),
        ("/v1/sandbox", "pk", 403),
    ] {
        let got = send(&app, "GET", path, Some(&text_of(kind, 'a'))).await;
        assert_eq!(got.status, status, "{path} {kind}: {}", got.code);
    }
}

#[tokio::test]
async fn checks_run_in_the_documented_order() {
    let live = |kind: &str, name| text_of(kind, name).replace("test", "live");
    for (key, path, expected) in [
        (live("sk", 'x'), "/v1/secret", (403, "key_mode_mismatch")),
        (live("pk", 'a'), "/v1/secret", (403, "key_mode_mismatch")),
        (text_of("sk", 'x'), "/v1/secret", (401, "unauthorized")),
        (text_of("sk", 'r'), "/v1/secret", (403, "key_revoked")),
        (text_of("pk", 'r'), "/v1/secret", (403, "key_revoked")),
        (text_of("pk", 's'), "/v1/secret", (403, "key_mode_mismatch")),
        (
            text_of("pk", 's'),
            "/v1/any",
            (403, "organization_suspended"),
        ),
        (
            text_of("sk", 's'),
            "/v1/entitled",
            (403, "organization_suspended"),
        ),
        (
            text_of("sk", 'd'),
            "/v1/entitled",
            (403, "pools_not_enabled"),
        ),
        (
            text_of("sk", 'p'),
            "/v1/entitled",
            (403, "pool_access_suspended"),
        ),
        (
            text_of("sk", 'k'),
            "/v1/entitled",
            (403, "kyc_not_approved"),
        ),
        (text_of("sk", 'd'), "/v1/secret", (200, "")),
        // The key is checked before the body, which has no content type here.
        (
            text_of("sk", 'a'),
            "/v1/entitled",
            (415, "unsupported_media_type"),
        ),
    ] {
        let method = if path == "/v1/entitled" {
            "POST"
        } else {
            "GET"
        };
        let (status, code) = code_of(&app(), method, path, &key).await;
        assert_eq!((status, code.as_str()), expected, "{key} {path}");
    }
}

// rule: gate.keys.publishable-query
#[tokio::test]
async fn only_browser_routes_read_key_from_query() {
    let app = app();
    let public = text_of("pk", 'a');
    for (path, status) in [
        (format!("/v1/publishable?publishable_key={public}"), 200),
        (format!("/v1/any?publishable_key={public}"), 401),
        (
            "/v1/publishable?publishable_key=pk_test_short".to_owned(),
            401,
        ),
        ("/v1/publishable".to_owned(), 401),
    ] {
        let got = send(&app, "GET", &path, None).await;
        assert_eq!(got.status, status, "{path}");
    }
    // A header takes precedence over the query.
    let path = format!("/v1/publishable?publishable_key={public}");
    let got = send(&app, "GET", &path, Some(&text_of("sk", 'a'))).await;
    assert_eq!(
        (got.status.as_u16(), got.code.as_str()),
        (403, "key_mode_mismatch")
    );
}

// rule: gate.keys.codes
#[tokio::test]
async fn sandbox_only_routes_refuse_every_live_key() {
    let live = |kind| text_of(kind, 'a').replace("test", "live");
    let known = [live("sk"), live("pk")].map(|text| access(&text, |_| {}));
    let app = app_in(
        Mode::Live,
        Keys(HashMap::from(known), false),
        LimitBy::Credential,
    );
    for (key, path, expected) in [
        (live("sk"), "/v1/secret", (200, "")),
        (live("sk"), "/v1/sandbox", (403, "live_keys_not_allowed")),
        (live("pk"), "/v1/sandbox", (403, "key_mode_mismatch")),
        (
            text_of("sk", 'a'),
            "/v1/sandbox",
            (403, "key_mode_mismatch"),
        ),
    ] {
        let (status, code) = code_of(&app, "GET", path, &key).await;
        assert_eq!((status, code.as_str()), expected, "{key} {path}");
    }
}

#[tokio::test]
async fn every_response_of_throttled_route_shows_limit_status() {
    let app = app();
    let key = text_of("sk", 'a');
    let steps = [
        ("/v1/missing", 404, "2"),
        ("/v1/panic", 500, "1"),
        ("/v1/secret", 200, "0"),
    ];
    for (path, status, remaining) in steps {
        let got = send(&app, "GET", path, Some(&key)).await;
        assert_eq!(got.status, status);
        assert_eq!(got.headers["x-ratelimit-limit-short"], "3");
        assert_eq!(got.headers["x-ratelimit-remaining-medium"], remaining);
        assert_eq!(got.headers["x-ratelimit-reset-short"], "2");
        assert!(!got.headers.contains_key("retry-after"));
        assert_eq!(got.headers["cache-control"], "no-store");
    }
    let got = send(&app, "GET", "/v1/secret", Some(&key)).await;
    assert_eq!(
        (got.status.as_u16(), got.code.as_str()),
        (429, "rate_limited")
    );
    assert_eq!(got.headers["retry-after"], "2");
    assert_eq!(got.headers["retry-after-short"], "2");
    assert_eq!(got.headers["retry-after-medium"], "2");
    let other = send(&app, "GET", "/v1/any", Some(&text_of("pk", 'a'))).await;
    assert_eq!(other.status, 200, "each credential has its own bucket");
}

#[tokio::test]
async fn refusal_before_throttle_counts_nothing() {
    let app = app();
    for _ in 0..2 * LIMIT {
        let got = send(&app, "POST", "/v1/entitled", Some(&text_of("sk", 'd'))).await;
        assert_eq!(got.code, "pools_not_enabled");
        assert_eq!(got.headers["x-ratelimit-remaining-short"], "3");
    }
    let live = text_of("sk", 'a').replace("test", "live");
    let got = send(&app, "GET", "/v1/secret", Some(&live)).await;
    assert_eq!(got.headers["x-ratelimit-remaining-short"], "3");
}

#[tokio::test]
async fn guessing_is_limited_by_address() {
    let app = app();
    for name in ['x', 'y', 'z'] {
        let got = send(&app, "GET", "/v1/secret", Some(&text_of("sk", name))).await;
        assert_eq!(got.status, 401);
        assert_eq!(got.headers["www-authenticate"], "Bearer");
        assert!(got.headers.contains_key("x-ratelimit-limit-short"));
    }
    for key in [None, Some(text_of("sk", 'w')), Some("nonsense".to_owned())] {
        let got = send(&app, "GET", "/v1/any", key.as_deref()).await;
        assert_eq!(
            (got.status.as_u16(), got.code.as_str()),
            (429, "rate_limited")
        );
        assert!(got.headers.contains_key("retry-after-short"));
    }
    let got = send(&app, "GET", "/v1/secret", Some(&text_of("sk", 'a'))).await;
    assert_eq!(got.status, 200, "a valid key is served despite the guesses");
}

#[tokio::test]
async fn limit_by_address_is_checked_before_key() {
    let app = app_over(keys(), LimitBy::Client);
    for expected in [401, 401, 401, 429] {
        let got = send(&app, "GET", "/v1/secret", None).await;
        assert_eq!(got.status, expected);
    }
    let got = send(&app, "GET", "/v1/secret", Some(&text_of("sk", 'a'))).await;
    assert_eq!(got.status, 429);
}

#[tokio::test]
async fn unknown_routes_and_methods_check_no_key() {
    let app = app();
    for _ in 0..2 * LIMIT {
        let got = send(&app, "DELETE", "/v1/secret", None).await;
        assert_eq!(
            (got.status.as_u16(), got.code.as_str()),
            (405, "method_not_allowed")
        );
        assert_eq!(got.headers["allow"], "GET,HEAD");
        assert!(!got.headers.contains_key("x-ratelimit-limit-short"));
        let got = send(&app, "GET", "/v1/nowhere", None).await;
        assert_eq!(
            (got.status.as_u16(), got.code.as_str()),
            (404, "route_not_found")
        );
    }
    assert_eq!(send(&app, "GET", "/v1/secret", None).await.status, 401);
}

#[tokio::test]
async fn handler_in_wrong_class_fails() {
    let (status, code) = code_of(&app(), "GET", "/v1/astray", &text_of("sk", 'a')).await;
    assert_eq!((status, code.as_str()), (500, "internal_error"));
}

#[tokio::test]
async fn unavailable_directory_is_not_counted_as_guess() {
    let app = app_over(Keys(HashMap::new(), true), LimitBy::Credential);
    let got = send(&app, "GET", "/v1/secret", Some(&text_of("sk", 'a'))).await;
    assert_eq!(
        (got.status.as_u16(), got.code.as_str()),
        (503, "service_unavailable")
    );
    assert_eq!(got.headers["x-ratelimit-remaining-short"], "3");
}
