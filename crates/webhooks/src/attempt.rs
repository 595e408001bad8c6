//! One attempt: decrypt the body, sign it, post it, and report the outcome.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use instruments::failpoint::around;
use instruments::webhooks::Outcome;
use kernel::{Clock, Entropy, Mode, Timestamp};
use partner_core::events::{Endpoint, event_place, secret_place};
use partner_core::ports::{ClaimedDelivery, ConcludedDelivery};
use partner_core::sealing::Sealer;
use partner_core::webhooks::delivery::AttemptOutcome;
use partner_core::webhooks::fairness::EndpointHealth;
use partner_core::webhooks::schedule::{RetryAdvice, Schedule};
use partner_core::webhooks::signing::{Header, Message, SigningSecret};
use partner_core::webhooks::target::{AllowPrivate, Target};
use tokio::time::Instant;
use tracing::Instrument;

use crate::idle::Origin;
use crate::post::{Poster, Response};

/// An endpoint that accepts a delivery within this time is fast.
const FAST_THRESHOLD: Duration = Duration::from_millis(100);

/// The status of an endpoint that will not come back.
const GONE: u16 = 410;

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

/// The result of an attempt.
struct End {
    outcome: Outcome,
    status: Option<u16>,
    error: Option<String>,
    advice: RetryAdvice,
}

impl End {
    const fn failed(outcome: Outcome, error: String) -> Self {
        Self {
            outcome,
            status: None,
            error: Some(error),
            advice: RetryAdvice::Usual,
        }
    }

    fn answered(response: &Response, now: Timestamp) -> Self {
        let status = response.status;
        let (outcome, error) = match status {
            200..=299 => (Outcome::Delivered, None),
            301 | 302 | 303 | 307 | 308 => {
                let error = format!("answered {status}; redirects are not followed");
                (Outcome::Refused, Some(error))
            }
            _ => (Outcome::Refused, Some(format!("answered {status}"))),
        };
        Self {
            outcome,
            status: Some(status),
            error,
            advice: RetryAdvice::of(status, response.retry_after.as_deref(), now),
        }
    }

    fn is_gone(&self) -> bool {
        self.status == Some(GONE)
    }
}

/// The destination and the secrets of all deliveries that one claim returned for an endpoint.
pub(crate) struct EndpointTarget {
    target: Target,
    origin: Origin,
    /// The newest first.
    secrets: Vec<SigningSecret>,
}

/// A claimed delivery.
pub(crate) struct Delivery {
    pub(crate) claimed: ClaimedDelivery,
    /// The error says why nothing can be sent to the endpoint.
    pub(crate) target: Arc<Result<EndpointTarget, String>>,
    /// The token of its lease.
    pub(crate) token: u64,
}

impl Delivery {
    /// Without an attempt, and due again immediately.
    pub(crate) fn released(&self) -> ConcludedDelivery {
        self.concluded(AttemptOutcome::Released, None, None)
    }

    fn concluded(
        &self,
        outcome: AttemptOutcome,
        response_status: Option<u16>,
        error: Option<String>,
    ) -> ConcludedDelivery {
        ConcludedDelivery {
            tenant: self.claimed.tenant.clone(),
            id: self.claimed.id,
            token: self.token,
            outcome,
            response_status,
            error,
        }
    }
}

impl Attempts {
    /// The destination and the secrets of an endpoint. An error is the operator's to correct: a
    /// secret does not decrypt, or the URL was set under another policy.
    pub(crate) fn target(&self, endpoint: &Endpoint) -> Result<EndpointTarget, String> {
        let target = Target::parse(&endpoint.url, self.mode, self.allow)
            .map_err(|problem| format!("the endpoint's URL cannot be used: {problem}"))?;
        Ok(EndpointTarget {
            origin: Origin::of(&target),
            target,
            secrets: self.secrets(endpoint)?,
        })
    }

    /// The secrets as of the claim. There must be one, and all must decrypt.
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

    /// Makes one attempt. Returns what to record, and the health of the endpoint.
    pub(crate) async fn make(&self, delivery: &Delivery) -> (ConcludedDelivery, EndpointHealth) {
        let claimed = &delivery.claimed;
        let service = claimed.endpoint.service.as_str();
        let number = claimed.attempts.saturating_add(1);
        let began = Instant::now();
        let span = instruments::webhooks::attempt_span(service, number);
        let end = match self.prepare(delivery) {
            Ok((target, headers, body)) => {
                let posting = self.post(target, &headers, &body);
                posting.instrument(span).await
            }
            Err(error) => End::failed(Outcome::Untried, error),
        };
        let took = began.elapsed();
        instruments::webhooks::attempted(service, end.outcome, took);
        if end.is_gone() {
            instruments::webhooks::gone(service);
        }
        let outcome = self.attempt_outcome(claimed, &end);
        log(claimed, &end, outcome);
        let health = match outcome {
            AttemptOutcome::Delivered if took <= FAST_THRESHOLD => EndpointHealth::Fast,
            AttemptOutcome::Delivered => EndpointHealth::Slow,
            AttemptOutcome::RetryAfter(_) | AttemptOutcome::GivenUp | AttemptOutcome::Released => {
                EndpointHealth::Failing
            }
        };
        (delivery.concluded(outcome, end.status, end.error), health)
    }

    fn attempt_outcome(&self, claimed: &ClaimedDelivery, end: &End) -> AttemptOutcome {
        match end.outcome {
            Outcome::Delivered => {
                let lag = self.clock.now().since(claimed.event.created_at);
                instruments::webhooks::delivered(claimed.endpoint.service.as_str(), lag);
                AttemptOutcome::Delivered
            }
            Outcome::Refused
            | Outcome::TimedOut
            | Outcome::Unreachable
            | Outcome::Forbidden
            | Outcome::Untried => match claimed.former {
                // The delivery gets this instant back.
                Some(former) => AttemptOutcome::RetryAfter(former.since(self.clock.now())),
                None => AttemptOutcome::of_failure(
                    claimed.attempts,
                    end.advice,
                    &self.schedule,
                    &*self.entropy,
                ),
            },
        }
    }

    /// One timeout covers everything up to the status.
    async fn post(&self, target: &EndpointTarget, headers: &[Header], body: &Bytes) -> End {
        let posting = self
            .poster
            .post(&target.target, &target.origin, headers, body);
        let posting = around("webhook.post", posting);
        match tokio::time::timeout(self.timeout, posting).await {
            Ok(Ok(response)) => End::answered(&response, self.clock.now()),
            Ok(Err(error)) => End::failed(error.outcome(), error.to_string()),
            Err(_) => {
                let late = format!("no answer within {:?}", self.timeout);
                End::failed(Outcome::TimedOut, late)
            }
        }
    }

    /// The destination, the signed headers and the body.
    fn prepare<'d>(
        &self,
        delivery: &'d Delivery,
    ) -> Result<(&'d EndpointTarget, Vec<Header>, Bytes), String> {
        let claimed = &delivery.claimed;
        let target = delivery.target.as_ref().as_ref().map_err(String::clone)?;
        let place = event_place(&claimed.tenant, &claimed.event.id);
        let body = self
            .sealer
            .open(&place, &claimed.event.body)
            .map_err(|error| format!("the event cannot be read: {error}"))?;
        let message = Message {
            service: claimed.endpoint.service,
            event_id: &claimed.event.id,
            body: &body,
        };
        let mut headers = Vec::from(message.sign(&target.secrets, self.clock.now()));
        let cause = claimed.event.trace_parent;
        headers.extend(cause.map(|cause| ("traceparent", cause.to_string())));
        Ok((target, headers, Bytes::from(body)))
    }

    /// Closes connections that were idle for too long.
    pub(crate) fn close_idle(&self) {
        self.poster.close_idle();
    }
}

/// Logs an attempt, without body, URL and secrets.
fn log(claimed: &ClaimedDelivery, end: &End, outcome: AttemptOutcome) {
    let attempt = claimed.attempts.saturating_add(1);
    let (delivery, event) = (claimed.id, claimed.event.id.as_str());
    let partner = &claimed.tenant.partner;
    let error = end.error.as_deref().unwrap_or_default();
    match outcome {
        AttemptOutcome::Delivered => tracing::debug!(
            delivery.id = %delivery,
            event.id = event,
            partner.id = %partner,
            attempt,
            "Delivered an event"
        ),
        AttemptOutcome::RetryAfter(wait) if end.is_gone() => tracing::warn!(
            delivery.id = %delivery,
            event.id = event,
            partner.id = %partner,
            endpoint.id = %claimed.endpoint.id,
            attempt,
            error,
            retry_after_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            "The endpoint of a delivery is gone. Ask the partner for its new URL"
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
        AttemptOutcome::GivenUp | AttemptOutcome::Released => {
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
