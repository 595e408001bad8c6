//! An engine of the operator, called over HTTP: `http:<url>`, with the published contract `engine-v1`.
//!
//! A late response, a broken connection, a status other than 200 and a malformed body all count as no response. No decision is
//! based on a missing response: the next poll asks again under the same trade id.
//!
//! The calls of polls have permits of their own, so that slow reports delay no other call. At most half of the other calls
//! are of one partner, so that a partner whose orders hang delays no other partner.

mod contract;
mod polls;
mod wire;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Request, StatusCode};
use kernel::Amount;
use partner_core::Tenant;
use partner_core::ports::Ticket;
use pools_core::engine::EngineName;
use pools_core::ports::{Confirmation, Depth, Engine, Hold, Order, TradeReportRequest};
use pools_core::trade::{EngineReport, TradeId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::address::{UpstreamSecret, UpstreamUrl};
use crate::client::{CallError, Caller, HttpClient};
use contract::Operation;
use polls::PollPermits;

pub use contract::openapi;

/// Timeout of one call. A poll makes two calls within its lease, which is two seconds longer than this timeout.
pub const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum length of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// An engine at a URL.
pub struct HttpEngine {
    client: HttpClient,
    url: UpstreamUrl,
    name: EngineName,
    bearer: Option<HeaderValue>,
    timeout: Duration,
    /// Whether the last call got a valid response.
    answering: AtomicBool,
    polls: Arc<PollPermits>,
}

impl std::fmt::Debug for HttpEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HttpEngine")
    }
}

/// Why a call has no valid response.
#[derive(Debug, thiserror::Error)]
enum Silence {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("the request cannot be built")]
    Unmade,
    #[error("the response has the status {0}, not 200")]
    Status(StatusCode),
    #[error("the response body is not a JSON object")]
    NoObject,
    // Cut to 200 characters, because the text repeats an unknown value of any length.
    #[error("the response body does not match the contract: {:.200}", .0.to_string())]
    Body(#[from] serde_json::Error),
}

impl Silence {
    /// Whether nothing was sent, so that the engine cannot have acted.
    fn is_unsent(&self) -> bool {
        match self {
            Self::Call(error) => error.is_unsent(),
            Self::Unmade => true,
            Self::Status(_) | Self::NoObject | Self::Body(_) => false,
        }
    }
}

impl HttpEngine {
    /// An engine at this URL. Each call carries this secret.
    ///
    /// # Errors
    /// An error if the URL is `https` and the machine trusts no certificate.
    pub fn new(
        url: UpstreamUrl,
        secret: Option<&UpstreamSecret>,
        timeout: Duration,
    ) -> io::Result<Self> {
        Ok(Self {
            client: HttpClient::new(url.is_encrypted(), MAX_RESPONSE_BYTES)?,
            name: url.name(),
            url,
            bearer: secret.map(UpstreamSecret::bearer),
            timeout,
            answering: AtomicBool::new(true),
            polls: Arc::default(),
        })
    }

    /// Sets a name other than the URL's.
    #[must_use]
    pub fn named(mut self, name: EngineName) -> Self {
        self.name = name;
        self
    }

    /// Calls the engine, and logs when it starts or stops responding.
    async fn ask<Q, A>(
        &self,
        caller: Caller<'_>,
        operation: Operation,
        trade: Option<TradeId>,
        body: Option<&Q>,
    ) -> Result<A, Silence>
    where
        Q: Serialize + Sync,
        A: DeserializeOwned,
    {
        let response = self.call(caller, operation, trade, body).await;
        let name = operation.id();
        match &response {
            Ok(_) if !self.answering.swap(true, Ordering::Relaxed) => {
                tracing::info!(operation = name, "The engine responds again");
            }
            Ok(_) => {}
            Err(error) => {
                let trade = trade.map(tracing::field::display);
                if self.answering.swap(false, Ordering::Relaxed) {
                    tracing::warn!(operation = name, trade.id = trade, error = %error, "The engine gave no valid response; check the engine and its URL");
                } else {
                    tracing::debug!(operation = name, trade.id = trade, error = %error, "The engine still gives no valid response");
                }
            }
        }
        response
    }

    async fn call<Q, A>(
        &self,
        caller: Caller<'_>,
        operation: Operation,
        trade: Option<TradeId>,
        body: Option<&Q>,
    ) -> Result<A, Silence>
    where
        Q: Serialize + Sync,
        A: DeserializeOwned,
    {
        let request = self.request(operation, trade, body)?;
        let response = self.client.send(caller, request, self.timeout).await?;
        if response.status != StatusCode::OK {
            return Err(Silence::Status(response.status));
        }
        // The JSON parser would also accept a list of the fields as an object.
        if !response.body.trim_ascii_start().starts_with(b"{") {
            return Err(Silence::NoObject);
        }
        Ok(serde_json::from_slice(&response.body)?)
    }

    fn request<Q: Serialize>(
        &self,
        operation: Operation,
        trade: Option<TradeId>,
        body: Option<&Q>,
    ) -> Result<Request<Full<Bytes>>, Silence> {
        let (method, path) = operation.route();
        let trade = trade.map_or(String::new(), |trade| trade.to_string());
        let uri = self.url.below(&path.replace(contract::TRADE, &trade));
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(bearer) = &self.bearer {
            request = request.header(AUTHORIZATION, bearer);
        }
        let body = match body {
            Some(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                Bytes::from(serde_json::to_vec(body)?)
            }
            None => Bytes::new(),
        };
        request.body(Full::new(body)).map_err(|_| Silence::Unmade)
    }

    async fn confirm_for(&self, caller: Caller<'_>, trade: TradeId) -> Option<Confirmation> {
        let asked = self.ask(caller, Operation::Confirm, Some(trade), NO_BODY);
        let response: wire::ConfirmAnswer = asked.await.ok()?;
        Some(response.status.into())
    }
}

/// For a call without a request body.
const NO_BODY: Option<&()> = None;

#[async_trait]
impl Engine for HttpEngine {
    async fn depth(&self, who: &Tenant, order: &Order) -> Option<Depth> {
        let order = wire::Order::of(order);
        let caller = Caller::Partner(&who.partner);
        let asked = self.ask(caller, Operation::Depth, None, Some(&order));
        let response: wire::DepthAnswer = asked.await.ok()?;
        Some(response.status.into())
    }

    async fn hold(
        &self,
        who: &Tenant,
        trade: TradeId,
        order: &Order,
        output: Amount,
    ) -> Option<Hold> {
        let deal = wire::Deal::of(order, output);
        let caller = Caller::Partner(&who.partner);
        let asked = self.ask(caller, Operation::Hold, Some(trade), Some(&deal));
        let response: Result<wire::HoldAnswer, Silence> = asked.await;
        match response {
            Ok(response) => Some(response.status.into()),
            Err(silence) => silence.is_unsent().then_some(Hold::Unsent),
        }
    }

    async fn confirm(&self, who: &Tenant, trade: TradeId) -> Option<Confirmation> {
        self.confirm_for(Caller::Partner(&who.partner), trade).await
    }

    async fn confirm_again(&self, _: &Tenant, trade: TradeId) -> Option<Confirmation> {
        self.confirm_for(Caller::Poll, trade).await
    }

    async fn release(&self, who: &Tenant, trade: TradeId) -> Option<()> {
        let caller = Caller::Partner(&who.partner);
        let asked = self.ask(caller, Operation::Release, Some(trade), NO_BODY);
        let _: wire::ReleaseAnswer = asked.await.ok()?;
        Some(())
    }

    async fn report(&self, request: &TradeReportRequest) -> Option<EngineReport> {
        let trade = Some(request.trade);
        let asked = self.ask(Caller::Poll, Operation::Report, trade, NO_BODY);
        let response: wire::Report = asked.await.ok()?;
        Some(response.into())
    }

    fn admit_poll(&self, who: &Tenant) -> Option<Ticket> {
        let permit = self.polls.take(&who.partner);
        if permit.is_none() {
            tracing::debug!(partner.id = %who.partner, "Too many polls wait for the engine; this one returns the current status");
        }
        Some(Ticket(Box::new(permit?)))
    }

    fn name(&self) -> EngineName {
        self.name.clone()
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use kernel::{Asset, Mode};
    use partner_core::PartnerId;
    use pools_core::profile::{Network, PoolId};
    use pools_core::quote::Side;
    use pools_core::trade::TradeStatus;
    use test_support::http::{Reply, Upstream, nowhere};

    use super::*;

    #[test]
    fn malformed_response_is_shown_shortened() {
        let error_of = |word: &str| {
            let body = format!(r#"{{"status":"{word}"}}"#);
            let unread = serde_json::from_str::<wire::HoldAnswer>(&body).unwrap_err();
            Silence::from(unread).to_string()
        };
        let wrong = error_of("heldd");
        assert!(wrong.contains("unknown variant `heldd`"), "{wrong}");
        assert!(error_of(&"x".repeat(60_000)).len() < 300);
    }

    /// An engine on this machine. It responds by the last segment of the path.
    fn engine() -> HttpEngine {
        let far = Upstream::start(|request| {
            let status = match request.path().rsplit('/').next().unwrap() {
                "depth" => "enough",
                "hold" => "held",
                "confirm" => "confirmed",
                _ => "in_progress",
            };
            Reply::json(200, &format!(r#"{{"status":"{status}"}}"#))
        });
        let url = UpstreamUrl::parse(&far.url()).unwrap();
        HttpEngine::new(url, None, Duration::from_secs(20)).unwrap()
    }

    fn acme() -> Tenant {
        tenant("acme")
    }

    fn tenant(partner: &str) -> Tenant {
        Tenant {
            partner: PartnerId::parse(partner).unwrap(),
            mode: Mode::Test,
        }
    }

    fn request() -> TradeReportRequest {
        let eur = Asset::fiat("EUR").unwrap();
        TradeReportRequest {
            trade: TradeId::parse("txn_test_01KSFVT4Z2V6B9C1D3F5G7H8JK").unwrap(),
            order: Order {
                pool: PoolId::parse("EUR-USDT").unwrap(),
                side: Side::OnRamp,
                amount: Amount::parse("100.00", eur).unwrap(),
                network: Network::Tron,
                destination: None,
            },
            attempt: 1,
            known: TradeStatus::Reserved,
        }
    }

    // rule: pools.poll.permits, pools.engine.unsent
    #[tokio::test]
    async fn polls_ask_while_orders_have_no_permit() {
        let mut engine = engine();
        let (request, patient) = (request(), engine.timeout);
        let (trade, order) = (request.trade, &request.order);
        let permits = engine.client.all_permits().await;
        engine.timeout = Duration::from_millis(100);
        assert_eq!(engine.depth(&acme(), order).await, None);
        let unsent = engine.hold(&acme(), trade, order, order.amount).await;
        assert_eq!(unsent, Some(Hold::Unsent));
        assert_eq!(engine.confirm(&acme(), trade).await, None);
        engine.timeout = patient;
        let confirmed = engine.confirm_again(&acme(), trade).await;
        assert_eq!(confirmed, Some(Confirmation::Confirmed));
        let report = engine.report(&request).await;
        assert_eq!(report, Some(EngineReport::InProgress));
        drop(permits);
        let held = engine.hold(&acme(), trade, order, order.amount).await;
        assert_eq!(held, Some(Hold::Held));
    }

    // rule: pools.engine.share
    #[tokio::test]
    async fn orders_of_one_partner_that_hang_delay_no_other_partner() {
        let far = Upstream::start(|request| {
            let path = request.path().rsplit('/').next();
            match (path, request.json()["input"]["amount"].as_str()) {
                (Some("depth"), Some("66.66")) => Reply::Waits,
                (Some("depth"), _) => Reply::json(200, r#"{"status":"enough"}"#),
                (Some("hold"), _) => Reply::json(200, r#"{"status":"held"}"#),
                (Some("confirm"), _) => Reply::json(200, r#"{"status":"confirmed"}"#),
                _ => Reply::json(200, r#"{"status":"released"}"#),
            }
        });
        let url = UpstreamUrl::parse(&far.url()).unwrap();
        let engine = HttpEngine::new(url, None, Duration::from_secs(60)).unwrap();
        let engine = Arc::new(engine);
        let (trade, order) = (request().trade, request().order);
        let amount = Amount::parse("66.66", order.amount.asset()).unwrap();
        // More calls than the client makes at the same time.
        let flood: Vec<_> = (0..300)
            .map(|_| {
                let (engine, order) = (Arc::clone(&engine), order.clone());
                let slow = Order { amount, ..order };
                tokio::spawn(async move { engine.depth(&acme(), &slow).await })
            })
            .collect();
        for _ in 0..6_000 {
            if far.received().len() >= 128 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(far.received().len(), 128);
        let globex = tenant("globex");
        let depth = engine.depth(&globex, &order).await;
        assert_eq!(depth, Some(Depth::Enough));
        let held = engine.hold(&globex, trade, &order, order.amount).await;
        assert_eq!(held, Some(Hold::Held));
        let confirmed = engine.confirm(&globex, trade).await;
        assert_eq!(confirmed, Some(Confirmation::Confirmed));
        assert_eq!(engine.release(&globex, trade).await, Some(()));
        assert_eq!(far.received().len(), 128 + 4);
        assert!(flood.iter().all(|call| !call.is_finished()));
        for call in flood {
            call.abort();
            drop(call.await);
        }
        let depth = engine.depth(&acme(), &order).await;
        assert_eq!(depth, Some(Depth::Enough));
    }

    // rule: pools.engine.unsent
    #[tokio::test]
    async fn hold_is_unsent_when_no_connection_can_be_opened() {
        let url = UpstreamUrl::parse(&format!("http://{}", nowhere())).unwrap();
        let engine = HttpEngine::new(url, None, Duration::from_secs(20)).unwrap();
        let request = request();
        let amount = request.order.amount;
        let (acme, order) = (acme(), &request.order);
        let hold = engine.hold(&acme, request.trade, order, amount).await;
        assert_eq!(hold, Some(Hold::Unsent));
    }

    // rule: engine.http.silence
    #[tokio::test]
    async fn hold_without_response_may_have_been_sent() {
        // The system accepts the connection, but the test never responds.
        let mute = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", mute.local_addr().unwrap());
        let url = UpstreamUrl::parse(&url).unwrap();
        let engine = HttpEngine::new(url, None, Duration::from_millis(300)).unwrap();
        let request = request();
        let amount = request.order.amount;
        let (acme, order) = (acme(), &request.order);
        let hold = engine.hold(&acme, request.trade, order, amount).await;
        assert_eq!(hold, None);
    }
}
