//! `penstock master-key`: everything is sealed again while services run, and the old key can go.

use std::process::Command;

use scratch::Database;
use serde_json::Value;

use crate::fixture::{ACME, Installation, KEY, POOL};
use crate::sandbox::{Sandbox, demo_of};

const URL: &str = "sqlite://s/penstock.db";
/// Another key, in base64.
const SECOND: &str = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";

/// Calls the gate as the demo partner does.
fn post(sandbox: &Sandbox, demo: &Value, path: &str, key: &str, body: &str) -> Value {
    let run = Command::new("curl")
        .args(["-s", &format!("{}/v1/{path}", sandbox.gate())])
        .args([
            "-H",
            &format!(
                "Authorization: Bearer {}",
                demo["secret_key"].as_str().unwrap()
            ),
        ])
        .args(["-H", "Content-Type: application/json"])
        .args(["-H", &format!("Idempotency-Key: {key}"), "-d", body])
        .output()
        .unwrap();
    serde_json::from_slice(&run.stdout).unwrap()
}

const SESSION: &str = r#"{"amount": "100.00", "currency": "EUR", "return_url": "https://shop.example/done", "kyc_package": {"name": "Ann"}}"#;

fn older(installation: &Installation) -> Value {
    let report = installation.json(&["verify", "--database-url", URL]);
    assert_eq!(report["ok"], true, "{report}");
    report["figures"]["sealed_with_older_keys"].clone()
}

// rule: base.master-key-rotation
#[test]
fn rotation_seals_everything_again_while_the_services_run() {
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
    sandbox.stop();

    let added = cli(&["master-key", "add"]);
    let again = installation.run(&["master-key", "add", "--database-url", URL]);
    assert_eq!(again.code, 1, "{again:?}");
    let mut sandbox = Sandbox::start(&installation, &[]);
    let rotated = cli(&["master-key", "rotate"]);
    assert_eq!(rotated["fingerprint"], added["fingerprint"]);
    assert!(rotated["sealed_again"].as_u64().unwrap() >= 6, "{rotated}");
    assert_eq!(older(&installation), "0");
    let states = cli(&["master-key", "list"]);
    assert_eq!(states[0]["state"], "retired");
    assert_eq!(states[1]["state"], "current");

    // The running services seal with the new key, open what was sealed again, and find customers by the same index.
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

    // Without the old key everything still opens.
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
    // The old key alone opens nothing.
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

// rule: base.master-key-rotation
#[test]
fn rotation_on_a_server_takes_both_keys_from_the_variable() {
    let installation = Installation::on_a_server(Database::make_now());
    let webhook = "[partners.pools.webhook]\nurl = \"http://127.0.0.1:9/hook\"\n";
    assert_eq!(
        installation
            .apply(&format!("{POOL}{ACME}{webhook}"), &[])
            .code,
        0
    );
    let with = |keys: &str, words: &[&str]| {
        let run = installation
            .program(words)
            .env("PENSTOCK_MASTER_KEY", keys)
            .output();
        crate::fixture::ended(run.unwrap())
    };
    let none = with(KEY, &["master-key", "rotate"]);
    assert_eq!(none.code, 2, "{none:?}");
    assert!(
        none.err
            .contains("expected a new key beside the current one"),
        "{none:?}"
    );
    let both = format!("{KEY},{SECOND}");
    let done = with(&both, &["master-key", "rotate"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.contains("1 values were sealed again"), "{done:?}");
    let verified = with(SECOND, &["verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
    assert_eq!(with(KEY, &["verify"]).code, 2);
    // Repeating it is refused: there is no new key.
    assert_eq!(with(&both, &["master-key", "rotate"]).code, 2);
}
