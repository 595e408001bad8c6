//! A pair of servers that Patroni keeps, and its primary taken away under load, in every manner.
//!
//! Two services work on the pair at the same time: one reaches it by way of HAProxy, one by a URL that names both
//! servers. Neither is ever started again.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use test_support::servers::{Patroni, missing_for_patroni};

use crate::Result;
use crate::caller::Front;
use crate::http::Client;
use crate::kills::{Tally, keep, load_until, reckon};
use crate::load::quote_request;
use crate::orders::{Order, Side};
use crate::programs::{Installation, Programs, Service};
use crate::proxy::Proxy;
use crate::servers::{MASTER_KEY, ROLES, SERVING};
use crate::subject::Subject;
use crate::time;
use crate::world::World;

const DATABASE: &str = "penstock";
const CLIENTS: u64 = 12;
/// Most trades are theirs.
const TRADERS: u64 = 24;
const HOT: usize = 10;
/// Load before a fault, and after writes have returned.
const BEFORE: Duration = Duration::from_secs(2);
const AFTER: Duration = Duration::from_secs(2);
/// A long run has at most about this many faults: each round goes on for at least its share of the trades.
const FAULTS: u64 = 100;
const LONGEST_LOAD: Duration = Duration::from_secs(120);
/// `penstock verify` runs after every fourth fault, and at the end.
const VERIFIED_EVERY: u64 = 4;
/// A new primary is there within this time, or the pair is at fault.
const NEW_PRIMARY: Duration = Duration::from_secs(60);
/// Writes succeed within this time after the new primary is there.
const WRITES_RETURN: Duration = Duration::from_secs(5);
/// Readiness says within this time that there is no primary, on a machine that is busy.
const NOT_READY: Duration = Duration::from_secs(3);
/// A service that is told to stop has ended within this time.
const STOPPED: Duration = Duration::from_secs(25);
const PAUSE: Duration = Duration::from_millis(50);
const COUNTED_EVERY: Duration = Duration::from_millis(500);

/// How the primary is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Nothing passes to it or from it, and no connection is closed.
    CutOff,
    /// All its processes end at once.
    Killed,
    /// The standby takes over in an orderly way.
    SwitchedOver,
    /// All its processes stop where they are, and go on later.
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

/// The services by what leads them to the primary.
const WAYS: [&str; 2] = ["HAProxy", "several hosts"];

/// What one fault cost. The times of services are those of [`WAYS`].
#[derive(Debug)]
struct Measured {
    fault: Fault,
    new_primary: Duration,
    /// After the fault.
    not_ready: [Option<Duration>; 2],
    /// After the new primary is there.
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

/// What came of all faults.
#[derive(Debug, Default)]
pub(crate) struct Failover {
    pub(crate) tally: Tally,
    pub(crate) faults: u64,
}

/// The ways to one server: to Postgres, to Patroni, and from it to etcd.
type Proxies = [Mutex<Vec<Proxy>>; 2];

/// The pair, the services on it and their partners.
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
        let migrated = installation.service(None).arg("migrate").output()?;
        if !migrated.status.success() {
            let said = String::from_utf8_lossy(&migrated.stderr).into_owned();
            return Err(format!("migrate: {}: {said}", migrated.status).into());
        }
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

    fn take_away(&self, fault: Fault, primary: usize) -> Result<()> {
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

    /// Brings the server back that was taken away, as the other one's standby.
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

    /// A fault under load, until both services write again, the server is back, and its number of trades was acknowledged.
    fn round(&self, fault: Fault, trades: u64, seed: u64, tally: &mut Tally) -> Result<Measured> {
        self.world.turn_the_page();
        let enough = self.acknowledged().saturating_add(trades);
        let mut measured = None;
        let ops = load_until(&self.world, &self.front(), seed, |_| {
            thread::sleep(BEFORE);
            measured = Some(self.measure(fault));
            thread::sleep(AFTER);
            let began = time::now();
            while self.acknowledged() < enough && time::now().saturating_sub(began) < LONGEST_LOAD {
                thread::sleep(COUNTED_EVERY);
            }
        });
        tally.gates.add(ops);
        measured.ok_or("nothing was measured")?
    }

    fn measure(&self, fault: Fault) -> Result<Measured> {
        // A standby that is not synchronous may not take over.
        self.patroni.lock().wait_for_standby()?;
        let primary = self.patroni.lock().primary().ok_or("no primary")?;
        self.take_away(fault, primary)?;
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
            if took > NEW_PRIMARY {
                let logs = self.patroni.lock().logs();
                return Err(format!("the standby does not take over:\n{logs}").into());
            }
            thread::sleep(PAUSE);
        }
    }

    /// How long it takes until a quote is opened.
    fn writes(&self, service: &Service, since: Duration) -> Result<Duration> {
        let partner = self.world.partners.first().ok_or("no partner")?;
        let bytes = quote_request(partner, Order::new(Side::Purchase, 300));
        loop {
            let asked = time::now();
            let answer = Client::new(service.address).call(&bytes);
            if answer.is_ok_and(|answer| answer.status < 300) {
                return Ok(time::now().saturating_sub(since));
            }
            if asked.saturating_sub(since) > NEW_PRIMARY {
                return Err("writes do not return".into());
            }
            thread::sleep(PAUSE);
        }
    }

    /// Everything known, and compared. No service has ended meanwhile.
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

    /// With the primary cut off for good, both services end when they are told to.
    fn stop(&self) -> Result<Vec<String>> {
        let primary = self.patroni.lock().primary().ok_or("no primary")?;
        self.take_away(Fault::CutOff, primary)?;
        thread::sleep(AFTER);
        let mut breaches = Vec::new();
        for service in &self.services {
            let pid = service.pid.to_string();
            Command::new("kill").args(["-TERM", &pid]).status()?;
        }
        for (way, service) in WAYS.iter().zip(&self.services) {
            if !service.ends_within(STOPPED) {
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

/// When a service first says that it is not ready; `None` if it never does before the new primary is there.
fn not_ready(service: &Service, began: Duration, there: &AtomicBool) -> Option<Duration> {
    let bytes = b"GET /health/ready HTTP/1.1\r\nHost: crash\r\n\r\n";
    while !there.load(Ordering::SeqCst) {
        let answer = Client::new(service.address).call(bytes);
        if answer.is_ok_and(|answer| answer.status == 503) {
            return Some(time::now().saturating_sub(began));
        }
        thread::sleep(PAUSE);
    }
    None
}

/// What a fault may not cost.
fn too_slow(measured: &Measured) -> Vec<String> {
    let mut breaches = Vec::new();
    let vanished = measured.fault != Fault::SwitchedOver;
    for ((way, not_ready), writes) in WAYS.iter().zip(measured.not_ready).zip(measured.writes) {
        if writes > WRITES_RETURN {
            breaches.push(format!("{way}: writes returned late: {measured}"));
        }
        let told = not_ready.is_some_and(|after| after <= NOT_READY);
        if vanished && measured.new_primary > NOT_READY && !told {
            breaches.push(format!("{way}: readiness was late: {measured}"));
        }
    }
    breaches
}

/// Runs statements as the superuser on the primary.
fn ask(patroni: &Patroni, database: &str, sql: &str) -> Result<()> {
    let mut command = patroni.client("psql", database)?;
    command.args(["--no-psqlrc", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql]);
    let done = command.output()?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        return Err(format!("psql: {said}").into());
    }
    Ok(())
}

/// What is not installed.
pub(crate) fn missing() -> Option<&'static str> {
    missing_for_patroni()
}

/// Faults by turns, each at least once, until the given number of trades was acknowledged.
// rule: base.acknowledged-is-kept, base.database-failover, base.database-readiness, config.database-hosts
pub(crate) fn run(programs: &Programs, trades: u64, seed: u64) -> Result<Failover> {
    let folder = tempfile::tempdir()?;
    let pair = Pair::make(folder.path(), programs, seed)?;
    let mut failover = Failover::default();
    for (number, fault) in (1..).zip(Fault::ALL.iter().cycle()) {
        let of_round = seed.wrapping_mul(1_000_000).wrapping_add(number);
        let tally = &mut failover.tally;
        let measured = pair.round(*fault, trades / FAULTS, of_round, tally)?;
        tally.rounds += 1;
        tally.kills += u64::from(*fault == Fault::Killed);
        failover.faults += 1;
        let mut breaches = too_slow(&measured);
        println!(
            "{measured}; trades acknowledged so far {}",
            pair.acknowledged()
        );
        breaches.extend(pair.judge(false, tally)?);
        if number % VERIFIED_EVERY == 0 {
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
