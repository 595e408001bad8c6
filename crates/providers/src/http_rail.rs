//! A rail of the operator, called over HTTP: `http:<url>`, with the published contract `rail-v1`.
//!
//! A late response, a broken connection, a redirect, another status than 200, another content type than JSON, a malformed body and
//! the id of another record all count as no response. No decision is based on a missing response: the next poll asks again under
//! the same record id.
//!
//! Polls have limits of their own, so that no other call delays them. At most half of the other calls are of one partner, so that a
//! partner whose calls hang delays no other partner.

mod contract;
mod notification;
mod wire;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use gate_core::ports::{CancelReport, Rail, RailOrder};
use gate_core::rail::{Instructions, RailId, RailReport};
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Request, StatusCode};
use serde::de::DeserializeOwned;

use crate::address::{UpstreamSecret, UpstreamUrl};
use crate::client::{CallError, Caller, HttpClient, HttpResponse};
use contract::Operation;

pub use contract::openapi;

/// Timeout of one call. A poll makes at most three calls within [`RAIL_TIMEOUT`](gate_core::usecases::advance_rails::RAIL_TIMEOUT).
pub const TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum length of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 128 * 1024;

/// A rail at a URL.
pub struct HttpRail {
    client: HttpClient,
    url: UpstreamUrl,
    bearer: Option<HeaderValue>,
    timeout: Duration,
    /// Whether the last call got a valid response.
    answering: AtomicBool,
}

impl std::fmt::Debug for HttpRail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HttpRail")
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
    #[error("the content type of the response is not application/json")]
    ContentType,
    #[error("the response body is not a JSON object")]
    NoObject,
    // The text of the error is not shown, because it may repeat what the rail says about the user.
    #[error("the response body does not match the contract, in column {0}")]
    Body(usize),
    #[error("the response has the id of another payment")]
    OtherId,
    #[error("the rail does not know the payment that it has just accepted")]
    Forgotten,
}

/// What the rail reports about a payment.
enum Known {
    Reported(RailReport),
    /// The payment has not begun: the rail does not know its id.
    Unknown,
}

impl HttpRail {
    /// A rail at this URL. Each call carries this secret.
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
            url,
            bearer: secret.map(UpstreamSecret::bearer),
            timeout,
            answering: AtomicBool::new(true),
        })
    }

    /// Logs when the rail starts or stops responding, and returns its response.
    fn told<T>(&self, operation: Operation, id: RailId, response: Result<T, Silence>) -> Option<T> {
        let name = operation.id();
        match &response {
            Ok(_) if !self.answering.swap(true, Ordering::Relaxed) => {
                tracing::info!(operation = name, "The rail responds again");
            }
            Ok(_) => {}
            Err(error) if self.answering.swap(false, Ordering::Relaxed) => {
                tracing::warn!(operation = name, rail.id = %id, error = %error, "The rail gave no valid response; check the rail and its URL");
            }
            Err(error) => {
                tracing::debug!(operation = name, rail.id = %id, error = %error, "The rail still gives no valid response");
            }
        }
        response.ok()
    }

    /// Begins a payment. An acceptance is no sign that the rail responds again: only the report that follows is.
    async fn begin(&self, order: &RailOrder) -> Option<()> {
        let begun = self.order::<wire::BeginAnswer>(Caller::Poll, Operation::Begin, order);
        match begun.await {
            Ok(_) => Some(()),
            Err(error) => self.told(Operation::Begin, order.id, Err(error)),
        }
    }

    /// Reports a payment. An unknown one says nothing about whether the rail responds.
    async fn report(&self, id: RailId) -> Option<Known> {
        match self.known(id).await {
            Ok(Known::Unknown) => Some(Known::Unknown),
            known => self.told(Operation::Report, id, known),
        }
    }

    async fn known(&self, id: RailId) -> Result<Known, Silence> {
        let request = self.request(Operation::Report, id, Bytes::new())?;
        let sent = self.client.send(Caller::Poll, request, self.timeout);
        let response = sent.await?;
        if response.status == StatusCode::NOT_FOUND {
            return Ok(Known::Unknown);
        }
        let report: wire::Report = answer(id, &response)?;
        if let Some(reference) = report.reference() {
            tracing::info!(rail.id = %id, rail.reference = reference, "The rail reports a settled payment");
        }
        Ok(Known::Reported(report.into()))
    }

    /// Sends the whole order to an operation.
    async fn order<A: DeserializeOwned + wire::Answer>(
        &self,
        caller: Caller<'_>,
        operation: Operation,
        order: &RailOrder,
    ) -> Result<A, Silence> {
        let body = serde_json::to_vec(&wire::Payment::of(order)).map_err(|_| Silence::Unmade)?;
        let request = self.request(operation, order.id, body.into())?;
        let response = self.client.send(caller, request, self.timeout).await?;
        answer(order.id, &response)
    }

    fn request(
        &self,
        operation: Operation,
        id: RailId,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, Silence> {
        let (method, path) = operation.route();
        let uri = self
            .url
            .below(&path.replace(contract::PAYMENT, &id.to_string()));
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(bearer) = &self.bearer {
            request = request.header(AUTHORIZATION, bearer);
        }
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request.body(Full::new(body)).map_err(|_| Silence::Unmade)
    }
}

/// Reads a response about a payment.
fn answer<A: DeserializeOwned + wire::Answer>(
    id: RailId,
    response: &HttpResponse,
) -> Result<A, Silence> {
    if response.status != StatusCode::OK {
        return Err(Silence::Status(response.status));
    }
    if !response.content_type.as_ref().is_some_and(is_json) {
        return Err(Silence::ContentType);
    }
    // The JSON parser would also accept a list of the fields as an object.
    if !response.body.trim_ascii_start().starts_with(b"{") {
        return Err(Silence::NoObject);
    }
    let answer: A =
        serde_json::from_slice(&response.body).map_err(|error| Silence::Body(error.column()))?;
    if answer.id() == id.to_string() {
        Ok(answer)
    } else {
        Err(Silence::OtherId)
    }
}

/// Whether a content type is JSON, with any parameters.
fn is_json(value: &HeaderValue) -> bool {
    let text = value.to_str().unwrap_or_default();
    let media_type = text.split(';').next().unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case("application/json")
}

#[async_trait]
impl Rail for HttpRail {
    async fn instructions(&self, order: &RailOrder) -> Option<Instructions> {
        let caller = Caller::Partner(&order.partner);
        let asked = self.order::<wire::InstructionsAnswer>(caller, Operation::Instructions, order);
        let answer = self.told(Operation::Instructions, order.id, asked.await)?;
        Some(answer.into())
    }

    async fn advance(&self, order: &RailOrder, attempt: u32) -> Option<RailReport> {
        if attempt <= 1 {
            self.begin(order).await?;
        }
        match self.report(order.id).await? {
            Known::Reported(report) => return Some(report),
            Known::Unknown if attempt > 1 => self.begin(order).await?,
            Known::Unknown => {
                return self.told(Operation::Report, order.id, Err(Silence::Forgotten));
            }
        }
        match self.report(order.id).await? {
            Known::Reported(report) => Some(report),
            Known::Unknown => self.told(Operation::Report, order.id, Err(Silence::Forgotten)),
        }
    }

    async fn cancel(&self, order: &RailOrder) -> Option<CancelReport> {
        let caller = Caller::Partner(&order.partner);
        let asked = self.order::<wire::CancelAnswer>(caller, Operation::Cancel, order);
        let answer = self.told(Operation::Cancel, order.id, asked.await)?;
        Some(answer.into())
    }
}

#[cfg(test)]
mod tests;
