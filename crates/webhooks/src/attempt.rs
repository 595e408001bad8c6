//! One attempt: open the body, sign it now, post it, say what came of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use instruments::failpoint::around;
use instruments::webhooks::Outcome;
use kernel::{Clock, Entropy, Mode};
use partner_core::events::{Endpoint, event_place, secret_place};
use partner_core::ports::ClaimedDelivery;
use partner_core::sealing::Sealer;
use partner_core::webhooks::delivery::AttemptOutcome;
use partner_core::webhooks::schedule::Schedule;
use partner_core::webhooks::signing::{Header, Message, SigningSecret};
use partner_core::webhooks::target::{AllowPrivate, Target};
use tokio::time::Instant;
use tracing::Instrument;

use crate::idle::Origin;
use crate::lanes::InFlightDelivery;
use crate::post::Poster;
use crate::slots::EndpointHealth;

/// An endpoint that answers within this long is quick.
const FAST_THRESHOLD: Duration = Duration::from_millis(100);

/// Makes attempts.
pub(crate) struct Attempts {
    pub(crate) poster: Poster,
    pub(crate) mode: Mode,
    pub(crate) allow: AllowPrivate,
    pub(crate) sealer: Arc<Sealer>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) schedule: Schedule,
    pub(crate) timeout: Duration,
}

/// How an attempt ended.
struct End {
    outcome: Outcome,
    status: Option<u16>,
    error: Option<String>,
}

impl End {
    const fn failed(outcome: Outcome, error: String) -> Self {
        Self {
            outcome,
            status: None,
            error: Some(error),
        }
    }

    fn answered(status: u16) -> Self {
        let (outcome, error) = match status {
            200..=299 => (Outcome::Delivered, None),
            _ => (Outcome::Refused, Some(format!("answered {status}"))),
        };
        Self {
            outcome,
            status: Some(status),
            error,
        }
    }
}

/// What came of an attempt.
#[derive(Debug)]
pub(crate) struct AttemptReport {
    pub(crate) ending: AttemptOutcome,
    pub(crate) status: Option<u16>,
    pub(crate) error: Option<String>,
}

impl AttemptReport {
    /// No attempt was concluded.
    pub(crate) const HANDED_BACK: Self = Self {
        ending: AttemptOutcome::HandedBack,
        status: None,
        error: None,
    };
}

/// What goes for all deliveries that were claimed for an endpoint at once.
pub(crate) struct EndpointTarget {
    target: Target,
    origin: Origin,
    /// The newest first.
    secrets: Vec<SigningSecret>,
}

impl Attempts {
    /// Reads where to send, and with which secrets. Its faults are the operator's: something sealed
    /// does not open, or the address was set under another policy.
    pub(crate) fn terms(&self, endpoint: &Endpoint) -> Result<EndpointTarget, String> {
        let target = Target::parse(&endpoint.url, self.mode, self.allow)
            .map_err(|problem| format!("the endpoint's URL cannot be used: {problem}"))?;
        Ok(EndpointTarget {
            origin: Origin::of(&target),
            target,
            secrets: self.secrets(endpoint)?,
        })
    }

    /// The secrets as of the claim, a moment ago; there must be one, and each must open.
    fn secrets(&self, endpoint: &Endpoint) -> Result<Vec<SigningSecret>, String> {
        let place = secret_place(endpoint.id);
        let secrets = endpoint
            .secrets
            .iter()
            .map(|secret| {
                let text = self.sealer.open(&place, &secret.sealed).ok()?;
                let text = zeroize::Zeroizing::new(String::from_utf8(text).ok()?);
                SigningSecret::parse(&text)
            })
            .collect::<Option<Vec<SigningSecret>>>()
            .ok_or("a signing secret cannot be read")?;
        if secrets.is_empty() {
            return Err("the endpoint has no signing secret".to_owned());
        }
        Ok(secrets)
    }

    /// Makes one attempt at a delivery, and says how the endpoint took it.
    pub(crate) async fn make(&self, held: &InFlightDelivery) -> (AttemptReport, EndpointHealth) {
        let claimed = &held.claimed;
        let service = claimed.endpoint.service.as_str();
        let number = claimed.attempts.saturating_add(1);
        let began = Instant::now();
        let span = instruments::webhooks::attempt_span(service, number);
        let end = match self.prepare(held) {
            Ok((terms, headers, body)) => {
                let posting = self.post(terms, &headers, &body);
                posting.instrument(span).await
            }
            Err(error) => End::failed(Outcome::Untried, error),
        };
        let took = began.elapsed();
        instruments::webhooks::attempted(service, end.outcome, took);
        let ending = self.ending(claimed, end.outcome);
        note(claimed, &end, ending);
        let manner = match ending {
            AttemptOutcome::Delivered if took <= FAST_THRESHOLD => EndpointHealth::Quick,
            AttemptOutcome::Delivered => EndpointHealth::Slow,
            AttemptOutcome::RetryAfter(_)
            | AttemptOutcome::GivenUp
            | AttemptOutcome::HandedBack => EndpointHealth::Failed,
        };
        let made = AttemptReport {
            ending,
            status: end.status,
            error: end.error,
        };
        (made, manner)
    }

    fn ending(&self, claimed: &ClaimedDelivery, outcome: Outcome) -> AttemptOutcome {
        match outcome {
            Outcome::Delivered => {
                let lag = self.clock.now().since(claimed.event.created_at);
                instruments::webhooks::delivered(claimed.endpoint.service.as_str(), lag);
                AttemptOutcome::Delivered
            }
            Outcome::Refused
            | Outcome::TimedOut
            | Outcome::Unreachable
            | Outcome::Forbidden
            | Outcome::Untried => {
                AttemptOutcome::of_failure(claimed.attempts, &self.schedule, &*self.entropy)
            }
        }
    }

    /// The whole attempt up to the status has one deadline.
    async fn post(&self, terms: &EndpointTarget, headers: &[Header], body: &Bytes) -> End {
        let posting = self
            .poster
            .post(&terms.target, &terms.origin, headers, body);
        let posting = around("webhook.post", posting);
        match tokio::time::timeout(self.timeout, posting).await {
            Ok(Ok(status)) => End::answered(status),
            Ok(Err(fault)) => End::failed(fault.outcome(), fault.to_string()),
            Err(_) => {
                let late = format!("no answer within {:?}", self.timeout);
                End::failed(Outcome::TimedOut, late)
            }
        }
    }

    /// What is sent now, and where.
    fn prepare<'h>(
        &self,
        held: &'h InFlightDelivery,
    ) -> Result<(&'h EndpointTarget, [Header; 4], Bytes), String> {
        let claimed = &held.claimed;
        let terms = held.terms.as_ref().as_ref().map_err(String::clone)?;
        let place = event_place(&claimed.tenant, &claimed.event.id);
        let body = self
            .sealer
            .open(&place, &claimed.event.body)
            .map_err(|fault| format!("the event cannot be read: {fault}"))?;
        let message = Message {
            service: claimed.endpoint.service,
            event_id: &claimed.event.id,
            body: &body,
        };
        let headers = message.sign(&terms.secrets, self.clock.now());
        Ok((terms, headers, Bytes::from(body)))
    }

    /// Closes connections that have waited too long.
    pub(crate) fn tidy(&self) {
        self.poster.tidy();
    }
}

/// One line for each attempt that failed; the body, the URL and the secrets are in none.
fn note(claimed: &ClaimedDelivery, end: &End, ending: AttemptOutcome) {
    let attempt = claimed.attempts.saturating_add(1);
    let (delivery, event) = (claimed.id, claimed.event.id.as_str());
    let partner = &claimed.tenant.partner;
    let error = end.error.as_deref().unwrap_or_default();
    match ending {
        AttemptOutcome::Delivered => tracing::debug!(
            delivery.id = %delivery,
            event.id = event,
            partner.id = %partner,
            attempt,
            "Delivered an event"
        ),
        AttemptOutcome::RetryAfter(wait) => tracing::info!(
            delivery.id = %delivery,
            event.id = event,
            partner.id = %partner,
            endpoint.id = %claimed.endpoint.id,
            attempt,
            error,
            retry_after_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            "Failed to deliver an event"
        ),
        AttemptOutcome::GivenUp | AttemptOutcome::HandedBack => {
            instruments::webhooks::gave_up(claimed.endpoint.service.as_str());
            tracing::warn!(
                delivery.id = %delivery,
                event.id = event,
                partner.id = %partner,
                endpoint.id = %claimed.endpoint.id,
                attempt,
                error,
                "Gave up delivering an event"
            );
        }
    }
}
