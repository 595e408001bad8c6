//! Things that can be taken once: a person's place among the customers, a locked preview, a signed quote.

use super::{Done, repeats, with};
use crate::history::{Kind, Op, Outcome};
use crate::linear::Object;

/// A thing that can be taken once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Once {
    /// Whether an operation has taken it.
    taken: bool,
    /// Whether it has expired, or a later quote has superseded it.
    over: bool,
    done: Done,
}

impl Once {
    fn same(&self, holds: bool) -> Option<Self> {
        holds.then(|| self.clone())
    }

    fn is_free(&self) -> bool {
        !self.taken && !self.over
    }

    fn too_late(&self) -> Self {
        Self {
            over: true,
            ..self.clone()
        }
    }

    fn take(&self, op: &Op, answer: Option<String>) -> Option<Self> {
        let may = repeats(&self.done, op).unwrap_or_else(|| self.is_free());
        may.then(|| Self {
            taken: true,
            over: self.over,
            done: with(&self.done, op, answer),
        })
    }

    /// A write that succeeded under a key is never refused. A preview's expiry is checked before its use, a quote's after.
    fn refuse(&self, op: &Op) -> Option<Self> {
        if repeats(&self.done, op).is_some() {
            return None;
        }
        match op.said.as_ref().map_or("", |(_, code)| code.as_str()) {
            "customer_already_exists" | "quote_consumed" => self.same(self.taken),
            "quote_preview_used" => self.same(self.taken && !self.over),
            "quote_preview_mismatch" | "quota_exhausted" => self.same(self.is_free()),
            "quote_preview_expired" => Some(self.too_late()),
            "quote_expired" | "quote_superseded" => (!self.taken).then(|| self.too_late()),
            _ => Some(self.clone()),
        }
    }
}

impl Object for Once {
    fn after(&self, op: &Op) -> Option<Self> {
        match (op.outcome, op.kind, op.seen.as_deref()) {
            (Outcome::Ok, Kind::ReadQuote, Some("consumed")) => self.same(self.taken),
            (Outcome::Ok, Kind::ReadQuote, Some("expired")) => {
                (!self.taken).then(|| self.too_late())
            }
            (Outcome::Ok, Kind::ReadQuote, _) => self.same(self.is_free()),
            (Outcome::Ok, ..) => self.take(op, op.seen.clone()),
            (_, Kind::ReadQuote, _) => Some(self.clone()),
            _ => self.refuse(op),
        }
    }

    fn perhaps(&self, op: &Op) -> Option<Self> {
        let writes = op.kind != Kind::ReadQuote && repeats(&self.done, op).is_none();
        writes.then(|| self.take(op, None)).flatten()
    }
}
