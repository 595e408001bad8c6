//! The errors of a file.

use std::fmt;

use super::Shape;
use crate::credential::masked;

/// One error: its line, its key, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableError {
    /// The line, starting at 1.
    pub line: usize,
    /// The key with its tables, such as `partners.pools.tier`; empty for a syntax error.
    pub key: String,
    /// What was expected. It never repeats a key or a secret of the file.
    pub problem: String,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.problem)
    }
}

/// All errors of a file, in the order of its lines. Never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Faults(pub Vec<TableError>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, error) in self.0.iter().enumerate() {
            let gap = if at == 0 { "" } else { "\n" };
            write!(f, "{gap}{error}")?;
        }
        Ok(())
    }
}

/// Collects the errors while a file is read, so that the operator sees all of them at once.
#[derive(Debug)]
pub struct Sink<'s> {
    source: &'s str,
    shapes: &'static [&'static Shape],
    faults: Vec<TableError>,
}

impl<'s> Sink<'s> {
    pub(super) const fn new(source: &'s str, shapes: &'static [&'static Shape]) -> Self {
        Self {
            source,
            shapes,
            faults: Vec::new(),
        }
    }

    /// All tables that the file may contain.
    pub(super) const fn shapes(&self) -> &'static [&'static Shape] {
        self.shapes
    }

    /// The line of a byte offset in the file.
    #[must_use]
    pub fn line(&self, at: usize) -> usize {
        let before = self.source.as_bytes().iter().take(at);
        before.filter(|byte| **byte == b'\n').count() + 1
    }

    /// The text of the file from a byte offset on.
    pub(super) fn text_from(&self, at: usize) -> &'s str {
        self.source.get(at..).unwrap_or_default()
    }

    /// Records an error. Masks keys and secrets that were written in the wrong place, also as the name of a key.
    pub fn add(&mut self, at: usize, key: impl AsRef<str>, problem: impl AsRef<str>) {
        self.faults.push(TableError {
            line: self.line(at),
            key: masked(key.as_ref()),
            problem: masked(problem.as_ref()),
        });
    }

    /// The number of errors so far.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.faults.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    pub(super) fn into_faults(mut self) -> Faults {
        self.faults.sort_by_key(|error| error.line);
        Faults(self.faults)
    }
}

/// A text of the file in the form of error messages: quoted, on one line, truncated.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    // Mask before truncating: the rest of a truncated credential might not be recognized.
    let text = masked(text);
    let cut: String = text.chars().take(LONGEST).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{cut:?}{more}")
}
