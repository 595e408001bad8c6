//! `cargo xtask crash`: runs the crash proof against two builds of the programs, without and with crash points.

use crate::programs::{self, ARMED, PLAIN, SHIPPED};
use crate::suites::Outcome;
use crate::summary::Counts;
use crate::workspace::Workspace;
use crate::{Result, process};

pub(crate) fn run(workspace: &Workspace, extra: &[String]) -> Result<Outcome> {
    // The plain programs are built last, so that the target folder contains them afterwards.
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
