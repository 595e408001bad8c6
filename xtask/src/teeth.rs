//! `cargo xtask teeth`: plants bugs, one at a time, and demands that the tests find each of them.
//!
//! The bugs are in `crates/kernel/src/planted.rs`; a build with its feature has all of them, and the environment chooses one.

use std::process::Command;
use std::time::Instant;

use crate::programs::{self, SHIPPED, Way};
use crate::workspace::Workspace;
use crate::{Result, process};

const FEATURE: &str = "kernel/planted-bugs";
/// Programs with all bugs, and with crash points.
const PLANTED: Way = (
    "planted",
    &[
        FEATURE,
        "pools-service/failpoints",
        "gate-service/failpoints",
    ],
);

/// A bug, and the lanes that find it, the quickest first.
type Bug = (&'static str, &'static [Lane]);

/// How many bugs are planted in a run of CI.
const AT_ONCE: usize = 3;

/// So many of them have their turns in CI: the model check and the tests of a core find them, which take little to be built with a
/// bug in them. The others are planted by hand.
const QUICK: usize = 9;

/// By turns of three, each of which needs few lanes to be built.
const BUGS: [Bug; 16] = [
    ("lost-update", &[GIVEN_BACK]),
    ("late-report", &[GIVEN_BACK]),
    ("event-afterwards", &[GIVEN_BACK]),
    //
    ("engine-id-per-poll", &[GIVEN_BACK]),
    ("ttl-off-by-one", &[BATCHES]),
    ("cap-without-lock", &[BATCHES]),
    //
    ("return-needs-settlement", &[GIVEN_BACK]),
    ("failed-after-settlement", &[CAP_FOR_ONE]),
    ("lapsed-unasked", &[CAP_FOR_ONE]),
    //
    ("tenant-filter-missing", &[TENANCY]),
    ("secret-logged", &[LOGS]),
    ("cursor-forgets-ties", &[LISTS]),
    //
    ("key-in-memory-only", &[KEYS]),
    ("stale-expiry", &[LOCK_HELD]),
    ("signed-once", &[SIGNING]),
    //
    ("answer-afterwards", &[CRASHES]),
];

/// A way of testing that may find a bug.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Lane {
    name: &'static str,
    program: Program,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    /// Visits every state of some scenes, or of all.
    Model(&'static [&'static str]),
    /// A test binary, with arguments that choose among its tests.
    Tests(&'static str, &'static [&'static str]),
    /// The crash proof, with arguments that choose a lane of it.
    Crash(&'static [&'static str]),
}

// The cheapest part of each lane that finds its bugs.
const GIVEN_BACK: Lane = Lane {
    name: "given back",
    program: Program::Model(&["given back"]),
};
const CAP_FOR_ONE: Lane = Lane {
    name: "cap for one",
    program: Program::Model(&["cap for one"]),
};
const BATCHES: Lane = Lane {
    name: "batches",
    program: Program::Tests("domain", &["batch::"]),
};
const TENANCY: Lane = Lane {
    name: "tenancy",
    program: Program::Tests("api", &["tenancy::"]),
};
const LOGS: Lane = Lane {
    name: "logs",
    program: Program::Tests("api", &["logs::"]),
};
const LISTS: Lane = Lane {
    name: "lists",
    program: Program::Tests("api", &["trades::"]),
};
const KEYS: Lane = Lane {
    name: "keys",
    program: Program::Tests("api", &["transact_idempotency::"]),
};
const LOCK_HELD: Lane = Lane {
    name: "lock held",
    program: Program::Tests("api", &["interleavings::transact_behind_a_lock"]),
};
const SIGNING: Lane = Lane {
    name: "signing",
    program: Program::Tests("delivery", &["signing::"]),
};
const CRASHES: Lane = Lane {
    name: "crashes",
    program: Program::Crash(&["--service", "gate", "points", "--step", "AnswerPut"]),
};

// Whole lanes, for `--all`.
const MODEL: Lane = Lane {
    name: "model check",
    program: Program::Model(&[]),
};
const DOMAIN: Lane = Lane {
    name: "domain",
    program: Program::Tests("domain", &[]),
};
const ACCEPTANCE: Lane = Lane {
    name: "acceptance",
    program: Program::Tests("api", &[]),
};
const WEBHOOKS: Lane = Lane {
    name: "webhooks",
    program: Program::Tests("delivery", &[]),
};

const LANES: [Lane; 5] = [DOMAIN, MODEL, ACCEPTANCE, WEBHOOKS, CRASHES];

/// Without arguments three of the quick bugs, which depend on the commit; `--all` every bug in every lane; else the bugs named.
pub(crate) fn run(workspace: &Workspace, rest: &[String]) -> Result<()> {
    let all = rest == ["--all"];
    let chosen = match rest {
        [] => of_the_commit(workspace)?,
        _ if all => BUGS.map(|(bug, _)| (bug, LANES.as_slice())).to_vec(),
        names => names
            .iter()
            .map(|name| named(name))
            .collect::<Result<_>>()?,
    };
    let mut lanes: Vec<Lane> = Vec::new();
    for lane in chosen.iter().flat_map(|(_, lanes)| *lanes) {
        if !lanes.contains(lane) {
            lanes.push(*lane);
        }
    }
    build(workspace, &lanes)?;
    sound(workspace, &lanes)?;
    let mut missed = Vec::new();
    for (bug, lanes) in chosen {
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
    Err(format!("no test found {}", missed.join(", ")).into())
}

fn named(name: &str) -> Result<Bug> {
    let found = BUGS.into_iter().find(|(bug, _)| *bug == name);
    found.ok_or_else(|| format!("there is no planted bug {name:?}").into())
}

fn of_the_commit(workspace: &Workspace) -> Result<Vec<Bug>> {
    let commit = process::capture(workspace.git().args(["rev-parse", "HEAD"]))?;
    let chosen = rotating(&commit)?;
    let names: Vec<&str> = chosen.iter().map(|(bug, _)| *bug).collect();
    println!("{} has its turn with {}", commit.trim(), names.join(", "));
    Ok(chosen.to_vec())
}

/// Every quick bug has its turn within a few commits.
fn rotating(commit: &str) -> Result<&'static [Bug]> {
    let start = commit.get(..8).ok_or("a commit has a hash")?;
    let turns = QUICK.div_ceil(AT_ONCE);
    let turn = usize::try_from(u32::from_str_radix(start, 16)?)? % turns;
    let bugs = BUGS.chunks(AT_ONCE).nth(turn);
    Ok(bugs.ok_or("there is no such turn")?)
}

/// Builds everything first, so that a lane that fails has failed in its tests.
fn build(workspace: &Workspace, lanes: &[Lane]) -> Result<()> {
    let mut targets: Vec<&str> = Vec::new();
    for lane in lanes {
        match lane.program {
            Program::Model(_) => process::run(&mut model(workspace, "build"))?,
            Program::Tests(target, _) if !targets.contains(&target) => targets.push(target),
            Program::Tests(..) => {}
            Program::Crash(_) => {
                programs::build(workspace, PLANTED, &SHIPPED)?;
            }
        }
    }
    if targets.is_empty() {
        return Ok(());
    }
    process::run(tests(workspace, &targets).arg("--no-run"))
}

/// With nothing planted every lane passes: what it finds later, it finds because of the bug.
fn sound(workspace: &Workspace, lanes: &[Lane]) -> Result<()> {
    for lane in lanes {
        let (found, seconds) = ran(workspace, "", *lane)?;
        if let Some(what) = found {
            return Err(format!("{} fails with nothing planted: {what}", lane.name).into());
        }
        println!(
            "{:<14} passes with nothing planted ({seconds:.0} s)",
            lane.name
        );
    }
    Ok(())
}

/// The whole workspace is chosen, so that what it depends on is built with the features of every other build, once for all.
fn tests(workspace: &Workspace, targets: &[&str]) -> Command {
    let mut command = workspace.cargo();
    command.args(["test", "--locked", "--workspace", "--features", FEATURE]);
    command.args(targets.iter().flat_map(|target| ["--test", target]));
    command
}

fn model(workspace: &Workspace, task: &str) -> Command {
    let mut command = workspace.cargo();
    command
        .args([task, "--quiet", "--locked", "--profile", "model"])
        .args(["-p", "model-check", "--features", FEATURE]);
    command
}

fn finds(workspace: &Workspace, bug: &str, lane: Lane) -> Result<bool> {
    let (found, seconds) = ran(workspace, bug, lane)?;
    let name = lane.name;
    match &found {
        Some(what) => println!("{name:<14} finds  {bug} ({seconds:.0} s): {what}"),
        None => println!("{name:<14} misses {bug} ({seconds:.0} s)"),
    }
    Ok(found.is_some())
}

/// What a lane has found, if anything, and in how many seconds.
fn ran(workspace: &Workspace, bug: &str, lane: Lane) -> Result<(Option<String>, f32)> {
    let mut command = match lane.program {
        Program::Model(scenes) => {
            let mut command = model(workspace, "run");
            command.arg("--").args(scenes);
            command
        }
        Program::Tests(target, chosen) => {
            let mut command = tests(workspace, &[target]);
            command.arg("--").args(chosen);
            command
        }
        Program::Crash(chosen) => {
            let planted = programs::folder(workspace, PLANTED)?;
            let mut command = programs::call(workspace, PLANTED, "crash")?;
            command.arg("--plain").arg(&planted);
            command.arg("--armed").arg(&planted).args(chosen);
            command
        }
    };
    let start = now();
    let output = command
        .env("PENSTOCK_PLANTED_BUG", bug)
        // A case that shows a planted bug is not worth keeping.
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")
        .output()?;
    let seconds = start.elapsed().as_secs_f32();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    Ok(((!output.status.success()).then(|| fault(&said)), seconds))
}

/// The first test that failed, the scene's fault, or the breach.
fn fault(said: &str) -> String {
    let failed = |line: &str| {
        let test = line
            .strip_prefix("test ")
            .and_then(|line| line.strip_suffix(" ... FAILED"));
        let scene = line.split_once(" steps deep: ").map(|(_, fault)| fault);
        let breach = line.strip_prefix("BREACH ");
        test.or(scene).or(breach).map(str::to_owned)
    };
    let found = said.lines().find_map(failed);
    found.unwrap_or_else(|| "it ended before it could say what".to_owned())
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

    use super::{BUGS, QUICK, fault, rotating};
    use crate::workspace::Workspace;

    #[test]
    fn every_quick_bug_has_its_turn() {
        let turns = (0..5_u32).map(|hash| rotating(&format!("{hash:08x}0000")).unwrap());
        let seen: BTreeSet<&str> = turns.flatten().map(|(bug, _)| *bug).collect();
        assert_eq!(seen.len(), QUICK);
    }

    #[test]
    fn finding_names_its_lane() {
        let tests = "test one ... ok\ntest two::three ... FAILED\ntest four ... FAILED\n";
        assert_eq!(fault(tests), "two::three");
        let scene = "polls 7 states, 3 steps deep: M6 settled\n    Arrives(0) (0.1 s)";
        assert_eq!(fault(scene), "M6 settled");
        assert_eq!(fault("0 passed\nBREACH seed 1: lost\n"), "seed 1: lost");
        assert!(fault("").starts_with("it ended"));
    }

    #[test]
    fn bugs_match_the_list_of_the_kernel() {
        let source = Workspace::find()
            .unwrap()
            .text("crates/kernel/src/planted.rs");
        let source = source.unwrap().unwrap();
        let planted = source.lines().filter(|line| line.starts_with("pub const"));
        let planted: BTreeSet<&str> = planted.filter_map(|line| line.split('"').nth(1)).collect();
        assert_eq!(planted, BUGS.iter().map(|(bug, _)| *bug).collect());
    }
}
