//! `penstock completions`: prints a script that completes commands and flags in a shell.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::terminal::written;

/// The shell to write the script for.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// Name of the shell
    shell: Shell,
}

pub(crate) fn run(command: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        command.shell,
        &mut Arguments::command(),
        "penstock",
        &mut script,
    );
    let mut out = io::stdout().lock();
    written(out.write_all(&script).and_then(|()| out.flush()))?;
    Ok(ExitCode::SUCCESS)
}
