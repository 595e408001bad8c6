//! A rail of the operator, called over HTTP: `http:<url>`, with the published contract `rail-v1`.
//!
//! A late response, a broken connection, a redirect, another status than 200, another content type than JSON, a malformed body and
//! the id of another record all count as no response. No decision is based on a missing response: the next poll asks again under
//! the same record id. A 404 for a report says that the rail does not know the payment, but only with a JSON object as its body.
//!
//! Polls have limits of their own, so that no other call delays them. The permits for the other calls are divided evenly among
//! partners, so that partners whose calls hang delay no other partner.

mod contract;
mod notification;
mod wire;

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::ports::{CancelReport, GivenUp, Rail, RailOrder, RailPoll};
use gate_core::rail::{Instructions, RailAnswer, RailId};
use gate_core::usecases::advance_rails::RAIL_TIMEOUT;
use hyper::StatusCode;
use kernel::{Named, UpstreamName};
use partner_core::PartnerId;
use tokio::time::Instant;

use crate::address::{UpstreamSecret, UpstreamUrl};
use crate::client::{Caller, HttpResponse};
use crate::contract::Call;
use crate::upstream::{Answer, HttpUpstream, NO_BODY, Silence, read_about, read_unknown};

pub use contract::openapi;

/// Timeout of one call. A poll makes at most three calls within [`RAIL_TIMEOUT`](gate_core::usecases::advance_rails::RAIL_TIMEOUT).
pub const TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum length of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 128 * 1024;
const FORGOTTEN: &str = "the rail does not know the payment that it has just accepted";

pub struct HttpRail {
    name: UpstreamName,
    upstream: HttpUpstream,
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
        let name = url.place();
        let upstream = HttpUpstream::new(url, secret, timeout, MAX_RESPONSE_BYTES)?;
        Ok(Self { name, upstream })
    }

    /// The rail under another name than that of its URL.
    #[must_use]
    pub fn named(self, name: UpstreamName) -> Self {
        Self { name, ..self }
    }

    /// Logs when the rail starts or stops responding, and returns its response.
    fn told<T>(&self, call: &Call, id: RailId, response: Result<T, Silence>) -> Option<T> {
        let name = call.id;
        match &response {
            Ok(_) if self.upstream.turns(true) => {
                tracing::info!(operation = name, "The rail responds again");
            }
            Ok(_) => {}
            Err(error) if self.upstream.turns(false) => {
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
        let caller = Caller::Poll(&order.partner);
        let begun = self.order::<wire::BeginAnswer>(caller, &contract::BEGIN, order);
        match begun.await {
            Ok(_) => Some(()),
            Err(error) => self.told(&contract::BEGIN, order.id, Err(error)),
        }
    }

    /// Reports a payment. An unknown one says nothing about whether the rail responds.
    async fn report(&self, order: &RailOrder) -> RailAnswer {
        match self.known(order).await {
            Ok(RailAnswer::Unknown) => RailAnswer::Unknown,
            known => {
                let told = self.told(&contract::REPORT, order.id, known);
                told.unwrap_or(RailAnswer::Silent)
            }
        }
    }

    async fn known(&self, order: &RailOrder) -> Result<RailAnswer, Silence> {
        let (caller, id) = (Caller::Poll(&order.partner), order.id);
        let path = id.to_string();
        let sent = self
            .upstream
            .send(caller, &contract::REPORT, &path, NO_BODY);
        let response = sent.await?;
        if response.status == StatusCode::NOT_FOUND {
            read_unknown("payment", &path, &response)?;
            return Ok(RailAnswer::Unknown);
        }
        let report: wire::Report = answer(id, &response)?;
        if let Some(reference) = report.reference() {
            tracing::info!(rail.id = %id, rail.reference = reference, "The rail reports a settled payment");
        }
        Ok(RailAnswer::Reported(report.into()))
    }

    /// Sends the whole order in a call.
    async fn order<A: Answer>(
        &self,
        caller: Caller<'_>,
        call: &Call,
        order: &RailOrder,
    ) -> Result<A, Silence> {
        let (id, body) = (order.id.to_string(), wire::Payment::of(order));
        let response = self.upstream.send(caller, call, &id, Some(&body)).await?;
        answer(order.id, &response)
    }
}

/// Reads a response about a payment.
fn answer<A: Answer>(id: RailId, response: &HttpResponse) -> Result<A, Silence> {
    read_about("payment", &id.to_string(), response)
}

impl Named for HttpRail {
    fn name(&self) -> UpstreamName {
        self.name.clone()
    }
}

#[async_trait]
impl Rail for HttpRail {
    async fn instructions(&self, order: &RailOrder) -> Option<Instructions> {
        let caller = Caller::Partner(&order.partner);
        let asked = self.order::<wire::InstructionsAnswer>(caller, &contract::INSTRUCTIONS, order);
        let answer = self.told(&contract::INSTRUCTIONS, order.id, asked.await)?;
        Some(answer.into())
    }

    async fn advance(&self, order: &RailOrder, poll: RailPoll) -> RailAnswer {
        let polled_at = Instant::now();
        if poll.attempt > 1 || !poll.may_begin {
            match self.report(order).await {
                RailAnswer::Unknown if poll.may_begin => {}
                answer => return answer,
            }
        }
        // A process that was stopped meanwhile may have lost its lease. Another one begins the payment.
        if polled_at.elapsed() + TIMEOUT > RAIL_TIMEOUT {
            return RailAnswer::Silent;
        }
        if self.begin(order).await.is_none() {
            return RailAnswer::Silent;
        }
        match self.report(order).await {
            RailAnswer::Unknown => {
                let forgotten = Err::<(), _>(Silence::Contradiction(FORGOTTEN));
                self.told(&contract::REPORT, order.id, forgotten);
                RailAnswer::Accepted
            }
            RailAnswer::Silent => RailAnswer::Accepted,
            answer => answer,
        }
    }

    async fn watch(&self, order: &RailOrder) -> RailAnswer {
        self.report(order).await
    }

    async fn cancel(&self, order: &RailOrder, given_up: GivenUp) -> Option<CancelReport> {
        let caller = match given_up {
            GivenUp::ByCustomer => Caller::Partner(&order.partner),
            GivenUp::AtDeadline => Caller::Poll(&order.partner),
        };
        let asked = self.order::<wire::CancelAnswer>(caller, &contract::CANCEL, order);
        let answer = self.told(&contract::CANCEL, order.id, asked.await)?;
        Some(answer.into())
    }

    fn polls_hang(&self, partner: &PartnerId) -> bool {
        self.upstream.client.polls_hang(partner)
    }
}

#[cfg(test)]
mod tests;
