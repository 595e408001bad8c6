//! Private Postgres and Redis servers for tests and benchmarks, alone or as a pair that Patroni keeps.
//!
//! A server runs the installed programs on a free port of the loopback, in a temporary folder, as an unprivileged user, and ends
//! on drop. Servers that were not started here are never touched. Only [`install`] downloads anything; tasks call it in advance.

pub mod install;
mod patroni;
mod pgbouncer;
mod postgres;
mod process;
mod redis;

use std::io;

pub use patroni::{Patroni, Route, missing_for_patroni};
pub use pgbouncer::Pgbouncer;
pub use postgres::{Postgres, Stop};
pub use redis::Redis;

/// Result of an operation on a test server.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation on a test server failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program is not installed.
    #[error("`{program}` is neither in PATH nor in /usr/lib/postgresql/*/bin: install {package}")]
    Missing {
        program: &'static str,
        /// The package with the program, for the error message.
        package: &'static str,
    },
    /// No suite uses this program.
    #[error("`{0}` is not a program that the suites need")]
    Unknown(String),
    /// A program ended unexpectedly or with an error.
    #[error("`{program}` {what}:\n{output}")]
    Failed {
        program: String,
        /// How it ended.
        what: String,
        output: String,
    },
    /// A program did not respond in time.
    #[error("`{program}` does not respond:\n{output}")]
    Silent { program: String, output: String },
    /// The operating system reported an error.
    #[error("{doing}: {source}")]
    Machine {
        /// The operation.
        doing: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// Adds the operation to a system error.
trait Doing<T> {
    fn doing(self, what: impl Into<String>) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl Into<String>) -> Result<T> {
        self.map_err(|source| Error::Machine {
            doing: what.into(),
            source,
        })
    }
}
