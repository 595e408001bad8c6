//! `webhook rotate-secret`: which secrets sign afterwards, and which rotations are refused.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Mode, Timestamp};
use partner_core::PartnerId;
use partner_core::events::{EndpointSecret, Service, secret_place};
use partner_core::usecases::rotation::{Present, RotateError, RotateSecret, Rotated};
use runtime::OpenedBase;
use secrecy::ExposeSecret as _;

use crate::fixture::{ACME, Installation, SHOP, acme, apply};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const FIRST: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn file() -> String {
    format!(
        "{ACME}[partners.pools.webhook]\nurl = \"http://127.0.0.1:9/p\"\nsecret = \"{FIRST}\"\n"
    )
}

async fn with_webhook() -> (Installation, OpenedBase) {
    let installation = Installation::new();
    let base = installation.open().await;
    apply(&base, &file()).await.unwrap();
    (installation, base)
}

async fn rotate(
    base: &OpenedBase,
    partner: &str,
    present: Present,
) -> Result<Rotated, RotateError> {
    rotate_of(base, Service::Pools, partner, present).await
}

async fn rotate_of(
    base: &OpenedBase,
    service: Service,
    partner: &str,
    present: Present,
) -> Result<Rotated, RotateError> {
    let rotating = RotateSecret {
        store: base.store.clone(),
        sealer: Arc::clone(&base.sealer),
        entropy: Arc::clone(&base.entropy),
        mode: Mode::Test,
    };
    let partner = PartnerId::parse(partner).unwrap();
    rotating.rotate(&partner, service, present).await
}

async fn secrets(base: &OpenedBase) -> Vec<(String, Option<Timestamp>)> {
    secrets_of(base, Service::Pools).await
}

/// The stored secrets, newest first, each with the instant of its expiry.
async fn secrets_of(base: &OpenedBase, service: Service) -> Vec<(String, Option<Timestamp>)> {
    let mut tx = base.store.provision_begin("look").await.unwrap();
    let found = tx.endpoint_get(&acme(), service).await.unwrap();
    let found = found.unwrap();
    let open = |secret: &EndpointSecret| {
        let plain = base.sealer.open(&secret_place(found.id), &secret.sealed);
        let text = String::from_utf8(plain.unwrap()).unwrap();
        (text, secret.expires_at)
    };
    found.secrets.iter().map(open).collect()
}

// rule: cli.webhook.rotate
#[tokio::test]
async fn rotation_without_overlap_ends_old_secret_at_once() {
    let (_installation, base) = with_webhook().await;
    let before = base.store.config_version().await.unwrap();
    let rotated = rotate(&base, "acme", Present::EndsAtOnce).await.unwrap();
    let new = rotated.secret.expose_secret().to_owned();
    assert!(partner_core::events::is_secret(&new) && new != FIRST);
    assert_eq!(rotated.overlap_until, None);
    assert_eq!(secrets(&base).await, [(new, None)]);
    let after = base.store.config_version().await.unwrap();
    assert_ne!(after, before, "running services reload the configuration");
}

// rule: cli.webhook.rotate
#[tokio::test]
async fn rotation_with_overlap_ends_old_secret_after_overlap() {
    let (_installation, base) = with_webhook().await;
    let begun = base.clock.now();
    let rotated = rotate(&base, "acme", Present::Overlaps(DAY)).await.unwrap();
    let until = rotated.overlap_until.unwrap();
    assert!(until >= begun.plus(DAY) && until <= base.clock.now().plus(DAY));
    let new = rotated.secret.expose_secret().to_owned();
    let expected = [(new, None), (FIRST.to_owned(), Some(until))];
    assert_eq!(secrets(&base).await, expected);
}

// rule: cli.webhook.rotate, apply.service-webhooks
#[tokio::test]
async fn gate_endpoint_has_its_own_secret() {
    let (_installation, base) = with_webhook().await;
    let gate = Service::Gate;
    let bare = rotate_of(&base, gate, "acme", Present::EndsAtOnce).await;
    let Err(error @ RotateError::NoEndpoint(..)) = bare else {
        panic!("{bare:?}");
    };
    assert_eq!(
        error.to_string(),
        "partner `acme` has no gate webhook in mode test: nothing is signed for it; add [partners.gate.webhook] with a url to its file, and apply the file"
    );
    let file = format!("{ACME}[partners.gate.webhook]\nurl = \"http://127.0.0.1:9/g\"\n");
    apply(&base, &file).await.unwrap();
    let pools = secrets(&base).await;
    let rotated = rotate_of(&base, gate, "acme", Present::EndsAtOnce).await;
    let new = rotated.unwrap().secret.expose_secret().to_owned();
    assert_eq!(secrets_of(&base, gate).await, [(new, None)]);
    assert_eq!(secrets(&base).await, pools);
}

// rule: cli.webhook.rotate-twice
#[tokio::test]
async fn rotation_during_overlap_is_refused() {
    let (_installation, base) = with_webhook().await;
    let first = rotate(&base, "acme", Present::Overlaps(DAY)).await.unwrap();
    let before = secrets(&base).await;
    let refused = rotate(&base, "acme", Present::Overlaps(DAY)).await;
    let Err(RotateError::Overlapping(until)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(Some(until), first.overlap_until);
    assert_eq!(secrets(&base).await, before);

    let alone = rotate(&base, "acme", Present::EndsAtOnce).await.unwrap();
    let new = alone.secret.expose_secret().to_owned();
    assert_eq!(
        secrets(&base).await,
        [(new, None)],
        "the rotation ends both older secrets"
    );
}

// rule: cli.webhook.rotate-twice
#[tokio::test]
async fn ended_overlap_does_not_block_rotation() {
    let (_installation, base) = with_webhook().await;
    let short = Present::Overlaps(Duration::from_millis(1));
    let first = rotate(&base, "acme", short).await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    let second = rotate(&base, "acme", Present::Overlaps(DAY)).await.unwrap();
    let texts: Vec<String> = secrets(&base).await.into_iter().map(|it| it.0).collect();
    let newest_first = [&second, &first].map(|it| it.secret.expose_secret().to_owned());
    assert_eq!(texts, newest_first);
}

#[tokio::test]
async fn refused_rotation_leaves_secrets_unchanged() {
    let (_installation, base) = with_webhook().await;
    let before = secrets(&base).await;
    for span in [Duration::ZERO, DAY * 30 + Duration::from_millis(1)] {
        let refused = rotate(&base, "acme", Present::Overlaps(span)).await;
        assert!(matches!(refused, Err(RotateError::Overlap)), "{refused:?}");
    }
    let unknown = rotate(&base, "stranger", Present::EndsAtOnce).await;
    assert!(matches!(unknown, Err(RotateError::UnknownPartner(..))));
    apply(&base, &format!("{ACME}{SHOP}").replace("acme", "bare"))
        .await
        .unwrap();
    let bare = rotate(&base, "bare", Present::EndsAtOnce).await;
    assert!(matches!(bare, Err(RotateError::NoEndpoint(..))));
    assert_eq!(secrets(&base).await, before);
}

/// `apply` keeps rotated secrets unless the file contains a secret.
#[tokio::test]
async fn file_without_secret_keeps_rotated_secrets() {
    let (_installation, base) = with_webhook().await;
    rotate(&base, "acme", Present::Overlaps(DAY)).await.unwrap();
    let before = secrets(&base).await;
    let silent = file().replace(&format!("secret = \"{FIRST}\"\n"), "");
    apply(&base, &silent).await.unwrap();
    assert_eq!(secrets(&base).await, before);
    apply(&base, &file()).await.unwrap();
    assert_eq!(secrets(&base).await, [(FIRST.to_owned(), None)]);
}

// rule: cli.webhook.rotate
#[test]
fn new_secret_is_printed_once_with_the_next_step() {
    let installation = Installation::new();
    assert_eq!(installation.apply(&file(), &[]).code, 0);
    let words = "webhook rotate-secret --partner acme --service pools --overlap 90m";
    let done = installation.run(&words.split(' ').collect::<Vec<_>>());
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.err.starts_with("test, "), "{done:?}");
    assert_eq!(done.err.lines().count(), 1, "{done:?}");
    assert_eq!(done.out.matches("whsec_").count(), 1, "{done:?}");
    let next = "next: give it to the partner";
    assert!(done.out.contains(next), "{done:?}");
}

// rule: cli.exit-codes
#[test]
fn invalid_arguments_are_refused_on_one_line() {
    let installation = Installation::new();
    assert_eq!(installation.apply(&file(), &[]).code, 0);
    for (words, code, message) in [
        (
            "--partner acme --service gate",
            1,
            "partner `acme` has no gate webhook in mode test",
        ),
        (
            "--partner acme --service pools --overlap 24",
            2,
            "--overlap: expected digits and a unit",
        ),
        (
            "--partner acme --service pools --overlap 0s",
            2,
            "--overlap: expected digits and a unit",
        ),
        (
            "--partner acme --service pools --overlap -1h",
            2,
            "error: unexpected argument",
        ),
        (
            "--partner acme --service pools --overlap 721h",
            2,
            "--overlap: expected an overlap of",
        ),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let done = installation.run(&[&["webhook", "rotate-secret"], &words[..]].concat());
        assert_eq!((done.code, done.out.as_str()), (code, ""), "{done:?}");
        assert!(done.err.starts_with(message), "{words:?}: {done:?}");
        let lines = done.err.lines().count();
        assert!(lines == 1 || done.err.starts_with("error: "), "{done:?}");
    }
}
