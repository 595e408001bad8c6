//! Route classes: who may call a route, checked before its handler and proved to it.
//!
//! A route is mounted under one of the layers made here. The layer judges the credential in one
//! fixed order and leaves a proof; the handler's first argument takes the proof, and there is no
//! other way to learn the tenant. A handler mounted in another class than it was written for
//! fails on its first call instead of serving strangers.

use std::convert::Infallible;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::{FromRequestParts, MatchedPath, Request};
use axum::http::Extensions;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use failpoints::Handler;
use kernel::Mode;
use partner_core::key::{KeyKind, PresentedKey};
use partner_core::ports::{Directory, Throttle};
use partner_core::throttle::{Bucket, Verdict};
use partner_core::{Access, Denial, Tenant};
use tower::{Layer, Service};

use crate::client_ip::{Peer, TrustedProxies};
use crate::credential::{self, Places};
use crate::error::ApiError;
use crate::outer::{Panicked, answers_are_logged, caught};
use crate::throttle::{Limit, Whose, rate_limited};

/// The codes in which products differ.
#[derive(Debug, Clone, Copy)]
pub struct Wording {
    /// 403: a well-formed test key, known or not, on a live process.
    pub test_key_on_live: &'static str,
    /// 403: a well-formed live key, known or not, on a test process.
    pub live_key_on_test: &'static str,
    /// 403: a key of the right mode whose kind does not fit the route.
    pub wrong_kind: &'static str,
    /// 403: a live key on a route of the sandbox alone.
    pub not_in_live: &'static str,
}

/// Everything a door needs to judge a caller.
#[derive(Clone)]
pub struct DoorConfig {
    /// The mode of the process.
    pub mode: Mode,
    /// Who the keys belong to.
    pub directory: Arc<dyn Directory>,
    /// Counts requests.
    pub throttle: Arc<dyn Throttle>,
    /// Whose `X-Forwarded-For` is believed.
    pub proxies: TrustedProxies,
    /// The product's codes.
    pub wording: Wording,
    /// What answers of 401 count against, by client address, so that guessing keys is limited
    /// too. `None` where throttles are off.
    pub guesses: Option<Limit>,
    /// Whether the partner is entitled to the product, for the routes that ask.
    pub entitled: fn(&Access) -> Result<(), Denial>,
}

impl fmt::Debug for DoorConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DoorConfig")
            .field("mode", &self.mode)
            .field("wording", &self.wording)
            .field("guesses", &self.guesses)
            .finish_non_exhaustive()
    }
}

/// Makes the layers of one product's routes.
#[derive(Debug, Clone)]
pub struct Door(Arc<DoorConfig>);

impl Door {
    /// A door for one product.
    #[must_use]
    pub fn new(config: DoorConfig) -> Self {
        Self(Arc::new(config))
    }

    /// The same door for routes that ask for another entitlement.
    #[must_use]
    pub fn asking(&self, entitled: fn(&Access) -> Result<(), Denial>) -> Self {
        let config = DoorConfig::clone(&self.0);
        Self::new(DoorConfig { entitled, ..config })
    }

    /// Routes that take either kind of key; their handlers take [`AnyKey`].
    #[must_use]
    pub fn any_key(&self, limit: Option<Limit>) -> ClassLayer {
        self.layer(Class::AnyKey, limit)
    }

    /// Routes that take a secret key; their handlers take [`Secret`].
    #[must_use]
    pub fn secret(&self, limit: Option<Limit>) -> ClassLayer {
        self.layer(Class::Secret, limit)
    }

    /// Routes that take a secret key of a partner entitled to the product; their handlers take
    /// [`Entitled`].
    #[must_use]
    pub fn entitled(&self, limit: Option<Limit>) -> ClassLayer {
        self.layer(Class::Entitled, limit)
    }

    /// Routes for browsers: they take a publishable key, perhaps from the query, of a partner
    /// entitled to the product; their handlers take [`Publishable`].
    #[must_use]
    pub fn publishable(&self, limit: Option<Limit>) -> ClassLayer {
        self.layer(Class::Publishable, limit)
    }

    /// Routes of the sandbox alone, for a secret key of a partner entitled to the product; their
    /// handlers take [`Sandbox`].
    #[must_use]
    pub fn sandbox(&self, limit: Option<Limit>) -> ClassLayer {
        self.layer(Class::Sandbox, limit)
    }

    fn layer(&self, class: Class, limit: Option<Limit>) -> ClassLayer {
        ClassLayer(Guard {
            config: Arc::clone(&self.0),
            class,
            limit,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    AnyKey,
    Secret,
    Entitled,
    Publishable,
    Sandbox,
}

impl Class {
    /// The kind of key it takes; `None`: either.
    const fn kind(self) -> Option<KeyKind> {
        match self {
            Self::AnyKey => None,
            Self::Secret | Self::Entitled | Self::Sandbox => Some(KeyKind::Secret),
            Self::Publishable => Some(KeyKind::Publishable),
        }
    }

    /// Whether the key may stand in the query.
    const fn key_places(self) -> Places {
        match self {
            Self::AnyKey | Self::Secret | Self::Entitled | Self::Sandbox => Places::Headers,
            Self::Publishable => Places::HeadersAndQuery,
        }
    }

    const fn asks_entitlement(self) -> bool {
        match self {
            Self::AnyKey | Self::Secret => false,
            Self::Entitled | Self::Publishable | Self::Sandbox => true,
        }
    }
}

/// What a layer leaves with a request it has admitted.
#[derive(Debug, Clone)]
struct Proof {
    class: Class,
    access: Arc<Access>,
}

/// Whose call a layer within a class sees.
pub(crate) fn tenant(extensions: &Extensions) -> Option<&Tenant> {
    extensions.get::<Proof>().map(|proof| &proof.access.tenant)
}

/// Left with the answer, for the log and for what is told to browsers.
#[derive(Debug, Clone)]
pub(crate) struct Caller(pub(crate) Arc<Access>);

macro_rules! proofs {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name(Arc<Access>);

        impl $name {
            /// The key, its partner and what the partner is entitled to.
            #[must_use]
            pub fn access(&self) -> &Arc<Access> {
                &self.0
            }

            /// Whose rows the call may see.
            #[must_use]
            pub fn tenant(&self) -> &Tenant {
                &self.0.tenant
            }
        }

        impl<S: Send + Sync> FromRequestParts<S> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
                match parts.extensions.get::<Proof>() {
                    Some(proof) if proof.class == Class::$name => Ok(Self(Arc::clone(&proof.access))),
                    _ => Err(ApiError::internal(concat!(
                        "a handler that takes ", stringify!($name), " is mounted in another class"
                    ))),
                }
            }
        }
    )*};
}

proofs! {
    /// Proof of a good key of either kind.
    AnyKey,
    /// Proof of a good secret key.
    Secret,
    /// Proof of a good secret key whose partner is entitled to the product.
    Entitled,
    /// Proof of a good publishable key whose partner is entitled to the product.
    Publishable,
    /// Proof of a good secret key of the sandbox whose partner is entitled to the product.
    Sandbox,
}

/// The layer of one class; mount it with `route_layer`, so that unknown routes and methods
/// never look at a key.
#[derive(Debug, Clone)]
pub struct ClassLayer(Guard);

impl<S> Layer<S> for ClassLayer {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded {
            inner,
            guard: self.0.clone(),
        }
    }
}

/// A route behind its class.
#[derive(Debug, Clone)]
pub struct Guarded<S> {
    inner: S,
    guard: Guard,
}

impl<S> Service<Request> for Guarded<S>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let guard = self.guard.clone();
        let mut inner = self.inner.clone();
        Box::pin(async move {
            let caller = Arriving::of(&request, &guard);
            let (standing, judged) = guard.judge(&caller).await;
            let mut response = match judged {
                Err(refusal) => {
                    let mut response = refusal.error.into_response();
                    if let Some(access) = refusal.key {
                        guard.name(access, &mut response);
                    }
                    response
                }
                Ok(access) => {
                    request.extensions_mut().insert(Proof {
                        class: guard.class,
                        access: Arc::clone(&access),
                    });
                    // A panic is caught here, so that its answer too says where the caller stands.
                    let handler = Handler::of(|| route_of(&request));
                    let answering = async move { handler.answers(inner.call(request)).await };
                    let answered = caught(answering).await;
                    let mut response = match answered {
                        Ok(Ok(response)) => response,
                        Err(panic) => ApiError::internal(Panicked::from(panic)).into_response(),
                    };
                    guard.name(access, &mut response);
                    response
                }
            };
            if let Some((limit, verdict)) = standing {
                limit.write(&verdict, response.headers_mut());
            }
            Ok(response)
        })
    }
}

/// What a crash test calls the handler behind a route.
fn route_of(request: &Request) -> String {
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map_or(request.uri().path(), MatchedPath::as_str);
    format!("{} {path}", request.method())
}

/// What is known of a caller before anything is asked.
struct Arriving {
    key: Result<PresentedKey, ApiError>,
    address: IpAddr,
}

impl Arriving {
    fn of(request: &Request, guard: &Guard) -> Self {
        let peer = request.extensions().get::<Peer>();
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
        let (query, headers) = (request.uri().query(), request.headers());
        Self {
            key: credential::read(query, headers, guard.class.key_places()),
            address: guard.config.proxies.client_of(peer, headers),
        }
    }
}

/// Where the caller stands with the limit that was asked last.
type Standing = Option<(Limit, Verdict)>;

/// Why a caller is refused, and whose key it was if that is known.
struct Refusal {
    error: ApiError,
    key: Option<Arc<Access>>,
}

#[derive(Clone)]
struct Guard {
    config: Arc<DoorConfig>,
    class: Class,
    limit: Option<Limit>,
}

impl Guard {
    /// Says whose key it was, to the log, and to what tells browsers who may read the answer.
    fn name(&self, access: Arc<Access>, response: &mut Response) {
        if self.class == Class::Publishable || answers_are_logged() {
            response.extensions_mut().insert(Caller(access));
        }
    }

    /// The order of the checks: a limit by address, the key, a limit by credential.
    async fn judge(&self, caller: &Arriving) -> (Standing, Result<Arc<Access>, Refusal>) {
        let limit = self.limit.as_ref();
        if let Some(limit) = limit.filter(|limit| limit.whose() == Whose::Client) {
            let verdict = self.take(limit, caller.address.to_string()).await;
            if !verdict.admitted() {
                let refused = Refusal {
                    error: rate_limited(limit, &verdict),
                    key: None,
                };
                return (Some((limit.clone(), verdict)), Err(refused));
            }
            let judged = self.recognise(&caller.key).await;
            return (Some((limit.clone(), verdict)), judged);
        }
        match self.recognise(&caller.key).await {
            Ok(access) => {
                let Some(limit) = limit else {
                    return (None, Ok(access));
                };
                let verdict = self.take(limit, access.key.id.to_string()).await;
                let judged = if verdict.admitted() {
                    Ok(access)
                } else {
                    Err(Refusal {
                        error: rate_limited(limit, &verdict),
                        key: Some(access),
                    })
                };
                (Some((limit.clone(), verdict)), judged)
            }
            Err(refusal) if refusal.error.status() == 401 => {
                self.count_guess(caller.address, refusal.error).await
            }
            Err(refusal) => {
                let Some(limit) = limit else {
                    return (None, Err(refusal));
                };
                let who = match &refusal.key {
                    Some(access) => access.key.id.to_string(),
                    None => caller.address.to_string(),
                };
                let bucket = bucket(limit, who);
                let verdict = self.config.throttle.peek(&bucket, limit.tiers()).await;
                (Some((limit.clone(), verdict)), Err(refusal))
            }
        }
    }

    /// An answer of 401 counts against the address, and is a 429 once that is full.
    async fn count_guess(
        &self,
        address: IpAddr,
        error: ApiError,
    ) -> (Standing, Result<Arc<Access>, Refusal>) {
        let stranger = |error| Err(Refusal { error, key: None });
        let Some(limit) = &self.config.guesses else {
            return (None, stranger(error));
        };
        let verdict = self.take(limit, address.to_string()).await;
        let error = if verdict.admitted() {
            error
        } else {
            rate_limited(limit, &verdict)
        };
        (Some((limit.clone(), verdict)), stranger(error))
    }

    /// Mode, known key, revocation, kind of key, organisation, entitlement: in this order.
    async fn recognise(
        &self,
        key: &Result<PresentedKey, ApiError>,
    ) -> Result<Arc<Access>, Refusal> {
        let stranger = |error| Refusal { error, key: None };
        let key = key.as_ref().map_err(|error| stranger(error.clone()))?;
        let DoorConfig { mode, wording, .. } = &*self.config;
        if key.mode != *mode {
            return Err(stranger(wrong_mode(*mode, wording)));
        }
        let found = self.config.directory.access_find(*mode, &key.hash).await;
        let access = found
            .map_err(|fault| stranger(fault.into()))?
            .ok_or_else(|| stranger(credential::unknown()))?;
        match self.permit(&access) {
            Ok(()) => Ok(access),
            Err(error) => Err(Refusal {
                error,
                key: Some(access),
            }),
        }
    }

    fn permit(&self, access: &Access) -> Result<(), ApiError> {
        access.key_good()?;
        self.permit_key(access.key.kind)?;
        access.organization_active()?;
        if self.class.asks_entitlement() {
            (self.config.entitled)(access)?;
        }
        Ok(())
    }

    /// Does the key fit the route?
    fn permit_key(&self, kind: KeyKind) -> Result<(), ApiError> {
        let DoorConfig { mode, wording, .. } = &*self.config;
        let wrong_kind = |message| Err(ApiError::forbidden(wording.wrong_kind, message));
        match self.class.kind() {
            Some(KeyKind::Secret) if kind == KeyKind::Publishable => {
                wrong_kind("This route takes a secret key, not a publishable one.")
            }
            Some(KeyKind::Publishable) if kind == KeyKind::Secret => wrong_kind(
                "This route takes a publishable key. A secret key must never reach a browser.",
            ),
            _ if self.class == Class::Sandbox && *mode == Mode::Live => Err(ApiError::forbidden(
                wording.not_in_live,
                "This route exists in the sandbox only; a live key cannot use it.",
            )),
            _ => Ok(()),
        }
    }

    async fn take(&self, limit: &Limit, who: String) -> Verdict {
        let bucket = bucket(limit, who);
        self.config.throttle.take(&bucket, limit.tiers()).await
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("class", &self.class)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

fn bucket(limit: &Limit, who: String) -> Bucket {
    Bucket {
        group: limit.group(),
        who,
    }
}

fn wrong_mode(process: Mode, wording: &Wording) -> ApiError {
    match process {
        Mode::Live => ApiError::forbidden(
            wording.test_key_on_live,
            "This is the live environment; a test key works on the sandbox host only.",
        ),
        Mode::Test => ApiError::forbidden(
            wording.live_key_on_test,
            "This is the sandbox; a live key works on the live host only.",
        ),
    }
}

/// How the refusal of a known key reads from outside. Always 403; the code says what to ask
/// the operator for.
impl From<Denial> for ApiError {
    fn from(denial: Denial) -> Self {
        let (code, message) = match denial {
            Denial::KeyRevoked => ("key_revoked", "This API key has been revoked."),
            Denial::OrganizationSuspended => {
                ("organization_suspended", "The organization is suspended.")
            }
            Denial::PoolsNotEnabled => (
                "pools_not_enabled",
                "Pools are not enabled for this partner.",
            ),
            Denial::PoolAccessSuspended => {
                ("pool_access_suspended", "Access to pools is suspended.")
            }
            Denial::KycNotApproved => ("kyc_not_approved", "The partner's KYC is not approved."),
            Denial::PoolNotAllowed => (
                "pool_not_allowed",
                "This pool is not among the partner's pools.",
            ),
            Denial::GateNotEnabled => (
                "gate_not_enabled",
                "The gate is not enabled for this partner.",
            ),
            Denial::RailsNotEnabled => (
                "rails_not_enabled",
                "Signed quotes and rails are not enabled for this partner.",
            ),
        };
        Self::forbidden(code, message)
    }
}

#[cfg(test)]
mod tests;
