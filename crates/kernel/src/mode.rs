//! The mode of a process and of a row.

use std::fmt;

/// Sandbox money or real money.
///
/// A process runs in one mode. Every row that belongs to a partner has a mode, and so does every id and every API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// The sandbox: no real money moves.
    Test,
    /// Real money.
    Live,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 2] = [Self::Test, Self::Live];

    /// The name of the mode in ids, keys, configuration and rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Live => "live",
        }
    }

    /// Parses the name that [`Mode::as_str`] returns.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
