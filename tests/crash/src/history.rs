//! The history of the clients: every operation with its start, its end and its outcome.
//!
//! An operation starts before its first byte is sent and ends after the last byte is read. Its outcome is `Ok`, `Fail`
//! (certainly without effect) or `Info` (unknown). After an `Info`, a client continues under another number.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::http::{Answer, Lost};
use crate::races::{self, Race};

/// Minimum percentage of the operations on one object that overlap another operation there.
const MIN_OVERLAP: u64 = 30;
/// Allowed share of operations without a known outcome.
const INFO_PER_MILLE: std::ops::RangeInclusive<u64> = 10..=200;
/// Minimum count of every wanted refusal and race.
const MIN_COUNT: u64 = 10;
/// Time limit of a response: the longest deadline of a request, the store's five seconds, plus one.
pub(crate) const MAX_RESPONSE_TIME: Duration = Duration::from_secs(6);

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
    /// The operator credits a deposit.
    Credit,
    /// A client creates a session.
    Create,
    Cancel,
    Complete,
    /// A payment of a session fails, and the session stays open.
    Fail,
    ReadSession,
    /// A browser shows a session's secret.
    Bootstrap,
    ReadList,
    Rebrand,
    ReadBranding,
    /// A partner sends itself a test event.
    SendTest,
    Replay,
    /// A client creates a customer.
    Enrol,
    /// A client updates a customer.
    Rename,
    /// A client deletes a customer.
    Dismiss,
    ReadCustomer,
    /// A client previews an order.
    Preview,
    /// A client creates a session with a locked preview.
    UsePreview,
    /// A client creates a signed quote.
    Lock,
    /// A pay-in or a pay-out redeems a signed quote.
    Redeem,
    ReadRail,
    /// A widget quotes its session.
    QuoteSession,
    /// A widget verifies the user of its session.
    Verify,
    /// A widget pays its session with a quote.
    Pay,
    /// A widget cancels the payment of its session.
    CancelPayment,
    /// The customer of a widget pretends to have paid, or to have passed the verification.
    Pretend,
    /// The rail notifies the gate of a payment.
    NotifyRail,
    /// A client sends an invalid request.
    Refused,
}

impl Kind {
    /// What a response reports about its object.
    pub(crate) fn sees(self, answer: &Answer) -> Option<String> {
        let seen = match self {
            Self::Transact => answer.text("transactId"),
            Self::Create | Self::Cancel | Self::Complete | Self::Fail | Self::Rebrand => {
                Some(answer.digest())
            }
            Self::Enrol | Self::Rename | Self::Dismiss => Some(answer.digest()),
            Self::UsePreview | Self::Lock | Self::Redeem | Self::Pay => Some(answer.digest()),
            Self::ReadCustomer => answer.text("first_name"),
            Self::Bootstrap | Self::Verify => Some("open".to_owned()),
            Self::QuoteSession => answer.text("id"),
            Self::ReadBranding => answer.text("brand_name"),
            _ => answer.text("status"),
        };
        seen.filter(|_| answer.status < 300)
    }
}

/// What the histories of a service must contain: refusals that clients meet while the service is healthy, and races.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) refusals: &'static [(u16, &'static str)],
    pub(crate) races: &'static [Race],
}

/// Outcome of an operation.
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
    pub(crate) partner: String,
    /// The object, if the operation is about one.
    pub(crate) object: Option<String>,
    /// The idempotency key.
    pub(crate) key: Option<String>,
    /// The second object, if the operation is about two.
    pub(crate) with: Option<String>,
    pub(crate) invoked: Duration,
    pub(crate) completed: Duration,
    pub(crate) outcome: Outcome,
    /// Status and code of the response, if there was one.
    pub(crate) said: Option<(u16, String)>,
    /// The trade that an execution returned, or the status that was read.
    pub(crate) seen: Option<String>,
    /// Whether the response was reported as a replay.
    pub(crate) repeated: bool,
}

impl Op {
    pub(crate) fn took(&self) -> Duration {
        self.completed.saturating_sub(self.invoked)
    }

    /// One line of a history file.
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

#[cfg(test)]
impl Op {
    /// An operation on an object that succeeded, in a span of milliseconds.
    pub(crate) fn succeeded(kind: Kind, object: &str, (from, to): (u64, u64)) -> Self {
        Self {
            client: 1,
            kind,
            partner: "p".to_owned(),
            object: Some(object.to_owned()),
            key: None,
            with: None,
            invoked: Duration::from_millis(from),
            completed: Duration::from_millis(to),
            outcome: Outcome::Ok,
            said: Some((200, String::new())),
            seen: None,
            repeated: false,
        }
    }
}

/// Measures of a history that decide whether it counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gates {
    pub(crate) ops: u64,
    pub(crate) about_objects: u64,
    pub(crate) overlapping: u64,
    pub(crate) info: u64,
    /// Number of responses by status and code.
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

    /// Percentage of the operations on one object that overlapped another operation there.
    pub(crate) fn overlap(&self) -> u64 {
        share(self.overlapping, self.about_objects)
    }

    pub(crate) fn info_per_mille(&self) -> u64 {
        (self.info * 1000).checked_div(self.ops).unwrap_or_default()
    }

    /// Returns the requirements that the history does not meet: overlaps, unknown outcomes, and every wanted refusal and race.
    pub(crate) fn unmet(&self, wanted: Wanted) -> Vec<String> {
        let mut unmet = Vec::new();
        if self.overlap() < MIN_OVERLAP {
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
            if times < MIN_COUNT {
                unmet.push(format!("{status} {code} was seen {times} times only"));
            }
        }
        for race in wanted.races {
            let times = self.races.get(race).copied().unwrap_or_default();
            if times < MIN_COUNT {
                unmet.push(format!("{race} met {times} times only"));
            }
        }
        unmet
    }
}

impl Gates {
    /// Reports a response that arrived after every deadline.
    pub(crate) fn too_slow(&self) -> Vec<String> {
        let slow = Some(self.slowest).filter(|slowest| *slowest > MAX_RESPONSE_TIME);
        slow.map(|slowest| format!("a response took {} ms", slowest.as_millis()))
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

/// Counts the spans that overlap another span.
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
    fn overlapping_spans_are_counted() {
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
    fn only_final_refusal_has_no_effect() {
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
