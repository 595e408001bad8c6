//! `cargo xtask test`: runs all Rust suites and prints one summary of their binaries.

use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::process::{Command, ExitStatus};
use std::thread;

use serde_json::Value;

use crate::servers::{self, Pooler};
use crate::summary::Counts;
use crate::workspace::Workspace;
use crate::{Result, parallel, process};

/// The result of a test run. A failed test is an outcome, not an error of the task.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    pub(crate) code: u8,
}

impl Outcome {
    /// Makes an outcome. A runner that reports success without a test has failed.
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

    /// Runs a program that prints the counts of its tests in one line.
    pub(crate) fn of_program(
        command: &mut Command,
        counts_of: fn(&str) -> Option<Counts>,
    ) -> Result<Self> {
        let mut counts = Counts::default();
        let status = process::stream(command, |line| {
            if let Some(found) = counts_of(line) {
                counts = found;
            }
        })?;
        Ok(Self::of(counts, status))
    }
}

impl AddAssign for Outcome {
    fn add_assign(&mut self, other: Self) {
        self.counts += other.counts;
        self.code = self.code.max(other.code);
    }
}

/// The variable that chooses the store of the suites that can run on either store.
const STORE: &str = "PENSTOCK_TEST_STORE";
/// The suites that can run on either store: the package and the test of each.
const ON_EITHER: [(&str, &str); 3] = [
    ("acceptance", "api"),
    ("acceptance", "hostile"),
    ("penstock", "cli"),
];
/// The tests of the Postgres store. The second run takes them from the first one, so that both take about the same time.
const OF_POSTGRES: &str = "postgres";

/// Runs all suites. Those that can run on either store run on SQLite and, at the same time, on Postgres.
pub(crate) fn rust(workspace: &Workspace, extra: &[String]) -> Result<Outcome> {
    if std::env::var_os(STORE).is_some() {
        return run(tests(workspace, Pooler::Without, None, extra)?);
    }
    let mut again = on_either(extra);
    if again.is_empty() {
        return run(tests(workspace, Pooler::Without, Some("sqlite"), extra)?);
    }
    let mut first = Vec::new();
    if chosen_packages(extra).is_empty() {
        again.extend(of_test(OF_POSTGRES));
        first = all_but_postgres(workspace)?;
    }
    let first = [&first, extra].concat();
    let again = [&again, extra].concat();
    let on_sqlite = tests(workspace, Pooler::Without, Some("sqlite"), &first)?;
    let mut on_postgres = tests(workspace, Pooler::Without, Some("postgres"), &again)?;
    let folder = workspace.target()?.join("ci");
    std::fs::create_dir_all(&folder)?;
    let log = folder.join("test-postgres");
    let (on_sqlite, on_postgres) = thread::scope(|scope| {
        let on_postgres = scope
            .spawn(move || parallel::run_logged("tests on PostgreSQL", &mut on_postgres, &log));
        (stream(on_sqlite), on_postgres.join())
    });
    let (mut counts, mut status) = on_sqlite?;
    let (output, second) = on_postgres.map_err(|_| "a thread panicked")??;
    let more = output.lines().filter_map(Counts::of_libtest);
    let more = more.fold(Counts::default(), |mut sum, found| {
        sum += found;
        sum
    });
    println!("on SQLite: {counts}; on PostgreSQL: {more}");
    counts += more;
    if status.success() {
        status = second;
    }
    Ok(outcome(counts, status))
}

/// Runs the suite of the Postgres store through a pooler.
pub(crate) fn pooler(workspace: &Workspace, extra: &[String]) -> Result<Outcome> {
    let store = ["--package", "store-postgres", "--test", "postgres"];
    let store = store.map(str::to_owned);
    let store = [&store, extra].concat();
    run(tests(workspace, Pooler::With, None, &store)?)
}

/// Makes a call of `cargo test` with private servers.
fn tests(
    workspace: &Workspace,
    pooler: Pooler,
    store: Option<&str>,
    extra: &[String],
) -> Result<Command> {
    let mut command = workspace.cargo();
    command.args(["test", "--locked", "--no-fail-fast"]);
    command.envs(store.map(|store| (STORE, store)));
    if chosen_packages(extra).is_empty() {
        command.arg("--workspace");
    }
    command.args(extra);
    servers::with_servers(workspace, pooler, &command)
}

fn run(command: Command) -> Result<Outcome> {
    let (counts, status) = stream(command)?;
    Ok(outcome(counts, status))
}

/// Prints each line at once, and counts the tests.
fn stream(mut command: Command) -> Result<(Counts, ExitStatus)> {
    let mut counts = Counts::default();
    let status = process::stream(&mut command, |line| {
        if let Some(found) = Counts::of_libtest(line) {
            counts += found;
        }
    })?;
    Ok((counts, status))
}

fn outcome(counts: Counts, status: ExitStatus) -> Outcome {
    if counts.is_empty() {
        eprintln!("no test ran");
    }
    Outcome::of(counts, status)
}

/// Runs the model check in a profile that visits its states within two minutes.
pub(crate) fn model(workspace: &Workspace, rest: &[String]) -> Result<()> {
    let mut command = workspace.cargo();
    command.args(["run", "--quiet", "--locked", "--profile", "model"]);
    process::run(command.args(["--package", "model-check", "--"]).args(rest))
}

/// Runs the byte fuzzing targets and the hostile suite at length, optimized and with every assertion. A call that fails does not stop the
/// others.
pub(crate) fn fuzz(workspace: &Workspace) -> Result<Outcome> {
    let targets: [&[&str]; 2] = [
        &["--test", "fuzz", "--test", "hostile"],
        &["--lib", "fuzz::"],
    ];
    let mut all = Outcome::default();
    for target in targets {
        let mut command = workspace.cargo();
        command.args(["test", "--locked", "--no-fail-fast", "--workspace"]);
        command.args(["--profile", "model"]).args(target);
        command.env("BOLERO_RANDOM_ITERATIONS", "1000000");
        command.env("HOSTILE_CASES", "500000");
        all += run(command)?;
    }
    Ok(all)
}

/// Runs the tests of a service whose log is not read, under load for minutes.
pub(crate) fn unread_log(workspace: &Workspace) -> Result<Outcome> {
    let mut command = workspace.cargo();
    command.args(["test", "--locked", "--workspace"]);
    command.args(["--test", "program", "log::"]);
    command.env("UNREAD_LOG_REQUESTS", "200000");
    run(command)
}

/// Returns the flags of the second run, which select the chosen tests that can run on either store. Returns no flags if the caller has
/// selected tests with such flags.
fn on_either(extra: &[String]) -> Vec<String> {
    let targets = [
        "--test",
        "--lib",
        "--bin",
        "--doc",
        "--example",
        "--bench",
        "--all-targets",
    ];
    let mut arguments = of_cargo(extra);
    if arguments.any(|arg| targets.iter().any(|target| arg.starts_with(target))) {
        return Vec::new();
    }
    let packages = chosen_packages(extra);
    let runs = |package: &str| packages.is_empty() || packages.iter().any(|one| one == package);
    let chosen = ON_EITHER.iter().filter(|(package, _)| runs(package));
    chosen.flat_map(|(_, test)| of_test(test)).collect()
}

/// Returns the flags that select all tests of the workspace but those of the Postgres store.
fn all_but_postgres(workspace: &Workspace) -> Result<Vec<String>> {
    let metadata = workspace.metadata()?;
    let list = |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned();
    let packages = list(&metadata, "packages").unwrap_or_default();
    let targets = packages
        .iter()
        .filter_map(|package| list(package, "targets"))
        .flatten();
    let tests = targets.filter(|target| {
        let kinds = list(target, "kind").unwrap_or_default();
        kinds.iter().any(|kind| kind == "test")
    });
    let names: BTreeSet<String> = tests
        .filter_map(|target| Some(target.get("name")?.as_str()?.to_owned()))
        .filter(|name| name != OF_POSTGRES)
        .collect();
    let flags = ["--lib", "--bins"].map(str::to_owned);
    Ok(flags
        .into_iter()
        .chain(names.iter().flat_map(|name| of_test(name)))
        .collect())
}

fn of_test(name: &str) -> [String; 2] {
    ["--test".to_owned(), name.to_owned()]
}

/// Returns the packages that the caller has chosen. Cargo ignores them if `--workspace` is given too.
fn chosen_packages(extra: &[String]) -> Vec<String> {
    let mut packages = Vec::new();
    let mut args = of_cargo(extra);
    while let Some(arg) = args.next() {
        if arg == "-p" || arg == "--package" || arg == "--manifest-path" {
            packages.extend(args.next().cloned());
        } else if let Some(name) = arg.strip_prefix("--package=").or(arg.strip_prefix("-p")) {
            packages.push(name.to_owned());
        }
    }
    packages
}

/// Returns the arguments of cargo. The others are for the tests.
fn of_cargo(extra: &[String]) -> impl Iterator<Item = &String> {
    extra.iter().take_while(|arg| *arg != "--")
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::{Outcome, chosen_packages, on_either};
    use crate::summary::Counts;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn packages_are_recognised_before_the_dashes_only() {
        for text in [
            "-p kernel",
            "-pkernel",
            "--package=kernel",
            "--package kernel",
        ] {
            assert_eq!(chosen_packages(&words(text)), ["kernel"], "{text}");
        }
        assert!(chosen_packages(&words("--release -- -p kernel")).is_empty());
    }

    #[test]
    fn suites_for_either_store_run_twice() {
        let again = |text| on_either(&words(text)).join(" ");
        assert_eq!(again("money"), "--test api --test hostile --test cli");
        assert_eq!(again("-p acceptance"), "--test api --test hostile");
        assert_eq!(again("-p kernel"), "");
        assert_eq!(again("-p acceptance --test hostile"), "");
        assert_eq!(again("-p penstock -- --test-threads 1"), "--test cli");
    }

    #[test]
    fn run_without_tests_or_with_failures_is_not_a_success() {
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
