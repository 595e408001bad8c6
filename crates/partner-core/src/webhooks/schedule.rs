//! The waits between the attempts of a delivery.

use std::time::{Duration, UNIX_EPOCH};

use kernel::{Entropy, Timestamp};

/// The waits before those of the schedule, after responses that do not know the event's object yet.
const EARLY_WAITS: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];
/// The shortest wait that a response can ask for.
const MIN_RETRY_AFTER: Duration = Duration::from_secs(1);
/// The longest wait that a response can ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60 * 60);

/// What the response of a failed attempt says about the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAdvice {
    /// Nothing, or there was no response.
    Usual,
    /// 409 or 425: the receiver does not know the event's object yet.
    Soon,
    /// 429 or 503 with `Retry-After`: this wait.
    After(Duration),
}

impl RetryAdvice {
    /// The advice of a response with this status and this header `Retry-After`, received at `now`.
    #[must_use]
    pub fn of(status: u16, retry_after: Option<&str>, now: Timestamp) -> Self {
        match status {
            409 | 425 => Self::Soon,
            429 | 503 => retry_after
                .and_then(|value| retry_wait(value, now))
                .map_or(Self::Usual, Self::After),
            _ => Self::Usual,
        }
    }
}

/// Reads `Retry-After`: whole seconds, or an HTTP date. Any other value counts as absent.
fn retry_wait(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let wait = if is_number {
        // More digits than fit are a long wait.
        Duration::from_secs(value.parse().unwrap_or(u64::MAX))
    } else {
        let date = httpdate::parse_http_date(value).ok()?;
        let millis = date.duration_since(UNIX_EPOCH).ok()?.as_millis();
        let date = Timestamp::from_millis(i64::try_from(millis).ok()?)?;
        date.since(now)
    };
    Some(wait.clamp(MIN_RETRY_AFTER, MAX_RETRY_AFTER))
}

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

    /// The wait after this many failed attempts, the last of which had this advice. `None`: the schedule allows no
    /// further attempt.
    ///
    /// The early waits come before the scheduled ones, so a receiver that always responds with 409 gets three attempts
    /// more. The wait differs from the listed one by up to 10 %, so that deliveries which failed at the same time are not
    /// repeated at the same time. A wait that the receiver asks for stays as it is, in place of a wait of at most
    /// [`MAX_RETRY_AFTER`]; a longer one stays, so that no receiver shortens the schedule by much.
    #[must_use]
    pub fn wait(
        &self,
        failed: u32,
        advice: RetryAdvice,
        entropy: &dyn Entropy,
    ) -> Option<Duration> {
        let place = usize::try_from(failed).ok()?.checked_sub(1)?;
        match advice {
            RetryAdvice::Usual => self.waits.get(place).map(|wait| varied(*wait, entropy)),
            RetryAdvice::Soon => {
                let mut waits = EARLY_WAITS.iter().chain(&self.waits);
                waits.nth(place).map(|wait| varied(*wait, entropy))
            }
            // A receiver that asks for a short wait again and again would use up the long ones.
            RetryAdvice::After(wait) => {
                let usual = *self.waits.get(place)?;
                Some(match usual > MAX_RETRY_AFTER {
                    true => varied(usual, entropy),
                    false => wait,
                })
            }
        }
    }
}

/// A wait that differs from this one by up to 10 %.
fn varied(wait: Duration, entropy: &dyn Entropy) -> Duration {
    wait.saturating_mul(per_mille(entropy)) / 1000
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

    const USUAL: RetryAdvice = RetryAdvice::Usual;
    /// Changes no wait.
    const EXACT: Draw = Draw(100);

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
            let waits = [1, 2].map(|failed| schedule.wait(failed, USUAL, &draw));
            let expected = [first, second].map(|wait| Some(Duration::from_millis(wait)));
            assert_eq!(waits, expected);
        }
        assert_eq!(
            schedule.wait(1, USUAL, &Draw(201)),
            schedule.wait(1, USUAL, &Draw(0)),
            "the factor repeats after 201 draws"
        );
    }

    // rule: webhook.dead-letter
    #[test]
    fn schedule_of_n_waits_allows_n_plus_one_attempts() {
        let schedule = seconds(&[5, 60]);
        assert_eq!(schedule.wait(3, USUAL, &Draw(0)), None);
        assert_eq!(schedule.wait(u32::MAX, USUAL, &Draw(0)), None);
        assert_eq!(seconds(&[]).wait(1, USUAL, &Draw(0)), None);
    }

    #[test]
    fn longest_wait_does_not_overflow() {
        let schedule = Schedule::new(vec![Duration::MAX]);
        assert!(schedule.wait(1, USUAL, &Draw(200)).is_some());
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000).unwrap()
    }

    // rule: webhook.not-yet
    #[test]
    fn unknown_object_is_tried_again_before_usual_waits() {
        for status in [409, 425] {
            let advice = RetryAdvice::of(status, Some("3600"), at(0));
            assert_eq!(advice, RetryAdvice::Soon, "{status}");
        }
        let waits: Vec<Option<Duration>> = (1..=6)
            .map(|failed| seconds(&[5, 60]).wait(failed, RetryAdvice::Soon, &EXACT))
            .collect();
        let expected = [1, 2, 4, 5, 60].map(|wait| Some(Duration::from_secs(wait)));
        assert_eq!((&waits[..5], waits[5]), (&expected[..], None));
        let shortest = seconds(&[5, 60]).wait(1, RetryAdvice::Soon, &Draw(0));
        assert_eq!(shortest, Some(Duration::from_millis(900)));
    }

    // rule: webhook.retry-after
    #[test]
    fn retry_after_sets_next_attempt_within_bounds() {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let now = at(784_111_777);
        for (value, expected) in [
            ("0", 1),
            ("1", 1),
            ("7", 7),
            (" 120 ", 120),
            ("3600", 3600),
            ("3601", 3600),
            ("99999999999999999999999", 3600),
            ("Sun, 06 Nov 1994 08:49:36 GMT", 1),
            ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
            ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
            ("Sun Nov  6 08:50:37 1994", 60),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 3600),
        ] {
            for status in [429, 503] {
                let advice = RetryAdvice::of(status, Some(value), now);
                let wait = Duration::from_secs(expected);
                assert_eq!(advice, RetryAdvice::After(wait), "{value}");
                assert_eq!(seconds(&[5]).wait(1, advice, &Draw(0)), Some(wait));
                assert_eq!(seconds(&[5]).wait(2, advice, &Draw(0)), None);
                assert_eq!(seconds(&[3_600]).wait(1, advice, &EXACT), Some(wait));
                let long = Duration::from_secs(7_200);
                assert_eq!(seconds(&[7_200]).wait(1, advice, &EXACT), Some(long));
            }
        }
    }

    // rule: webhook.retry-after
    #[test]
    fn other_retry_after_changes_no_wait() {
        for value in ["", " ", "-1", "1.5", "soon", "5s", "2026-05-25T12:00:00Z"] {
            let advice = RetryAdvice::of(503, Some(value), at(0));
            assert_eq!(advice, USUAL, "{value}");
        }
        assert_eq!(RetryAdvice::of(429, None, at(0)), USUAL);
        for status in [301, 400, 410, 500, 502] {
            assert_eq!(RetryAdvice::of(status, Some("7"), at(0)), USUAL);
        }
    }
}
