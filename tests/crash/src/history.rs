//! What the clients did: every operation with its beginning, its end and what became of it.
//!
//! An operation begins before its first byte is sent and ends after the last one is read. Its outcome is
//! `Ok`, `Fail` (surely without effect), or `Info`: nobody knows. A client whose operation is `Info` goes on
//! under another number.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::http::{Answer, Lost};
use crate::races::{self, Race};

/// Of the operations on one object, at least so many per cent meet another one there.
const LEAST_OVERLAP: u64 = 30;
/// Operations without a known outcome.
const INFO_PER_MILLE: std::ops::RangeInclusive<u64> = 10..=200;
/// Every refusal and every race that is wanted, at least so often.
const LEAST_TIMES: u64 = 10;
/// No answer takes longer: the longest deadline of a request, the store's five seconds, and one more.
pub(crate) const ANSWERED_WITHIN: Duration = Duration::from_secs(6);

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Quote,
    Transact,
    Reject,
    Poll,
    ReadQuote,
    ReadTrade,
    ReadBooks,
    /// The operator credits.
    Credit,
    /// A session is created.
    Create,
    Cancel,
    Complete,
    /// A payment of a session fails, which leaves it open.
    Fail,
    ReadSession,
    /// A browser shows a session's secret.
    Bootstrap,
    ReadList,
    Rebrand,
    ReadBranding,
    /// A partner sends itself an event.
    SendTest,
    Replay,
    /// A customer is made.
    Enrol,
    /// One changes.
    Rename,
    /// One is deleted.
    Dismiss,
    ReadCustomer,
    /// An order is previewed.
    Preview,
    /// A session is created with a locked preview.
    UsePreview,
    /// A signed quote is given.
    Lock,
    /// A pay-in or a pay-out redeems one.
    Redeem,
    ReadRail,
    /// A request that is wrong in itself.
    Refused,
}

impl Kind {
    /// What an answer tells of its object.
    pub(crate) fn sees(self, answer: &Answer) -> Option<String> {
        let seen = match self {
            Self::Transact => answer.text("transactId"),
            Self::Create | Self::Cancel | Self::Complete | Self::Fail | Self::Rebrand => {
                Some(answer.digest())
            }
            Self::Enrol | Self::Rename | Self::Dismiss => Some(answer.digest()),
            Self::UsePreview | Self::Lock | Self::Redeem => Some(answer.digest()),
            Self::ReadCustomer => answer.text("first_name"),
            Self::Bootstrap => Some("open".to_owned()),
            Self::ReadBranding => answer.text("brand_name"),
            _ => answer.text("status"),
        };
        seen.filter(|_| answer.status < 300)
    }
}

/// What histories of a service have to show to count: refusals that its clients can meet while it is healthy, and races.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) refusals: &'static [(u16, &'static str)],
    pub(crate) races: &'static [Race],
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Ok,
    Fail,
    Info,
}

impl Outcome {
    pub(crate) fn of(answer: &Result<Answer, Lost>) -> Self {
        match answer {
            Err(_) => Self::Info,
            Ok(answer) => match (answer.status, answer.code().as_str()) {
                (200..=299, _) => Self::Ok,
                (409, "idempotency_in_progress" | "quote_in_progress") => Self::Info,
                (400..=409 | 429 | 501, _) => Self::Fail,
                _ => Self::Info,
            },
        }
    }
}

/// One operation.
#[derive(Debug, Clone)]
pub(crate) struct Op {
    pub(crate) client: u64,
    pub(crate) kind: Kind,
    /// Whose it is.
    pub(crate) partner: String,
    /// What it is about, where it is about one thing.
    pub(crate) object: Option<String>,
    /// The key it was sent under.
    pub(crate) key: Option<String>,
    /// What else it is about, where it is about two things.
    pub(crate) with: Option<String>,
    pub(crate) invoked: Duration,
    pub(crate) completed: Duration,
    pub(crate) outcome: Outcome,
    /// Status and code, where there was an answer.
    pub(crate) said: Option<(u16, String)>,
    /// The trade that an execution was told, or the status that was read.
    pub(crate) seen: Option<String>,
    /// Was it said to have happened before?
    pub(crate) repeated: bool,
}

impl Op {
    pub(crate) fn took(&self) -> Duration {
        self.completed.saturating_sub(self.invoked)
    }

    /// One line of a kept history.
    pub(crate) fn line(&self) -> String {
        let millis = |at: Duration| at.as_micros() as u64;
        serde_json::json!({
            "client": self.client,
            "operation": format!("{:?}", self.kind),
            "partner": self.partner,
            "object": self.object,
            "key": self.key,
            "with": self.with,
            "invoked_us": millis(self.invoked),
            "completed_us": millis(self.completed),
            "outcome": format!("{:?}", self.outcome),
            "status": self.said.as_ref().map(|(status, _)| status),
            "code": self.said.as_ref().map(|(_, code)| code),
            "seen": self.seen,
            "repeated": self.repeated,
        })
        .to_string()
    }
}

/// What a history has to show to count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gates {
    pub(crate) ops: u64,
    pub(crate) about_objects: u64,
    pub(crate) overlapping: u64,
    pub(crate) info: u64,
    /// Status and code to how often.
    pub(crate) codes: BTreeMap<(u16, String), u64>,
    pub(crate) races: BTreeMap<Race, u64>,
    pub(crate) slowest: Duration,
    /// The history of the last run of clients.
    pub(crate) last: Vec<Op>,
}

impl Gates {
    pub(crate) fn add(&mut self, ops: Vec<Op>) {
        self.count(&ops);
        self.last = ops;
    }

    fn count(&mut self, ops: &[Op]) {
        let mut by_object: BTreeMap<&str, Vec<(Duration, Duration)>> = BTreeMap::new();
        for op in ops {
            self.ops += 1;
            self.info += u64::from(op.outcome == Outcome::Info);
            if let Some(said) = &op.said {
                *self.codes.entry(said.clone()).or_default() += 1;
                self.slowest = self.slowest.max(op.took());
            }
            if let Some(object) = &op.object {
                let span = (op.invoked, op.completed);
                by_object.entry(object).or_default().push(span);
            }
        }
        races::count(ops, &mut self.races);
        for spans in by_object.values_mut() {
            self.about_objects += spans.len() as u64;
            self.overlapping += overlapping(spans);
        }
    }

    /// Per cent of the operations on one object that met another there.
    pub(crate) fn overlap(&self) -> u64 {
        share(self.overlapping, self.about_objects)
    }

    pub(crate) fn info_per_mille(&self) -> u64 {
        (self.info * 1000).checked_div(self.ops).unwrap_or_default()
    }

    /// Does the history count: operations that meet, some without an end, and every refusal seen often enough?
    pub(crate) fn unmet(&self, wanted: Wanted) -> Vec<String> {
        let mut unmet = Vec::new();
        if self.overlap() < LEAST_OVERLAP {
            unmet.push(format!(
                "only {} % of the operations meet another",
                self.overlap()
            ));
        }
        if !INFO_PER_MILLE.contains(&self.info_per_mille()) {
            unmet.push(format!(
                "{} ‰ of the operations have no known outcome",
                self.info_per_mille()
            ));
        }
        for (status, code) in wanted.refusals {
            let place = (*status, (*code).to_owned());
            let times = self.codes.get(&place).copied().unwrap_or_default();
            if times < LEAST_TIMES {
                unmet.push(format!("{status} {code} was seen {times} times only"));
            }
        }
        for race in wanted.races {
            let times = self.races.get(race).copied().unwrap_or_default();
            if times < LEAST_TIMES {
                unmet.push(format!("{race} met {times} times only"));
            }
        }
        unmet
    }
}

impl Gates {
    /// An answer that came after every deadline had passed.
    pub(crate) fn too_slow(&self) -> Vec<String> {
        let slow = Some(self.slowest).filter(|slowest| *slowest > ANSWERED_WITHIN);
        slow.map(|slowest| format!("an answer took {} ms", slowest.as_millis()))
            .into_iter()
            .collect()
    }
}

impl fmt::Display for Gates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = [
            ("operations", self.ops),
            ("  % that meet another on their object", self.overlap()),
            ("  ‰ without a known outcome", self.info_per_mille()),
            ("slowest answer, ms", self.slowest.as_millis() as u64),
        ];
        for (what, figure) in lines {
            writeln!(f, "{what:<38}{figure:>8}")?;
        }
        for ((status, code), times) in &self.codes {
            writeln!(f, "  {:<36}{times:>8}", format!("{status} {code}"))?;
        }
        for (race, times) in &self.races {
            writeln!(f, "  {:<36}{times:>8}", race.to_string())?;
        }
        Ok(())
    }
}

fn share(part: u64, whole: u64) -> u64 {
    (part * 100).checked_div(whole).unwrap_or_default()
}

/// How many of the spans meet another one.
fn overlapping(spans: &mut [(Duration, Duration)]) -> u64 {
    spans.sort_unstable();
    let mut met = 0;
    let mut latest = Duration::ZERO;
    for (place, (from, to)) in spans.iter().enumerate() {
        let before = place > 0 && *from < latest;
        let after = spans.get(place + 1).is_some_and(|(next, _)| next < to);
        met += u64::from(before || after);
        latest = latest.max(*to);
    }
    met
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_meet_are_counted() {
        let at = Duration::from_millis;
        let mut spans = [
            (at(0), at(10)),
            (at(5), at(6)),
            (at(20), at(30)),
            (at(10), at(12)),
        ];
        assert_eq!(overlapping(&mut spans), 2);
    }

    #[test]
    fn only_a_final_refusal_is_without_effect() {
        let of = |status: u16, code: &str| {
            let body = format!("{{\"code\":\"{code}\"}}").into_bytes();
            Outcome::of(&Ok(Answer {
                status,
                body,
                ..Answer::default()
            }))
        };
        assert_eq!(of(200, ""), Outcome::Ok);
        assert_eq!(of(409, "quote_expired"), Outcome::Fail);
        assert_eq!(of(409, "idempotency_in_progress"), Outcome::Info);
        assert_eq!(of(503, "outcome_unknown"), Outcome::Info);
        assert_eq!(of(500, "server_error"), Outcome::Info);
        assert_eq!(Outcome::of(&Err(Lost::Unknown)), Outcome::Info);
    }
}
