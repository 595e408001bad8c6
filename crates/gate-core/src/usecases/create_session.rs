//! Creating a session.
//!
//! The fields are judged before a transaction is opened. In it the key is looked up again, the
//! quota counted, and session, events and answer are written together.

use std::fmt;
use std::time::Duration;

use kernel::{Mode, StoreError, Timestamp};
use partner_core::idempotency::{IdempotencyKey, Scope};
use partner_core::races::{LostRace, retry_lost_races};
use partner_core::stored_response::{
    Begin, IdempotentRequest, IdempotentResponse, Render, RenderedResponse, ResponseStore,
    ResponseStoreError,
};
use partner_core::{Access, Denial, Tenant};
use secrecy::SecretString;

use super::expiry::GateContext;
use crate::draft::{Draft, DraftError, NotEntitled, ValidDraft};
use crate::events::EventError;
use crate::ports::{GateTx, kyc_place};
use crate::preview::{Preview, PreviewRefusal};
use crate::quota::{Exhausted, Tally};
use crate::secret::ClientSecret;
use crate::session::{Session, SessionEvent, SessionId, SessionState};

/// The route an idempotency key is scoped by.
pub const ROUTE: &str = "POST /v1/gate_sessions";

/// Creates sessions.
#[derive(Clone)]
pub struct CreateSession {
    /// The store, and what events are made with.
    pub sessions: GateContext,
    /// Keeps answers.
    pub answers: ResponseStore,
    /// How long a session is open.
    pub ttl: Duration,
}

impl fmt::Debug for CreateSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Creating")
    }
}

/// A session that was just created, with its client secret: shown this once.
#[derive(Debug)]
pub struct Created {
    /// The session.
    pub session: Session,
    /// Its client secret.
    pub client_secret: SecretString,
}

/// Why no session was created; the key stays free.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// A request with the same key is being worked on.
    #[error("a request with the same idempotency key is in progress")]
    InProgress,
    /// A field is wrong.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// The locked preview is not to be used by it.
    #[error(transparent)]
    Preview(#[from] PreviewRefusal),
    /// The key is no longer good.
    #[error(transparent)]
    Denied(#[from] Denial),
    /// The partner is not entitled to something it has sent.
    #[error(transparent)]
    NotEntitled(#[from] NotEntitled),
    /// The quota of the month is used up.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The answer could not be given or kept.
    #[error(transparent)]
    Answer(#[from] ResponseStoreError),
    /// An event could not be made.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LostRace for CreateError {
    fn lost_race(&self) -> bool {
        match self {
            Self::Answer(fault) => fault.lost_race(),
            Self::Store(error) => error.lost_race(),
            Self::InProgress
            | Self::Draft(_)
            | Self::Preview(_)
            | Self::Denied(_)
            | Self::NotEntitled(_)
            | Self::Exhausted(_)
            | Self::Event(_) => false,
        }
    }
}

impl CreateSession {
    /// Creates a session, or gives the answer its key was first given.
    ///
    /// # Errors
    /// [`CreateError`].
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all)]
    pub async fn create(
        &self,
        access: &Access,
        key: IdempotencyKey,
        draft: &Draft,
        render: &Render<'_, Created>,
    ) -> Result<IdempotentResponse, CreateError> {
        let call = IdempotentRequest {
            scope: Scope {
                tenant: access.tenant.clone(),
                route: ROUTE.to_owned(),
                key,
            },
            fingerprint: draft.fingerprint(),
        };
        let _ticket = match self.answers.enter(Some(&call)).await? {
            Begin::Answered(given) => return Ok(given),
            Begin::Busy => return Err(CreateError::InProgress),
            Begin::Free(ticket) => ticket,
        };
        let judged = draft.judge(&access.gate, access.tenant.mode)?;
        retry_lost_races(|| self.create_once(access, &call, &judged, render)).await
    }

    async fn create_once(
        &self,
        access: &Access,
        call: &IdempotentRequest,
        judged: &ValidDraft,
        render: &Render<'_, Created>,
    ) -> Result<IdempotentResponse, CreateError> {
        let who = &access.tenant;
        let mut tx = self.sessions.store.gate_begin("session_create").await?;
        let kept = self.answers.lock(tx.as_mut(), Some(call)).await?;
        let tally = match who.mode {
            Mode::Live => tx.tally_lock(who).await?,
            Mode::Test => None,
        };
        let preview = match judged.preview {
            Some(id) => tx.preview_lock(who, id).await?,
            None => None,
        };
        let access = tx.access_get(who, access.key.id).await?;
        let access = access.ok_or(Denial::KeyRevoked)?;
        let now = tx.now().await?;
        // A twin may have finished since the first look.
        if let Some(given) = self.answers.given(call, kept.as_ref(), now)? {
            return Ok(given);
        }
        access.may_write_to_gate(now)?;
        fits(judged, preview.as_ref(), now)?;
        judged.package_is_trusted(&access.gate)?;
        let counted = match who.mode {
            Mode::Live => Some(Tally::count(
                tally.as_ref(),
                now,
                access.gate.live_session_quota,
            )?),
            Mode::Test => None,
        };
        judged.flow_is_enabled(&access.gate)?;
        if let Some(counted) = counted {
            tx.tally_put(who, tally.as_ref(), &counted).await?.won()?;
        }
        let created = self.open(who, judged, now);
        self.write(tx.as_mut(), who, judged, &created.session)
            .await?;
        let answer: RenderedResponse = render(&created).map_err(ResponseStoreError::from)?;
        self.answers
            .keep(tx.as_mut(), Some(call), kept.as_ref(), &answer, now)
            .await?;
        tx.commit().await?;
        Ok(IdempotentResponse::Fresh(answer))
    }

    fn open(&self, who: &Tenant, judged: &ValidDraft, now: Timestamp) -> Created {
        let entropy = self.sessions.entropy.as_ref();
        let id = SessionId::new(who.mode, now, entropy);
        let secret = ClientSecret::generate(id, entropy);
        let session = Session {
            id,
            terms: judged.terms.clone(),
            secret: secret.hash,
            kyc_pre_verified: judged.kyc_package.is_some(),
            created_at: now,
            expires_at: now.plus(self.ttl),
            state: SessionState::Open,
            payment_in_progress: false,
        };
        Created {
            session,
            client_secret: secret.text,
        }
    }

    async fn write(
        &self,
        tx: &mut dyn GateTx,
        who: &Tenant,
        judged: &ValidDraft,
        session: &Session,
    ) -> Result<(), CreateError> {
        let GateContext {
            sealer, entropy, ..
        } = &self.sessions;
        let place = kyc_place(who, session.id);
        let package = judged.kyc_package.as_ref();
        let package = package
            .map(|package| sealer.seal(&place, package.as_str().as_bytes(), entropy.as_ref()))
            .transpose()
            .map_err(StoreError::from)?;
        tx.session_insert(who, session, package.as_ref()).await?;
        if let Some(preview) = judged.preview {
            let using = tx.preview_use(who, preview, session.id, session.created_at);
            using.await?.won()?;
        }
        let mut events = vec![SessionEvent::Created];
        if package.is_some() {
            events.push(SessionEvent::KycPackageAccepted);
        }
        for event in events {
            let event = self
                .sessions
                .ink()
                .session(who, session, event, session.created_at)?;
            tx.event_insert(&event).await?;
        }
        Ok(())
    }
}

/// May the session use the preview it names?
fn fits(
    judged: &ValidDraft,
    preview: Option<&Preview>,
    now: Timestamp,
) -> Result<(), PreviewRefusal> {
    match (judged.preview, preview) {
        (None, _) => Ok(()),
        (Some(_), None) => Err(PreviewRefusal::Missing),
        (Some(_), Some(preview)) => preview.must_fit(&judged.terms, now),
    }
}
