//! `cargo xtask crash`: the crash proof, against the programs built twice: as always, and with crash points.

use std::fs;
use std::path::{Path, PathBuf};

use crate::suites::Outcome;
use crate::summary::Counts;
use crate::workspace::Workspace;
use crate::{Result, process};

const PROGRAMS: [&str; 2] = ["pools-service", "penstock"];
const ARMED: [&str; 2] = ["--features", "pools-service/failpoints"];

pub(crate) fn run(workspace: &Workspace, extra: &[String]) -> Result<Outcome> {
    // Replicas stand on servers of the proof's own.
    throwaway::install::missing()?;
    let target = workspace.target()?;
    // The plain build comes last, so that the target folder is left with it.
    let armed = armed(workspace, &target)?;
    let plain = build(workspace, &target, "plain", &[])?;
    let mut command = workspace.cargo();
    command
        .args(["run", "--quiet", "--locked", "--package", "crash", "--"])
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

/// The programs with crash points; answers their folder. Leaves them in the target folder too.
pub(crate) fn armed(workspace: &Workspace, target: &Path) -> Result<PathBuf> {
    build(workspace, target, "armed", &ARMED)
}

/// Both builds make programs of the same name, so each is copied to a folder of its own.
fn build(workspace: &Workspace, target: &Path, name: &str, features: &[&str]) -> Result<PathBuf> {
    let mut command = workspace.cargo();
    command.args(["build", "--locked", "--bins"]);
    for program in PROGRAMS {
        command.args(["--package", program]);
    }
    process::run(command.args(features))?;
    let folder = target.join("crash").join(name);
    fs::create_dir_all(&folder)?;
    for program in PROGRAMS {
        let copy = folder.join(program);
        // A program that still runs keeps its old file.
        if copy.exists() {
            fs::remove_file(&copy)?;
        }
        fs::copy(target.join("debug").join(program), copy)?;
    }
    Ok(folder)
}
