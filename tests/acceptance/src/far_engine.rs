//! The operator's engine over HTTP under a test's control: it delivers at the first confirmation, unless a test decides otherwise.
//!
//! Its trades advance independently: [`FarEngine::goes`] takes them any number of steps ahead of the polls. Tests script
//! reports with [`FarEngine::reports`] and failures with [`FarEngine::fails`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use providers::{HttpEngine, UpstreamSecret, UpstreamUrl};
use serde_json::Value;
use test_support::engine::{Act, Call, Conduct, Course, Engine, Stage, Trade};
use test_support::http::Reply;

use crate::relay::Relay;

/// Generous timeout for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

/// How the engine fails.
#[derive(Debug, Clone)]
pub enum FarFault {
    /// Acts, but its response never arrives.
    Late,
    /// Acts, but its response is truncated.
    Broken,
    /// Acts, but repeats its previous report.
    Repeated,
    /// Sends this response without acting.
    Says(u16, String),
}

/// What a test has decided.
#[derive(Debug, Default)]
struct Script {
    calls: Vec<Call>,
    dry: bool,
    refuses: bool,
    /// The stages of a trade after its confirmation.
    course: Vec<Stage>,
    report: Option<Value>,
    fault: Option<(String, FarFault)>,
    /// Trades whose reports wait.
    stalled: BTreeSet<String>,
    /// The input of orders whose calls for depth wait.
    stalled_input: Option<String>,
    /// Further header lines of each response.
    more_lines: usize,
}

impl Script {
    fn fault(&self, call: &Call) -> Option<FarFault> {
        let (operation, fault) = self.fault.as_ref()?;
        (*operation == call.operation).then(|| fault.clone())
    }

    fn is_stalled(&self, call: &Call) -> bool {
        let input = call.body["input"]["amount"].as_str();
        match call.operation.as_str() {
            "report" => self.stalled.contains(&call.trade),
            "depth" => input.is_some() && self.stalled_input.as_deref() == input,
            _ => false,
        }
    }
}

impl Conduct for Script {
    fn has_depth(&mut self, _order: &Value) -> bool {
        !self.dry
    }

    fn course(&mut self, _order: &Value) -> Option<Course> {
        let confirmed = self.course.iter().map(|stage| (Duration::ZERO, *stage));
        let course = Course {
            hold: None,
            confirmed: confirmed.collect(),
        };
        (!self.refuses).then_some(course)
    }

    fn receives(&mut self, call: &Call) {
        self.calls.push(call.clone());
    }

    fn act(&mut self, call: &Call, _trade: Option<&Trade>, _now: Duration) -> Act {
        match self.fault(call) {
            Some(FarFault::Says(status, text)) => Act::Sends(Reply::kept(
                status,
                &[("Location", "/desk/v1/elsewhere")],
                &text,
            )),
            _ if self.is_stalled(call) => Act::Waits,
            _ => Act::Acts,
        }
    }

    fn answer(
        &mut self,
        call: &Call,
        trade: Option<&Trade>,
        answer: Value,
        _now: Duration,
    ) -> Result<Value, Reply> {
        let scripted = self.report.clone().filter(|_| call.operation == "report");
        let answer = scripted.unwrap_or(answer);
        let before = trade.and_then(|trade| trade.told.clone());
        match self.fault(call) {
            Some(FarFault::Late) => Err(Reply::Waits),
            Some(FarFault::Broken) => Err(Reply::broken()),
            Some(FarFault::Repeated) => Ok(before.unwrap_or(answer)),
            _ if self.more_lines > 0 => {
                let lines = vec![("Warning", "of no meaning"); self.more_lines];
                Err(Reply::kept(200, &lines, &answer.to_string()))
            }
            _ => Ok(answer),
        }
    }
}

/// The engine. A test that drops it fails if a call, or an answer, violated the contract.
#[derive(Debug)]
pub struct FarEngine(Engine<Script>);

impl Drop for FarEngine {
    fn drop(&mut self) {
        if !thread::panicking() {
            assert_eq!(self.0.records().breaches, [""; 0]);
        }
    }
}

impl FarEngine {
    /// Starts it.
    #[must_use]
    pub fn start() -> Self {
        Self(Engine::start(Script {
            course: vec![Stage::Delivered],
            ..Script::default()
        }))
    }

    /// The adapter that calls it, as a service builds it.
    #[must_use]
    pub fn adapter(&self, secret: &str) -> Arc<HttpEngine> {
        self.adapter_with_timeout(secret, TIMEOUT)
    }

    /// The same adapter with a shorter timeout.
    #[must_use]
    pub fn adapter_with_timeout(&self, secret: &str, timeout: Duration) -> Arc<HttpEngine> {
        adapter(
            &self.0.url(),
            UpstreamSecret::parse(secret).as_ref(),
            timeout,
        )
    }

    /// Starts a relay to it, and returns the relay with the adapter that calls it through the relay.
    pub async fn behind_relay(&self, secret: &str) -> (Relay, Arc<HttpEngine>) {
        let address = self.0.address().to_string();
        let relay = Relay::start(&address).await;
        let url = self.0.url().replace(&address, relay.address());
        let secret = UpstreamSecret::parse(secret);
        (relay, adapter(&url, secret.as_ref(), TIMEOUT))
    }

    /// The adapter of an engine that does not exist.
    #[must_use]
    pub fn nowhere() -> Arc<HttpEngine> {
        let url = format!("http://{}", test_support::http::nowhere());
        adapter(&url, None, TIMEOUT)
    }

    /// Sets whether it has depth.
    pub fn dry(&self, dry: bool) {
        self.0.records().conduct.dry = dry;
    }

    /// Sets whether it refuses holds.
    pub fn refuses(&self, refuses: bool) {
        self.0.records().conduct.refuses = refuses;
    }

    /// Scripts its report; `None` restores the report from its records.
    pub fn reports(&self, report: Option<Value>) {
        self.0.records().conduct.report = report;
    }

    /// Lets all unconfirmed holds expire.
    pub fn lapse(&self) {
        let mut records = self.0.records();
        let trades = records.trades.values_mut();
        let held = trades.filter(|trade| trade.stage == Stage::Held);
        held.for_each(|trade| trade.goes(Stage::Lapsed));
    }

    /// Sets the stages of trades held from now on. The default is delivery.
    pub fn course(&self, stages: &[Stage]) {
        self.0.records().conduct.course = stages.to_vec();
    }

    /// Moves a trade through these stages now.
    pub fn goes(&self, trade: &str, stages: &[Stage]) {
        let mut records = self.0.records();
        let trade = records
            .trades
            .get_mut(trade)
            .expect("a trade that was held");
        stages.iter().for_each(|stage| trade.goes(*stage));
    }

    /// Lets the reports on these trades wait until the next call of this method.
    pub fn stalls(&self, trades: &[String]) {
        self.0.records().conduct.stalled = trades.iter().cloned().collect();
    }

    /// Lets the calls for the depth of orders with this input wait until the next call of this method.
    pub fn stalls_depth(&self, input: Option<&str>) {
        self.0.records().conduct.stalled_input = input.map(str::to_owned);
    }

    /// Adds this many header lines to each response.
    pub fn adds_lines(&self, more: usize) {
        self.0.records().conduct.more_lines = more;
    }

    /// Makes an operation fail in this way until [`FarEngine::mended`].
    pub fn fails(&self, operation: &str, fault: FarFault) {
        self.0.records().conduct.fault = Some((operation.to_owned(), fault));
    }

    /// Ends all failures.
    pub fn mended(&self) {
        self.0.records().conduct.fault = None;
    }

    /// Every call since the last call of this method.
    pub fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.0.records().conduct.calls)
    }

    /// The operations of these calls.
    pub fn operations(&self) -> Vec<String> {
        let calls = self.calls().into_iter();
        calls.map(|call| call.operation).collect()
    }

    /// Executions of each recorded trade; `None` if its hold was released.
    #[must_use]
    pub fn book(&self) -> BTreeMap<String, Option<u32>> {
        let records = self.0.records();
        let kept = |trade: &Trade| (trade.stage != Stage::Released).then_some(trade.delivered);
        let trades = records.trades.iter();
        trades
            .map(|(id, trade)| (id.clone(), kept(trade)))
            .collect()
    }
}

fn adapter(url: &str, secret: Option<&UpstreamSecret>, timeout: Duration) -> Arc<HttpEngine> {
    let url = UpstreamUrl::parse(url).expect("a URL");
    Arc::new(HttpEngine::new(url, secret, timeout).expect("an engine"))
}
