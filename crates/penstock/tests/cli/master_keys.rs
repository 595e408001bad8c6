//! `penstock master-key`: a rotation encrypts everything with the new key while services run, and the old key can be removed.

use kernel::StoreError;
use partner_core::ports::ResealedValue;
use provisioning::apply::ApplyError;
use runtime::OpenedBase;
use serde_json::{Value, json};
use test_support::http;

use crate::fixture::{ACME, Done, Installation, KEY, POOL, ended};
use crate::sandbox::{Sandbox, demo_of};

const URL: &str = "sqlite://s/penstock.db";
/// Another key, in base64.
const SECOND: &str = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";

/// Calls the gate at this address with these headers.
fn call(gate: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Value {
    let response = http::send(gate, &format!("POST /v1/{path}"), headers, body);
    http::json(&response)
}

/// Calls the gate of a sandbox as the demo partner.
fn post(sandbox: &Sandbox, demo: &Value, path: &str, key: &str, body: &str) -> Value {
    post_to(sandbox.gate(), demo, path, key, body)
}

/// Calls the gate as the partner with these keys.
fn post_to(gate: &str, keys: &Value, path: &str, key: &str, body: &str) -> Value {
    let bearer = format!("Bearer {}", keys["secret_key"].as_str().unwrap());
    let headers = [("Authorization", &*bearer), ("Idempotency-Key", key)];
    call(gate, path, &headers, body)
}

/// Sells in a widget of the partner with these keys. The database keeps the account of the sale sealed.
pub(crate) fn sell(gate: &str, keys: &Value) {
    let made = post_to(gate, keys, "gate_sessions", "sale", SALE);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let url = text(&made["url"]);
    let (origin, _) = url.split_once("/checkout").unwrap();
    let bearer = format!("Bearer {}", text(&keys["publishable_key"]));
    let headers = [("Origin", origin), ("Authorization", &*bearer)];
    let secret = json!({ "clientSecret": made["client_secret"] }).to_string();
    let begun = call(gate, "embed/bootstrap", &headers, &secret);
    let token = text(&begun["embed_token"]);
    let token = ("X-Embed-Token", &*token);
    let quote = call(gate, "embed/quotes", &[token], SOLD);
    let payment = json!({ "quote_id": quote["id"], "payout": { "iban": IBAN } }).to_string();
    let headers = [token, ("Idempotency-Key", "payout")];
    let paid = call(gate, "embed/payments", &headers, &payment);
    assert_eq!(paid["status"], "processing", "{paid}");
}

const SALE: &str = r#"{"amount": "100.33", "currency": "EUR", "return_url": "https://shop.example/done", "flow": "off_ramp"}"#;
const SOLD: &str =
    r#"{"side": "off_ramp", "asset": "USDT", "network": "tron", "payment_method": "sepa"}"#;
pub(crate) const IBAN: &str = "DE89370400440532013000";
const SESSION: &str = r#"{"amount": "100.00", "currency": "EUR", "return_url": "https://shop.example/done", "kyc_package": {"name": "Ann"}}"#;

fn older(installation: &Installation) -> Value {
    let report = installation.json(&["verify", "--database-url", URL]);
    assert_eq!(report["ok"], true, "{report}");
    report["figures"]["sealed_with_older_keys"].clone()
}

// rule: base.master-key-rotation
#[test]
fn rotation_encrypts_everything_again_while_services_run() {
    let installation = Installation::in_a_file();
    let cli = |words: &[&str]| installation.json(&[words, &["--database-url", URL]].concat());
    let sandbox = Sandbox::start(&installation, &[]);
    let demo = demo_of(&installation);
    let first = post(&sandbox, &demo, "gate_sessions", "one", SESSION);
    assert!(first["id"].is_string(), "{first}");
    let customer = post(
        &sandbox,
        &demo,
        "customers",
        "ann",
        r#"{"email": "ann@example.com"}"#,
    );
    assert!(customer["id"].is_string(), "{customer}");
    sell(sandbox.gate(), &demo);
    sandbox.stop();

    let added = cli(&["master-key", "add"]);
    let again = installation.run(&["master-key", "add", "--database-url", URL]);
    assert_eq!(again.code, 1, "{again:?}");
    let mut sandbox = Sandbox::start(&installation, &[]);
    let rotated = cli(&["master-key", "rotate"]);
    assert_eq!(rotated["fingerprint"], added["fingerprint"]);
    assert!(rotated["sealed_again"].as_u64().unwrap() >= 10, "{rotated}");
    assert_eq!(older(&installation), "0");
    let states = cli(&["master-key", "list"]);
    assert_eq!(states[0]["state"], "retired");
    assert_eq!(states[1]["state"], "current");

    // The running services encrypt with the new key, decrypt the values encrypted again, and find customers by the same index.
    let replayed = post(&sandbox, &demo, "gate_sessions", "one", SESSION);
    assert_eq!(replayed, first);
    let taken = post(
        &sandbox,
        &demo,
        "customers",
        "two",
        r#"{"email": "ANN@example.com"}"#,
    );
    assert_eq!(taken["code"], "customer_already_exists", "{taken}");
    let second = post(&sandbox, &demo, "gate_sessions", "two", SESSION);
    let line = sandbox.read_until(second["id"].as_str().unwrap());
    assert!(line.ends_with("both signatures verified"), "{line}");
    sandbox.stop();
    assert_eq!(older(&installation), "0");

    // Everything can be decrypted without the old key.
    let file = installation.folder.path().join("s/master.key");
    let keys = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, keys.lines().last().unwrap()).unwrap();
    let sandbox = Sandbox::start(&installation, &[]);
    assert_eq!(
        post(&sandbox, &demo, "gate_sessions", "one", SESSION),
        first
    );
    sandbox.stop();
    assert_eq!(older(&installation), "0");
    // The old key alone decrypts nothing.
    std::fs::write(&file, keys.lines().next().unwrap()).unwrap();
    let refused = installation.run(&["verify", "--database-url", URL]);
    assert_eq!(refused.code, 2, "{refused:?}");
    let fingerprint = added["fingerprint"].as_str().unwrap();
    assert!(
        refused
            .err
            .contains(&format!("master key, fingerprint {fingerprint}")),
        "{refused:?}"
    );
}

/// A gate with only the old key stores nothing under it after another key became current.
// rule: base.master-key-rotation, health.ready
#[test]
fn gate_without_new_key_stores_nothing_under_the_old_one() {
    let installation = Installation::in_a_file();
    let cli = |words: &[&str]| installation.json(&[words, &["--database-url", URL]].concat());
    let sandbox = Sandbox::start(&installation, &[]);
    let demo = demo_of(&installation);
    cli(&["master-key", "add"]);
    let rotated = cli(&["master-key", "rotate"]);
    assert_eq!(rotated["outcome"], "rotated", "{rotated}");
    let refused = post(&sandbox, &demo, "gate_sessions", "one", SESSION);
    assert_eq!(refused["code"], "service_unavailable", "{refused}");
    let ready = http::json(&http::get(sandbox.gate(), "/health/ready"));
    assert_eq!(ready["code"], "not_ready", "{ready}");
    sandbox.stop();
    assert_eq!(older(&installation), "0");
}

/// Runs the program with these master keys on the database of the test run.
fn with(installation: &Installation, keys: &str, words: &[&str]) -> Done {
    let run = installation
        .program(words)
        .env("PENSTOCK_MASTER_KEY", keys)
        .output();
    ended(run.unwrap())
}

/// A database under [`KEY`] to which this file was applied.
fn provisioned(file: &str) -> Installation {
    let installation = Installation::new();
    std::fs::write(installation.folder.path().join("file.toml"), file).unwrap();
    let applied = with(&installation, KEY, &["apply", "-f", "file.toml"]);
    assert_eq!(applied.code, 0, "{applied:?}");
    installation
}

/// A database with one encrypted value under [`KEY`]: a webhook secret.
fn with_one_secret() -> Installation {
    let webhook = "[partners.pools.webhook]\nurl = \"http://127.0.0.1:9/hook\"\n";
    provisioned(&format!("{POOL}{ACME}{webhook}"))
}

/// A shop with the keys of [`keys_of_shop`].
const SHOP: &str = r#"[partners.gate]
enabled = true
allowed_domains = ["https://shop.example"]
flow_sessions = true
[[partners.keys]]
kind = "secret"
key = "sk_test_AcmeAcmeAcmeAcmeAcmeAcmeAcme0001"
[[partners.keys]]
kind = "publishable"
key = "pk_test_AcmeAcmeAcmeAcmeAcmeAcmeAcme0003"
"#;

fn keys_of_shop() -> Value {
    json!({
        "secret_key": "sk_test_AcmeAcmeAcmeAcmeAcmeAcmeAcme0001",
        "publishable_key": "pk_test_AcmeAcmeAcmeAcmeAcmeAcmeAcme0003",
    })
}

/// A service seals the account, and the operator's command seals it again, on a server each under its own role.
// rule: base.master-key-rotation
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotation_encrypts_payout_account_again() {
    let installation = provisioned(&format!("{ACME}{SHOP}"));
    let runtime = installation.serve_with(KEY).await;
    let gate = gate_service::start(&runtime).await.unwrap();
    let address = gate.address().to_string();
    let serving = tokio::spawn(gate.run());
    tokio::task::block_in_place(|| sell(&address, &keys_of_shop()));
    runtime.shutdown.cancel();
    serving.await.unwrap().unwrap();
    runtime.close().await;

    let both = format!("{KEY},{SECOND}");
    let rotated = with(&installation, &both, &["master-key", "rotate"]);
    assert_eq!(rotated.code, 0, "{rotated:?}");
    let report = with(&installation, SECOND, &["verify", "--output", "json"]).json();
    assert_eq!(report["ok"], true, "{report}");
    assert_eq!(report["figures"]["sealed_with_older_keys"], "0", "{report}");
    let base = installation.open_with(SECOND).await;
    let page = base
        .store
        .sealed_page("rail_records.payout", None, 10)
        .await;
    let page = page.unwrap();
    let [account] = &page[..] else {
        panic!("{page:?}");
    };
    let sealed = account.sealed.as_ref().unwrap();
    let opened = base.sealer.open(&account.place, sealed);
    let opened = String::from_utf8(opened.unwrap()).unwrap();
    assert!(opened.contains(IBAN), "{opened}");
    base.store.close().await;
}

/// The keys that the database knows, in the order in which they became current.
fn known(installation: &Installation, keys: &str) -> Vec<String> {
    let listed = with(
        installation,
        keys,
        &["master-key", "list", "--output", "json"],
    );
    let listed = listed.json();
    let rows = listed.as_array().unwrap().iter();
    let known = rows.filter(|row| row["state"] != "new");
    known
        .map(|row| row["fingerprint"].as_str().unwrap().to_owned())
        .collect()
}

// rule: base.master-key-rotation
#[test]
fn rotation_reads_both_keys_from_variable_and_can_be_repeated() {
    let installation = with_one_secret();
    let none = with(&installation, KEY, &["master-key", "rotate"]);
    assert_eq!(none.code, 2, "{none:?}");
    assert!(
        none.err
            .contains("expected a new key in addition to the current one"),
        "{none:?}"
    );
    let both = format!("{KEY},{SECOND}");
    let done = with(&installation, &both, &["master-key", "rotate"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.out.contains("1 values were encrypted again"),
        "{done:?}"
    );
    let verified = with(&installation, SECOND, &["verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
    assert_eq!(with(&installation, KEY, &["verify"]).code, 2);
    for keys in [SECOND, &both] {
        let again = with(&installation, keys, &["master-key", "rotate"]);
        assert_eq!(again.code, 0, "{again:?}");
        let message = format!(
            "no new key is configured, so the key {} stays current; 0 values were encrypted again",
            known(&installation, keys)[1]
        );
        assert!(again.out.starts_with(&message), "{again:?}");
    }
}

// rule: base.master-key-rotation
#[test]
fn interrupted_rotation_needs_both_keys_until_resumed() {
    let installation = with_one_secret();
    let both = format!("{KEY},{SECOND}");
    let mut rotation = installation
        .program(&["master-key", "rotate"])
        .env("PENSTOCK_MASTER_KEY", &both)
        .spawn()
        .unwrap();
    while known(&installation, &both).len() < 2 {
        assert_eq!(
            rotation.try_wait().unwrap(),
            None,
            "the rotation still runs"
        );
    }
    rotation.kill().unwrap();
    rotation.wait().unwrap();

    let names = known(&installation, &both);
    let [first, second] = &names[..] else {
        panic!("{names:?}");
    };
    let early = with(&installation, SECOND, &["verify"]);
    assert_eq!(early.code, 2, "{early:?}");
    let needed = format!("expected also the older master key with fingerprint {first}");
    assert!(early.err.contains(&needed), "{early:?}");
    let done = with(&installation, &both, &["master-key", "rotate"]);
    assert_eq!(done.code, 0, "{done:?}");
    let message = format!("finished the interrupted rotation to the key {second}");
    assert!(done.out.starts_with(&message), "{done:?}");
    assert_eq!(with(&installation, SECOND, &["verify"]).code, 0);
}

/// A value that a program encrypts before a rotation and stores after it.
// rule: base.master-key-rotation
#[tokio::test]
async fn late_value_under_retired_key_is_encrypted_again() {
    let installation = with_one_secret();
    let both = format!("{KEY},{SECOND}");
    let secrets = async |found: &OpenedBase| {
        let store = found.store.clone();
        let mut page = store.sealed_page("webhook_secrets.sealed", None, 10).await;
        page.as_mut().unwrap().pop().unwrap()
    };
    let base = installation.open_with(KEY).await;
    let before = secrets(&base).await;
    base.store.close().await;
    assert_eq!(
        with(&installation, &both, &["master-key", "rotate"]).code,
        0
    );
    let base = installation.open_with(&both).await;
    let late = ResealedValue {
        row: before.row,
        old: secrets(&base).await.sealed.unwrap(),
        new: before.sealed.unwrap(),
    };
    let replaced = base
        .store
        .sealed_replace("webhook_secrets.sealed", &[late])
        .await;
    assert_eq!(replaced.unwrap(), 1);
    base.store.close().await;

    let found = with(&installation, &both, &["verify", "--output", "json"]).json();
    assert_eq!(found["figures"]["sealed_with_older_keys"], "1", "{found}");
    let lost = with(&installation, SECOND, &["master-key", "rotate"]);
    assert_eq!(lost.code, 1, "{lost:?}");
    let remedy = "1 values need a key that is not configured, such as the one with fingerprint ";
    assert!(lost.err.contains(remedy), "{lost:?}");
    let named = with(&installation, SECOND, &["verify"]);
    assert_eq!(named.code, 1, "{named:?}");
    let done = with(&installation, &both, &["master-key", "rotate"]);
    assert!(
        done.out.contains("1 values were encrypted again"),
        "{done:?}"
    );
    assert_eq!(with(&installation, SECOND, &["verify"]).code, 0);
}

/// Changes one byte of a sealed value.
async fn damage_one(installation: &Installation, column: &str) {
    let base = installation.open_with(KEY).await;
    let page = base.store.sealed_page(column, None, 10).await.unwrap();
    let mut values = page.into_iter();
    let (row, old) = values
        .find_map(|value| Some((value.row, value.sealed?)))
        .unwrap();
    let mut new = old.clone();
    *new.0.last_mut().unwrap() ^= 1;
    let damage = [ResealedValue { row, old, new }];
    let replaced = base.store.sealed_replace(column, &damage);
    assert_eq!(replaced.await.unwrap(), 1);
    base.store.close().await;
}

// rule: cli.verify, base.master-key-rotation
#[tokio::test]
async fn verify_names_publishable_key_whose_text_does_not_open() {
    let installation = with_one_secret();
    let words = "key create --partner acme --kind publishable --output json";
    let made = with(&installation, KEY, &words.split(' ').collect::<Vec<_>>());
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(with(&installation, KEY, &["verify"]).code, 0);
    damage_one(&installation, "api_keys.publishable_sealed").await;
    let done = with(&installation, KEY, &["verify"]);
    assert_eq!(done.code, 1, "{done:?}");
    let ulid = id.rsplit('_').next().unwrap();
    let text = format!("test/acme publishable key {ulid} has a sealed text that does not open");
    assert!(done.out.contains(&text), "{done:?}");
    assert!(
        done.out.contains("publishable-key-can-be-opened"),
        "{done:?}"
    );
}

// rule: base.master-key-rotation
#[tokio::test]
async fn rotation_finishes_despite_damaged_value_and_reports_it() {
    let installation = with_one_secret();
    let both = format!("{KEY},{SECOND},{SECOND}");
    damage_one(&installation, "webhook_secrets.sealed").await;
    let done = with(&installation, &both, &["master-key", "rotate"]);
    assert_eq!(done.code, 0, "{done:?}");
    let message = "1 values are damaged: they cannot be decrypted with the key that they name";
    assert!(done.out.contains(message), "{done:?}");
    assert_eq!(with(&installation, SECOND, &["verify"]).code, 1);
}

/// A command that starts before a rotation and encrypts after it.
// rule: base.master-key-rotation
#[tokio::test]
async fn command_started_before_rotation_encrypts_with_new_key() {
    let installation = with_one_secret();
    let both = format!("{KEY},{SECOND}");
    let [whole, old] = [&both, KEY].map(|keys| installation.open_with(keys));
    let (whole, old) = (whole.await, old.await);
    assert_eq!(
        with(&installation, &both, &["master-key", "rotate"]).code,
        0
    );
    let file = format!(
        "{POOL}{ACME}[partners.pools.webhook]\nurl = \"http://127.0.0.1:9/hook\"\nsecret = \"whsec_{SECOND}\"\n"
    );
    let refused = crate::fixture::apply(&old, &file).await.unwrap_err();
    assert!(
        matches!(refused, ApplyError::Store(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    let applied = crate::fixture::apply(&whole, &file).await.unwrap();
    assert!(!applied.changed.is_empty());
    for base in [whole, old] {
        base.store.close().await;
    }
    let verified = with(&installation, SECOND, &["verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
}

// rule: base.master-key-rotation, base.master-key-file
#[test]
fn key_is_added_to_used_file_by_one_command_at_a_time() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let installation = Installation::in_a_file();
    let folder = installation.folder.path();
    assert_eq!(
        installation.apply(&format!("{POOL}{ACME}{SHOP}"), &[]).code,
        0
    );
    let given = with(&installation, KEY, &["master-key", "add"]);
    assert_eq!(given.code, 2, "{given:?}");
    let (link, file) = (folder.join("master.key"), folder.join("kept.key"));
    std::fs::rename(&link, &file).unwrap();
    symlink(&file, &link).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let draft = folder.join("master.key.draft");
    std::fs::write(&draft, "").unwrap();
    let busy = installation.run(&["master-key", "add"]);
    assert_eq!(busy.code, 2, "{busy:?}");
    assert!(busy.err.contains("master.key.draft exists"), "{busy:?}");
    std::fs::remove_file(&draft).unwrap();
    let adding: Vec<_> = (0..4)
        .map(|_| {
            installation
                .program(&["master-key", "add"])
                .spawn()
                .unwrap()
        })
        .collect();
    let added = adding
        .into_iter()
        .filter_map(|mut one| one.wait().unwrap().success().then_some(()));
    assert_eq!(added.count(), 1);
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 2);
    assert!(
        std::fs::symlink_metadata(&link)
            .unwrap()
            .file_type()
            .is_symlink()
    );
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let listed = installation.run(&["master-key", "list"]);
    assert!(
        listed.out.contains("new      configured, key 2"),
        "{listed:?}"
    );
}
