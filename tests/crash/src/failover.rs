//! Failover: the primary of a Patroni pair fails under load, in every manner.
//!
//! Two services use the pair at the same time: one through HAProxy, one through a URL that names both servers. Neither service is
//! restarted.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use test_support::servers::{Patroni, missing_for_patroni};
use test_support::time;

use crate::Result;
use crate::caller::Front;
use crate::http::Client;
use crate::kills::{Tally, keep, load_until, reckon};
use crate::load::quote_request;
use crate::orders::{Order, Side};
use crate::programs::{Installation, Programs, Service};
use crate::proxy::Proxy;
use crate::servers::{MASTER_KEY, ROLES, SERVING, psql};
use crate::subject::Subject;
use crate::world::World;

const DATABASE: &str = "penstock";
const CLIENTS: u64 = 12;
/// Clients that only trade. They make most of the trades.
const TRADERS: u64 = 24;
const HOT: usize = 10;
/// Load before a fault, and after writes succeed again.
const LOAD_BEFORE_FAULT: Duration = Duration::from_secs(2);
const LOAD_AFTER_RECOVERY: Duration = Duration::from_secs(2);
/// Approximate maximum of faults in a long run: each round lasts at least for its share of the trades.
const MAX_FAULTS: u64 = 100;
const MAX_LOAD: Duration = Duration::from_secs(120);
/// Faults between two runs of `penstock verify`, which also runs at the end.
const FAULTS_PER_VERIFY: u64 = 4;
/// Time limit for the promotion of a new primary.
const PROMOTION_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit for the first successful write after the promotion.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for readiness to report a missing primary, on a busy machine.
const NOT_READY_TIMEOUT: Duration = Duration::from_secs(3);
/// Time limit for a service to stop after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(25);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const COUNT_INTERVAL: Duration = Duration::from_millis(500);

/// How the primary fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The network drops all its packets, and no connection closes.
    CutOff,
    /// SIGKILL ends all its processes at once.
    Killed,
    /// Patroni switches over to the standby.
    SwitchedOver,
    /// All its processes stop and continue later.
    Frozen,
}

impl Fault {
    const ALL: [Self; 4] = [Self::CutOff, Self::Killed, Self::SwitchedOver, Self::Frozen];
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CutOff => "primary cut off",
            Self::Killed => "primary killed",
            Self::SwitchedOver => "switchover",
            Self::Frozen => "primary frozen",
        })
    }
}

/// The services, named by how they find the primary.
const WAYS: [&str; 2] = ["HAProxy", "several hosts"];

/// Durations of one fault. Those of the services are in the order of [`WAYS`].
#[derive(Debug)]
struct Measured {
    fault: Fault,
    new_primary: Duration,
    /// Time after the fault.
    not_ready: [Option<Duration>; 2],
    /// Time after the promotion.
    writes: [Duration; 2],
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |span: Duration| format!("{:.1} s", span.as_secs_f32());
        let (fault, primary) = (self.fault.to_string(), seconds(self.new_primary));
        write!(f, "{fault:<18} new primary after {primary}")?;
        for ((way, not_ready), writes) in WAYS.iter().zip(self.not_ready).zip(self.writes) {
            let not_ready = not_ready.map_or("never".to_owned(), seconds);
            let writes = seconds(writes);
            write!(
                f,
                "; {way}: not ready after {not_ready}, writes {writes} after that primary"
            )?;
        }
        Ok(())
    }
}

/// Result of all faults.
#[derive(Debug, Default)]
pub(crate) struct Failover {
    pub(crate) tally: Tally,
    pub(crate) faults: u64,
}

/// The proxies of one server: to Postgres, to Patroni, and from Patroni to etcd.
type Proxies = [Mutex<Vec<Proxy>>; 2];

/// The pair, its services and their partners.
#[derive(Debug)]
struct Pair {
    services: [Service; 2],
    world: World,
    patroni: Mutex<Patroni>,
    proxies: Proxies,
}

impl Pair {
    fn make(folder: &Path, programs: &Programs, seed: u64) -> Result<Self> {
        let proxies = Proxies::default();
        let patroni = Patroni::start(&|node, port| {
            let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let proxy = Proxy::before(server).map_err(std::io::Error::other)?;
            let port = proxy.address.port();
            if let Some(proxies) = proxies.get(node) {
                proxies.lock().push(proxy);
            }
            Ok(port)
        })?;
        ask(&patroni, "postgres", &format!("CREATE DATABASE {DATABASE}"))?;
        let (haproxy, hosts) = (patroni.by_haproxy(DATABASE), patroni.by_hosts(DATABASE));
        let by_haproxy = format!("{haproxy}{SERVING}");
        let by_hosts = format!("{hosts}{SERVING}&target_session_attrs=read-write");
        let settings = [
            ("PENSTOCK_DATABASE_URL", by_haproxy.as_str()),
            ("PENSTOCK_MIGRATE_DATABASE_URL", hosts.as_str()),
            ("PENSTOCK_MASTER_KEY", MASTER_KEY),
        ];
        let installation = Installation::new(folder, programs, &settings);
        installation.migrate()?;
        ask(&patroni, DATABASE, ROLES)?;
        let world = World::on(installation, seed)?;
        let serve = |name, url| {
            let more = [("PENSTOCK_DATABASE_URL", url)];
            world.installation.serve_as(name, None, &more)
        };
        Ok(Self {
            services: [
                serve("by-haproxy", by_haproxy.as_str())?,
                serve("by-hosts", by_hosts.as_str())?,
            ],
            world,
            patroni: Mutex::new(patroni),
            proxies,
        })
    }

    fn front(&self) -> Front {
        Front {
            addresses: self.services.iter().map(|one| one.address).collect(),
            clients: CLIENTS,
            hot: HOT,
            traders: TRADERS,
        }
    }

    fn inject(&self, fault: Fault, primary: usize) -> Result<()> {
        let mut patroni = self.patroni.lock();
        match fault {
            Fault::CutOff => {
                self.each_proxy(primary, Proxy::go_silent);
                Ok(())
            }
            Fault::Killed => Ok(patroni.kill(primary)?),
            Fault::SwitchedOver => Ok(patroni.switch_over(primary)?),
            Fault::Frozen => Ok(patroni.freeze(primary)?),
        }
    }

    /// Brings the failed server back as the standby of the other one.
    fn bring_back(&self, fault: Fault, node: usize) -> Result<()> {
        let mut patroni = self.patroni.lock();
        match fault {
            Fault::CutOff => self.each_proxy(node, Proxy::answer_again),
            Fault::Killed => patroni.start_node(node)?,
            Fault::SwitchedOver => {}
            Fault::Frozen => patroni.thaw(node)?,
        }
        Ok(patroni.wait_for_standby()?)
    }

    fn each_proxy(&self, node: usize, does: impl Fn(&Proxy)) {
        if let Some(proxies) = self.proxies.get(node) {
            proxies.lock().iter().for_each(does);
        }
    }

    /// Injects a fault under load. Returns when both services write again, the server is back and its share of trades was acknowledged.
    fn round(&self, fault: Fault, trades: u64, seed: u64, tally: &mut Tally) -> Result<Measured> {
        self.world.start_new_history();
        let enough = self.acknowledged().saturating_add(trades);
        let mut measured = None;
        let ops = load_until(&self.world, &self.front(), seed, |_| {
            thread::sleep(LOAD_BEFORE_FAULT);
            measured = Some(self.measure(fault));
            thread::sleep(LOAD_AFTER_RECOVERY);
            let began = time::now();
            while self.acknowledged() < enough && time::now().saturating_sub(began) < MAX_LOAD {
                thread::sleep(COUNT_INTERVAL);
            }
        });
        tally.gates.add(ops);
        measured.ok_or("nothing was measured")?
    }

    fn measure(&self, fault: Fault) -> Result<Measured> {
        // A standby that is not synchronous may not take over.
        self.patroni.lock().wait_for_standby()?;
        let primary = self.patroni.lock().primary().ok_or("no primary")?;
        self.inject(fault, primary)?;
        let began = time::now();
        let there = AtomicBool::new(false);
        let (new_primary, not_ready, writes) = thread::scope(|scope| {
            let watching = [0, 1].map(|at| {
                let (service, there) = (self.services.get(at), &there);
                scope.spawn(move || service.and_then(|one| not_ready(one, began, there)))
            });
            let new_primary = self.new_primary(1 - primary, began);
            there.store(true, Ordering::SeqCst);
            let since = time::now();
            let writing = [0, 1].map(|at| {
                let service = self.services.get(at);
                scope.spawn(move || {
                    service.map_or(Err("no service".into()), |one| self.writes(one, since))
                })
            });
            let not_ready = watching.map(|one| one.join().ok().flatten());
            let writes = writing.map(|one| one.join().map_err(|_| "a watcher panicked")?);
            (new_primary, not_ready, writes)
        });
        let new_primary = new_primary?;
        self.bring_back(fault, primary)?;
        let [one, other] = writes;
        Ok(Measured {
            fault,
            new_primary,
            not_ready,
            writes: [one?, other?],
        })
    }

    fn new_primary(&self, node: usize, began: Duration) -> Result<Duration> {
        loop {
            let took = time::now().saturating_sub(began);
            if self.patroni.lock().is_primary(node) {
                return Ok(took);
            }
            if took > PROMOTION_TIMEOUT {
                let logs = self.patroni.lock().logs();
                return Err(format!("the standby does not take over:\n{logs}").into());
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Measures the time until a quote is created.
    fn writes(&self, service: &Service, since: Duration) -> Result<Duration> {
        let partner = self.world.partners.first().ok_or("no partner")?;
        let bytes = quote_request(partner, Order::new(Side::Purchase, 300));
        loop {
            let asked = time::now();
            let answer = Client::new(service.address).call(&bytes);
            if answer.is_ok_and(|answer| answer.status < 300) {
                return Ok(time::now().saturating_sub(since));
            }
            if asked.saturating_sub(since) > PROMOTION_TIMEOUT {
                return Err("writes do not return".into());
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Resolves every outcome and compares. No service may have ended.
    fn judge(&self, all: bool, tally: &mut Tally) -> Result<Vec<String>> {
        let [one, other] = &self.services;
        let mut breaches = Vec::new();
        for (way, service) in WAYS.iter().zip(&self.services) {
            if let Some(status) = service.ended() {
                breaches.push(format!("the service by {way} has ended: {status}"));
                return Ok(breaches);
            }
        }
        if all {
            breaches.extend(reckon(&self.world, one.address, tally)?);
        } else {
            tally.resolved += self.world.converge(one.address)?;
            breaches.extend(self.world.judge(other.address, false)?);
        }
        Ok(breaches)
    }

    fn verify(&self, tally: &mut Tally) -> Result<()> {
        self.world.installation.verify()?;
        tally.verified += 1;
        Ok(())
    }

    /// Cuts the primary off for good. Both services must still stop after SIGTERM.
    fn stop(&self) -> Result<Vec<String>> {
        let primary = self.patroni.lock().primary().ok_or("no primary")?;
        self.inject(Fault::CutOff, primary)?;
        thread::sleep(LOAD_AFTER_RECOVERY);
        let mut breaches = Vec::new();
        for service in &self.services {
            let pid = service.pid.to_string();
            Command::new("kill").args(["-TERM", &pid]).status()?;
        }
        for (way, service) in WAYS.iter().zip(&self.services) {
            if !service.ends_within(STOP_TIMEOUT) {
                breaches.push(format!("the service by {way} does not stop"));
            }
        }
        Ok(breaches)
    }

    fn acknowledged(&self) -> u64 {
        let figures = self.world.figures();
        let trades = figures
            .iter()
            .find(|(what, _)| *what == "trades acknowledged");
        trades.map_or(0, |(_, figure)| *figure)
    }
}

/// Measures when a service first reports that it is not ready; `None` if it never does before the promotion.
fn not_ready(service: &Service, began: Duration, there: &AtomicBool) -> Option<Duration> {
    let bytes = b"GET /health/ready HTTP/1.1\r\nHost: crash\r\n\r\n";
    while !there.load(Ordering::SeqCst) {
        let answer = Client::new(service.address).call(bytes);
        if answer.is_ok_and(|answer| answer.status == 503) {
            return Some(time::now().saturating_sub(began));
        }
        thread::sleep(POLL_INTERVAL);
    }
    None
}

/// Returns the limits that a fault exceeded.
fn too_slow(measured: &Measured) -> Vec<String> {
    let mut breaches = Vec::new();
    let vanished = measured.fault != Fault::SwitchedOver;
    for ((way, not_ready), writes) in WAYS.iter().zip(measured.not_ready).zip(measured.writes) {
        if writes > WRITE_TIMEOUT {
            breaches.push(format!("{way}: writes returned late: {measured}"));
        }
        let told = not_ready.is_some_and(|after| after <= NOT_READY_TIMEOUT);
        if vanished && measured.new_primary > NOT_READY_TIMEOUT && !told {
            breaches.push(format!("{way}: readiness was late: {measured}"));
        }
    }
    breaches
}

/// Runs statements on the primary as the superuser.
fn ask(patroni: &Patroni, database: &str, sql: &str) -> Result<()> {
    psql(patroni.client("psql", database)?, sql)
}

/// Returns a required program that is not installed.
pub(crate) fn missing() -> Option<&'static str> {
    missing_for_patroni()
}

/// Injects the faults in turn, each at least once, until the given number of trades was acknowledged.
// rule: base.acknowledged-is-kept, base.database-failover, base.database-readiness, config.database-hosts
pub(crate) fn run(programs: &Programs, trades: u64, seed: u64) -> Result<Failover> {
    let folder = tempfile::tempdir()?;
    let pair = Pair::make(folder.path(), programs, seed)?;
    let mut failover = Failover::default();
    for (number, fault) in (1..).zip(Fault::ALL.iter().cycle()) {
        let of_round = seed.wrapping_mul(1_000_000).wrapping_add(number);
        let tally = &mut failover.tally;
        let measured = pair.round(*fault, trades / MAX_FAULTS, of_round, tally)?;
        tally.rounds += 1;
        tally.kills += u64::from(*fault == Fault::Killed);
        failover.faults += 1;
        let mut breaches = too_slow(&measured);
        println!(
            "{measured}; trades acknowledged so far {}",
            pair.acknowledged()
        );
        breaches.extend(pair.judge(false, tally)?);
        if number % FAULTS_PER_VERIFY == 0 {
            pair.verify(tally)?;
        }
        if !tally.hold(seed, number, Ok(breaches)) {
            failover.tally = keep(folder, std::mem::take(tally))?;
            return Ok(failover);
        }
        if number >= Fault::ALL.len() as u64 && pair.acknowledged() >= trades {
            break;
        }
    }
    let tally = &mut failover.tally;
    let judged = pair.judge(true, tally);
    pair.verify(tally)?;
    tally.hold(seed, failover.faults, judged);
    tally.merge(&pair.world);
    let stopped = pair.stop();
    if !tally.hold(seed, failover.faults, stopped) || !tally.breaches.is_empty() {
        failover.tally = keep(folder, std::mem::take(tally))?;
    }
    Ok(failover)
}
