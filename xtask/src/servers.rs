//! The private servers that suites need: the program `test-servers` of `tests/support` starts them and runs a command beside them.

use std::ffi::OsStr;
use std::process::Command;

use crate::Result;
use crate::programs::{self, PLAIN};
use crate::workspace::Workspace;

const PROGRAM: &str = "test-servers";

/// Whether the Postgres gets a pooler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pooler {
    Without,
    With,
}

/// The same command beside a private Postgres and Redis.
pub(crate) fn beside(workspace: &Workspace, pooler: Pooler, command: &Command) -> Result<Command> {
    let mut beside = programs::call(workspace, PLAIN, PROGRAM)?;
    beside.arg("run");
    if pooler == Pooler::With {
        beside.arg("--pooler");
    }
    beside.arg(command.get_program()).args(command.get_args());
    let set = command.get_envs();
    beside.envs(set.filter_map(|(name, value)| Some((name, value?))));
    Ok(beside)
}

/// Installs programs that suites run, where that is allowed.
pub(crate) fn install<S: AsRef<OsStr>>(workspace: &Workspace, names: &[S]) -> Result<()> {
    let mut command = programs::call(workspace, PLAIN, PROGRAM)?;
    crate::process::run(command.arg("install").args(names))
}
