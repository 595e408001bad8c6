//! The waits between the attempts of a delivery.

use std::time::Duration;

use kernel::Entropy;

/// The waits between attempts: `n` waits make `n + 1` attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    waits: Vec<Duration>,
}

impl Schedule {
    /// Creates a schedule from its waits, in their order.
    #[must_use]
    pub const fn new(waits: Vec<Duration>) -> Self {
        Self { waits }
    }

    /// The wait after this many failed attempts. `None`: the schedule allows no further attempt.
    ///
    /// The wait differs from the scheduled one by up to 10 %, so that deliveries which failed at the
    /// same time are not repeated at the same time.
    #[must_use]
    pub fn wait(&self, failed: u32, entropy: &dyn Entropy) -> Option<Duration> {
        let place = usize::try_from(failed).ok()?.checked_sub(1)?;
        let wait = self.waits.get(place)?;
        Some(wait.saturating_mul(per_mille(entropy)) / 1000)
    }
}

/// A uniformly distributed number from 900 to 1100.
fn per_mille(entropy: &dyn Entropy) -> u32 {
    let mut bytes = [0; 4];
    entropy.fill(&mut bytes);
    900 + u32::from_be_bytes(bytes) % 201
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Always fills with these four bytes.
    struct Draw(u32);
    impl Entropy for Draw {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.copy_from_slice(&self.0.to_be_bytes());
        }
    }

    fn seconds(list: &[u64]) -> Schedule {
        Schedule::new(list.iter().copied().map(Duration::from_secs).collect())
    }

    // rule: webhook.schedule, webhook.jitter
    #[test]
    fn each_wait_stays_within_a_tenth() {
        let schedule = seconds(&[5, 60]);
        for (draw, first, second) in [
            (0, 4_500, 54_000),
            (100, 5_000, 60_000),
            (200, 5_500, 66_000),
        ] {
            let draw = Draw(draw);
            assert_eq!(schedule.wait(1, &draw), Some(Duration::from_millis(first)));
            assert_eq!(schedule.wait(2, &draw), Some(Duration::from_millis(second)));
        }
        assert_eq!(
            schedule.wait(1, &Draw(201)),
            schedule.wait(1, &Draw(0)),
            "the factor repeats after 201 draws"
        );
    }

    // rule: webhook.dead-letter
    #[test]
    fn schedule_of_n_waits_allows_n_plus_one_attempts() {
        let schedule = seconds(&[5, 60]);
        assert_eq!(schedule.wait(3, &Draw(0)), None);
        assert_eq!(schedule.wait(u32::MAX, &Draw(0)), None);
        assert_eq!(seconds(&[]).wait(1, &Draw(0)), None);
    }

    #[test]
    fn longest_wait_does_not_overflow() {
        let schedule = Schedule::new(vec![Duration::MAX]);
        assert!(schedule.wait(1, &Draw(200)).is_some());
    }
}
