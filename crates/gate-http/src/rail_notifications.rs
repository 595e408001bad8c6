//! Notifications of the operator's rails: `POST /v1/rail_notifications`.
//!
//! A notification names a payment whose state may have changed, and says no more. It needs no key but a signature with the rail's
//! secret, and its response is the same for every id, so that it tells nothing about payments. The route is in no class, because it
//! belongs to no partner; the contract `rail-v1` describes it, because rails call it.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use gate_core::rail::RailId;
use gate_core::usecases::wake_rail::WakeRail;
use http_kit::{ApiError, log_id, parse_json, read_body, refuse_encoded};
use instruments::upstream;
use kernel::{Clock, Mode, UpstreamName};
use partner_core::webhooks::notification::NotificationSecret;
use serde::Deserialize;

use crate::{codes, errors};

/// The path of the route.
const PATH: &str = "/v1/rail_notifications";
/// The header with the signature.
const SIGNATURE: &str = "rail-signature";
/// The largest notification, in bytes. A notification contains one id.
const MAX_BYTES: usize = 4096;

/// A rail that signs notifications, with its secret. A notification counts only for the payments that this rail holds.
#[derive(Debug, Clone)]
pub struct Signer {
    pub rail: UpstreamName,
    pub secret: Arc<NotificationSecret>,
}

/// What the route needs.
#[derive(Clone)]
pub(crate) struct Notified {
    pub(crate) mode: Mode,
    pub(crate) waking: WakeRail,
    pub(crate) signers: Arc<[Signer]>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The body of a notification. Other fields are ignored.
#[derive(Deserialize)]
struct RailNotification {
    id: String,
}

pub(crate) fn route(notified: Notified) -> Router {
    Router::new().route(PATH, post(notify)).with_state(notified)
}

async fn notify(
    State(notified): State<Notified>,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let (head, body) = request.into_parts();
    let body = read_body(body).await?;
    if body.len() > MAX_BYTES {
        return Err(ApiError::new(
            codes::BODY_TOO_LARGE,
            "The notification is larger than 4 KiB.",
        ));
    }
    let signature = signature(&head.headers)?;
    let signers = notified.signers_of(signature, &body)?;
    refuse_encoded(&head.headers)?;
    let RailNotification { id } = parse_json(&body)?;
    let id = RailId::parse_any(&id).ok_or_else(|| {
        ApiError::invalid_request(
            "`id`: expected the id of a payment, as the rail was called with it.",
        )
    })?;
    log_id(id);
    let waking = notified.waking.wake(notified.mode, id, &signers);
    let waking = waking.await.map_err(errors::gate_error)?;
    upstream::rail_notified(waking.as_str());
    Ok(StatusCode::ACCEPTED)
}

impl Notified {
    /// The rails that may have signed the body: those whose secret fits.
    fn signers_of(&self, signature: &str, body: &[u8]) -> Result<Vec<UpstreamName>, ApiError> {
        let now = self.clock.now();
        let mut fitting = Vec::new();
        let mut refusal = None;
        for signer in self.signers.iter() {
            match signer.secret.check(signature, body, now) {
                Ok(()) => fitting.push(signer.rail.clone()),
                Err(unproven) => refusal = refusal.or(Some(unproven)),
            }
        }
        match refusal {
            Some(unproven) if fitting.is_empty() => Err(ApiError::new(
                codes::UNAUTHORIZED,
                format!("`Rail-Signature` is refused: {unproven}."),
            )),
            Some(_) | None => Ok(fitting),
        }
    }
}

/// The only signature of a request.
fn signature(headers: &HeaderMap) -> Result<&str, ApiError> {
    let mut values = headers.get_all(SIGNATURE).iter();
    let text = match (values.next(), values.next()) {
        (Some(only), None) => only.to_str().ok(),
        _ => None,
    };
    text.ok_or_else(|| {
        ApiError::new(
            codes::UNAUTHORIZED,
            "The header `Rail-Signature` is required here, once.",
        )
    })
}
