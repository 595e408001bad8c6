//! Private Postgres and Redis servers for tests and benchmarks, alone or as a pair that Patroni keeps.
//!
//! Each is started from the installed programs on a free port of the loopback, in a temporary folder, as an
//! unprivileged user, and is gone when it is dropped. Servers that were not started here are never touched.
//! Nothing is downloaded, except by [`install`], which a task calls before it needs them.

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

/// What this crate answers.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program is not on this machine.
    #[error("`{program}` is neither in PATH nor in /usr/lib/postgresql/*/bin: install {package}")]
    Missing {
        /// The program.
        program: &'static str,
        /// What holds it, for people.
        package: &'static str,
    },
    /// No suite runs this program.
    #[error("`{0}` is not a program that the suites need")]
    Unknown(String),
    /// A program ended although it should not have, or ended badly.
    #[error("`{program}` {what}:\n{output}")]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        what: String,
        /// What it said.
        output: String,
    },
    /// It did not answer in time.
    #[error("`{program}` does not answer:\n{output}")]
    Silent {
        /// The program.
        program: String,
        /// What it said.
        output: String,
    },
    /// The machine refused something.
    #[error("{doing}: {source}")]
    Machine {
        /// What was being done.
        doing: String,
        /// What the machine said.
        #[source]
        source: io::Error,
    },
}

/// Names what was being done when the machine refused.
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
