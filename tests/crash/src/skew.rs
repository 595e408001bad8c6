//! Quotes at the instant of their expiry, through two replicas whose clocks stand four seconds apart. The database's clock
//! decides; it is the machine's, and so is this program's.

use std::fmt;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use kernel::{Bound, Timestamp};

use crate::Result;
use crate::book::Quote;
use crate::http::{Answer, Client, request};
use crate::kills::{Tally, keep, reckon};
use crate::load::{note_transact, quote_request, transact_request};
use crate::orders::{Order, Side};
use crate::programs::{Programs, Served};
use crate::replicas::Cluster;
use crate::time;
use crate::world::{Partner, World};

/// How far each replica's clock is ahead, in milliseconds.
const CLOCKS: [Option<&str>; 2] = [Some("2000"), Some("-2000")];
/// Quotes of a round, all executed at the instant of their own expiry.
const QUOTES: usize = 16;
/// Transacts are sent up to twice so long before the expiry, more where most came too late and less where most came in
/// time: so the instant is met on a machine of any speed.
const LEAD: Duration = Duration::from_millis(100);
/// Readers look for so long before the first and after the expiry.
const ABOUT: Duration = Duration::from_millis(30);

/// What came of it.
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

/// A quote, and when it ends.
#[derive(Debug)]
struct Ending {
    id: String,
    key: String,
    expires: Timestamp,
}

/// What one quote's clients were told there.
#[derive(Debug, Default)]
struct Told {
    executed: bool,
    /// A transact came too late.
    refused: bool,
    /// It was read as expired.
    expired: bool,
    read: u64,
    breaches: Vec<String>,
}

/// So many rounds on one pair of replicas.
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

/// Quotes of both replicas, each at its own end with two transacts under one key and a reader.
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
    let told: Vec<Told> = thread::scope(|scope| {
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
            .map(|told| told.unwrap_or_else(|_| Told::broken("a client panicked")))
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

/// What the clients of one quote are told at its end.
fn end(partner: &Partner, ending: &Ending, addresses: [SocketAddr; 2], sent: Duration) -> Told {
    let at = ending.expires.minus(sent);
    let from = at.minus(ABOUT);
    let mut told = Told::default();
    thread::scope(|scope| {
        let executing =
            addresses.map(|address| scope.spawn(move || execute(partner, ending, address, at)));
        let reading =
            addresses.map(|address| scope.spawn(move || read(partner, ending, address, from)));
        let all = executing.into_iter().chain(reading);
        for one in all.map(thread::ScopedJoinHandle::join) {
            told.add(one.unwrap_or_else(|_| Told::broken("a client panicked")));
        }
    });
    if told.executed {
        let in_time = consumed_in_time(partner, ending, addresses[0]);
        told.breaches
            .extend(in_time.err().map(|fault| fault.to_string()));
        if told.expired {
            let breach = format!(
                "{}: executed, and somebody read that it had expired",
                ending.id
            );
            told.breaches.push(breach);
        }
    }
    told
}

/// An executed quote was consumed before its end, by the one clock that decides.
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

impl Told {
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

/// Executes it at an instant, and looks at what that says of the quote's end.
fn execute(partner: &Partner, ending: &Ending, address: SocketAddr, at: Timestamp) -> Told {
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
        Err(_) => Told::broken(&format!("{}: no answer, and nothing was broken", ending.id)),
    }
}

fn judge(ending: &Ending, answer: &Answer, answered: Timestamp) -> Told {
    let late = answered >= ending.expires;
    match (answer.status, answer.code().as_str()) {
        (200, _) => Told {
            executed: true,
            ..Told::default()
        },
        (409, "quote_expired") if late => Told {
            refused: true,
            ..Told::default()
        },
        // The other one is under way, or the engine lost its response.
        (409, "idempotency_in_progress" | "quote_in_progress") | (503, "engine_unavailable") => {
            Told::default()
        }
        _ => Told::broken(&format!("{}, at {answered}: {answer:?}", ending.id)),
    }
}

/// Reads it over and over about its end.
fn read(partner: &Partner, ending: &Ending, address: SocketAddr, from: Timestamp) -> Told {
    let mut client = Client::new(address);
    let bytes = get(partner, ending);
    let mut told = Told::default();
    time::wait_until(from);
    while time::wall() < ending.expires.plus(ABOUT) {
        let Ok(answer) = client.call(&bytes) else {
            return Told::broken(&format!("{}: not read", ending.id));
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
    fn a_refusal_before_the_end_is_a_breach_and_one_at_the_end_is_not() {
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
