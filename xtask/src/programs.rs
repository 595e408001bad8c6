//! Building programs, always as part of the whole workspace: cargo then unites the features that all crates and tests need
//! of a dependency, and builds it once for all tasks. A package by itself needs fewer features, which means another build.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace::Workspace;
use crate::{Result, process};

/// A way of building, and the features that make it.
pub(crate) type Way = (&'static str, &'static [&'static str]);

/// As an operator gets them, but for the profile.
pub(crate) const PLAIN: Way = ("plain", &[]);
/// With crash points.
pub(crate) const ARMED: Way = (
    "armed",
    &["pools-service/failpoints", "gate-service/failpoints"],
);

/// What an operator runs.
pub(crate) const SHIPPED: [&str; 3] = ["pools-service", "gate-service", "penstock"];
/// The Rust receiver of the conformance suites. It is built with every program: an example has cargo count what tests ask for.
pub(crate) const RECEIVER: &str = "verify_delivery";

/// Builds programs, and answers the folder that holds them, the receiver among them. All ways make programs of the same
/// name, so each way has a folder of its own, which a build in another way leaves alone.
pub(crate) fn build(workspace: &Workspace, way: Way, programs: &[&str]) -> Result<PathBuf> {
    let (_, features) = way;
    let target = workspace.target()?;
    let folder = folder(workspace, way)?;
    fs::create_dir_all(&folder)?;
    // Tasks run at the same time: what is copied is what this one has built.
    let turn = File::create(target.join("programs/turn"))?;
    turn.lock()?;
    let mut command = workspace.cargo();
    command.args(["build", "--locked", "--workspace", "--example", RECEIVER]);
    command.args(programs.iter().flat_map(|program| ["--bin", program]));
    command.args(features.iter().flat_map(|feature| ["--features", feature]));
    process::run(&mut command)?;
    let made = target.join("debug");
    for program in programs {
        put(&made.join(program), &folder.join(program))?;
    }
    put(
        &made.join("examples").join(RECEIVER),
        &folder.join(RECEIVER),
    )?;
    Ok(folder)
}

/// Where programs of a way are, once they are built.
pub(crate) fn folder(workspace: &Workspace, (name, _): Way) -> Result<PathBuf> {
    Ok(workspace.target()?.join("programs").join(name))
}

/// A call of one program, from the root.
pub(crate) fn call(workspace: &Workspace, way: Way, program: &str) -> Result<Command> {
    let folder = build(workspace, way, &[program])?;
    let mut command = Command::new(folder.join(program));
    command.current_dir(workspace.root());
    Ok(command)
}

/// In one step: a program that still runs keeps its old file, and at every instant there is one to start.
fn put(made: &Path, copy: &Path) -> Result<()> {
    let draft = copy.with_extension("draft");
    fs::copy(made, &draft)?;
    Ok(fs::rename(draft, copy)?)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Read;

    use super::put;

    #[test]
    fn running_program_survives_its_replacement() {
        let folder = tempfile::tempdir().unwrap();
        let (made, copy) = (folder.path().join("made"), folder.path().join("copy"));
        fs::write(&made, "old").unwrap();
        put(&made, &copy).unwrap();
        let mut running = File::open(&copy).unwrap();
        fs::write(&made, "new").unwrap();
        put(&made, &copy).unwrap();
        let mut kept = String::new();
        running.read_to_string(&mut kept).unwrap();
        assert_eq!(kept, "old");
        assert_eq!(fs::read_to_string(&copy).unwrap(), "new");
    }
}
