//! Creating a session.
//!
//! The fields are validated before the transaction. The transaction counts the quota and writes the session, its
//! events and the response.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Mode, StoreError, StoreResult, Timestamp};
use partner_core::Denial;
use partner_core::idempotency::OperationKey;
use partner_core::key::publishable_place;
use partner_core::stored_response::{IdempotentRequest, IdempotentResponse, Render};
use secrecy::SecretString;

use super::context::GateContext;
use crate::access::{GateAccess, GateDenial, may_write};
use crate::draft::{Draft, DraftError, NotEntitled, ValidDraft};
use crate::error::GateError;
use crate::events::Resource;
use crate::idempotent::{Decision, GateWrite, Idempotent};
use crate::ports::{GateTx, kyc_place};
use crate::preview::{Preview, PreviewRefusal};
use crate::quota::{Exhausted, Tally};
use crate::secret::ClientSecret;
use crate::session::{Session, SessionEvent, SessionId, SessionState};

#[derive(Clone)]
pub struct CreateSession {
    pub context: GateContext,
    /// Runs the write.
    pub idempotent: Idempotent,
    /// The time from creation to expiry.
    pub ttl: Duration,
}

/// A new session with its client secret, which is shown only in this response.
#[derive(Debug)]
pub struct Created {
    pub session: Session,
    pub client_secret: SecretString,
    /// The partner's newest active publishable key, for the link to the checkout.
    pub publishable_key: Option<String>,
}

/// Why no session was created. The idempotency key stays unused.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// A field is invalid.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// The session may not use the locked preview.
    #[error(transparent)]
    Preview(#[from] PreviewRefusal),
    /// The API key was revoked or has expired.
    #[error(transparent)]
    Denied(#[from] GateDenial),
    /// The partner is not entitled to a field that it sent.
    #[error(transparent)]
    NotEntitled(#[from] NotEntitled),
    /// The quota of the month is exhausted.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The use case could not finish.
    #[error(transparent)]
    Failed(#[from] GateError),
}

impl CreateSession {
    /// Creates a session, or replays the response that is stored under the request's key.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all)]
    pub async fn create(
        &self,
        access: &GateAccess,
        key: OperationKey,
        draft: &Draft,
        render: &Render<'_, Created>,
    ) -> Result<IdempotentResponse, CreateError> {
        let request = IdempotentRequest::new(&access.tenant, key, draft.fingerprint());
        let prepare = async {
            Ok(NewSession {
                context: &self.context,
                ttl: self.ttl,
                access,
                draft: draft.validate(&access.profile, access.tenant.mode)?,
            })
        };
        self.idempotent.run(Some(request), prepare, render).await
    }
}

/// The write of a new session.
struct NewSession<'w> {
    context: &'w GateContext,
    ttl: Duration,
    access: &'w GateAccess,
    draft: ValidDraft,
}

struct Rows {
    tally: Option<Tally>,
    preview: Option<Preview>,
    access: Option<Arc<GateAccess>>,
}

#[async_trait]
impl GateWrite for NewSession<'_> {
    type Rows = Rows;
    type Done = Created;
    type Error = CreateError;

    fn name(&self) -> &'static str {
        "session_create"
    }

    async fn lock(&self, tx: &mut dyn GateTx) -> StoreResult<Rows> {
        let who = &self.access.tenant;
        Ok(Rows {
            tally: match who.mode {
                Mode::Live => tx.tally_lock(who).await?,
                Mode::Test => None,
            },
            preview: match self.draft.preview {
                Some(id) => tx.preview_lock(who, id).await?,
                None => None,
            },
            access: tx.access_get(who, self.access.key.id).await?,
        })
    }

    async fn decide(
        &self,
        tx: &mut dyn GateTx,
        rows: Rows,
        now: Timestamp,
    ) -> Result<Decision<Created, CreateError>, GateError> {
        let counted = match self.count(&rows, now) {
            Ok(counted) => counted,
            Err(refusal) => return Ok(Decision::Refused(refusal)),
        };
        if let Some(counted) = counted {
            let counting = tx.tally_put(&self.access.tenant, rows.tally.as_ref(), &counted);
            counting.await?.won()?;
        }
        let created = Created {
            publishable_key: self.publishable_key(tx, now).await?,
            ..self.open(now)
        };
        self.write(tx, &created.session).await?;
        Ok(Decision::Done(created))
    }
}

impl NewSession<'_> {
    /// The text of the partner's newest publishable key. `None` without such a key, or if its text does not open: the session is
    /// created without a link, and the log says which key is damaged.
    async fn publishable_key(
        &self,
        tx: &mut dyn GateTx,
        now: Timestamp,
    ) -> StoreResult<Option<String>> {
        let who = &self.access.tenant;
        let newest = tx.publishable_key_newest(who, now).await?;
        let Some((id, sealed)) = newest else {
            return Ok(None);
        };
        let opened = self
            .context
            .sealer
            .open(&publishable_place(who, id), &sealed);
        let text = opened
            .ok()
            .and_then(|opened| String::from_utf8(opened.to_vec()).ok());
        if text.is_none() {
            tracing::error!(key.id = %id, "The text of a publishable key does not open; sessions have no link. Create a new key");
        }
        Ok(text)
    }

    /// The tally with the new session, in live mode; `None` in test mode.
    fn count(&self, rows: &Rows, now: Timestamp) -> Result<Option<Tally>, CreateError> {
        let access = rows.access.as_ref();
        let access = access.ok_or(GateDenial::Access(Denial::KeyRevoked))?;
        may_write(access, now)?;
        fits(&self.draft, rows.preview.as_ref(), now)?;
        self.draft.check_kyc_package(&access.profile)?;
        let quota = access.profile.live_session_quota;
        let counted = match self.access.tenant.mode {
            Mode::Live => Some(Tally::count(rows.tally.as_ref(), now, quota)?),
            Mode::Test => None,
        };
        self.draft.flow_is_enabled(&access.profile)?;
        Ok(counted)
    }

    fn open(&self, now: Timestamp) -> Created {
        let entropy = self.context.entropy.as_ref();
        let id = SessionId::new(self.access.tenant.mode, now, entropy);
        let secret = ClientSecret::generate(id, entropy);
        let session = Session {
            id,
            terms: self.draft.terms.clone(),
            secret: secret.hash,
            kyc_pre_verified: self.draft.kyc_package.is_some(),
            created_at: now,
            expires_at: now.plus(self.ttl),
            state: SessionState::Open,
            payment_in_progress: false,
            tokens_made: 0,
        };
        Created {
            session,
            client_secret: secret.text,
            publishable_key: None,
        }
    }

    async fn write(&self, tx: &mut dyn GateTx, session: &Session) -> Result<(), GateError> {
        let (who, draft) = (&self.access.tenant, &self.draft);
        let GateContext {
            sealer, entropy, ..
        } = self.context;
        let place = kyc_place(who, session.id);
        let package = draft.kyc_package.as_ref();
        let package = package
            .map(|package| sealer.seal(&place, package.as_str().as_bytes(), entropy.as_ref()))
            .transpose()
            .map_err(StoreError::from)?;
        tx.session_insert(who, session, package.as_ref()).await?;
        if let Some(preview) = draft.preview {
            let using = tx.preview_use(who, preview, session.id, session.created_at);
            using.await?.won()?;
        }
        let mut events = vec![SessionEvent::Created];
        if package.is_some() {
            events.push(SessionEvent::KycPackageAccepted);
        }
        for event in events {
            let events = self.context.events();
            let (kind, resource) = (event.as_str(), Resource::Session(session));
            let event = events.event(who, kind, resource, session.created_at)?;
            tx.event_insert(&event).await?;
        }
        Ok(())
    }
}

/// Checks that the session may use the preview that it names.
fn fits(
    draft: &ValidDraft,
    preview: Option<&Preview>,
    now: Timestamp,
) -> Result<(), PreviewRefusal> {
    match (draft.preview, preview) {
        (None, _) => Ok(()),
        (Some(_), None) => Err(PreviewRefusal::Missing),
        (Some(_), Some(preview)) => preview.must_fit(&draft.terms, now),
    }
}
