//! Response times of a service, and how soon after the last fault they are normal again.

use std::fmt;
use std::time::Duration;

use crate::Result;
use crate::history::Op;

/// Responses in a window. The pace of a window is the time within which 99 of them arrive.
const WINDOW: usize = 100;
/// Highest ratio of a recovered window's pace to the normal pace.
const MAX_SLOWDOWN: u32 = 2;
/// Time limit for the recovery after the last fault.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// A return to the normal pace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recovery {
    normal: Duration,
    /// Pace of the first window after the last fault.
    first: Duration,
    /// Pace of the first window that was fast enough, and the time from the fault to its end.
    back: Duration,
    after: Duration,
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |pace: Duration| {
            let normal = self.normal.as_micros().max(1);
            pace.as_micros().saturating_mul(100) / normal
        };
        write!(
            f,
            "99 of 100 answers within {} ms before the faults; {} % of that right after the last, {} % within {} ms",
            self.normal.as_millis(),
            percent(self.first),
            percent(self.back),
            self.after.as_millis()
        )
    }
}

/// Returns the pace of a run without faults: the median of its windows.
pub(crate) fn normal(ops: &[Op]) -> Result<Duration> {
    let mut paces: Vec<Duration> = windows(ops, Duration::ZERO)
        .iter()
        .map(|window| window.pace)
        .collect();
    paces.sort_unstable();
    let median = paces.get(paces.len() / 2);
    median
        .copied()
        .ok_or_else(|| "too few responses to compute a pace".into())
}

/// Measures the recovery after the last fault; an error if it took too long.
pub(crate) fn recovery(ops: &[Op], last_fault: Duration, normal: Duration) -> Result<Recovery> {
    let windows = windows(ops, last_fault);
    let first = windows
        .first()
        .ok_or("too few responses after the last fault")?;
    let fast = |window: &&Window| window.pace <= normal.saturating_mul(MAX_SLOWDOWN);
    let back = windows.iter().find(fast).map(|window| Recovery {
        normal,
        first: first.pace,
        back: window.pace,
        after: window.ended.saturating_sub(last_fault),
    });
    match back {
        Some(recovery) if recovery.after <= RECOVERY_TIMEOUT => Ok(recovery),
        late => {
            let paces: Vec<u128> = windows.iter().map(|one| one.pace.as_millis()).collect();
            let normal = normal.as_millis();
            let when = late.map(|recovery| recovery.after);
            Err(format!("still slow: {paces:?} ms, {normal} ms before, back {when:?}").into())
        }
    }
}

struct Window {
    pace: Duration,
    ended: Duration,
}

/// Durations of the requests that were sent after an instant and had a response, in the order of sending.
fn windows(ops: &[Op], after: Duration) -> Vec<Window> {
    let mut answered: Vec<(Duration, Duration)> = ops
        .iter()
        .filter(|op| op.said.is_some() && op.invoked > after)
        .map(|op| (op.invoked, op.completed))
        .collect();
    answered.sort_unstable();
    let whole = answered.chunks_exact(WINDOW);
    whole.filter_map(window).collect()
}

fn window(spans: &[(Duration, Duration)]) -> Option<Window> {
    let mut took: Vec<Duration> = spans
        .iter()
        .map(|(from, to)| to.saturating_sub(*from))
        .collect();
    took.sort_unstable();
    Some(Window {
        pace: *took.get((WINDOW * 99 / 100).checked_sub(1)?)?,
        ended: spans.iter().map(|(_, to)| *to).max()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Kind;

    /// Makes responses from an instant on, one per millisecond, each of the given duration.
    fn ops(from: u64, count: u64, took: u64) -> Vec<Op> {
        let op = |at| Op::succeeded(Kind::Poll, "q", (at, at + took));
        (from..from + count).map(op).collect()
    }

    #[test]
    fn pace_ignores_one_slow_response_of_hundred() {
        let at = Duration::from_millis;
        let mut run = ops(1, 100, 10);
        run[7].completed = at(5_000);
        assert_eq!(normal(&run).unwrap(), at(10));
        run[8].completed = at(5_000);
        assert!(normal(&run).unwrap() > at(4_000));
        assert!(normal(&run[..99]).is_err());
    }

    #[test]
    fn service_recovers_when_window_is_fast_enough() {
        let (at, normal) = (Duration::from_millis, Duration::from_millis(10));
        let mut run = ops(0, 300, 900);
        run.extend(ops(1_000, 100, 21));
        run.extend(ops(2_000, 100, 20));
        let back = recovery(&run, at(500), normal).unwrap();
        assert_eq!((back.first, back.back), (at(21), at(20)));
        assert_eq!(back.after, at(2_099 + 20 - 500));
        assert!(recovery(&run[..400], at(500), normal).is_err(), "never");
        let mut late = ops(1_000, 100, 21);
        late.extend(ops(11_000, 100, 10));
        assert!(recovery(&late, at(500), normal).is_err(), "too late");
    }
}
