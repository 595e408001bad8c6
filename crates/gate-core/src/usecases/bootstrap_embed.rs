//! Bootstrapping a widget: a browser proves its page and, optionally, its session, and receives an embed token.

use std::sync::Arc;
use std::time::Duration;

use crate::access::GateAccess;
use crate::token::{TokenKey, Unsigned};
use kernel::{Mode, StoreResult, Timestamp};
use partner_core::Tenant;
use partner_core::origin::Origin;
use partner_core::races::retry_lost_races;
use url::Url;

use super::context::GateContext;
use super::list_options::{Unpayable, unpayable};
use crate::branding::Branding;
use crate::catalogue::Catalogue;
use crate::embed::{self, Claims, Scopes, TokenId};
use crate::error::GateError;
use crate::quota::Tally;
use crate::redirect::{OriginNotAllowed, listed};
use crate::secret::PresentedSecret;
use crate::session::{NotOpen, Session, SessionAction, SessionId, SessionStatus};

/// Bootstraps widgets.
#[derive(Clone)]
pub struct BootstrapEmbed {
    pub context: GateContext,
    /// Signs embed tokens.
    pub tokens: TokenKey,
    /// Validity of a token.
    pub ttl: Duration,
    /// The origin of the hosted widget; `None` if no widget is served.
    pub widget: Option<Origin>,
    pub catalogue: Arc<Catalogue>,
}

/// The two request headers that identify the browser's page, unchanged.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageHeaders<'h> {
    pub origin: Option<&'h str>,
    /// `Referer`, which counts only without an `Origin`.
    pub referer: Option<&'h str>,
}

/// The bootstrap request of a browser.
#[derive(Debug, Clone)]
pub struct BootstrapRequest<'h> {
    /// The headers that identify the page.
    pub page: PageHeaders<'h>,
    /// `clientSecret`
    pub client_secret: Option<&'h str>,
    /// The requested permissions.
    pub scopes: Scopes,
}

/// The initial data of a widget.
#[derive(Debug)]
pub struct Embed {
    /// The embed token.
    pub token: String,
    /// When the token expires. It is valid while `now < expires_at`.
    pub expires_at: Timestamp,
    /// The session of the client secret.
    pub session: Option<Session>,
    /// The appearance of the widget.
    pub branding: Branding,
    /// Why the widget cannot start a payment.
    pub unavailable: Option<Unavailable>,
}

/// Why a widget cannot start a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unavailable {
    /// The live session quota of the month is exhausted.
    QuotaExhausted,
    /// No choice of the widget can pay the session.
    Unpayable(Unpayable),
}

impl Unavailable {
    /// The text on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QuotaExhausted => "quota_exhausted",
            Self::Unpayable(reason) => reason.as_str(),
        }
    }
}

/// Why no token was issued.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// The origin of the page is not in the partner's `allowed_domains`.
    #[error(transparent)]
    OriginNotAllowed(#[from] OriginNotAllowed),
    /// The request names no page, so its origin is not among the partner's `allowed_domains`.
    #[error(
        "`Origin` and `Referer` name no web page; expected an origin of allowed_domains ({allowed})"
    )]
    PageUnknown { allowed: String },
    /// The client secret is wrong, or it is missing although the page requires one.
    #[error(transparent)]
    ClientSecretInvalid(#[from] SecretError),
    /// The session of the client secret has ended.
    #[error(transparent)]
    NotOpen(#[from] NotOpen),
    /// The token could not be signed.
    #[error(transparent)]
    Unsigned(#[from] Unsigned),
    /// The use case could not finish.
    #[error(transparent)]
    Failed(#[from] GateError),
}

/// What is wrong with a client secret. A partner learns from it nothing but the public form of client secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The widget's own page sent none.
    #[error("expected the client secret of a session, found none")]
    Missing,
    /// The text does not have the form of client secrets, perhaps because a part of it is missing.
    #[error(
        "expected the whole client secret of a session (`gsec_`, the session's id, `_`, and 32 letters and digits), found another text"
    )]
    Malformed,
    /// No session of the partner has it.
    #[error("no session of this partner has this client secret")]
    Unknown,
}

impl BootstrapEmbed {
    /// Issues an embed token to a browser. A token of a session may end the oldest one ([`Session::admits`]).
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all)]
    pub async fn bootstrap(
        &self,
        access: &GateAccess,
        ask: BootstrapRequest<'_>,
    ) -> Result<Embed, BootstrapError> {
        let who = &access.tenant;
        let home = self.check_origin(access, ask.page)?;
        let session = match ask.client_secret {
            Some(text) => Some(self.session(who, text).await?),
            None if home => return Err(SecretError::Missing.into()),
            None => None,
        };
        session.as_ref().map_or(Ok(()), must_be_open)?;
        let unavailable = match &session {
            // A customer who has begun to pay still sees the payment after a change of the catalogue.
            Some(session) if session.payment_in_progress => None,
            // An existing session was counted at its creation.
            Some(session) => unpayable(&self.catalogue, &session.terms).map(Unavailable::Unpayable),
            None => self.unavailable(access).await.map_err(GateError::from)?,
        };
        let branding = self.context.store.branding_get(who).await;
        let branding = branding.map_err(GateError::from)?;
        // Last, so that a bootstrap that fails ends no token.
        let session = match session {
            Some(session) => Some(retry_lost_races(|| self.count_token(who, session.id)).await??),
            None => None,
        };
        let claims = self.claims(access, session.as_ref(), ask.scopes, branding.at);
        Ok(Embed {
            token: claims.sign(&self.tokens)?,
            expires_at: claims.expires_at,
            session,
            branding: branding.value,
            unavailable,
        })
    }

    /// Whether the page may start widgets of this partner.
    #[must_use]
    pub fn admits_page(&self, access: &GateAccess, page: PageHeaders<'_>) -> bool {
        self.check_origin(access, page).is_ok()
    }

    /// Whether the page is the hosted widget itself, which needs no entry in `allowed_domains`.
    pub(super) fn check_origin(
        &self,
        access: &GateAccess,
        page: PageHeaders<'_>,
    ) -> Result<bool, BootstrapError> {
        let allowed = &access.profile.allowed_domains;
        let Some(origin) = page.origin() else {
            let allowed = listed(allowed);
            return Err(BootstrapError::PageUnknown { allowed });
        };
        if self.widget.as_ref() == Some(&origin) {
            return Ok(true);
        }
        OriginNotAllowed::check(&origin, allowed)?;
        Ok(false)
    }

    /// The session that a client secret names. If it is overdue, it is expired first.
    pub(super) async fn session(
        &self,
        who: &Tenant,
        text: &str,
    ) -> Result<Session, BootstrapError> {
        let Some(secret) = PresentedSecret::parse(text) else {
            return Err(SecretError::Malformed.into());
        };
        let session = self.context.session(who, secret.session).await?;
        let session = session.filter(|session| session.secret == secret.hash);
        session.ok_or_else(|| SecretError::Unknown.into())
    }

    /// Counts one more token of an open session; returns the session with it.
    async fn count_token(
        &self,
        who: &Tenant,
        id: SessionId,
    ) -> Result<Result<Session, BootstrapError>, GateError> {
        let mut tx = self.context.store.gate_begin("embed_bootstrap").await?;
        let Some(session) = tx.session_lock(who, id).await? else {
            return Ok(Err(SecretError::Unknown.into()));
        };
        let now = tx.now().await?;
        let touched = self
            .context
            .act(tx.as_mut(), who, session, SessionAction::Touch, now)
            .await?;
        if let Err(ended) = must_be_open(&touched.session) {
            if touched.changed {
                tx.commit().await?;
            }
            return Ok(Err(ended.into()));
        }
        let session = touched.session.with_token();
        let counting = tx.session_count_token(who, session.newest_token());
        counting.await?.won()?;
        tx.commit().await?;
        Ok(Ok(session))
    }

    async fn unavailable(&self, access: &GateAccess) -> StoreResult<Option<Unavailable>> {
        let (who, quota) = (&access.tenant, access.profile.live_session_quota);
        if who.mode == Mode::Test || quota.is_none() {
            return Ok(None);
        }
        let tally = self.context.store.tally_get(who).await?;
        let used_up = Tally::used_up(tally.value.as_ref(), tally.at, quota);
        Ok(used_up.then_some(Unavailable::QuotaExhausted))
    }

    fn claims(
        &self,
        access: &GateAccess,
        session: Option<&Session>,
        scopes: Scopes,
        now: Timestamp,
    ) -> Claims {
        let issued_at = embed::seconds(now.seconds()).unwrap_or(now);
        Claims {
            id: TokenId::new(access.tenant.mode, now, self.context.entropy.as_ref()),
            key: access.key.id,
            tenant: access.tenant.clone(),
            session: session.map(Session::newest_token),
            scopes,
            issued_at,
            expires_at: issued_at.plus(self.ttl),
        }
    }
}

/// Refuses a session that has ended.
fn must_be_open(session: &Session) -> Result<(), NotOpen> {
    match session.state.status() {
        SessionStatus::Open => Ok(()),
        ended @ (SessionStatus::Completed | SessionStatus::Expired | SessionStatus::Cancelled) => {
            Err(NotOpen(ended))
        }
    }
}

impl PageHeaders<'_> {
    /// The origin that the browser sent, in the spelling of browsers. An invalid `Origin`, such as `null`, is not
    /// replaced by the `Referer`.
    #[must_use]
    pub fn origin(&self) -> Option<Origin> {
        match (self.origin, self.referer) {
            (Some(origin), _) => Origin::stored(origin),
            (None, Some(referer)) => Origin::of(&Url::parse(referer).ok()?),
            (None, None) => None,
        }
    }
}
