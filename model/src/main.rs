//! The model check of money: the real use cases of `pools-core`, over a modelled store, engine, clients and clock, in every
//! order, with crashes, lost answers, duplicates and late messages at every step. See `docs/model.md`.
//!
//! It checks every scene, and says how many states that were.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a fault here is a failed check, and says where; what it prints is what it is for"
)]

mod converge;
mod db;
mod digest;
mod far;
mod invariants;
mod ports;
mod request;
mod scene;
mod scenes;
mod state;
#[cfg(test)]
mod tests;
mod world;

use std::fmt;
use std::process::ExitCode;
use std::time::Instant;

use scene::Scene;
use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// Fewer states than this are no check.
const AT_LEAST: usize = 10_000_000;

#[expect(
    clippy::disallowed_methods,
    reason = "a scene's duration is shown to people and decides nothing"
)]
fn main() -> ExitCode {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let chosen = std::env::args().nth(1);
    let mut states = 0;
    let mut sound = true;
    for scene in scenes::all() {
        if chosen.as_ref().is_some_and(|chosen| chosen != scene.name) {
            continue;
        }
        let start = Instant::now();
        let checked = check(scene, threads);
        println!("{checked} ({:.1} s)", start.elapsed().as_secs_f32());
        states += checked.states;
        sound &= checked.fault.is_none();
    }
    println!("{states} states");
    let enough = chosen.is_some() || states >= AT_LEAST;
    if sound && !enough {
        println!("FAILED: at least {AT_LEAST} states are to be visited");
    }
    ExitCode::from(u8::from(!(sound && enough)))
}

/// What the check of a scene has found.
#[derive(Debug)]
struct Checked {
    /// The scene.
    scene: &'static str,
    /// Distinct states.
    states: usize,
    /// The longest way there.
    depth: usize,
    /// What is wrong, with the way there; `None`: every state was visited and nothing is.
    fault: Option<String>,
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<16} {:>9} states, {:>2} steps deep",
            self.scene, self.states, self.depth
        )?;
        match &self.fault {
            None => Ok(()),
            Some(fault) => write!(f, ": {fault}"),
        }
    }
}

/// Visits every state of a scene, or finds the shortest way to one that is wrong.
fn check(scene: Scene, threads: usize) -> Checked {
    let name = scene.name;
    let checker = scene
        .checker()
        .threads(threads)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let fault = checker
        .model()
        .properties()
        .into_iter()
        .find_map(|property| {
            let found = checker.discovery(property.name);
            match (property.expectation, found) {
                (Expectation::Always, Some(path)) => {
                    let last = path.last_state();
                    let breach = last.broken.unwrap_or(property.name);
                    Some(format!("{breach}\n{}", steps(path.into_actions())))
                }
                (Expectation::Sometimes, None) => Some(format!("never: {}", property.name)),
                (Expectation::Always, None)
                | (Expectation::Sometimes, Some(_))
                | (Expectation::Eventually, _) => None,
            }
        });
    Checked {
        scene: name,
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        fault,
    }
}

fn steps(events: Vec<state::Event>) -> String {
    let lines = events.iter().map(|event| format!("    {event:?}"));
    lines.collect::<Vec<_>>().join("\n")
}
