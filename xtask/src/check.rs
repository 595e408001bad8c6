//! `cargo xtask check`: every check that needs no suite. A check that fails does not stop the others.

use std::fs::DirEntry;
use std::path::PathBuf;
use std::process::Command;

use crate::ci::is_linting_build;
use crate::tidy;
use crate::workspace::Workspace;
use crate::{Result, migrations, openapi, process, rules, timed, tools, web};

/// A check and the name that selects it on the command line.
type Check = (&'static str, fn(&Workspace) -> Result<()>);

/// The cheapest check comes first.
const CHECKS: [Check; 11] = [
    ("fmt", |w| {
        process::run(w.cargo().args(["fmt", "--all", "--check"]))
    }),
    ("spelling", spelling),
    ("tidy", |w| tidy::run(w)),
    ("migrations", |w| migrations::run(w, false)),
    ("rules", |w| rules::run(w, true)),
    ("web", web::check),
    ("clippy", clippy),
    ("architecture", architecture),
    ("openapi", |w| openapi::run(w, true)),
    ("deny", deny),
    ("unused-dependencies", unused_dependencies),
];

/// Runs the named checks, or all. At the end it prints the command that repeats each failed check, then the names of the failed checks.
pub(crate) fn run(workspace: &Workspace, names: &[String]) -> Result<()> {
    let mut failed = Vec::new();
    for (name, check) in chosen(names)? {
        println!("== {name}");
        let (result, seconds) = timed(|| check(workspace));
        if let Err(error) = &result {
            eprintln!("xtask {name}: {error}");
            failed.push(name);
        }
        let verdict = if result.is_ok() { "done" } else { "FAILED" };
        println!("== {name} {verdict} ({seconds:.1} s)\n");
    }
    if failed.is_empty() {
        return Ok(());
    }
    for name in &failed {
        println!("cargo xtask check {name}");
    }
    Err(format!("failed: {}", failed.join(", ")).into())
}

fn chosen(names: &[String]) -> Result<Vec<Check>> {
    if names.is_empty() {
        return Ok(CHECKS.to_vec());
    }
    let find = |name: &String| {
        let found = CHECKS.into_iter().find(|(known, _)| known == name);
        found.ok_or_else(|| {
            let known = CHECKS.map(|(known, _)| known).join(", ");
            format!("there is no check `{name}`; the checks are {known}").into()
        })
    };
    names.iter().map(find).collect()
}

/// Lints the workspace. CI builds the tests with `clippy-driver`; a separate run only lints, which is faster after a change.
fn clippy(workspace: &Workspace) -> Result<()> {
    let mut linting = workspace.cargo();
    if is_linting_build() {
        linting.args(["test", "--workspace", "--locked", "--no-run"]);
    } else {
        linting.args(["clippy", "--workspace", "--locked", "--all-targets"]);
        linting.args(["--", "-D", "warnings"]);
    }
    process::run(&mut linting)?;
    // That build leaves out the code behind the feature `failpoints`.
    let mut armed = workspace.cargo();
    armed.args(["clippy", "--locked", "--all-targets"]);
    armed.args(["--package", "instruments", "--features", "failpoints"]);
    process::run(armed.args(["--", "-D", "warnings"]))
}

fn architecture(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.cargo();
    command.args(["test", "--locked", "--workspace", "--test", "architecture"]);
    process::run(&mut command)
}

/// Checks the spelling. `typos.toml` has the exceptions.
fn spelling(workspace: &Workspace) -> Result<()> {
    let mut command = Command::new(tools::find_or_install(workspace, &tools::TYPOS)?);
    process::run(command.current_dir(workspace.root()))
}

/// Checks licences, sources and bans without a network. Advisories need a fetched database; the weekly audit fetches one.
fn deny(workspace: &Workspace) -> Result<()> {
    let deny = tools::find_or_install(workspace, &tools::DENY)?;
    let check = || {
        let mut command = Command::new(&deny);
        command.current_dir(workspace.root());
        command.args(["--offline", "check"]);
        command
    };
    // `cargo deny` reads the licences of every target, so it needs the crates of every target.
    process::run(workspace.cargo().args(["fetch", "--locked", "--quiet"]))?;
    process::run(check().args(["bans", "licenses", "sources"]))?;
    if !has_advisory_database() {
        println!(
            "NOT CHECKED: there is no advisory database on this machine. \
             Fetch it with `cargo deny fetch db`; the weekly audit workflow uses a fresh one."
        );
        return Ok(());
    }
    process::run(check().arg("advisories"))
}

/// Finds dependencies that no source file names.
fn unused_dependencies(workspace: &Workspace) -> Result<()> {
    let machete = tools::find_or_install(workspace, &tools::MACHETE)?;
    let mut command = Command::new(machete);
    command.current_dir(workspace.root());
    process::run(command.args(workspace.members()?))
}

fn has_advisory_database() -> bool {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    // A fetch that failed leaves its lock file behind, so only a cloned database counts.
    let cloned = |entry: std::io::Result<DirEntry>| {
        entry.is_ok_and(|entry| entry.path().join(".git").exists())
    };
    let databases = home.map(|home| home.join("advisory-dbs"));
    databases
        .and_then(|path| path.read_dir().ok())
        .is_some_and(|mut entries| entries.any(cloned))
}

#[cfg(test)]
mod tests {
    use super::{CHECKS, chosen};

    #[test]
    fn checks_are_chosen_by_name_and_all_without_one() {
        let names = |chosen: &[&str]| {
            let chosen: Vec<String> = chosen.iter().map(|&name| name.to_owned()).collect();
            super::chosen(&chosen)
                .map(|found| found.iter().map(|(name, _)| *name).collect::<Vec<_>>())
        };
        assert_eq!(chosen(&[]).unwrap().len(), CHECKS.len());
        assert_eq!(names(&["tidy", "fmt"]).unwrap(), ["tidy", "fmt"]);
        let unknown = names(&["lint"]).unwrap_err().to_string();
        assert!(unknown.starts_with("there is no check `lint`; the checks are fmt, spelling"));
    }
}
