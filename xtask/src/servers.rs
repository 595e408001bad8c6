//! The private servers of suites. The program `test-servers` of `tests/support` starts them and runs a command with access to them.

use std::ffi::OsStr;
use std::process::Command;

use crate::Result;
use crate::programs::{self, PLAIN};
use crate::workspace::Workspace;

const PROGRAM: &str = "test-servers";

/// Whether the Postgres server gets a pooler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pooler {
    Without,
    With,
}

/// Wraps a command, so that it runs with a private Postgres and a private Redis.
pub(crate) fn with_servers(
    workspace: &Workspace,
    pooler: Pooler,
    command: &Command,
) -> Result<Command> {
    let mut wrapped = programs::call(workspace, PLAIN, PROGRAM)?;
    wrapped.arg("run");
    if pooler == Pooler::With {
        wrapped.arg("--pooler");
    }
    wrapped.arg(command.get_program()).args(command.get_args());
    let set = command.get_envs();
    wrapped.envs(set.filter_map(|(name, value)| Some((name, value?))));
    Ok(wrapped)
}

/// Installs programs that suites run, if this process may install packages.
pub(crate) fn install<S: AsRef<OsStr>>(workspace: &Workspace, names: &[S]) -> Result<()> {
    let mut command = programs::call(workspace, PLAIN, PROGRAM)?;
    crate::process::run(command.arg("install").args(names))
}
