//! Clients that disconnect at random bytes and instants, thousands of times.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use socket2::SockRef;
use test_support::time;

use crate::Result;
use crate::book::{Deposit, Quote};
use crate::caller::number;
use crate::http::{Client, connect, request};
use crate::judge::{converge, judge};
use crate::kills::{Tally, close};
use crate::load::{quote_request, reject_request, transact_request};
use crate::orders::{Asset, Order, Side};
use crate::programs::{Programs, Service, WITH_METRICS};
use crate::world::{Partner, World};

const STORMERS: u64 = 8;
/// Disconnected requests on one quote before the next quote is created.
const CUTS_PER_QUOTE: u64 = 16;
/// Longest age of the service's own connection metrics.
const MAX_METRIC_AGE: Duration = Duration::from_secs(16);
/// Samples within which the service must be idle again.
const SAMPLES: u32 = 3;

/// Result of the disconnects.
#[derive(Debug)]
pub(crate) struct Storm {
    pub(crate) tally: Tally,
    pub(crate) cuts: u64,
    pub(crate) took: Duration,
}

/// Makes a number of disconnects, then checks everything.
pub(crate) fn run(programs: &Programs, disconnects: u64, seed: u64) -> Result<Storm> {
    let folder = tempfile::tempdir()?;
    let world = World::make(folder.path(), programs, seed)?;
    let mut storm = Storm {
        tally: Tally::default(),
        cuts: 0,
        took: Duration::ZERO,
    };
    let service = world.installation.serve(None, WITH_METRICS)?;
    let began = time::now();
    storm.cuts = rage(&world, service.address, disconnects, seed);
    storm.took = time::now().saturating_sub(began);
    writes(&world)?;
    let mut breaches = at_rest(&service)?;
    storm.tally.resolved += converge(&world, service.address)?;
    breaches.extend(judge(&world, service.address, true)?);
    service.kill();
    breaches.extend(close(&world, &mut storm.tally)?);
    storm.tally.blame(seed, 0, breaches);
    if !storm.tally.breaches.is_empty() {
        storm.tally = crate::kills::keep(folder, storm.tally)?;
    }
    Ok(storm)
}

pub(crate) fn rage(world: &World, address: SocketAddr, disconnects: u64, seed: u64) -> u64 {
    let cuts = AtomicU64::new(0);
    thread::scope(|scope| {
        for place in 0..STORMERS {
            let cuts = &cuts;
            scope.spawn(move || {
                let mut chance = fastrand::Rng::with_seed(seed.wrapping_mul(STORMERS) + place);
                let mut client = Client::new(address);
                while cuts.load(Ordering::Relaxed) < disconnects {
                    let Some(partner) = chance.choice(world.partners.iter()) else {
                        return;
                    };
                    let Some(quote) = ask(partner, &mut client, &mut chance) else {
                        continue;
                    };
                    for _ in 0..CUTS_PER_QUOTE {
                        let bytes = pick(partner, &quote, &mut chance);
                        if cut(&bytes, address, &mut chance) {
                            cuts.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    cuts.into_inner()
}

/// Creates a quote and waits for the response.
fn ask(partner: &Partner, client: &mut Client, chance: &mut fastrand::Rng) -> Option<String> {
    let fraction = chance.choice([0, 31, 41, 21])?;
    let side = chance.choice([Side::Purchase, Side::Purchase, Side::Sale])?;
    let order = Order::new(side, chance.i64(2..9) * 100 + fraction);
    let answer = client.call(&quote_request(partner, order)).ok()?;
    let (id, quote) = Quote::read(order, &answer)?;
    partner.book.lock().quotes.insert(id.clone(), quote);
    Some(id)
}

/// Sends one request and disconnects within its bytes or within the response. Returns whether a connection was made.
pub(crate) fn cut(bytes: &[u8], address: SocketAddr, chance: &mut fastrand::Rng) -> bool {
    let Some(mut stream) = connect(address) else {
        return false;
    };
    let whole = chance.u8(0..100) < 70;
    let sent = if whole {
        bytes.len()
    } else {
        chance.usize(0..bytes.len())
    };
    // The service may close the connection in any way.
    let _ = stream.write_all(bytes.get(..sent).unwrap_or_default());
    match chance.u8(0..4) {
        0 => {}
        1 => thread::sleep(Duration::from_micros(chance.u64(0..3000))),
        2 => {
            let mut some = vec![0; chance.usize(1..200)];
            let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
            let _ = stream.read(&mut some);
        }
        _ => thread::yield_now(),
    }
    if chance.bool() {
        // The service closed the connection with a reset.
        let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    }
    true
}

/// Chooses a request, mostly a transact, and records it as in doubt before it is sent.
fn pick(partner: &Partner, quote: &str, chance: &mut fastrand::Rng) -> Vec<u8> {
    let get = |path: String| request(&partner.key, "GET", &path, "", "");
    match chance.u8(0..100) {
        0..=54 => {
            let mut book = partner.book.lock();
            let key = match book.quotes.get_mut(quote) {
                Some(known) => {
                    let key = known.key.clone();
                    known.doubt(&key);
                    key
                }
                None => format!("key-{}", number()),
            };
            drop(book);
            transact_request(partner, quote, &key)
        }
        55..=74 => get(format!("/pools/transactions/{quote}")),
        75..=79 => {
            if let Some(known) = partner.book.lock().quotes.get_mut(quote) {
                known.reject_in_doubt = true;
            }
            reject_request(partner, quote)
        }
        80..=89 => quote_request(partner, Order::new(Side::Purchase, 300)),
        90..=94 => get("/pools/ledger?limit=100".to_owned()),
        _ => get("/pools/trades?limit=100".to_owned()),
    }
}

/// Checks that a write succeeds at once.
pub(crate) fn writes(world: &World) -> Result<()> {
    let partner = world.partners.first().ok_or("no partner")?;
    let deposit = Deposit::of(Asset::Eur, 100);
    world.credit(partner, &format!("at-rest-{}", number()), deposit)
}

/// Checks that no database connection is in use and no socket stays open.
pub(crate) fn at_rest(service: &Service) -> Result<Vec<String>> {
    let metrics = service.metrics()?;
    let mut left = Vec::new();
    for _ in 0..SAMPLES {
        thread::sleep(MAX_METRIC_AGE);
        left = busy(service, metrics)?;
        if left.is_empty() {
            break;
        }
    }
    Ok(left)
}

/// Whether a pool is idle. Up to two connections may be the service's own: its background tasks and its samples of the metrics share
/// their ticks, so each sample may meet them. A leak of one connection per fault soon exhausts the pool.
fn at_ease(line: &str) -> bool {
    [" 0", " 1", " 2"].iter().any(|own| line.ends_with(own))
}

/// Limit of open files and sockets of an idle service: more than it needs, far fewer than the disconnects open.
const FILES_AT_REST: usize = 64;

fn busy(service: &Service, metrics: SocketAddr) -> Result<Vec<String>> {
    let mut stream = connect(metrics).ok_or("the metrics endpoint refuses connections")?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: crash\r\nConnection: close\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    let in_use: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("penstock_store_connections{") && line.contains("in_use"))
        .collect();
    if in_use.is_empty() {
        return Err("the metrics lack the database connections".into());
    }
    let busy = in_use.iter().filter(|line| !at_ease(line));
    let mut left: Vec<String> = busy.map(|line| format!("at rest: {line}")).collect();
    let files = std::fs::read_dir(format!("/proc/{}/fd", service.pid))?.count();
    if files > FILES_AT_REST {
        left.push(format!("at rest: {files} files are open"));
    }
    Ok(left)
}
