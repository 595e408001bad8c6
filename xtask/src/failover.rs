//! `cargo xtask failover`: runs the real programs on a Patroni pair of Postgres servers, and removes the primary under load.

use crate::programs::{self, PLAIN, SHIPPED};
use crate::suites::Outcome;
use crate::summary::Counts;
use crate::workspace::Workspace;
use crate::{Result, process, servers};

pub(crate) fn run(workspace: &Workspace, extra: &[String]) -> Result<Outcome> {
    servers::install(workspace, &["patroni", "etcd", "haproxy"])?;
    let plain = programs::build(workspace, PLAIN, &SHIPPED)?;
    let mut command = programs::call(workspace, PLAIN, "crash")?;
    command
        .arg("--plain")
        .arg(&plain)
        .arg("--armed")
        .arg(&plain)
        .arg("failover")
        .args(extra);
    let mut counts = Counts::default();
    let status = process::stream(&mut command, |line| {
        if let Some(found) = Counts::of_plain(line) {
            counts = found;
        }
    })?;
    Ok(Outcome::of(counts, status))
}
