//! Calls, responses, and a partner's client.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::Index;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use bytes::Bytes;
use http_body_util::BodyExt;
use http_kit::{Peer, Waiting};
use serde_json::{Value, json};
use test_support::recorded::Recorded;
use tower::ServiceExt;

use crate::World;
use crate::setup::ADDRESS;

/// A request to be sent.
#[derive(Debug, Clone)]
pub struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
    peer: IpAddr,
    waiting: Option<Waiting>,
}

impl Call {
    /// A recorded request, without a key.
    #[must_use]
    pub fn of(recorded: &Recorded) -> Self {
        let call = Self::new(&recorded.method, &recorded.path);
        let headers = recorded.headers.iter();
        let call = headers.fold(call, |call, (name, value)| call.header(name, value));
        match &recorded.body {
            Some(body) => call.json(body),
            None => call,
        }
    }

    /// A request without a body or key.
    #[must_use]
    pub fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.parse().expect("a method"),
            path: path.to_owned(),
            headers: Vec::new(),
            body: Bytes::new(),
            peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
            waiting: None,
        }
    }

    #[must_use]
    pub fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    /// A POST without a body.
    #[must_use]
    pub fn post(path: &str) -> Self {
        Self::new("POST", path)
    }

    /// The path and the method.
    #[must_use]
    pub fn target(&self) -> (&str, &str) {
        (&self.path, self.method.as_str())
    }

    /// With a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.body(body.to_string())
            .header("content-type", "application/json")
    }

    /// With these bytes for a body, and no content type.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
        let value = HeaderValue::from_bytes(value.as_bytes()).expect("a header value");
        self.headers.push((name, value));
        self
    }

    /// With one more header, unless HTTP has no way to send such a value.
    #[must_use]
    pub fn try_header(self, name: &str, value: &str) -> Option<Self> {
        HeaderValue::from_bytes(value.as_bytes()).ok()?;
        Some(self.header(name, value))
    }

    /// With this raw query.
    #[must_use]
    pub fn query(mut self, query: &str) -> Self {
        let join = if self.path.contains('?') { '&' } else { '?' };
        self.path.push(join);
        self.path.push_str(query);
        self
    }

    /// With a bearer key.
    #[must_use]
    pub fn bearer(self, key: &str) -> Self {
        self.header("authorization", &format!("Bearer {key}"))
    }

    /// With an idempotency key.
    #[must_use]
    pub fn key(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    /// From another address.
    #[must_use]
    pub fn from(mut self, peer: impl Into<IpAddr>) -> Self {
        self.peer = peer.into();
        self
    }

    /// Through a listener that ends these waits.
    #[must_use]
    pub fn within(mut self, waiting: Waiting) -> Self {
        self.waiting = Some(waiting);
        self
    }

    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// What a record of the request contains.
    #[must_use]
    pub fn recorded(&self) -> Recorded {
        let kept = ["idempotency-key", "origin"];
        let headers = self.headers.iter();
        let headers = headers.filter(|(name, _)| kept.contains(&name.as_str()));
        let text = |value: &HeaderValue| value.to_str().expect("a text").to_owned();
        Recorded {
            method: self.method.to_string(),
            path: self.path.clone(),
            headers: headers
                .map(|(name, value)| (name.to_string(), text(value)))
                .collect(),
            body: serde_json::from_slice(&self.body).ok(),
        }
    }

    pub(crate) fn request(&self) -> Request {
        let mut request = axum::http::Request::builder()
            .method(self.method.clone())
            .uri(&self.path)
            .body(Body::from(self.body.clone()))
            .unwrap_or_else(|fault| panic!("{self:?}: {fault}"));
        for (name, value) in &self.headers {
            request.headers_mut().append(name, value.clone());
        }
        request
            .extensions_mut()
            .insert(Peer((self.peer, 49152).into()));
        if let Some(waiting) = &self.waiting {
            request.extensions_mut().insert(waiting.clone());
        }
        request
    }
}

/// A response that has been checked against the contract.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The request, for messages.
    pub asked: String,
    pub status: u16,
    pub headers: HeaderMap,
    /// The body's bytes.
    pub bytes: Bytes,
    pub body: Value,
}

impl Answer {
    /// The response of a router to a call.
    pub(crate) async fn of(router: Router, call: &Call) -> Self {
        let response = router.oneshot(call.request()).await.expect("an answer");
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a whole body").to_bytes();
        Self {
            asked: format!("{} {}", call.method, call.path),
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
            bytes,
        }
    }

    /// Expects 201; returns the body.
    #[track_caller]
    pub fn created(self) -> Value {
        assert_eq!(self.status, 201, "{}: {}", self.asked, self.body);
        self.body
    }

    /// Expects 200; returns the body.
    #[track_caller]
    pub fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{}: {}", self.asked, self.body);
        self.body
    }

    /// Expects a refusal with this status and code; returns the response.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Self {
        let found = (self.status, self.body["code"].as_str());
        assert_eq!(found, (status, Some(code)), "{}: {}", self.asked, self.body);
        self
    }

    /// Expects the error's message to contain this text.
    #[track_caller]
    pub fn saying(self, words: &str) -> Self {
        let message = self.body["message"].as_str().unwrap_or_default();
        assert!(
            message.contains(words),
            "{}: {message:?} lacks {words:?}",
            self.asked
        );
        self
    }

    /// The value of a header that occurs exactly once.
    #[must_use]
    #[track_caller]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let first = values.next()?;
        assert!(values.next().is_none(), "{}: {name} twice", self.asked);
        Some(first.to_str().expect("an ASCII header"))
    }

    /// A header's number.
    #[must_use]
    #[track_caller]
    pub fn number(&self, name: &str) -> u64 {
        let text = self
            .header(name)
            .unwrap_or_else(|| panic!("{}: no {name}", self.asked));
        text.parse()
            .unwrap_or_else(|_| panic!("{}: {name}: {text}", self.asked))
    }

    /// Status and body without the request id, for comparison between callers.
    #[must_use]
    pub fn anonymous(&self) -> (u16, Value) {
        let mut body = self.body.clone();
        if let Some(fields) = body.as_object_mut() {
            fields.remove("request_id");
        }
        (self.status, body)
    }
}

impl Index<&str> for Answer {
    type Output = Value;

    fn index(&self, field: &str) -> &Value {
        &self.body[field]
    }
}

/// The names of an object's fields, sorted.
#[must_use]
pub fn keys(value: &Value) -> Vec<&str> {
    let fields = value
        .as_object()
        .unwrap_or_else(|| panic!("no object: {value}"));
    let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// A partner's program with one key.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) world: World,
    pub(crate) key: String,
}

impl Client {
    /// Sends a request with the key.
    pub async fn send(&self, call: Call) -> Answer {
        self.world.send(call.bearer(&self.key)).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Call::get(path)).await
    }

    /// POST with a JSON body.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Call::post(path).json(body)).await
    }

    /// Requests a quote with any body.
    pub async fn ask(&self, pool: &str, body: &Value) -> Answer {
        self.post(&format!("/v1/pools/{pool}/quote"), body).await
    }

    /// Creates a firm quote to buy for this much fiat; returns its id.
    pub async fn buy(&self, pool: &str, amount: &str) -> String {
        let answer = self.ask(pool, &purchase(pool, amount)).await.ok();
        answer["quoteId"]
            .as_str()
            .unwrap_or_else(|| panic!("no quote: {answer}"))
            .to_owned()
    }

    /// Creates a firm quote to sell this much crypto; returns its id.
    pub async fn sell(&self, pool: &str, amount: &str) -> String {
        let answer = self.ask(pool, &sale(pool, amount)).await.ok();
        answer["quoteId"]
            .as_str()
            .unwrap_or_else(|| panic!("no quote: {answer}"))
            .to_owned()
    }

    /// Executes a quote.
    pub async fn transact(&self, pool: &str, quote: &str, key: &str) -> Answer {
        let call = Call::post(&format!("/v1/pools/{pool}/transact"));
        self.send(call.json(&json!({ "quoteId": quote })).key(key))
            .await
    }

    /// Creates a purchase quote and executes it; returns the ids of quote and trade.
    pub async fn trade(&self, pool: &str, amount: &str) -> (String, String) {
        let quote = self.buy(pool, amount).await;
        let ack = self
            .transact(pool, &quote, &format!("trade-{quote}"))
            .await
            .ok();
        (quote, ack["transactId"].as_str().unwrap().to_owned())
    }

    /// Polls a trade.
    pub async fn poll(&self, quote: &str) -> Answer {
        self.get(&format!("/v1/pools/transactions/{quote}")).await
    }

    /// Polls a trade; returns its status.
    pub async fn status(&self, quote: &str) -> String {
        let answer = self.poll(quote).await.ok();
        answer["status"].as_str().unwrap().to_owned()
    }

    /// Reads the status of a quote's trade without a poll.
    pub async fn trade_of(&self, quote: &str) -> String {
        let list = self.get("/v1/pools/trades?limit=100").await.ok();
        let trades = list["data"].as_array().unwrap();
        let own = trades.iter().find(|trade| trade["quoteId"] == quote);
        own.unwrap()["status"].as_str().unwrap().to_owned()
    }

    /// Reads a quote.
    pub async fn quote(&self, quote: &str) -> Answer {
        self.get(&format!("/v1/pools/quotes/{quote}")).await
    }

    /// Rejects a quote.
    pub async fn reject(&self, quote: &str) -> Answer {
        self.send(Call::post(&format!("/v1/pools/quotes/{quote}/reject")))
            .await
    }

    /// Reads a trade.
    pub async fn read(&self, trade: &str) -> Answer {
        self.get(&format!("/v1/pools/trades/{trade}")).await
    }

    /// The balance in a pool's fiat.
    pub async fn balance(&self, pool: &str) -> Value {
        self.get(&format!("/v1/pools/{pool}/balance")).await.ok()["balance"].clone()
    }

    /// Reads the whole ledger of a currency in one page.
    pub async fn ledger(&self, currency: &str) -> Value {
        self.get(&format!("/v1/pools/ledger?limit=200&currency={currency}"))
            .await
            .ok()
    }
}

/// The body of a plain purchase.
#[must_use]
pub fn purchase(pool: &str, amount: &str) -> Value {
    let (fiat, crypto) = pool.split_once('-').expect("a pool id");
    json!({
        "side": "on_ramp", "fiatCurrency": fiat, "cryptoCurrency": crypto, "amount": amount,
        "destAddress": ADDRESS,
    })
}

/// The body of a plain sale.
#[must_use]
pub fn sale(pool: &str, amount: &str) -> Value {
    let (fiat, crypto) = pool.split_once('-').expect("a pool id");
    json!({ "side": "off_ramp", "fiatCurrency": fiat, "cryptoCurrency": crypto, "amount": amount })
}
