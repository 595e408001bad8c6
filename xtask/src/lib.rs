//! The project's own tasks. A library, so that the architecture test reads the workspace the same way.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a task's whole interface is what it prints"
)]

mod check;
mod ci;
mod conformance;
mod crash;
mod failover;
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

use suites::Outcome;
use workspace::Workspace;

/// Every failure of a task ends as one message, so no task needs an error type of its own.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What `cargo xtask` prints when it does not understand its arguments.
pub const USAGE: &str = "\
usage: cargo xtask <task>

  check [names]          every check that needs no suite, or those named; one that fails ends no other
  ci                     everything CI runs for a change: the checks, test, conformance and crash
  proof                  the longer suites, which a workflow runs every night: failover, campaigns of the crash proof, benchmarks, the
                         widget in other browsers, model, all mutations, fuzz, doc
  test [args]            all Rust suites; args go to `cargo test`
  pooler [args]          the Postgres store's suite through a PgBouncer, 1.21 or newer; args go to `cargo test`
  conformance [args]     the suites in other languages under tests/conformance/; args go to pytest
  browsers               those that need Firefox and WebKit
  crash [args]           the crash proof: every crash point once, or with `campaigns` what is random or long; args go to the program
  failover [args]        a real failover: Patroni's primary killed, frozen, cut off and switched over; --short, or --trades N
  model [--long | names] the model check: every state of the money's machines; larger scenes, or those named
  mutations [--all | names]  deliberate bugs that the tests must find: three quick ones, or all, or those named
  fuzz                   the byte fuzzing targets, a million inputs each, and half a million hostile requests
  openapi [--check]      rewrite (or compare) the contracts in docs/openapi, the pages of errors and metrics, and the reference pages
  web [--check | --table]  rewrite (or compare) the committed files of the widget and the SDK, or print what the widget must hold
  rules [--check]        print each rule of the contract with its tests (or only check that each has one)
  migrations [--record]  names, versions and checksums of migrations/; --record keeps the checksums of new files, of which none may be left out
  tidy                   the house rules that a text search can enforce
  doc                    rustdoc of our own crates, every warning an error
  bench [args]           the benchmarks, in the bench profile; args go to the program";

/// Runs one task and turns its result into the process's exit code.
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
        "crash" => return finish(&crash::run(&workspace, rest)?),
        "failover" => return finish(&failover::run(&workspace, rest)?),
        "model" => suites::model(&workspace, rest)?,
        "fuzz" => {
            no_arguments(rest)?;
            return finish(&suites::fuzz(&workspace)?);
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

/// The last line of a run of tests is its summary, alone on its line, whatever the result.
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

/// Follows the links of all doc comments, private ones included. It checks every dependency once more, because rustdoc reads
/// nothing that a build has made.
fn doc(workspace: &Workspace) -> Result<()> {
    // The build is linted already.
    let mut command = unlinted(workspace);
    command.args([
        "doc",
        "--locked",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    process::run(&mut command)
}

fn bench(workspace: &Workspace, rest: &[String]) -> Result<()> {
    // As with cargo, `--` may stand before the program's own arguments.
    let rest = rest.strip_prefix(&["--".to_owned()]).unwrap_or(rest);
    // As parts of the whole workspace and at once, so that nothing is compiled twice.
    let target = ["--locked", "--workspace", "--bench", "benchmarks"];
    let mut build = unlinted(workspace);
    build.args(["build", "--profile", "bench"]).args(target);
    build.args(["--bin", "pools-service", "--bin", "penstock"]);
    process::run(&mut build)?;
    let mut run = unlinted(workspace);
    run.arg("bench").args(target).arg("--").args(rest);
    process::run(&mut run)
}

/// A build that is not linted even where `ci` lints all of them.
fn unlinted(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo();
    for (name, _) in ci::LINTING {
        command.env_remove(name);
    }
    command
}
