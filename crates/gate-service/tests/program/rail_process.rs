//! `test-rail` in a process of its own: it plays a rail over HTTP, and its notifications wake the gate.
//!
//! The clock of the gate stands still in these tests. So a payment that a poll has found in progress is never polled again, unless
//! a notification makes the next poll due.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use gate_core::rail::{FailureReason, Finding, RailId, RailRecord, RailStatus};

use crate::gate::{Gate, post, redeem};
use crate::process::Trial;

const SECRET: &str = "a-secret-of-the-rail";
const PROCESSING: &str = "rail.pay_in.processing";

/// A gate service in this process, whose clock has stopped at the present.
async fn start(folder: &Path, rail: &str, secret: Option<&str>) -> Gate {
    let mut settings = vec![("RAIL", rail), ("THROTTLE", "off")];
    settings.extend(secret.map(|secret| ("RAIL_SECRET", secret)));
    Gate::start_now(folder, &settings).await
}

/// The same, with a rail for trials.
async fn start_with(folder: &Path, rail: &Trial) -> Gate {
    start(
        folder,
        &format!("http:http://{}", rail.address),
        Some(SECRET),
    )
    .await
}

// rule: rail.notification.wakes, rail.notification.believes-nothing, rail.http.reference
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notification_of_rail_settles_payment_before_its_next_poll() {
    let folder = tempfile::tempdir().unwrap();
    let mut rail = Trial::rail(SECRET, &["--hold"]);
    let gate = start_with(folder.path(), &rail).await;
    rail.command(&format!("gate http://{}", gate.address));
    let [pay_in, _] = gate.call(redeem).await;
    rail.says(&format!("GET /v1/payments/{pay_in} 200"));
    // A notification that lies: the rail is asked, says `processing`, and nothing changes.
    rail.command(&format!("notify {pay_in}"));
    rail.says(&format!("GET /v1/payments/{pay_in} 200"));
    assert_eq!(gate.events(&pay_in, 1).await, [PROCESSING]);
    rail.command(&format!("settle {pay_in} e2e-8842"));
    rail.says(&format!("GET /v1/payments/{pay_in} 200"));
    assert_eq!(
        gate.events(&pay_in, 2).await,
        [PROCESSING, "rail.pay_in.settled"]
    );
    let settled = reaches(&gate, &pay_in, RailStatus::Settled, None).await;
    assert_eq!(settled.state.reference(), Some("e2e-8842"));
    gate.end().await;
}

// rule: rail.notification.wakes
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rail_for_trials_ends_payments_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let mut rail = Trial::rail(SECRET, &["--delay-ms", "1500"]);
    let gate = start_with(folder.path(), &rail).await;
    rail.command(&format!("gate http://{}", gate.address));
    let [pay_in, _] = gate.call(redeem).await;
    assert_eq!(
        gate.events(&pay_in, 2).await,
        [PROCESSING, "rail.pay_in.settled"]
    );
    gate.end().await;
}

/// The stored record when it has this status and this finding.
async fn reaches(
    gate: &Gate,
    pay_in: &str,
    status: RailStatus,
    finding: Option<Finding>,
) -> RailRecord {
    let id = RailId::parse_any(pay_in).unwrap();
    for _ in 0..3_000 {
        let found = gate.runtime.base.store.rail_get(&gate.who, id).await;
        let record = found.unwrap().unwrap();
        let found = record.open_item.map(|item| item.finding);
        if (record.state.status(), found) == (status, finding) {
            return record;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{pay_in} does not become {status:?} with {finding:?}");
}

// rule: rail.received, rail.findings, rail.watch
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rail_for_trials_plays_parts_late_money_and_returns() {
    let folder = tempfile::tempdir().unwrap();
    let mut rail = Trial::rail(SECRET, &["--hold"]);
    let gate = start_with(folder.path(), &rail).await;
    rail.command(&format!("gate http://{}", gate.address));
    let [paid, _] = gate.call(redeem).await;
    rail.says(&format!("GET /v1/payments/{paid} 200"));
    rail.command(&format!("receive {paid} 20.00"));
    let part = reaches(
        &gate,
        &paid,
        RailStatus::Processing,
        Some(Finding::Underpaid),
    );
    let received = part.await.received.unwrap().amount.to_string();
    assert_eq!(received, "20.00");
    rail.command(&format!("receive {paid} 100.00"));
    reaches(&gate, &paid, RailStatus::Processing, None).await;
    rail.command(&format!("settle {paid} e2e-1"));
    reaches(&gate, &paid, RailStatus::Settled, None).await;
    rail.command(&format!("return {paid}"));
    reaches(&gate, &paid, RailStatus::Settled, Some(Finding::Returned)).await;
    let [failed, _] = gate.call(redeem).await;
    rail.says(&format!("GET /v1/payments/{failed} 200"));
    rail.command(&format!("fail {failed} too_little amount_differs"));
    let record = reaches(&gate, &failed, RailStatus::Failed, None).await;
    let reason = record.state.failure_reason();
    assert_eq!(reason, Some(FailureReason::AmountDiffers));
    rail.command(&format!("late {failed}"));
    reaches(&gate, &failed, RailStatus::Failed, Some(Finding::Late)).await;
    gate.end().await;
}

// rule: rail.acknowledged-stays-begun, rail.http.unknown
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payment_that_the_rail_for_trials_forgets_never_begins_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut rail = Trial::rail(SECRET, &["--hold"]);
    let gate = start_with(folder.path(), &rail).await;
    rail.command(&format!("gate http://{}", gate.address));
    let [pay_in, _] = gate.call(redeem).await;
    rail.says(&format!("GET /v1/payments/{pay_in} 200"));
    rail.command(&format!("forget {pay_in}"));
    for _ in 0..2 {
        rail.command(&format!("notify {pay_in}"));
        let next = rail.says(&format!("/v1/payments/{pay_in} "));
        assert_eq!(next, format!("test-rail: GET /v1/payments/{pay_in} 404"));
    }
    reaches(&gate, &pay_in, RailStatus::Processing, None).await;
    gate.end().await;
}

// rule: rail.notification.off
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn route_of_notifications_exists_only_with_secret() {
    for (secret, status, code) in [
        (None, "404", "route_not_found"),
        (Some(SECRET), "401", "unauthorized"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let gate = start(folder.path(), "sandbox", secret).await;
        let body = r#"{"id":"pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK"}"#;
        let notify = move |address: &str| post(address, "/v1/rail_notifications", body);
        let refused = gate.call(notify).await;
        assert!(
            refused.starts_with(&format!("HTTP/1.1 {status}")),
            "{refused}"
        );
        assert!(
            refused.contains(&format!(r#""code":"{code}""#)),
            "{refused}"
        );
        gate.end().await;
    }
}

// rule: rail.notification.signature
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signing_example_of_the_guide_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let rail = Trial::rail(SECRET, &["--hold"]);
    let gate = start_with(folder.path(), &rail).await;
    let [pay_in, _] = gate.call(redeem).await;
    rail.says(&format!("GET /v1/payments/{pay_in} 200"));
    let guide = include_str!("../../../../docs/providers.md");
    let (_, example) = guide.split_once("<!-- run: notify -->\n```sh\n").unwrap();
    let example = example.split_once("```\n").unwrap().0;
    let example = example.replace("pi_live_01KSFVT4Z2V6B9C1D3F5G7H8JK", &pay_in);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(example);
    shell.env("PENSTOCK_RAIL_SECRET", SECRET);
    shell.env("GATE", format!("http://{}", gate.address));
    let ran = tokio::task::spawn_blocking(move || shell.output().unwrap());
    let ran = ran.await.unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "202\n", "{ran:?}");
    rail.says(&format!("GET /v1/payments/{pay_in} 200"));
    gate.end().await;
}

#[test]
fn rail_for_trials_refuses_unknown_arguments() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_test-rail"));
    let refused = program.arg("--fast").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).starts_with("usage: test-rail"));
}
