//! The responses of writes, stored so that a repeat gets the same bytes.
//!
//! The first response under an idempotency key is stored, sealed, in the transaction of its effect. Until it expires,
//! every repeat gets it unchanged, whatever the body of the repeat.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kernel::{Entropy, StoreError, StoreResult, Timestamp};

use crate::Tenant;
use crate::idempotency::{Fingerprint, OperationKey, Scope, counts};
use crate::ports::{InFlight, ResponseReads, ResponseTx, Ticket};
use crate::sealing::{SealBroken, Sealed, Sealer};

/// The final bytes of a response. Only the HTTP layer reads them.
#[derive(Clone, PartialEq, Eq)]
pub struct RenderedResponse(pub Vec<u8>);

/// A response may contain a client secret, so `Debug` omits the bytes.
impl fmt::Debug for RenderedResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RenderedResponse({} bytes)", self.0.len())
    }
}

/// Whether a stored response has the form that a replay needs. Only the HTTP layer reads this form.
pub type ResponseCheck = fn(&RenderedResponse) -> bool;

/// Renders the final response from the result of a use case.
pub type Render<'r, T> = dyn Fn(&T) -> Result<RenderedResponse, RenderError> + Send + Sync + 'r;

/// A response could not be rendered.
#[derive(Debug, thiserror::Error)]
#[error("the response could not be rendered")]
pub struct RenderError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// A write that carries an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentRequest {
    /// The scope of the key.
    pub scope: Scope,
    /// The fingerprint of the request.
    pub fingerprint: Fingerprint,
}

impl IdempotentRequest {
    /// The request of a tenant under a key.
    #[must_use]
    pub fn new(who: &Tenant, key: OperationKey, fingerprint: Fingerprint) -> Self {
        let scope = Scope::of_request(who.clone(), key);
        Self { scope, fingerprint }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// The fingerprint of the first request, under a key of the installation.
    pub fingerprint: Fingerprint,
    /// The response, sealed for its scope.
    pub sealed: Sealed,
    /// When it was stored.
    pub created_at: Timestamp,
    /// When it expires. It is replayed while `now < expires_at`.
    pub expires_at: Timestamp,
}

/// The response to a write that may be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdempotentResponse {
    /// The response of this write.
    First(RenderedResponse),
    /// The response of an earlier write.
    Replayed {
        /// The first response.
        response: RenderedResponse,
        /// Whether this request equals the first one.
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

/// Why a response cannot be replayed or stored. The key stays unused.
#[derive(Debug, thiserror::Error)]
pub enum ResponseStoreError {
    /// A request with the same key is in progress.
    #[error("a request with the same idempotency key is in progress")]
    InProgress,
    /// The stored response cannot be opened.
    #[error("a stored response cannot be decrypted")]
    Sealed(#[from] SealBroken),
    /// The response could not be rendered.
    #[error(transparent)]
    Unwritable(#[from] RenderError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Stores responses and replays them.
#[derive(Clone)]
pub struct ResponseStore {
    /// Detects concurrent twins early.
    pub in_flight: Arc<dyn InFlight>,
    /// The reads before a transaction is opened.
    pub reads: Arc<dyn ResponseReads>,
    /// Seals the stored responses.
    pub sealer: Arc<Sealer>,
    /// Randomness for sealing.
    pub entropy: Arc<dyn Entropy>,
    /// The time from storing a response to its expiry.
    pub ttl: Duration,
}

/// The result of `begin`.
pub enum Begin {
    /// A response is stored: this is a repeat.
    Replay(IdempotentResponse),
    /// The write may run. The ticket of its request rejects twins until it is dropped.
    Proceed(Option<Ticket>),
}

impl ResponseStore {
    /// Rejects concurrent twins and looks for a stored response. Without a request it does neither.
    ///
    /// # Errors
    /// [`ResponseStoreError`] if a twin is in flight, the store fails or the stored response cannot be opened.
    pub async fn begin(
        &self,
        request: Option<&IdempotentRequest>,
    ) -> Result<Begin, ResponseStoreError> {
        let Some(IdempotentRequest { scope, .. }) = request else {
            return Ok(Begin::Proceed(None));
        };
        let Some(ticket) = self.in_flight.enter(scope).await else {
            return Err(ResponseStoreError::InProgress);
        };
        let seen = self.reads.response_get(scope).await?;
        Ok(match self.replay(request, seen.value.as_ref(), seen.at)? {
            Some(response) => Begin::Replay(response),
            None => Begin::Proceed(Some(ticket)),
        })
    }

    /// The stored response in a scope, for a repeat of which only the scope is known.
    ///
    /// # Errors
    /// [`ResponseStoreError`] if the store fails or the stored response cannot be opened.
    pub async fn first(
        &self,
        scope: Scope,
    ) -> Result<Option<IdempotentResponse>, ResponseStoreError> {
        let seen = self.reads.response_get(&scope).await?;
        let request = IdempotentRequest {
            scope,
            fingerprint: Fingerprint::of(b""),
        };
        self.replay(Some(&request), seen.value.as_ref(), seen.at)
    }

    /// Locks the scope of a write. This must be the first lock of the transaction.
    pub async fn lock(
        &self,
        tx: &mut dyn ResponseTx,
        request: Option<&IdempotentRequest>,
    ) -> StoreResult<Option<StoredResponse>> {
        match request {
            Some(request) => tx.response_lock(&request.scope).await,
            None => Ok(None),
        }
    }

    /// The replay of a stored response; `None` if none is stored or it has expired.
    ///
    /// # Errors
    /// [`ResponseStoreError`] if the stored response cannot be opened.
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
        // Earlier versions stored the plain fingerprint. Their records expire within the time that keys are kept.
        let same_request = stored.fingerprint == keyed(&self.sealer, request.fingerprint)
            || stored.fingerprint == request.fingerprint;
        Ok(Some(IdempotentResponse::Replayed {
            response: open(&self.sealer, &request.scope, &stored.sealed)?,
            same_request,
        }))
    }

    /// Stores a response in the transaction of its effect. Replaces an expired one.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if a twin stored its response first.
    pub async fn store(
        &self,
        tx: &mut dyn ResponseTx,
        request: Option<&IdempotentRequest>,
        expired: Option<&StoredResponse>,
        response: &RenderedResponse,
        now: Timestamp,
    ) -> StoreResult<()> {
        let Some(request) = request else {
            return Ok(());
        };
        let place = place(&request.scope);
        let entropy = self.entropy.as_ref();
        let stored = StoredResponse {
            fingerprint: keyed(&self.sealer, request.fingerprint),
            sealed: self.sealer.seal(&place, &response.0, entropy)?,
            created_at: now,
            expires_at: now.plus(self.ttl),
        };
        let expired = expired.map(|expired| expired.created_at);
        tx.response_put(&request.scope, &stored, expired)
            .await?
            .won()
    }
}

/// Opens a response that was stored in a scope.
///
/// # Errors
/// [`ResponseStoreError`] if it cannot be opened.
pub fn open(
    sealer: &Sealer,
    scope: &Scope,
    kept: &Sealed,
) -> Result<RenderedResponse, ResponseStoreError> {
    sealer.can_open(kept).map_err(StoreError::from)?;
    Ok(RenderedResponse(sealer.open(&place(scope), kept)?))
}

/// The place that a response is sealed for.
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

/// The fingerprint in the form in which it is stored. Requests contain personal data, which a reader of the database could guess
/// from a plain hash.
fn keyed(sealer: &Sealer, request: Fingerprint) -> Fingerprint {
    let mark = sealer.mark("requests with idempotency keys", &hex::encode(request.0));
    Fingerprint(mark.0)
}

#[cfg(test)]
mod tests {
    use kernel::Mode;

    use super::*;
    use crate::PartnerId;
    use crate::idempotency::IdempotencyKey;
    use crate::sealing::MasterKey;

    /// Sealed by the version that introduced stored responses, under the master key of 32 ones.
    const STORED: &str = "01070707070707070707070707070707070707070707070707b38182eeecbd8b23525856b29d50442ea51fc2cc795202ef2035cae3753e6a928474fcff8ff6b8a3fd4f7d89a0b89a07c5fbceeafe727906d97e4a33c2e7fccad64e257832f3a163a9d0f5c8548715";

    // rule: idempotency.gate-replay, idempotency.gate-sealed
    #[test]
    fn stored_response_of_an_older_version_opens_to_the_byte() {
        let sealer = Sealer::new(&MasterKey::new([1; 32]));
        let scope = Scope {
            tenant: Tenant {
                partner: PartnerId::parse("acme").unwrap(),
                mode: Mode::Test,
            },
            route: "POST /v1/gate_sessions".to_owned(),
            key: IdempotencyKey::parse(b"order-1").unwrap(),
        };
        let sealed = STORED.as_bytes().chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).unwrap();
            u8::from_str_radix(pair, 16).unwrap()
        });
        let response = open(&sealer, &scope, &Sealed(sealed.collect())).unwrap();
        assert_eq!(
            response.0,
            b"201 req_01HF7YAT00408104G208104081\n{\"id\":\"gs_test_1\",\"n\":1.10}\n"
        );
    }

    // rule: gate.payment.payout
    #[test]
    fn stored_fingerprint_depends_on_the_key_of_the_installation() {
        let [first, second] = [[1; 32], [2; 32]].map(|key| Sealer::new(&MasterKey::new(key)));
        let [request, other] = [b"iban", b"uk  "].map(|body| Fingerprint::of(body));
        assert_eq!(keyed(&first, request), keyed(&first, request));
        assert_ne!(keyed(&first, request), keyed(&first, other));
        assert_ne!(keyed(&first, request), keyed(&second, request));
        assert_ne!(keyed(&first, request), request);
    }

    #[test]
    fn debug_omits_the_bytes() {
        let response = RenderedResponse(b"gsec_".to_vec());
        assert_eq!(format!("{response:?}"), "RenderedResponse(5 bytes)");
    }
}
