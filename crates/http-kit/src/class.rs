//! Route classes: which callers may use a route.
//!
//! A route is mounted under a layer made here. The layer checks the credential in one fixed order
//! and leaves a proof with the request. The first argument of the handler takes the proof; a
//! handler has no other way to obtain the tenant. A handler mounted in the wrong class fails on its
//! first call and serves no caller.

mod guard;

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::{FromRequestParts, MatchedPath, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use axum::response::{IntoResponse, Response};
use instruments::failpoint::Handler;
use kernel::{Clock, Mode};
use partner_core::key::KeyKind;
use partner_core::ports::{Directory, Throttle};
use partner_core::{Access, Denial, Tenant};
use tower::{Layer, Service};

use crate::client_ip::TrustedProxies;
use crate::credential::KeyLocations;
use crate::error::ApiError;
use crate::request_layer::{Panicked, caught};
use crate::throttle::Limit;
use guard::{Arriving, Guard};

/// Error codes that differ between products.
#[derive(Debug, Clone, Copy)]
pub struct ProductErrorCodes {
    /// 403: a well-formed test key, known or not, on a live process.
    pub test_key_on_live: &'static str,
    /// 403: a well-formed live key, known or not, on a test process.
    pub live_key_on_test: &'static str,
    /// 403: a key of the right mode whose kind does not fit the route.
    pub wrong_kind: &'static str,
    /// 403: a live key on a sandbox-only route.
    pub not_in_live: &'static str,
}

/// The configuration of a [`Door`].
#[derive(Clone)]
pub struct DoorConfig {
    /// The mode of the process.
    pub mode: Mode,
    /// Finds the partner of a key.
    pub directory: Arc<dyn Directory>,
    /// Counts requests.
    pub throttle: Arc<dyn Throttle>,
    /// The proxies whose `X-Forwarded-For` is trusted.
    pub proxies: TrustedProxies,
    /// The product's codes.
    pub wording: ProductErrorCodes,
    /// Limits responses with 401 by client address, and so the guessing of keys. `None` if
    /// throttles are off.
    pub guesses: Option<Limit>,
    /// Decides whether a key has expired.
    pub clock: Arc<dyn Clock>,
    /// Checks that the partner is entitled to the product, on entitled routes.
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

    /// Copies the door with a check for another entitlement.
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

    /// Routes for browsers: a publishable key of a partner entitled to the product, optionally in
    /// the query.
    ///
    /// Handlers take [`Publishable`]. A publishable key is visible in every page, so other sites
    /// can copy it. Requests from foreign pages are counted in a bucket of their own and use up no
    /// capacity of the partner's pages.
    #[must_use]
    pub fn publishable(&self, limit: Option<Limit>, own_page: OwnPage) -> ClassLayer {
        let ClassLayer(mut guard) = self.layer(Class::Publishable, limit);
        guard.own_page = Some(own_page);
        ClassLayer(guard)
    }

    /// Routes of the sandbox only, for a secret key of a partner entitled to the product.
    ///
    /// Handlers take [`Sandbox`].
    #[must_use]
    pub fn sandbox(&self, limit: Option<Limit>) -> ClassLayer {
        self.layer(Class::Sandbox, limit)
    }

    fn layer(&self, class: Class, limit: Option<Limit>) -> ClassLayer {
        ClassLayer(Guard {
            config: Arc::clone(&self.0),
            class,
            limit,
            own_page: None,
        })
    }
}

/// Whether the headers of a request name one of the partner's pages.
pub type OwnPage = Arc<dyn Fn(&Access, &HeaderMap) -> bool + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    AnyKey,
    Secret,
    Entitled,
    Publishable,
    Sandbox,
}

impl Class {
    /// The kind of key that the class takes; `None` means either.
    const fn kind(self) -> Option<KeyKind> {
        match self {
            Self::AnyKey => None,
            Self::Secret | Self::Entitled | Self::Sandbox => Some(KeyKind::Secret),
            Self::Publishable => Some(KeyKind::Publishable),
        }
    }

    /// Where a request of this class may carry its key.
    const fn key_places(self) -> KeyLocations {
        match self {
            Self::AnyKey | Self::Secret | Self::Entitled | Self::Sandbox => KeyLocations::Headers,
            Self::Publishable => KeyLocations::HeadersAndQuery,
        }
    }

    const fn asks_entitlement(self) -> bool {
        match self {
            Self::AnyKey | Self::Secret => false,
            Self::Entitled | Self::Publishable | Self::Sandbox => true,
        }
    }
}

/// The proof that a layer attaches to an admitted request.
#[derive(Debug, Clone)]
struct Proof {
    class: Class,
    access: Arc<Access>,
}

/// The tenant of a request that a class has admitted.
pub(crate) fn tenant(extensions: &Extensions) -> Option<&Tenant> {
    extensions.get::<Proof>().map(|proof| &proof.access.tenant)
}

/// Attached to the response, for the log and the CORS headers.
#[derive(Debug, Clone)]
pub(crate) struct Caller(pub(crate) Arc<Access>);

macro_rules! proofs {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name(Arc<Access>);

        impl $name {
            /// The key, its partner and the partner's entitlements.
            #[must_use]
            pub fn access(&self) -> &Arc<Access> {
                &self.0
            }

            /// The tenant whose rows the call may read and write.
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

/// The layer of one class.
///
/// Mount it with `route_layer`, so that unknown routes and methods never check a key.
#[derive(Debug, Clone)]
pub struct ClassLayer(Guard);

impl<S> Layer<S> for ClassLayer {
    type Service = ClassService<S>;

    fn layer(&self, inner: S) -> ClassService<S> {
        ClassService {
            inner,
            guard: self.0.clone(),
        }
    }
}

/// A route with the checks of its class.
#[derive(Debug, Clone)]
pub struct ClassService<S> {
    inner: S,
    guard: Guard,
}

impl<S> Service<Request> for ClassService<S>
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
                    // Catches a panic here, so that its response has the throttle headers too.
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

/// The handler's name in crash tests.
fn route_of(request: &Request) -> String {
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map_or(request.uri().path(), MatchedPath::as_str);
    format!("{} {path}", request.method())
}

/// The response to a known key that is refused: always 403. The code tells the partner what to
/// request from the operator.
impl From<Denial> for ApiError {
    fn from(denial: Denial) -> Self {
        let (code, message) = match denial {
            Denial::KeyRevoked => ("key_revoked", "This API key has been revoked."),
            Denial::KeyExpired => ("key_expired", "This API key has expired."),
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
