//! `cargo xtask ci`: exactly what CI runs, in the order that finds the cheap faults first.
//!
//! Every build of it is made by clippy, which is the compiler with more to say: what is linted is what is tested, and nothing is
//! compiled once to be looked at and once more to be run.

use std::fs::DirEntry;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::parallel::{self, Row};
use crate::suites::Outcome;
use crate::summary::Counts;
use crate::workspace::Workspace;
use crate::{Result, commit_message, migrations, openapi, process, rules, suites, tidy, tools};

/// A step that tests answers how many; the others answer nothing.
type Step = fn(&Workspace) -> Result<Option<Outcome>>;

/// The first two wait more than they compute; the third computes meanwhile.
const PARALLEL: [Row; 3] = [
    Row {
        tasks: &["conformance"],
        gives_way: false,
    },
    Row {
        tasks: &["crash", "failover --short"],
        gives_way: false,
    },
    Row {
        tasks: &["model", "mutations", "doc"],
        gives_way: true,
    },
];

const STEPS: [(&str, Step); 13] = [
    ("fmt", |w| {
        done(process::run(w.cargo().args(["fmt", "--all", "--check"])))
    }),
    ("commit message", |w| done(commit_message::check_head(w))),
    ("spelling", |w| done(spelling(w))),
    ("clippy", |w| done(clippy(w))),
    ("deny", |w| done(deny(w))),
    ("unused dependencies", |w| done(unused_dependencies(w))),
    ("tidy", |w| done(tidy::run(w, &tidy::Task::Check))),
    ("architecture", |w| done(architecture(w))),
    ("migrations", |w| done(migrations::run(w, false))),
    ("openapi", |w| done(openapi::run(w, true))),
    ("rules", |w| done(rules::run(w, true))),
    ("test", |w| suites::rust(w, &[]).map(Some)),
    ("conformance, crash, failover, model, mutations, doc", |w| {
        parallel::run(&PARALLEL, &folder(w)?).map(Some)
    }),
];

/// What cargo calls instead of the compiler for members of the workspace, and what that adds.
pub(crate) const LINTING: [(&str, &str); 2] = [
    ("RUSTC_WORKSPACE_WRAPPER", "clippy-driver"),
    (
        "CLIPPY_ARGS",
        "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__",
    ),
];

/// The environment is this program's and of all that it starts, so it starts itself with it. It starts a copy, because the first
/// build by clippy puts another program into this one's place.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    let folder = folder(workspace)?;
    let copy = folder.join(format!("xtask{}", std::env::consts::EXE_SUFFIX));
    let this = std::env::current_exe()?.canonicalize()?;
    // The folder may be named by way of a link.
    if copy.canonicalize().is_ok_and(|copy| copy == this) {
        return steps(workspace);
    }
    std::fs::create_dir_all(&folder)?;
    std::fs::copy(this, &copy)?;
    let status = Command::new(copy).arg("ci").envs(LINTING).status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}

/// Where the copy is and what runs at once writes.
fn folder(workspace: &Workspace) -> Result<PathBuf> {
    Ok(workspace.target()?.join("ci"))
}

fn steps(workspace: &Workspace) -> Result<ExitCode> {
    let mut counts = Counts::default();
    let mut code = 0;
    for (name, step) in STEPS {
        println!("== {name}");
        let start = now();
        let result = step(workspace);
        let seconds = start.elapsed().as_secs_f32();
        if let Ok(Some(outcome)) = &result {
            counts += outcome.counts;
            code = outcome.code;
        }
        if let Err(error) = &result {
            eprintln!("xtask {name}: {error}");
            code = 1;
        }
        let verdict = if code == 0 { "done" } else { "FAILED" };
        println!("== {name} {verdict} ({seconds:.1} s)\n");
        if code != 0 {
            break;
        }
    }
    // The counts come last, for readers who look only at the end of the output.
    if counts != Counts::default() {
        println!("{counts}");
    }
    Ok(ExitCode::from(code))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a step's duration is shown to people and decides nothing"
)]
fn now() -> Instant {
    Instant::now()
}

fn done(result: Result<()>) -> Result<Option<Outcome>> {
    result.map(|()| None)
}

fn clippy(workspace: &Workspace) -> Result<()> {
    let mut building = workspace.cargo();
    process::run(building.args(["test", "--workspace", "--locked", "--no-run"]))?;
    // What crash points do is left out of that build.
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

/// The rest is configured in `typos.toml`.
fn spelling(workspace: &Workspace) -> Result<()> {
    let mut command = Command::new(tools::find_or_install(workspace, &tools::TYPOS)?);
    process::run(command.current_dir(workspace.root()))
}

/// Checks licences, sources and bans without a network. Advisories need a fetched database, which the weekly audit has.
fn deny(workspace: &Workspace) -> Result<()> {
    let deny = tools::find_or_install(workspace, &tools::DENY)?;
    let check = || {
        let mut command = Command::new(&deny);
        command.current_dir(workspace.root());
        command.args(["--offline", "check"]);
        command
    };
    // The licences of every target are read, so the crates of every target are needed.
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
