//! Installs what is missing, where that is ours to do: as root, on Debian.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::geteuid;

use crate::servers::process::{find, run};
use crate::servers::{Doing, Error, Result};

/// A program that is installed if it is missing.
struct Needed {
    /// The file that is looked for on `PATH`.
    program: &'static str,
    /// The package of Debian that holds it.
    package: &'static str,
    /// What to install elsewhere, with the version.
    wanted: &'static str,
}

/// Every program that a suite may ask for; the first [`SERVERS`] belong to the servers.
const KNOWN: [Needed; 6] = [
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
    Needed {
        program: "zsh",
        package: "zsh",
        wanted: "zsh",
    },
    Needed {
        program: "curl",
        package: "curl",
        wanted: "curl",
    },
    Needed {
        program: "chromium",
        package: "chromium",
        wanted: "Chromium 110 or newer",
    },
];
/// How many of [`KNOWN`] the servers run.
const SERVERS: usize = 3;

/// Denies every start of a service while packages are installed.
const POLICY: &str = "/usr/sbin/policy-rc.d";
/// Where Debian's packages are told not to make a cluster.
const CLUSTER: &str = "/etc/postgresql-common/createcluster.conf";

/// Installs what [`crate::servers::Postgres`] and [`crate::servers::Redis`] need and is missing. The packages neither make nor start a
/// server.
///
/// # Errors
/// If a program is missing and this is not root on Debian, saying what to install; if apt fails.
pub fn servers() -> Result<()> {
    install(KNOWN.iter().take(SERVERS))
}

/// Installs those of the named programs that are missing.
///
/// # Errors
/// As [`servers`], and for a program that no suite asks for.
pub fn by_name(programs: &[&str]) -> Result<()> {
    let unknown = |name: &&&str| KNOWN.iter().all(|known| known.program != **name);
    if let Some(name) = programs.iter().find(unknown) {
        return Err(Error::Unknown((*name).to_owned()));
    }
    install(
        KNOWN
            .iter()
            .filter(|known| programs.contains(&known.program)),
    )
}

/// Installs the programs that are missing, without starting a service.
fn install<'a>(needed: impl Iterator<Item = &'a Needed>) -> Result<()> {
    let missing: Vec<&Needed> = needed
        .filter(|needed| find(needed.program).is_none())
        .collect();
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
