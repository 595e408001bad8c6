//! An operator's engine behind HTTP: it keeps its own records, checks every request and every response
//! against the published contract, and can be made to fail.
//!
//! Its trades advance independently: [`FarEngine::goes`] takes them any number of steps ahead of the polls. Tests script
//! reports with [`FarEngine::reports`] and failures with [`FarEngine::fails`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, Full};
use jsonschema::Validator;
use parking_lot::Mutex;
use providers::{HttpEngine, UpstreamSecret, UpstreamUrl, http_engine};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::relay::Relay;

/// Generous timeout for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

/// One call the engine has received.
#[derive(Debug, Clone, PartialEq)]
pub struct FarCall {
    /// The operation, by the last segment of its path: `depth`, `hold`, `confirm`, `release`; else `report`.
    pub operation: String,
    /// The trade id; empty for `depth`.
    pub trade: String,
    /// The header `Authorization`; empty if absent.
    pub shown: String,
    /// The body; null if absent.
    pub body: Value,
}

/// How the engine fails.
#[derive(Debug, Clone)]
pub enum FarFault {
    /// Acts, but its response never arrives.
    Late,
    /// Acts, but its response is truncated.
    Broken,
    /// Acts, but repeats its previous response to the operation.
    Repeated,
    /// Sends this response without acting.
    Says(u16, String),
}

/// The engine's state of a trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FarStage {
    /// Held, not yet confirmed.
    #[default]
    Held,
    /// The hold expired before it was confirmed.
    Lapsed,
    /// The hold was released, or the trade was returned before it was attempted.
    Released,
    /// Confirmed and in progress.
    Working,
    Delivered,
    /// Attempted without success.
    Failed,
    /// Delivered, then returned.
    Returned,
}

impl FarStage {
    fn follows(self, before: Self) -> bool {
        matches!(
            (before, self),
            (Self::Held, Self::Lapsed | Self::Released | Self::Working)
                | (
                    Self::Working,
                    Self::Delivered | Self::Failed | Self::Released
                )
                | (Self::Delivered, Self::Returned)
        )
    }
}

#[derive(Default)]
struct Book {
    /// Every held trade, with the number of its executions.
    trades: BTreeMap<String, Trade>,
    calls: Vec<FarCall>,
    dry: bool,
    refuses: bool,
    /// The stages of a trade after its confirmation.
    course: Option<Vec<FarStage>>,
    report: Option<Value>,
    fault: Option<(String, FarFault)>,
    /// Trades whose reports wait.
    stalled: BTreeSet<String>,
    /// The input of orders whose calls for depth wait.
    stalled_input: Option<String>,
    /// Further header lines of each response.
    more_lines: usize,
}

#[derive(Default)]
struct Trade {
    stage: FarStage,
    /// Number of executions.
    delivered: u32,
    /// The last response to each operation.
    answers: BTreeMap<String, Value>,
    /// Whether a report has already shown the return.
    told_returned: bool,
}

impl Trade {
    fn goes(&mut self, to: FarStage) {
        assert!(to.follows(self.stage), "{to:?} after {:?}", self.stage);
        self.delivered += u32::from(to == FarStage::Delivered);
        self.stage = to;
    }
}

/// The engine, listening on this machine until the value is dropped.
pub struct FarEngine {
    address: String,
    url: String,
    book: Arc<Mutex<Book>>,
    server: AbortHandle,
}

impl fmt::Debug for FarEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FarEngine")
    }
}

impl Drop for FarEngine {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl FarEngine {
    /// Starts it.
    pub async fn start() -> Self {
        let book = Arc::<Mutex<Book>>::default();
        let contract = Arc::new(serde_json::to_value(http_engine::openapi()).expect("a document"));
        let service = axum::Router::new()
            .fallback(answer)
            .with_state((Arc::clone(&book), contract));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let url = format!("http://{address}/desk");
        let serving = tokio::spawn(async move { axum::serve(listener, service).await });
        Self {
            address,
            url,
            book,
            server: serving.abort_handle(),
        }
    }

    /// The adapter that calls it, as a service builds it.
    #[must_use]
    pub fn adapter(&self, secret: &str) -> Arc<HttpEngine> {
        self.adapter_with_timeout(secret, TIMEOUT)
    }

    /// The same adapter with a shorter timeout.
    #[must_use]
    pub fn adapter_with_timeout(&self, secret: &str, timeout: Duration) -> Arc<HttpEngine> {
        adapter(&self.url, UpstreamSecret::parse(secret).as_ref(), timeout)
    }

    /// Starts a relay to it, and returns the relay with the adapter that calls it through the relay.
    pub async fn behind_relay(&self, secret: &str) -> (Relay, Arc<HttpEngine>) {
        let relay = Relay::start(&self.address).await;
        let url = self.url.replace(&self.address, relay.address());
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
        self.book.lock().dry = dry;
    }

    /// Sets whether it refuses holds.
    pub fn refuses(&self, refuses: bool) {
        self.book.lock().refuses = refuses;
    }

    /// Scripts its report; `None` restores the report from its records.
    pub fn reports(&self, report: Option<Value>) {
        self.book.lock().report = report;
    }

    /// Lets all unconfirmed holds expire.
    pub fn lapse(&self) {
        let mut book = self.book.lock();
        let trades = book.trades.values_mut();
        let held = trades.filter(|trade| trade.stage == FarStage::Held);
        held.for_each(|trade| trade.goes(FarStage::Lapsed));
    }

    /// Sets the stages of trades confirmed from now on. The default is delivery.
    pub fn course(&self, stages: &[FarStage]) {
        self.book.lock().course = Some(stages.to_vec());
    }

    /// Moves a trade through these stages now.
    pub fn goes(&self, trade: &str, stages: &[FarStage]) {
        let mut book = self.book.lock();
        let trade = book.trades.get_mut(trade).expect("a trade that was held");
        stages.iter().for_each(|stage| trade.goes(*stage));
    }

    /// Lets the reports on these trades wait until the next call of this method.
    pub fn stalls(&self, trades: &[String]) {
        self.book.lock().stalled = trades.iter().cloned().collect();
    }

    /// Lets the calls for the depth of orders with this input wait until the next call of this method.
    pub fn stalls_depth(&self, input: Option<&str>) {
        self.book.lock().stalled_input = input.map(str::to_owned);
    }

    /// Adds this many header lines to each response.
    pub fn adds_lines(&self, more: usize) {
        self.book.lock().more_lines = more;
    }

    /// Makes an operation fail in this way until [`FarEngine::mended`].
    pub fn fails(&self, operation: &str, fault: FarFault) {
        self.book.lock().fault = Some((operation.to_owned(), fault));
    }

    /// Ends all failures.
    pub fn mended(&self) {
        self.book.lock().fault = None;
    }

    /// Every call since the last call of this method.
    pub fn calls(&self) -> Vec<FarCall> {
        std::mem::take(&mut self.book.lock().calls)
    }

    /// The operations of these calls.
    pub fn operations(&self) -> Vec<String> {
        let calls = self.calls().into_iter();
        calls.map(|call| call.operation).collect()
    }

    /// Executions of each recorded trade; `None` if its hold was released.
    #[must_use]
    pub fn book(&self) -> BTreeMap<String, Option<u32>> {
        let book = self.book.lock();
        let kept = |trade: &Trade| (trade.stage != FarStage::Released).then_some(trade.delivered);
        let trades = book.trades.iter();
        trades
            .map(|(id, trade)| (id.clone(), kept(trade)))
            .collect()
    }
}

fn adapter(url: &str, secret: Option<&UpstreamSecret>, timeout: Duration) -> Arc<HttpEngine> {
    let url = UpstreamUrl::parse(url).expect("a URL");
    Arc::new(HttpEngine::new(url, secret, timeout).expect("an engine"))
}

type Shared = (Arc<Mutex<Book>>, Arc<Value>);

async fn answer(State((book, contract)): State<Shared>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    let body = match body.is_empty() {
        true => Value::Null,
        false => serde_json::from_slice(&body).expect("JSON"),
    };
    let path = head
        .uri
        .path()
        .strip_prefix("/desk")
        .expect("the path of the URL");
    let steps: Vec<&str> = path.split('/').skip(2).collect();
    let (operation, trade) = match steps[..] {
        ["depth"] => ("depth", ""),
        ["trades", trade] => ("report", trade),
        ["trades", trade, operation] => (operation, trade),
        _ => panic!("{path} is not a path of the contract"),
    };
    let template = path.replace(trade, "{tradeId}");
    let template = if trade.is_empty() { path } else { &template };
    let method = head.method.as_str().to_lowercase();
    let documented = &contract["paths"][template][method];
    assert!(documented.is_object(), "{} {template}", head.method);
    check_body(&contract, &documented["requestBody"], &body);
    let input = body["input"]["amount"].as_str().map(str::to_owned);
    let shown = head.headers.get(header::AUTHORIZATION);
    let call = FarCall {
        operation: operation.to_owned(),
        trade: trade.to_owned(),
        shown: shown
            .map_or("", |value| value.to_str().expect("ASCII"))
            .to_owned(),
        body,
    };
    let fault = {
        let mut book = book.lock();
        book.calls.push(call);
        let fault = book.fault.clone();
        fault
            .filter(|(of, _)| of == operation)
            .map(|(_, fault)| fault)
    };
    if let Some(FarFault::Says(status, text)) = fault {
        let status = StatusCode::from_u16(status).expect("a status");
        let elsewhere = [(header::LOCATION, "/desk/v1/elsewhere")];
        return (status, elsewhere, text).into_response();
    }
    while book.lock().is_stalled(operation, trade, input.as_deref()) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let answer = book.lock().answer(operation, trade, fault.as_ref());
    check_body(&contract, &documented["responses"]["200"], &answer);
    let more = book.lock().more_lines;
    match fault {
        Some(FarFault::Late) => std::future::pending().await,
        Some(FarFault::Broken) => broken(),
        Some(FarFault::Says(..) | FarFault::Repeated) | None => with_lines(&answer, more),
    }
}

fn with_lines(answer: &Value, more: usize) -> Response {
    let mut response = axum::Json(answer).into_response();
    let line = HeaderValue::from_static("of no meaning");
    for _ in 0..more {
        response.headers_mut().append(header::WARNING, line.clone());
    }
    response
}

impl Book {
    fn is_stalled(&self, operation: &str, trade: &str, input: Option<&str>) -> bool {
        match operation {
            "report" => self.stalled.contains(trade),
            "depth" => input.is_some() && self.stalled_input.as_deref() == input,
            _ => false,
        }
    }

    fn answer(&mut self, operation: &str, id: &str, fault: Option<&FarFault>) -> Value {
        let mut answer = self.act(operation, id);
        let Some(trade) = self.trades.get_mut(id) else {
            return answer;
        };
        if matches!(fault, Some(FarFault::Late | FarFault::Broken)) {
            return answer;
        }
        if matches!(fault, Some(FarFault::Repeated))
            && let Some(before) = trade.answers.get(operation)
        {
            answer = before.clone();
        }
        if operation == "report" {
            let status = answer["status"].as_str().expect("a status");
            let again = trade.told_returned && status == "delivered";
            assert!(
                !again,
                "{id}: the contract rules out delivered after returned"
            );
            trade.told_returned |= status == "returned";
        }
        trade.answers.insert(operation.to_owned(), answer.clone());
        answer
    }

    fn act(&mut self, operation: &str, id: &str) -> Value {
        match operation {
            "depth" => json!({ "status": if self.dry { "dry" } else { "enough" } }),
            "hold" => json!({ "status": self.hold(id) }),
            "confirm" => json!({ "status": self.confirm(id) }),
            "release" => {
                self.trades.entry(id.to_owned()).or_default().stage = FarStage::Released;
                json!({ "status": "released" })
            }
            "report" => self.report.clone().unwrap_or_else(|| self.report_of(id)),
            _ => panic!("{operation} is not an operation of the contract"),
        }
    }

    fn report_of(&self, id: &str) -> Value {
        let stage = self
            .trades
            .get(id)
            .map_or(FarStage::Lapsed, |trade| trade.stage);
        let fill = format!("fill-{id}");
        match stage {
            FarStage::Held | FarStage::Working => json!({ "status": "in_progress" }),
            FarStage::Lapsed | FarStage::Released => json!({ "status": "released" }),
            FarStage::Failed => json!({ "status": "failed" }),
            FarStage::Delivered => json!({ "status": "delivered", "fillTxId": fill, "news": 1 }),
            FarStage::Returned => json!({ "status": "returned", "fillTxId": fill }),
        }
    }

    fn hold(&mut self, id: &str) -> &'static str {
        let trade = self.trades.entry(id.to_owned()).or_default();
        if self.refuses {
            trade.stage = FarStage::Released;
        }
        match trade.stage {
            FarStage::Released => "refused",
            _ => "held",
        }
    }

    /// A trade goes through its stages at its first confirmation.
    fn confirm(&mut self, id: &str) -> &'static str {
        let course = self.course.clone();
        let course = course.unwrap_or_else(|| vec![FarStage::Delivered]);
        let trade = self.trades.get_mut(id).expect("a trade that was held");
        match trade.stage {
            FarStage::Lapsed => return "lapsed",
            FarStage::Held => {
                trade.goes(FarStage::Working);
                course.into_iter().for_each(|stage| trade.goes(stage));
            }
            _ => {}
        }
        "confirmed"
    }
}

/// Part of a response, then the end of the connection.
fn broken() -> Response {
    let part = Full::from("{\"status\":").map_err(|never| match never {});
    let cut = part.with_trailers(async { Some(Err(io::Error::other("cut off"))) });
    Response::new(Body::new(cut))
}

/// Checks a body against the contract.
fn check_body(contract: &Value, documented: &Value, body: &Value) {
    let schema = &documented["content"]["application/json"]["schema"];
    if schema.is_null() {
        assert_eq!(body, &Value::Null, "a body without a documented schema");
        return;
    }
    let whole = json!({ "$ref": schema["$ref"], "components": contract["components"] });
    let validator: Validator = jsonschema::validator_for(&whole).expect("a schema");
    let faults: Vec<String> = validator
        .iter_errors(body)
        .map(|fault| fault.to_string())
        .collect();
    assert!(faults.is_empty(), "{body}: {faults:?}");
}
