//! A service expires overdue sessions without a request, and advances the records of its rail.

use crate::gate::{Gate, create, redeem};

// rule: gate.session.sweep
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overdue_session_expires_without_request() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate::start(folder.path(), &[]).await;
    let id = gate.call(create).await;
    assert_eq!(gate.events(&id, 1).await, ["gate_session.created"]);
    gate.pass(24 * 60 * 60 * 1000);
    assert_eq!(
        gate.events(&id, 2).await,
        ["gate_session.created", "gate_session.expired"]
    );
    gate.end().await;
}

// rule: gate.rail.settled, gate.rail.completes
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rail_record_in_progress_settles_without_request() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate::start(folder.path(), &[]).await;
    let [pay_in, session] = gate.call(redeem).await;
    assert_eq!(
        gate.events(&pay_in, 2).await,
        ["rail.pay_in.processing", "rail.pay_in.settled"]
    );
    assert_eq!(
        gate.events(&session, 2).await,
        ["gate_session.created", "gate_session.completed"]
    );
    gate.end().await;
}
