//! The project's tasks. They are a library, so that the tests of this package can use its readers of the workspace.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a task reports its result by printing"
)]

mod check;
mod ci;
mod conformance;
mod crash;
mod links;
mod migrations;
mod mutations;
mod openapi;
mod parallel;
mod process;
mod programs;
mod python;
mod rules;
mod servers;
pub mod source;
mod suites;
mod summary;
mod tidy;
mod tools;
mod web;
pub mod workspace;

use std::process::{Command, ExitCode};
use std::time::Instant;

use suites::Outcome;
use workspace::Workspace;

/// The result of a task. Every error becomes one message, so the tasks need no error types.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The list of tasks. `cargo xtask` prints it if its arguments are wrong.
pub const USAGE: &str = "\
usage: cargo xtask <task>

  check [names]          every check that needs no suite, or the named ones; a failed check does not stop the others
  ci                     what CI runs for every change: the checks, test, conformance and crash
  proof                  the longer suites, which a workflow runs every night: failover, campaigns of the crash proof, benchmarks, the
                         widget in other browsers, alarms, model, all mutations, fuzz, a log that is not read, doc
  test [args]            all Rust suites; args go to `cargo test`
  pooler [args]          the Postgres store's suite through a PgBouncer, 1.21 or newer; args go to `cargo test`
  conformance [args]     the suites in other languages under tests/conformance/; args go to pytest
  browsers               the suites that need Firefox and WebKit
  alarms                 the alerts in a real Prometheus, with ten minutes of quiet and ten of load
  crash [args]           the crash proof: every crash point once, or with `campaigns` the random and long parts; args go to the program
  failover [args]        a real failover: kills, freezes, cuts off and switches over Patroni's primary; --short, or --trades N
  model [--long | names] the model check: every state of the machines that move money; --long: larger scenes; or the named scenes
  mutations [--all | names]  deliberate bugs that the tests must find: three quick ones, or all, or the named ones
  fuzz                   the byte fuzzing targets with a million inputs each, and half a million hostile requests
  unread-log             the tests of a service whose log is not read, under load for minutes
  openapi [--check]      rewrite (or compare) the contracts in docs/openapi, the pages about errors and metrics, and the reference pages
  web [--check | --table]  rewrite (or compare) the committed files of the widget and the SDK, or print the measured limits of the widget
  rules [--check]        print each rule of the contract with its tests (or only check that each has one)
  migrations [--record]  check names, versions and checksums of migrations/; --record splits drafts for the databases, and adds new files to the record and to the stores' list
  tidy                   the house rules that a text search can enforce
  doc                    rustdoc of this workspace and its examples; every warning is an error
  bench [args]           the benchmarks, in the bench profile; args go to the program";

/// Runs one task and returns the exit code of the process.
pub fn main(args: Vec<String>) -> ExitCode {
    let Some((task, rest)) = args.split_first() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(task, rest) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask {task}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &str, rest: &[String]) -> Result<ExitCode> {
    let workspace = Workspace::find()?;
    match task {
        "check" => check::run(&workspace, rest)?,
        "ci" => {
            no_arguments(rest)?;
            return ci::run(&workspace);
        }
        "proof" => {
            no_arguments(rest)?;
            return ci::proof(&workspace);
        }
        "test" => return finish(&suites::rust(&workspace, rest)?),
        "pooler" => return finish(&suites::pooler(&workspace, rest)?),
        "conformance" => return finish(&conformance::run(&workspace, rest)?),
        "browsers" => {
            no_arguments(rest)?;
            return finish(&conformance::browsers(&workspace)?);
        }
        "alarms" => {
            no_arguments(rest)?;
            return finish(&conformance::alarms(&workspace)?);
        }
        "crash" => return finish(&crash::run(&workspace, rest)?),
        "failover" => return finish(&crash::failover(&workspace, rest)?),
        "model" => suites::model(&workspace, rest)?,
        "fuzz" => {
            no_arguments(rest)?;
            return finish(&suites::fuzz(&workspace)?);
        }
        "unread-log" => {
            no_arguments(rest)?;
            return finish(&suites::unread_log(&workspace)?);
        }
        "mutations" => mutations::run(&workspace, rest)?,
        "openapi" => openapi::run(&workspace, flag(rest, "--check")?)?,
        "web" => return web::run(&workspace, rest),
        "rules" => rules::run(&workspace, flag(rest, "--check")?)?,
        "migrations" => migrations::run(&workspace, flag(rest, "--record")?)?,
        "tidy" => {
            no_arguments(rest)?;
            tidy::run(&workspace)?;
        }
        "doc" => {
            no_arguments(rest)?;
            doc(&workspace)?;
        }
        "bench" => bench(&workspace, rest)?,
        "help" | "--help" | "-h" => println!("{USAGE}"),
        _ => {
            eprintln!("unknown task `{task}`\n\n{USAGE}");
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the counts of a test run as its last line, whatever the result.
fn finish(outcome: &Outcome) -> Result<ExitCode> {
    println!("{}", outcome.counts);
    Ok(ExitCode::from(outcome.code))
}

fn flag(rest: &[String], name: &str) -> Result<bool> {
    match rest {
        [] => Ok(false),
        [only] if only == name => Ok(true),
        _ => Err(format!("expected nothing or {name}, got {rest:?}").into()),
    }
}

fn no_arguments(rest: &[String]) -> Result<()> {
    if rest.is_empty() {
        return Ok(());
    }
    Err(format!("takes no arguments, got {rest:?}").into())
}

/// Runs a part of a task. Returns its result, and its duration in seconds.
#[expect(
    clippy::disallowed_methods,
    reason = "the duration of a part is only printed"
)]
fn timed<T>(part: impl FnOnce() -> T) -> (T, f32) {
    let start = Instant::now();
    let result = part();
    (result, start.elapsed().as_secs_f32())
}

/// Checks the links of all doc comments, private items included, and runs their examples. It checks every dependency again, because rustdoc cannot use the files of
/// a build.
fn doc(workspace: &Workspace) -> Result<()> {
    // Another task lints the workspace.
    let mut command = unlinted(workspace);
    command.args([
        "doc",
        "--locked",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    process::run(&mut command)?;
    let mut examples = unlinted(workspace);
    process::run(examples.args(["test", "--locked", "--workspace", "--doc"]))
}

fn bench(workspace: &Workspace, rest: &[String]) -> Result<()> {
    // As with cargo, `--` may precede the arguments of the program.
    let rest = rest.strip_prefix(&["--".to_owned()]).unwrap_or(rest);
    // Builds the whole workspace in one call, so that nothing is compiled twice.
    let target = ["--locked", "--workspace", "--bench", "benchmarks"];
    let mut build = unlinted(workspace);
    build.args(["build", "--profile", "bench"]).args(target);
    build.args(["--bin", "pools-service", "--bin", "penstock"]);
    process::run(&mut build)?;
    let mut run = unlinted(workspace);
    run.arg("bench").args(target).arg("--").args(rest);
    process::run(&mut run)
}

/// A call of cargo that does not lint, even if `ci` makes clippy the compiler.
fn unlinted(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo();
    for (name, _) in ci::LINTING {
        command.env_remove(name);
    }
    command
}
