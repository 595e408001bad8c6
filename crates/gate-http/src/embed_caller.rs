//! The caller of a widget's call: its token, whose key and partner the door has checked.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;
use gate_core::access::GateAccess;
use gate_core::embed::{Claims, Scope, SessionToken};
use gate_core::profile::GateProfile;
use gate_core::token::TokenKey;
use http_kit::{ApiError, OperationOf, PresentedToken, ReadToken, log_id};
use kernel::Mode;
use partner_core::Tenant;

use crate::errors;

/// Proof of a token whose publishable key is good and whose partner is entitled to the gate.
type Embedded = http_kit::Embedded<GateProfile>;

/// A widget, by its token.
#[derive(Debug)]
pub(crate) struct EmbedCaller {
    proof: Embedded,
    claims: Claims,
}

impl EmbedCaller {
    /// The tenant whose rows the call may read and write.
    pub(crate) fn tenant(&self) -> &Tenant {
        self.proof.tenant()
    }

    /// The token of a session, if it has the scope. `None` for the open widget.
    ///
    /// # Errors
    /// 403 `scope_missing`.
    pub(crate) fn allowed(&self, scope: Scope) -> Result<Option<SessionToken>, ApiError> {
        let allowed = self.claims.require(scope);
        allowed.map_err(errors::token_denied)?;
        Ok(self.claims.session)
    }
}

/// A scope that a call needs.
pub(crate) trait Needed {
    const SCOPE: Scope;
}

/// The call reads the session.
#[derive(Debug)]
pub(crate) enum Read {}

impl Needed for Read {
    const SCOPE: Scope = Scope::SessionRead;
}

/// The call pays the session.
#[derive(Debug)]
pub(crate) enum Pay {}

impl Needed for Pay {
    const SCOPE: Scope = Scope::SessionPay;
}

/// The call submits a verification.
#[derive(Debug)]
pub(crate) enum Verify {}

impl Needed for Verify {
    const SCOPE: Scope = Scope::KycSubmit;
}

/// A widget of a session, whose token has the scope. Scope and session are checked before the body is read. The use case of the call
/// checks whether newer tokens of the session have ended the token.
#[derive(Debug)]
pub(crate) struct SessionCaller<N> {
    caller: EmbedCaller,
    token: SessionToken,
    needed: PhantomData<N>,
}

impl<N> SessionCaller<N> {
    /// The token of the session.
    pub(crate) const fn token(&self) -> SessionToken {
        self.token
    }

    /// The tenant whose rows the call may read and write.
    pub(crate) fn tenant(&self) -> &Tenant {
        self.caller.tenant()
    }

    /// The key's access, as the door has checked it.
    pub(crate) fn access(&self) -> &Arc<GateAccess> {
        self.caller.proof.access()
    }

    /// What the token says.
    pub(crate) const fn claims(&self) -> &Claims {
        &self.caller.claims
    }
}

impl<S: Send + Sync, N: Needed> FromRequestParts<S> for SessionCaller<N> {
    type Rejection = ApiError;

    /// # Errors
    /// 403 `scope_missing` or `session_required`.
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = EmbedCaller::from_request_parts(parts, state).await?;
        let token = caller.claims.session_for(N::SCOPE);
        Ok(Self {
            token: token.map_err(errors::token_denied)?,
            caller,
            needed: PhantomData,
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for EmbedCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let proof = Embedded::from_request_parts(parts, state).await?;
        let claims = parts.extensions.get::<Claims>().cloned();
        let claims = claims.ok_or_else(|| ApiError::internal("a token without claims"))?;
        if let Some(token) = claims.session {
            log_id(token.session);
        }
        Ok(Self { proof, claims })
    }
}

/// Reads the tokens of a mode that this key signed.
pub(crate) fn reader(tokens: TokenKey, mode: Mode) -> ReadToken {
    Arc::new(move |text, now| {
        let claims = Claims::open(text, &tokens, mode, now)?;
        let (id, key, tenant) = (claims.id, claims.key, claims.tenant.clone());
        let session = claims.session.map(|token| token.session.to_string());
        let mut carried = Extensions::new();
        if let Some(session) = &session {
            carried.insert(OperationOf(session.clone()));
        }
        carried.insert(claims);
        Some(PresentedToken {
            id: id.ulid().to_string(),
            session,
            tenant,
            key,
            claims: carried,
        })
    })
}
