//! Plausibility of a store's clock, compared with the elapsed time of a monotonic clock.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kernel::Timestamp;

/// Maximum lead of a store's clock over the expected time. The watch refuses a later instant.
pub const LARGEST_JUMP: Duration = Duration::from_secs(5 * 60);
/// Interval after which the comparison restarts, so that clocks with slightly different rates do not drift apart.
const REBASE_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// A jump of a store's clock that the operator has not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockJump {
    /// The instant that follows from the elapsed time.
    pub expected: Timestamp,
    /// The instant that the clock returned.
    pub found: Timestamp,
}

impl ClockJump {
    /// The length of the jump.
    #[must_use]
    pub fn span(&self) -> Duration {
        self.found.since(self.expected)
    }
}

/// Compares a store's clock with a monotonic clock since the start of the process.
///
/// A single write with a wrong instant would be permanent, because no later write may have an earlier instant.
#[derive(Debug)]
pub struct ClockWatch(Mutex<Line>);

#[derive(Debug)]
struct Line {
    /// The clock returned `at` when the monotonic clock returned `elapsed`.
    at: Timestamp,
    elapsed: Duration,
    /// The jump that is currently refused.
    jump: Option<ClockJump>,
}

impl Line {
    fn expected(&self, elapsed: Duration) -> Timestamp {
        self.at.plus(elapsed.saturating_sub(self.elapsed))
    }
}

impl ClockWatch {
    /// Starts at the clock's instant. A recorded jump that the operator has not accepted stays refused while the
    /// clock is still ahead.
    #[must_use]
    pub fn start(at: Timestamp, elapsed: Duration, noted: Option<ClockJump>) -> Self {
        let refused = noted.filter(|jump| at >= jump.found);
        let at = refused.map_or(at, |jump| at.minus(jump.span()));
        Self(Mutex::new(Line {
            at,
            elapsed,
            jump: refused,
        }))
    }

    /// Continues from an instant that another process has stored, because that process has accepted the clock. After
    /// a suspension, the machine's monotonic clock lags.
    pub fn learn(&self, stored: Timestamp, elapsed: Duration) {
        let mut line = self.lock();
        if stored > line.expected(elapsed) {
            (line.at, line.elapsed) = (stored, elapsed);
        }
    }

    /// The latest plausible instant. An instant up to `last`, the last one used, does no further harm.
    #[must_use]
    pub fn latest(&self, elapsed: Duration, last: Timestamp) -> Timestamp {
        let expected = self.expected(elapsed);
        expected.plus(LARGEST_JUMP).max(last)
    }

    /// The instant that follows from the elapsed time.
    #[must_use]
    pub fn expected(&self, elapsed: Duration) -> Timestamp {
        self.lock().expected(elapsed)
    }

    /// Checks the clock's instant.
    ///
    /// # Errors
    /// The jump, if the instant is later than [`Self::latest`].
    pub fn judge(
        &self,
        at: Timestamp,
        elapsed: Duration,
        last: Timestamp,
    ) -> Result<(), ClockJump> {
        let latest = self.latest(elapsed, last);
        let mut line = self.lock();
        if at > latest {
            let jump = ClockJump {
                expected: line.expected(elapsed),
                found: at,
            };
            line.jump.get_or_insert(jump);
            return Err(jump);
        }
        line.jump = None;
        if elapsed.saturating_sub(line.elapsed) >= REBASE_INTERVAL {
            (line.at, line.elapsed) = (at, elapsed);
        }
        Ok(())
    }

    /// The jump that is currently refused, with the figures of its detection.
    #[must_use]
    pub fn jump(&self) -> Option<ClockJump> {
        self.lock().jump
    }

    /// Trusts the clock again, because the operator accepted every instant up to `until`. A later jump stays refused.
    pub fn accept(&self, until: Timestamp, at: Timestamp, elapsed: Duration) {
        let mut line = self.lock();
        if line.jump.is_some_and(|jump| jump.found <= until) {
            *line = Line {
                at,
                elapsed,
                jump: None,
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn noon() -> Timestamp {
        Timestamp::from_millis(1_780_000_000_000).unwrap()
    }

    fn watch() -> ClockWatch {
        ClockWatch::start(noon(), MINUTE, None)
    }

    // rule: base.clock-jump
    #[test]
    fn jump_of_more_than_five_minutes_is_refused_until_accepted() {
        let (watch, later) = (watch(), MINUTE * 2);
        let most = noon().plus(MINUTE + LARGEST_JUMP);
        assert_eq!(watch.judge(most, later, noon()), Ok(()));
        let found = most.plus(Duration::from_millis(1));
        let jump = watch.judge(found, later, noon()).unwrap_err();
        assert_eq!(jump.expected, noon().plus(MINUTE));
        assert_eq!(watch.jump(), Some(jump));
        watch.accept(most, found, later);
        assert!(
            watch.judge(found, later, noon()).is_err(),
            "an earlier jump was accepted"
        );
        watch.accept(found, found, later);
        assert_eq!(
            (watch.judge(found, later, noon()), watch.jump()),
            (Ok(()), None)
        );
    }

    // rule: base.clock-jump
    #[test]
    fn corrected_clock_is_trusted_again() {
        let watch = watch();
        assert!(watch.judge(noon().plus(DAY), MINUTE, noon()).is_err());
        assert_eq!(watch.judge(noon(), MINUTE, noon()), Ok(()));
        assert_eq!(watch.jump(), None);
    }

    #[test]
    fn instant_used_before_is_trusted() {
        let (watch, used) = (watch(), noon().plus(DAY));
        assert_eq!(watch.judge(used, MINUTE, used), Ok(()));
    }

    // rule: base.clock-jump
    #[test]
    fn suspended_machine_learns_from_stored_instants() {
        let watch = watch();
        let now = noon().plus(DAY);
        assert!(watch.judge(now, MINUTE, noon()).is_err());
        watch.learn(now.minus(MINUTE), MINUTE);
        assert_eq!(
            (watch.judge(now, MINUTE, noon()), watch.jump()),
            (Ok(()), None)
        );
        watch.learn(noon(), MINUTE);
        assert_eq!(
            watch.judge(now, MINUTE, noon()),
            Ok(()),
            "it never goes back"
        );
    }

    #[test]
    fn clocks_of_different_rates_never_drift_apart() {
        let watch = watch();
        for hour in 1..100 {
            let passed = Duration::from_secs(3600) * hour;
            let at = noon().plus(passed + MINUTE * 4 * hour);
            assert_eq!(
                watch.judge(at, MINUTE + passed, noon()),
                Ok(()),
                "hour {hour}"
            );
        }
    }

    #[test]
    fn small_steps_add_up_to_a_jump() {
        let watch = watch();
        let refused = (1..10).find(|step| {
            let at = noon().plus(MINUTE * 4 * *step);
            watch.judge(at, MINUTE, noon()).is_err()
        });
        assert_eq!(refused, Some(2));
    }

    // rule: base.clock-jump
    #[test]
    fn restart_does_not_accept_a_jump() {
        let found = noon().plus(DAY);
        let expected = noon();
        let noted = Some(ClockJump { expected, found });
        let later = found.plus(MINUTE);
        let watch = ClockWatch::start(later, MINUTE, noted);
        assert!(watch.judge(later, MINUTE, noon()).is_err());
        assert_eq!(watch.expected(MINUTE), noon().plus(MINUTE));
        let corrected = ClockWatch::start(noon(), MINUTE, noted);
        assert_eq!(corrected.judge(noon(), MINUTE, noon()), Ok(()));
    }
}
