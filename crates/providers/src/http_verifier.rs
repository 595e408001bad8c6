//! A verifier of the operator, called over HTTP: `http:<url>`, with the published contract `verifier-v1`.
//!
//! A late response, a broken connection, a redirect, another status than 200, another content type than JSON, a malformed body and
//! the id of another verification all count as no response. No decision is based on a missing response: the next poll asks again
//! under the same verification id.
//!
//! Polls have limits of their own, so that no other call delays them. At most half of the other calls are of one partner, so that a
//! partner whose calls hang delays no other partner.

mod contract;
mod wire;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use gate_core::object::JsonObject;
use gate_core::ports::{VerificationOrder, VerificationStart, Verifier};
use gate_core::verification::{VerificationId, VerificationReport};
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Request, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::address::{UpstreamSecret, UpstreamUrl};
use crate::client::{CallError, Caller, HttpClient, HttpResponse};
use contract::Operation;

pub use contract::openapi;

/// Timeout of one call.
pub const TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum length of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// A verifier at a URL.
pub struct HttpVerifier {
    client: HttpClient,
    url: UpstreamUrl,
    bearer: Option<HeaderValue>,
    timeout: Duration,
    /// Whether the last call got a valid response.
    answering: AtomicBool,
}

impl std::fmt::Debug for HttpVerifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HttpVerifier")
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
    // The text of the error is not shown, because it may repeat what the verifier says about the user.
    #[error("the response body does not match the contract, in column {0}")]
    Body(usize),
    #[error("the response has the id of another verification")]
    OtherId,
    #[error(transparent)]
    Unsaid(#[from] wire::Unsaid),
}

impl HttpVerifier {
    /// A verifier at this URL. Each call carries this secret.
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

    /// Calls the verifier, and logs when it starts or stops responding.
    async fn ask<A>(
        &self,
        caller: Caller<'_>,
        operation: Operation,
        id: VerificationId,
        body: Option<&(impl Serialize + Sync)>,
    ) -> Option<A::Said>
    where
        A: DeserializeOwned + wire::Answer,
    {
        let response = self.call::<A>(caller, operation, id, body).await;
        let name = operation.id();
        match &response {
            Ok(_) if !self.answering.swap(true, Ordering::Relaxed) => {
                tracing::info!(operation = name, "The verifier responds again");
            }
            Ok(_) => {}
            Err(error) if self.answering.swap(false, Ordering::Relaxed) => {
                tracing::warn!(operation = name, verification.id = %id, error = %error, "The verifier gave no valid response; check the verifier and its URL");
            }
            Err(error) => {
                tracing::debug!(operation = name, verification.id = %id, error = %error, "The verifier still gives no valid response");
            }
        }
        response.ok()
    }

    async fn call<A>(
        &self,
        caller: Caller<'_>,
        operation: Operation,
        id: VerificationId,
        body: Option<&(impl Serialize + Sync)>,
    ) -> Result<A::Said, Silence>
    where
        A: DeserializeOwned + wire::Answer,
    {
        let request = self.request(operation, id, body)?;
        let response = self.client.send(caller, request, self.timeout).await?;
        let answer: A = answer(id, &response)?;
        Ok(answer.said(id.mode())?)
    }

    fn request(
        &self,
        operation: Operation,
        id: VerificationId,
        body: Option<&impl Serialize>,
    ) -> Result<Request<Full<Bytes>>, Silence> {
        let (method, path) = operation.route();
        let path = path.replace(contract::ID, &id.to_string());
        let mut request = Request::builder().method(method).uri(self.url.below(&path));
        if let Some(bearer) = &self.bearer {
            request = request.header(AUTHORIZATION, bearer);
        }
        let body = match body {
            Some(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                Bytes::from(serde_json::to_vec(body).map_err(|_| Silence::Unmade)?)
            }
            None => Bytes::new(),
        };
        request.body(Full::new(body)).map_err(|_| Silence::Unmade)
    }
}

/// Parses a response about this verification.
fn answer<A: DeserializeOwned + wire::Answer>(
    id: VerificationId,
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
    if answer.id() != id.to_string() {
        return Err(Silence::OtherId);
    }
    Ok(answer)
}

/// Whether a content type is JSON, with any parameters.
fn is_json(content_type: &HeaderValue) -> bool {
    let text = content_type.to_str().unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// For a call without a request body.
const NO_BODY: Option<&()> = None;

#[async_trait]
impl Verifier for HttpVerifier {
    async fn start(&self, order: &VerificationOrder) -> Option<VerificationStart> {
        let body = wire::Verification::of(order);
        let caller = Caller::Partner(&order.partner);
        self.ask::<wire::StartAnswer>(caller, Operation::Start, order.id, Some(&body))
            .await
    }

    async fn submit(
        &self,
        order: &VerificationOrder,
        answers: &JsonObject,
    ) -> Option<VerificationReport> {
        let body = wire::Answers::of(answers)?;
        let caller = Caller::Partner(&order.partner);
        self.ask::<wire::ReportAnswer>(caller, Operation::Submit, order.id, Some(&body))
            .await
    }

    async fn report(&self, order: &VerificationOrder) -> Option<VerificationReport> {
        self.ask::<wire::ReportAnswer>(Caller::Poll, Operation::Report, order.id, NO_BODY)
            .await
    }
}

#[cfg(test)]
#[path = "http_verifier/tests.rs"]
mod tests;
