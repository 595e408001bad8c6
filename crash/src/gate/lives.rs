//! What becomes of a session, of a key and of a branding, one operation after another.

use std::collections::BTreeMap;

use crate::history::{Kind, Op, Outcome};
use crate::linear::{Checked, Object};

/// Answers by the key they were given under; `None` where nobody was told.
type Done = BTreeMap<String, Option<String>>;

/// Was this write done before, with this very answer? Then it has no effect.
fn repeats(done: &Done, op: &Op) -> Option<bool> {
    let answer = done.get(op.key.as_ref()?)?;
    Some(answer.is_none() || *answer == op.seen)
}

/// The same with this write done.
fn with(done: &Done, op: &Op, answer: Option<String>) -> Done {
    let mut done = done.clone();
    if let Some(key) = &op.key {
        done.insert(key.clone(), answer);
    }
    done
}

/// A session that was created.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Session {
    end: Option<String>,
    done: Done,
}

impl Session {
    fn same(&self, holds: bool) -> Option<Self> {
        holds.then(|| self.clone())
    }

    /// It is open, and has ended so.
    fn ended(&self, how: &str) -> Option<Self> {
        self.end.is_none().then(|| Self {
            end: Some(how.to_owned()),
            ..self.clone()
        })
    }

    /// Time ends it at any instant.
    fn over(&self) -> Option<Self> {
        self.ended("expired").or_else(|| self.same(true))
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
            (Outcome::Fail, _) => self.same(true),
            _ => match (op.kind, op.seen.as_deref()) {
                (Kind::Cancel | Kind::Complete | Kind::Fail, _) => self.act(op, op.seen.clone()),
                (_, Some("open")) => self.same(self.end.is_none()),
                (_, Some("expired")) => self
                    .over()
                    .filter(|after| after.end.as_deref() == Some("expired")),
                (_, end) => self.same(self.end.as_deref() == end),
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
            _ => None,
        }
    }
}

/// What a create under a key was answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Key(Done);

impl Object for Key {
    fn after(&self, op: &Op) -> Option<Self> {
        let holds = match op.outcome {
            Outcome::Ok => repeats(&self.0, op).unwrap_or(true),
            // What was done is answered so, for ever.
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

/// The name in a branding, of which nothing is known at first; a change's name is its key.
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

/// Every session of a history, every key of a create, and every branding.
pub(super) fn check(ops: &[Op]) -> Checked {
    let mut by_object: BTreeMap<(&str, &str), Vec<&Op>> = BTreeMap::new();
    for op in ops {
        let Some(object) = &op.object else { continue };
        let kind = match op.kind {
            Kind::Create => "key",
            Kind::Rebrand | Kind::ReadBranding => "branding",
            Kind::Replay => continue,
            _ => "session",
        };
        by_object.entry((kind, object)).or_default().push(op);
    }
    let mut checked = Checked::default();
    for ((kind, name), ops) in by_object {
        match kind {
            "key" => checked.look::<Key>("key", name, &ops),
            "branding" => checked.look::<Branding>("branding", name, &ops),
            _ => checked.look::<Session>("session", name, &ops),
        }
    }
    checked
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn op(kind: Kind, key: &str, span: (u64, u64), outcome: Outcome, seen: &str) -> Op {
        Op {
            client: 1,
            kind,
            partner: "p".to_owned(),
            object: Some("o".to_owned()),
            key: (!key.is_empty()).then(|| key.to_owned()),
            invoked: Duration::from_millis(span.0),
            completed: Duration::from_millis(span.1),
            outcome,
            said: Some((409, "session_not_open".to_owned())),
            seen: Some(seen.to_owned()),
            repeated: false,
        }
    }

    fn ok(kind: Kind, key: &str, span: (u64, u64), seen: &str) -> Op {
        op(kind, key, span, Outcome::Ok, seen)
    }

    fn breaches(ops: &[Op]) -> usize {
        check(ops).breaches.len()
    }

    #[test]
    fn a_session_ends_once_however_two_ends_meet() {
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
    fn a_session_is_read_open_before_its_end_and_never_after() {
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
    fn a_create_has_one_answer_and_a_brand_is_the_last() {
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
