//! `cargo xtask teeth`: plants bugs, one at a time, and demands that the tests find each of them.
//!
//! The bugs stand in `crates/kernel/src/planted.rs`; a build with its feature has all of them, and the environment chooses one.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::workspace::Workspace;
use crate::{Result, process};

const FEATURE: &str = "kernel/planted-bugs";

/// A bug, and the lanes that find it, the quickest first.
type Bug = (&'static str, &'static [Lane]);

const BUGS: [Bug; 12] = [
    ("stale-expiry", &[INTERLEAVINGS]),
    ("late-report", &[INTERLEAVINGS, MODEL]),
    ("engine-id-per-poll", &[MODEL]),
    ("lost-update", &[MODEL]),
    ("ttl-off-by-one", &[DOMAIN]),
    ("tenant-filter-missing", &[ACCEPTANCE]),
    ("signed-once", &[WEBHOOKS]),
    ("secret-logged", &[ACCEPTANCE]),
    ("cap-without-lock", &[DOMAIN, RACES]),
    ("cursor-forgets-ties", &[ACCEPTANCE]),
    ("key-in-memory-only", &[ACCEPTANCE]),
    ("event-afterwards", &[MODEL]),
];

/// A way of testing that may find a bug.
#[derive(Clone, Copy)]
struct Lane {
    name: &'static str,
    program: Program,
}

#[derive(Clone, Copy)]
enum Program {
    /// Visits every state.
    Model,
    /// A test binary, with arguments that choose among its tests.
    Tests(&'static [&'static str], &'static [&'static str]),
}

const MODEL: Lane = Lane {
    name: "model check",
    program: Program::Model,
};
const INTERLEAVINGS: Lane = Lane {
    name: "interleavings",
    program: Program::Tests(&["--test", "acceptance"], &["interleavings::"]),
};
const RACES: Lane = Lane {
    name: "races",
    program: Program::Tests(&["--test", "acceptance"], &["races::"]),
};
const ACCEPTANCE: Lane = Lane {
    name: "acceptance",
    program: Program::Tests(
        &["--test", "acceptance"],
        &["--skip", "interleavings::", "--skip", "races::"],
    ),
};
const DOMAIN: Lane = Lane {
    name: "domain",
    program: Program::Tests(&["--test", "domain"], &[]),
};
const WEBHOOKS: Lane = Lane {
    name: "webhooks",
    program: Program::Tests(&["--test", "delivery"], &[]),
};

const LANES: [Lane; 6] = [DOMAIN, MODEL, INTERLEAVINGS, RACES, ACCEPTANCE, WEBHOOKS];

/// Without arguments three of the bugs, which depend on the commit; `--all` every bug in every lane; else the bugs named.
pub(crate) fn run(workspace: &Workspace, rest: &[String]) -> Result<()> {
    let all = rest == ["--all"];
    let chosen = match rest {
        [] => rotating(&process::capture(
            workspace.git().args(["rev-parse", "HEAD"]),
        )?)?,
        _ if all => BUGS.to_vec(),
        names => names
            .iter()
            .map(|name| named(name))
            .collect::<Result<_>>()?,
    };
    build(workspace)?;
    let mut missed = Vec::new();
    for (bug, lanes) in chosen {
        let lanes = if all { &LANES } else { lanes };
        let mut found = false;
        for lane in lanes {
            found |= finds(workspace, bug, *lane)?;
            if found && !all {
                break;
            }
        }
        if !found {
            missed.push(bug);
        }
    }
    if missed.is_empty() {
        return Ok(());
    }
    Err(format!("nobody found {}", missed.join(", ")).into())
}

fn named(name: &str) -> Result<Bug> {
    let found = BUGS.into_iter().find(|(bug, _)| *bug == name);
    found.ok_or_else(|| format!("there is no planted bug {name:?}").into())
}

/// Every bug has its turn within a few commits.
fn rotating(commit: &str) -> Result<Vec<Bug>> {
    let start = commit.get(..8).ok_or("a commit has a hash")?;
    let turn = usize::try_from(u32::from_str_radix(start, 16)?)? % (BUGS.len() / 3);
    let of_turn = |(at, _): &(usize, _)| at % (BUGS.len() / 3) == turn;
    let chosen = BUGS.into_iter().enumerate().filter(of_turn);
    Ok(chosen.map(|(_, bug)| bug).collect())
}

/// Builds everything first, so that a lane that fails has failed in its tests.
fn build(workspace: &Workspace) -> Result<()> {
    process::run(tests(workspace, &[]).arg("--no-run"))?;
    process::run(&mut model(workspace, "build"))
}

fn tests(workspace: &Workspace, target: &[&str]) -> Command {
    let mut command = workspace.cargo();
    command
        .args(["test", "--quiet", "--locked", "--features", FEATURE])
        .args(["-p", "acceptance", "-p", "pools-core", "-p", "webhooks"])
        .args(target);
    command
}

fn model(workspace: &Workspace, task: &str) -> Command {
    let mut command = workspace.cargo();
    command
        .args([task, "--quiet", "--locked", "--profile", "model"])
        .args(["-p", "model", "--features", FEATURE]);
    command
}

fn finds(workspace: &Workspace, bug: &str, lane: Lane) -> Result<bool> {
    let mut command = match lane.program {
        Program::Model => model(workspace, "run"),
        Program::Tests(target, chosen) => {
            let mut command = tests(workspace, target);
            command.arg("--").args(chosen);
            command
        }
    };
    let start = now();
    let status = command
        .env("PENSTOCK_PLANTED_BUG", bug)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    let verdict = if status.success() { "misses" } else { "finds" };
    let seconds = start.elapsed().as_secs_f32();
    println!("{:<14} {verdict:<6} {bug} ({seconds:.0} s)", lane.name);
    Ok(!status.success())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a lane's duration is shown to people and decides nothing"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{BUGS, rotating};
    use crate::workspace::Workspace;

    #[test]
    fn every_bug_has_its_turn() {
        let turns = (0..4_u32).map(|hash| rotating(&format!("{hash:08x}0000")).unwrap());
        let seen: BTreeSet<&str> = turns.flatten().map(|(bug, _)| bug).collect();
        assert_eq!(seen.len(), BUGS.len());
    }

    #[test]
    fn the_bugs_are_those_of_the_kernel() {
        let source = Workspace::find()
            .unwrap()
            .text("crates/kernel/src/planted.rs");
        let source = source.unwrap().unwrap();
        let planted = source.lines().filter(|line| line.starts_with("pub const"));
        let planted: BTreeSet<&str> = planted.filter_map(|line| line.split('"').nth(1)).collect();
        assert_eq!(planted, BUGS.iter().map(|(bug, _)| *bug).collect());
    }
}
