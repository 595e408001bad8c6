//! `cargo xtask ci` runs exactly what CI runs, the cheapest checks first. `cargo xtask proof` runs the longer suites.
//!
//! `clippy-driver` compiles every build, so the tested build is the linted one and nothing is compiled twice.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::parallel::{self, Row};
use crate::suites::Outcome;
use crate::workspace::Workspace;
use crate::{Result, check, suites, timed};

/// The suites that run at the same time. Both wait more than they compute.
const SUITES: [Row; 2] = [
    Row {
        tasks: &["conformance"],
        is_niced: false,
    },
    Row {
        tasks: &["crash"],
        is_niced: false,
    },
];

/// The longer suites. The first row measures durations, so the second row runs with a lower priority.
const PROOF: [Row; 2] = [
    Row {
        tasks: &[
            "failover --short",
            "crash campaigns",
            "bench --quick",
            "browsers",
            "alarms",
        ],
        is_niced: false,
    },
    Row {
        tasks: &["model", "mutations --all", "fuzz", "unread-log", "doc"],
        is_niced: true,
    },
];

/// The variables that make cargo call `clippy-driver` for members of the workspace and deny its warnings.
pub(crate) const LINTING: [(&str, &str); 2] = [
    ("RUSTC_WORKSPACE_WRAPPER", "clippy-driver"),
    (
        "CLIPPY_ARGS",
        "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__",
    ),
];

/// Runs what every change must pass.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    linting(workspace, "ci", |workspace| {
        check::run(workspace, &[])?;
        let mut all = step("test", || suites::rust(workspace, &[]))?;
        if all.code == 0 {
            let folder = folder(workspace)?;
            all += step("conformance, crash", || parallel::run(&SUITES, &folder))?;
        }
        Ok(all)
    })
}

/// Runs the suites that take too long for every change, or depend on how busy the machine is.
pub(crate) fn proof(workspace: &Workspace) -> Result<ExitCode> {
    linting(workspace, "proof", |workspace| {
        let folder = folder(workspace)?;
        step("proof", || parallel::run(&PROOF, &folder))
    })
}

/// Runs the steps of a task with clippy as the compiler. The variables must reach this program and every program that it starts, so the
/// program starts a copy of itself with them. It starts a copy because the first build by clippy replaces the file of this program.
fn linting(
    workspace: &Workspace,
    task: &str,
    steps: impl FnOnce(&Workspace) -> Result<Outcome>,
) -> Result<ExitCode> {
    let folder = folder(workspace)?;
    let copy = folder.join(format!("xtask{}", std::env::consts::EXE_SUFFIX));
    let this = std::env::current_exe()?.canonicalize()?;
    // The path of the folder may contain a symbolic link.
    if copy.canonicalize().is_ok_and(|copy| copy == this) {
        let all = steps(workspace)?;
        // The counts come last, for readers who see only the end of the output.
        println!("{}", all.counts);
        return Ok(ExitCode::from(all.code));
    }
    std::fs::create_dir_all(&folder)?;
    std::fs::copy(this, &copy)?;
    let status = Command::new(copy).arg(task).envs(LINTING).status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}

/// The folder of the copy and of the logs of parallel tasks.
fn folder(workspace: &Workspace) -> Result<PathBuf> {
    Ok(workspace.target()?.join("ci"))
}

/// Returns whether the environment makes clippy the compiler.
pub(crate) fn is_linting_build() -> bool {
    let [(wrapper, driver), _] = LINTING;
    std::env::var_os(wrapper).is_some_and(|set| set == driver)
}

/// Runs a step of tests and prints how long it took.
fn step(name: &str, run: impl FnOnce() -> Result<Outcome>) -> Result<Outcome> {
    println!("== {name}");
    let (outcome, seconds) = timed(run);
    let outcome = outcome?;
    let verdict = if outcome.code == 0 { "done" } else { "FAILED" };
    println!("== {name} {verdict} ({seconds:.1} s)\n");
    Ok(outcome)
}
