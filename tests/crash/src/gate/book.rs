//! What a partner's clients observed of the gate, and which outcomes they do not know yet.

mod hosted;
mod orders;
mod people;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub(super) use hosted::Hosted;
use kernel::{Bound, Timestamp};
pub(super) use orders::{Order, Orders, Rail};
pub(super) use people::{Customer, parted};
use serde_json::Value;
use test_support::time;

use super::writing::Writing;
use crate::history::{Kind, Outcome};
use crate::http::{Answer, Lost};
use people::People;

/// Refusals that time lifts. The key stays free, so that a repeat may succeed.
const PASSING: [&str; 5] = [
    "session_payment_in_progress",
    "verification_required",
    "quota_exhausted",
    "rate_unavailable",
    "rate_limited",
];

/// The observations of one partner's clients.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// Writes by key; no key is used for two.
    pub(crate) calls: BTreeMap<String, Call>,
    pub(crate) sessions: BTreeMap<String, Session>,
    /// Sessions that may still change, newest last.
    pub(crate) hot: Vec<String>,
    /// Clients no longer repeat writes that were first sent before this instant, because they belong to an earlier history.
    pub(crate) since: Duration,
    /// Test events by the delivery in the response.
    pub(crate) tests: BTreeMap<String, Test>,
    pub(crate) people: People,
    pub(crate) orders: Orders,
    /// Objects of requests that are not judged here. The audit judges them.
    pub(crate) aside: BTreeSet<String>,
    /// Whether a create was refused because the quota is used up.
    pub(crate) exhausted: bool,
    /// Observations that contradict earlier ones.
    pub(crate) breaches: Vec<String>,
}

/// A write under a key.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) writing: Writing,
    /// An instant before which the write was first sent.
    pub(crate) invoked: Duration,
    /// The first response, and an instant after it was read. Every repeat has the same response.
    pub(crate) first: Option<(Answer, Duration)>,
    /// Whether the write was ever refused for good.
    pub(crate) refused: bool,
    /// Number of requests with an unknown outcome.
    pub(crate) in_doubt: u32,
    /// Whether the write was repeated after a crash.
    pub(crate) judged: bool,
}

/// A session in a response.
#[derive(Debug)]
pub(crate) struct Session {
    /// The session as created, without its secret: only its status changes.
    pub(crate) terms: Value,
    pub(crate) secret: String,
    pub(crate) expires_at: Timestamp,
    /// The end that a client has read.
    pub(crate) end: Option<String>,
    /// References of failed payments, from the responses.
    pub(crate) failed: BTreeSet<String>,
    /// Whether a response reported that the user must be verified or has been verified.
    pub(crate) verified: bool,
}

/// A test event that a partner has sent itself.
#[derive(Debug)]
pub(crate) struct Test {
    pub(crate) event: String,
    /// Whether a response reported that it is queued again.
    pub(crate) replayed: bool,
}

impl Book {
    /// Starts a new history.
    pub(crate) fn start_new_history(&mut self) {
        self.hot.clear();
        self.people.hot.clear();
        self.orders.hot_previews.clear();
        self.orders.hot_quotes.clear();
        self.since = time::now();
    }

    /// Judges a session or a customer no more.
    pub(crate) fn set_aside(&mut self, id: &str) {
        self.sessions.remove(id);
        self.people.customers.remove(id);
        self.aside.insert(id.to_owned());
    }

    /// Records that a write is being sent; every repeat has the bytes of the first request.
    pub(crate) fn doubt(&mut self, writing: &Writing) {
        let Some(key) = &writing.key else { return };
        let call = self.calls.entry(key.clone()).or_insert_with(|| Call {
            writing: writing.clone(),
            invoked: time::now(),
            first: None,
            refused: false,
            in_doubt: 0,
            judged: false,
        });
        call.in_doubt += 1;
    }

    /// Records the response to a write under a key. Returns whether it was definite.
    pub(crate) fn note(&mut self, key: &str, answer: &Result<Answer, Lost>) -> bool {
        let outcome = Outcome::of(answer);
        let Some(call) = self.calls.get_mut(key) else {
            return false;
        };
        if outcome == Outcome::Info && !matches!(answer, Err(Lost::Unsent)) {
            return false;
        }
        call.in_doubt = call.in_doubt.saturating_sub(1);
        let Ok(answer) = answer else { return true };
        let code = answer.code();
        call.refused |= outcome == Outcome::Fail && !PASSING.contains(&code.as_str());
        if code == "verification_required"
            && let Some(session) = call.writing.with.as_ref()
            && let Some(session) = self.sessions.get_mut(session)
        {
            session.verified = true;
        }
        if code == "quote_superseded" && !self.orders.may_be_superseded(&call.writing) {
            self.breaches.push(format!(
                "{key} was refused as superseded, and no later quote was requested"
            ));
        }
        self.exhausted |= code == "quota_exhausted";
        match &call.first {
            Some((first, _)) if first != answer => {
                let breach = format!("{key} received {first:?}, then {answer:?}");
                self.breaches.push(breach);
            }
            None if outcome == Outcome::Ok => {
                call.first = Some((answer.clone(), time::now()));
                if call.refused {
                    self.breaches
                        .push(format!("{key} was refused, and then done"));
                }
                let writing = call.writing.clone();
                self.learn(&writing, answer);
            }
            _ => {}
        }
        true
    }

    /// Records the first response to a write.
    pub(crate) fn learn(&mut self, writing: &Writing, answer: &Answer) {
        let id = writing.object.as_str();
        let breach = match writing.kind {
            Kind::Create | Kind::UsePreview => self.create(writing, answer),
            Kind::Cancel => return self.saw(id, "cancelled", None),
            Kind::Complete => return self.saw(id, "completed", None),
            Kind::Fail => self.failed(id, answer),
            Kind::Enrol | Kind::Rename | Kind::Dismiss => self.people.learn(writing, answer),
            Kind::Lock | Kind::Redeem | Kind::Pay => {
                let call = writing.key.as_ref().and_then(|key| self.calls.get(key));
                let sent = call.map_or(Duration::ZERO, |call| call.invoked);
                self.orders.learn(writing, answer, sent)
            }
            Kind::Rebrand if answer.text("brand_name") != writing.key => {
                Some(format!("{writing:?} received {answer:?}"))
            }
            _ => None,
        };
        self.breaches.extend(breach);
    }

    fn failed(&mut self, id: &str, answer: &Answer) -> Option<String> {
        let said = answer.json();
        let refid = said.pointer("/intent/tx_refid").and_then(Value::as_str);
        let known = self.sessions.get_mut(id);
        let Some((known, refid)) = known.zip(refid) else {
            return Some(format!("{id} failed: {answer:?}"));
        };
        known.failed.insert(refid.to_owned());
        None
    }

    fn create(&mut self, writing: &Writing, answer: &Answer) -> Option<String> {
        let Some((id, session)) = Session::read(answer) else {
            return Some(format!("{writing:?} received {answer:?}"));
        };
        let known = self.sessions.insert(id.clone(), session).is_some();
        self.hot.push(id.clone());
        if known {
            return Some(format!("{id} was created under two keys"));
        }
        match writing.kind {
            Kind::UsePreview => self.orders.used_up(&writing.object, &id),
            _ => None,
        }
    }

    /// Records the status of a session, from a request that began when `known` was its recorded end.
    pub(crate) fn saw(&mut self, id: &str, status: &str, known: Option<&str>) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let before = match status {
            "open" => known,
            _ => session.end.as_deref(),
        };
        if let Some(before) = before
            && before != status
        {
            self.breaches
                .push(format!("{id} was {before} and is {status}"));
        } else if status != "open" {
            session.end = Some(status.to_owned());
        }
    }

    /// Whether a redemption or a payment was sent for the session. A payment keeps the session open past its expiry until the payment ends.
    pub(crate) fn may_be_paid(&self, id: &str) -> bool {
        self.calls.values().any(|call| {
            let pays = matches!(call.writing.kind, Kind::Redeem | Kind::Pay);
            pays && call.writing.with.as_deref() == Some(id)
        })
    }

    /// Returns the end of a session, if a client has read it.
    pub(crate) fn end(&self, id: &str) -> Option<String> {
        self.sessions.get(id)?.end.clone()
    }
}

impl Session {
    /// Parses the response to a create into the session and its id.
    fn read(answer: &Answer) -> Option<(String, Self)> {
        let mut terms = answer.json();
        let fields = terms.as_object_mut()?;
        let secret = fields.remove("client_secret")?;
        // The address of the checkout contains the secret, so it is null in every later response.
        if let Some(url) = fields.get_mut("url") {
            *url = Value::Null;
        }
        if fields.remove("status")? != "open" {
            return None;
        }
        let text = |field: &str| fields.get(field)?.as_str().map(str::to_owned);
        let id = text("id")?;
        let expires_at = Timestamp::parse(&text("expires_at")?, Bound::Upper).ok()?;
        let session = Self {
            secret: secret.as_str()?.to_owned(),
            expires_at,
            terms,
            end: None,
            failed: BTreeSet::new(),
            verified: false,
        };
        Some((id, session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, request_id: &str, body: &str) -> Answer {
        Answer {
            status,
            request_id: request_id.to_owned(),
            body: body.as_bytes().to_vec(),
        }
    }

    fn created(id: &str) -> Answer {
        let body = format!(
            r#"{{"id":"{id}","status":"open","expires_at":"2026-05-25T12:00:00.000Z","client_secret":"gsec"}}"#
        );
        answer(201, "req_1", &body)
    }

    fn create(key: &str) -> Writing {
        Writing {
            kind: Kind::Create,
            object: key.to_owned(),
            with: None,
            key: Some(key.to_owned()),
            bytes: Vec::new(),
        }
    }

    fn book() -> Book {
        let mut book = Book::default();
        book.doubt(&create("k"));
        assert!(book.note("k", &Ok(created("gs"))));
        assert!(book.breaches.is_empty() && book.sessions.contains_key("gs"));
        book
    }

    #[test]
    fn repeat_with_any_difference_is_breach() {
        for other in [
            answer(200, "req_1", "{}"),
            answer(403, "req_2", r#"{"code":"quota_exhausted"}"#),
            Answer {
                request_id: "req_2".to_owned(),
                ..created("gs")
            },
            created("gs_2"),
        ] {
            let mut book = book();
            book.doubt(&create("k"));
            assert!(book.note("k", &Ok(created("gs"))));
            assert!(book.breaches.is_empty());
            book.note("k", &Ok(other));
            assert_eq!(book.breaches.len(), 1);
        }
    }

    #[test]
    fn refused_write_is_done_later_only_after_a_refusal_that_time_lifts() {
        let of = |code: &str| {
            let mut book = Book::default();
            for answer in [
                answer(409, "req_1", &format!(r#"{{"code":"{code}"}}"#)),
                created("gs"),
            ] {
                book.doubt(&create("k"));
                assert!(book.note("k", &Ok(answer)));
            }
            book.breaches.len()
        };
        for code in PASSING {
            assert_eq!(of(code), 0, "{code}");
        }
        assert_eq!(of("session_not_open"), 1);
    }

    #[test]
    fn session_under_two_keys_and_second_end_are_breaches() {
        let mut book = book();
        book.doubt(&create("l"));
        book.note("l", &Ok(created("gs")));
        assert_eq!(book.breaches.len(), 1);
        book.saw("gs", "expired", None);
        book.saw("gs", "expired", Some("expired"));
        // The request began before the end was recorded.
        book.saw("gs", "open", None);
        assert_eq!(book.breaches.len(), 1);
        book.saw("gs", "open", Some("expired"));
        book.saw("gs", "cancelled", None);
        assert_eq!(book.breaches.len(), 3);
    }

    #[test]
    fn session_may_be_paid_after_redemption_was_sent() {
        let mut book = book();
        assert!(!book.may_be_paid("gs"));
        book.doubt(&Writing {
            kind: Kind::Redeem,
            with: Some("gs".to_owned()),
            ..create("redeem")
        });
        assert!(book.may_be_paid("gs") && !book.may_be_paid("gs_2"));
    }

    #[test]
    fn twin_in_flight_leaves_outcome_unknown() {
        let mut book = book();
        book.doubt(&create("k"));
        let twin = answer(409, "req_2", r#"{"code":"idempotency_in_progress"}"#);
        assert!(!book.note("k", &Ok(twin)));
        assert!(!book.note("k", &Err(Lost::Unknown)));
        assert_eq!((book.breaches.len(), book.calls["k"].in_doubt), (0, 1));
        assert!(book.note("k", &Err(Lost::Unsent)));
        assert_eq!(book.calls["k"].in_doubt, 0);
    }
}
