//! Installs what is missing, where that is ours to do: as root, on Debian.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::geteuid;

use crate::process::{find, run};
use crate::{Doing, Error, Result};

/// A program, the package that holds it on Debian, and what to say elsewhere.
const NEEDED: [(&str, &str, &str); 3] = [
    ("initdb", "postgresql", "PostgreSQL 15 or newer"),
    ("pgbench", "postgresql", "PostgreSQL 15 or newer"),
    ("redis-server", "redis-server", "Redis 7 or newer"),
];

/// Denies every start of a service while packages are installed.
const POLICY: &str = "/usr/sbin/policy-rc.d";
/// Where Debian's packages are told not to make a cluster.
const CLUSTER: &str = "/etc/postgresql-common/createcluster.conf";

/// Installs what [`crate::Postgres`] and [`crate::Redis`] need and is not there. The packages neither make nor start a
/// server.
///
/// # Errors
/// Where something is missing and this is not root on Debian, saying what to install; where apt fails.
pub fn missing() -> Result<()> {
    let missing: Vec<_> = NEEDED
        .into_iter()
        .filter(|(program, ..)| find(program).is_none())
        .collect();
    let Some((program, _, package)) = missing.first().copied() else {
        return Ok(());
    };
    if !geteuid().is_root() || find("apt-get").is_none() {
        return Err(Error::Missing { program, package });
    }
    let mut packages: Vec<_> = missing.iter().map(|(_, package, _)| *package).collect();
    packages.dedup();
    without_services(|| apt(&packages))
}

fn apt(packages: &[&str]) -> Result<()> {
    let quiet = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").arg("-qq");
        command
    };
    run(quiet().arg("update"))?;
    run(quiet()
        .args(["install", "--yes", "--no-install-recommends"])
        .args(packages))
}

/// The policy that was there is put back; the setting about clusters stays, it is where an administrator would look.
fn without_services(install: impl FnOnce() -> Result<()>) -> Result<()> {
    if !Path::new(CLUSTER).exists() {
        write(CLUSTER, b"create_main_cluster = false\n", 0o644)?;
    }
    let before = fs::read(POLICY).ok();
    write(POLICY, b"#!/bin/sh\nexit 101\n", 0o755)?;
    let installed = install();
    match before {
        Some(text) => write(POLICY, &text, 0o755)?,
        None => fs::remove_file(POLICY).doing(format!("removing {POLICY}"))?,
    }
    installed
}

fn write(path: &str, text: &[u8], mode: u32) -> Result<()> {
    let doing = || format!("writing {path}");
    if let Some(folder) = Path::new(path).parent() {
        fs::create_dir_all(folder).doing(doing())?;
    }
    fs::write(path, text).doing(doing())?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).doing(doing())
}
