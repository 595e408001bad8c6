//! One attempt: open the body, sign it now, post it, say what came of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use failpoints::{Step, around};
use instruments::webhooks::Outcome;
use kernel::planted::{self, planted};
use kernel::{Clock, Entropy, Mode};
use partner_core::events::{Endpoint, event_place, secret_place};
use partner_core::ports::{Claimed, Concluded};
use partner_core::sealing::Sealer;
use partner_core::webhooks::delivery::Ending;
use partner_core::webhooks::schedule::Schedule;
use partner_core::webhooks::signing::{Header, Message, SigningSecret};
use partner_core::webhooks::target::{AllowPrivate, Target};
use tokio::time::Instant;
use tracing::Instrument;

use crate::post::Poster;

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

impl Attempts {
    /// Makes one attempt at a delivery that was claimed under this token.
    pub(crate) async fn make(&self, claimed: &Claimed, token: u64) -> Concluded {
        let service = claimed.endpoint.service.as_str();
        let number = claimed.attempts.saturating_add(1);
        let began = Instant::now();
        let span = instruments::webhooks::attempt_span(service, number);
        let end = match self.prepare(claimed) {
            Ok((target, headers, body)) => {
                let posting = self.post(&target, &headers, &body);
                posting.instrument(span).await
            }
            Err(error) => End::failed(Outcome::Untried, error),
        };
        instruments::webhooks::attempted(service, end.outcome, began.elapsed());
        let ending = match end.outcome {
            Outcome::Delivered => {
                let lag = self.clock.now().since(claimed.event.created_at);
                instruments::webhooks::delivered(service, lag);
                Ending::Delivered
            }
            Outcome::Refused
            | Outcome::TimedOut
            | Outcome::Unreachable
            | Outcome::Forbidden
            | Outcome::Untried => {
                Ending::of_failure(claimed.attempts, &self.schedule, &*self.entropy)
            }
        };
        note(claimed, &end, ending);
        Concluded {
            tenant: claimed.tenant.clone(),
            id: claimed.id,
            token,
            ending,
            response_status: end.status,
            error: end.error,
        }
    }

    /// The whole attempt up to the status has one deadline.
    async fn post(&self, target: &Target, headers: &[Header], body: &Bytes) -> End {
        let posting = around(Step::WebhookPost, self.poster.post(target, headers, body));
        match tokio::time::timeout(self.timeout, posting).await {
            Ok(Ok(status)) => End::answered(status),
            Ok(Err(fault)) => End::failed(fault.outcome(), fault.to_string()),
            Err(_) => {
                let late = format!("no answer within {:?}", self.timeout);
                End::failed(Outcome::TimedOut, late)
            }
        }
    }

    /// What is sent, and where. Its faults are the operator's: something sealed does not open, or
    /// the address was set under another policy.
    fn prepare(&self, claimed: &Claimed) -> Result<(Target, [Header; 4], Bytes), String> {
        let target = Target::parse(&claimed.endpoint.url, self.mode, self.allow)
            .map_err(|problem| format!("the endpoint's URL cannot be used: {problem}"))?;
        let place = event_place(&claimed.tenant, &claimed.event.id);
        let body = self
            .sealer
            .open(&place, &claimed.event.body)
            .map_err(|fault| format!("the event cannot be read: {fault}"))?;
        let secrets = self.secrets(&claimed.endpoint)?;
        let message = Message {
            service: claimed.endpoint.service,
            event_id: &claimed.event.id,
            body: &body,
        };
        let now = if planted(planted::SIGNED_ONCE) {
            claimed.event.created_at
        } else {
            self.clock.now()
        };
        let headers = message.sign(&secrets, now);
        Ok((target, headers, Bytes::from(body)))
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
}

/// One line for each attempt that failed; the body, the URL and the secrets are in none.
fn note(claimed: &Claimed, end: &End, ending: Ending) {
    let attempt = claimed.attempts.saturating_add(1);
    let (delivery, event) = (claimed.id, claimed.event.id.as_str());
    let partner = &claimed.tenant.partner;
    let error = end.error.as_deref().unwrap_or_default();
    match ending {
        Ending::Delivered => tracing::debug!(
            delivery.id = %delivery,
            event.id = event,
            partner.id = %partner,
            attempt,
            "Delivered an event"
        ),
        Ending::RetryAfter(wait) => tracing::info!(
            delivery.id = %delivery,
            event.id = event,
            partner.id = %partner,
            endpoint.id = %claimed.endpoint.id,
            attempt,
            error,
            retry_after_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            "Failed to deliver an event"
        ),
        Ending::GivenUp | Ending::HandedBack => {
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
