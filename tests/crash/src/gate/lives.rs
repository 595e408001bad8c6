//! Models of a session, a key, a branding, a customer, and of the things that can be taken once, for the check of histories.

mod customer;
mod once;

use std::collections::BTreeMap;

use crate::history::{Kind, Op, Outcome};
use crate::linear::{Checked, Object};
use customer::Customer;
use once::Once;

/// Responses by idempotency key; `None` if the response is unknown.
type Done = BTreeMap<String, Option<String>>;

/// Whether the write is a repeat with the same response, which has no effect; `None` for a new key.
fn repeats(done: &Done, op: &Op) -> Option<bool> {
    let answer = done.get(op.key.as_ref()?)?;
    Some(answer.is_none() || *answer == op.seen)
}

/// Adds a write to those that succeeded.
fn with(done: &Done, op: &Op, answer: Option<String>) -> Done {
    let mut done = done.clone();
    if let Some(key) = &op.key {
        done.insert(key.clone(), answer);
    }
    done
}

/// A created session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Session {
    end: Option<String>,
    /// Whether a quote was redeemed for the session, so that it may complete by itself.
    paid_for: bool,
    /// The newest quote of the session's widget, `LOST` if no client received it; `None` before the first quote.
    newest: Option<String>,
    done: Done,
}

/// The end of a session that ended by itself, before a read shows which end.
const SOMEHOW: &str = "somehow";
/// The newest quote if its response was lost.
const LOST: &str = "lost";

impl Session {
    fn same(&self, holds: bool) -> Option<Self> {
        holds.then(|| self.clone())
    }

    /// The session with this end, if it is open or already has it.
    fn ended(&self, how: &str) -> Option<Self> {
        self.end.is_none().then(|| self.with_end(how))
    }

    fn with_end(&self, how: &str) -> Self {
        Self {
            end: Some(how.to_owned()),
            ..self.clone()
        }
    }

    /// The session after it ended by itself, through its expiry or a payment.
    fn over(&self) -> Option<Self> {
        let how = if self.paid_for { SOMEHOW } else { "expired" };
        self.ended(how).or_else(|| self.same(true))
    }

    /// The session after a read with this status.
    fn seen(&self, how: Option<&str>) -> Option<Self> {
        let by_itself = match how {
            Some("expired") => true,
            Some("completed") => self.paid_for,
            _ => false,
        };
        match (how, self.end.as_deref()) {
            (Some("open"), end) => self.same(end.is_none()),
            (Some(how), None | Some(SOMEHOW)) if by_itself => Some(self.with_end(how)),
            (how, end) => self.same(end == how),
        }
    }

    /// Quotes the open session. The quote supersedes the earlier ones.
    fn quote(&self, quote: &str) -> Option<Self> {
        self.end.is_none().then(|| Self {
            newest: Some(quote.to_owned()),
            ..self.clone()
        })
    }

    /// Whether the quote is not superseded. A redemption has a quote that no widget requested.
    fn is_newest(&self, op: &Op) -> bool {
        op.kind != Kind::Pay || self.newest.is_none() || self.newest == op.object
    }

    /// Redeems or pays a quote, which only an open session allows. A refusal about the quote implies that the session is open.
    fn redeem(&self, op: &Op) -> Option<Self> {
        if op.outcome == Outcome::Fail {
            let code = op.said.as_ref().map_or("", |(_, code)| code.as_str());
            let is_true = match code {
                "quote_consumed" | "quote_session_mismatch" => true,
                "quote_superseded" => self.newest != op.object,
                "quote_expired" | "verification_required" => self.is_newest(op),
                _ => return self.same(true),
            };
            return self.same(is_true && self.end.is_none());
        }
        let again = repeats(&self.done, op);
        let may = again.unwrap_or_else(|| self.end.is_none() && self.is_newest(op));
        may.then(|| Self {
            paid_for: true,
            done: with(&self.done, op, op.seen.clone()),
            ..self.clone()
        })
    }

    fn act(&self, op: &Op, answer: Option<String>) -> Option<Self> {
        if let Some(same) = repeats(&self.done, op) {
            return same.then(|| Self {
                done: with(&self.done, op, answer),
                ..self.clone()
            });
        }
        let after = match op.kind {
            Kind::Cancel => self.ended("cancelled"),
            Kind::Complete => self.ended("completed"),
            _ => self.same(self.end.is_none()),
        };
        after.map(|after| Self {
            done: with(&self.done, op, answer),
            ..after
        })
    }
}

impl Object for Session {
    fn after(&self, op: &Op) -> Option<Self> {
        let code = op.said.as_ref().map_or("", |(_, code)| code.as_str());
        match (op.outcome, code) {
            (Outcome::Fail, "session_not_open") => {
                let undone = op
                    .key
                    .as_ref()
                    .is_none_or(|key| !self.done.contains_key(key));
                self.over().filter(|_| undone)
            }
            // A payment is in progress: the session is open and a quote was redeemed for it.
            (Outcome::Fail, "session_payment_in_progress") => {
                let known = op
                    .key
                    .as_ref()
                    .is_some_and(|key| self.done.contains_key(key));
                self.same(self.end.is_none() && self.paid_for && !known)
            }
            _ if matches!(op.kind, Kind::Redeem | Kind::Pay) => self.redeem(op),
            (Outcome::Fail, _) => self.same(true),
            _ => match op.kind {
                Kind::Cancel | Kind::Complete | Kind::Fail => self.act(op, op.seen.clone()),
                Kind::QuoteSession => self.quote(op.seen.as_deref().unwrap_or(LOST)),
                _ => self.seen(op.seen.as_deref()),
            },
        }
    }

    fn perhaps(&self, op: &Op) -> Option<Self> {
        let known = op
            .key
            .as_ref()
            .is_some_and(|key| self.done.contains_key(key));
        match op.kind {
            Kind::Cancel | Kind::Complete | Kind::Fail if !known => self.act(op, None),
            Kind::Redeem | Kind::Pay if !known => self.redeem(op),
            Kind::QuoteSession => self.quote(LOST),
            _ => None,
        }
    }
}

/// The responses to creates under a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Key(Done);

impl Object for Key {
    fn after(&self, op: &Op) -> Option<Self> {
        let holds = match op.outcome {
            Outcome::Ok => repeats(&self.0, op).unwrap_or(true),
            // A create that succeeded returns the same response forever.
            _ => repeats(&self.0, op).is_none(),
        };
        let answer = op.seen.clone().filter(|_| op.outcome == Outcome::Ok);
        holds.then(|| match op.outcome {
            Outcome::Ok => Self(with(&self.0, op, answer)),
            _ => self.clone(),
        })
    }

    fn perhaps(&self, op: &Op) -> Option<Self> {
        repeats(&self.0, op)
            .is_none()
            .then(|| Self(with(&self.0, op, None)))
    }
}

/// The name in a branding, unknown at first. The name that a change sets is its key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Branding {
    name: Option<String>,
    done: Done,
}

impl Branding {
    fn set(&self, op: &Op, answer: Option<String>) -> Option<Self> {
        let name = match repeats(&self.done, op) {
            Some(false) => return None,
            Some(true) => self.name.clone(),
            None => op.key.clone(),
        };
        Some(Self {
            name,
            done: with(&self.done, op, answer),
        })
    }
}

impl Object for Branding {
    fn after(&self, op: &Op) -> Option<Self> {
        match (op.outcome, op.kind) {
            (Outcome::Ok, Kind::Rebrand) => self.set(op, op.seen.clone()),
            (Outcome::Ok, _) if self.name.is_none() => Some(Self {
                name: op.seen.clone(),
                done: self.done.clone(),
            }),
            (Outcome::Ok, _) => (self.name == op.seen).then(|| self.clone()),
            _ => Some(self.clone()),
        }
    }

    fn perhaps(&self, op: &Op) -> Option<Self> {
        let new = op.kind == Kind::Rebrand && repeats(&self.done, op).is_none();
        new.then(|| self.set(op, None)).flatten()
    }
}

/// Checks every object of a history.
pub(super) fn check(ops: &[Op]) -> Checked {
    let mut by_object: BTreeMap<(&str, &str), Vec<&Op>> = BTreeMap::new();
    for op in ops {
        let object = op
            .object
            .as_deref()
            .and_then(|object| Some((sort(op.kind)?, object)));
        let also = op.with.as_deref().map(|session| ("session", session));
        for place in object.into_iter().chain(also) {
            by_object.entry(place).or_default().push(op);
        }
    }
    let mut checked = Checked::default();
    for ((kind, name), ops) in by_object {
        match kind {
            "key" => checked.look::<Key>(kind, name, &ops),
            "branding" => checked.look::<Branding>(kind, name, &ops),
            "customer" => checked.look::<Customer>(kind, name, &ops),
            "session" => checked.look::<Session>(kind, name, &ops),
            _ => checked.look::<Once>(kind, name, &ops),
        }
    }
    checked
}

/// The kind of object that an operation is about; `None` if no other operation uses the object.
const fn sort(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::Create | Kind::Lock => "key",
        Kind::Rebrand | Kind::ReadBranding => "branding",
        Kind::Rename | Kind::Dismiss | Kind::ReadCustomer => "customer",
        Kind::Enrol => "person",
        Kind::UsePreview => "preview",
        Kind::Redeem | Kind::Pay | Kind::ReadQuote => "quote",
        Kind::Replay | Kind::CancelPayment | Kind::Pretend | Kind::NotifyRail => return None,
        _ => "session",
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn op(kind: Kind, key: &str, span: (u64, u64), outcome: Outcome, seen: &str) -> Op {
        Op {
            key: (!key.is_empty()).then(|| key.to_owned()),
            outcome,
            said: Some((409, "session_not_open".to_owned())),
            seen: Some(seen.to_owned()),
            ..Op::succeeded(kind, "o", span)
        }
    }

    fn ok(kind: Kind, key: &str, span: (u64, u64), seen: &str) -> Op {
        op(kind, key, span, Outcome::Ok, seen)
    }

    fn breaches(ops: &[Op]) -> usize {
        check(ops).breaches.len()
    }

    #[test]
    fn session_ends_once_when_two_ends_race() {
        let cancel = ok(Kind::Cancel, "k", (0, 10), "a");
        assert_eq!(
            breaches(&[cancel.clone(), ok(Kind::Cancel, "k", (20, 30), "a")]),
            0
        );
        assert_eq!(
            breaches(&[cancel.clone(), ok(Kind::Cancel, "k", (20, 30), "b")]),
            1
        );
        assert_eq!(
            breaches(&[cancel.clone(), ok(Kind::Cancel, "l", (5, 30), "b")]),
            1
        );
        assert_eq!(
            breaches(&[cancel.clone(), ok(Kind::Complete, "l", (5, 30), "b")]),
            1
        );
        let refused = |key| op(Kind::Cancel, key, (5, 30), Outcome::Fail, "");
        assert_eq!(breaches(&[cancel.clone(), refused("l")]), 0);
        let late = op(Kind::Cancel, "k", (20, 30), Outcome::Fail, "");
        assert_eq!(breaches(&[cancel, late]), 1, "its own key");
    }

    #[test]
    fn session_is_never_read_as_open_after_its_end() {
        let read = |span, seen| ok(Kind::ReadSession, "", span, seen);
        let unknown = op(Kind::Complete, "k", (0, 5), Outcome::Info, "");
        let [open, done] = [read((10, 20), "open"), read((30, 40), "completed")];
        assert_eq!(breaches(&[unknown.clone(), open.clone(), done.clone()]), 0);
        assert_eq!(breaches(&[unknown, done, read((50, 60), "open")]), 1);
        let expired = read((0, 5), "expired");
        assert_eq!(breaches(&[open.clone(), read((30, 40), "expired")]), 0);
        assert_eq!(breaches(&[expired.clone(), open]), 1);
        assert_eq!(breaches(&[expired, ok(Kind::Fail, "k", (10, 20), "a")]), 1);
    }

    #[test]
    fn single_use_thing_is_taken_by_one_key() {
        let taken = |key, span| ok(Kind::Redeem, key, span, key);
        assert_eq!(breaches(&[taken("k", (0, 10)), taken("k", (5, 15))]), 0);
        assert_eq!(breaches(&[taken("k", (0, 10)), taken("l", (5, 15))]), 1);
        let refused = |code: &str, span| Op {
            said: Some((409, code.to_owned())),
            ..op(Kind::Redeem, "l", span, Outcome::Fail, "")
        };
        let consumed = refused("quote_consumed", (20, 30));
        assert_eq!(breaches(&[taken("k", (0, 10)), consumed.clone()]), 0);
        assert_eq!(
            breaches(std::slice::from_ref(&consumed)),
            1,
            "it was never taken"
        );
        let unknown = op(Kind::Redeem, "k", (0, 5), Outcome::Info, "");
        assert_eq!(breaches(&[unknown, consumed]), 0);
        let expired = refused("quote_expired", (0, 5));
        assert_eq!(breaches(&[expired, taken("k", (10, 20))]), 1);
        let read = |span, seen| ok(Kind::ReadQuote, "", span, seen);
        assert_eq!(
            breaches(&[taken("k", (0, 10)), read((20, 30), "consumed")]),
            0
        );
        assert_eq!(
            breaches(&[taken("k", (0, 10)), read((20, 30), "active")]),
            1
        );
    }

    #[test]
    fn session_completes_by_itself_after_redemption() {
        let redeemed = Op {
            object: Some("q".to_owned()),
            with: Some("o".to_owned()),
            ..ok(Kind::Redeem, "k", (0, 10), "a")
        };
        let read = |span, seen| ok(Kind::ReadSession, "", span, seen);
        let completed = read((20, 30), "completed");
        assert_eq!(breaches(&[redeemed.clone(), completed.clone()]), 0);
        assert_eq!(
            breaches(std::slice::from_ref(&completed)),
            1,
            "no payment was made"
        );
        let paying = Op {
            said: Some((409, "session_payment_in_progress".to_owned())),
            ..op(Kind::Cancel, "p", (11, 12), Outcome::Fail, "")
        };
        let all = [redeemed.clone(), paying.clone(), completed.clone()];
        assert_eq!(breaches(&all), 0);
        assert_eq!(
            breaches(std::slice::from_ref(&paying)),
            1,
            "no payment is possible"
        );
        let over = op(Kind::Cancel, "l", (12, 15), Outcome::Fail, "");
        assert_eq!(breaches(&[redeemed.clone(), over.clone(), completed]), 0);
        let open = read((20, 30), "open");
        assert_eq!(breaches(&[redeemed.clone(), over.clone(), open]), 1);
        let late = Op {
            invoked: Duration::from_millis(50),
            completed: Duration::from_millis(60),
            key: Some("m".to_owned()),
            object: Some("r".to_owned()),
            ..redeemed
        };
        assert_eq!(breaches(&[over, late]), 1, "it had ended");
    }

    #[test]
    fn payment_redeems_newest_quote_of_its_session() {
        let quote = |span, id| ok(Kind::QuoteSession, "", span, id);
        let pay = |id: &str, span, code: &str| Op {
            object: Some(id.to_owned()),
            with: Some("o".to_owned()),
            outcome: match code {
                "" => Outcome::Ok,
                _ => Outcome::Fail,
            },
            said: Some((409, code.to_owned())),
            ..ok(Kind::Pay, "k", span, "a")
        };
        let superseded = |span| pay("q1", span, "quote_superseded");
        let [first, later] = [quote((0, 10), "q1"), quote((20, 30), "q2")];
        let both = |last| [first.clone(), later.clone(), last];
        assert_eq!(breaches(&both(pay("q2", (40, 50), ""))), 0);
        assert_eq!(breaches(&both(pay("q1", (40, 50), ""))), 1);
        assert_eq!(breaches(&both(superseded((40, 50)))), 0);
        assert_eq!(breaches(&both(pay("q2", (40, 50), "quote_superseded"))), 1);
        assert_eq!(breaches(&both(pay("q1", (40, 50), "quote_expired"))), 1);
        // At once with the later quote, either is first.
        assert_eq!(breaches(&both(pay("q1", (25, 50), ""))), 0);
        assert_eq!(breaches(&both(superseded((15, 25)))), 0);
        assert_eq!(breaches(&both(superseded((12, 15)))), 1, "too early");
        let lost = op(Kind::QuoteSession, "", (20, 30), Outcome::Info, "");
        for paid in [superseded((40, 50)), pay("q1", (40, 50), "")] {
            assert_eq!(breaches(&[first.clone(), lost.clone(), paid]), 0);
        }
        assert_eq!(breaches(&[first, superseded((40, 50))]), 1);
    }

    #[test]
    fn customer_has_last_name_until_deletion() {
        let rename = |key, span| ok(Kind::Rename, key, span, key);
        let read = |span, seen| ok(Kind::ReadCustomer, "", span, seen);
        let [one, other] = [rename("one", (0, 10)), rename("other", (20, 30))];
        let all = |last| [one.clone(), other.clone(), last];
        assert_eq!(breaches(&all(read((40, 50), "other"))), 0);
        assert_eq!(breaches(&all(read((40, 50), "one"))), 1);
        let deleted = ok(Kind::Dismiss, "", (32, 35), "d");
        let gone = [one.clone(), deleted.clone(), read((40, 50), "one")];
        assert_eq!(breaches(&gone), 1);
        assert_eq!(breaches(&[deleted, rename("late", (40, 50))]), 1);
    }

    #[test]
    fn create_has_one_response_and_last_branding_wins() {
        let create = |span, seen| ok(Kind::Create, "k", span, seen);
        assert_eq!(breaches(&[create((0, 10), "a"), create((5, 20), "a")]), 0);
        assert_eq!(breaches(&[create((0, 10), "a"), create((5, 20), "b")]), 1);
        let set = |key, span| ok(Kind::Rebrand, key, span, key);
        let read = |span, seen| ok(Kind::ReadBranding, "", span, seen);
        let [one, other] = [set("one", (0, 10)), set("other", (20, 30))];
        let again = set("one", (40, 50));
        let all = |last| [one.clone(), other.clone(), again.clone(), last];
        assert_eq!(breaches(&all(read((60, 70), "other"))), 0);
        assert_eq!(breaches(&all(read((60, 70), "one"))), 1);
    }
}
