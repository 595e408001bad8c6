//! Compares the listed customers with the observations.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::book::{Book, Call, Customer, parted};
use super::{field, lost_to};
use crate::history::Kind;
use crate::receiver::Event;

/// Checks that the listed customers are exactly those acknowledged and not deleted, each as created except for the name, which
/// is the last one that was set.
pub(super) fn check(book: &Book, listed: &BTreeMap<String, Value>) -> Vec<String> {
    let mut breaches = Vec::new();
    for (id, read) in listed {
        let Some(known) = book.people.customers.get(id) else {
            breaches.push(format!("{id} exists, but no client received it"));
            continue;
        };
        match parted(read) {
            Some((name, terms)) if terms == known.terms => {
                let sets = |key: &str, call: &Call| known.is_named_by(id, key, call);
                breaches.extend(lost_to(book, Some(&name), sets));
            }
            _ => breaches.push(format!("{id} was {} and is {read}", known.terms)),
        }
        if let Some(at) = &known.deleted_at {
            breaches.push(format!("{id} was deleted at {at} and is listed"));
        }
    }
    let lost = book.people.customers.iter();
    let lost = lost.filter(|(id, known)| known.deleted_at.is_none() && !listed.contains_key(*id));
    breaches.extend(lost.map(|(id, _)| format!("{id} was acknowledged and is lost")));
    breaches
}

impl Customer {
    /// Whether a write under this key sets the customer's name.
    fn is_named_by(&self, id: &str, key: &str, call: &Call) -> bool {
        key == self.made_by || call.writing.kind == Kind::Rename && call.writing.object == id
    }
}

/// Checks for one event of the creation, one per change, and one of a deletion, each with the customer of that time.
pub(super) fn check_events(book: &Book, id: &str, events: &[&Event]) -> Option<String> {
    let known = book.people.customers.get(id)?;
    let renamed = book.calls.iter().filter(|(key, call)| {
        **key != known.made_by && call.first.is_some() && known.is_named_by(id, key, call)
    });
    let named = |kind: &str, name: &str| (kind.to_owned(), json!(name));
    let mut wanted: Vec<_> = renamed
        .map(|(key, _)| named("customer.updated", key))
        .collect();
    wanted.push(named("customer.created", &known.made_by));
    wanted.extend(
        known
            .deleted_at
            .iter()
            .map(|at| named("customer.deleted", at)),
    );
    let mut told: Vec<_> = events
        .iter()
        .map(|event| (event.kind.clone(), tells(event, known)))
        .collect();
    let order = |(kind, told): &(String, Value)| (kind.clone(), told.to_string());
    wanted.sort_by_key(order);
    told.sort_by_key(order);
    (wanted != told).then(|| format!("{id} should have emitted {wanted:?}, and emitted {told:?}"))
}

/// The name in an event, or the instant of the deletion; `None` if the other fields are not the customer's.
fn tells(event: &Event, known: &Customer) -> Value {
    let data = event.data();
    let told = match parted(&data) {
        Some((name, terms)) if terms == known.terms => Some(name),
        None if data.get("deleted") == Some(&Value::Bool(true)) => field(&data, "deleted_at"),
        _ => None,
    };
    told.map_or(Value::Null, Value::from)
}
