//! The crash proof: the real programs killed, failed and cut off under load, and judged from outside.
//!
//! Clients keep a book of what they were told. After every fault the service is started again, every unknown outcome
//! is found out by retrying under its key, `penstock verify` checks the database, and everything that can be read is
//! compared with the book.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a proof's whole interface is what it prints"
)]

mod book;
mod fsync;
mod history;
mod http;
mod judge;
mod kills;
mod linear;
mod load;
mod money;
mod orders;
mod pace;
mod panics;
mod points;
mod programs;
mod proxy;
mod races;
mod receiver;
mod replicas;
mod servers;
mod skew;
mod storm;
mod time;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use clap::{Parser, Subcommand};

use crate::fsync::Seen;
use crate::kills::Tally;
use crate::programs::Programs;

/// A failure of the proof itself ends it with a message.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Kills, fails and cuts off the service under load, and judges it from outside.
#[derive(Debug, Parser)]
#[command(name = "crash")]
struct Options {
    /// Where `pools-service` and `penstock` are, built as always.
    #[arg(long)]
    plain: PathBuf,
    /// Where they are, built with crash points.
    #[arg(long)]
    armed: PathBuf,
    /// Chooses everything that is left to chance.
    #[arg(long, default_value_t = 1, global = true)]
    seed: u64,
    #[command(subcommand)]
    lane: Option<Lane>,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum Lane {
    /// The service killed at random instants.
    Kills {
        /// How often.
        #[arg(long, default_value_t = 30)]
        rounds: u64,
        /// A fresh database after so many.
        #[arg(long, default_value_t = 50)]
        campaign: u64,
    },
    /// Two replicas on one database, and everything they share broken.
    Replicas {
        /// How often.
        #[arg(long, default_value_t = 16)]
        rounds: u64,
        /// Fresh servers after so many.
        #[arg(long, default_value_t = 25)]
        campaign: u64,
    },
    /// Quotes at the instant of their expiry, on two replicas whose clocks stand four seconds apart.
    Skew {
        /// How often sixteen of them.
        #[arg(long, default_value_t = 20)]
        rounds: u64,
    },
    /// Every crash point, in every manner.
    Points {
        /// How often each.
        #[arg(long, default_value_t = 1)]
        repeat: u64,
    },
    /// A panic in every handler that the contract names.
    Panics,
    /// Clients that close at random bytes and instants.
    Storm {
        /// How many times.
        #[arg(long, default_value_t = 20_000)]
        disconnects: u64,
    },
    /// The log is on the disk before an answer's first byte, as the kernel sees it.
    Fsync,
}

/// Without a lane: the short form of all of them.
const SHORT: [&[Lane]; 2] = [
    &[Lane::Points { repeat: 1 }],
    &[
        Lane::Fsync,
        Lane::Panics,
        Lane::Kills {
            rounds: 30,
            campaign: 30,
        },
        Lane::Storm {
            disconnects: 20_000,
        },
        Lane::Replicas {
            rounds: 4,
            campaign: 4,
        },
        Lane::Skew { rounds: 4 },
    ],
];

/// So many breaches are named; the rest are counted.
const NAMED: usize = 20;

/// Cases that held and cases that did not; the latter are named.
#[derive(Debug, Default)]
struct Verdict {
    held: u64,
    broken: Vec<String>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let programs = Programs {
        plain: options.plain.clone(),
        armed: options.armed.clone(),
    };
    let verdict = match options.lane {
        Some(lane) => prove(&programs, lane, options.seed),
        None => short(&programs, options.seed),
    };
    for breach in verdict.broken.iter().take(NAMED) {
        eprintln!("BREACH {breach}");
    }
    println!("{} passed, {} failed", verdict.held, verdict.broken.len());
    if verdict.broken.is_empty() && verdict.held > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Two lanes at a time: each waits for leases and processes half of its time.
fn short(programs: &Programs, seed: u64) -> Verdict {
    let one_after_the_other = |lanes: &[Lane]| {
        let mut all = Verdict::default();
        for lane in lanes {
            let verdict = prove(programs, *lane, seed);
            all.held += verdict.held;
            all.broken.extend(verdict.broken);
        }
        all
    };
    thread::scope(|scope| {
        let running = SHORT.map(|lanes| scope.spawn(move || one_after_the_other(lanes)));
        let mut all = Verdict::default();
        for lane in running {
            match lane.join() {
                Ok(verdict) => {
                    all.held += verdict.held;
                    all.broken.extend(verdict.broken);
                }
                Err(_) => all.broken.push("a lane panicked".to_owned()),
            }
        }
        all
    })
}

fn prove(programs: &Programs, lane: Lane, seed: u64) -> Verdict {
    let began = time::now();
    let proved = match lane {
        Lane::Kills { rounds, campaign } => kills::run(programs, rounds, campaign, seed, show)
            .map(|tally| {
                let verdict = told("kills", &tally, tally.kills);
                for unmet in tally.gates.unmet() {
                    println!("NOT MET: {unmet}");
                }
                verdict
            }),
        Lane::Replicas { rounds, campaign } => {
            replicas::run(programs, rounds, campaign, seed, show).map(|replicas| {
                print!("{replicas}");
                let rounds = replicas.tally.rounds;
                let verdict = told("replicas", &replicas.tally, rounds);
                let gates = &replicas.tally.gates;
                for unmet in gates.unmet().into_iter().chain(gates.too_slow()) {
                    println!("NOT MET: {unmet}");
                }
                verdict
            })
        }
        Lane::Skew { rounds } => skew::run(programs, rounds, seed).map(|skew| {
            print!("{skew}");
            told("skew", &skew.tally, skew.tally.rounds)
        }),
        Lane::Points { repeat } => points::run(programs, seed, repeat).map(|points| {
            println!(
                "points at which the process ended {}, a step failed or panicked {}, was held up {}",
                points.ended, points.failed, points.held_up
            );
            for back in &points.recoveries {
                println!("  {back}");
            }
            let cases = points.ended + points.failed + points.held_up;
            told("points", &points.tally, cases)
        }),
        Lane::Panics => panics::run(programs, seed).map(|panics| {
            println!(
                "{} panics in {} handlers, as they began and when they were done",
                panics.panics, panics.handlers
            );
            told("panics", &panics.tally, panics.handlers)
        }),
        Lane::Storm { disconnects } => storm::run(programs, disconnects, seed).map(|storm| {
            println!("{} disconnects in {} s", storm.cuts, storm.took.as_secs());
            told("storm", &storm.tally, 1)
        }),
        Lane::Fsync => fsync::run(programs).map(seen),
    };
    let took = time::now().saturating_sub(began);
    println!("== {lane:?}: {} s\n", took.as_secs());
    proved.unwrap_or_else(|fault| Verdict {
        held: 0,
        broken: vec![format!("{lane:?}, seed {seed}: {fault}")],
    })
}

/// After each campaign, for who waits for a long run.
fn show(tally: &Tally) {
    println!(
        "{} rounds, {} trades, {} breaches",
        tally.rounds,
        tally.trades,
        tally.breaches.len()
    );
}

fn told(name: &str, tally: &Tally, held: u64) -> Verdict {
    println!("-- {name}\n{tally}");
    Verdict {
        held,
        broken: tally.breaches.clone(),
    }
}

fn seen(seen: Seen) -> Verdict {
    match seen {
        Seen::NotChecked(why) => {
            println!("NOT CHECKED: that the log is on the disk before an answer: {why}")
        }
        Seen::Synced(answers) => {
            println!("{answers} answers to writes, each behind a flush of the log");
            return Verdict {
                held: 1,
                broken: Vec::new(),
            };
        }
    }
    Verdict::default()
}
