//! Route classes: which callers may use a route.
//!
//! A route is mounted under a layer made here. The layer checks the credential in one fixed order
//! and leaves a proof with the request. The first argument of the handler takes the proof; a
//! handler has no other way to obtain the tenant. A handler mounted in the wrong class fails on its
//! first call and serves no caller.

mod guard;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use instruments::failpoint::Handler;
use kernel::{Clock, Mode, Timestamp};
use partner_core::key::{KeyId, KeyKind};
use partner_core::ports::{Directory, Throttle};
use partner_core::throttle::Tier;
use partner_core::{Access, Denial, Profile, Tenant};

use crate::client_ip::TrustedProxies;
use crate::codes;
use crate::error::ApiError;
use crate::error_code::ErrorCode;
use crate::openapi::{EMBED_TOKEN, PUBLISHABLE_KEY, SECRET_KEY};
use crate::request_layer::caught;
use crate::throttle::Limit;
use guard::{Arriving, Guard};

/// Error codes that differ between products.
#[derive(Debug, Clone, Copy)]
pub struct ProductErrorCodes {
    /// 403: a well-formed test key, known or not, on a live process.
    pub test_key_on_live: &'static ErrorCode,
    /// 403: a well-formed live key, known or not, on a test process.
    pub live_key_on_test: &'static ErrorCode,
    /// 403: a key of the right mode whose kind does not fit the route.
    pub wrong_kind: &'static ErrorCode,
    /// 403: a live key on a sandbox-only route.
    pub not_in_live: &'static ErrorCode,
}

/// Checks that a partner is entitled to a route.
pub type Entitlement<P> = fn(&P) -> Result<(), ApiError>;

/// A partner's own tier in place of a route's tiers, if the partner has one.
pub type OwnTier<P> = fn(&P) -> Option<Tier>;

#[derive(Clone)]
pub struct DoorConfig<P> {
    pub mode: Mode,
    /// Finds the partner of a key.
    pub directory: Arc<dyn Directory<P>>,
    pub throttle: Arc<dyn Throttle>,
    /// The proxies whose `X-Forwarded-For` is trusted.
    pub proxies: TrustedProxies,
    pub error_codes: ProductErrorCodes,
    /// Limits responses with 401 by client address, against the guessing of keys. `None` if
    /// throttles are off.
    pub failed_auth_limit: Option<Limit>,
    /// Decides whether a key has expired.
    pub clock: Arc<dyn Clock>,
    /// Whether the partner is entitled to the product, for the routes that ask.
    pub entitled: Entitlement<P>,
}

/// Makes the layers of one product's routes.
#[derive(Clone)]
pub struct Door<P>(Arc<DoorConfig<P>>);

impl<P: Profile> Door<P> {
    #[must_use]
    pub fn new(config: DoorConfig<P>) -> Self {
        Self(Arc::new(config))
    }

    /// Copies the door with a check for another entitlement.
    #[must_use]
    pub fn asking(&self, entitled: Entitlement<P>) -> Self {
        let config = DoorConfig::clone(&self.0);
        Self::new(DoorConfig { entitled, ..config })
    }

    /// The layer of a class that needs a key alone.
    #[must_use]
    pub fn of(&self, class: Class, limit: Option<Limit>) -> ClassLayer<P> {
        ClassLayer(Guard {
            config: Arc::clone(&self.0),
            class,
            limit,
            own_page: None,
            own_tier: None,
            read_token: None,
        })
    }

    /// Routes for browsers: a publishable key of a partner entitled to the product, optionally in
    /// the query.
    ///
    /// Handlers take [`Publishable`]. A publishable key is visible in every page, so other sites
    /// can copy it. Requests from foreign pages are counted in a bucket of their own and use up no
    /// capacity of the partner's pages.
    #[must_use]
    pub fn publishable(&self, limit: Option<Limit>, own_page: OwnPage<P>) -> ClassLayer<P> {
        let ClassLayer(mut guard) = self.of(Class::Publishable, limit);
        guard.own_page = Some(own_page);
        ClassLayer(guard)
    }

    /// Routes of the widget: a token that was issued for a publishable key of a partner entitled to the
    /// product.
    ///
    /// Handlers take [`Embedded`]. The key is checked with every call, so a token ends with its key. The
    /// limit counts refusals too.
    #[must_use]
    pub fn embedded(&self, limit: Option<Limit>, read_token: ReadToken) -> ClassLayer<P> {
        let ClassLayer(mut guard) = self.of(Class::Embedded, limit);
        guard.read_token = Some(read_token);
        ClassLayer(guard)
    }
}

/// Whether the headers of a request name a page of the partner's own.
pub type OwnPage<P> = Arc<dyn Fn(&Access<P>, &HeaderMap) -> bool + Send + Sync>;

/// A token that its reader has accepted.
#[derive(Debug, Clone)]
pub struct PresentedToken {
    /// The token's id. Limits by credential count the requests of one token.
    pub id: String,
    /// The session of the token. A ceiling may count the requests of all its tokens together.
    pub session: Option<String>,
    /// The partner and mode that the token was issued for.
    pub tenant: Tenant,
    /// The key that the token was issued for.
    pub key: KeyId,
    /// What else the token says. An admitted request carries it among its extensions.
    pub claims: Extensions,
}

/// Reads a token at an instant; `None` if it is not genuine or has expired.
pub type ReadToken = Arc<dyn Fn(&str, Timestamp) -> Option<PresentedToken> + Send + Sync>;

/// Which callers an operation takes. Handlers take the proof of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A key of either kind.
    AnyKey,
    /// A secret key.
    Secret,
    /// A secret key of a partner entitled to the product.
    Entitled,
    /// A publishable key of a partner entitled to the product; see [`Door::publishable`].
    Publishable,
    /// A token that was issued for a publishable key; see [`Door::embedded`].
    Embedded,
    /// A secret key of the sandbox, of a partner entitled to the product.
    Sandbox,
}

impl Class {
    /// The security schemes of a published operation: one of them is enough.
    pub(crate) const fn schemes(self) -> &'static [&'static str] {
        match self {
            Self::AnyKey => &[PUBLISHABLE_KEY, SECRET_KEY],
            Self::Secret | Self::Entitled | Self::Sandbox => &[SECRET_KEY],
            Self::Publishable => &[PUBLISHABLE_KEY],
            Self::Embedded => &[EMBED_TOKEN],
        }
    }

    /// The kind of key that the class takes; `None` means either.
    const fn kind(self) -> Option<KeyKind> {
        match self {
            Self::AnyKey => None,
            Self::Secret | Self::Entitled | Self::Sandbox => Some(KeyKind::Secret),
            Self::Publishable | Self::Embedded => Some(KeyKind::Publishable),
        }
    }

    const fn asks_entitlement(self) -> bool {
        match self {
            Self::AnyKey | Self::Secret => false,
            Self::Entitled | Self::Publishable | Self::Embedded | Self::Sandbox => true,
        }
    }
}

impl AsRef<Self> for Class {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// The proof that a layer attaches to an admitted request.
#[derive(Debug, Clone)]
struct Proof<P> {
    class: Class,
    access: Arc<Access<P>>,
}

/// The tenant of a request that a class has admitted.
pub(crate) fn tenant(extensions: &Extensions) -> Option<&Tenant> {
    extensions.get::<Caller>().map(|caller| &caller.tenant)
}

/// The caller, without the product's profile. The request carries it to the layers within a class, the response to the log.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) tenant: Tenant,
    pub(crate) key: KeyId,
}

impl Caller {
    fn of<P>(access: &Access<P>) -> Self {
        Self {
            tenant: access.tenant.clone(),
            key: access.key.id,
        }
    }
}

/// The caller of a route for browsers. The response carries it to the CORS layer.
#[derive(Debug, Clone)]
pub(crate) struct BrowserCaller<P>(pub(crate) Arc<Access<P>>);

macro_rules! proofs {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name<P>(Arc<Access<P>>);

        impl<P> $name<P> {
            /// The key, its partner and what the partner is entitled to.
            #[must_use]
            pub fn access(&self) -> &Arc<Access<P>> {
                &self.0
            }

            /// The tenant whose rows the call may read and write.
            #[must_use]
            pub fn tenant(&self) -> &Tenant {
                &self.0.tenant
            }
        }

        impl<S: Send + Sync, P: Profile> FromRequestParts<S> for $name<P> {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
                match parts.extensions.get::<Proof<P>>() {
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
    /// Proof of a token whose publishable key is good and whose partner is entitled to the product.
    Embedded,
    /// Proof of a good secret key of the sandbox whose partner is entitled to the product.
    Sandbox,
}

#[derive(Clone)]
pub struct ClassLayer<P>(Guard<P>);

impl<P: Profile> ClassLayer<P> {
    /// The same layer, in which a partner's own tier replaces the limit's tiers.
    #[must_use]
    pub fn with_own_tier(self, own_tier: OwnTier<P>) -> Self {
        let own_tier = Some(own_tier);
        Self(Guard { own_tier, ..self.0 })
    }

    /// Puts the layer around routes. A request for an unknown route or method never checks a key.
    pub fn around<S: Clone + Send + Sync + 'static>(self, routes: Router<S>) -> Router<S> {
        routes.route_layer(from_fn_with_state(self.0, answer::<P>))
    }
}

/// Checks a request, and if it is admitted, responds as its handler does.
async fn answer<P: Profile>(
    State(guard): State<Guard<P>>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = Arriving::of(&request, &guard);
    let claims = caller.claims();
    let (consulted, checked) = guard.check(&caller).await;
    let mut response = match checked {
        Err(refusal) => {
            let mut response = refusal.error.into_response();
            if let Some(access) = refusal.key {
                guard.name(access, &mut response);
            }
            response
        }
        Ok(access) => {
            if let Some(claims) = claims {
                request.extensions_mut().extend(claims);
            }
            request.extensions_mut().insert(Caller::of(&access));
            request.extensions_mut().insert(Proof {
                class: guard.class,
                access: Arc::clone(&access),
            });
            // Catches a panic here, so that its response has the throttle headers too.
            let handler = Handler::of(|| route_of(&request));
            let answering = async move { handler.answers(next.run(request)).await };
            let mut response = caught(answering).await;
            guard.name(access, &mut response);
            response
        }
    };
    if let Some((limit, decision)) = consulted {
        limit.write(&decision, response.headers_mut());
    }
    response
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
            Denial::KeyRevoked => (codes::KEY_REVOKED, "This API key has been revoked."),
            Denial::KeyExpired => (codes::KEY_EXPIRED, "This API key has expired."),
            Denial::OrganizationSuspended => (
                codes::ORGANIZATION_SUSPENDED,
                "The organization is suspended.",
            ),
        };
        Self::new(code, message)
    }
}

#[cfg(test)]
mod tests;
