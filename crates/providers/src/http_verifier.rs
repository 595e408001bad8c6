//! A verifier of the operator, called over HTTP: `http:<url>`, with the published contract `verifier-v1`.
//!
//! A late response, a broken connection, a redirect, another status than 200, another content type than JSON, a malformed body and
//! the id of another verification all count as no response. No decision is based on a missing response: the next poll asks again
//! under the same verification id.
//!
//! Polls have limits of their own, so that no other call delays them. The permits for the other calls are divided evenly among
//! partners, so that partners whose calls hang delay no other partner.

mod contract;
mod wire;

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::object::JsonObject;
use gate_core::ports::{VerificationOrder, VerificationStart, Verifier};
use gate_core::verification::{VerificationId, VerificationReport};
use kernel::{Named, UpstreamName};
use partner_core::PartnerId;
use serde::Serialize;

use crate::address::{UpstreamSecret, UpstreamUrl};
use crate::client::Caller;
use crate::contract::Call;
use crate::upstream::{HttpUpstream, NO_BODY, Silence, read_about};

pub use contract::openapi;

pub const TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum length of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

pub struct HttpVerifier {
    name: UpstreamName,
    upstream: HttpUpstream,
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
        let name = url.place();
        let upstream = HttpUpstream::new(url, secret, timeout, MAX_RESPONSE_BYTES)?;
        Ok(Self { name, upstream })
    }

    /// The verifier under another name than that of its URL.
    #[must_use]
    pub fn named(self, name: UpstreamName) -> Self {
        Self { name, ..self }
    }

    /// Calls the verifier, and logs when it starts or stops responding.
    async fn ask<A: wire::Says>(
        &self,
        caller: Caller<'_>,
        call: &Call,
        id: VerificationId,
        body: Option<&(impl Serialize + Sync)>,
    ) -> Option<A::Said> {
        let response = self.call::<A>(caller, call, id, body).await;
        let name = call.id;
        match &response {
            Ok(_) if self.upstream.turns(true) => {
                tracing::info!(operation = name, "The verifier responds again");
            }
            Ok(_) => {}
            Err(error) if self.upstream.turns(false) => {
                tracing::warn!(operation = name, verification.id = %id, error = %error, "The verifier gave no valid response; check the verifier and its URL");
            }
            Err(error) => {
                tracing::debug!(operation = name, verification.id = %id, error = %error, "The verifier still gives no valid response");
            }
        }
        response.ok()
    }

    async fn call<A: wire::Says>(
        &self,
        caller: Caller<'_>,
        call: &Call,
        id: VerificationId,
        body: Option<&(impl Serialize + Sync)>,
    ) -> Result<A::Said, Silence> {
        let path = id.to_string();
        let response = self.upstream.send(caller, call, &path, body).await?;
        let answer: A = read_about("verification", &path, &response)?;
        answer.said(id.mode())
    }
}

impl Named for HttpVerifier {
    fn name(&self) -> UpstreamName {
        self.name.clone()
    }
}

#[async_trait]
impl Verifier for HttpVerifier {
    async fn start(&self, order: &VerificationOrder) -> Option<VerificationStart> {
        let body = wire::Verification::of(order);
        let caller = Caller::Partner(&order.partner);
        self.ask::<wire::StartAnswer>(caller, &contract::START, order.id, Some(&body))
            .await
    }

    async fn submit(
        &self,
        order: &VerificationOrder,
        answers: &JsonObject,
    ) -> Option<VerificationReport> {
        let body = wire::Answers::of(answers)?;
        let caller = Caller::Partner(&order.partner);
        self.ask::<wire::ReportAnswer>(caller, &contract::SUBMIT, order.id, Some(&body))
            .await
    }

    async fn report(&self, order: &VerificationOrder) -> Option<VerificationReport> {
        let caller = Caller::Poll(&order.partner);
        self.ask::<wire::ReportAnswer>(caller, &contract::REPORT, order.id, NO_BODY)
            .await
    }

    fn polls_hang(&self, partner: &PartnerId) -> bool {
        self.upstream.client.polls_hang(partner)
    }
}

#[cfg(test)]
#[path = "http_verifier/tests.rs"]
mod tests;
