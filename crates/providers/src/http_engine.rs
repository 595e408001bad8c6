//! An engine of the operator, called over HTTP: `http:<url>`, with the published contract `engine-v1`.
//!
//! A late response, a broken connection, a status other than 200 and a malformed body all count as no response. No decision is
//! based on a missing response, and no call is repeated here: the next poll asks again under the same trade id.

mod contract;
mod wire;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Request, StatusCode};
use kernel::Amount;
use pools_core::engine::EngineName;
use pools_core::ports::{Confirmation, Depth, Engine, Hold, Order, TradeReportRequest};
use pools_core::trade::{EngineReport, TradeId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::address::{UpstreamSecret, UpstreamUrl};
use crate::client::{CallError, HttpClient};
use contract::Operation;

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
        operation: Operation,
        trade: Option<TradeId>,
        body: Option<&Q>,
    ) -> Option<A>
    where
        Q: Serialize + Sync,
        A: DeserializeOwned,
    {
        let response = self.call(operation, trade, body).await;
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
        response.ok()
    }

    async fn call<Q, A>(
        &self,
        operation: Operation,
        trade: Option<TradeId>,
        body: Option<&Q>,
    ) -> Result<A, Silence>
    where
        Q: Serialize + Sync,
        A: DeserializeOwned,
    {
        let request = self.request(operation, trade, body)?;
        let response = self.client.send(request, self.timeout).await?;
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
}

/// For a call without a request body.
const NO_BODY: Option<&()> = None;

#[async_trait]
impl Engine for HttpEngine {
    async fn depth(&self, order: &Order) -> Option<Depth> {
        let order = wire::Order::of(order);
        let response: wire::DepthAnswer = self.ask(Operation::Depth, None, Some(&order)).await?;
        Some(response.status.into())
    }

    async fn hold(&self, trade: TradeId, order: &Order, output: Amount) -> Option<Hold> {
        let deal = wire::Deal::of(order, output);
        let response: wire::HoldAnswer =
            self.ask(Operation::Hold, Some(trade), Some(&deal)).await?;
        Some(response.status.into())
    }

    async fn confirm(&self, trade: TradeId) -> Option<Confirmation> {
        let asked = self.ask(Operation::Confirm, Some(trade), NO_BODY);
        let response: wire::ConfirmAnswer = asked.await?;
        Some(response.status.into())
    }

    async fn release(&self, trade: TradeId) -> Option<()> {
        let asked = self.ask(Operation::Release, Some(trade), NO_BODY);
        let _: wire::ReleaseAnswer = asked.await?;
        Some(())
    }

    async fn report(&self, enquiry: &TradeReportRequest) -> Option<EngineReport> {
        let asked = self.ask(Operation::Report, Some(enquiry.trade), NO_BODY);
        let response: wire::Report = asked.await?;
        Some(response.into())
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
}
