//! What an update says of a field: nothing, null, or a value.

/// One field of an update.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Change<T = String> {
    /// Nothing: it stays.
    #[default]
    Leave,
    /// Null: it is cleared.
    Clear,
    /// A value.
    Set(T),
}

impl<T> Change<T> {
    /// Does a value that is set keep a rule?
    pub(crate) fn fits(&self, rule: impl Fn(&T) -> bool) -> bool {
        match self {
            Self::Leave | Self::Clear => true,
            Self::Set(value) => rule(value),
        }
    }

    /// The change with its value read as something else.
    pub(crate) fn read<U, E>(&self, read: impl FnOnce(&T) -> Result<U, E>) -> Result<Change<U>, E> {
        Ok(match self {
            Self::Leave => Change::Leave,
            Self::Clear => Change::Clear,
            Self::Set(value) => Change::Set(read(value)?),
        })
    }
}

impl<T: Clone> Change<T> {
    /// The field after the change.
    pub(crate) fn over(&self, before: Option<&T>) -> Option<T> {
        match self {
            Self::Leave => before.cloned(),
            Self::Clear => None,
            Self::Set(value) => Some(value.clone()),
        }
    }
}
