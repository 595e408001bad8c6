//! Recovery of a service after its last fault: requests of every kind succeed again.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use test_support::time;

use super::REACH_TIMEOUT;
use crate::Result;
use crate::caller::Run;
use crate::history::{Kind, Op};
use crate::http::RESPONSE_TIMEOUT;

/// Responses in a row that show a recovery, of which at most one in twenty reports the engine: a campaign's engine loses some responses.
const RECOVERED: usize = 100;
const MAX_ENGINE_FAILURES: usize = RECOVERED / 20;
/// Operations after the last fault. The load goes on beyond the minimum until the service has recovered.
const MIN_OPERATIONS_AFTER_FAULT: usize = 5 * RECOVERED;
const MAX_OPERATIONS_AFTER_FAULT: usize = 100 * RECOVERED;
/// Operations after the last fault from which a kind without a success is a breach. Fewer may fail by chance.
const MIN_JUDGED: usize = 3;

/// Waits for enough operations to compute a pace, and for the recovery. Gives up after many operations or a long time.
pub(super) fn wait_for_recovery(run: &Run, last_fault: Duration) {
    let began = time::now();
    let is_over = || {
        let ops = run.ops.lock();
        let count = ops.iter().filter(|op| op.invoked > last_fault).count();
        let has_recovered =
            || without_success(&ops, last_fault).is_empty() && recovered(&ops, last_fault).is_ok();
        count >= MAX_OPERATIONS_AFTER_FAULT
            || count >= MIN_OPERATIONS_AFTER_FAULT && has_recovered()
    };
    while !is_over() && time::now().saturating_sub(began) < REACH_TIMEOUT {
        thread::sleep(Duration::from_millis(20));
    }
}

/// Whether the service failed, or did not respond within the client's timeout.
fn failed(op: &Op) -> bool {
    op.took() >= RESPONSE_TIMEOUT || matches!(&op.said, Some((500 | 503, _)))
}

/// Returns the kinds of operation that have not succeeded since the last fault, each with its operations since then.
///
/// A refusal counts as a success. A lost connection does not, although a client may have closed it.
fn without_success(ops: &[Op], last_fault: Duration) -> BTreeMap<Kind, Vec<&Op>> {
    let mut kinds: BTreeMap<Kind, Vec<&Op>> = BTreeMap::new();
    for op in ops {
        let later = kinds.entry(op.kind).or_default();
        if op.invoked > last_fault {
            later.push(op);
        }
    }
    kinds.retain(|_, later| later.iter().all(|op| op.said.is_none() || failed(op)));
    kinds
}

/// Checks that requests succeed again after the last fault: each kind of operation has succeeded, and in a hundred responses in a
/// row only the engine fails, as rarely as usual. How soon that is depends on the machine.
pub(super) fn recovered(ops: &[Op], last_fault: Duration) -> Result<()> {
    for (kind, later) in without_success(ops, last_fault) {
        let count = later.len();
        if count >= MIN_JUDGED
            && let Some(last) = later.last()
        {
            return Err(format!(
                "{kind:?} has not succeeded in {count} operations since the last fault: {:?}",
                last.said
            )
            .into());
        }
    }
    // A client that hangs up has no response.
    let mut later: Vec<&Op> = ops
        .iter()
        .filter(|op| op.invoked > last_fault && (op.said.is_some() || failed(op)))
        .collect();
    later.sort_unstable_by_key(|op| op.invoked);
    let by_engine = |op: &Op| matches!(&op.said, Some((_, code)) if code == "engine_unavailable");
    let works = |some: &[&Op]| {
        let silent = some.iter().filter(|op| by_engine(op)).count();
        let all = some.iter().filter(|op| failed(op)).count();
        all == silent && silent <= MAX_ENGINE_FAILURES
    };
    if later.windows(RECOVERED).any(works) {
        return Ok(());
    }
    let last = later.iter().rev().find(|op| failed(op));
    Err(format!("still failing after {} responses: {last:?}", later.len()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST_FAULT: Duration = Duration::from_millis(5);
    const OK: Option<(u16, &str)> = Some((200, ""));
    const UNAVAILABLE: Option<(u16, &str)> = Some((503, "service_unavailable"));

    /// Makes an operation with each of the responses, one per millisecond. One without a response lasts until the client's timeout.
    fn ops(kind: Kind, from_ms: u64, responses: &[Option<(u16, &str)>]) -> Vec<Op> {
        let op = |(at, said): (u64, &Option<(u16, &str)>)| {
            let invoked = Duration::from_millis(at);
            let took = said.map_or(RESPONSE_TIMEOUT, |_| Duration::from_millis(2));
            Op {
                completed: invoked + took,
                said: said.map(|(status, code)| (status, code.to_owned())),
                ..Op::succeeded(kind, "q", (at, at))
            }
        };
        (from_ms..).zip(responses).map(op).collect()
    }

    /// Makes 500 transacts after the fault. The first `failing` of each hundred receive 503 with `code`.
    fn transacts(failing: usize, code: &str) -> Vec<Op> {
        let response = |place: usize| match place % 100 < failing {
            true => Some((503, code)),
            false => OK,
        };
        let responses: Vec<_> = (0..500).map(response).collect();
        ops(Kind::Transact, 10, &responses)
    }

    /// Judges a mix of transacts, of which the engine fails a few, and of operations of a rare kind.
    fn recovers_with(kind: Kind, responses: &[Option<(u16, &str)>]) -> Result<()> {
        let mut mix = transacts(2, "engine_unavailable");
        mix.extend(ops(kind, 20, responses));
        recovered(&mix, LAST_FAULT)
    }

    #[test]
    fn service_has_recovered_when_only_engine_fails_rarely() {
        let recovers = |failing, code| recovered(&transacts(failing, code), LAST_FAULT);
        assert!(recovers(0, "").is_ok());
        assert!(recovers(5, "engine_unavailable").is_ok());
        assert!(recovers(6, "engine_unavailable").is_err());
        assert!(recovers(1, "service_unavailable").is_err());
    }

    #[test]
    fn rare_kind_is_breach_when_it_only_fails() {
        let failing = recovers_with(Kind::Poll, &[UNAVAILABLE; 3]).unwrap_err();
        let failing = failing.to_string();
        assert!(failing.contains("Poll has not succeeded"), "{failing}");
        assert!(failing.contains("service_unavailable"), "{failing}");
        let hanging = recovers_with(Kind::ReadBooks, &[None; 3]).unwrap_err();
        assert!(hanging.to_string().contains("ReadBooks"), "{hanging}");
    }

    #[test]
    fn kind_has_recovered_when_it_succeeds_after_failures() {
        let responses = [UNAVAILABLE, UNAVAILABLE, UNAVAILABLE, None, OK];
        recovers_with(Kind::Poll, &responses).unwrap();
        recovers_with(Kind::Poll, &[UNAVAILABLE, OK, UNAVAILABLE]).unwrap();
        recovers_with(Kind::Refused, &[Some((403, "key_kind_not_allowed"))]).unwrap();
    }

    #[test]
    fn kind_is_awaited_and_not_judged_when_it_was_hardly_used() {
        let before = ops(Kind::Poll, 1, &[OK; 3]);
        assert!(without_success(&before, LAST_FAULT).contains_key(&Kind::Poll));
        let twice = ops(Kind::Poll, 20, &[UNAVAILABLE; 2]);
        assert!(without_success(&twice, LAST_FAULT).contains_key(&Kind::Poll));
        recovers_with(Kind::Poll, &[UNAVAILABLE; 2]).unwrap();
    }
}
