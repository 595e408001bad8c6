//! `apply`: the changes that a declarative file makes.

use std::sync::Arc;

use crate::fixture::{ACME, GATED, Installation, KEYS, POOL, SHOP, acme, apply};
use gate_core::profile::GateProfile;
use partner_core::events::{Service, secret_place};
use partner_core::key::{KeyId, KeyKind, NewKey};
use partner_core::origin::AllowedDomain;
use partner_core::usecases::keys::{Keys, ListedKey};
use pools_core::profile::{PoolId, PoolTerms, PoolsProfile};
use runtime::OpenedBase;
use serde_json::{Value, json};

/// Reads the partner's pools profile. A dropped transaction rolls back in the background. That needs a second thread if the test
/// then runs a command, because the command waits for the lock.
pub(crate) async fn profile(base: &OpenedBase) -> Option<PoolsProfile> {
    let mut tx = base.store.provision_begin("look").await.unwrap();
    tx.pools_profile_get(&acme()).await.unwrap()
}

async fn gate(base: &OpenedBase) -> Option<GateProfile> {
    let mut tx = base.store.provision_begin("look").await.unwrap();
    tx.gate_profile_get(&acme()).await.unwrap()
}

async fn endpoint(base: &OpenedBase) -> (String, Vec<String>) {
    endpoint_of(base, Service::Pools).await
}

/// The endpoint's URL and its secrets, newest first.
async fn endpoint_of(base: &OpenedBase, service: Service) -> (String, Vec<String>) {
    let mut tx = base.store.provision_begin("look").await.unwrap();
    let found = tx.endpoint_get(&acme(), service).await.unwrap().unwrap();
    let open = |sealed| base.sealer.open(&secret_place(found.id), sealed).unwrap();
    let secrets = found.secrets.iter().map(|secret| open(&secret.sealed));
    let texts = secrets
        .map(|plain| String::from_utf8(plain).unwrap())
        .collect();
    (found.url, texts)
}

pub(crate) fn keys(base: &OpenedBase) -> Keys {
    Keys {
        store: base.store.clone(),
        sealer: Arc::clone(&base.sealer),
        entropy: Arc::clone(&base.entropy),
        mode: acme().mode,
    }
}

// rule: apply.idempotent, apply.reports
#[tokio::test(flavor = "multi_thread")]
async fn reapplied_file_changes_nothing_and_leaves_config_version() {
    let installation = Installation::new();
    let base = installation.open().await;
    let text = format!(
        "{POOL}{ACME}[partners.pools]\nallowed = [\"EUR-USDT\"]\n[[partners.pools.terms]]\npool = \"EUR-USDT\"\nmin_order_usdt = 10.50\n[partners.pools.webhook]\nurl = \"http://127.0.0.1:9/p\"\n{KEYS}"
    );
    let before = base.store.config_version().await.unwrap();
    let first = apply(&base, &text).await.unwrap();
    assert_eq!(
        first.changed,
        [
            "pool EUR-USDT: created",
            "partner acme: created",
            "partner acme: pools created",
            "partner acme: pools.terms EUR-USDT created",
            "partner acme: pools.webhook created",
            "partner acme: pools.webhook.secret generated",
            "partner acme: secret key generated",
            "partner acme: publishable key generated",
        ]
    );
    assert_eq!(
        (first.created_keys.len(), first.created_secrets.len()),
        (2, 1)
    );
    let raised = base.store.config_version().await.unwrap();
    assert_ne!(raised, before);
    let again = text.replace("10.50", "\"10.5\"");
    let second = apply(&base, &again).await.unwrap();
    assert!(second.changed.is_empty(), "{:?}", second.changed);
    assert!(second.created_keys.is_empty() && second.created_secrets.is_empty());
    assert_eq!(base.store.config_version().await.unwrap(), raised);
}

// rule: apply.table-replaces, apply.absence-changes-nothing, apply.terms-defaults
#[tokio::test(flavor = "multi_thread")]
async fn each_table_replaces_only_its_own_values() {
    let installation = Installation::new();
    let base = installation.open().await;
    let pools = format!("{POOL}{}", POOL.replace("EUR", "GBP"));
    let full = format!(
        "{pools}{ACME}[partners.pools]\nenabled = true\ntier = \"gold\"\nallowed = [\"EUR-USDT\"]\n{GATED}velocity_cap_usdt = 5\n[[partners.pools.terms]]\npool = \"EUR-USDT\"\ndraw_fee_bps = 30\n[[partners.pools.terms]]\npool = \"GBP-USDT\"\ndraw_fee_bps = 40\n"
    );
    apply(&base, &full).await.unwrap();
    let before = profile(&base).await.unwrap();

    let renamed = apply(&base, &ACME.replace("Acme", "New Name"))
        .await
        .unwrap();
    assert_eq!(renamed.changed, ["partner acme: name Acme -> \"New Name\""]);
    assert_eq!(profile(&base).await.unwrap(), before);

    let webhook = format!("{ACME}[partners.pools.webhook]\nurl = \"http://127.0.0.1:9/p\"\n");
    apply(&base, &webhook).await.unwrap();
    assert_eq!(
        profile(&base).await.unwrap(),
        before,
        "the file lacks the partner's pools table"
    );

    let bare = format!("{ACME}[partners.pools]\nenabled = true\n{GATED}velocity_cap_usdt = 4\n");
    let replaced = apply(&base, &bare).await.unwrap();
    assert_eq!(
        replaced.changed,
        [
            "partner acme: pools.tier gold -> standard",
            "partner acme: pools.allowed [EUR-USDT] -> []",
            "partner acme: pools.velocity_cap_usdt 5 -> 4",
        ]
    );
    assert_eq!(profile(&base).await.unwrap().terms, before.terms);

    let terms = format!("{ACME}[[partners.pools.terms]]\npool = \"EUR-USDT\"\n");
    let replaced = apply(&base, &terms).await.unwrap();
    assert_eq!(
        replaced.changed,
        ["partner acme: pools.terms EUR-USDT draw_fee_bps 30 -> 0"]
    );
    let after = profile(&base).await.unwrap().terms;
    let (eur, gbp) = (
        PoolId::parse("EUR-USDT").unwrap(),
        PoolId::parse("GBP-USDT").unwrap(),
    );
    assert_eq!(after.get(&eur), Some(&PoolTerms::default()));
    assert_eq!(after.get(&gbp), before.terms.get(&gbp));
}

// rule: apply.gate, apply.gate-origins, apply.merchant, apply.table-replaces, apply.absence-changes-nothing, apply.idempotent
#[tokio::test(flavor = "multi_thread")]
async fn gate_table_sets_access_to_gate() {
    let installation = Installation::new();
    let base = installation.open().await;
    let full = format!(
        "{ACME}[partners.gate]\nenabled = true\nallowed_domains = [\"https://Bücher.example\"]\nflow_sessions = true\nrails = true\npreview_locks = true\nkyc_trusted = true\nlive_session_quota = 5\ncreate_session_limit = \"100/60s\"\nlegal_name = \"Acme GmbH\"\nterms_url = \"https://shop.example/terms\"\n"
    );
    let first = apply(&base, &full).await.unwrap();
    assert_eq!(
        first.changed,
        ["partner acme: created", "partner acme: gate created"]
    );
    let stored = gate(&base).await.unwrap();
    let domains: Vec<&str> = stored
        .allowed_domains
        .iter()
        .map(AllowedDomain::as_str)
        .collect();
    assert_eq!(domains, ["https://xn--bcher-kva.example"]);
    let again = full.replace("Bücher.example", "xn--bcher-kva.example:443");
    assert!(apply(&base, &again).await.unwrap().changed.is_empty());

    apply(&base, &format!("{ACME}[partners.pools]\ntier = \"gold\"\n"))
        .await
        .unwrap();
    assert_eq!(
        gate(&base).await.unwrap(),
        stored,
        "the file lacks the gate table"
    );
    let bare = format!("{ACME}[partners.gate]\nenabled = true\nlive_session_quota = 4\n");
    let replaced = apply(&base, &bare).await.unwrap();
    assert_eq!(
        replaced.changed,
        [
            "partner acme: gate.allowed_domains [https://xn--bcher-kva.example] -> []",
            "partner acme: gate.flow_sessions true -> false",
            "partner acme: gate.kyc_trusted true -> false",
            "partner acme: gate.rails true -> false",
            "partner acme: gate.preview_locks true -> false",
            "partner acme: gate.live_session_quota 5 -> 4",
            "partner acme: gate.create_session_limit 100/1m -> none",
            "partner acme: gate.legal_name \"Acme GmbH\" -> none",
            "partner acme: gate.terms_url https://shop.example/terms -> none",
        ]
    );
    let expected = GateProfile {
        enabled: true,
        live_session_quota: Some(4),
        ..GateProfile::default()
    };
    assert_eq!(gate(&base).await, Some(expected));
}

// rule: apply.service-webhooks
#[tokio::test(flavor = "multi_thread")]
async fn each_service_has_its_own_endpoint() {
    let installation = Installation::new();
    let base = installation.open().await;
    let text = format!(
        "{ACME}[partners.pools.webhook]\nurl = \"http://127.0.0.1:9/p\"\n[partners.gate.webhook]\nurl = \"http://127.0.0.1:9/g\"\n"
    );
    let first = apply(&base, &text).await.unwrap();
    assert_eq!(
        first.changed,
        [
            "partner acme: created",
            "partner acme: pools.webhook created",
            "partner acme: pools.webhook.secret generated",
            "partner acme: gate.webhook created",
            "partner acme: gate.webhook.secret generated",
        ]
    );
    let services: Vec<Service> = first.created_secrets.iter().map(|it| it.service).collect();
    assert_eq!(services, [Service::Pools, Service::Gate]);
    assert_eq!(gate(&base).await, None, "the file lacks the gate table");
    let (pools, before) = (
        endpoint(&base).await,
        endpoint_of(&base, Service::Gate).await,
    );
    assert_ne!(pools.1, before.1);

    let moved = format!("{ACME}[partners.gate.webhook]\nurl = \"http://127.0.0.1:9/new\"\n");
    let moved = apply(&base, &moved).await.unwrap();
    assert_eq!(moved.changed, ["partner acme: gate.webhook.url changed"]);
    assert_eq!(endpoint(&base).await, pools);
    let expected = ("http://127.0.0.1:9/new".to_owned(), before.1);
    assert_eq!(endpoint_of(&base, Service::Gate).await, expected);
}

// rule: apply.key-generated-once, apply.keys-not-removed
#[tokio::test(flavor = "multi_thread")]
async fn key_is_generated_if_partner_never_had_one_of_its_kind() {
    let installation = Installation::new();
    let base = installation.open().await;
    let literal = format!(
        "{ACME}[[partners.keys]]\nkind = \"secret\"\nkey = \"sk_test_{}\"\n",
        "a".repeat(32)
    );
    apply(&base, &literal).await.unwrap();
    let made = apply(&base, &format!("{ACME}{KEYS}")).await.unwrap();
    assert_eq!(
        made.created_keys.len(),
        2,
        "a literal key does not count as generated"
    );
    let secret = made
        .created_keys
        .iter()
        .find(|key| key.kind == KeyKind::Secret);
    let id: KeyId = secret.unwrap().id;
    keys(&base).revoke(id).await.unwrap();
    let again = apply(&base, &format!("{ACME}{KEYS}")).await.unwrap();
    assert!(again.changed.is_empty(), "{:?}", again.changed);
    assert_eq!(keys(&base).list(&acme().partner).await.unwrap().len(), 3);
}

// rule: apply.key-stays-revoked
#[tokio::test(flavor = "multi_thread")]
async fn revoked_literal_key_stays_revoked() {
    let installation = Installation::new();
    let base = installation.open().await;
    let literal = format!(
        "{ACME}[[partners.keys]]\nkind = \"secret\"\nkey = \"sk_test_{}\"\n",
        "a".repeat(32)
    );
    apply(&base, &literal).await.unwrap();
    let [ListedKey { record, .. }] = keys(&base)
        .list(&acme().partner)
        .await
        .unwrap()
        .try_into()
        .unwrap();
    let revoked = keys(&base).revoke(record.id).await.unwrap();
    assert!(apply(&base, &literal).await.unwrap().changed.is_empty());
    let again = keys(&base).revoke(record.id).await.unwrap();
    assert_eq!(again, revoked, "the first instant is kept");
}

// rule: gate.session.url
#[tokio::test(flavor = "multi_thread")]
async fn older_literal_key_gets_its_text_when_applied_again() {
    let installation = Installation::new();
    let base = installation.open().await;
    apply(&base, &format!("{ACME}{SHOP}")).await.unwrap();
    let text = format!("pk_test_{}", "c".repeat(32));
    // An older version stored a key in this way, without its text.
    let mut tx = base.store.provision_begin("older").await.unwrap();
    let now = tx.now().await.unwrap();
    let older = NewKey::literal(KeyKind::Publishable, now, base.entropy.as_ref(), &text);
    tx.key_insert(&acme(), &older.unwrap()).await.unwrap();
    tx.commit().await.unwrap();
    let listed = || {
        let keys = installation.json(&["key", "list", "--partner", "acme"]);
        let [key] = keys.as_array().unwrap().as_slice() else {
            panic!("{keys}")
        };
        key["key"].clone()
    };
    assert_eq!(listed(), Value::Null);
    let file = format!("{ACME}[[partners.keys]]\nkind = \"publishable\"\nkey = \"{text}\"\n");
    let applied = || installation.apply(&file, &["--output", "json"]).json()["changed"].clone();
    let stored =
        "partner acme: publishable key pk_test_cccc…cccc: text stored for the links of sessions";
    assert_eq!(applied(), json!([stored]));
    assert_eq!(listed(), text);
    let version = base.store.config_version().await.unwrap();
    assert_eq!(applied(), json!([]));
    assert_eq!(listed(), text);
    assert_eq!(base.store.config_version().await.unwrap(), version);
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_secret_is_kept_until_file_contains_another() {
    let installation = Installation::new();
    let base = installation.open().await;
    let file = |url: &str, secret: &str| {
        format!("{ACME}[partners.pools.webhook]\nurl = \"{url}\"\n{secret}")
    };
    let first = apply(&base, &file("http://127.0.0.1:9/a", ""))
        .await
        .unwrap();
    let [created] = first.created_secrets.as_slice() else {
        panic!("{first:?}")
    };
    let generated = secrecy::ExposeSecret::expose_secret(&created.secret).to_owned();
    assert_eq!(endpoint(&base).await.1, std::slice::from_ref(&generated));

    let moved = apply(&base, &file("http://127.0.0.1:9/b", ""))
        .await
        .unwrap();
    assert_eq!(moved.changed, ["partner acme: pools.webhook.url changed"]);
    let expected = ("http://127.0.0.1:9/b".to_owned(), vec![generated]);
    assert_eq!(endpoint(&base).await, expected);

    let other = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let line = format!("secret = \"{other}\"\n");
    let replaced = apply(&base, &file("http://127.0.0.1:9/b", &line))
        .await
        .unwrap();
    assert_eq!(
        replaced.changed,
        ["partner acme: pools.webhook.secret replaced"]
    );
    assert!(
        replaced.created_secrets.is_empty(),
        "the file contains the secret, so none is generated"
    );
    assert_eq!(endpoint(&base).await.1, [other]);
    let again = apply(&base, &file("http://127.0.0.1:9/b", &line))
        .await
        .unwrap();
    assert!(again.changed.is_empty(), "{:?}", again.changed);
}

// rule: apply.atomic, apply.unknown-key
#[test]
fn invalid_file_is_refused_before_database_is_created() {
    let installation = Installation::new();
    let done = installation.apply(&format!("{POOL}{ACME}names = \"x\"\n"), &[]);
    assert_eq!((done.code, done.out.as_str()), (2, ""));
    assert_eq!(
        done.err,
        "file.toml: line 8: partners.names: unknown key; the nearest known one is `name`\n"
    );
    assert!(!installation.database_exists());
    let json = installation.apply("pools = 3", &["--output", "json"]);
    assert_eq!(json.code, 2);
    assert!(
        json.error()
            .starts_with("file.toml: line 1: pools: expected"),
        "{json:?}"
    );
}

// rule: apply.atomic, apply.key-conflict
#[test]
fn conflict_with_database_is_refused_with_line_of_file() {
    let installation = Installation::new();
    let key = format!(
        "[[partners.keys]]\nkind = \"secret\"\nkey = \"sk_test_{}\"\n",
        "b".repeat(32)
    );
    assert_eq!(installation.apply(&format!("{ACME}{key}"), &[]).code, 0);
    let access = "[partners.pools]\nallowed = [\"EUR-USDT\"]\n";
    let rival = ACME.replace("acme", "rival");
    let done = installation.apply(&format!("{rival}{access}{key}"), &[]);
    assert_eq!(done.code, 2, "{done:?}");
    assert_eq!(
        done.err,
        "file.toml: line 5: partners.pools.allowed: pool EUR-USDT is neither in this file nor in the database\n\
         file.toml: line 6: partners.keys.key: this key belongs to partner `acme` in mode test\n"
    );
    assert_eq!(
        installation
            .run(&["key", "list", "--partner", "rival"])
            .code,
        1
    );
    assert_eq!(installation.apply(POOL, &[]).code, 0);
    let done = installation.apply(&format!("{rival}{access}"), &[]);
    assert_eq!(
        done.code, 0,
        "the pool may exist only in the database: {done:?}"
    );
}
