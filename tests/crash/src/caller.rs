//! Clients of one or several services. Each has two connections and records its operations.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use test_support::time;

use crate::history::{Kind, Op, Outcome};
use crate::http::{Answer, Client, Lost, request};
use crate::programs::Service;
use crate::subject::Subject;

/// Concurrent clients of one service.
const CLIENTS: u64 = 6;
/// Percentage of operations that move to another service, if there are several.
const SWITCHES: u8 = 20;
/// Pause after a 503. Meanwhile a client may use another service.
const BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF_FACTOR: u32 = 4;
/// Objects of a partner that clients share.
const HOT: usize = 3;

/// An address on which no server listens.
const NOWHERE: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

/// Numbers of logical clients and keys, unique in the process.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

pub(crate) fn number() -> u64 {
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// Stop flag and progress of a run of clients.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) stop: AtomicBool,
    /// Operations that have a response or will never have one.
    pub(crate) ops: Mutex<Vec<Op>>,
}

/// Services that clients call, and the number of clients.
#[derive(Debug, Clone)]
pub(crate) struct Front {
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) clients: u64,
    /// Shared objects of a partner.
    pub(crate) hot: usize,
    /// Additional clients, each of which executes quotes of its own.
    pub(crate) traders: u64,
}

impl Front {
    /// A front with one service.
    pub(crate) fn of(service: &Service) -> Self {
        Self {
            addresses: vec![service.address],
            clients: CLIENTS,
            hot: HOT,
            traders: 0,
        }
    }

    fn all_clients(&self) -> u64 {
        self.clients.saturating_add(self.traders)
    }
}

/// Runs all clients until the stop flag is set or the only service is gone. Returns their operations.
pub(crate) fn run(subject: &dyn Subject, front: &Front, seed: u64, run: &Run) -> Vec<Op> {
    thread::scope(|scope| {
        for place in 0..front.all_clients() {
            scope.spawn(move || {
                let seed = seed.wrapping_mul(front.all_clients()) + place;
                let mut chance = fastrand::Rng::with_seed(seed);
                let mut caller = Caller::new(front);
                caller.own_trades = (place >= front.clients).then(VecDeque::new);
                while !run.stop.load(Ordering::Relaxed) && caller.goes_on(&mut chance) {
                    subject.visit(&mut caller, &mut chance);
                    run.ops.lock().append(&mut caller.ops);
                }
            });
        }
    });
    std::mem::take(&mut *run.ops.lock())
}

/// One client thread. Its two connections let it act as two concurrent clients.
#[derive(Debug)]
pub(crate) struct Caller<'f> {
    pub(crate) front: &'f Front,
    pub(crate) one: Client,
    pub(crate) other: Client,
    number: u64,
    pub(crate) ops: Vec<Op>,
    /// Trades that a trader has not polled yet, oldest first: the partner's number and the quote.
    pub(crate) own_trades: Option<VecDeque<(usize, String)>>,
    /// Whether no service is reachable.
    gone: bool,
    /// Number of 503 responses in a row.
    put_off: u32,
}

/// An operation before its request is sent.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) kind: Kind,
    pub(crate) partner: String,
    pub(crate) object: Option<String>,
    pub(crate) key: Option<String>,
    /// The second object of an operation on two objects.
    pub(crate) with: Option<String>,
    pub(crate) invoked: Duration,
}

impl Begun {
    /// Marks the operation as sent now.
    pub(crate) fn now(kind: Kind, partner: &str, object: Option<&str>) -> Self {
        Self {
            kind,
            partner: partner.to_owned(),
            object: object.map(str::to_owned),
            key: None,
            with: None,
            invoked: time::now(),
        }
    }

    /// Ends the operation with an unknown outcome.
    pub(crate) fn left(self) -> Op {
        Op {
            client: number(),
            kind: self.kind,
            partner: self.partner,
            object: self.object,
            key: self.key,
            with: self.with,
            invoked: self.invoked,
            completed: time::now(),
            outcome: Outcome::Info,
            said: None,
            seen: None,
            repeated: false,
        }
    }
}

impl<'f> Caller<'f> {
    fn new(front: &'f Front) -> Self {
        let mut addresses = front.addresses.iter().cycle().copied();
        let mut next = || Client::new(addresses.next().unwrap_or(NOWHERE));
        Self {
            front,
            one: next(),
            other: next(),
            number: number(),
            ops: Vec::new(),
            own_trades: None,
            gone: false,
            put_off: 0,
        }
    }

    /// Moves each connection to another service now and then, and whenever its service is gone.
    fn goes_on(&mut self, chance: &mut fastrand::Rng) -> bool {
        let front = self.front;
        if front.addresses.len() < 2 {
            return !self.gone;
        }
        thread::sleep(BACKOFF.saturating_mul(self.put_off.min(MAX_BACKOFF_FACTOR)));
        if std::mem::take(&mut self.gone) || chance.u8(0..100) < SWITCHES {
            for client in [&mut self.one, &mut self.other] {
                let another = chance.choice(&front.addresses).copied();
                *client = Client::new(another.unwrap_or(NOWHERE));
            }
        }
        true
    }

    /// Records the end of an operation.
    pub(crate) fn end(&mut self, begun: Begun, answer: Result<Answer, Lost>) -> Option<Answer> {
        if matches!(answer, Err(Lost::Unsent)) {
            self.gone = true;
            return None;
        }
        let outcome = Outcome::of(&answer);
        let said = answer.as_ref().ok();
        let put_off = said.is_some_and(|answer| answer.status >= 500 && outcome == Outcome::Info);
        self.put_off = if put_off {
            self.put_off.saturating_add(1)
        } else {
            0
        };
        self.ops.push(Op {
            client: self.number,
            seen: said.and_then(|answer| begun.kind.sees(answer)),
            outcome,
            said: said.map(|answer| (answer.status, answer.code())),
            repeated: said.is_some_and(Answer::tells_of_a_repeat),
            ..begun.left()
        });
        if outcome == Outcome::Info {
            self.number = number();
        }
        answer.ok()
    }

    /// Reads an object; `None` unless the status is 200.
    pub(crate) fn get(&mut self, begun: Begun, key: &str, path: &str) -> Option<Answer> {
        self.ask(begun, key, path)
            .filter(|answer| answer.status == 200)
    }

    /// Reads an object; `None` without a response.
    pub(crate) fn ask(&mut self, begun: Begun, key: &str, path: &str) -> Option<Answer> {
        let answer = self.one.call(&request(key, "GET", path, "", ""));
        self.end(begun, answer)
    }
}
