//! The requests of clients and operators, each a real use case in progress.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};

use kernel::{StoreError, Upstreams};
use partner_core::Access;
use partner_core::idempotency::Scope;
use partner_core::sealing::{MasterKey, Sealer};
use pools_core::batch::{Refusal, TransactOutcome};
use pools_core::profile::PoolsProfile;
use pools_core::quote::{QuoteClosed, QuoteStatus};
use pools_core::trade::TradeId;
use pools_core::usecases::catch_up::CatchUpVelocity;
use pools_core::usecases::credit_account::{Credit, CreditAccount, CreditError};
use pools_core::usecases::poll_trade::{PollError, PollTrade};
use pools_core::usecases::queries::PoolsQueries;
use pools_core::usecases::reject_quote::{RejectError, RejectQuote};
use pools_core::usecases::transact_quote::{Transact, TransactError, TransactQuote};

use crate::db::Db;
use crate::digest::Digest;
use crate::engine::EngineState;
use crate::invariants::Breach;
use crate::ports::{Call, Ports, Run, View};
use crate::world::{WINDOW, access, eur, key, pool, quote_id, who};

/// A request. Quotes and keys go by their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Ask {
    Transact {
        quote: usize,
        key: u8,
    },
    Reject {
        quote: usize,
    },
    Read {
        quote: usize,
    },
    Poll {
        quote: usize,
    },
    /// The operator credits 100 EUR, always under the same reference.
    Credit,
}

impl Ask {
    pub(crate) const fn quote(self) -> Option<usize> {
        match self {
            Self::Transact { quote, .. }
            | Self::Reject { quote }
            | Self::Read { quote }
            | Self::Poll { quote } => Some(quote),
            Self::Credit => None,
        }
    }
}

/// Names a request: its content, and the number of its copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) ask: Ask,
    pub(crate) copy: u8,
}

/// A request in progress.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) name: Name,
    /// The server that received it.
    pub(crate) server: u8,
    /// The views of its calls so far.
    pub(crate) views: Vec<View>,
    /// The call that it is about to make.
    pub(crate) next: Call,
    /// The idempotency scope that it has entered on its server.
    pub(crate) entered: Option<Scope>,
    /// Whether it asks the engine about a trade that it knows to be settled.
    pub(crate) knows_settled: bool,
    /// Digest of all results that it received: two requests with equal digests continue equally.
    pub(crate) digest: u64,
}

/// A step of a request.
pub(crate) struct Stepped {
    pub(crate) now: Now,
    pub(crate) db: Option<Db>,
    pub(crate) engine: Option<EngineState>,
}

/// Status of a request after a step.
#[derive(Clone)]
pub(crate) enum Now {
    Waits(Arc<Request>),
    Answered(Answer),
}

/// What a client concludes from a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Answer {
    /// The kind of response, unless it is never right.
    pub(crate) said: Option<Said>,
    /// The trade in the response.
    pub(crate) trade: Option<TradeId>,
    /// The final status of the quote in the response.
    pub(crate) quote: Option<End>,
    /// Whether the response is not final, so that the client must retry.
    pub(crate) again: bool,
    /// Why the response is never right.
    pub(crate) broken: Option<Breach>,
}

/// The kinds of response, each of which some scene must produce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Said {
    /// A transact has made a trade, or found the existing one.
    Opened,
    Existing,
    /// A twin of the request is in progress.
    InProgress,
    KeyReused,
    CapExceeded,
    BalanceTooLow,
    HoldRefused,
    EngineSilent,
    /// A quote's status, in a response or a refusal.
    Active,
    Consumed,
    Rejected,
    Expired,
    /// A poll found a trade, or none.
    Trade,
    NoTrade,
    Credited,
    /// The store was unavailable, or the commit's outcome is unknown.
    Unknown,
}

impl Said {
    pub(crate) const ALL: [Self; 16] = [
        Self::Opened,
        Self::Existing,
        Self::InProgress,
        Self::KeyReused,
        Self::CapExceeded,
        Self::BalanceTooLow,
        Self::HoldRefused,
        Self::EngineSilent,
        Self::Active,
        Self::Consumed,
        Self::Rejected,
        Self::Expired,
        Self::Trade,
        Self::NoTrade,
        Self::Credited,
        Self::Unknown,
    ];
}

/// The three ends of a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum End {
    Consumed,
    Rejected,
    Expired,
}

impl Request {
    /// Starts a request.
    pub(crate) fn new(name: Name, server: u8) -> Arc<Self> {
        match run(name, server, Vec::new()).now {
            Now::Waits(request) => request,
            Now::Answered(_) => unreachable!("every use case makes a call"),
        }
    }

    /// Makes its next call with this view.
    pub(crate) fn step(&self, view: View) -> Stepped {
        let mut views = self.views.clone();
        views.push(view);
        run(self.name, self.server, views)
    }
}

fn run(name: Name, server: u8, views: Vec<View>) -> Stepped {
    let kept = views.clone();
    let run = Run::new(views, number(name));
    let ports = Ports(Arc::clone(&run));
    let answer = match name.ask {
        Ask::Transact { quote, key } => polled(transact(ports, quote, key)),
        Ask::Reject { quote } => polled(reject(ports, quote)),
        Ask::Read { quote } => polled(read(ports, quote)),
        Ask::Poll { quote } => polled(poll(ports, quote)),
        Ask::Credit => polled(credit(ports)),
    };
    let came_to = run.ended();
    let now = match answer {
        Some(answer) => Now::Answered(answer),
        None => Now::Waits(Arc::new(Request {
            name,
            server,
            views: kept,
            next: came_to.next.expect("it waits at a call"),
            entered: came_to.entered,
            knows_settled: came_to.knows_settled,
            digest: digest(name, server, came_to.received),
        })),
    };
    Stepped {
        now,
        db: came_to.db,
        engine: came_to.engine,
    }
}

/// Separates the numbers of requests: no two draw the same ones.
fn number(name: Name) -> u64 {
    let ask = match name.ask {
        Ask::Transact { quote, key } => 1 + quote as u64 * 8 + u64::from(key),
        Ask::Reject { quote } => 100 + quote as u64,
        Ask::Read { quote } => 110 + quote as u64,
        Ask::Poll { quote } => 120 + quote as u64,
        Ask::Credit => 130,
    };
    (ask << 8) | u64::from(name.copy)
}

fn digest(name: Name, server: u8, mut received: Digest) -> u64 {
    received.add(&(name, server));
    received.finish()
}

/// Runs a use case until it has to wait for its next turn.
fn polled(future: impl Future<Output = Answer>) -> Option<Answer> {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

/// What authentication knows of the partner; the transaction checks it again.
static DOOR: LazyLock<Access<PoolsProfile>> = LazyLock::new(|| access(None));

static SEALER: LazyLock<Arc<Sealer>> =
    LazyLock::new(|| Arc::new(Sealer::new(&MasterKey::new([7; 32]))));

async fn transact(ports: Ports, quote: usize, name: u8) -> Answer {
    let request = Transact {
        pool: pool(),
        quote: quote_id(quote),
        key: key(name),
    };
    let ports = Arc::new(ports);
    let transacting = TransactQuote {
        preflight: ports.clone(),
        queue: ports.clone(),
        catch_up: CatchUpVelocity {
            store: ports.clone(),
            window: WINDOW,
        },
        engine: ports.clone(),
        in_flight: ports.clone(),
        clock: ports.clone(),
        entropy: ports,
    };
    match transacting.transact(&DOOR, request).await {
        Ok(TransactOutcome::Opened(trade)) => of_trade(Said::Opened, trade.id),
        Ok(TransactOutcome::Existing(trade)) => of_trade(Said::Existing, trade.id),
        Err(TransactError::InProgress | TransactError::QuoteInProgress) => again(Said::InProgress),
        Err(TransactError::Refused(refusal)) => refused(refusal),
        Err(TransactError::Store(fault)) => failed(&fault),
    }
}

fn refused(refusal: Refusal) -> Answer {
    match refusal {
        Refusal::QuoteClosed(closed) => closed_quote(closed),
        Refusal::QuoteUnknown => broken("I7 a quote that exists is unknown"),
        Refusal::Denied(_) | Refusal::SideNotEnabled => {
            broken("a partner with every right is denied")
        }
        Refusal::NoRoomForReturn => broken("M1 an account that is nearly empty is full"),
        Refusal::VelocityBehind => broken("M1 a total that is exact is behind"),
        Refusal::KeyReused => said(Said::KeyReused),
        Refusal::VelocityCapExceeded => said(Said::CapExceeded),
        Refusal::InsufficientBalance => said(Said::BalanceTooLow),
        Refusal::ReservationFailed => said(Said::HoldRefused),
        Refusal::EngineUnavailable => again(Said::EngineSilent),
    }
}

fn closed_quote(closed: QuoteClosed) -> Answer {
    let (quote, status) = match closed {
        QuoteClosed::Consumed => (End::Consumed, Said::Consumed),
        QuoteClosed::Rejected => (End::Rejected, Said::Rejected),
        QuoteClosed::Expired => (End::Expired, Said::Expired),
    };
    Answer {
        quote: Some(quote),
        ..said(status)
    }
}

async fn reject(ports: Ports, quote: usize) -> Answer {
    match RejectQuote::new(Arc::new(ports))
        .reject(&who(), quote_id(quote))
        .await
    {
        Ok(_) => closed_quote(QuoteClosed::Rejected),
        Err(RejectError::Closed(closed)) => closed_quote(closed),
        Err(RejectError::NotFound) => broken("I7 a quote that exists is unknown"),
        Err(RejectError::Store(fault)) => failed(&fault),
    }
}

async fn read(ports: Ports, quote: usize) -> Answer {
    match PoolsQueries::new(Arc::new(ports))
        .quote(&who(), quote_id(quote))
        .await
    {
        Ok(Some((_, QuoteStatus::Active))) => said(Said::Active),
        Ok(Some((_, QuoteStatus::Consumed))) => closed_quote(QuoteClosed::Consumed),
        Ok(Some((_, QuoteStatus::Rejected))) => closed_quote(QuoteClosed::Rejected),
        Ok(Some((_, QuoteStatus::Expired))) => closed_quote(QuoteClosed::Expired),
        Ok(None) => broken("I7 a quote that exists is unknown"),
        Err(fault) => failed(&fault),
    }
}

async fn poll(ports: Ports, quote: usize) -> Answer {
    let ports = Arc::new(ports);
    let polling = PollTrade::new(
        ports.clone(),
        Upstreams {
            present: Some(ports.clone()),
            former: None,
        },
        Arc::clone(&SEALER),
        ports,
        |_, _| Ok(vec![]),
    );
    match polling.poll(&who(), quote_id(quote)).await {
        Ok(trade) => of_trade(Said::Trade, trade.id),
        Err(PollError::NotFound) => said(Said::NoTrade),
        Err(PollError::Post(_) | PollError::Event(_)) => {
            broken("a poll cannot write what the rules allow")
        }
        Err(PollError::Store(fault)) => failed(&fault),
    }
}

async fn credit(ports: Ports) -> Answer {
    let ports = Arc::new(ports);
    let crediting = CreditAccount {
        store: ports.clone(),
        entropy: ports,
    };
    let credit = Credit {
        amount: eur("100"),
        network: None,
        reference: "deposit-1".to_owned(),
    };
    match crediting.credit(&who(), &credit).await {
        Ok(_) => said(Said::Credited),
        Err(CreditError::Store(fault)) => failed(&fault),
        Err(
            CreditError::Reference
            | CreditError::Character(_)
            | CreditError::ReferenceReused(..)
            | CreditError::TooLarge,
        ) => broken("I2 a credit repeated is refused"),
    }
}

/// Maps a store error. Only the model's own faults are expected, because transactions of the model lose no races.
fn failed(fault: &StoreError) -> Answer {
    match fault {
        StoreError::Unavailable(_) | StoreError::CommitUnknown(_) => again(Said::Unknown),
        StoreError::Retry => broken("a serializable transaction lost a race"),
        StoreError::Guard(_) => broken("a guard of the store refused what the rules allowed"),
        StoreError::Overloaded | StoreError::Inconsistent { .. } | StoreError::Unexpected(_) => {
            broken("a store error that the model did not inject")
        }
    }
}

fn said(said: Said) -> Answer {
    Answer {
        said: Some(said),
        ..Answer::default()
    }
}

fn of_trade(what: Said, trade: TradeId) -> Answer {
    Answer {
        trade: Some(trade),
        quote: Some(End::Consumed),
        ..said(what)
    }
}

fn again(what: Said) -> Answer {
    Answer {
        again: true,
        ..said(what)
    }
}

fn broken(breach: Breach) -> Answer {
    Answer {
        broken: Some(breach),
        ..Answer::default()
    }
}
