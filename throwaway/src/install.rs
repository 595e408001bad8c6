//! Installs what is missing, where that is ours to do: as root, on Debian.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::geteuid;

use crate::process::{find, run};
use crate::{Doing, Error, Result};

/// A program that is installed if it is missing.
#[derive(Debug, Clone, Copy)]
pub struct Needed {
    /// The file that is looked for on `PATH`.
    pub program: &'static str,
    /// The package of Debian that holds it.
    pub package: &'static str,
    /// What to install elsewhere, with the version.
    pub wanted: &'static str,
}

/// What [`crate::Postgres`] and [`crate::Redis`] run.
const SERVERS: [Needed; 3] = [
    Needed {
        program: "initdb",
        package: "postgresql",
        wanted: "PostgreSQL 15 or newer",
    },
    Needed {
        program: "pgbench",
        package: "postgresql",
        wanted: "PostgreSQL 15 or newer",
    },
    Needed {
        program: "redis-server",
        package: "redis-server",
        wanted: "Redis 7 or newer",
    },
];

/// Denies every start of a service while packages are installed.
const POLICY: &str = "/usr/sbin/policy-rc.d";
/// Where Debian's packages are told not to make a cluster.
const CLUSTER: &str = "/etc/postgresql-common/createcluster.conf";

/// Installs what [`crate::Postgres`] and [`crate::Redis`] need and is missing. The packages neither make nor start a
/// server.
///
/// # Errors
/// As [`install`].
pub fn missing() -> Result<()> {
    install(&SERVERS)
}

/// Installs the programs that are missing, without starting a service.
///
/// # Errors
/// If a program is missing and this is not root on Debian, saying what to install; if apt fails.
pub fn install(needed: &[Needed]) -> Result<()> {
    let is_missing = |needed: &&Needed| find(needed.program).is_none();
    let missing: Vec<&Needed> = needed.iter().filter(is_missing).collect();
    let Some(first) = missing.first() else {
        return Ok(());
    };
    if !geteuid().is_root() || find("apt-get").is_none() {
        return Err(Error::Missing {
            program: first.program,
            package: first.wanted,
        });
    }
    let mut packages: Vec<_> = missing.iter().map(|needed| needed.package).collect();
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
