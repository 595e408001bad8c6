//! Kills the service at random instants under load, repeatedly, on a database that grows.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use test_support::time;

use crate::Result;
use crate::caller::{self, Front, Run};
use crate::history::{Gates, Op};
use crate::http::Client;
use crate::programs::Service;
use crate::subject::Subject;

/// Operations before the kill, and the longest further delay in microseconds.
const OPERATIONS_BEFORE_KILL: Range<u64> = 60..240;
const KILL_DELAY_US: Range<u64> = 0..20_000;
/// Rounds from which a run must meet the requirements on histories; a shorter run only prints what is missing.
const COUNTS_FROM: u64 = 100;
/// How many times its rounds such a run may take until it meets them, because chance decides which refusals and races occur.
const MAX_EXTENSION: u64 = 4;
/// Time limit of the load before a kill.
const LOAD_TIMEOUT: Duration = Duration::from_secs(20);

/// Result of many rounds.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) rounds: u64,
    pub(crate) kills: u64,
    /// Objects that were created, by kind.
    pub(crate) made: BTreeMap<&'static str, u64>,
    pub(crate) resolved: u64,
    pub(crate) verified: u64,
    pub(crate) events: u64,
    pub(crate) redelivered: u64,
    pub(crate) slowest_start: Duration,
    pub(crate) gates: Gates,
    /// Requirements that the histories do not meet.
    pub(crate) unmet: Vec<String>,
    /// Breaches, each with the seed that reproduces it.
    pub(crate) breaches: Vec<String>,
}

impl Tally {
    pub(crate) fn merge(&mut self, subject: &dyn Subject) {
        for (what, figure) in subject.figures() {
            *self.made.entry(what).or_default() += figure;
        }
        for event in subject.receiver().events().values() {
            self.events += 1;
            self.redelivered += u64::from(event.times.saturating_sub(1));
        }
    }

    /// Records breaches or a failure. Returns whether there were none.
    pub(crate) fn hold(&mut self, seed: u64, round: u64, judged: Result<Vec<String>>) -> bool {
        let breaches = judged.unwrap_or_else(|fault| vec![fault.to_string()]);
        let sound = breaches.is_empty();
        self.blame(seed, round, breaches);
        sound
    }

    /// Fails a run without breaches for what it lacks as a whole, and for a response that was too slow.
    pub(crate) fn demand(&mut self, seed: u64, lacks: Vec<String>) {
        if self.breaches.is_empty() {
            let mut faults = self.gates.too_slow();
            faults.extend(lacks);
            self.blame(seed, self.rounds, faults);
        }
    }

    pub(crate) fn blame(&mut self, seed: u64, round: u64, breaches: Vec<String>) {
        let named = breaches
            .into_iter()
            .map(|breach| format!("seed {seed}, round {round}: {breach}"));
        self.breaches.extend(named);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |span: Duration| span.as_millis() as u64;
        let made = self.made.iter().map(|(what, figure)| (*what, *figure));
        let first = [("rounds", self.rounds), ("processes killed", self.kills)];
        let rest = [
            ("unknown outcomes found out", self.resolved),
            ("events received", self.events),
            ("deliveries beyond the first", self.redelivered),
            ("clean runs of `verify`", self.verified),
            (
                "slowest start and first answer, ms",
                millis(self.slowest_start),
            ),
        ];
        for (what, figure) in first.into_iter().chain(made).chain(rest) {
            writeln!(f, "{what:<38}{figure:>8}")?;
        }
        if self.gates.ops == 0 {
            return Ok(());
        }
        write!(f, "{}", self.gates)
    }
}

/// Starts the service and waits for its first response.
pub(crate) fn up(subject: &dyn Subject, tally: &mut Tally) -> Result<Service> {
    let began = time::now();
    let service = subject.installation().serve(None, &[])?;
    let first = Client::new(service.address).call_until_served(&subject.greeting());
    if !first.is_ok_and(|answer| answer.status == 200) {
        return Err("the service does not respond after its start".into());
    }
    let took = time::now().saturating_sub(began);
    tally.slowest_start = tally.slowest_start.max(took);
    Ok(service)
}

/// Runs one round: start, resolve, compare, load, kill, verify.
fn round(subject: &dyn Subject, seed: u64, tally: &mut Tally) -> Result<Vec<String>> {
    let mut chance = fastrand::Rng::with_seed(seed);
    subject.reconfigure(&mut chance);
    let service = up(subject, tally)?;
    tally.resolved += subject.converge(service.address)?;
    let breaches = subject.judge(service.address, false)?;
    let (enough, later) = (
        chance.u64(OPERATIONS_BEFORE_KILL),
        Duration::from_micros(chance.u64(KILL_DELAY_US)),
    );
    let mut credit = None;
    let mut ops = load_until(subject, &Front::of(&service), seed, |run| {
        if chance.u8(0..100) < 25 {
            credit = subject.operate(&mut chance);
        }
        enough_of(run, enough);
        thread::sleep(later);
        service.kill();
    });
    ops.extend(credit);
    tally.gates.add(ops);
    tally.rounds += 1;
    tally.kills += 1;
    subject.installation().verify()?;
    tally.verified += 1;
    Ok(breaches)
}

/// Waits for a number of operations, up to a time limit.
pub(crate) fn enough_of(run: &Run, enough: u64) {
    let began = time::now();
    let count = || run.ops.lock().len() as u64;
    while count() < enough && time::now().saturating_sub(began) < LOAD_TIMEOUT {
        thread::sleep(Duration::from_millis(2));
    }
}

/// Runs load until `end` returns. Returns the operations of the clients.
pub(crate) fn load_until(
    subject: &dyn Subject,
    front: &Front,
    seed: u64,
    end: impl FnOnce(&Run),
) -> Vec<Op> {
    let run = Run::default();
    thread::scope(|scope| {
        let clients = scope.spawn(|| caller::run(subject, front, seed, &run));
        end(&run);
        run.stop.store(true, Ordering::Relaxed);
        clients.join().unwrap_or_default()
    })
}

/// Final check: resolves and ends everything, and checks that every event was accepted and no checked row changed.
pub(crate) fn close(subject: &dyn Subject, tally: &mut Tally) -> Result<Vec<String>> {
    subject.restore();
    let service = up(subject, tally)?;
    let breaches = reckon(subject, service.address, tally)?;
    service.kill();
    subject.installation().verify()?;
    tally.verified += 1;
    tally.merge(subject);
    Ok(breaches)
}

/// Runs the final check on a running service.
pub(crate) fn reckon(
    subject: &dyn Subject,
    address: SocketAddr,
    tally: &mut Tally,
) -> Result<Vec<String>> {
    tally.resolved += subject.converge(address)?;
    let mut breaches = subject.judge(address, true)?;
    breaches.extend(subject.end_all(address)?);
    breaches.extend(subject.events(address)?);
    breaches.extend(subject.judge(address, true)?);
    Ok(breaches)
}

/// Runs a number of rounds, with a fresh database after every `campaign` rounds, and further campaigns if the requirements on histories are
/// not met.
// rule: base.acknowledged-is-kept, pools.transact.atomic, idempotency.same-transaction, pools.quote-record.monotone
// rule: webhook.at-least-once, webhook.signature, webhook.standard-headers, webhook.fresh
pub(crate) fn run<S: Subject>(
    rounds: u64,
    campaign: u64,
    seed: u64,
    make: impl Fn(&Path, u64) -> Result<S>,
    tell: impl Fn(&Tally),
) -> Result<Tally> {
    let limit = match rounds >= COUNTS_FROM {
        true => rounds.saturating_mul(MAX_EXTENSION),
        false => rounds,
    };
    let is_enough = |tally: &Tally| {
        tell(tally);
        let is_due = tally.rounds >= rounds;
        for lack in tally.unmet.iter().filter(|_| is_due) {
            println!("not met yet: {lack}");
        }
        is_due && tally.unmet.is_empty()
    };
    let mut tally = campaigns(limit, campaign, seed, make, is_enough)?;
    let mut lacks = Vec::new();
    if rounds >= COUNTS_FROM && tally.breaches.is_empty() {
        lacks.append(&mut tally.unmet);
    }
    tally.demand(seed, lacks);
    Ok(tally)
}

/// Runs at most a number of rounds, with a fresh database after every `campaign` rounds, until `is_enough` after a campaign. A breach ends
/// the run.
pub(crate) fn campaigns<S: Subject>(
    rounds: u64,
    campaign: u64,
    seed: u64,
    make: impl Fn(&Path, u64) -> Result<S>,
    is_enough: impl Fn(&Tally) -> bool,
) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut done = 0;
    while done < rounds {
        let folder = tempfile::tempdir()?;
        let subject = make(folder.path(), done)?;
        for _ in 0..campaign.max(1).min(rounds - done) {
            done += 1;
            let of_round = seed.wrapping_mul(1_000_000).wrapping_add(done);
            let judged = round(&subject, of_round, &mut tally);
            if !tally.hold(seed, done, judged) {
                return keep(folder, tally);
            }
        }
        let judged = close(&subject, &mut tally);
        let sound = tally.hold(seed, done, judged);
        tally.unmet = tally.gates.unmet(subject.wanted());
        let ends = is_enough(&tally);
        if !sound {
            return keep(folder, tally);
        }
        if ends {
            break;
        }
    }
    Ok(tally)
}

/// Keeps a database that shows a breach, with the last history.
pub(crate) fn keep(folder: tempfile::TempDir, mut tally: Tally) -> Result<Tally> {
    let kept = folder.keep();
    let lines: Vec<String> = tally.gates.last.iter().map(Op::line).collect();
    std::fs::write(kept.join("history.jsonl"), lines.join("\n"))?;
    tally
        .breaches
        .push(format!("the database is kept in {}", kept.display()));
    Ok(tally)
}
