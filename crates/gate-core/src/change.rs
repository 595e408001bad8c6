//! What an update does to one field: keep it, clear it or set it.

/// One field of an update.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Change<T = String> {
    /// The field was absent: the value stays.
    #[default]
    Leave,
    /// The field was null: the value is cleared.
    Clear,
    /// The field has a new value.
    Set(T),
}

impl<T> Change<T> {
    /// Whether a new value obeys a rule. Without a new value this is true.
    pub(crate) fn fits(&self, rule: impl Fn(&T) -> bool) -> bool {
        match self {
            Self::Leave | Self::Clear => true,
            Self::Set(value) => rule(value),
        }
    }

    /// The change with its value parsed into another type.
    pub(crate) fn read<U, E>(&self, read: impl FnOnce(&T) -> Result<U, E>) -> Result<Change<U>, E> {
        Ok(match self {
            Self::Leave => Change::Leave,
            Self::Clear => Change::Clear,
            Self::Set(value) => Change::Set(read(value)?),
        })
    }
}

impl<T: Clone> Change<T> {
    /// The value of the field after the change.
    pub(crate) fn over(&self, before: Option<&T>) -> Option<T> {
        match self {
            Self::Leave => before.cloned(),
            Self::Clear => None,
            Self::Set(value) => Some(value.clone()),
        }
    }
}
