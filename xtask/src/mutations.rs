//! `cargo xtask mutations`: applies deliberate bugs to a copy of the workspace, one at a time, and expects the tests to fail.
//!
//! A mutation is a file in `tests/mutations`. It names the text to replace and the suite that must then fail.

mod copy;
mod edit;

use std::process::Command;

use serde::Deserialize;

use self::copy::Tree;
use self::edit::Edit;
use crate::programs::{self, ARMED, SHIPPED};
use crate::workspace::Workspace;
use crate::{Result, process, timed};

const FOLDER: &str = "tests/mutations/";

/// The number of mutations that a run of CI applies.
const PER_RUN: usize = 3;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutation {
    /// The name of the file without `.toml`.
    #[serde(skip)]
    name: String,
    description: String,
    suite: Suite,
    /// Arguments that select tests of the suite, so that it finds the mutation quickly.
    filter: Vec<String>,
    edits: Vec<Edit>,
}

/// The suite that must find a mutation. Suites that build fast come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Suite {
    ModelCheck,
    /// Integration tests of the cores.
    Domain,
    /// Integration tests of the webhook worker.
    Delivery,
    /// The acceptance tests.
    Api,
    Crash,
}

impl Suite {
    /// Returns whether the suite builds fast enough for CI to rebuild it for each mutation.
    fn is_quick(self) -> bool {
        self <= Self::Domain
    }

    /// Builds the suite. After that, a failure of the suite is a failure of its tests.
    fn build(self, tree: &Workspace) -> Result<()> {
        match self {
            Self::ModelCheck => process::run(&mut model_check(tree, "build")),
            Self::Domain => process::run(tests(tree, "domain").arg("--no-run")),
            Self::Delivery => process::run(tests(tree, "delivery").arg("--no-run")),
            Self::Api => process::run(tests(tree, "api").arg("--no-run")),
            Self::Crash => programs::build(tree, ARMED, &SHIPPED).map(drop),
        }
    }

    fn command(self, tree: &Workspace) -> Result<Command> {
        let mut command = match self {
            Self::ModelCheck => model_check(tree, "run"),
            Self::Domain => tests(tree, "domain"),
            Self::Delivery => tests(tree, "delivery"),
            Self::Api => tests(tree, "api"),
            Self::Crash => {
                let armed = programs::folder(tree, ARMED)?;
                let mut command = programs::call(tree, ARMED, "crash")?;
                command.arg("--plain").arg(&armed).arg("--armed").arg(armed);
                return Ok(command);
            }
        };
        command.arg("--");
        Ok(command)
    }
}

/// A call of the model check in the dev profile: one small scene runs in seconds, and every mutation compiles the rules again.
fn model_check(tree: &Workspace, task: &str) -> Command {
    let mut command = tree.cargo();
    command.args([task, "--quiet", "--locked", "--package", "model-check"]);
    command
}

/// A call of the tests. It selects the whole workspace, so that dependencies have the same features in every suite and are compiled once.
fn tests(tree: &Workspace, target: &str) -> Command {
    let mut command = tree.cargo();
    command.args(["test", "--quiet", "--locked", "--workspace"]);
    command.args(["--test", target]);
    command
}

/// Runs three quick mutations that depend on the commit, or all with `--all`, or the named ones.
pub(crate) fn run(workspace: &Workspace, rest: &[String]) -> Result<()> {
    let known = load(workspace)?;
    let chosen: Vec<&Mutation> = match rest {
        [] => of_the_commit(workspace, &known)?,
        [only] if only == "--all" => known.iter().collect(),
        names => names
            .iter()
            .map(|name| named(&known, name))
            .collect::<Result<_>>()?,
    };
    let stale: Vec<String> = stale(workspace, chosen.iter().copied())?;
    if !stale.is_empty() {
        return Err(stale.join("\n").into());
    }
    let tree = Tree::copy(workspace)?;
    let mut passed = Vec::new();
    for Mutation { suite, filter, .. } in &chosen {
        if !passed.contains(&(suite, filter)) {
            passes_unmutated(&tree, *suite, filter)?;
            passed.push((suite, filter));
        }
    }
    let mut missed = Vec::new();
    for mutation in chosen {
        if !is_found(&tree, mutation)? {
            missed.push(mutation.name.as_str());
        }
    }
    if missed.is_empty() {
        return Ok(());
    }
    Err(format!("no test found {}", missed.join(", ")).into())
}

/// Returns the mutations that can no longer be read or applied.
pub(crate) fn faults(workspace: &Workspace) -> Result<Vec<String>> {
    stale(workspace, &load(workspace)?)
}

fn stale<'a>(
    workspace: &Workspace,
    mutations: impl IntoIterator<Item = &'a Mutation>,
) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for mutation in mutations {
        if let Err(fault) = edit::mutated(workspace, &mutation.edits) {
            faults.push(format!("{FOLDER}{}.toml: {fault}", mutation.name));
        }
    }
    Ok(faults)
}

/// Loads all mutations. Those of the quickest suites come first.
fn load(workspace: &Workspace) -> Result<Vec<Mutation>> {
    let mut mutations = Vec::new();
    for file in workspace.files()? {
        let name = file.strip_prefix(FOLDER);
        let Some(name) = name.and_then(|name| name.strip_suffix(".toml")) else {
            continue;
        };
        let text = workspace.text(&file)?.unwrap_or_default();
        let read = toml::from_str(&text).map_err(|error| format!("{file}: {error}"))?;
        mutations.push(Mutation {
            name: name.to_owned(),
            ..read
        });
    }
    mutations.sort_by(|a, b| (a.suite, &a.filter, &a.name).cmp(&(b.suite, &b.filter, &b.name)));
    Ok(mutations)
}

fn named<'a>(known: &'a [Mutation], name: &str) -> Result<&'a Mutation> {
    let found = known.iter().find(|mutation| mutation.name == name);
    found.ok_or_else(|| format!("there is no {FOLDER}{name}.toml").into())
}

fn of_the_commit<'a>(workspace: &Workspace, known: &'a [Mutation]) -> Result<Vec<&'a Mutation>> {
    let commit = process::capture(workspace.git().args(["rev-parse", "HEAD"]))?;
    let chosen = turn(&commit, known)?;
    let names: Vec<&str> = chosen.iter().map(|chosen| chosen.name.as_str()).collect();
    println!("commit {} selects {}", commit.trim(), names.join(", "));
    Ok(chosen)
}

/// Selects the quick mutations of a commit, so that a few commits run all of them.
fn turn<'a>(commit: &str, known: &'a [Mutation]) -> Result<Vec<&'a Mutation>> {
    let start = commit.get(..8).ok_or("a commit has a hash")?;
    let quick: Vec<&Mutation> = known.iter().filter(|it| it.suite.is_quick()).collect();
    let turns = quick.len().div_ceil(PER_RUN).max(1);
    let turn = usize::try_from(u32::from_str_radix(start, 16)?)? % turns;
    let chosen = quick.chunks(PER_RUN).nth(turn);
    Ok(chosen.ok_or("no mutation is quick")?.to_vec())
}

/// Checks that the suite passes without a mutation, so that a later failure is caused by the mutation.
fn passes_unmutated(tree: &Tree, suite: Suite, filter: &[String]) -> Result<()> {
    suite.build(&tree.workspace)?;
    let (failure, seconds) = ran(&tree.workspace, suite, filter)?;
    if let Some(failure) = failure {
        return Err(format!("{suite:?} {filter:?} fails without a mutation: {failure}").into());
    }
    println!("{suite:?} {filter:?} passes without a mutation ({seconds:.1} s)");
    Ok(())
}

fn is_found(tree: &Tree, mutation: &Mutation) -> Result<bool> {
    let Mutation { name, suite, .. } = mutation;
    tree.mutate(&mutation.edits)?;
    let built = suite.build(&tree.workspace);
    let ran = built.and_then(|()| ran(&tree.workspace, *suite, &mutation.filter));
    tree.restore(&mutation.edits)?;
    let (failure, seconds) = ran.map_err(|error| format!("{name}: {error}"))?;
    let description = &mutation.description;
    match &failure {
        Some(failure) => println!("{name}: {suite:?} finds it in {seconds:.1} s: {failure}"),
        None => println!("{name}: {suite:?} MISSES it: {description}"),
    }
    Ok(failure.is_some())
}

/// Runs a suite. Returns its first failure, if it has one, and the duration in seconds.
fn ran(tree: &Workspace, suite: Suite, filter: &[String]) -> Result<(Option<String>, f32)> {
    let mut command = suite.command(tree)?;
    command.args(filter);
    // A failing case of a mutation must not be stored.
    command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
    let (output, seconds) = timed(|| command.output());
    let output = output?;
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    let failure = (!output.status.success()).then(|| first_failure(&printed));
    Ok((failure, seconds))
}

/// The first failed test, the fault of the scene, or the breach that the crash proof reports.
fn first_failure(printed: &str) -> String {
    let failed = |line: &str| {
        let test = line
            .strip_prefix("---- ")
            .and_then(|line| line.strip_suffix(" stdout ----"));
        let scene = line.split_once(" steps deep: ").map(|(_, fault)| fault);
        let breach = line.strip_prefix("BREACH ");
        test.or(scene).or(breach).map(str::to_owned)
    };
    let found = printed.lines().find_map(failed);
    found.unwrap_or_else(|| {
        let last = printed.lines().last().unwrap_or_default();
        format!("it ended with {last:?}")
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{faults, first_failure, load, turn};
    use crate::workspace::Workspace;

    #[test]
    fn every_quick_mutation_has_its_turn() {
        let known = load(&Workspace::find().unwrap()).unwrap();
        let turns = (0..9_u32).map(|hash| turn(&format!("{hash:08x}0000"), &known).unwrap());
        let seen: BTreeSet<String> = turns.flatten().map(|it| it.name.clone()).collect();
        let quick = known.iter().filter(|it| it.suite.is_quick());
        let quick: BTreeSet<String> = quick.map(|it| it.name.clone()).collect();
        assert_eq!(seen, quick);
        assert!(!quick.is_empty());
    }

    #[test]
    fn first_failure_is_named() {
        let tests = "failures:\n\n---- two::three stdout ----\n\n---- four stdout ----\n";
        assert_eq!(first_failure(tests), "two::three");
        let scene = "polls 7 states, 3 steps deep: M6 settled\n    Arrives(0) (0.1 s)";
        assert_eq!(first_failure(scene), "M6 settled");
        assert_eq!(
            first_failure("0 passed\nBREACH seed 1: lost\n"),
            "seed 1: lost"
        );
        assert!(first_failure("").starts_with("it ended"));
    }

    #[test]
    fn mutation_that_no_longer_applies_is_named_with_file_and_text() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::at(folder.path());
        std::fs::create_dir_all(folder.path().join("tests/mutations")).unwrap();
        let git = workspace.git().arg("init").output().unwrap();
        assert!(git.status.success());
        let mutation = "description = ''\nsuite = 'domain'\nfilter = []\n\
                        [[edits]]\nfile = 'a.rs'\nfind = 'x < y'\nreplace = 'x <= y'\n";
        std::fs::write(folder.path().join("tests/mutations/a.toml"), mutation).unwrap();
        let fault = |code: &str| {
            std::fs::write(folder.path().join("a.rs"), code).unwrap();
            faults(&workspace).unwrap()
        };
        let named = |times: u32| {
            format!(
                "tests/mutations/a.toml: a.rs: the text must occur once and occurs {times} times: x < y"
            )
        };
        assert!(fault("x <\n    y").is_empty());
        assert_eq!(fault("x > y"), [named(0)]);
        assert_eq!(fault("x < y; x <\n    y"), [named(2)]);
        std::fs::remove_file(folder.path().join("a.rs")).unwrap();
        let gone = faults(&workspace).unwrap();
        assert!(gone[0].starts_with("tests/mutations/a.toml: a.rs cannot be read"));
    }
}
