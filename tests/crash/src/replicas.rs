//! Two replicas on one database. Every round breaks something that they share, under load.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use test_support::http::nowhere;
use test_support::time;

use crate::Result;
use crate::caller::Front;
use crate::history::Op;
use crate::http::Client;
use crate::kills::{Tally, enough_of, keep, load_until, reckon};
use crate::programs::{Installation, Programs, Served, Service};
use crate::servers::Servers;
use crate::subject::Subject;

const CLIENTS: u64 = 32;
/// Objects per partner: enough that twins, which carry no information, are not most of the history.
const HOT: usize = 10;
/// Minimum operations of a round, independent of the machine's speed.
const OPERATIONS_PER_ROUND: Range<u64> = 400..800;
/// Start of a fault within the load, and its duration, both in milliseconds.
const FAULT_START_MS: Range<u64> = 100..1_500;
const FAULT_DURATION_MS: Range<u64> = 100..1_500;
/// Faults in addition to the two of the round.
const MORE_FAULTS: Range<usize> = 0..2;
const FLUSHES: u32 = 3;
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
const HUNG_UP: u64 = 150;
const ANSWERS_LOST: Range<u64> = 3..12;
/// Time limit to start a replica, which fails while the database is unavailable and is tried again.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A fault of the replicas or of a server that they share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    ReplicaKilled,
    PostgresStopped,
    SessionsEnded,
    AnswersLost,
    RedisFlushed,
    RedisKilled,
    RedisPaused,
    ClientsHangUp,
}

impl Fault {
    /// All faults. The first two rounds bring the most important ones.
    const ALL: [Self; 8] = [
        Self::ReplicaKilled,
        Self::RedisFlushed,
        Self::AnswersLost,
        Self::PostgresStopped,
        Self::SessionsEnded,
        Self::RedisKilled,
        Self::RedisPaused,
        Self::ClientsHangUp,
    ];

    /// Chooses two faults in turn, so that four rounds bring all, and some random ones.
    fn of_round(round: u64, chance: &mut fastrand::Rng) -> Vec<Self> {
        let turn = Self::ALL
            .iter()
            .cycle()
            .skip(2 * (round as usize % 4))
            .take(2);
        let mut faults: Vec<Self> = turn.copied().collect();
        for _ in 0..chance.usize(MORE_FAULTS) {
            faults.extend(chance.choice(Self::ALL));
        }
        faults
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReplicaKilled => "a replica killed",
            Self::PostgresStopped => "Postgres stopped as by a power cut",
            Self::SessionsEnded => "all sessions ended",
            Self::AnswersLost => "commits whose answers are lost",
            Self::RedisFlushed => "Redis flushed every second",
            Self::RedisKilled => "Redis killed",
            Self::RedisPaused => "Redis paused",
            Self::ClientsHangUp => "clients hang up",
        })
    }
}

/// Result of many rounds.
#[derive(Debug, Default)]
pub(crate) struct Replicas {
    pub(crate) tally: Tally,
    faults: BTreeMap<Fault, u64>,
    answers_lost: u64,
    /// Number of checked objects by kind, and of objects whose search was given up.
    looked_at: BTreeMap<&'static str, u64>,
    given_up: u64,
}

impl fmt::Display for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (fault, times) in &self.faults {
            writeln!(f, "{:<38}{times:>8}", fault.to_string())?;
        }
        writeln!(
            f,
            "{:<38}{:>8}",
            "answers to commits lost", self.answers_lost
        )?;
        for (kind, figure) in &self.looked_at {
            let what = format!("histories of a {kind} looked at");
            writeln!(f, "{what:<38}{figure:>8}")?;
        }
        let what = "  of which the search was given up";
        writeln!(f, "{what:<38}{:>8}", self.given_up)
    }
}

/// One of the two replicas, always at the same address.
#[derive(Debug)]
struct Replica {
    name: &'static str,
    address: SocketAddr,
    /// Offset of its clock from the machine's clock in milliseconds, if it has one.
    clock: Option<&'static str>,
    service: Mutex<Option<Service>>,
}

/// A database, its servers, and the replicas on it.
#[derive(Debug)]
pub(crate) struct Cluster<S> {
    // The replicas are dropped before their servers.
    replicas: [Replica; 2],
    pub(crate) subject: S,
    servers: Servers,
}

impl<S: Subject> Cluster<S> {
    /// Creates replicas with the given offsets of their clocks in milliseconds.
    pub(crate) fn make(
        folder: &Path,
        programs: &Programs,
        served: Served,
        clocks: [Option<&'static str>; 2],
        subject: impl FnOnce(Installation) -> Result<S>,
    ) -> Result<Self> {
        let servers = Servers::start()?;
        let settings = servers.settings();
        let mut told: Vec<(&str, &str)> = vec![("PENSTOCK_THROTTLE", "on")];
        told.extend(settings.iter().map(|(name, value)| (*name, value.as_str())));
        let installation = Installation::new(folder, programs, &told).of(served);
        servers.migrate(&installation)?;
        let [ahead, behind] = clocks;
        let replica = |name, clock| Replica {
            name,
            address: nowhere(),
            clock,
            service: Mutex::default(),
        };
        let cluster = Self {
            replicas: [replica("replica-1", ahead), replica("replica-2", behind)],
            subject: subject(installation)?,
            servers,
        };
        for replica in &cluster.replicas {
            cluster.start(replica)?;
        }
        Ok(cluster)
    }

    /// Starts a replica that is not running, and waits until it listens.
    fn start(&self, replica: &Replica) -> Result<()> {
        let began = time::now();
        let (listen, url) = (
            replica.address.to_string(),
            self.servers.through_the_proxy(),
        );
        let installation = self.subject.installation();
        let mut more = vec![
            (installation.served.listen(), listen.as_str()),
            ("PENSTOCK_DATABASE_URL", url.as_str()),
        ];
        more.extend(replica.clock.map(|ahead| ("FAILPOINTS_CLOCK", ahead)));
        // Only a program with crash points has a clock that can be set.
        let points = replica.clock.map(|_| "");
        loop {
            let took = time::now().saturating_sub(began);
            match installation.serve_as(replica.name, points, &more) {
                Ok(service) => {
                    *replica.service.lock() = Some(service);
                    return Ok(());
                }
                Err(fault) if took > START_TIMEOUT => return Err(fault),
                Err(_) => thread::sleep(FLUSH_INTERVAL / 10),
            }
        }
    }

    pub(crate) fn addresses(&self) -> [SocketAddr; 2] {
        self.replicas.each_ref().map(|one| one.address)
    }

    fn front(&self) -> Front {
        Front {
            addresses: self.addresses().to_vec(),
            clients: CLIENTS,
            hot: HOT,
            traders: 0,
        }
    }

    /// Causes a fault and repairs it. Operations that clients abandoned go to the strays.
    fn suffer(
        &self,
        fault: Fault,
        chance: &mut fastrand::Rng,
        seed: u64,
        strays: &Mutex<Vec<Op>>,
    ) -> Result<()> {
        thread::sleep(Duration::from_millis(chance.u64(FAULT_START_MS)));
        let away = Duration::from_millis(chance.u64(FAULT_DURATION_MS));
        let servers = &self.servers;
        match fault {
            Fault::ReplicaKilled => {
                let replica = chance.choice(&self.replicas).ok_or("no replica")?;
                let Some(service) = replica.service.lock().take() else {
                    return Ok(());
                };
                service.kill();
                thread::sleep(away);
                self.start(replica)
            }
            Fault::PostgresStopped => servers.cut_the_power(away),
            Fault::SessionsEnded => servers.end_sessions(),
            Fault::AnswersLost => {
                servers.proxy.lose(chance.u64(ANSWERS_LOST));
                Ok(())
            }
            Fault::RedisFlushed => (0..FLUSHES).try_for_each(|_| {
                thread::sleep(FLUSH_INTERVAL);
                servers.flush_redis()
            }),
            Fault::RedisKilled => servers.kill_redis(away),
            Fault::RedisPaused => servers.pause_redis(away),
            Fault::ClientsHangUp => {
                let replica = chance.choice(&self.replicas).ok_or("no replica")?;
                let left = self.subject.rage(replica.address, HUNG_UP, seed);
                strays.lock().extend(left);
                Ok(())
            }
        }
    }

    /// Runs load while the round's faults happen at random instants. Returns the operations of the clients, and those of clients that
    /// did not wait for a response.
    fn load(&self, faults: &[Fault], seed: u64) -> Result<(Vec<Op>, Vec<Op>)> {
        // The history must not contain objects of an earlier one.
        self.subject.start_new_history();
        let mut chance = fastrand::Rng::with_seed(seed);
        let enough = chance.u64(OPERATIONS_PER_ROUND);
        let mut credit = None;
        let mut suffered = Vec::new();
        let strays = Mutex::new(Vec::new());
        let mut ops = load_until(&self.subject, &self.front(), seed, |run| {
            thread::scope(|scope| {
                let suffering: Vec<_> = faults
                    .iter()
                    .map(|fault| {
                        let (mut own, strays) = (chance.fork(), &strays);
                        scope.spawn(move || self.suffer(*fault, &mut own, seed, strays))
                    })
                    .collect();
                if chance.bool() {
                    credit = self.subject.operate(&mut chance);
                }
                let ends = suffering.into_iter().map(thread::ScopedJoinHandle::join);
                suffered.extend(ends);
            });
            enough_of(run, enough);
        });
        ops.extend(credit);
        self.servers.proxy.lose_no_more();
        for end in suffered {
            end.map_err(|_| "a fault panicked")??;
        }
        Ok((ops, strays.into_inner()))
    }

    /// Runs a round: load and faults, then resolves every outcome, ends every trade, compares and verifies.
    fn round(&self, number: u64, seed: u64, replicas: &mut Replicas) -> Result<Vec<String>> {
        let mut chance = fastrand::Rng::with_seed(seed);
        let faults = Fault::of_round(number, &mut chance);
        for fault in &faults {
            *replicas.faults.entry(*fault).or_default() += 1;
        }
        let (ops, strays) = self.load(&faults, seed)?;
        let history = self.subject.linear(&[ops.as_slice(), &strays].concat());
        for (kind, looked_at) in history.looked_at {
            *replicas.looked_at.entry(kind).or_default() += looked_at;
        }
        replicas.given_up += history.given_up;
        let mut breaches = history.breaches;
        let tally = &mut replicas.tally;
        tally.gates.add(ops);
        let killed = faults
            .iter()
            .filter(|fault| **fault == Fault::ReplicaKilled);
        tally.kills += killed.count() as u64;
        self.answers()?;
        // Each replica must also report what the other one did.
        let [one, other] = &self.replicas;
        tally.resolved += self.subject.converge(one.address)?;
        breaches.extend(self.subject.end_all(other.address)?);
        breaches.extend(self.subject.judge(one.address, true)?);
        self.subject.installation().verify()?;
        tally.verified += 1;
        tally.rounds += 1;
        Ok(breaches)
    }

    /// Waits until every replica responds.
    fn answers(&self) -> Result<()> {
        let greeting = self.subject.greeting();
        let began = time::now();
        for replica in &self.replicas {
            let mut client = Client::new(replica.address);
            while !client
                .call(&greeting)
                .is_ok_and(|answer| answer.status == 200)
            {
                if time::now().saturating_sub(began) > START_TIMEOUT {
                    return Err(format!("{} no longer responds", replica.name).into());
                }
                thread::sleep(FLUSH_INTERVAL / 10);
            }
        }
        Ok(())
    }

    /// Final comparison: reads everything again, and checks that the receiver accepted every trade's event.
    fn close(&self, tally: &mut Tally) -> Result<Vec<String>> {
        let [one, _] = &self.replicas;
        let breaches = reckon(&self.subject, one.address, tally)?;
        self.subject.installation().verify()?;
        tally.verified += 1;
        tally.merge(&self.subject);
        Ok(breaches)
    }
}

/// Runs a number of rounds, with fresh servers after every `campaign` rounds.
// rule: base.acknowledged-is-kept, pools.transact.atomic, idempotency.same-transaction, pools.quote-record.monotone
// rule: webhook.at-least-once
pub(crate) fn run<S: Subject>(
    rounds: u64,
    campaign: u64,
    seed: u64,
    make: impl Fn(&Path, u64) -> Result<Cluster<S>>,
    tell: impl Fn(&Tally),
) -> Result<Replicas> {
    let mut replicas = Replicas::default();
    let mut done = 0;
    while done < rounds {
        let folder = tempfile::tempdir()?;
        let cluster = make(folder.path(), seed.wrapping_add(done))?;
        let until = rounds.min(done + campaign.max(1));
        let sound = (done..until).all(|round| {
            done += 1;
            let of_round = seed.wrapping_mul(1_000_000).wrapping_add(done);
            let judged = cluster.round(round, of_round, &mut replicas);
            replicas.tally.hold(seed, done, judged)
        });
        let sound = sound && {
            let judged = cluster.close(&mut replicas.tally);
            replicas.tally.hold(seed, done, judged)
        };
        replicas.answers_lost += cluster.servers.proxy.lost();
        replicas.tally.unmet = replicas.tally.gates.unmet(cluster.subject.wanted());
        tell(&replicas.tally);
        if !sound {
            std::fs::write(folder.path().join("database.sql"), cluster.servers.dump()?)?;
            replicas.tally = keep(folder, replicas.tally)?;
            return Ok(replicas);
        }
    }
    Ok(replicas)
}
