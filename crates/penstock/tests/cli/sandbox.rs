//! `sandbox`: the first thing a developer runs.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use kernel::Mode;
use partner_core::events::Service;
use partner_core::{PartnerId, Tenant};
use serde_json::Value;

use crate::fixture::{Installation, POOL};

/// Asks a process of ours to stop, as an init system does.
fn terminate(id: u32) {
    let asked = Command::new("kill")
        .args(["-TERM", &id.to_string()])
        .status();
    assert!(asked.unwrap().success());
}

// rule: cli.sandbox.check, cli.sandbox.demo-kept
#[test]
fn the_check_does_the_main_job_again_and_again() {
    let installation = Installation::in_a_file();
    let first = installation.run(&["sandbox", "--dir", "s", "--check"]);
    assert_eq!(first.code, 0, "{first:?}");
    assert_eq!(first.out.matches('✓').count(), 18, "{first:?}");
    let file = installation.folder.path().join("s/demo.json");
    let kept = std::fs::read(&file).unwrap();
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = installation.json(&["sandbox", "--dir", "s", "--check"]);
    assert_eq!(again["ok"], true, "{again}");
    assert_eq!(again["steps"].as_array().unwrap().len(), 18);
    assert_eq!(std::fs::read(&file).unwrap(), kept);
}

/// Nothing may reach a private address here, so no event can arrive.
// rule: cli.sandbox.check-event
#[test]
fn an_event_that_does_not_arrive_fails_the_check() {
    let installation = Installation::in_a_file();
    let run = installation
        .program(&["sandbox", "--dir", "s", "--check"])
        .env("PENSTOCK_WEBHOOK_ALLOW_PRIVATE", "none")
        .output();
    let failed = crate::fixture::ended(run.unwrap());
    assert_eq!(failed.code, 1, "{failed:?}");
    assert_eq!(failed.out.matches('✓').count(), 11, "{failed:?}");
    let said = "✗ event        no event arrived within 10s; the last attempt: the endpoint's URL cannot be used";
    assert!(failed.out.contains(said), "{failed:?}");
}

/// The demo partner's own endpoint is the developer's: where it points, and who is asked there.
// rule: cli.sandbox.check-event
#[tokio::test]
async fn a_check_leaves_the_demo_partners_endpoint_alone() {
    let installation = Installation::in_a_file();
    let own = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    own.set_nonblocking(true).unwrap();
    let words = ["sandbox", "--dir", ".", "--check"];
    assert_eq!(installation.run(&words).code, 0);
    let webhook = format!(
        "[[partners]]\nid = \"demo\"\nname = \"Demo\"\n[partners.pools.webhook]\nurl = \"http://{}/mine\"\n",
        own.local_addr().unwrap()
    );
    assert_eq!(installation.apply(&webhook, &[]).code, 0);
    assert_eq!(installation.run(&words).code, 0);
    assert!(
        own.accept().is_ok(),
        "the demo partner's events still go there"
    );
    let again = installation.apply(&webhook, &[]);
    assert!(again.out.starts_with("nothing to change"), "{again:?}");
}

// rule: cli.sandbox.check
#[test]
fn a_check_that_fails_says_where_and_exits_1() {
    let installation = Installation::in_a_file();
    let words = ["sandbox", "--dir", "s", "--check"];
    assert_eq!(installation.run(&words).code, 0);
    let suspended = "[[partners]]\nid = \"demo\"\nname = \"Demo\"\nstatus = \"suspended\"\n";
    let done = installation.apply(suspended, &["--database-url", "sqlite://s/penstock.db"]);
    assert_eq!(done.code, 0, "{done:?}");
    let failed = installation.run(&words);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.out.contains("✗ discover"), "{failed:?}");
    assert!(failed.out.contains("organization_suspended"), "{failed:?}");
}

// rule: cli.sandbox.start
#[test]
fn it_prints_what_is_needed_serves_and_stops_when_asked() {
    let installation = Installation::in_a_file();
    let mut process = installation
        .program(&["sandbox", "--dir", "s"])
        .env("PENSTOCK_POOLS_LISTEN", "127.0.0.1:0")
        .env("PENSTOCK_GATE_LISTEN", "127.0.0.1:0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut printed = Vec::new();
    for line in BufReader::new(process.stdout.take().unwrap()).lines() {
        printed.push(line.unwrap());
        if printed
            .last()
            .unwrap()
            .starts_with("pools-service listening on http://127.0.0.1:")
        {
            break;
        }
    }
    terminate(process.id());
    assert_eq!(process.wait().unwrap().code(), Some(0));
    let kept = std::fs::read_to_string(installation.folder.path().join("s/demo.json")).unwrap();
    let demo: Value = serde_json::from_str(&kept).unwrap();
    let printed = printed.join("\n");
    for credential in ["secret_key", "publishable_key", "webhook_secret"] {
        assert!(
            printed.contains(demo[credential].as_str().unwrap()),
            "{printed}"
        );
    }
    for path in [
        "pools ",
        "capabilities",
        "quote",
        "transact",
        "transactions",
        "trades",
        "balance",
        "ledger",
        "gate_sessions",
        "embed/bootstrap",
        "test_helpers",
        "capabilities/eligibility",
        "quotes/preview",
        "rails/pay_ins",
        "gate-service listening on http://127.0.0.1:",
    ] {
        assert!(printed.contains(path), "{printed}");
    }
    assert!(printed.contains("curl"));
}

/// What the developer has changed about the partner stays.
// rule: cli.sandbox.demo-kept
#[tokio::test]
async fn a_partner_from_before_the_gate_is_given_it_and_nothing_else() {
    let installation = Installation::in_a_file();
    let words = ["sandbox", "--dir", ".", "--check"];
    assert_eq!(installation.run(&words).code, 0);
    let kept = std::fs::read_to_string(installation.folder.path().join("demo.json")).unwrap();
    let demo: Value = serde_json::from_str(&kept).unwrap();
    std::fs::remove_file(installation.folder.path().join("penstock.db")).unwrap();
    let pool = POOL.replace("[\"tron\"]", "[\"tron\", \"ethereum\"]");
    let older = format!(
        "{pool}[[partners]]\nid = \"demo\"\nname = \"Mine\"\n\
         [partners.pools]\nenabled = true\nkyc = \"approved\"\ntier = \"gold\"\nbalance_gate = true\nallowed = [\"EUR-USDT\"]\n\
         [[partners.keys]]\nkind = \"secret\"\nkey = {}\n[[partners.keys]]\nkind = \"publishable\"\nkey = {}\n",
        demo["secret_key"], demo["publishable_key"]
    );
    assert_eq!(installation.apply(&older, &[]).code, 0);
    let done = installation.run(&words);
    assert_eq!(done.code, 0, "{done:?}");
    let again = installation.apply(&older, &["--dry-run"]);
    assert!(again.out.starts_with("nothing to change"), "{again:?}");
    let base = installation.open().await;
    let mut tx = base.store.provision_begin("look").await.unwrap();
    let who = Tenant {
        partner: PartnerId::parse("demo").unwrap(),
        mode: Mode::Test,
    };
    assert!(tx.gate_profile_get(&who).await.unwrap().unwrap().enabled);
    assert!(
        tx.endpoint_get(&who, Service::Gate)
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        tx.endpoint_get(&who, Service::Pools)
            .await
            .unwrap()
            .is_none()
    );
}

// rule: cli.sandbox.refuses
#[test]
fn it_refuses_what_is_not_a_sandbox() {
    let installation = Installation::in_a_file();
    for words in [
        &["sandbox", "--dir", "s", "--check", "--mode", "live"][..],
        &[
            "sandbox",
            "--dir",
            "s",
            "--database-url",
            "postgres://u@127.0.0.1:1/x",
        ],
    ] {
        let done = installation.run(words);
        assert_eq!(done.code, 2, "{done:?}");
        assert!(!installation.folder.path().join("s").exists());
    }
}

// rule: cli.sandbox.demo-kept
#[test]
fn lost_credentials_are_made_anew() {
    let installation = Installation::in_a_file();
    let words = ["sandbox", "--dir", "s", "--check"];
    assert_eq!(installation.run(&words).code, 0);
    let folder = installation.folder.path().join("s");
    std::fs::remove_file(folder.join("demo.json")).unwrap();
    assert_eq!(
        installation.run(&words).code,
        0,
        "new keys for the same partner"
    );
    std::fs::remove_file(folder.join("penstock.db")).unwrap();
    assert_eq!(
        installation.run(&words).code,
        0,
        "the same keys for a new database"
    );
    std::fs::write(folder.join("demo.json"), "{}").unwrap();
    let done = installation.run(&words);
    assert_eq!(done.code, 1);
    assert!(
        done.err.contains("demo.json: no demo credentials"),
        "{done:?}"
    );
}
