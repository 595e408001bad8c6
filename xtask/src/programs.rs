//! Builds programs, always as part of the whole workspace. Cargo then unites the features that all crates and tests need from a dependency,
//! and builds the dependency once for all tasks. A single package needs fewer features, which would cause another build.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace::Workspace;
use crate::{Result, process};

/// A variant of the build: its name and its features.
pub(crate) type Variant = (&'static str, &'static [&'static str]);

/// Programs as an operator gets them, except for the profile.
pub(crate) const PLAIN: Variant = ("plain", &[]);
/// Programs with crash points.
pub(crate) const ARMED: Variant = (
    "armed",
    &["pools-service/failpoints", "gate-service/failpoints"],
);

/// The programs that an operator runs.
pub(crate) const SHIPPED: [&str; 3] = ["pools-service", "gate-service", "penstock"];
/// The Rust receiver of the conformance suites. It is built with every program, because cargo builds an example with the features that
/// tests need.
pub(crate) const RECEIVER: &str = "verify_delivery";

/// Builds programs and the receiver, and returns their folder. The programs of all variants have the same names, so each variant has its
/// own folder.
pub(crate) fn build(workspace: &Workspace, variant: Variant, programs: &[&str]) -> Result<PathBuf> {
    let (_, features) = variant;
    let target = workspace.target()?;
    let folder = folder(workspace, variant)?;
    fs::create_dir_all(&folder)?;
    // Tasks run at the same time. The lock makes sure that this task copies the programs that it has built.
    let lock = File::create(target.join("programs/turn"))?;
    lock.lock()?;
    let mut command = workspace.cargo();
    command.args(["build", "--locked", "--workspace", "--example", RECEIVER]);
    command.args(programs.iter().flat_map(|program| ["--bin", program]));
    command.args(features.iter().flat_map(|feature| ["--features", feature]));
    process::run(&mut command)?;
    let built = target.join("debug");
    for program in programs {
        replace(&built.join(program), &folder.join(program))?;
    }
    replace(
        &built.join("examples").join(RECEIVER),
        &folder.join(RECEIVER),
    )?;
    Ok(folder)
}

/// The folder of the programs of a variant.
pub(crate) fn folder(workspace: &Workspace, (name, _): Variant) -> Result<PathBuf> {
    Ok(workspace.target()?.join("programs").join(name))
}

/// Builds a program and returns a call of it from the root.
pub(crate) fn call(workspace: &Workspace, variant: Variant, program: &str) -> Result<Command> {
    let folder = build(workspace, variant, &[program])?;
    let mut command = Command::new(folder.join(program));
    command.current_dir(workspace.root());
    Ok(command)
}

/// Replaces a copy atomically. A running program keeps its old file, and a file to start exists at every instant.
fn replace(built: &Path, copy: &Path) -> Result<()> {
    let draft = copy.with_extension("draft");
    fs::copy(built, &draft)?;
    Ok(fs::rename(draft, copy)?)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Read;

    use super::replace;

    #[test]
    fn running_program_survives_its_replacement() {
        let folder = tempfile::tempdir().unwrap();
        let (made, copy) = (folder.path().join("made"), folder.path().join("copy"));
        fs::write(&made, "old").unwrap();
        replace(&made, &copy).unwrap();
        let mut running = File::open(&copy).unwrap();
        fs::write(&made, "new").unwrap();
        replace(&made, &copy).unwrap();
        let mut kept = String::new();
        running.read_to_string(&mut kept).unwrap();
        assert_eq!(kept, "old");
        assert_eq!(fs::read_to_string(&copy).unwrap(), "new");
    }
}
