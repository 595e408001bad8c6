//! `cargo xtask crash`: the crash proof, against the programs built twice: as always, and with crash points.

use crate::programs::{self, ARMED, PLAIN, SHIPPED};
use crate::suites::Outcome;
use crate::summary::Counts;
use crate::workspace::Workspace;
use crate::{Result, process};

pub(crate) fn run(workspace: &Workspace, extra: &[String]) -> Result<Outcome> {
    // The crash proof runs its replicas on private servers.
    throwaway::install::missing()?;
    // The plain build comes last, so that the target folder is left with it.
    let armed = programs::build(workspace, ARMED, &SHIPPED)?;
    let plain = programs::build(workspace, PLAIN, &SHIPPED)?;
    let mut command = programs::call(workspace, PLAIN, "crash")?;
    command
        .arg("--plain")
        .arg(plain)
        .arg("--armed")
        .arg(armed)
        .args(extra);
    let mut counts = Counts::default();
    let status = process::stream(&mut command, |line| {
        if let Some(found) = Counts::of_plain(line) {
            counts = found;
        }
    })?;
    Ok(Outcome::of(counts, status))
}
