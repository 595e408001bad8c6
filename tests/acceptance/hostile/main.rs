//! Hundreds of thousands of hostile requests: built from the published document, mutated,
//! and each response checked against the contract.
//!
//! A published route is tested without further work. A run consists of worlds, each
//! determined by its seed; a failing world prints its seed and the request as a shell command.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `HOSTILE_CASES` | number of requests; 15000 by default, 6000 with a database server |
//! | `HOSTILE_SEED` | seed of the first world; 1 by default |
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a panic fails the test and names the line"
)]

mod bend;
mod dice;
mod request;
mod scene;
mod schema;
mod tally;
mod values;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use acceptance::StoreKind;
use tally::Tally;
use tokio::runtime::Builder;

/// Requests to one world before it is audited and replaced.
const WORLD: u64 = 4_000;
/// A run of at least this many requests must have succeeded at every operation.
const ENOUGH: u64 = 150_000;

fn number(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable} must be a whole number, not {text:?}")),
        Err(_) => otherwise,
    }
}

// rule: error.six-fields, error.type-of-status, error.names-no-software, openapi.answers-agree, response.no-store, response.nosniff, response.request-id, auth.keys-never-logged, tenancy.nothing-crosses, request.nul, request.utf8, request.depth, request.duplicate-keys
#[test]
fn every_response_follows_the_contract() {
    let cases = match StoreKind::of_run() {
        StoreKind::Sqlite => 15_000,
        StoreKind::Postgres => 6_000,
    };
    let cases = number("HOSTILE_CASES", cases);
    let seed = number("HOSTILE_SEED", 1);
    let worlds = cases.div_ceil(WORLD);
    let next = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let tally = Mutex::new(Tally::default());
    let work = || {
        loop {
            let world = next.fetch_add(1, Ordering::SeqCst);
            if world >= worlds || failed.load(Ordering::SeqCst) {
                return;
            }
            let cases = WORLD.min(cases - world * WORLD);
            let alarm = Alarm(&failed);
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            let found = runtime.block_on(scene::play(seed + world, cases));
            drop(alarm);
            tally.lock().unwrap().add(found);
        }
    };
    let threads = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let tally = tally.into_inner().unwrap();
    eprintln!("{tally}");
    if cases >= ENOUGH {
        tally.assert_covers_operations();
    }
}

/// Notifies the other threads of a failure.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}
