//! The model check of money: the real use cases of `pools-core`, over a modelled store, engine, clients and clock.
//!
//! It explores every order of events, with crashes, lost responses, duplicates and late messages at every step. See `docs/model.md`.
//! It checks every scene completely and prints the number of states and what they covered. `--long` checks larger scenes
//! instead; a name selects the scene of that name.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a panic here is a failed check, and the output is the program's purpose"
)]

mod call;
mod converge;
mod coverage;
mod db;
mod digest;
mod engine;
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

use coverage::Report;
use scene::Scene;
use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// Minimum number of states of a check.
const MIN_STATES: usize = 10_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let sound = match names.as_slice() {
        [] => every_scene(),
        ["--long"] => scenes_in_turn(scenes::long()).is_some(),
        names => scenes_in_turn(named(names)).is_some(),
    };
    ExitCode::from(u8::from(!sound))
}

fn named(names: &[&str]) -> Vec<Scene> {
    let mut scenes = scenes::all();
    scenes.extend(scenes::long());
    for name in names {
        let known = scenes.iter().any(|scene| scene.name == *name);
        assert!(known, "there is no scene {name:?}");
    }
    scenes.retain(|scene| names.contains(&scene.name));
    scenes
}

/// Checks all scenes. Together they must cover everything and have enough states.
fn every_scene() -> bool {
    let Some(states) = scenes_in_turn(scenes::all()) else {
        return false;
    };
    let report = Report::of_the_run();
    println!("{}", report.shown.join(", "));
    for missing in &report.missing {
        println!("FAILED: never came about: {missing}");
    }
    if states < MIN_STATES {
        println!("FAILED: fewer than {MIN_STATES} states");
    }
    states >= MIN_STATES && report.missing.is_empty()
}

/// Returns the number of states; `None` after a fault.
#[expect(
    clippy::disallowed_methods,
    reason = "a scene's duration is only printed"
)]
fn scenes_in_turn(scenes: Vec<Scene>) -> Option<usize> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut states = 0;
    for scene in scenes {
        let start = Instant::now();
        let checked = check(scene, threads);
        println!("{checked} ({:.1} s)", start.elapsed().as_secs_f32());
        if checked.fault.is_some() {
            return None;
        }
        states += checked.states;
    }
    println!("{states} states");
    Some(states)
}

/// Result of the check of a scene.
#[derive(Debug)]
struct Checked {
    scene: &'static str,
    /// Distinct states.
    states: usize,
    /// Length of the longest path.
    depth: usize,
    /// The first fault with its path; `None` if every state was visited and no fault was found.
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

/// Visits every state of a scene, or finds the shortest path to a fault.
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
