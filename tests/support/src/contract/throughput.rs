//! Transacts per second of a store's batches, for one busy partner or for many. Measured, never asserted.

use std::time::Instant;

use pools_core::batch::TransactCommand;
use pools_core::ports::NewQuote;
use pools_core::quote::Side;

use crate::contract::fixture::{Fixture, WINDOW};
use crate::contract::world::{MILLI, Member, ONE, World, amount, eur, terms};

/// One measurement.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Commands in one transaction.
    pub batch: usize,
    /// Number of partners.
    pub partners: usize,
    /// Commands per second of elapsed time, with a commit for each batch.
    pub per_second: u128,
    /// Processor time per command in microseconds, if the system reports it: the cost without a disk and other load.
    pub processor: Option<u128>,
}

/// Runs `commands` transacts in batches of `batch`, spread over `partners`.
pub async fn run(store: impl Fixture, batch: usize, partners: usize, commands: usize) -> Measured {
    let world = World::new(store);
    let mut members = Vec::new();
    for at in 0..partners {
        let member = world.member(&format!("partner-{at}")).await;
        world
            .fund(&member.who, amount("10000000000", eur()), "start")
            .await;
        world.trade(&member, Side::OnRamp, ONE).await;
        members.push(member);
    }
    let asked = ask(&world, &members, commands).await;
    let (start, processor) = (now(), processor_time());
    for batch in asked.chunks(batch) {
        let decided = world.transact(batch).await;
        assert!(decided.iter().all(Result::is_ok), "{decided:?}");
        world.clock().advance(MILLI);
    }
    let spent = start.elapsed().as_micros().max(1);
    let processor = processor_time()
        .zip(processor)
        .map(|(after, before)| (after - before) / commands as u128);
    Measured {
        batch,
        partners,
        per_second: commands as u128 * 1_000_000 / spent,
        processor,
    }
}

/// Quotes for all commands, created in advance.
async fn ask<F: Fixture>(
    world: &World<F>,
    members: &[Member],
    commands: usize,
) -> Vec<TransactCommand> {
    let mut asked = Vec::new();
    while asked.len() < commands {
        let chosen: Vec<&Member> = members
            .iter()
            .cycle()
            .skip(asked.len() % members.len())
            .take(64)
            .collect();
        let new: Vec<_> = chosen
            .iter()
            .map(|member| NewQuote {
                ttl: WINDOW,
                ..world.new_quote(&member.who, terms(Side::OnRamp, ONE))
            })
            .collect();
        let quotes = world.ports().quotes.quotes_open(&new).await.unwrap();
        asked.extend(
            chosen
                .iter()
                .zip(&quotes)
                .map(|(member, quote)| world.command(member, quote.id)),
        );
        // Ids order by their millisecond, so time must pass between them.
        world.clock().advance(MILLI);
    }
    asked.truncate(commands);
    asked
}

#[expect(
    clippy::disallowed_methods,
    reason = "a measured duration, not an instant that is used"
)]
fn now() -> Instant {
    Instant::now()
}

/// Returns the processor time of this process in microseconds, as Linux counts it.
fn processor_time() -> Option<u128> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u128>().ok();
    Some((ticks(11)? + ticks(12)?) * 10_000)
}
