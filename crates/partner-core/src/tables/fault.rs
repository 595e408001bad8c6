//! What is wrong with a file.

use std::fmt;

use super::Shape;
use crate::credential::masked;

/// One fault: where it stands, which key it is about, and what was expected there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableError {
    /// The line, from one.
    pub line: usize,
    /// The key with its tables, such as `partners.pools.tier`; empty for a fault of the syntax.
    pub key: String,
    /// What was expected. Never repeats a key or a secret that the file contains.
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

/// Every fault of a file, in the order of its lines. Never empty as an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Faults(pub Vec<TableError>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.0.iter().enumerate() {
            let gap = if at == 0 { "" } else { "\n" };
            write!(f, "{gap}{fault}")?;
        }
        Ok(())
    }
}

/// Collects faults while a file is read, so that the operator sees all of them at once.
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

    /// Every table the file may contain.
    pub(super) const fn shapes(&self) -> &'static [&'static Shape] {
        self.shapes
    }

    /// The line of a byte of the file.
    #[must_use]
    pub fn line(&self, at: usize) -> usize {
        let before = self.source.as_bytes().iter().take(at);
        before.filter(|byte| **byte == b'\n').count() + 1
    }

    /// What the file says from a byte on.
    pub(super) fn text_from(&self, at: usize) -> &'s str {
        self.source.get(at..).unwrap_or_default()
    }

    /// Notes a fault. A key or a secret that was written in the wrong place, be it as the name of
    /// a key, is masked.
    pub fn add(&mut self, at: usize, key: impl AsRef<str>, problem: impl AsRef<str>) {
        self.faults.push(TableError {
            line: self.line(at),
            key: masked(key.as_ref()),
            problem: masked(problem.as_ref()),
        });
    }

    /// How many faults there are so far.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.faults.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    pub(super) fn into_faults(mut self) -> Faults {
        self.faults.sort_by_key(|fault| fault.line);
        Faults(self.faults)
    }
}

/// A text of the file as a fault may show it: quoted, on one line, not too long.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    // Masked before it is cut: what is left of a credential might not be known as one.
    let text = masked(text);
    let cut: String = text.chars().take(LONGEST).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{cut:?}{more}")
}
