//! `cargo xtask crash` and `cargo xtask failover`: run the crash proof against builds of the programs, without and with crash points, or
//! on a Patroni pair of Postgres servers whose primary is removed under load.

use std::path::Path;

use crate::programs::{self, ARMED, PLAIN, SHIPPED};
use crate::suites::Outcome;
use crate::summary::Counts;
use crate::workspace::Workspace;
use crate::{Result, servers};

pub(crate) fn run(workspace: &Workspace, extra: &[String]) -> Result<Outcome> {
    // The plain programs are built last, so that the target folder contains them afterwards.
    let armed = programs::build(workspace, ARMED, &SHIPPED)?;
    let plain = programs::build(workspace, PLAIN, &SHIPPED)?;
    prove(workspace, &plain, &armed, extra)
}

pub(crate) fn failover(workspace: &Workspace, extra: &[String]) -> Result<Outcome> {
    servers::install(workspace, &["patroni", "etcd", "haproxy"])?;
    let plain = programs::build(workspace, PLAIN, &SHIPPED)?;
    let extra = [&["failover".to_owned()], extra].concat();
    prove(workspace, &plain, &plain, &extra)
}

/// Runs the crash proof. It stops and restarts the programs of these folders.
fn prove(workspace: &Workspace, plain: &Path, armed: &Path, extra: &[String]) -> Result<Outcome> {
    let mut command = programs::call(workspace, PLAIN, "crash")?;
    command.arg("--plain").arg(plain).arg("--armed").arg(armed);
    Outcome::of_program(command.args(extra), Counts::of_plain)
}
