//! The complete matrix of the session's state machine. A test compares `docs/state-machines.md` with it.

use gate_core::session::{ActionDecision, Session, SessionAction, SessionState};

use crate::fixtures::{DAY, after, assert_documented, noon, refid, session_at};

fn shown(verdict: &ActionDecision) -> [String; 3] {
    let moved = verdict.step.as_ref();
    let next = moved.map_or("stays", |step| step.state.status().as_str());
    let event = moved.map_or("none".to_owned(), |step| {
        format!("`{}`", step.event.as_str())
    });
    let outcome = match verdict.refused {
        Some(refused) => format!("refused: {refused}"),
        None => "done".to_owned(),
    };
    [next.to_owned(), event, outcome]
}

// rule: gate.session.one-end, gate.session.lazy-expiry, gate.session.cancel, gate.session.not-open, gate.event.once, gate.helper.fail, time.deadline-exclusive, gate.session.one-payment, gate.session.payment-waits
#[test]
fn session_matrix_covers_every_action_state_and_instant() {
    let long_ago = after(1_000);
    let states = [
        ("open", SessionState::Open, false),
        ("open, payment in progress", SessionState::Open, true),
        (
            "completed",
            SessionState::Completed {
                at: long_ago,
                refid: refid(),
            },
            false,
        ),
        ("cancelled", SessionState::Cancelled { at: long_ago }, false),
        ("expired", SessionState::Expired { at: long_ago }, false),
    ];
    let deadline = noon().plus(DAY).millis();
    let instants = [
        ("1 ms before `expires_at`", deadline - 1),
        ("at `expires_at`", deadline),
        ("1 ms after `expires_at`", deadline + 1),
    ];
    let acts = [
        ("look", SessionAction::Touch),
        ("fail", SessionAction::Fail),
        ("pay", SessionAction::Pay),
        ("cancel", SessionAction::Cancel),
        ("complete", SessionAction::Complete(refid())),
        ("settle", SessionAction::Settle(refid())),
    ];
    let mut lines = vec![
        "| stored | now | act | next | event | act is |".to_owned(),
        "| --- | --- | --- | --- | --- | --- |".to_owned(),
    ];
    for (state_name, state, payment_in_progress) in states {
        for (instant_name, millis) in instants {
            for (act_name, act) in acts {
                let now = kernel::Timestamp::from_millis(millis).unwrap();
                let session = Session {
                    payment_in_progress,
                    ..session_at(state)
                };
                let verdict = session.advance(act, now);
                let [next, event, outcome] = shown(&verdict);
                lines.push(format!(
                    "| {state_name} | {instant_name} | {act_name} | {next} | {event} | {outcome} |"
                ));
            }
        }
    }
    let table = lines.join("\n");
    insta::assert_snapshot!("session", table);
    assert_documented("session", &table);
}
