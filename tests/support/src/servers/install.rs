//! Installs missing programs, as root on Debian only.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::geteuid;

use crate::servers::process::{find, run};
use crate::servers::{Doing, Error, Result};

/// A program that is installed if it is missing.
struct Needed {
    /// The file that is searched on `PATH`.
    program: &'static str,
    /// The Debian package with the program.
    package: &'static str,
    /// What to install on other systems, with the version.
    wanted: &'static str,
}

impl Needed {
    const fn new(program: &'static str, package: &'static str, wanted: &'static str) -> Self {
        Self {
            program,
            package,
            wanted,
        }
    }
}

/// Every program that a suite may require; the first [`SERVERS`] belong to the servers.
const KNOWN: [Needed; 16] = [
    Needed::new("initdb", "postgresql", "PostgreSQL 15 or newer"),
    Needed::new("pgbench", "postgresql", "PostgreSQL 15 or newer"),
    Needed::new("redis-server", "redis-server", "Redis 7 or newer"),
    Needed::new("zsh", "zsh", "zsh"),
    Needed::new("curl", "curl", "curl"),
    Needed::new("logrotate", "logrotate", "logrotate"),
    Needed::new("sqlite3", "sqlite3", "the command line of SQLite"),
    Needed::new("chromium", "chromium", "Chromium 110 or newer"),
    Needed::new(
        "chromium-headless-shell",
        "chromium-headless-shell",
        "Chromium 110 or newer, without its windows, on PATH as chromium-headless-shell",
    ),
    Needed::new(
        "firefox-esr",
        "firefox-esr",
        "Firefox 128 or newer, on PATH as firefox-esr",
    ),
    Needed::new(
        "WebKitWebDriver",
        "webkit2gtk-driver",
        "WebKitGTK 2.40 or newer with WebKitWebDriver and MiniBrowser",
    ),
    Needed::new("Xvfb", "xvfb", "the X server Xvfb"),
    Needed::new("patroni", "patroni", "Patroni 3 or newer"),
    Needed::new("etcd", "etcd-server", "etcd 3.4 or newer"),
    Needed::new("haproxy", "haproxy", "HAProxy 2.6 or newer"),
    Needed::new("nginx", "nginx", "nginx 1.18 or newer"),
];
/// Number of the [`KNOWN`] programs that the servers run.
const SERVERS: usize = 3;

/// Script that forbids service starts while packages are installed.
const POLICY: &str = "/usr/sbin/policy-rc.d";
/// Setting that keeps Debian's packages from creating a cluster.
const CLUSTER: &str = "/etc/postgresql-common/createcluster.conf";

/// Installs the programs of [`crate::servers::Postgres`] and [`crate::servers::Redis`] that are missing.
///
/// The packages neither create nor start a server.
///
/// # Errors
/// Names what to install if a program is missing and the caller is not root on Debian. Fails if apt fails.
pub fn servers() -> Result<()> {
    install(KNOWN.iter().take(SERVERS))
}

/// Installs the named programs that are missing.
///
/// # Errors
/// Like [`servers`], and if no suite uses a program.
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

/// Restores the previous policy. The setting about clusters stays, because an administrator would look there.
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
