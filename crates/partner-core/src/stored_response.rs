//! What a write was answered with, kept for its repeats to the byte.
//!
//! The first answer under an idempotency key is stored, sealed, in the transaction of its effect.
//! A repeat within the time that keys are kept gets it unchanged, whatever its body says.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kernel::{Entropy, StoreError, Timestamp};

use crate::idempotency::{Fingerprint, Scope, counts};
use crate::ports::{InFlight, ResponseReads, ResponseTx, Ticket};
use crate::sealing::{SealBroken, Sealed, Sealer};

/// Status, request id and body of an answer, final.
#[derive(Clone, PartialEq, Eq)]
pub struct RenderedResponse {
    /// The HTTP status.
    pub status: u16,
    /// The request id it was first given under.
    pub request_id: String,
    /// The body's bytes.
    pub body: Vec<u8>,
}

impl fmt::Debug for RenderedResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            status, request_id, ..
        } = self;
        write!(f, "Answer({status}, {request_id})")
    }
}

impl RenderedResponse {
    /// One line with status and request id, then the body.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{} {}\n", self.status, self.request_id).into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let (head, body) = bytes.split_at_checked(end)?;
        let (status, request_id) = std::str::from_utf8(head).ok()?.split_once(' ')?;
        Some(Self {
            status: status.parse().ok()?,
            request_id: request_id.to_owned(),
            body: body.get(1..)?.to_vec(),
        })
    }
}

/// Makes the final answer from what a use case has done; the wire shape is the caller's.
pub type Render<'r, T> = dyn Fn(&T) -> Result<RenderedResponse, RenderError> + Send + Sync + 'r;

/// An answer could not be written out.
#[derive(Debug, thiserror::Error)]
#[error("an answer could not be written out")]
pub struct RenderError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// A write that carries an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentRequest {
    /// What the key is unique within.
    pub scope: Scope,
    /// The fingerprint of what is asked for.
    pub fingerprint: Fingerprint,
}

/// What is stored of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// The fingerprint of the first request.
    pub fingerprint: Fingerprint,
    /// The answer, sealed for its scope.
    pub answer: Sealed,
    /// When it was given.
    pub created_at: Timestamp,
    /// From when on it is no longer given again.
    pub expires_at: Timestamp,
}

/// The response to a write that may be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdempotentResponse {
    /// The write was done now.
    First(RenderedResponse),
    /// The write was done before.
    Replayed {
        /// The first response.
        response: RenderedResponse,
        /// Whether this request asks for the same as the first.
        same_request: bool,
    },
}

impl IdempotentResponse {
    /// The response, first or replayed.
    #[must_use]
    pub fn into_rendered(self) -> RenderedResponse {
        match self {
            Self::First(response) | Self::Replayed { response, .. } => response,
        }
    }
}

/// Why an answer cannot be given or kept; its key stays free.
#[derive(Debug, thiserror::Error)]
pub enum ResponseStoreError {
    /// The stored answer does not open.
    #[error("a stored answer does not open")]
    Sealed(#[from] SealBroken),
    /// The stored answer opens and is none.
    #[error("a stored answer is damaged")]
    Damaged,
    /// The answer could not be written out.
    #[error(transparent)]
    Unwritable(#[from] RenderError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Keeps answers and gives them again.
#[derive(Clone)]
pub struct ResponseStore {
    /// Detects concurrent twins early.
    pub in_flight: Arc<dyn InFlight>,
    /// For the look before a transaction is opened.
    pub reads: Arc<dyn ResponseReads>,
    /// Seals what is kept.
    pub sealer: Arc<Sealer>,
    /// For sealing.
    pub entropy: Arc<dyn Entropy>,
    /// How long new answers are kept.
    pub ttl: Duration,
}

impl fmt::Debug for ResponseStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answers")
    }
}

/// How a write that may be a repeat begins.
#[derive(Debug)]
pub enum Begin<P> {
    /// It is a repeat: the first response.
    Replay(IdempotentResponse),
    /// A twin is in flight.
    InProgress,
    /// It is to be done. `P` keeps twins out until it is dropped.
    Proceed(P),
}

impl ResponseStore {
    /// Keeps twins out, and looks for a stored response. Without a request there is nothing to do.
    ///
    /// # Errors
    /// [`ResponseStoreError`].
    pub async fn begin(
        &self,
        request: Option<&IdempotentRequest>,
    ) -> Result<Begin<Option<Ticket>>, ResponseStoreError> {
        let Some(IdempotentRequest { scope, .. }) = request else {
            return Ok(Begin::Proceed(None));
        };
        let Some(ticket) = self.in_flight.enter(scope).await else {
            return Ok(Begin::InProgress);
        };
        let seen = self.reads.answer_get(scope).await?;
        Ok(match self.replay(request, seen.value.as_ref(), seen.at)? {
            Some(response) => Begin::Replay(response),
            None => Begin::Proceed(Some(ticket)),
        })
    }

    /// The first response in a scope, for a repeat of which only the scope is known.
    ///
    /// # Errors
    /// [`ResponseStoreError`].
    pub async fn first(
        &self,
        scope: Scope,
    ) -> Result<Option<IdempotentResponse>, ResponseStoreError> {
        let seen = self.reads.answer_get(&scope).await?;
        let request = IdempotentRequest {
            scope,
            fingerprint: Fingerprint::of(b""),
        };
        self.replay(Some(&request), seen.value.as_ref(), seen.at)
    }

    /// Locks the scope of a write, before anything else is locked.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn lock(
        &self,
        tx: &mut dyn ResponseTx,
        request: Option<&IdempotentRequest>,
    ) -> Result<Option<StoredResponse>, StoreError> {
        match request {
            Some(request) => tx.answer_lock(&request.scope).await,
            None => Ok(None),
        }
    }

    /// The first response, if one is stored that has not expired.
    ///
    /// # Errors
    /// [`ResponseStoreError`] if the stored response cannot be read.
    pub fn replay(
        &self,
        request: Option<&IdempotentRequest>,
        stored: Option<&StoredResponse>,
        now: Timestamp,
    ) -> Result<Option<IdempotentResponse>, ResponseStoreError> {
        let stored = stored.filter(|stored| counts(stored.expires_at, now));
        let Some((request, stored)) = request.zip(stored) else {
            return Ok(None);
        };
        let same_request = stored.fingerprint == request.fingerprint;
        if !same_request {
            tracing::warn!(
                http.route = request.scope.route,
                partner.id = %request.scope.tenant.partner,
                "A request with a used idempotency key asks for something else; it gets the first answer"
            );
        }
        Ok(Some(IdempotentResponse::Replayed {
            response: open(&self.sealer, &request.scope, &stored.answer)?,
            same_request,
        }))
    }

    /// Stores a response in the transaction of its effect, in place of one that has expired.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if a twin was first.
    pub async fn store(
        &self,
        tx: &mut dyn ResponseTx,
        request: Option<&IdempotentRequest>,
        expired: Option<&StoredResponse>,
        response: &RenderedResponse,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Some(request) = request else {
            return Ok(());
        };
        let place = place(&request.scope);
        let entropy = self.entropy.as_ref();
        let stored = StoredResponse {
            fingerprint: request.fingerprint,
            answer: self.sealer.seal(&place, &response.to_bytes(), entropy)?,
            created_at: now,
            expires_at: now.plus(self.ttl),
        };
        let expired = expired.map(|expired| expired.created_at);
        tx.answer_put(&request.scope, &stored, expired).await?.won()
    }
}

/// Opens an answer that was kept in a scope.
///
/// # Errors
/// [`ResponseStoreError`] where it does not open, or is none.
pub fn open(
    sealer: &Sealer,
    scope: &Scope,
    kept: &Sealed,
) -> Result<RenderedResponse, ResponseStoreError> {
    sealer.can_open(kept).map_err(StoreError::from)?;
    let bytes = sealer.open(&place(scope), kept)?;
    RenderedResponse::from_bytes(&bytes).ok_or(ResponseStoreError::Damaged)
}

/// The place an answer is sealed for.
#[must_use]
pub fn place(scope: &Scope) -> String {
    let Scope { tenant, route, key } = scope;
    format!(
        "answers/{}/{}/{route}/{}",
        tenant.mode,
        tenant.partner,
        key.as_str()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: idempotency.gate-replay
    #[test]
    fn an_answer_reads_back_to_the_byte() {
        for body in [&b""[..], b"{}", b"{\"a\":\"1\\n\"}\n\n\x00\xff"] {
            let answer = RenderedResponse {
                status: 201,
                request_id: "req_01HF7YAT00408104G208104081".to_owned(),
                body: body.to_vec(),
            };
            assert_eq!(
                RenderedResponse::from_bytes(&answer.to_bytes()),
                Some(answer)
            );
        }
        for damaged in [&b""[..], b"201 req", b"req_1\n{}", b"201\n", b"x y\n"] {
            assert_eq!(RenderedResponse::from_bytes(damaged), None, "{damaged:?}");
        }
    }

    #[test]
    fn a_body_is_in_no_debug_text() {
        let answer = RenderedResponse {
            status: 201,
            request_id: "req_1".to_owned(),
            body: b"gsec_".to_vec(),
        };
        assert_eq!(format!("{answer:?}"), "Answer(201, req_1)");
    }
}
