//! The states of one delivery of an event to an endpoint.
//!
//! The worker that claims a delivery holds a lease. No other worker claims the delivery until the
//! lease expires, and an outcome reported under another token changes nothing. So a worker that
//! dies loses no delivery, and a worker that reports late overwrites no newer state.
//!
//! A hastened delivery is due before the instant of its schedule. If this attempt fails, it counts as
//! no attempt, and the delivery waits for that instant again.

use std::time::Duration;

use kernel::{Entropy, Timestamp};

use super::schedule::{RetryAdvice, Schedule};

/// An endpoint was down if one of its deliveries failed and was created longer ago than this.
pub const MIN_OUTAGE: Duration = Duration::from_secs(60);

/// The lease of a worker on a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Proves that the worker that reports an outcome still holds the lease.
    pub token: u64,
    /// The expiry: from then on another worker may claim the delivery.
    pub until: Timestamp,
}

impl Lease {
    /// How much longer a lease lasts than an attempt may take. An attempt starts within this time of
    /// the request for its lease, or not at all.
    pub const MARGIN: Duration = Duration::from_secs(20);

    /// The duration of a lease for attempts with this timeout.
    #[must_use]
    pub const fn duration(attempt: Duration) -> Duration {
        attempt.saturating_add(Self::MARGIN)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// It waits for its next attempt.
    Pending {
        /// The earliest instant of the attempt.
        due: Timestamp,
    },
    /// A worker is delivering it.
    InFlight(Lease),
    /// The endpoint accepted it.
    Succeeded {
        /// The instant when the outcome was recorded.
        at: Timestamp,
    },
    /// Every attempt of the schedule has failed.
    DeadLettered,
}

impl DeliveryState {
    /// Every word of [`DeliveryState::as_str`].
    pub const WORDS: [&str; 4] = ["pending", "in_flight", "succeeded", "dead_lettered"];

    /// The word used in rows and responses.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::InFlight(_) => "in_flight",
            Self::Succeeded { .. } => "succeeded",
            Self::DeadLettered => "dead_lettered",
        }
    }
}

/// The outcome that a worker reports for a delivery it claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The endpoint responded with 2xx.
    Delivered,
    /// The attempt failed. The next one follows after this wait.
    RetryAfter(Duration),
    /// The last attempt of the schedule failed.
    GivenUp,
    /// The worker stops, and no attempt was completed.
    Released,
}

impl AttemptOutcome {
    /// The outcome of a failed attempt with this advice, after `before` earlier failures.
    #[must_use]
    pub fn of_failure(
        before: u32,
        advice: RetryAdvice,
        schedule: &Schedule,
        entropy: &dyn Entropy,
    ) -> Self {
        schedule
            .wait(before.saturating_add(1), advice, entropy)
            .map_or(Self::GivenUp, Self::RetryAfter)
    }
}

/// An input to the state machine of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryInput {
    /// A worker claims it.
    Claim(Lease),
    /// A claim finds its lease expired.
    LeaseExpired,
    /// A worker reports an outcome under the token of its lease.
    End(u64, AttemptOutcome),
    /// The partner replays a dead-lettered delivery.
    Replay,
    /// Its endpoint accepts deliveries again, so it is not left to wait.
    Hasten,
}

/// The state of a delivery and the number of its completed attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub state: DeliveryState,
    /// The attempts with a known outcome.
    pub attempts: u32,
    /// The scheduled instant of the next attempt, if the delivery was hastened.
    pub former: Option<Timestamp>,
}

impl Progress {
    /// The progress of a delivery that is not hastened.
    #[must_use]
    pub const fn new(state: DeliveryState, attempts: u32) -> Self {
        Self {
            state,
            attempts,
            former: None,
        }
    }

    /// Applies an input to the state; see `docs/state-machines.md`, table delivery. `None`: the
    /// input changes nothing.
    #[must_use]
    pub fn advance(self, input: DeliveryInput, now: Timestamp) -> Option<Self> {
        use {DeliveryInput as I, DeliveryState as S};
        match (self.state, input) {
            (S::Pending { due }, I::Claim(lease)) if due <= now => {
                Some(self.with(S::InFlight(lease)))
            }
            (S::InFlight(held), I::LeaseExpired) if held.until <= now => {
                Some(self.with(S::Pending { due: held.until }))
            }
            (S::InFlight(held), I::End(token, outcome)) if held.token == token => {
                Some(self.end(outcome, now))
            }
            (S::DeadLettered, I::Replay) => Some(Self::new(S::Pending { due: now }, 0)),
            (S::Pending { due }, I::Hasten) if due > now => Some(Self {
                state: S::Pending { due: now },
                former: self.former.or(Some(due)),
                ..self
            }),
            (
                S::Pending { .. } | S::InFlight(_) | S::Succeeded { .. },
                I::Claim(_) | I::LeaseExpired | I::End(..) | I::Replay | I::Hasten,
            )
            | (S::DeadLettered, I::Claim(_) | I::LeaseExpired | I::End(..) | I::Hasten) => None,
        }
    }

    fn end(self, outcome: AttemptOutcome, now: Timestamp) -> Self {
        use {AttemptOutcome as O, DeliveryState as S};
        let state = match (outcome, self.former) {
            (O::Delivered, _) => S::Succeeded { at: now },
            (O::Released, _) => return self.with(S::Pending { due: now }),
            (O::RetryAfter(_) | O::GivenUp, Some(due)) => {
                return Self::new(S::Pending { due }, self.attempts);
            }
            (O::RetryAfter(wait), None) => S::Pending {
                due: now.plus(wait),
            },
            (O::GivenUp, None) => S::DeadLettered,
        };
        Self::new(state, self.attempts.saturating_add(1))
    }

    const fn with(self, state: DeliveryState) -> Self {
        Self { state, ..self }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DOC: &str = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/state-machines.md"
    ));

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000).unwrap()
    }

    fn lease(token: u64, until: i64) -> Lease {
        Lease {
            token,
            until: at(until),
        }
    }

    /// Every state as of second 100, with its name in the table.
    fn states() -> [(&'static str, Progress); 8] {
        let due = DeliveryState::Pending { due: at(100) };
        let later = DeliveryState::Pending { due: at(101) };
        let in_flight = DeliveryState::InFlight(lease(7, 101));
        let expired = DeliveryState::InFlight(lease(7, 100));
        let succeeded = DeliveryState::Succeeded { at: at(50) };
        let plain = |state| Progress::new(state, 3);
        let hastened = |state| Progress {
            former: Some(at(107)),
            ..plain(state)
        };
        [
            ("pending, due", plain(due)),
            ("pending, later", plain(later)),
            ("pending, hastened", hastened(due)),
            ("in flight", plain(in_flight)),
            ("in flight, lease expired", plain(expired)),
            ("in flight, hastened", hastened(in_flight)),
            ("succeeded", plain(succeeded)),
            ("dead lettered", plain(DeliveryState::DeadLettered)),
        ]
    }

    fn inputs() -> [(&'static str, DeliveryInput); 10] {
        let wait = Duration::from_secs(5);
        [
            ("claim", DeliveryInput::Claim(lease(8, 130))),
            ("lease expired", DeliveryInput::LeaseExpired),
            (
                "delivered",
                DeliveryInput::End(7, AttemptOutcome::Delivered),
            ),
            (
                "failed",
                DeliveryInput::End(7, AttemptOutcome::RetryAfter(wait)),
            ),
            (
                "failed, the last",
                DeliveryInput::End(7, AttemptOutcome::GivenUp),
            ),
            ("released", DeliveryInput::End(7, AttemptOutcome::Released)),
            (
                "delivered, another token",
                DeliveryInput::End(9, AttemptOutcome::Delivered),
            ),
            (
                "failed, another token",
                DeliveryInput::End(9, AttemptOutcome::GivenUp),
            ),
            ("replay", DeliveryInput::Replay),
            ("hasten", DeliveryInput::Hasten),
        ]
    }

    fn shown(after: Option<Progress>) -> [String; 2] {
        let Some(after) = after else {
            return ["stays".to_owned(), String::new()];
        };
        let former = after.former.map_or_else(String::new, |former| {
            format!(", formerly {:+} s", former.seconds() - 100)
        });
        let state = match after.state {
            DeliveryState::Pending { due } => {
                format!("pending, due {:+} s", due.seconds() - 100)
            }
            DeliveryState::InFlight(held) => {
                format!("in flight until {:+} s", held.until.seconds() - 100)
            }
            DeliveryState::Succeeded { at } => format!("succeeded {:+} s", at.seconds() - 100),
            DeliveryState::DeadLettered => "dead lettered".to_owned(),
        };
        let counted = match after.attempts {
            0 => "counted from 0",
            3 => "",
            _ => "counted",
        };
        [state + &former, counted.to_owned()]
    }

    // rule: webhook.lease, webhook.one-holder, webhook.dead-letter, webhook.hand-back, webhook.replay, webhook.drain
    #[test]
    fn delivery_advances_as_its_table_says() {
        let mut lines = vec![
            "| state | input | next state | attempt |".to_owned(),
            "| --- | --- | --- | --- |".to_owned(),
        ];
        for (state_name, before) in states() {
            for (input_name, input) in inputs() {
                let [next, counted] = shown(before.advance(input, at(100)));
                lines.push(format!(
                    "| {state_name} | {input_name} | {next} | {counted} |"
                ));
            }
        }
        let table = lines.join("\n").replace("|  |", "| |");
        insta::assert_snapshot!("delivery", table);
        let (_, rest) = DOC.split_once("<!-- table: delivery -->\n").unwrap();
        let documented = rest.split_once("<!-- end -->").unwrap().0.trim();
        assert!(
            documented == table,
            "docs/state-machines.md, table delivery, is stale; it should read\n\n{table}\n"
        );
    }

    struct Nothing;
    impl Entropy for Nothing {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(0);
        }
    }

    // rule: webhook.schedule, webhook.dead-letter
    #[test]
    fn failed_delivery_is_repeated_until_schedule_ends() {
        let schedule = Schedule::new(vec![Duration::from_secs(10), Duration::from_secs(60)]);
        let ends: Vec<AttemptOutcome> = (0..4)
            .map(|before| {
                AttemptOutcome::of_failure(before, RetryAdvice::Usual, &schedule, &Nothing)
            })
            .collect();
        assert_eq!(
            ends,
            [
                AttemptOutcome::RetryAfter(Duration::from_secs(9)),
                AttemptOutcome::RetryAfter(Duration::from_secs(54)),
                AttemptOutcome::GivenUp,
                AttemptOutcome::GivenUp,
            ]
        );
    }

    #[test]
    fn lease_outlasts_attempt_by_twenty_seconds() {
        let attempt = Duration::from_secs(10);
        assert_eq!(Lease::duration(attempt), Duration::from_secs(30));
        assert_eq!(Lease::duration(Duration::MAX), Duration::MAX);
    }

    /// Inputs of two workers and of the clock, in any order.
    fn input() -> impl Strategy<Value = (DeliveryInput, u8)> {
        let outcome = prop_oneof![
            4 => (0..20_u64).prop_map(|wait| AttemptOutcome::RetryAfter(Duration::from_secs(wait))),
            1 => Just(AttemptOutcome::Delivered),
            1 => Just(AttemptOutcome::GivenUp),
            2 => Just(AttemptOutcome::Released),
        ];
        let input = prop_oneof![
            (0..2_u64).prop_map(|token| DeliveryInput::Claim(lease(token, 0))),
            Just(DeliveryInput::LeaseExpired),
            Just(DeliveryInput::Replay),
            Just(DeliveryInput::Hasten),
            (0..2_u64, outcome).prop_map(|(token, outcome)| DeliveryInput::End(token, outcome)),
        ];
        (input, 0..10_u8)
    }

    proptest! {
        // rule: webhook.lease, webhook.one-holder, webhook.dead-letter, webhook.hand-back, webhook.replay, webhook.drain
        #[test]
        fn delivery_has_one_holder_and_one_end_in_any_history(inputs in prop::collection::vec(input(), 1..100)) {
            let mut now = 0;
            let mut progress = Progress::new(DeliveryState::Pending { due: at(0) }, 0);
            for (input, passed) in inputs {
                now += i64::from(passed);
                let input = match input {
                    DeliveryInput::Claim(held) => DeliveryInput::Claim(lease(held.token, now + 5)),
                    other => other,
                };
                let Some(next) = progress.advance(input, at(now)) else { continue };
                let has_failed = matches!(input, DeliveryInput::End(_, AttemptOutcome::RetryAfter(_) | AttemptOutcome::GivenUp));
                let is_counted = match input {
                    DeliveryInput::End(_, AttemptOutcome::Delivered) => true,
                    _ => has_failed && progress.former.is_none(),
                };
                let attempts = if input == DeliveryInput::Replay { 0 } else { progress.attempts + u32::from(is_counted) };
                prop_assert_eq!(next.attempts, attempts);
                if let Some(due) = progress.former && has_failed {
                    prop_assert_eq!(next, Progress::new(DeliveryState::Pending { due }, attempts));
                }
                match progress.state {
                    DeliveryState::Pending { due } if input == DeliveryInput::Hasten => {
                        prop_assert!(at(now) < due && next.former.is_some());
                        prop_assert_eq!(next.state, DeliveryState::Pending { due: at(now) });
                    }
                    DeliveryState::Pending { due } => prop_assert!(matches!(input, DeliveryInput::Claim(_)) && due <= at(now)),
                    DeliveryState::InFlight(held) => match input {
                        DeliveryInput::End(token, _) => prop_assert_eq!(token, held.token),
                        DeliveryInput::LeaseExpired => prop_assert!(held.until <= at(now)),
                        DeliveryInput::Claim(_) | DeliveryInput::Replay | DeliveryInput::Hasten => prop_assert!(false, "another worker took the delivery from the holder of its lease"),
                    },
                    DeliveryState::DeadLettered => prop_assert_eq!(input, DeliveryInput::Replay),
                    DeliveryState::Succeeded { .. } => prop_assert!(false, "a succeeded delivery changed its state"),
                }
                progress = next;
            }
        }
    }
}
