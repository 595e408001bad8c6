//! Digests of states: 64 bits of everything that can still make a difference.

use std::fmt::{self, Debug, Write};
use std::hash::{DefaultHasher, Hasher};

/// Folds facts into one number.
#[derive(Clone)]
pub(crate) struct Digest(DefaultHasher);

impl Digest {
    pub(crate) fn new() -> Self {
        Self(DefaultHasher::new())
    }

    /// Adds a fact by its `Debug` text.
    pub(crate) fn add(&mut self, fact: &impl Debug) {
        write!(self, "{fact:?};").unwrap();
    }

    pub(crate) fn finish(&self) -> u64 {
        self.0.finish()
    }
}

impl fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
