//! Customers in the responses to clients.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::writing::Writing;
use crate::history::Kind;
use crate::http::Answer;

/// A partner's customers.
#[derive(Debug, Default)]
pub(crate) struct People {
    pub(crate) customers: BTreeMap<String, Customer>,
    /// Customers that clients share, newest last.
    pub(crate) hot: Vec<String>,
    /// The customer of each person.
    made: BTreeMap<String, String>,
}

/// A customer.
#[derive(Debug)]
pub(crate) struct Customer {
    /// The customer as created: only its first name and the instant of its last change may differ later.
    pub(crate) terms: Value,
    /// The key of its creation, which was its first name.
    pub(crate) made_by: String,
    /// Instant of the deletion, from the response.
    pub(crate) deleted_at: Option<String>,
}

impl People {
    /// Records the first response to a write. Returns a contradiction.
    pub(super) fn learn(&mut self, writing: &Writing, answer: &Answer) -> Option<String> {
        let told = match writing.kind {
            Kind::Enrol => self.made(writing, answer),
            Kind::Rename => self.renamed(writing, answer),
            _ => self.deleted(writing, answer),
        };
        let said = || format!("{writing:?} received {answer:?}");
        told.map_err(|fault| fault.unwrap_or_else(said)).err()
    }

    fn made(&mut self, writing: &Writing, answer: &Answer) -> Result<(), Option<String>> {
        let key = writing.key.as_deref();
        let (name, terms) = parted(&answer.json()).ok_or(None)?;
        let id = answer.text("id").ok_or(None)?;
        if Some(name.as_str()) != key {
            return Err(None);
        }
        let customer = Customer {
            terms,
            made_by: name,
            deleted_at: None,
        };
        self.customers.insert(id.clone(), customer);
        self.hot.push(id.clone());
        match self.made.insert(writing.object.clone(), id.clone()) {
            Some(other) => Err(Some(format!("{} is {other} and {id}", writing.object))),
            None => Ok(()),
        }
    }

    fn renamed(&self, writing: &Writing, answer: &Answer) -> Result<(), Option<String>> {
        let known = self.customers.get(&writing.object).ok_or(None)?;
        let (name, terms) = parted(&answer.json()).ok_or(None)?;
        let sound = Some(&name) == writing.key.as_ref() && terms == known.terms;
        sound.then_some(()).ok_or(None)
    }

    fn deleted(&mut self, writing: &Writing, answer: &Answer) -> Result<(), Option<String>> {
        let known = self.customers.get_mut(&writing.object).ok_or(None)?;
        let at = answer.text("deleted_at").ok_or(None)?;
        let first = known.deleted_at.get_or_insert_with(|| at.clone());
        (*first == at).then_some(()).ok_or(None)
    }

    /// Whether the customer is known to be deleted.
    pub(crate) fn gone(&self, id: &str) -> bool {
        let known = self.customers.get(id);
        known.is_some_and(|customer| customer.deleted_at.is_some())
    }
}

/// Splits a customer into its first name and the fields that never change.
pub(crate) fn parted(read: &Value) -> Option<(String, Value)> {
    let mut terms = read.clone();
    let fields = terms.as_object_mut()?;
    let name = fields.remove("first_name")?.as_str()?.to_owned();
    fields.remove("updated_at")?;
    Some((name, terms))
}
