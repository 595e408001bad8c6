//! Pages of lists.

use kernel::Timestamp;

/// Which items of a list are wanted, by the instant of their creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CreatedRange {
    /// Only items created later than this instant.
    pub after: Option<Timestamp>,
    /// Only items created no later than this instant.
    pub before: Option<Timestamp>,
}

/// A page of a list.
#[derive(Debug, Clone)]
pub struct Page<T> {
    /// The items, newest first.
    pub items: Vec<T>,
    /// Whether further items follow.
    pub has_more: bool,
}

impl<T> Page<T> {
    /// Cuts at most `limit` + 1 rows to a page.
    #[must_use]
    pub fn cut(mut rows: Vec<T>, limit: u32) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        Self {
            items: rows,
            has_more,
        }
    }

    /// The empty page.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            items: Vec::new(),
            has_more: false,
        }
    }
}
