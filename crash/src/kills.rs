//! The service killed at random instants under load, again and again, on a database that grows.

use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use crate::Result;
use crate::book::Deposit;
use crate::history::{Gates, Kind, Op, Outcome};
use crate::http::{Client, request};
use crate::judge::{converge, events, judge};
use crate::load::{self, Front, Run, number};
use crate::orders::Asset;
use crate::programs::{Programs, Service};
use crate::time;
use crate::world::{POOR, Partner, World, credit_words};

/// Leases of a worker that was killed last its timeout and 20 s; then everything is delivered again.
const DELIVERED_WITHIN: Duration = Duration::from_secs(45);
/// A poll's lease lasts the engine's timeout and 2 s, and a trade may take two polls.
const ENDED_WITHIN: Duration = Duration::from_secs(15);
const POLLS: u32 = 4;
/// So many operations go before the kill, however fast the machine is; it comes up to so much later.
const LOAD: Range<u64> = 60..240;
const LATER: Range<u64> = 0..20_000;
/// A run of so many rounds has to meet what is asked of a history; a shorter one is told what it lacks.
const COUNTS_FROM: u64 = 100;
/// And no later than this.
const LOADED_WITHIN: Duration = Duration::from_secs(20);

/// What came of many rounds.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) rounds: u64,
    pub(crate) kills: u64,
    pub(crate) quotes: u64,
    pub(crate) trades: u64,
    pub(crate) resolved: u64,
    pub(crate) verified: u64,
    pub(crate) events: u64,
    pub(crate) redelivered: u64,
    pub(crate) slowest_start: Duration,
    pub(crate) gates: Gates,
    /// Each with the seed that shows it again.
    pub(crate) breaches: Vec<String>,
}

impl Tally {
    pub(crate) fn merge(&mut self, world: &World) {
        for partner in &world.partners {
            let book = partner.book.lock();
            self.quotes += book.quotes.len() as u64;
            let traded = book.quotes.values().filter(|quote| quote.trade.is_some());
            self.trades += traded.count() as u64;
        }
        for event in world.receiver.events().values() {
            self.events += 1;
            self.redelivered += u64::from(event.times.saturating_sub(1));
        }
    }

    /// Notes what was found or failed; was it nothing?
    pub(crate) fn hold(&mut self, seed: u64, round: u64, judged: Result<Vec<String>>) -> bool {
        let breaches = judged.unwrap_or_else(|fault| vec![fault.to_string()]);
        let sound = breaches.is_empty();
        self.blame(seed, round, breaches);
        sound
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
        let lines = [
            ("rounds", self.rounds),
            ("processes killed", self.kills),
            ("firm quotes", self.quotes),
            ("trades acknowledged", self.trades),
            ("unknown outcomes found out", self.resolved),
            ("events received", self.events),
            ("deliveries beyond the first", self.redelivered),
            ("clean runs of `verify`", self.verified),
            (
                "slowest start and first answer, ms",
                millis(self.slowest_start),
            ),
        ];
        for (what, figure) in lines {
            writeln!(f, "{what:<38}{figure:>8}")?;
        }
        if self.gates.ops == 0 {
            return Ok(());
        }
        write!(f, "{}", self.gates)
    }
}

/// Starts the service and waits for its first answer.
pub(crate) fn up(world: &World, tally: &mut Tally) -> Result<Service> {
    let began = time::now();
    let service = world.installation.serve(None, &[])?;
    let key = world.partners.first().map_or("", |partner| &partner.key);
    let ready = request(key, "GET", "/pools/EUR-USDT/balance", "", "");
    let first = Client::new(service.address).call(&ready);
    if !first.is_ok_and(|answer| answer.status == 200) {
        return Err("the service does not answer after its start".into());
    }
    let took = time::now().saturating_sub(began);
    tally.slowest_start = tally.slowest_start.max(took);
    Ok(service)
}

/// A round: up, find out, compare, load, kill, verify.
pub(crate) fn round(
    world: &World,
    seed: u64,
    tally: &mut Tally,
    verify: bool,
) -> Result<Vec<String>> {
    let mut chance = fastrand::Rng::with_seed(seed);
    let service = up(world, tally)?;
    tally.resolved += converge(world, service.address)?;
    let breaches = judge(world, service.address, false)?;
    let (enough, later) = (chance.u64(LOAD), Duration::from_micros(chance.u64(LATER)));
    let mut credit = None;
    let mut ops = load_until(world, &Front::of(&service), seed, |run| {
        if chance.u8(0..100) < 25 {
            credit = operator(world, &mut chance);
        }
        enough_of(run, enough);
        thread::sleep(later);
        service.kill();
    });
    ops.extend(credit);
    tally.gates.add(ops);
    tally.rounds += 1;
    tally.kills += 1;
    if verify {
        world.installation.verify()?;
        tally.verified += 1;
    }
    Ok(breaches)
}

/// Waits for so many operations, but not for ever.
pub(crate) fn enough_of(run: &Run, enough: u64) {
    let began = time::now();
    while run.ended.load(Ordering::Relaxed) < enough
        && time::now().saturating_sub(began) < LOADED_WITHIN
    {
        thread::sleep(Duration::from_millis(2));
    }
}

/// Load until `end` returns; what the clients did.
pub(crate) fn load_until(
    world: &World,
    front: &Front,
    seed: u64,
    end: impl FnOnce(&Run),
) -> Vec<Op> {
    let run = Run::default();
    thread::scope(|scope| {
        let clients = scope.spawn(|| load::run(world, front, seed, &run));
        end(&run);
        run.stop.store(true, Ordering::Relaxed);
        clients.join().unwrap_or_default()
    })
}

/// The operator credits the poor partner, and is sometimes killed half-way.
pub(crate) fn operator(world: &World, chance: &mut fastrand::Rng) -> Option<Op> {
    let partner = world.partners.get(POOR)?;
    let reference = format!("deposit-{}", number());
    let asset = chance.choice(Asset::ALL).unwrap_or_default();
    let deposit = Deposit::of(asset, chance.i64(1_000..20_000));
    let words = credit_words(&partner.name, &reference, &deposit);
    partner.book.lock().deposits.insert(reference, deposit);
    let mut command = world.installation.command("penstock", None);
    command
        .args(words)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let invoked = time::now();
    let mut child = command.spawn().ok()?;
    if chance.bool() {
        thread::sleep(Duration::from_millis(chance.u64(1..60)));
        // It may have ended by itself; either way the reference is asked for again.
        let _ = child.kill();
    }
    let done = child.wait().is_ok_and(|status| status.success());
    Some(Op {
        client: number(),
        kind: Kind::Credit,
        partner: partner.name.clone(),
        object: None,
        key: None,
        invoked,
        completed: time::now(),
        outcome: if done { Outcome::Ok } else { Outcome::Info },
        said: None,
        seen: None,
        repeated: false,
    })
}

/// After the last fault: everything known, every trade at its end, every event taken, nothing changed that was
/// judged before.
pub(crate) fn close(world: &World, tally: &mut Tally) -> Result<Vec<String>> {
    let service = up(world, tally)?;
    let breaches = reckon(world, service.address, tally)?;
    service.kill();
    world.installation.verify()?;
    tally.verified += 1;
    tally.merge(world);
    Ok(breaches)
}

/// The same of a service that is up.
pub(crate) fn reckon(world: &World, address: SocketAddr, tally: &mut Tally) -> Result<Vec<String>> {
    tally.resolved += converge(world, address)?;
    let mut breaches = judge(world, address, true)?;
    breaches.extend(poll_all(world, address)?);
    breaches.extend(events(world, address, DELIVERED_WITHIN)?);
    breaches.extend(judge(world, address, true)?);
    Ok(breaches)
}

/// Polls everything that is not known to have ended until it has; what has not. The lease of a poll that was killed
/// holds others back for as long as it lasts.
pub(crate) fn poll_all(world: &World, address: SocketAddr) -> Result<Vec<String>> {
    let began = time::now();
    let mut turns = 0;
    loop {
        let mut open = Vec::new();
        for partner in &world.partners {
            open.extend(still_reserved(partner, address)?);
        }
        turns += 1;
        let late = time::now().saturating_sub(began) > ENDED_WITHIN;
        if open.is_empty() || late && turns > POLLS {
            return Ok(open);
        }
        thread::sleep(Duration::from_millis(200));
    }
}

fn still_reserved(partner: &Partner, address: SocketAddr) -> Result<Vec<String>> {
    let mut client = Client::new(address);
    let mut book = partner.book.lock();
    let mut open = Vec::new();
    for (id, quote) in &mut book.quotes {
        if quote.trade.is_none() || !matches!(quote.seen.as_deref(), None | Some("reserved")) {
            continue;
        }
        let path = format!("/pools/transactions/{id}");
        let answer = client.call(&request(&partner.key, "GET", &path, "", ""));
        let answer = answer.map_err(|lost| format!("polling {id}: {lost:?}"))?;
        quote.seen = answer.text("status");
        if quote
            .seen
            .as_deref()
            .is_none_or(|state| state == "reserved")
        {
            open.push(format!(
                "{id} has not ended: {} {}",
                answer.status,
                answer.code()
            ));
        }
    }
    Ok(open)
}

/// So many rounds, a fresh database after every `campaign` of them.
// rule: base.acknowledged-is-kept, pools.transact.atomic, idempotency.same-transaction, pools.quote-record.monotone
// rule: webhook.at-least-once, webhook.signature, webhook.standard-headers, webhook.fresh
pub(crate) fn run(
    programs: &Programs,
    rounds: u64,
    campaign: u64,
    seed: u64,
    tell: impl Fn(&Tally),
) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut done = 0;
    while done < rounds {
        let folder = tempfile::tempdir()?;
        let world = World::make(folder.path(), programs, seed.wrapping_add(done))?;
        for _ in 0..campaign.max(1).min(rounds - done) {
            done += 1;
            let of_round = seed.wrapping_mul(1_000_000).wrapping_add(done);
            let judged = round(&world, of_round, &mut tally, true);
            if !tally.hold(seed, done, judged) {
                return keep(folder, tally);
            }
        }
        let judged = close(&world, &mut tally);
        let sound = tally.hold(seed, done, judged);
        tell(&tally);
        if !sound {
            return keep(folder, tally);
        }
    }
    let mut faults = tally.gates.too_slow();
    if rounds >= COUNTS_FROM {
        faults.extend(tally.gates.unmet());
    }
    tally.blame(seed, done, faults);
    Ok(tally)
}

/// A database that shows a breach is evidence, and so is what was done to it last.
pub(crate) fn keep(folder: tempfile::TempDir, mut tally: Tally) -> Result<Tally> {
    let kept = folder.keep();
    let lines: Vec<String> = tally.gates.last.iter().map(Op::line).collect();
    std::fs::write(kept.join("history.jsonl"), lines.join("\n"))?;
    tally
        .breaches
        .push(format!("the database is kept in {}", kept.display()));
    Ok(tally)
}
