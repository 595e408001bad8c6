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
mod caller;
mod ends;
mod engine;
mod failover;
mod fsync;
mod gate;
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
mod subject;
mod time;
mod world;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use clap::{Parser, Subcommand};
use kernel::Mode;
use test_support::servers::install;

use crate::fsync::Seen;
use crate::gate::Gate;
use crate::kills::Tally;
use crate::panics::Panics;
use crate::points::{Chosen, Database, Points};
use crate::programs::{Programs, Served};
use crate::replicas::{Cluster, Replicas};
use crate::world::World;

/// A failure of the proof itself ends it with a message.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Kills, fails and cuts off the service under load, and judges it from outside.
#[derive(Debug, Parser)]
#[command(name = "crash")]
struct Options {
    /// Where the services and `penstock` are, built as always.
    #[arg(long)]
    plain: PathBuf,
    /// Where they are, built with crash points.
    #[arg(long)]
    armed: PathBuf,
    /// Chooses everything that is left to chance.
    #[arg(long, default_value_t = 1, global = true)]
    seed: u64,
    /// Which service a lane is about: `kills`, `points`, `panics` and `replicas` know both.
    #[arg(long, value_enum, default_value_t = Served::Pools, global = true)]
    service: Served,
    #[command(subcommand)]
    lane: Option<Lane>,
}

#[derive(Debug, Clone, Subcommand)]
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
    /// A pair of servers that Patroni keeps, and its primary taken away in every manner.
    Failover {
        /// Runs until this many trades were acknowledged.
        #[arg(long, default_value_t = 100_000)]
        trades: u64,
        /// Every manner once.
        #[arg(long, conflicts_with = "trades")]
        short: bool,
    },
    /// Quotes at the instant of their expiry, on two replicas whose clocks stand four seconds apart.
    Skew {
        /// How often sixteen of them.
        #[arg(long, default_value_t = 20)]
        rounds: u64,
    },
    /// Every crash point, in every manner.
    Points(Chosen),
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
const SHORT: [&[(Served, Lane)]; 2] = [
    &[
        (
            Served::Pools,
            Lane::Points(Chosen::one_in(1, Database::Embedded)),
        ),
        (
            Served::Gate,
            Lane::Points(Chosen::one_in(9, Database::Embedded)),
        ),
    ],
    &[
        (Served::Pools, Lane::Fsync),
        (Served::Pools, Lane::Panics),
        (
            Served::Pools,
            Lane::Kills {
                rounds: 30,
                campaign: 30,
            },
        ),
        (
            Served::Pools,
            Lane::Storm {
                disconnects: 20_000,
            },
        ),
        (
            Served::Pools,
            Lane::Replicas {
                rounds: 4,
                campaign: 4,
            },
        ),
        (Served::Pools, Lane::Skew { rounds: 4 }),
        (
            Served::Pools,
            Lane::Points(Chosen::one_in(16, Database::Postgres)),
        ),
        (
            Served::Gate,
            Lane::Replicas {
                rounds: 2,
                campaign: 2,
            },
        ),
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
    if let (Some(Lane::Failover { .. }), Some(package)) = (&options.lane, failover::missing()) {
        println!("NOT RUN: {package} is not installed, so no failover was tried.");
        println!("0 passed, 0 failed");
        return ExitCode::SUCCESS;
    }
    if let Err(error) = install::servers() {
        eprintln!("crash: {error}");
        return ExitCode::FAILURE;
    }
    let verdict = match options.lane {
        Some(lane) => prove(&programs, options.service, &lane, options.seed),
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
    let one_after_the_other = |lanes: &[(Served, Lane)]| {
        let mut all = Verdict::default();
        for (served, lane) in lanes {
            let verdict = prove(programs, *served, lane, seed);
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

fn prove(programs: &Programs, served: Served, lane: &Lane, seed: u64) -> Verdict {
    let began = time::now();
    let proved = match served {
        Served::Pools => of_pools(programs, lane, seed),
        Served::Gate => of_gate(programs, lane, seed),
    };
    let took = time::now().saturating_sub(began);
    println!("== {served:?} {lane:?}: {} s\n", took.as_secs());
    proved.unwrap_or_else(|fault| Verdict {
        held: 0,
        broken: vec![format!("{served:?} {lane:?}, seed {seed}: {fault}")],
    })
}

fn of_pools(programs: &Programs, lane: &Lane, seed: u64) -> Result<Verdict> {
    Ok(match lane {
        &Lane::Kills { rounds, campaign } => {
            let make = |folder: &Path, campaign| {
                World::make(folder, programs, seed.wrapping_add(campaign))
            };
            kills_told(&kills::run(rounds, campaign, seed, make, show)?)
        }
        &Lane::Replicas { rounds, campaign } => {
            let make = |folder: &Path, seed| {
                let world = |installation| World::on(installation, seed);
                Cluster::make(folder, programs, Served::Pools, [None; 2], world)
            };
            replicas_told(&replicas::run(rounds, campaign, seed, make, show)?)
        }
        &Lane::Failover { trades, short } => {
            let failover = failover::run(programs, if short { 0 } else { trades }, seed)?;
            told("failover", &failover.tally, failover.faults)
        }
        Lane::Skew { rounds } => {
            let skew = skew::run(programs, *rounds, seed)?;
            print!("{skew}");
            told("skew", &skew.tally, skew.tally.rounds)
        }
        Lane::Points(chosen) => points_told(&points::pools(programs, chosen, seed)?),
        Lane::Panics => {
            let make = |folder: &Path| World::make(folder, programs, seed);
            panics_told(&panics::run(seed, make)?)
        }
        Lane::Storm { disconnects } => {
            let storm = storm::run(programs, *disconnects, seed)?;
            println!("{} disconnects in {} s", storm.cuts, storm.took.as_secs());
            told("storm", &storm.tally, 1)
        }
        Lane::Fsync => seen(fsync::run(programs)?),
    })
}

/// Campaigns are of the sandbox and of live sessions by turns.
fn of_gate(programs: &Programs, lane: &Lane, seed: u64) -> Result<Verdict> {
    Ok(match lane {
        &Lane::Kills { rounds, campaign } => {
            let make = |folder: &Path, done: u64| {
                let mode = by_turns(done, campaign);
                Gate::make(folder, programs, mode, seed.wrapping_add(done))
            };
            kills_told(&kills::run(rounds, campaign, seed, make, show)?)
        }
        &Lane::Replicas { rounds, campaign } => {
            let make = |folder: &Path, of_campaign: u64| {
                let mode = by_turns(of_campaign.wrapping_sub(seed), campaign);
                let gate = |installation| Gate::on(installation, mode, of_campaign);
                Cluster::make(folder, programs, Served::Gate, [None; 2], gate)
            };
            replicas_told(&replicas::run(rounds, campaign, seed, make, show)?)
        }
        Lane::Points(chosen) => points_told(&points::gate(programs, chosen, seed)?),
        Lane::Panics => {
            let make = |folder: &Path| Gate::make(folder, programs, Mode::Test, seed);
            panics_told(&panics::run(seed, make)?)
        }
        Lane::Failover { .. } | Lane::Skew { .. } | Lane::Storm { .. } | Lane::Fsync => {
            return Err("this lane knows the pools alone".into());
        }
    })
}

fn by_turns(done: u64, campaign: u64) -> Mode {
    match (done / campaign.max(1)).is_multiple_of(2) {
        true => Mode::Test,
        false => Mode::Live,
    }
}

fn kills_told(tally: &Tally) -> Verdict {
    let verdict = told("kills", tally, tally.kills);
    print_unmet(&tally.unmet);
    verdict
}

fn replicas_told(replicas: &Replicas) -> Verdict {
    print!("{replicas}");
    let tally = &replicas.tally;
    let verdict = told("replicas", tally, tally.rounds);
    print_unmet(&tally.unmet);
    print_unmet(&tally.gates.too_slow());
    verdict
}

fn print_unmet(unmet: &[String]) {
    for unmet in unmet {
        println!("NOT MET: {unmet}");
    }
}

fn panics_told(panics: &Panics) -> Verdict {
    println!(
        "{} panics in {} handlers, as they began and when they were done",
        panics.panics, panics.handlers
    );
    told("panics", &panics.tally, panics.handlers)
}

fn points_told(points: &Points) -> Verdict {
    println!(
        "points at which the process ended {}, a step failed or panicked {}, was held up {}",
        points.ended, points.failed, points.held_up
    );
    for back in &points.recoveries {
        println!("  {back}");
    }
    let cases = points.ended + points.failed + points.held_up;
    told("points", &points.tally, cases)
}

/// After each campaign, for who waits for a long run.
fn show(tally: &Tally) {
    let (rounds, made, breaches) = (tally.rounds, &tally.made, tally.breaches.len());
    println!("{rounds} rounds, {made:?}, {breaches} breaches");
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
