//! How fast a service answers, and how soon after the last fault it is as fast again.

use std::fmt;
use std::time::Duration;

use crate::Result;
use crate::history::Op;

/// Answers in a window; 99 of them come within its pace.
const WINDOW: usize = 100;
/// Answers that are waited for before a pace is judged.
pub(crate) const JUDGED: u64 = 500;
/// After the last fault a window is no more than so many times slower than normal,
const TIMES: u32 = 2;
/// no later than this.
pub(crate) const BACK_WITHIN: Duration = Duration::from_secs(10);

/// A return to normal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recovery {
    normal: Duration,
    /// The pace of the first window after the last fault.
    first: Duration,
    /// And of the first that was fast enough, which had ended so long after it.
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

/// The pace of a run without faults: the median of its windows.
pub(crate) fn normal(ops: &[Op]) -> Result<Duration> {
    let mut paces: Vec<Duration> = windows(ops, Duration::ZERO)
        .iter()
        .map(|window| window.pace)
        .collect();
    paces.sort_unstable();
    let median = paces.get(paces.len() / 2);
    median
        .copied()
        .ok_or_else(|| "too little was answered to tell a pace".into())
}

/// How a service came back after its last fault; an error where it did not in time.
pub(crate) fn recovery(ops: &[Op], last_fault: Duration, normal: Duration) -> Result<Recovery> {
    let windows = windows(ops, last_fault);
    let first = windows
        .first()
        .ok_or("too little was answered after the last fault")?;
    let fast = |window: &&Window| window.pace <= normal.saturating_mul(TIMES);
    let back = windows.iter().find(fast).map(|window| Recovery {
        normal,
        first: first.pace,
        back: window.pace,
        after: window.ended.saturating_sub(last_fault),
    });
    match back {
        Some(recovery) if recovery.after <= BACK_WITHIN => Ok(recovery),
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

/// What was asked after an instant and answered, in the order of asking.
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
    use crate::history::{Kind, Outcome};

    /// So many answers from an instant on, one a millisecond, each of which takes so long.
    fn ops(from: u64, count: u64, took: u64) -> Vec<Op> {
        let op = |place| Op {
            client: 1,
            kind: Kind::Poll,
            partner: String::new(),
            object: None,
            key: None,
            invoked: Duration::from_millis(from + place),
            completed: Duration::from_millis(from + place + took),
            outcome: Outcome::Ok,
            said: Some((200, String::new())),
            seen: None,
            repeated: false,
            with: None,
        };
        (0..count).map(op).collect()
    }

    #[test]
    fn one_slow_answer_in_a_hundred_does_not_count_and_two_do() {
        let at = Duration::from_millis;
        let mut run = ops(1, 100, 10);
        run[7].completed = at(5_000);
        assert_eq!(normal(&run).unwrap(), at(10));
        run[8].completed = at(5_000);
        assert!(normal(&run).unwrap() > at(4_000));
        assert!(normal(&run[..99]).is_err());
    }

    #[test]
    fn a_service_is_back_once_a_window_is_fast_enough() {
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
