//! The life of one delivery of an event to an endpoint.
//!
//! Who delivers holds a lease: nobody else takes the delivery until the lease is over, and what is
//! reported under another token than the lease's changes nothing. So a worker that dies loses
//! nothing, and one that comes back late spoils nothing.

use std::time::Duration;

use kernel::{Entropy, Timestamp};

use super::schedule::Schedule;

/// A worker's hold on a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Proves that whoever reports is still the one who claimed.
    pub token: u64,
    /// From then on another may claim.
    pub until: Timestamp,
}

impl Lease {
    /// How long a lease lasts beyond the time an attempt may take: within this long of asking for
    /// it an attempt is to begin, or never.
    pub const MARGIN: Duration = Duration::from_secs(20);

    /// How long a claim holds, where an attempt may take this long.
    #[must_use]
    pub const fn span(attempt: Duration) -> Duration {
        attempt.saturating_add(Self::MARGIN)
    }
}

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// Waits for its next attempt.
    Pending {
        /// Not before then.
        due: Timestamp,
    },
    /// Somebody is delivering it.
    InFlight(Lease),
    /// The endpoint took it.
    Succeeded {
        /// When that was recorded.
        at: Timestamp,
    },
    /// Every attempt of the schedule has failed.
    DeadLettered,
}

impl DeliveryState {
    /// Every word of [`DeliveryState::as_str`].
    pub const WORDS: [&str; 4] = ["pending", "in_flight", "succeeded", "dead_lettered"];

    /// The word used in rows and answers.
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

/// What a worker says of a delivery it had claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The endpoint answered 2xx.
    Delivered,
    /// The attempt failed; the next one comes after this long.
    RetryAfter(Duration),
    /// The attempt failed, and it was the last of the schedule.
    GivenUp,
    /// No attempt was concluded: the worker is stopping.
    HandedBack,
}

impl AttemptOutcome {
    /// What follows from a failed attempt, where this many had failed before it.
    #[must_use]
    pub fn of_failure(before: u32, schedule: &Schedule, entropy: &dyn Entropy) -> Self {
        schedule
            .wait(before.saturating_add(1), entropy)
            .map_or(Self::GivenUp, Self::RetryAfter)
    }
}

/// What can happen to a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryInput {
    /// A worker wants it.
    Claim(Lease),
    /// Somebody finds that its lease is over.
    Lapse,
    /// A worker reports under its lease's token.
    End(u64, AttemptOutcome),
    /// The partner wants what was given up delivered after all.
    Replay,
}

/// A delivery's state and the attempts that were concluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Where it stands.
    pub state: DeliveryState,
    /// Attempts of which the end is known.
    pub attempts: u32,
}

impl Progress {
    /// Every pair of state and act is decided here; see `docs/state-machines.md`, table delivery.
    /// `None`: the act changes nothing.
    #[must_use]
    pub fn advance(self, act: DeliveryInput, now: Timestamp) -> Option<Self> {
        use {DeliveryInput as A, DeliveryState as S};
        match (self.state, act) {
            (S::Pending { due }, A::Claim(lease)) if due <= now => {
                Some(self.with(S::InFlight(lease)))
            }
            (S::InFlight(held), A::Lapse) if held.until <= now => {
                Some(self.with(S::Pending { due: held.until }))
            }
            (S::InFlight(held), A::End(token, ending)) if held.token == token => {
                Some(self.end(ending, now))
            }
            (S::DeadLettered, A::Replay) => Some(Self {
                state: S::Pending { due: now },
                attempts: 0,
            }),
            (S::Pending { .. }, A::Claim(_) | A::Lapse | A::End(..) | A::Replay)
            | (S::InFlight(_), A::Claim(_) | A::Lapse | A::End(..) | A::Replay)
            | (S::Succeeded { .. }, A::Claim(_) | A::Lapse | A::End(..) | A::Replay)
            | (S::DeadLettered, A::Claim(_) | A::Lapse | A::End(..)) => None,
        }
    }

    fn end(self, ending: AttemptOutcome, now: Timestamp) -> Self {
        let state = match ending {
            AttemptOutcome::Delivered => DeliveryState::Succeeded { at: now },
            AttemptOutcome::RetryAfter(wait) => DeliveryState::Pending {
                due: now.plus(wait),
            },
            AttemptOutcome::GivenUp => DeliveryState::DeadLettered,
            AttemptOutcome::HandedBack => return self.with(DeliveryState::Pending { due: now }),
        };
        let attempts = self.attempts.saturating_add(1);
        Self { state, attempts }
    }

    const fn with(self, state: DeliveryState) -> Self {
        Self {
            state,
            attempts: self.attempts,
        }
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
    fn states() -> [(&'static str, DeliveryState); 6] {
        [
            ("pending, due", DeliveryState::Pending { due: at(100) }),
            ("pending, later", DeliveryState::Pending { due: at(101) }),
            ("in flight", DeliveryState::InFlight(lease(7, 101))),
            (
                "in flight, lease over",
                DeliveryState::InFlight(lease(7, 100)),
            ),
            ("succeeded", DeliveryState::Succeeded { at: at(50) }),
            ("dead lettered", DeliveryState::DeadLettered),
        ]
    }

    fn acts() -> [(&'static str, DeliveryInput); 9] {
        let wait = Duration::from_secs(5);
        [
            ("claim", DeliveryInput::Claim(lease(8, 130))),
            ("lapse", DeliveryInput::Lapse),
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
            (
                "handed back",
                DeliveryInput::End(7, AttemptOutcome::HandedBack),
            ),
            (
                "delivered, another token",
                DeliveryInput::End(9, AttemptOutcome::Delivered),
            ),
            (
                "failed, another token",
                DeliveryInput::End(9, AttemptOutcome::GivenUp),
            ),
            ("replay", DeliveryInput::Replay),
        ]
    }

    fn shown(after: Option<Progress>) -> [String; 2] {
        let Some(after) = after else {
            return ["stays".to_owned(), String::new()];
        };
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
            0 => "counted from nothing",
            3 => "",
            _ => "counted",
        };
        [state, counted.to_owned()]
    }

    // rule: webhook.lease, webhook.one-holder, webhook.dead-letter, webhook.hand-back, webhook.replay
    #[test]
    fn every_act_in_every_state() {
        let mut lines = vec![
            "| state | what happens | next | attempt |".to_owned(),
            "| --- | --- | --- | --- |".to_owned(),
        ];
        for (state_name, state) in states() {
            for (act_name, act) in acts() {
                let before = Progress { state, attempts: 3 };
                let [next, counted] = shown(before.advance(act, at(100)));
                lines.push(format!(
                    "| {state_name} | {act_name} | {next} | {counted} |"
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
    fn a_failure_is_tried_again_until_the_schedule_ends() {
        let schedule = Schedule::new(vec![Duration::from_secs(10), Duration::from_secs(60)]);
        let ends: Vec<AttemptOutcome> = (0..4)
            .map(|before| AttemptOutcome::of_failure(before, &schedule, &Nothing))
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
    fn a_lease_outlasts_an_attempt_by_twenty_seconds() {
        let attempt = Duration::from_secs(10);
        assert_eq!(Lease::span(attempt), Duration::from_secs(30));
        assert_eq!(Lease::span(Duration::MAX), Duration::MAX);
    }

    /// Acts of two workers and of the clock, in any order.
    fn act() -> impl Strategy<Value = (DeliveryInput, u8)> {
        let ending = prop_oneof![
            4 => (0..20_u64).prop_map(|wait| AttemptOutcome::RetryAfter(Duration::from_secs(wait))),
            1 => Just(AttemptOutcome::Delivered),
            1 => Just(AttemptOutcome::GivenUp),
            2 => Just(AttemptOutcome::HandedBack),
        ];
        let act = prop_oneof![
            (0..2_u64).prop_map(|token| DeliveryInput::Claim(lease(token, 0))),
            Just(DeliveryInput::Lapse),
            Just(DeliveryInput::Replay),
            (0..2_u64, ending).prop_map(|(token, ending)| DeliveryInput::End(token, ending)),
        ];
        (act, 0..10_u8)
    }

    proptest! {
        // rule: webhook.lease, webhook.one-holder, webhook.dead-letter, webhook.hand-back, webhook.replay
        #[test]
        fn any_history_has_one_holder_and_one_end(acts in prop::collection::vec(act(), 1..100)) {
            let mut now = 0;
            let mut progress = Progress { state: DeliveryState::Pending { due: at(0) }, attempts: 0 };
            for (act, passed) in acts {
                now += i64::from(passed);
                let act = match act {
                    DeliveryInput::Claim(held) => DeliveryInput::Claim(lease(held.token, now + 5)),
                    other => other,
                };
                let Some(next) = progress.advance(act, at(now)) else { continue };
                let concluded = matches!(act, DeliveryInput::End(_, ending) if ending != AttemptOutcome::HandedBack);
                let attempts = if act == DeliveryInput::Replay { 0 } else { progress.attempts + u32::from(concluded) };
                prop_assert_eq!(next.attempts, attempts);
                match progress.state {
                    DeliveryState::Pending { due } => prop_assert!(matches!(act, DeliveryInput::Claim(_)) && due <= at(now)),
                    DeliveryState::InFlight(held) => match act {
                        DeliveryInput::End(token, _) => prop_assert_eq!(token, held.token),
                        DeliveryInput::Lapse => prop_assert!(held.until <= at(now)),
                        DeliveryInput::Claim(_) | DeliveryInput::Replay => prop_assert!(false, "taken from its holder"),
                    },
                    DeliveryState::DeadLettered => prop_assert_eq!(act, DeliveryInput::Replay),
                    DeliveryState::Succeeded { .. } => prop_assert!(false, "an end that goes on"),
                }
                progress = next;
            }
        }
    }
}
