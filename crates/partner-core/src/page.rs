//! Pages of lists.

/// Some items of a list and whether more follow.
#[derive(Debug, Clone)]
pub struct Page<T> {
    /// The items, newest first.
    pub items: Vec<T>,
    /// Do more follow?
    pub has_more: bool,
}

impl<T> Page<T> {
    /// Cuts `limit` + 1 rows down to a page.
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

    /// A page of nothing.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            items: Vec::new(),
            has_more: false,
        }
    }
}
