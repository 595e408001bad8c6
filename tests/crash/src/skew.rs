//! Quotes at the instant of their expiry, on two replicas whose clocks differ by four seconds.
//!
//! The database's clock decides. It is the machine's clock, which this driver reads too.

use std::fmt;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use kernel::{Bound, Timestamp};
use test_support::time;

use crate::Result;
use crate::book::Quote;
use crate::http::{Answer, Client, request};
use crate::kills::{Tally, keep, reckon};
use crate::load::{note_transact, quote_request, transact_request};
use crate::orders::{Order, Side};
use crate::programs::{Programs, Served};
use crate::replicas::Cluster;
use crate::world::{Partner, World};

/// Offset of each replica's clock, in milliseconds.
const CLOCKS: [Option<&str>; 2] = [Some("2000"), Some("-2000")];
/// Quotes of a round. Each is executed at the instant of its expiry.
const QUOTES: usize = 16;
/// Half of the longest time before the expiry at which a transact is sent. The driver raises it if most transacts were too
/// late and lowers it if most were in time, so that they meet the instant on any machine.
const LEAD: Duration = Duration::from_millis(100);
/// Readers poll from this long before the first expiry until this long after the last.
const READ_MARGIN: Duration = Duration::from_millis(30);

/// Result of the races.
#[derive(Debug, Default)]
pub(crate) struct Skew {
    pub(crate) tally: Tally,
    executed: u64,
    expired: u64,
    read: u64,
}

impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            executed,
            expired,
            read,
            ..
        } = self;
        writeln!(
            f,
            "quotes at their end: executed {executed}, too late {expired}, read {read} times"
        )
    }
}

/// A quote and its expiry.
#[derive(Debug)]
struct Ending {
    id: String,
    key: String,
    expires: Timestamp,
}

/// What the clients of one quote observed at its expiry.
#[derive(Debug, Default)]
struct Observed {
    executed: bool,
    /// Whether a transact was too late.
    refused: bool,
    /// Whether a read showed the quote as expired.
    expired: bool,
    read: u64,
    breaches: Vec<String>,
}

/// Runs a number of rounds on one pair of replicas.
// rule: pools.transact.expired, pools.quote-record.monotone, time.one-clock, time.read-after-lock
pub(crate) fn run(programs: &Programs, rounds: u64, seed: u64) -> Result<Skew> {
    let folder = tempfile::tempdir()?;
    let world = |installation| World::on(installation, seed);
    let cluster = Cluster::make(folder.path(), programs, Served::Pools, CLOCKS, world)?;
    let mut skew = Skew::default();
    let mut lead = LEAD;
    for number in 0..rounds {
        let before = skew.executed;
        let breaches = round(&cluster, seed.wrapping_add(number), lead, &mut skew)?;
        let most = skew.executed.saturating_sub(before) > QUOTES as u64 / 2;
        lead = if most { lead * 2 / 3 } else { lead * 3 / 2 };
        skew.tally.blame(seed, number, breaches);
        skew.tally.rounds += 1;
    }
    if skew.executed.min(skew.expired) == 0 {
        let missed = format!(
            "the instant was missed: {} executed, {} too late",
            skew.executed, skew.expired
        );
        skew.tally.blame(seed, rounds, vec![missed]);
    }
    let breaches = reckon(&cluster.subject, cluster.addresses()[0], &mut skew.tally)?;
    cluster.subject.installation.verify()?;
    skew.tally.verified += 1;
    skew.tally.merge(&cluster.subject);
    skew.tally.blame(seed, rounds, breaches);
    if !skew.tally.breaches.is_empty() {
        skew.tally = keep(folder, skew.tally)?;
    }
    Ok(skew)
}

/// Creates quotes on both replicas and races each at its expiry with two transacts under one key and a reader.
fn round(
    cluster: &Cluster<World>,
    seed: u64,
    lead: Duration,
    skew: &mut Skew,
) -> Result<Vec<String>> {
    let (world, addresses) = (&cluster.subject, cluster.addresses());
    let partner = world.partners.first().ok_or("no partner")?;
    let mut chance = fastrand::Rng::with_seed(seed);
    let by_turns = addresses.iter().cycle().take(QUOTES);
    let endings: Vec<Ending> = by_turns
        .map(|address| ask(partner, *address))
        .collect::<Result<_>>()?;
    let told: Vec<Observed> = thread::scope(|scope| {
        let at_their_ends: Vec<_> = endings
            .iter()
            .map(|ending| {
                let sent = lead * 2 * chance.u32(0..=100) / 100;
                scope.spawn(move || end(partner, ending, addresses, sent))
            })
            .collect();
        let joined = at_their_ends
            .into_iter()
            .map(thread::ScopedJoinHandle::join);
        joined
            .map(|told| told.unwrap_or_else(|_| Observed::broken("a client panicked")))
            .collect()
    });
    let mut breaches = Vec::new();
    for one in told {
        skew.executed += u64::from(one.executed);
        skew.expired += u64::from(!one.executed && one.refused);
        skew.read += one.read;
        breaches.extend(one.breaches);
    }
    Ok(breaches)
}

fn ask(partner: &Partner, address: SocketAddr) -> Result<Ending> {
    let order = Order::new(Side::Purchase, 1_000);
    let answer = Client::new(address).call(&quote_request(partner, order));
    let answer = answer.map_err(|lost| format!("no quote: {lost:?}"))?;
    let (id, quote) = Quote::read(order, &answer).ok_or_else(|| format!("no quote: {answer:?}"))?;
    let expires = answer.text("expiresAt").ok_or("a quote without an end")?;
    let ending = Ending {
        id: id.clone(),
        key: quote.key.clone(),
        expires: instant(&expires)?,
    };
    partner.book.lock().quotes.insert(id, quote);
    Ok(ending)
}

fn instant(text: &str) -> Result<Timestamp> {
    Timestamp::parse(text, Bound::Upper).map_err(|_| format!("no instant: {text}").into())
}

/// Races the clients of one quote at its expiry.
fn end(partner: &Partner, ending: &Ending, addresses: [SocketAddr; 2], sent: Duration) -> Observed {
    let at = ending.expires.minus(sent);
    let from = at.minus(READ_MARGIN);
    let mut told = Observed::default();
    thread::scope(|scope| {
        let executing =
            addresses.map(|address| scope.spawn(move || execute(partner, ending, address, at)));
        let reading =
            addresses.map(|address| scope.spawn(move || read(partner, ending, address, from)));
        let all = executing.into_iter().chain(reading);
        for one in all.map(thread::ScopedJoinHandle::join) {
            told.add(one.unwrap_or_else(|_| Observed::broken("a client panicked")));
        }
    });
    if told.executed {
        let in_time = consumed_in_time(partner, ending, addresses[0]);
        told.breaches
            .extend(in_time.err().map(|fault| fault.to_string()));
        if told.expired {
            let breach = format!("{}: executed, and a client read it as expired", ending.id);
            told.breaches.push(breach);
        }
    }
    told
}

/// Checks that an executed quote was consumed before its expiry by the database's clock.
fn consumed_in_time(partner: &Partner, ending: &Ending, address: SocketAddr) -> Result<()> {
    let answer = Client::new(address).call(&get(partner, ending));
    let answer = answer.map_err(|lost| format!("{}: {lost:?}", ending.id))?;
    let consumed = answer
        .text("consumedAt")
        .ok_or("executed and not consumed")?;
    if instant(&consumed)? >= ending.expires {
        return Err(format!("{}: consumed at {consumed}: {answer:?}", ending.id).into());
    }
    Ok(())
}

fn get(partner: &Partner, ending: &Ending) -> Vec<u8> {
    let path = format!("/pools/quotes/{}", ending.id);
    request(&partner.key, "GET", &path, "", "")
}

impl Observed {
    fn broken(breach: &str) -> Self {
        Self {
            breaches: vec![breach.to_owned()],
            ..Self::default()
        }
    }

    fn add(&mut self, other: Self) {
        self.executed |= other.executed;
        self.refused |= other.refused;
        self.expired |= other.expired;
        self.read += other.read;
        self.breaches.extend(other.breaches);
    }
}

/// Executes the quote at an instant and checks the response against its expiry.
fn execute(partner: &Partner, ending: &Ending, address: SocketAddr, at: Timestamp) -> Observed {
    let mut client = Client::new(address);
    let bytes = transact_request(partner, &ending.id, &ending.key);
    if let Some(quote) = partner.book.lock().quotes.get_mut(&ending.id) {
        quote.doubt(&ending.key);
    }
    time::wait_until(at);
    let answer = client.call(&bytes);
    let answered = time::wall();
    note_transact(partner, &ending.id, &ending.key, &answer);
    match answer {
        Ok(answer) => judge(ending, &answer, answered),
        Err(_) => Observed::broken(&format!(
            "{}: no response, and no fault was active",
            ending.id
        )),
    }
}

fn judge(ending: &Ending, answer: &Answer, answered: Timestamp) -> Observed {
    let late = answered >= ending.expires;
    match (answer.status, answer.code().as_str()) {
        (200, _) => Observed {
            executed: true,
            ..Observed::default()
        },
        (409, "quote_expired") if late => Observed {
            refused: true,
            ..Observed::default()
        },
        // The twin is in progress, or the engine lost its response.
        (409, "idempotency_in_progress" | "quote_in_progress") | (503, "engine_unavailable") => {
            Observed::default()
        }
        _ => Observed::broken(&format!("{}, at {answered}: {answer:?}", ending.id)),
    }
}

/// Reads the quote repeatedly around its expiry.
fn read(partner: &Partner, ending: &Ending, address: SocketAddr, from: Timestamp) -> Observed {
    let mut client = Client::new(address);
    let bytes = get(partner, ending);
    let mut told = Observed::default();
    time::wait_until(from);
    while time::wall() < ending.expires.plus(READ_MARGIN) {
        let Ok(answer) = client.call(&bytes) else {
            return Observed::broken(&format!("{}: not read", ending.id));
        };
        told.read += 1;
        let late = time::wall() >= ending.expires;
        match answer.text("status").as_deref() {
            Some("active") if !told.expired => {}
            Some("consumed") => {}
            Some("expired") if late => told.expired = true,
            _ => told.breaches.push(format!("late {late}: {answer:?}")),
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_is_breach_before_expiry_only() {
        let expires = instant("2026-05-25T12:00:00.000Z").unwrap();
        let ending = Ending {
            id: "pq".to_owned(),
            key: "key".to_owned(),
            expires,
        };
        let expired = Answer {
            status: 409,
            body: br#"{"code":"quote_expired"}"#.to_vec(),
            ..Answer::default()
        };
        let early = judge(&ending, &expired, expires.minus(Duration::from_millis(1)));
        assert_eq!((early.refused, early.breaches.len()), (false, 1));
        let late = judge(&ending, &expired, expires);
        assert_eq!((late.refused, late.breaches.len()), (true, 0));
    }
}
