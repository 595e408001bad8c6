//! Checks a caller before its handler runs: a limit by address, the key, a limit by key.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::Request;
use axum::http::{Extensions, HeaderMap};
use axum::response::Response;
use kernel::{Mode, Timestamp};
use partner_core::key::{KeyKind, PresentedKey};
use partner_core::throttle::{Bucket, ClientNetwork, Counted, ThrottleDecision, Tier};
use partner_core::{Access, Profile};

use super::{
    BrowserCaller, Caller, Class, DoorConfig, OwnPage, OwnTier, PresentedToken, ProductErrorCodes,
    ReadToken,
};
use crate::client_ip::Peer;
use crate::credential;
use crate::error::ApiError;
use crate::request_layer::answers_are_logged;
use crate::throttle::{Limit, LimitBy, refuse_over_limit};

/// The credential of a request, as it was read.
pub(super) enum Credential {
    Key(PresentedKey),
    Token(PresentedToken),
}

/// Facts about a request before the limits and the directory are consulted.
pub(super) struct Arriving<'r> {
    pub(super) credential: Result<Credential, ApiError>,
    pub(super) network: ClientNetwork,
    pub(super) headers: &'r HeaderMap,
}

impl<'r> Arriving<'r> {
    pub(super) fn of<P>(request: &'r Request, guard: &Guard<P>) -> Self {
        let peer = request.extensions().get::<Peer>();
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
        let (query, headers) = (request.uri().query(), request.headers());
        let credential = match &guard.read_token {
            // Without a reader no token is genuine.
            None if guard.class == Class::Embedded => Err(credential::dead_token()),
            None => credential::read(query, headers, guard.class).map(Credential::Key),
            Some(read_token) => credential::read_token(query, headers).and_then(|text| {
                let token = read_token(text, guard.config.clock.now());
                token
                    .map(Credential::Token)
                    .ok_or_else(credential::dead_token)
            }),
        };
        Self {
            credential,
            network: ClientNetwork::of(guard.config.proxies.client_of(peer, headers)),
            headers,
        }
    }
}

impl Arriving<'_> {
    /// What the token says beside its partner and key.
    pub(super) fn claims(&self) -> Option<Extensions> {
        match &self.credential {
            Ok(Credential::Token(token)) => Some(token.claims.clone()),
            Ok(Credential::Key(_)) | Err(_) => None,
        }
    }

    /// Whose requests a limit by credential counts: those of the token, otherwise those of the key.
    fn counted_as<P>(&self, access: &Access<P>) -> String {
        match &self.credential {
            Ok(Credential::Token(token)) => token.id.clone(),
            Ok(Credential::Key(_)) | Err(_) => access.key.id.to_string(),
        }
    }

    /// The session of the token.
    fn session(&self) -> Option<&str> {
        match &self.credential {
            Ok(Credential::Token(token)) => token.session.as_deref(),
            Ok(Credential::Key(_)) | Err(_) => None,
        }
    }

    /// The bucket of a limit's own tiers. A caller without a known key has a network only.
    fn own_bucket<P>(&self, limit: &Limit, access: Option<&Access<P>>) -> Bucket {
        let credential = access.map(|access| self.counted_as(access));
        bucket(limit, counted(limit.scope(), credential, self.network))
    }

    /// The bucket of a limit's ceiling, with its tiers. `None` without a ceiling, and for a token without a session under a
    /// ceiling of sessions.
    fn ceiling<'l, P>(
        &self,
        limit: &'l Limit,
        access: Option<&Access<P>>,
    ) -> Option<(Bucket, &'l [Tier])> {
        let ceiling = limit.ceiling()?;
        let id = match ceiling.scope {
            LimitBy::SessionFromClient => Some(self.session()?.to_owned()),
            LimitBy::Credential | LimitBy::Client | LimitBy::CredentialFromClient => {
                access.map(|access| self.counted_as(access))
            }
        };
        let who = counted(ceiling.scope, id, self.network);
        Some((bucket(limit, who), ceiling.tiers.as_ref()))
    }
}

/// The limit that was consulted last, with its decision.
pub(super) type Consulted = Option<(Limit, ThrottleDecision)>;

/// Why a caller is refused, and whose key it was if that is known.
pub(super) struct Refusal<P> {
    pub(super) error: ApiError,
    pub(super) key: Option<Arc<Access<P>>>,
}

#[derive(Clone)]
pub(super) struct Guard<P> {
    pub(super) config: Arc<DoorConfig<P>>,
    pub(super) class: Class,
    pub(super) limit: Option<Limit>,
    pub(super) own_page: Option<OwnPage<P>>,
    pub(super) own_tier: Option<OwnTier<P>>,
    pub(super) read_token: Option<ReadToken>,
}

impl<P: Profile> Guard<P> {
    /// Attaches the key's owner to the response, for the log and for the CORS headers.
    pub(super) fn name(&self, access: Arc<Access<P>>, response: &mut Response) {
        if answers_are_logged() {
            response.extensions_mut().insert(Caller::of(&access));
        }
        if self.class == Class::Publishable {
            response.extensions_mut().insert(BrowserCaller(access));
        }
    }

    /// The limit with the partner's own tier, if the partner has one.
    fn limit_of(&self, limit: &Limit, access: &Access<P>) -> Limit {
        let own = self.own_tier.and_then(|own| own(&access.profile));
        own.map_or_else(|| limit.clone(), |tier| limit.with_tier(tier))
    }

    /// Checks in this order: a limit by address, the key, a limit by credential.
    pub(super) async fn check(
        &self,
        caller: &Arriving<'_>,
    ) -> (Consulted, Result<Arc<Access<P>>, Refusal<P>>) {
        let limit = self.limit.as_ref();
        if let Some(limit) = limit.filter(|limit| limit.scope() == LimitBy::Client) {
            let bucket = bucket(limit, Counted::Network(caller.network));
            let decision = self.config.throttle.take(&bucket, limit.tiers()).await;
            let checked = match refuse_over_limit(limit, &decision) {
                Some(error) => Err(Refusal { error, key: None }),
                None => self.recognise(caller).await,
            };
            return (Some((limit.clone(), decision)), checked);
        }
        match self.recognise(caller).await {
            Ok(access) => {
                let Some(limit) = limit else {
                    return (None, Ok(access));
                };
                let limit = &self.limit_of(limit, &access);
                let decision = if self.is_foreign(&access, caller.headers) {
                    self.take_foreign(limit, caller, &access).await
                } else {
                    self.take(limit, caller, &access).await
                };
                let checked = match refuse_over_limit(limit, &decision) {
                    Some(error) => Err(Refusal {
                        error,
                        key: Some(access),
                    }),
                    None => Ok(access),
                };
                (Some((limit.clone(), decision)), checked)
            }
            Err(refusal) if refusal.error.status() == 401 => {
                self.count_failed_auth(caller.network, refusal.error).await
            }
            Err(refusal) if self.class == Class::Embedded => {
                self.count_refusal(caller, refusal).await
            }
            Err(refusal) => {
                let Some(limit) = limit else {
                    return (None, Err(refusal));
                };
                let key = refusal.key.as_deref();
                let limit =
                    &key.map_or_else(|| limit.clone(), |access| self.limit_of(limit, access));
                let decision = self.peek(limit, key, caller).await;
                (Some((limit.clone(), decision)), Err(refusal))
            }
        }
    }

    /// Whether a request for browsers comes from a page that is not the partner's own.
    fn is_foreign(&self, access: &Access<P>, headers: &HeaderMap) -> bool {
        match &self.own_page {
            Some(own_page) => !own_page(access, headers),
            None => self.class == Class::Publishable,
        }
    }

    /// Counts the refusal of a known token as a request. Once the limit is full, the response is 429.
    async fn count_refusal(
        &self,
        caller: &Arriving<'_>,
        refusal: Refusal<P>,
    ) -> (Consulted, Result<Arc<Access<P>>, Refusal<P>>) {
        let (Some(limit), Some(access)) = (&self.limit, &refusal.key) else {
            return (None, Err(refusal));
        };
        let decision = self.take(limit, caller, access).await;
        let error = refuse_over_limit(limit, &decision).unwrap_or(refusal.error);
        let refused = Refusal { error, ..refusal };
        (Some((limit.clone(), decision)), Err(refused))
    }

    /// Counts a 401 against the client's address. Once that limit is full, the response is 429.
    async fn count_failed_auth(
        &self,
        network: ClientNetwork,
        error: ApiError,
    ) -> (Consulted, Result<Arc<Access<P>>, Refusal<P>>) {
        let unidentified = |error| Err(Refusal { error, key: None });
        let Some(limit) = &self.config.failed_auth_limit else {
            return (None, unidentified(error));
        };
        let bucket = bucket(limit, Counted::Network(network));
        let decision = self.config.throttle.take(&bucket, limit.tiers()).await;
        let error = refuse_over_limit(limit, &decision).unwrap_or(error);
        (Some((limit.clone(), decision)), unidentified(error))
    }

    /// Checks in this order: mode, known key, revocation and expiry, kind of key, organization,
    /// entitlement.
    async fn recognise(&self, caller: &Arriving<'_>) -> Result<Arc<Access<P>>, Refusal<P>> {
        let unidentified = |error| Refusal { error, key: None };
        let access = self.find(caller).await.map_err(unidentified)?;
        let now = self.config.clock.now();
        match self.permit(&access, now) {
            Ok(()) => {
                self.config.directory.key_used(&access, now);
                Ok(access)
            }
            Err(error) => Err(Refusal {
                error,
                key: Some(access),
            }),
        }
    }

    /// The key of the caller, or the key that the caller's token was issued for.
    async fn find(&self, caller: &Arriving<'_>) -> Result<Arc<Access<P>>, ApiError> {
        let DoorConfig {
            mode,
            error_codes,
            directory,
            ..
        } = &*self.config;
        match &caller.credential {
            Err(error) => Err(error.clone()),
            Ok(Credential::Key(key)) if key.mode != *mode => Err(wrong_mode(*mode, error_codes)),
            Ok(Credential::Key(key)) => directory
                .access_find(*mode, &key.hash)
                .await?
                .ok_or_else(credential::unknown),
            Ok(Credential::Token(token)) => directory
                .access_of(&token.tenant, token.key)
                .await?
                .ok_or_else(credential::dead_token),
        }
    }

    fn permit(&self, access: &Access<P>, now: Timestamp) -> Result<(), ApiError> {
        access.key_good(now)?;
        self.permit_key(access.key.kind)?;
        access.organization_active()?;
        if self.class.asks_entitlement() {
            (self.config.entitled)(&access.profile)?;
        }
        Ok(())
    }

    /// Checks that the kind and the mode of the key fit the route.
    fn permit_key(&self, kind: KeyKind) -> Result<(), ApiError> {
        let DoorConfig {
            mode, error_codes, ..
        } = &*self.config;
        let wrong_kind = |message| Err(ApiError::new(error_codes.wrong_kind, message));
        match self.class.kind() {
            Some(KeyKind::Secret) if kind == KeyKind::Publishable => {
                wrong_kind("This route takes a secret key, not a publishable one.")
            }
            Some(KeyKind::Publishable) if kind == KeyKind::Secret => wrong_kind(
                "This route takes a publishable key. A secret key must never reach a browser.",
            ),
            _ if self.class == Class::Sandbox && *mode == Mode::Live => Err(ApiError::new(
                error_codes.not_in_live,
                "This route exists in the sandbox only; a live key cannot use it.",
            )),
            _ => Ok(()),
        }
    }

    /// Counts a request in the limit's own bucket and under its ceiling, or in neither if one of
    /// them is full.
    async fn take(
        &self,
        limit: &Limit,
        caller: &Arriving<'_>,
        access: &Access<P>,
    ) -> ThrottleDecision {
        let throttle = &self.config.throttle;
        let own = caller.own_bucket(limit, Some(access));
        let Some((shared, ceiling)) = caller.ceiling(limit, Some(access)) else {
            return throttle.take(&own, limit.tiers()).await;
        };
        let above = throttle.peek(&shared, ceiling).await;
        if !above.admitted() {
            let below = throttle.peek(&own, limit.tiers()).await;
            return together(below, above);
        }
        let below = throttle.take(&own, limit.tiers()).await;
        if !below.admitted() {
            return together(below, above);
        }
        together(below, throttle.take(&shared, ceiling).await)
    }

    /// Counts a request of a foreign page apart, and shows where the ceiling stands.
    async fn take_foreign(
        &self,
        limit: &Limit,
        caller: &Arriving<'_>,
        access: &Access<P>,
    ) -> ThrottleDecision {
        let throttle = &self.config.throttle;
        let apart = Bucket {
            group: FOREIGN_PAGES,
            ..caller.own_bucket(limit, Some(access))
        };
        let below = throttle.take(&apart, limit.tiers()).await;
        let Some((shared, ceiling)) = caller.ceiling(limit, Some(access)) else {
            return below;
        };
        let mut above = throttle.peek(&shared, ceiling).await;
        // A foreign page gets the same response whether or not the ceiling is full.
        for status in &mut above.statuses {
            status.exhausted = false;
        }
        together(below, above)
    }

    /// Reads the status of a limit for a refused caller, without counting.
    async fn peek(
        &self,
        limit: &Limit,
        key: Option<&Access<P>>,
        caller: &Arriving<'_>,
    ) -> ThrottleDecision {
        let throttle = &self.config.throttle;
        let own = caller.own_bucket(limit, key);
        let below = throttle.peek(&own, limit.tiers()).await;
        let Some((shared, ceiling)) = caller.ceiling(limit, key) else {
            return below;
        };
        together(below, throttle.peek(&shared, ceiling).await)
    }
}

/// The bucket group that counts requests of foreign pages.
const FOREIGN_PAGES: &str = "foreign_pages";

fn bucket(limit: &Limit, who: Counted) -> Bucket {
    Bucket {
        group: limit.group(),
        who,
    }
}

/// Whose requests a scope counts a caller's among, by the id of the caller's credential or session. A caller without an id
/// has a network only.
fn counted(scope: LimitBy, id: Option<String>, network: ClientNetwork) -> Counted {
    match (scope, id) {
        (LimitBy::Client, _) | (_, None) => Counted::Network(network),
        (LimitBy::Credential, Some(id)) => Counted::Credential(id),
        (LimitBy::CredentialFromClient | LimitBy::SessionFromClient, Some(id)) => {
            Counted::CredentialFrom(id, network)
        }
    }
}

/// Joins the tiers of a limit and the tiers of its ceiling.
fn together(mut below: ThrottleDecision, above: ThrottleDecision) -> ThrottleDecision {
    below.statuses.extend(above.statuses);
    below
}

fn wrong_mode(process: Mode, error_codes: &ProductErrorCodes) -> ApiError {
    match process {
        Mode::Live => ApiError::new(
            error_codes.test_key_on_live,
            "This is the live environment; a test key works on the sandbox host only.",
        ),
        Mode::Test => ApiError::new(
            error_codes.live_key_on_test,
            "This is the sandbox; a live key works on the live host only.",
        ),
    }
}
