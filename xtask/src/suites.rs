//! `cargo xtask test`: all Rust suites, with one summary for all their binaries.

use std::process::ExitStatus;

use crate::servers::Servers;
use crate::summary::Counts;
use crate::workspace::Workspace;
use crate::{Result, process};

/// How a run of tests went. Failing tests are an outcome, not an error of the task.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    pub(crate) code: u8,
}

impl Outcome {
    /// A runner that says success without having run a test has not succeeded.
    pub(crate) fn of(counts: Counts, status: ExitStatus) -> Self {
        let reported = status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(1);
        let code = if reported == 0 && (counts.is_empty() || counts.failed > 0) {
            1
        } else {
            reported
        };
        Self { counts, code }
    }
}

pub(crate) fn rust(workspace: &Workspace, extra: &[String]) -> Result<Outcome> {
    tests(workspace, &Servers::for_tests()?, extra)
}

/// The suite of the Postgres store, its sessions handed out by a pooler.
pub(crate) fn pooler(workspace: &Workspace, extra: &[String]) -> Result<Outcome> {
    let store = ["--package", "store-postgres", "--test", "postgres"];
    let store = store.map(str::to_owned);
    tests(
        workspace,
        &Servers::with_pooler()?,
        &[&store, extra].concat(),
    )
}

fn tests(workspace: &Workspace, servers: &Servers, extra: &[String]) -> Result<Outcome> {
    let mut command = workspace.cargo();
    command.args(["test", "--locked", "--no-fail-fast"]);
    servers.tell(&mut command);
    if !selects_packages(extra) {
        command.arg("--workspace");
    }
    command.args(extra);
    let mut counts = Counts::default();
    let status = process::stream(&mut command, |line| {
        if let Some(found) = Counts::of_libtest(line) {
            counts += found;
        }
    })?;
    let outcome = Outcome::of(counts, status);
    if counts.is_empty() {
        eprintln!("no test ran");
    }
    Ok(outcome)
}

/// The model check, in the profile it needs to visit its states in a minute.
pub(crate) fn model(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.cargo();
    command.args(["run", "--quiet", "--locked", "--profile", "model"]);
    process::run(command.args(["--package", "model"]))
}

/// Cargo ignores `--package` beside `--workspace`, so the latter is left out when the caller chooses.
fn selects_packages(extra: &[String]) -> bool {
    let chosen = |arg: &String| {
        arg.starts_with("-p")
            || arg == "--package"
            || arg.starts_with("--package=")
            || arg == "--manifest-path"
    };
    extra.iter().take_while(|arg| *arg != "--").any(chosen)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::{Outcome, selects_packages};
    use crate::summary::Counts;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn packages_are_recognised_before_the_dashes_only() {
        assert!(selects_packages(&words("-p kernel")));
        assert!(selects_packages(&words("--package=kernel")));
        assert!(!selects_packages(&words("--release -- -p kernel")));
    }

    #[test]
    fn no_tests_or_failed_tests_are_never_a_success() {
        let exited = |code: i32| ExitStatus::from_raw(code << 8);
        let passed = Counts {
            passed: 1,
            ..Counts::default()
        };
        let failed = Counts {
            passed: 1,
            failed: 1,
            ..Counts::default()
        };
        assert_eq!(Outcome::of(passed, exited(0)).code, 0);
        assert_eq!(Outcome::of(passed, exited(101)).code, 101);
        assert_eq!(Outcome::of(failed, exited(0)).code, 1);
        assert_eq!(Outcome::of(Counts::default(), exited(0)).code, 1);
        assert_eq!(Outcome::of(passed, ExitStatus::from_raw(9)).code, 1);
    }
}
