//! The operator's engine behind HTTP, for every suite.
//!
//! It keeps its own records: a confirmed trade goes through its stages whether or not a report is requested. It checks every request, and
//! every answer that it makes, against the published contract. A [`Conduct`] decides the rest: depth, the course of each trade, and which
//! responses are late, lost or untrue.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Weak};
use std::thread;
use std::time::Duration;

use jsonschema::Validator;
use providers::http_engine;
use serde_json::{Value, json};

use crate::http::{self, Reply, Request};
use crate::time;

/// The path of the engine's URL.
const PATH: &str = "/desk";
/// The pause between two looks at a call that waits.
const PAUSE: Duration = Duration::from_millis(10);

/// A call that the engine has received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The last segment of its path: `depth`, `hold`, `confirm` or `release`; else `report`.
    pub operation: String,
    /// The trade's id; empty for `depth`.
    pub trade: String,
    /// The header `Authorization`; empty if absent.
    pub authorization: String,
    /// The header `traceparent`; empty if absent.
    pub traceparent: String,
    /// The body; null if absent.
    pub body: Value,
}

impl Call {
    /// Reads a request of the contract. The error says how the request violates it.
    fn read(request: &Request) -> Result<Self, String> {
        let path = request.path().strip_prefix(PATH).unwrap_or_default();
        let trade = path.split('/').nth(3).unwrap_or_default();
        let template = match trade.is_empty() {
            true => path.to_owned(),
            false => path.replace(trade, TRADE),
        };
        let call = Self {
            operation: operation(&template),
            trade: trade.to_owned(),
            authorization: request.header("authorization").to_owned(),
            traceparent: request.header("traceparent").to_owned(),
            body: match request.body.as_slice() {
                [] => Value::Null,
                body => serde_json::from_slice(body).unwrap_or_else(|_| json!("no JSON")),
            },
        };
        let line = format!("{} {template}", request.method());
        let documented = CONTRACT.get(&call.operation);
        let faults = match documented.filter(|documented| documented.line == line) {
            Some(documented) => faults(&documented.request, &call.body),
            None => vec!["it is not documented".to_owned()],
        };
        match faults.is_empty() {
            true => Ok(call),
            false => Err(format!("{}: {}: {faults:?}", request.line(), call.body)),
        }
    }
}

/// The name of a trade's id in the paths of the contract.
const TRADE: &str = "{tradeId}";

/// The operation with this path.
fn operation(path: &str) -> String {
    let (_, last) = path.rsplit_once('/').unwrap_or_default();
    let operation = if last == TRADE { "report" } else { last };
    operation.to_owned()
}

/// An operation of the published contract.
#[derive(Debug)]
struct Documented {
    /// Its method and its path.
    line: String,
    /// The schemas of its body, and of its response.
    request: Validator,
    response: Validator,
}

static CONTRACT: LazyLock<BTreeMap<String, Documented>> = LazyLock::new(|| {
    let document = serde_json::to_value(http_engine::openapi()).expect("a document");
    let schema = |of: &Value| {
        let schema = match &of["content"]["application/json"]["schema"]["$ref"] {
            Value::Null => json!({ "type": "null" }),
            name => json!({ "$ref": name, "components": document["components"] }),
        };
        jsonschema::validator_for(&schema).expect("a schema")
    };
    let mut contract = BTreeMap::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, documented) in methods.as_object().expect("methods") {
            let documented = Documented {
                line: format!("{} {path}", method.to_uppercase()),
                request: schema(&documented["requestBody"]),
                response: schema(&documented["responses"]["200"]),
            };
            contract.insert(operation(path), documented);
        }
    }
    contract
});

fn faults(schema: &Validator, body: &Value) -> Vec<String> {
    let faults = schema.iter_errors(body);
    faults.map(|fault| fault.to_string()).collect()
}

/// The state of a trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Held, not yet confirmed.
    Held,
    /// The hold expired before it was confirmed.
    Lapsed,
    /// The hold was released, or a confirmed trade ended before it was attempted.
    Released,
    /// Confirmed and in progress.
    Working,
    Delivered,
    /// Attempted without success.
    Failed,
    /// Delivered, then returned.
    Returned,
}

impl Stage {
    fn follows(self, before: Self) -> bool {
        matches!(
            (before, self),
            (Self::Held, Self::Lapsed | Self::Released | Self::Working)
                | (Self::Lapsed, Self::Released)
                | (
                    Self::Working,
                    Self::Delivered | Self::Failed | Self::Released
                )
                | (Self::Delivered, Self::Returned)
        )
    }

    /// The status in a report.
    #[must_use]
    pub const fn status(self) -> &'static str {
        match self {
            Self::Held | Self::Working => "in_progress",
            Self::Lapsed | Self::Released => "released",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Returned => "returned",
        }
    }
}

/// What happens to a trade.
#[derive(Debug, Clone, Default)]
pub struct Course {
    /// Lifetime of the hold; without end if `None`.
    pub hold: Option<Duration>,
    /// The stages after the confirmation, each with the time from the confirmation to its beginning.
    pub confirmed: Vec<(Duration, Stage)>,
}

/// A trade in the engine's records.
#[derive(Debug)]
pub struct Trade {
    pub stage: Stage,
    /// Number of executions.
    pub delivered: u32,
    /// The last report that was sent.
    pub told: Option<Value>,
    course: Course,
    is_confirmed: bool,
    /// Instants at which further stages begin.
    ahead: VecDeque<(Duration, Stage)>,
}

impl Trade {
    fn new(stage: Stage, course: Course, now: Duration) -> Self {
        let lapse = course.hold.map(|lifetime| (now + lifetime, Stage::Lapsed));
        Self {
            stage,
            delivered: 0,
            told: None,
            course,
            is_confirmed: false,
            ahead: lapse.into_iter().collect(),
        }
    }

    /// Moves the trade to its next stage.
    pub fn goes(&mut self, to: Stage) {
        assert!(to.follows(self.stage), "{to:?} after {:?}", self.stage);
        self.delivered += u32::from(to == Stage::Delivered);
        self.stage = to;
    }

    fn advance(&mut self, now: Duration) {
        while let Some((_, stage)) = self.ahead.pop_front_if(|(at, _)| *at <= now) {
            self.goes(stage);
        }
    }

    fn release(&mut self) {
        if matches!(self.stage, Stage::Held | Stage::Lapsed) {
            self.goes(Stage::Released);
            self.ahead.clear();
        }
    }

    fn confirm(&mut self, now: Duration) -> &'static str {
        if self.stage == Stage::Held {
            self.goes(Stage::Working);
            self.is_confirmed = true;
            let steps = self.course.confirmed.iter();
            self.ahead = steps.map(|(after, stage)| (now + *after, *stage)).collect();
            self.advance(now);
        }
        match self.is_confirmed {
            true => "confirmed",
            false => "lapsed",
        }
    }
}

/// What the engine does with a call that it has received.
#[derive(Debug)]
pub enum Act {
    /// Acts, and answers.
    Acts,
    /// Does nothing yet.
    Waits,
    /// Sends this instead of acting.
    Sends(Reply),
}

/// What the contract leaves to an engine, and what goes wrong.
pub trait Conduct: Send + 'static {
    /// Whether the engine has depth for an order.
    fn has_depth(&mut self, order: &Value) -> bool;

    /// The course of a trade with this order; `None` if the engine refuses to hold it.
    fn course(&mut self, order: &Value) -> Option<Course>;

    /// Notes a call, once.
    fn receives(&mut self, _call: &Call) {}

    /// Decides what to do with a call; after [`Act::Waits`] again.
    fn act(&mut self, call: &Call, trade: Option<&Trade>, now: Duration) -> Act;

    /// Decides what to send after acting: a body that follows the contract, with status 200, or an error instead, which does not count as
    /// told. `answer` is true.
    ///
    /// # Errors
    /// What is sent instead of an answer.
    fn answer(
        &mut self,
        call: &Call,
        trade: Option<&Trade>,
        answer: Value,
        now: Duration,
    ) -> Result<Value, Reply>;
}

/// The engine's records.
#[derive(Debug)]
pub struct Records<C> {
    pub conduct: C,
    pub trades: BTreeMap<String, Trade>,
    /// Calls and answers that violate the contract.
    pub breaches: Vec<String>,
}

impl<C: Conduct> Records<C> {
    /// Records without a trade.
    #[must_use]
    pub const fn new(conduct: C) -> Self {
        Self {
            conduct,
            trades: BTreeMap::new(),
            breaches: Vec::new(),
        }
    }

    /// The trade with this id, in its stage at this instant.
    pub fn trade(&mut self, id: &str, now: Duration) -> Option<&Trade> {
        let trade = self.trades.get_mut(id)?;
        trade.advance(now);
        Some(trade)
    }

    /// Acts on a call and returns the answer, or what the conduct sends instead; `None` while the call waits.
    pub fn respond(&mut self, call: &Call, now: Duration) -> Option<Result<Value, Reply>> {
        self.trade(&call.trade, now);
        let trade = self.trades.get(&call.trade);
        match self.conduct.act(call, trade, now) {
            Act::Waits => return None,
            Act::Sends(reply) => return Some(Err(reply)),
            Act::Acts => {}
        }
        let answer = self.acted(call, now);
        let trade = self.trades.get(&call.trade);
        let answer = self.conduct.answer(call, trade, answer, now);
        if let Ok(body) = &answer {
            self.note(call, body);
        }
        Some(answer)
    }

    fn acted(&mut self, call: &Call, now: Duration) -> Value {
        let id = call.trade.as_str();
        let word = match call.operation.as_str() {
            "depth" => match self.conduct.has_depth(&call.body) {
                true => "enough",
                false => "dry",
            },
            "hold" => self.hold(call, now),
            "confirm" => self.confirm(id, now),
            "release" => self.release(id, now),
            _ => return self.report(id),
        };
        json!({ "status": word })
    }

    fn hold(&mut self, call: &Call, now: Duration) -> &'static str {
        let course = self.conduct.course(&call.body["order"]);
        let stage = match course {
            Some(_) => Stage::Held,
            None => Stage::Released,
        };
        let new = || Trade::new(stage, course.unwrap_or_default(), now);
        let trade = self.trades.entry(call.trade.clone()).or_insert_with(new);
        match trade.stage {
            Stage::Released if !trade.is_confirmed => "refused",
            _ => "held",
        }
    }

    fn confirm(&mut self, id: &str, now: Duration) -> &'static str {
        let held = |trade: &&mut Trade| trade.is_confirmed || trade.stage != Stage::Released;
        match self.trades.get_mut(id).filter(held) {
            Some(trade) => trade.confirm(now),
            None => {
                self.breaches
                    .push(format!("{id} is confirmed without a hold"));
                "lapsed"
            }
        }
    }

    fn release(&mut self, id: &str, now: Duration) -> &'static str {
        let new = || Trade::new(Stage::Released, Course::default(), now);
        let trade = self.trades.entry(id.to_owned()).or_insert_with(new);
        if trade.is_confirmed {
            self.breaches
                .push(format!("{id} is released after it is confirmed"));
        }
        trade.release();
        "released"
    }

    /// A report of a trade that was never held is `released`, as of a hold that lapsed.
    fn report(&self, id: &str) -> Value {
        let trade = self.trades.get(id);
        let stage = trade.map_or(Stage::Lapsed, |trade| trade.stage);
        let mut report = json!({ "status": stage.status() });
        if matches!(stage, Stage::Delivered | Stage::Returned) {
            report["fillTxId"] = json!(format!("fill-{id}"));
            report["news"] = json!("a field that the contract does not name");
        }
        report
    }

    fn note(&mut self, call: &Call, body: &Value) {
        let faults = faults(&CONTRACT[&call.operation].response, body);
        if !faults.is_empty() {
            self.breaches.push(format!("{body}: {faults:?}"));
        }
        let trade = self.trades.get_mut(&call.trade);
        let Some(trade) = trade.filter(|_| call.operation == "report") else {
            return;
        };
        let before = trade.told.replace(body.clone());
        let was_returned = before.is_some_and(|told| told["status"] == "returned");
        if was_returned && body["status"] != "returned" {
            let breach = format!("{}: {body} after it is returned", call.trade);
            self.breaches.push(breach);
        }
    }
}

/// An engine that serves until the value is dropped.
#[derive(Debug)]
pub struct Engine<C> {
    address: SocketAddr,
    records: Arc<Mutex<Records<C>>>,
}

impl<C: Conduct> Engine<C> {
    #[must_use]
    pub fn start(conduct: C) -> Self {
        let records = Arc::new(Mutex::new(Records::new(conduct)));
        let shared = Arc::downgrade(&records);
        let address = http::serve(move |request| {
            let reply = respond(&shared, &request);
            reply.unwrap_or(Reply::Closes)
        });
        Self { address, records }
    }

    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// The records; no call is answered while the caller has them.
    pub fn records(&self) -> MutexGuard<'_, Records<C>> {
        self.records.lock().unwrap()
    }
}

/// Returns the response; `None` after the end of the engine.
fn respond<C: Conduct>(records: &Weak<Mutex<Records<C>>>, request: &Request) -> Option<Reply> {
    let shared = records.upgrade()?;
    let call = match Call::read(request) {
        Ok(call) => call,
        Err(breach) => {
            shared.lock().unwrap().breaches.push(breach.clone());
            panic!("{breach}");
        }
    };
    shared.lock().unwrap().conduct.receives(&call);
    drop(shared);
    loop {
        let responded = {
            let shared = records.upgrade()?;
            let mut records = shared.lock().unwrap();
            records.respond(&call, time::now())
        };
        match responded {
            Some(Ok(body)) => return Some(Reply::kept(200, &[], &body.to_string())),
            Some(Err(reply)) => return Some(reply),
            None => thread::sleep(PAUSE),
        }
    }
}
