//! Requests in every order of their steps, on the real store.
//!
//! Each request runs the real use case over ports that wait for a turn before every call. [`Orders`] grants the turns: it
//! lets one request make one call at a time, and repeats the scene until every order has been played. A write that
//! meets another open transaction waits for the store's lock, as in a service; the scheduler tracks the lock's holder.

mod gate_ports;
mod ports;

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use coordination::MemoryInFlight;
use kernel::{Clock, Entropy, StoreError, StoreResult, Upstreams};
use parking_lot::Mutex;
use partner_core::events::Service;
use partner_core::ports::InFlight;
use partner_core::usecases::deliveries::Delivered;
use pools_core::ports::Engine;
use pools_core::usecases::credit_account::CreditAccount;
use pools_core::usecases::poll_trade::PollTrade;
use pools_core::usecases::queries::PoolsQueries;
use pools_core::usecases::reject_quote::RejectQuote;
use pools_core::usecases::transact_quote::TransactQuote;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::World;
use crate::gate_use_cases::{GateUpstreams, GateUseCases};
use crate::rail::SilencedRail;
use crate::verifier::ScriptedVerifier;
use ports::Ports;

/// Pause in which a request that has to wait reaches the store's lock, so that whatever it reads before the lock is read before the
/// other requests continue. On a slow machine a request may reach it later, which is an order too.
const WAY_TO_LOCK: Duration = Duration::from_millis(1);
/// Timeout of one step; only a request that waits forever reaches it.
const STUCK: Duration = Duration::from_secs(30);

/// Plays a scene in every order of its requests' steps.
#[derive(Debug, Default)]
pub struct Orders {
    /// The current order: at each turn the chosen request and the number of candidates.
    trail: Vec<(usize, usize)>,
    played: usize,
    blocked: usize,
}

impl Orders {
    /// Whether an order has not been played yet.
    #[must_use]
    pub fn more(&mut self) -> bool {
        if self.played == 0 {
            return true;
        }
        while let Some((chosen, of)) = self.trail.pop() {
            if chosen + 1 < of {
                self.trail.push((chosen + 1, of));
                return true;
            }
        }
        false
    }

    /// The number of played orders.
    #[must_use]
    pub fn played(&self) -> usize {
        self.played
    }

    /// The number of turns in which a request waited for another request's lock.
    #[must_use]
    pub fn blocked(&self) -> usize {
        self.blocked
    }

    /// Plays one order to its end; returns each request's result.
    pub async fn play(&mut self, cast: Cast) -> Vec<String> {
        let Cast {
            turns,
            mut news,
            tasks,
            ..
        } = cast;
        let mut stage = Stage {
            parked: tasks.iter().map(|_| None).collect(),
            answers: tasks.iter().map(|_| None).collect(),
            expected: (0..tasks.len()).collect(),
            waiting: None,
        };
        let mut turn = 0;
        loop {
            stage.hear(&mut news).await;
            if stage.admitted(turns.holder()) {
                continue;
            }
            let options = stage.options(turns.holder());
            if options.is_empty() {
                break;
            }
            let chosen = self.choose(turn, options.len());
            turn += 1;
            if stage.give(options[chosen], turns.holder()) {
                self.blocked += 1;
                tokio::time::sleep(WAY_TO_LOCK).await;
            }
        }
        self.played += 1;
        for task in tasks {
            task.await.expect("a request that ends");
        }
        let answers = stage.answers.into_iter();
        answers.map(|answer| answer.expect("an answer")).collect()
    }

    fn choose(&mut self, turn: usize, of: usize) -> usize {
        match self.trail.get(turn) {
            Some((chosen, was)) => {
                assert_eq!(*was, of, "a scene is deterministic in the same order");
                *chosen
            }
            None => {
                self.trail.push((0, of));
                0
            }
        }
    }
}

/// The state of each request.
struct Stage {
    /// Requests that wait for a turn, and whether their next call writes.
    parked: Vec<Option<Parked>>,
    answers: Vec<Option<String>>,
    /// Requests that are running.
    expected: BTreeSet<usize>,
    /// Requests that wait for another request's lock.
    waiting: Option<usize>,
}

struct Parked {
    writes: bool,
    turn: oneshot::Sender<()>,
}

impl Stage {
    /// Waits until every running request has reached its next call or its end.
    async fn hear(&mut self, news: &mut mpsc::UnboundedReceiver<News>) {
        while !self.expected.is_empty() {
            let heard = tokio::time::timeout(STUCK, news.recv()).await;
            let who = match heard.expect("no request is stuck").expect("news") {
                News::Waits(who, parked) => {
                    self.parked[who] = Some(parked);
                    who
                }
                News::Answered(who, answer) => {
                    self.answers[who] = Some(answer);
                    who
                }
            };
            if self.waiting == Some(who) {
                self.waiting = None;
            } else {
                let expected = self.expected.remove(&who);
                assert!(expected, "request {who} ran without a turn");
            }
        }
    }

    /// A request whose awaited lock was released is running again.
    fn admitted(&mut self, holder: Option<usize>) -> bool {
        let free = |waiting: &mut usize| holder.is_none_or(|holder| holder == *waiting);
        let admitted = self.waiting.take_if(free);
        self.expected.extend(admitted);
        admitted.is_some()
    }

    /// Candidates for the next turn. At most one request waits for a lock.
    fn options(&self, holder: Option<usize>) -> Vec<usize> {
        let may = |who: &usize| {
            let parked = self.parked[*who].as_ref();
            parked.is_some_and(|parked| {
                let locked = parked.writes && holder.is_some_and(|holder| holder != *who);
                !(locked && self.waiting.is_some())
            })
        };
        (0..self.parked.len()).filter(may).collect()
    }

    /// Grants a turn. Returns whether the request now has to wait for a lock.
    fn give(&mut self, who: usize, holder: Option<usize>) -> bool {
        let parked = self.parked[who].take().expect("a waiting request");
        let locked = parked.writes && holder.is_some_and(|holder| holder != who);
        if locked {
            self.waiting = Some(who);
        } else {
            self.expected.insert(who);
        }
        parked.turn.send(()).expect("a receiver");
        locked
    }
}

enum News {
    Waits(usize, Parked),
    Answered(usize, String),
}

/// The requests of one scene.
#[derive(Debug)]
pub struct Cast {
    world: World,
    in_flight: Arc<MemoryInFlight>,
    turns: Turns,
    news: mpsc::UnboundedReceiver<News>,
    send: mpsc::UnboundedSender<News>,
    tasks: Vec<JoinHandle<()>>,
    before_fault: Option<u32>,
}

/// The request that holds the store's lock.
#[derive(Debug, Clone, Default)]
struct Turns(Arc<Mutex<Option<usize>>>);

impl Turns {
    fn holder(&self) -> Option<usize> {
        *self.0.lock()
    }
}

impl Cast {
    /// A scene without requests.
    #[must_use]
    pub fn of(world: &World) -> Self {
        let (send, news) = mpsc::unbounded_channel();
        Self {
            world: world.clone(),
            in_flight: Arc::default(),
            turns: Turns::default(),
            news,
            send,
            tasks: Vec::new(),
            before_fault: None,
        }
    }

    /// One call of each later request fails and does not reach the store: the call after this many.
    #[must_use]
    pub fn failing_after(mut self, calls: u32) -> Self {
        self.before_fault = Some(calls);
        self
    }

    /// Later requests go to another process of the service.
    #[must_use]
    pub fn elsewhere(mut self) -> Self {
        self.in_flight = Arc::default();
        self
    }

    /// Adds a request.
    #[must_use]
    pub fn and<F, R>(mut self, request: F) -> Self
    where
        F: FnOnce(Paced) -> R,
        R: Future<Output = String> + Send + 'static,
    {
        let who = self.tasks.len();
        let pace = Pace {
            who,
            turns: self.turns.clone(),
            news: self.send.clone(),
            before_fault: Arc::new(Mutex::new(self.before_fault)),
        };
        let request = request(Paced::new(&self.world, &self.in_flight, pace));
        let news = self.send.clone();
        self.tasks.push(tokio::spawn(async move {
            let answer = request.await;
            news.send(News::Answered(who, answer)).expect("a receiver");
        }));
        self
    }
}

/// A request's handle on the scheduler.
#[derive(Clone)]
struct Pace {
    who: usize,
    turns: Turns,
    news: mpsc::UnboundedSender<News>,
    /// The number of calls before the one that fails.
    before_fault: Arc<Mutex<Option<u32>>>,
}

impl Pace {
    /// Waits for the turn of a call. An error is the fault of the scene.
    async fn turn(&self, writes: bool) -> StoreResult<()> {
        let (turn, given) = oneshot::channel();
        let waits = News::Waits(self.who, Parked { writes, turn });
        self.news.send(waits).expect("a scheduler");
        given.await.expect("a turn");
        let mut before_fault = self.before_fault.lock();
        match before_fault.take() {
            Some(0) => Err(StoreError::unavailable("the scene fails this call")),
            calls => {
                *before_fault = calls.map(|calls| calls - 1);
                Ok(())
            }
        }
    }
}

/// The use cases, each of whose calls waits for a turn.
#[derive(Clone)]
pub struct Paced {
    /// Executes quotes.
    pub transacting: TransactQuote,
    /// Polls trades.
    pub polling: PollTrade,
    /// Rejects quotes.
    pub rejecting: RejectQuote,
    /// Reads.
    pub reading: PoolsQueries,
    /// Credits accounts.
    pub crediting: CreditAccount,
    world: World,
    ports: Arc<Ports>,
    in_flight: Arc<dyn InFlight>,
    pace: Pace,
}

impl fmt::Debug for Paced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Paced")
    }
}

impl Paced {
    fn new(world: &World, in_flight: &Arc<MemoryInFlight>, pace: Pace) -> Self {
        let (operator, queues, sealer) = world.parts();
        let catch_up = queues.catch_up.clone();
        let entropy: Arc<dyn Entropy> = operator.entropy.clone();
        let clock: Arc<dyn Clock> = operator.clock.clone();
        let ports = Arc::new(Ports {
            store: operator.store.clone(),
            queues,
            engine: Arc::clone(world.engine()),
            pace: pace.clone(),
        });
        let in_flight: Arc<dyn InFlight> = in_flight.clone();
        let engine: Arc<dyn Engine> = ports.clone();
        let engines = Upstreams {
            present: Some(engine),
            former: None,
        };
        Self {
            transacting: TransactQuote {
                preflight: ports.clone(),
                queue: ports.clone(),
                catch_up,
                engine: ports.clone(),
                in_flight: Arc::clone(&in_flight),
                clock,
                entropy: Arc::clone(&entropy),
            },
            polling: PollTrade::new(
                ports.clone(),
                engines,
                sealer,
                Arc::clone(&entropy),
                pools_http::render_event,
            ),
            rejecting: RejectQuote::new(ports.clone()),
            reading: PoolsQueries::new(ports.clone()),
            crediting: CreditAccount {
                store: ports.clone(),
                entropy,
            },
            world: world.clone(),
            ports,
            in_flight,
            pace,
        }
    }

    /// The use cases of the gate. The sandbox's rail stores nothing, so its calls have no turn. Each call of this method parses the
    /// catalogue, which the scenes of the pools do not need.
    #[must_use]
    pub fn gate(&self) -> GateUseCases {
        GateUseCases::new(
            &self.world,
            self.ports.clone(),
            Arc::clone(&self.in_flight),
            GateUpstreams::of_tests(
                &self.world,
                Arc::new(SilencedRail::new(&self.world)),
                Arc::new(ScriptedVerifier::new(self.world.ticking())),
            ),
        )
    }

    /// The partner's view of the deliveries of a service.
    #[must_use]
    pub fn deliveries(&self, service: Service) -> Delivered {
        let deliveries = self.ports.clone();
        Delivered {
            deliveries,
            service,
        }
    }

    /// A turn for an action outside the service that changes no row.
    pub async fn turn(&self) {
        self.pace.turn(false).await.expect("no fault");
    }

    /// A turn for an action that writes in its own transaction.
    pub async fn turn_to_write(&self) {
        self.pace.turn(true).await.expect("no fault");
    }
}
