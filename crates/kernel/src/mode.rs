//! The mode of a process and of a row.

use std::fmt;

crate::closed_list! {
    /// Sandbox money or real money.
    ///
    /// A process runs in one mode. Every row that belongs to a partner has a mode, and so does every id and every API key.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Mode {
        /// The sandbox: no real money moves.
        Test = "test",
        /// Real money.
        Live = "live",
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
