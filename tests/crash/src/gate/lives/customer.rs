//! The history of a customer: its name is the last one that was set, until it is deleted.

use super::{Done, repeats, with};
use crate::history::{Kind, Op, Outcome};
use crate::linear::Object;

/// A customer, whose name is unknown at first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Customer {
    name: Option<String>,
    gone: bool,
    done: Done,
}

impl Customer {
    fn same(&self, holds: bool) -> Option<Self> {
        holds.then(|| self.clone())
    }

    fn write(&self, op: &Op, answer: Option<String>) -> Option<Self> {
        let done = with(&self.done, op, answer);
        if let Some(same) = repeats(&self.done, op) {
            let again = || Self {
                done,
                ..self.clone()
            };
            return same.then(again);
        }
        match op.kind {
            Kind::Dismiss => Some(Self {
                gone: true,
                done,
                ..self.clone()
            }),
            _ => (!self.gone).then(|| Self {
                name: op.key.clone(),
                gone: false,
                done,
            }),
        }
    }

    fn read(&self, name: Option<&str>) -> Option<Self> {
        let known = self.name.as_deref().or(name);
        (!self.gone && known == name).then(|| Self {
            name: name.map(str::to_owned),
            ..self.clone()
        })
    }
}

impl Object for Customer {
    fn after(&self, op: &Op) -> Option<Self> {
        let status = op.said.as_ref().map(|(status, _)| *status);
        match (op.outcome, op.kind, status) {
            (Outcome::Ok, Kind::ReadCustomer, _) => self.read(op.seen.as_deref()),
            (Outcome::Ok, ..) => self.write(op, op.seen.clone()),
            (_, _, Some(404)) => self.same(self.gone && repeats(&self.done, op).is_none()),
            _ => Some(self.clone()),
        }
    }

    fn perhaps(&self, op: &Op) -> Option<Self> {
        let writes = op.kind != Kind::ReadCustomer && repeats(&self.done, op).is_none();
        writes.then(|| self.write(op, None)).flatten()
    }
}
