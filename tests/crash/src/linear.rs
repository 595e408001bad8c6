//! Checks that a history is linearizable, for each object by itself, by Wing and Gong's search with Lowe's cache of visited
//! states.
//!
//! An operation takes effect at one instant between its start and its end. An operation with an unknown outcome takes effect at
//! any instant after its start, or never.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::time::Duration;

use crate::book::follows;
use crate::history::{Kind, Op, Outcome};

/// Search steps after which an object is reported as given up.
const MAX_STEPS: u64 = 2_000_000;

/// An object that operations read and change.
pub(crate) trait Object: Clone + Eq + Hash + Default {
    /// Returns the state after an operation with a known outcome; `None` if the outcome is impossible.
    fn after(&self, op: &Op) -> Option<Self>;
    /// Returns the state after an operation with an unknown outcome that took effect.
    fn perhaps(&self, op: &Op) -> Option<Self>;
}

/// State of a quote.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
enum Quote {
    #[default]
    Active,
    Expired,
    Rejected,
    /// Executed, with the furthest trade state seen. An execution with a lost response has an unknown trade.
    Executed {
        trade: Option<String>,
        status: String,
    },
}

impl Quote {
    fn execute(&self, trade: Option<String>) -> Option<Self> {
        let executed = || Self::Executed {
            trade,
            status: "reserved".to_owned(),
        };
        (*self == Self::Active).then(executed)
    }

    /// Whether only time can end the right to execute.
    fn expire(&self) -> Option<Self> {
        matches!(self, Self::Active | Self::Expired).then_some(Self::Expired)
    }

    fn same(&self, holds: bool) -> Option<Self> {
        holds.then(|| self.clone())
    }

    /// A repeat under any key returns the trade of the first execution.
    fn repeat(&self, op: &Op) -> Option<Self> {
        match self {
            Self::Executed { trade, status } if trade.is_none() || *trade == op.seen => {
                Some(Self::Executed {
                    trade: op.seen.clone(),
                    status: status.clone(),
                })
            }
            _ => None,
        }
    }

    /// A read shows the last trade state or a later one.
    fn further(&self, seen: &str) -> Option<Self> {
        match self {
            Self::Executed { trade, status } if follows(status, seen) => Some(Self::Executed {
                trade: trade.clone(),
                status: seen.to_owned(),
            }),
            _ => None,
        }
    }

    /// A refusal that names the quote's state is true; any other refusal implies nothing about the quote.
    fn refuse(&self, op: &Op) -> Option<Self> {
        match op.said.as_ref().map_or("", |(_, code)| code.as_str()) {
            "quote_expired" => self.expire(),
            "quote_rejected" => self.same(*self == Self::Rejected),
            "quote_consumed" => self.same(matches!(self, Self::Executed { .. })),
            "insufficient_balance" | "velocity_cap_exceeded" => self.same(*self == Self::Active),
            _ => Some(self.clone()),
        }
    }
}

impl Object for Quote {
    fn after(&self, op: &Op) -> Option<Self> {
        if op.outcome == Outcome::Fail {
            return self.refuse(op);
        }
        let seen = op.seen.as_deref().unwrap_or_default();
        match op.kind {
            Kind::Transact if op.repeated => self.repeat(op),
            Kind::Transact => self.execute(op.seen.clone()),
            Kind::Reject => (*self == Self::Active).then_some(Self::Rejected),
            Kind::Poll | Kind::ReadTrade => self.further(seen),
            Kind::ReadQuote => match seen {
                "expired" => self.expire(),
                "rejected" => self.same(*self == Self::Rejected),
                "consumed" => self.same(matches!(self, Self::Executed { .. })),
                _ => self.same(*self == Self::Active),
            },
            _ => Some(self.clone()),
        }
    }

    fn perhaps(&self, op: &Op) -> Option<Self> {
        match op.kind {
            Kind::Transact => self.execute(None),
            Kind::Reject => (*self == Self::Active).then_some(Self::Rejected),
            _ => None,
        }
    }
}

/// The quote that a key executed. A replay does not bind its key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Key(Option<String>);

impl Object for Key {
    fn after(&self, op: &Op) -> Option<Self> {
        let mine = self.0 == op.object;
        let code = op.said.as_ref().map_or("", |(_, code)| code.as_str());
        let holds = match (op.outcome, code) {
            (Outcome::Ok, _) if op.repeated => mine || self.0.is_none(),
            (Outcome::Ok, _) => return self.perhaps(op),
            (_, "idempotency_key_reused") => self.0.is_some() && !mine,
            _ => true,
        };
        holds.then(|| self.clone())
    }

    fn perhaps(&self, op: &Op) -> Option<Self> {
        self.0.is_none().then(|| Self(op.object.clone()))
    }
}

/// Checked objects, and those that are not linearizable.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// Number of objects by kind.
    pub(crate) looked_at: BTreeMap<&'static str, u64>,
    /// Number of objects whose search was given up.
    pub(crate) given_up: u64,
    pub(crate) breaches: Vec<String>,
}

/// Checks every quote and every key of a history.
pub(crate) fn check(ops: &[Op]) -> Checked {
    let mut quotes: BTreeMap<&str, Vec<&Op>> = BTreeMap::new();
    let mut keys: BTreeMap<(&str, &str), Vec<&Op>> = BTreeMap::new();
    for op in ops {
        let Some(object) = &op.object else { continue };
        quotes.entry(object).or_default().push(op);
        if let Some(key) = &op.key {
            keys.entry((&op.partner, key)).or_default().push(op);
        }
    }
    let mut checked = Checked::default();
    for (quote, ops) in quotes {
        checked.look::<Quote>("quote", quote, &ops);
    }
    for ((partner, key), ops) in keys {
        checked.look::<Key>("key", &format!("{key} of {partner}"), &ops);
    }
    checked
}

impl Checked {
    /// Checks the operations on one object.
    pub(crate) fn look<O: Object>(&mut self, kind: &'static str, name: &str, ops: &[&Op]) {
        *self.looked_at.entry(kind).or_default() += 1;
        match search::<O>(ops) {
            Some(true) => {}
            Some(false) => self
                .breaches
                .push(format!("{kind} {name}: not linearizable")),
            None => self.given_up += 1,
        }
    }
}

/// Searches a valid order; `None` if the search takes too many steps.
fn search<O: Object>(ops: &[&Op]) -> Option<bool> {
    let mut ops = ops.to_vec();
    ops.sort_by_key(|op| op.invoked);
    let known = |op: &&Op| op.outcome != Outcome::Info;
    let open = ops.iter().filter(|op| known(op)).count();
    let mut tried: HashSet<(Vec<bool>, O)> = HashSet::new();
    let mut ways = vec![(vec![false; ops.len()], O::default(), open)];
    let mut steps = 0;
    while let Some((done, state, open)) = ways.pop() {
        if open == 0 {
            return Some(true);
        }
        steps += 1;
        if steps > MAX_STEPS {
            return None;
        }
        for place in next(&ops, &done) {
            let Some(op) = ops.get(place) else { continue };
            let after = match op.outcome {
                Outcome::Info => state.perhaps(op),
                _ => state.after(op),
            };
            let Some(after) = after else { continue };
            let mut done = done.clone();
            if let Some(mark) = done.get_mut(place) {
                *mark = true;
            }
            if tried.insert((done.clone(), after.clone())) {
                ways.push((done, after, open - usize::from(known(op))));
            }
        }
    }
    Some(false)
}

/// Returns the operations that may be next: those that started before the first known end of the rest.
fn next<'o>(ops: &'o [&Op], done: &'o [bool]) -> impl Iterator<Item = usize> + 'o {
    let rest = || {
        ops.iter()
            .zip(done)
            .enumerate()
            .filter(|(_, (_, done))| !**done)
    };
    let ends = rest()
        .filter(|(_, (op, _))| op.outcome != Outcome::Info)
        .map(|(_, (op, _))| op.completed)
        .min()
        .unwrap_or(Duration::MAX);
    rest()
        .take_while(move |(_, (op, _))| op.invoked <= ends)
        .map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(kind: Kind, span: (u64, u64), outcome: Outcome, code: &str, seen: &str) -> Op {
        Op {
            key: (kind == Kind::Transact).then(|| "k".to_owned()),
            outcome,
            said: Some((200, code.to_owned())),
            seen: Some(seen.to_owned()),
            ..Op::succeeded(kind, "q", span)
        }
    }

    fn breaches(ops: &[Op]) -> usize {
        check(ops).breaches.len()
    }

    #[test]
    fn two_first_executions_are_found_under_one_key_and_under_two() {
        let first = op(Kind::Transact, (0, 10), Outcome::Ok, "", "t");
        let mut second = op(Kind::Transact, (5, 15), Outcome::Ok, "", "t");
        assert_eq!(
            breaches(&[first.clone(), second.clone()]),
            2,
            "quote and key"
        );
        second.repeated = true;
        assert_eq!(breaches(&[first.clone(), second.clone()]), 0);
        second.seen = Some("u".to_owned());
        assert_eq!(
            breaches(&[first.clone(), second.clone()]),
            1,
            "another trade"
        );
        second.key = Some("l".to_owned());
        second.repeated = false;
        assert_eq!(breaches(&[first, second]), 1);
    }

    #[test]
    fn unknown_execution_explains_only_later_operations() {
        let unknown = op(Kind::Transact, (10, 20), Outcome::Info, "", "");
        let consumed = |span| op(Kind::ReadQuote, span, Outcome::Ok, "", "consumed");
        let active = |span| op(Kind::ReadQuote, span, Outcome::Ok, "", "active");
        assert_eq!(breaches(&[unknown.clone(), consumed((30, 40))]), 0);
        assert_eq!(
            breaches(&[unknown.clone(), active((30, 40)), consumed((50, 60))]),
            0
        );
        assert_eq!(breaches(&[unknown.clone(), consumed((0, 5))]), 1);
        assert_eq!(
            breaches(&[unknown, consumed((30, 40)), active((50, 60))]),
            1
        );
    }

    #[test]
    fn expired_quote_is_not_executed_and_trade_state_does_not_go_back() {
        let expired = op(Kind::ReadQuote, (0, 5), Outcome::Ok, "", "expired");
        let executed = op(Kind::Transact, (10, 20), Outcome::Ok, "", "t");
        assert_eq!(breaches(&[expired, executed.clone()]), 1);
        let settled = op(Kind::Poll, (30, 40), Outcome::Ok, "", "settled");
        let reserved = |span| op(Kind::Poll, span, Outcome::Ok, "", "reserved");
        let over = |last| [executed.clone(), settled.clone(), last];
        assert_eq!(breaches(&over(reserved((35, 45)))), 0);
        assert_eq!(breaches(&over(reserved((50, 60)))), 1);
    }

    #[test]
    fn key_executes_one_quote() {
        let executed = op(Kind::Transact, (0, 10), Outcome::Ok, "", "t");
        let mut reused = op(
            Kind::Transact,
            (20, 30),
            Outcome::Fail,
            "idempotency_key_reused",
            "",
        );
        assert_eq!(
            breaches(&[executed.clone(), reused.clone()]),
            1,
            "its own quote"
        );
        reused.object = Some("r".to_owned());
        assert_eq!(breaches(&[executed, reused.clone()]), 0);
        assert_eq!(breaches(&[reused]), 1, "no operation used it");
    }
}
