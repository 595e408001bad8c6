//! What an update does to one field: keep it, clear it or set it.

use serde_json::{Value, json};

/// One field of an update.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Change<T = String> {
    /// The field was absent: the value stays.
    #[default]
    Keep,
    /// The field was null: the value is cleared.
    Clear,
    /// The field has a new value.
    Set(T),
}

impl Change {
    /// The change in the fingerprint of a request, in which an absent field differs from a null one.
    pub(crate) fn in_fingerprint(&self) -> Value {
        match self {
            Self::Keep => json!([]),
            Self::Clear => Value::Null,
            Self::Set(value) => json!(value),
        }
    }
}

impl<T> Change<T> {
    /// Whether the change is valid under a rule for values. A change without a value is valid.
    pub(crate) fn is_valid_by(&self, rule: impl Fn(&T) -> bool) -> bool {
        match self {
            Self::Keep | Self::Clear => true,
            Self::Set(value) => rule(value),
        }
    }

    /// The change with its value parsed into another type.
    pub(crate) fn try_map<U, E>(
        &self,
        parse: impl FnOnce(&T) -> Result<U, E>,
    ) -> Result<Change<U>, E> {
        Ok(match self {
            Self::Keep => Change::Keep,
            Self::Clear => Change::Clear,
            Self::Set(value) => Change::Set(parse(value)?),
        })
    }
}

impl<T: Clone> Change<T> {
    /// The value of the field after the change.
    pub(crate) fn apply_to(&self, before: Option<&T>) -> Option<T> {
        match self {
            Self::Keep => before.cloned(),
            Self::Clear => None,
            Self::Set(value) => Some(value.clone()),
        }
    }
}
