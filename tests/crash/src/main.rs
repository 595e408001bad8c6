//! The crash proof: kills, faults and network cuts hit the real programs under load, and clients check the result from outside.
//!
//! Clients record every response. After each fault the driver starts the service again, resolves every unknown outcome by a
//! retry under its key, checks the database with `penstock verify`, and compares everything that can be read with the record.
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
mod pages;
mod panics;
mod payments;
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
mod world;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use clap::{Parser, Subcommand};
use kernel::Mode;
use test_support::servers::install;
use test_support::time;

use crate::fsync::Seen;
use crate::gate::Gate;
use crate::kills::Tally;
use crate::panics::Panics;
use crate::points::{Chosen, Database, Part, Points};
use crate::programs::{Programs, Served};
use crate::replicas::{Cluster, Replicas};
use crate::world::World;

/// A failure of the driver itself, which ends it with a message.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Kills, faults and cuts off the service under load, and checks the result from outside.
#[derive(Debug, Parser)]
#[command(name = "crash")]
struct Options {
    /// Folder of the services and `penstock`, built without crash points.
    #[arg(long)]
    plain: PathBuf,
    /// Folder of the programs built with crash points.
    #[arg(long)]
    armed: PathBuf,
    /// Seed of all random choices.
    #[arg(long, default_value_t = 1, global = true)]
    seed: u64,
    /// Service to test. `kills`, `points`, `panics` and `replicas` support both, and `payments` only the gate.
    #[arg(long, value_enum, default_value_t = Served::Pools, global = true)]
    service: Served,
    #[command(subcommand)]
    lane: Option<Lane>,
}

#[derive(Debug, Clone, Subcommand)]
enum Lane {
    /// Kills the service at random instants.
    Kills {
        /// Number of kills.
        #[arg(long, default_value_t = 30)]
        rounds: u64,
        /// Rounds per fresh database.
        #[arg(long, default_value_t = 50)]
        campaign: u64,
    },
    /// Runs two replicas on one database and breaks everything that they share.
    Replicas {
        /// Number of rounds.
        #[arg(long, default_value_t = 16)]
        rounds: u64,
        /// Rounds per set of fresh servers.
        #[arg(long, default_value_t = 25)]
        campaign: u64,
    },
    /// Kills the gate under payments in widgets until a thousand were made, a hundred of each kind.
    Payments {
        /// Number of kills after which the run fails if payments are missing.
        #[arg(long, default_value_t = 400)]
        rounds: u64,
        /// Rounds per fresh database.
        #[arg(long, default_value_t = 25)]
        campaign: u64,
    },
    /// Takes the primary of a Patroni pair away, in every manner.
    Failover {
        /// Acknowledged trades after which the run ends.
        #[arg(long, default_value_t = 100_000)]
        trades: u64,
        /// Tries every manner once.
        #[arg(long, conflicts_with = "trades")]
        short: bool,
    },
    /// Races quotes at the instant of their expiry, on two replicas whose clocks differ by four seconds.
    Skew {
        /// Number of races, of sixteen quotes each.
        #[arg(long, default_value_t = 20)]
        rounds: u64,
    },
    /// Stops and fails at every crash point.
    Points(Chosen),
    /// Panics in every handler that the contract names.
    Panics,
    /// Closes client connections at random bytes and instants.
    Storm {
        /// Number of disconnects.
        #[arg(long, default_value_t = 20_000)]
        disconnects: u64,
    },
    /// Checks through system calls that the log is on disk before the first byte of a response.
    Fsync,
    /// All others: random instants, delays, and the points on a Postgres.
    Campaigns,
}

/// Every crash point once and every handler's panics: what runs if no lane is given. It measures no duration. Both rows take about as
/// long. Each part of the gate's points has a database of its own, because every check reads the whole database.
const ONCE: [&[(Served, Lane)]; 2] = [
    &[
        (Served::Pools, Lane::points(false, Database::Embedded)),
        (Served::Pools, Lane::Fsync),
        (Served::Pools, Lane::Panics),
        (Served::Gate, Lane::part(Part::Mixed)),
        (Served::Gate, Lane::part(Part::Failing)),
    ],
    &[
        (Served::Gate, Lane::part(Part::Payments)),
        (Served::Gate, Lane::part(Part::Live)),
        (Served::Gate, Lane::Panics),
    ],
];

/// What is random, long or measured.
const CAMPAIGNS: [&[(Served, Lane)]; 2] = [
    &[
        (Served::Pools, Lane::kills(100)),
        (
            Served::Pools,
            Lane::Storm {
                disconnects: 20_000,
            },
        ),
        (Served::Pools, Lane::replicas(16)),
        (Served::Pools, Lane::Skew { rounds: 20 }),
        (Served::Pools, Lane::points(true, Database::Embedded)),
        (Served::Pools, Lane::points(true, Database::Postgres)),
    ],
    &[
        (Served::Gate, Lane::kills(100)),
        (
            Served::Gate,
            Lane::Payments {
                rounds: 400,
                campaign: 25,
            },
        ),
        (Served::Gate, Lane::replicas(16)),
        (Served::Gate, Lane::points(true, Database::Postgres)),
    ],
];

impl Lane {
    const fn kills(rounds: u64) -> Self {
        Self::Kills {
            rounds,
            campaign: 50,
        }
    }

    /// Every crash point, with delays or without.
    const fn points(delays: bool, store: Database) -> Self {
        Self::Points(Chosen::all(delays, store))
    }

    /// A part of the gate's crash points.
    const fn part(part: Part) -> Self {
        Self::Points(Chosen::of_part(part))
    }

    const fn replicas(rounds: u64) -> Self {
        Self::Replicas {
            rounds,
            campaign: 4,
        }
    }
}

/// Breaches that are printed in full; the rest are counted.
const MAX_PRINTED_BREACHES: usize = 20;

/// Number of cases that held, and a description of each case that did not.
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
        Some(Lane::Campaigns) => all_of(CAMPAIGNS, &programs, options.seed),
        Some(lane) => prove(&programs, options.service, &lane, options.seed),
        None => all_of(ONCE, &programs, options.seed),
    };
    for breach in verdict.broken.iter().take(MAX_PRINTED_BREACHES) {
        eprintln!("BREACH {breach}");
    }
    println!("{} passed, {} failed", verdict.held, verdict.broken.len());
    if verdict.broken.is_empty() && verdict.held > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs two lanes at a time, because each waits for leases and processes half of its time.
fn all_of(rows: [&'static [(Served, Lane)]; 2], programs: &Programs, seed: u64) -> Verdict {
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
        let running = rows.map(|lanes| scope.spawn(move || one_after_the_other(lanes)));
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
        Served::Pools => run_pools(programs, lane, seed),
        Served::Gate => run_gate(programs, lane, seed),
    };
    let took = time::now().saturating_sub(began);
    println!("== {served:?} {lane:?}: {} s\n", took.as_secs());
    proved.unwrap_or_else(|fault| Verdict {
        held: 0,
        broken: vec![format!("{served:?} {lane:?}, seed {seed}: {fault}")],
    })
}

fn run_pools(programs: &Programs, lane: &Lane, seed: u64) -> Result<Verdict> {
    Ok(match lane {
        &Lane::Kills { rounds, campaign } => {
            let make = |folder: &Path, campaign| {
                World::make(folder, programs, seed.wrapping_add(campaign))
            };
            kills_verdict(&kills::run(rounds, campaign, seed, make, show)?)
        }
        &Lane::Replicas { rounds, campaign } => {
            let make = |folder: &Path, seed| {
                let world = |installation| World::on(installation, seed);
                Cluster::make(folder, programs, Served::Pools, [None; 2], world)
            };
            replicas_verdict(&replicas::run(rounds, campaign, seed, make, show)?)
        }
        &Lane::Failover { trades, short } => {
            let failover = failover::run(programs, if short { 0 } else { trades }, seed)?;
            verdict_of("failover", &failover.tally, failover.faults)
        }
        Lane::Skew { rounds } => {
            let skew = skew::run(programs, *rounds, seed)?;
            print!("{skew}");
            verdict_of("skew", &skew.tally, skew.tally.rounds)
        }
        Lane::Points(chosen) => points_verdict(&points::pools(programs, chosen, seed)?),
        Lane::Panics => {
            let make = |folder: &Path| World::make(folder, programs, seed);
            panics_verdict(&panics::run(seed, make)?)
        }
        Lane::Storm { disconnects } => {
            let storm = storm::run(programs, *disconnects, seed)?;
            println!("{} disconnects in {} s", storm.cuts, storm.took.as_secs());
            verdict_of("storm", &storm.tally, 1)
        }
        Lane::Fsync => seen(fsync::run(programs)?),
        Lane::Payments { .. } => return Err("this run supports the gate only".into()),
        Lane::Campaigns => return Err("the campaigns contain no campaigns".into()),
    })
}

/// Alternates between campaigns with sandbox sessions and with live sessions.
fn run_gate(programs: &Programs, lane: &Lane, seed: u64) -> Result<Verdict> {
    Ok(match lane {
        &Lane::Kills { rounds, campaign } => {
            let make = |folder: &Path, done: u64| {
                let mode = alternate_mode(done, campaign);
                Gate::make(folder, programs, mode, seed.wrapping_add(done))
            };
            kills_verdict(&kills::run(rounds, campaign, seed, make, show)?)
        }
        &Lane::Payments { rounds, campaign } => {
            let make = |folder: &Path, done: u64| {
                let mode = alternate_mode(done, campaign);
                let gate = Gate::make(folder, programs, mode, seed.wrapping_add(done));
                gate.map(Gate::mostly_paying)
            };
            let tally = payments::run(rounds, campaign, seed, make, show)?;
            verdict_of("payments", &tally, tally.kills)
        }
        &Lane::Replicas { rounds, campaign } => {
            let make = |folder: &Path, of_campaign: u64| {
                let mode = alternate_mode(of_campaign.wrapping_sub(seed), campaign);
                let gate = |installation| Gate::on(installation, mode, of_campaign);
                Cluster::make(folder, programs, Served::Gate, [None; 2], gate)
            };
            replicas_verdict(&replicas::run(rounds, campaign, seed, make, show)?)
        }
        Lane::Points(chosen) => points_verdict(&points::gate(programs, chosen, seed)?),
        Lane::Panics => {
            let make = |folder: &Path| Gate::make(folder, programs, Mode::Test, seed);
            panics_verdict(&panics::run(seed, make)?)
        }
        Lane::Failover { .. }
        | Lane::Skew { .. }
        | Lane::Storm { .. }
        | Lane::Fsync
        | Lane::Campaigns => {
            return Err("this run supports the pools only".into());
        }
    })
}

fn alternate_mode(done: u64, campaign: u64) -> Mode {
    match (done / campaign.max(1)).is_multiple_of(2) {
        true => Mode::Test,
        false => Mode::Live,
    }
}

fn kills_verdict(tally: &Tally) -> Verdict {
    let verdict = verdict_of("kills", tally, tally.kills);
    print_unmet(&tally.unmet);
    verdict
}

fn replicas_verdict(replicas: &Replicas) -> Verdict {
    print!("{replicas}");
    let tally = &replicas.tally;
    let verdict = verdict_of("replicas", tally, tally.rounds);
    print_unmet(&tally.unmet);
    print_unmet(&tally.gates.too_slow());
    verdict
}

fn print_unmet(unmet: &[String]) {
    for unmet in unmet {
        println!("NOT MET: {unmet}");
    }
}

fn panics_verdict(panics: &Panics) -> Verdict {
    println!(
        "{} panics in {} handlers, as they began and when they were done",
        panics.panics, panics.handlers
    );
    verdict_of("panics", &panics.tally, panics.handlers)
}

fn points_verdict(points: &Points) -> Verdict {
    println!(
        "points at which the process ended {}, a step failed or panicked {}, was held up {}",
        points.ended, points.failed, points.held_up
    );
    for back in &points.recoveries {
        println!("  {back}");
    }
    let cases = points.ended + points.failed + points.held_up;
    verdict_of("points", &points.tally, cases)
}

/// Prints a line after each campaign, to show the progress of a long run.
fn show(tally: &Tally) {
    let (rounds, made, breaches) = (tally.rounds, &tally.made, tally.breaches.len());
    println!("{rounds} rounds, {made:?}, {breaches} breaches");
}

fn verdict_of(name: &str, tally: &Tally, held: u64) -> Verdict {
    println!("-- {name}\n{tally}");
    Verdict {
        held,
        broken: tally.breaches.clone(),
    }
}

fn seen(seen: Seen) -> Verdict {
    match seen {
        Seen::NotChecked(why) => {
            println!("NOT CHECKED: that the log is on the disk before an response: {why}")
        }
        Seen::Synced(answers) => {
            println!(
                "{answers} responses to writes, those of each place in a turn behind a flush of the log"
            );
            return Verdict {
                held: 1,
                broken: Vec::new(),
            };
        }
    }
    Verdict::default()
}
