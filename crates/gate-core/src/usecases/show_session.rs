//! Showing a session to its widget.

use std::fmt;
use std::sync::Arc;

use kernel::Timestamp;
use partner_core::Tenant;
use partner_core::ports::Directory;
use sha2::{Digest, Sha256};

use super::context::GateContext;
use super::verify_user::{ShownVerification, VerifyUser};
use crate::access::{GateAccess, GateDenial, may_write};
use crate::branding::Branding;
use crate::catalogue::CountryCode;
use crate::embed::{Claims, SessionToken};
use crate::error::GateError;
use crate::profile::GateProfile;
use crate::rail::RailRecord;
use crate::session::{Session, SessionState};

/// Shows sessions to their widgets.
#[derive(Clone)]
pub struct ShowSession {
    pub context: GateContext,
    /// Says whether users must be verified.
    pub verifying: VerifyUser,
    /// The partners and their access.
    pub directory: Arc<dyn Directory<GateProfile>>,
}

/// A session as its widget needs it.
#[derive(Debug, Clone)]
pub struct EmbedSession {
    pub session: Session,
    /// The appearance of the widget.
    pub branding: Branding,
    /// The newest payment.
    pub payment: Option<RailRecord>,
    /// Whether the user must be verified.
    pub verification: ShownVerification,
    /// The store's instant, after the session was read.
    pub at: Timestamp,
}

/// Why a session is not shown.
#[derive(Debug, thiserror::Error)]
pub enum ShowError {
    /// The partner has no such session.
    #[error("no such session")]
    NotFound,
    /// The widget's token has expired, or newer tokens of its session have ended it.
    #[error("the token has expired")]
    TokenExpired,
    /// The key of the widget has ended.
    #[error(transparent)]
    Denied(#[from] GateDenial),
    /// The use case could not finish.
    #[error(transparent)]
    Failed(#[from] GateError),
}

impl ShowSession {
    /// The session of a token. If it is overdue, it is expired first.
    pub async fn show(
        &self,
        who: &Tenant,
        token: SessionToken,
        country: Option<CountryCode>,
    ) -> Result<EmbedSession, ShowError> {
        let mut session = self.session(who, token).await?;
        if !session.admits(token) {
            return Err(ShowError::TokenExpired);
        }
        let store = &self.context.store;
        let payment = store.payment_of_session(who, session.id).await;
        let payment = payment.map_err(GateError::from)?;
        let is_settled = |it: &RailRecord| it.state.settled_at().is_some();
        if session.state == SessionState::Open && payment.as_ref().is_some_and(is_settled) {
            // The payment settled after the session was read, and has completed it.
            session = self.session(who, token).await?;
        }
        let verification = self.verifying.status(who, &session, country).await;
        let branding = store.branding_get(who).await.map_err(GateError::from)?;
        Ok(EmbedSession {
            session,
            branding: branding.value,
            payment,
            verification: verification.map_err(GateError::from)?,
            at: branding.at,
        })
    }

    async fn session(&self, who: &Tenant, token: SessionToken) -> Result<Session, ShowError> {
        let found = self.context.session(who, token.session).await?;
        found.ok_or(ShowError::NotFound)
    }

    /// Checks that the token of a widget that has waited still counts at this instant, and its key. Returns the key's access.
    pub async fn still_admitted(
        &self,
        claims: &Claims,
        now: Timestamp,
    ) -> Result<Arc<GateAccess>, ShowError> {
        if now >= claims.expires_at {
            return Err(ShowError::TokenExpired);
        }
        let found = self.directory.access_of(&claims.tenant, claims.key).await;
        let access = found.map_err(GateError::from)?;
        let access = access.ok_or(ShowError::NotFound)?;
        may_write(&access, now)?;
        Ok(access)
    }
}

/// The version of what a widget shows: equal while the text is equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(u64);

impl Version {
    /// The version of a text.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        let digest = Sha256::digest(text);
        let first = digest.first_chunk().copied().unwrap_or_default();
        Self(u64::from_be_bytes(first))
    }

    /// Parses 16 lowercase hexadecimal digits; `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let version = Self(u64::from_str_radix(text, 16).ok()?);
        (version.to_string() == text).then_some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
