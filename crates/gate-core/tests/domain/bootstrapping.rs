//! Bootstrapping a widget: allowed pages, client secrets, and the content of the token.

use std::time::Duration;

use gate_core::access::GateAccess;
use gate_core::embed::{Claims, Scope, Scopes};
use gate_core::session::{NotOpen, SessionId, SessionStatus};
use gate_core::usecases::act_on_session::ActionRequest;
use gate_core::usecases::bootstrap_embed::{
    BootstrapError, BootstrapRequest, Embed, PageHeaders, Unavailable,
};
use kernel::Mode;

use crate::fixtures::{DAY, Gate, HOUR, SHOP, WIDGET, access, acme, done, noon, ready};

fn bootstrap(
    gate: &Gate,
    access: &GateAccess,
    origin: Option<&str>,
    secret: Option<&str>,
) -> Result<Embed, BootstrapError> {
    let stands = PageHeaders {
        origin,
        referer: None,
    };
    ready(gate.bootstrapping.bootstrap(access, ask(stands, secret)))
}

fn ask<'h>(stands: PageHeaders<'h>, client_secret: Option<&'h str>) -> BootstrapRequest<'h> {
    BootstrapRequest {
        stands,
        client_secret,
        scopes: Scopes::requested(None).unwrap(),
    }
}

// rule: gate.bootstrap.token-claims, gate.bootstrap.session-fields
#[test]
fn token_names_open_session() {
    let gate = Gate::new(&[acme()]);
    let (id, secret) = gate.open(&acme(), "a");
    gate.memory.pass(Duration::from_millis(999));
    let embed = bootstrap(&gate, &acme(), Some(SHOP), Some(&secret)).unwrap();
    assert_eq!(embed.session.map(|session| session.id), Some(id));
    assert_eq!(
        (embed.expires_at, embed.unavailable),
        (noon().plus(HOUR), None)
    );
    let claims = Claims::open(&embed.token, &gate.tokens, Mode::Test, noon()).unwrap();
    assert_eq!((claims.tenant, claims.session), (acme().tenant, Some(id)));
    assert_eq!(
        (claims.issued_at, claims.expires_at),
        (noon(), embed.expires_at)
    );
    let first = (claims.id, claims.key);
    let plain = bootstrap(&gate, &acme(), Some(SHOP), None).unwrap();
    assert!(plain.session.is_none());
    let claims = Claims::open(&plain.token, &gate.tokens, Mode::Test, noon()).unwrap();
    assert!(claims.session.is_none() && claims.scopes.allow(Scope::BrandingRead));
    let key = acme().key.id;
    assert_eq!((first.1, claims.key), (key, key));
    assert_ne!(first.0, claims.id);
}

// rule: gate.bootstrap.origin
#[test]
fn token_requires_allowed_page() {
    let gate = Gate::new(&[acme()]);
    for bad in [
        "",
        "null",
        "https://Shop.example",
        "https://shop.example/",
        "https://shop.example:443",
        "https://shop.example.",
        "https://shop.example:8443",
        "http://shop.example",
        "https://sub.shop.example",
        "https://shop.example.evil.example",
        "https://evilshop.example",
        "https://*.example",
        "shop.example",
    ] {
        let outcome = bootstrap(&gate, &acme(), Some(bad), None);
        assert!(
            matches!(outcome, Err(BootstrapError::OriginNotAllowed)),
            "{bad}"
        );
    }
    let missing = bootstrap(&gate, &acme(), None, None);
    assert!(matches!(missing, Err(BootstrapError::OriginNotAllowed)));
}

// rule: gate.bootstrap.origin
#[test]
fn referer_counts_without_origin() {
    let gate = Gate::new(&[acme()]);
    let stands = |origin, referer| {
        let stands = PageHeaders { origin, referer };
        ready(gate.bootstrapping.bootstrap(&acme(), ask(stands, None))).is_ok()
    };
    assert!(stands(None, Some("https://shop.example/cart?id=1")));
    assert!(!stands(
        None,
        Some("https://evil.example/https://shop.example/")
    ));
    assert!(!stands(None, Some("about:blank")));
    assert!(!stands(Some("null"), Some("https://shop.example/")));
    assert!(!stands(
        Some("https://evil.example"),
        Some("https://shop.example/")
    ));
}

// rule: gate.bootstrap.widget-origin, gate.bootstrap.secret
#[test]
fn hosted_widget_page_requires_secret() {
    let mut nowhere = acme();
    nowhere.profile.allowed_domains.clear();
    let gate = Gate::new(&[acme()]);
    let (_, secret) = gate.open(&acme(), "a");
    assert!(bootstrap(&gate, &nowhere, Some(WIDGET), Some(&secret)).is_ok());
    let without = bootstrap(&gate, &nowhere, Some(WIDGET), None);
    assert!(matches!(without, Err(BootstrapError::ClientSecretInvalid)));
    let elsewhere = bootstrap(&gate, &nowhere, Some(SHOP), Some(&secret));
    assert!(matches!(elsewhere, Err(BootstrapError::OriginNotAllowed)));
}

// rule: gate.bootstrap.secret
#[test]
fn every_wrong_secret_gets_same_error() {
    let other = access("bolt-pay", Mode::Test);
    let gate = Gate::new(&[acme(), other.clone()]);
    let (id, secret) = gate.open(&acme(), "a");
    let (_, foreign) = gate.open(&other, "a");
    let unknown = SessionId::from_parts(Mode::Test, 7_u128.into());
    let random = secret.rsplit_once('_').unwrap().1;
    for bad in [
        "",
        "gsec_",
        &foreign,
        &secret.to_uppercase(),
        &format!("{secret}0"),
        &secret[..secret.len() - 1],
        &format!("gsec_{unknown}_{random}"),
        &format!("gsec_{}_{random}", id.to_string().replace("test", "live")),
    ] {
        let outcome = bootstrap(&gate, &acme(), Some(SHOP), Some(bad));
        assert!(
            matches!(outcome, Err(BootstrapError::ClientSecretInvalid)),
            "{bad}"
        );
    }
    assert!(bootstrap(&gate, &acme(), Some(SHOP), Some(&secret)).is_ok());
}

// rule: gate.bootstrap.not-open, gate.session.lazy-expiry
#[test]
fn secret_of_ended_session_is_refused() {
    let gate = Gate::new(&[acme()]);
    let (cancelled, secret) = gate.open(&acme(), "a");
    let (late, late_secret) = gate.open(&acme(), "b");
    let render = done;
    let who = acme().tenant;
    let cancel = gate
        .acting
        .act(&who, cancelled, None, &ActionRequest::Cancel, &render);
    ready(cancel).unwrap();
    let ended = |secret: &str| match bootstrap(&gate, &acme(), Some(SHOP), Some(secret)) {
        Err(BootstrapError::NotOpen(NotOpen(status))) => status,
        other => panic!("{other:?}"),
    };
    assert_eq!(ended(&secret), SessionStatus::Cancelled);
    gate.memory.pass(DAY);
    assert_eq!(ended(&late_secret), SessionStatus::Expired);
    let kinds = gate.memory.events_of(&late.to_string());
    assert_eq!(kinds, ["gate_session.created", "gate_session.expired"]);
}

// rule: gate.bootstrap.unavailable
#[test]
fn exhausted_quota_is_reported_without_session() {
    let mut live = access("acme", Mode::Live);
    live.profile.live_session_quota = Some(1);
    let gate = Gate::new(std::slice::from_ref(&live));
    let reason = |secret| {
        bootstrap(&gate, &live, Some(SHOP), secret)
            .unwrap()
            .unavailable
    };
    assert_eq!(reason(None), None);
    let (_, secret) = gate.open(&live, "a");
    assert_eq!(reason(None), Some(Unavailable::QuotaExhausted));
    assert_eq!(reason(Some(&secret)), None);
    gate.memory.pass(DAY * 4);
    assert_eq!(reason(None), None);
}
