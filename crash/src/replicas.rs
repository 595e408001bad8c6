//! Two replicas on one database, and everything they share broken under load, round after round.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use crate::Result;
use crate::history::Op;
use crate::http::{Client, request};
use crate::judge::{converge, judge};
use crate::kills::{Tally, enough_of, keep, load_until, operator, poll_all, reckon};
use crate::linear;
use crate::load::Front;
use crate::programs::{Installation, Programs, Service};
use crate::servers::Servers;
use crate::storm::{free_port, rage};
use crate::time;
use crate::world::World;

const CLIENTS: u64 = 32;
/// Enough that twins, which tell nothing, do not make up most of the history.
const HOT: usize = 10;
/// So many operations at least make a round, however fast the machine is.
const LOAD: Range<u64> = 400..800;
/// A fault begins at some millisecond of the load, and what it takes away is away for some more.
const BEGINS: Range<u64> = 100..1_500;
const AWAY: Range<u64> = 100..1_500;
/// Beside the two whose turn it is.
const MORE_FAULTS: Range<usize> = 0..2;
const FLUSHES: u32 = 3;
const EVERY: Duration = Duration::from_secs(1);
const HUNG_UP: u64 = 150;
const ANSWERS_LOST: Range<u64> = 3..12;
/// A replica that is started while the database is away is started again until it is there.
const UP_WITHIN: Duration = Duration::from_secs(30);

/// What happens to replicas.
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
    const ALL: [Self; 8] = [
        Self::ReplicaKilled,
        Self::PostgresStopped,
        Self::SessionsEnded,
        Self::AnswersLost,
        Self::RedisFlushed,
        Self::RedisKilled,
        Self::RedisPaused,
        Self::ClientsHangUp,
    ];

    /// Two have their turn, so that four rounds see all; others may come on top.
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

/// What came of many rounds.
#[derive(Debug, Default)]
pub(crate) struct Replicas {
    pub(crate) tally: Tally,
    faults: BTreeMap<Fault, u64>,
    answers_lost: u64,
    /// Objects whose histories were looked at, and those of which the search was given up.
    quotes: u64,
    keys: u64,
    given_up: u64,
}

impl fmt::Display for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (fault, times) in &self.faults {
            writeln!(f, "{:<38}{times:>8}", fault.to_string())?;
        }
        let lines = [
            ("answers to commits lost", self.answers_lost),
            ("histories of a quote looked at", self.quotes),
            ("histories of a key looked at", self.keys),
            ("  of which the search was given up", self.given_up),
        ];
        for (what, figure) in lines {
            writeln!(f, "{what:<38}{figure:>8}")?;
        }
        Ok(())
    }
}

/// One of the two, always at the same address.
#[derive(Debug)]
struct Replica {
    name: &'static str,
    address: SocketAddr,
    /// How far its clock is ahead of the machine's, in milliseconds, where that is not left alone.
    clock: Option<&'static str>,
    service: Mutex<Option<Service>>,
}

/// A database, its servers, and the replicas on it.
#[derive(Debug)]
pub(crate) struct Cluster {
    // The replicas end before what they stand on.
    replicas: [Replica; 2],
    pub(crate) world: World,
    servers: Servers,
}

impl Cluster {
    fn make(folder: &Path, programs: &Programs, seed: u64) -> Result<Self> {
        Self::with_clocks(folder, programs, seed, [None; 2])
    }

    /// Replicas whose clocks are so many milliseconds ahead of the machine's.
    pub(crate) fn with_clocks(
        folder: &Path,
        programs: &Programs,
        seed: u64,
        clocks: [Option<&'static str>; 2],
    ) -> Result<Self> {
        let servers = Servers::start()?;
        let settings = servers.settings();
        let mut told: Vec<(&str, &str)> = vec![("PENSTOCK_THROTTLE", "on")];
        told.extend(settings.iter().map(|(name, value)| (*name, value.as_str())));
        let installation = Installation::new(folder, programs, &told);
        servers.migrate(&installation)?;
        let [ahead, behind] = clocks;
        let replica = |name, clock| -> Result<Replica> {
            Ok(Replica {
                name,
                address: free_port()?,
                clock,
                service: Mutex::default(),
            })
        };
        let cluster = Self {
            replicas: [replica("replica-1", ahead)?, replica("replica-2", behind)?],
            world: World::on(installation, seed)?,
            servers,
        };
        for replica in &cluster.replicas {
            cluster.start(replica)?;
        }
        Ok(cluster)
    }

    /// Starts a replica that is not there, and waits until it listens.
    fn start(&self, replica: &Replica) -> Result<()> {
        let began = time::now();
        let (listen, url) = (
            replica.address.to_string(),
            self.servers.through_the_proxy(),
        );
        let mut more = vec![
            ("PENSTOCK_POOLS_LISTEN", listen.as_str()),
            ("PENSTOCK_DATABASE_URL", url.as_str()),
        ];
        more.extend(replica.clock.map(|ahead| ("FAILPOINTS_CLOCK", ahead)));
        // Only a program with crash points has a clock that can be set.
        let points = replica.clock.map(|_| "");
        let installation = &self.world.installation;
        loop {
            let took = time::now().saturating_sub(began);
            match installation.serve_as(replica.name, points, &more) {
                Ok(service) => {
                    *replica.service.lock() = Some(service);
                    return Ok(());
                }
                Err(fault) if took > UP_WITHIN => return Err(fault),
                Err(_) => thread::sleep(EVERY / 10),
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
        }
    }

    /// Breaks something, and mends it.
    fn suffer(&self, fault: Fault, chance: &mut fastrand::Rng, seed: u64) -> Result<()> {
        thread::sleep(Duration::from_millis(chance.u64(BEGINS)));
        let away = Duration::from_millis(chance.u64(AWAY));
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
                thread::sleep(EVERY);
                servers.flush_redis()
            }),
            Fault::RedisKilled => servers.kill_redis(away),
            Fault::RedisPaused => servers.pause_redis(away),
            Fault::ClientsHangUp => {
                let replica = chance.choice(&self.replicas).ok_or("no replica")?;
                rage(&self.world, replica.address, HUNG_UP, seed);
                Ok(())
            }
        }
    }

    /// Load while everything that this round brings happens, each at its own moment.
    fn load(&self, faults: &[Fault], seed: u64) -> Result<Vec<Op>> {
        // A history of its own: nothing is met that an earlier one has left.
        for partner in &self.world.partners {
            partner.book.lock().hot.clear();
        }
        let mut chance = fastrand::Rng::with_seed(seed);
        let enough = chance.u64(LOAD);
        let mut credit = None;
        let mut suffered = Vec::new();
        let mut ops = load_until(&self.world, &self.front(), seed, |run| {
            thread::scope(|scope| {
                let suffering: Vec<_> = faults
                    .iter()
                    .map(|fault| {
                        let mut own = chance.fork();
                        scope.spawn(move || self.suffer(*fault, &mut own, seed))
                    })
                    .collect();
                if chance.bool() {
                    credit = operator(&self.world, &mut chance);
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
        Ok(ops)
    }

    /// A round: load and faults, then everything found out, every trade at its end, all of it judged and verified.
    fn round(&self, number: u64, seed: u64, replicas: &mut Replicas) -> Result<Vec<String>> {
        let mut chance = fastrand::Rng::with_seed(seed);
        let faults = Fault::of_round(number, &mut chance);
        for fault in &faults {
            *replicas.faults.entry(*fault).or_default() += 1;
        }
        let ops = self.load(&faults, seed)?;
        let history = linear::check(&ops);
        replicas.quotes += history.quotes;
        replicas.keys += history.keys;
        replicas.given_up += history.given_up;
        let mut breaches = history.breaches;
        let tally = &mut replicas.tally;
        tally.gates.add(ops);
        let killed = faults
            .iter()
            .filter(|fault| **fault == Fault::ReplicaKilled);
        tally.kills += killed.count() as u64;
        self.answers()?;
        // Each asks about what the other has done, too.
        let [one, other] = &self.replicas;
        tally.resolved += converge(&self.world, one.address)?;
        breaches.extend(poll_all(&self.world, other.address)?);
        breaches.extend(judge(&self.world, one.address, true)?);
        self.world.installation.verify()?;
        tally.verified += 1;
        tally.rounds += 1;
        Ok(breaches)
    }

    /// Every replica answers again.
    fn answers(&self) -> Result<()> {
        let key = self.world.partners.first().map_or("", |one| &one.key);
        let balance = request(key, "GET", "/pools/EUR-USDT/balance", "", "");
        let began = time::now();
        for replica in &self.replicas {
            let mut client = Client::new(replica.address);
            while !client
                .call(&balance)
                .is_ok_and(|answer| answer.status == 200)
            {
                if time::now().saturating_sub(began) > UP_WITHIN {
                    return Err(format!("{} does not answer any more", replica.name).into());
                }
                thread::sleep(EVERY / 10);
            }
        }
        Ok(())
    }

    /// Everything read once more, and every trade's event taken.
    fn close(&self, tally: &mut Tally) -> Result<Vec<String>> {
        let [one, _] = &self.replicas;
        let breaches = reckon(&self.world, one.address, tally)?;
        self.world.installation.verify()?;
        tally.verified += 1;
        tally.merge(&self.world);
        Ok(breaches)
    }
}

/// So many rounds, fresh servers after every `campaign` of them.
// rule: base.acknowledged-is-kept, pools.transact.atomic, idempotency.same-transaction, pools.quote-record.monotone
// rule: webhook.at-least-once
pub(crate) fn run(
    programs: &Programs,
    rounds: u64,
    campaign: u64,
    seed: u64,
    tell: impl Fn(&Tally),
) -> Result<Replicas> {
    let mut replicas = Replicas::default();
    let mut done = 0;
    while done < rounds {
        let folder = tempfile::tempdir()?;
        let cluster = Cluster::make(folder.path(), programs, seed.wrapping_add(done))?;
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
        tell(&replicas.tally);
        if !sound {
            std::fs::write(folder.path().join("database.sql"), cluster.servers.dump()?)?;
            replicas.tally = keep(folder, replicas.tally)?;
            return Ok(replicas);
        }
    }
    Ok(replicas)
}
