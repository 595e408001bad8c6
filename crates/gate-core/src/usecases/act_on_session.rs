//! Acting on an open session: cancel, and the sandbox's complete and fail.
//!
//! All three take an idempotency key and none needs one.

use std::fmt;

use kernel::{Id, IdKind, Mode, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::idempotency::{Fingerprint, IdempotencyKey, Scope};
use partner_core::races::{LostRace, retry_lost_races};
use partner_core::stored_response::{
    Begin, IdempotentRequest, IdempotentResponse, Render, ResponseStore, ResponseStoreError,
};
use serde_json::json;

use super::expiry::{ExpiryError, GateContext};
use crate::events::EventError;
use crate::session::{Session, SessionAction, SessionId, SessionRefusal};
use crate::transaction::{RefId, Transaction, TransactionState};

/// Names a payment intent of the sandbox.
#[derive(Debug)]
pub enum IntentIdKind {}

impl IdKind for IntentIdKind {
    const PREFIX: &'static str = "int";
}

/// `int_<mode>_<ULID>`, the ULID that of its transaction.
pub type IntentId = Id<IntentIdKind>;

/// The code of a failed intent where none is given.
const DEFAULT_CODE: &str = "provider_declined";

/// The message of a failed intent where none is given.
const DEFAULT_MESSAGE: &str = "The payment was declined (test failure).";

/// Acts on sessions.
#[derive(Clone)]
pub struct ActOnSession {
    /// The store, and what events are made with.
    pub sessions: GateContext,
    /// Keeps answers.
    pub answers: ResponseStore,
}

impl fmt::Debug for ActOnSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acting")
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionRequest {
    /// The partner calls the session off.
    Cancel,
    /// The sandbox pays it.
    Complete,
    /// The sandbox fails to pay it: the session stays open.
    Fail {
        /// Why, in a word.
        code: Option<String>,
        /// Why, in a sentence.
        message: Option<String>,
    },
}

/// A session after a deed.
#[derive(Debug)]
pub struct ActionResult {
    /// As it is now.
    pub session: Session,
    /// The intent that has failed, if one has.
    pub intent: Option<Intent>,
}

/// A payment that has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// Names it.
    pub id: IntentId,
    /// Its transaction.
    pub refid: RefId,
    /// Why, in a word.
    pub failure_code: String,
    /// Why, in a sentence.
    pub failure_message: String,
}

/// Why nothing was done; the key stays free.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// A request with the same key is being worked on.
    #[error("a request with the same idempotency key is in progress")]
    InProgress,
    /// The sandbox's deeds are none in live mode.
    #[error("live sessions are neither completed nor failed by hand")]
    LiveMode,
    /// No such session of this partner.
    #[error("no such session")]
    NotFound,
    /// The session has ended, or a payment of it is in progress.
    #[error(transparent)]
    Refused(#[from] SessionRefusal),
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

impl From<ExpiryError> for ActError {
    fn from(error: ExpiryError) -> Self {
        match error {
            ExpiryError::Event(fault) => Self::Event(fault),
            ExpiryError::Store(error) => Self::Store(error),
        }
    }
}

impl LostRace for ActError {
    fn lost_race(&self) -> bool {
        match self {
            Self::Answer(fault) => fault.lost_race(),
            Self::Store(error) => error.lost_race(),
            Self::InProgress
            | Self::LiveMode
            | Self::NotFound
            | Self::Refused(_)
            | Self::Event(_) => false,
        }
    }
}

impl ActionRequest {
    /// The route an idempotency key is scoped by.
    #[must_use]
    pub fn route(&self, session: SessionId) -> String {
        match self {
            Self::Cancel => format!("POST /v1/gate_sessions/{session}/cancel"),
            Self::Complete => format!("POST /v1/test_helpers/sessions/{session}/complete"),
            Self::Fail { .. } => format!("POST /v1/test_helpers/sessions/{session}/fail"),
        }
    }

    fn fingerprint(&self) -> Fingerprint {
        let read = match self {
            Self::Cancel | Self::Complete => json!([]),
            Self::Fail { code, message } => json!([code, message]),
        };
        Fingerprint::of(read.to_string().as_bytes())
    }

    /// How the transaction of a deed of the sandbox stands.
    const fn transaction(&self, now: Timestamp) -> Option<TransactionState> {
        match self {
            Self::Cancel => None,
            Self::Complete => Some(TransactionState::Completed { at: now }),
            Self::Fail { .. } => Some(TransactionState::Failed),
        }
    }

    fn intent(&self, mode: Mode, refid: RefId) -> Option<Intent> {
        let Self::Fail { code, message } = self else {
            return None;
        };
        Some(Intent {
            id: IntentId::from_parts(mode, refid.id().ulid()),
            refid,
            failure_code: code.as_deref().unwrap_or(DEFAULT_CODE).to_owned(),
            failure_message: message.as_deref().unwrap_or(DEFAULT_MESSAGE).to_owned(),
        })
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Cancel => "session_cancel",
            Self::Complete => "session_complete",
            Self::Fail { .. } => "session_fail",
        }
    }
}

impl ActOnSession {
    /// Does something to an open session, or gives the answer its key was first given.
    ///
    /// # Errors
    /// [`ActError`]. An expiry that was met is applied all the same.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(session.id = %id))]
    pub async fn act(
        &self,
        who: &Tenant,
        id: SessionId,
        key: Option<IdempotencyKey>,
        deed: &ActionRequest,
        render: &Render<'_, ActionResult>,
    ) -> Result<IdempotentResponse, ActError> {
        if who.mode == Mode::Live && *deed != ActionRequest::Cancel {
            return Err(ActError::LiveMode);
        }
        let id = id.in_mode(who.mode).ok_or(ActError::NotFound)?;
        let call = key.map(|key| IdempotentRequest {
            scope: Scope {
                tenant: who.clone(),
                route: deed.route(id),
                key,
            },
            fingerprint: deed.fingerprint(),
        });
        let _ticket = match self.answers.enter(call.as_ref()).await? {
            Begin::Answered(given) => return Ok(given),
            Begin::Busy => return Err(ActError::InProgress),
            Begin::Free(ticket) => ticket,
        };
        retry_lost_races(|| self.act_once(who, id, call.as_ref(), deed, render)).await
    }

    async fn act_once(
        &self,
        who: &Tenant,
        id: SessionId,
        call: Option<&IdempotentRequest>,
        deed: &ActionRequest,
        render: &Render<'_, ActionResult>,
    ) -> Result<IdempotentResponse, ActError> {
        let mut tx = self.sessions.store.gate_begin(deed.name()).await?;
        let kept = self.answers.lock(tx.as_mut(), call).await?;
        let session = tx.session_lock(who, id).await?.ok_or(ActError::NotFound)?;
        let now = tx.now().await?;
        if let Some(call) = call
            && let Some(given) = self.answers.given(call, kept.as_ref(), now)?
        {
            return Ok(given);
        }
        let refid = RefId::new(who.mode, now, self.sessions.entropy.as_ref());
        let act = match deed {
            ActionRequest::Cancel => SessionAction::Cancel,
            ActionRequest::Complete => SessionAction::Complete(refid),
            ActionRequest::Fail { .. } => SessionAction::Fail,
        };
        let moved = self.sessions.act(tx.as_mut(), who, session, act, now);
        let moved = moved.await?;
        if let Some(refused) = moved.refused {
            if moved.changed {
                tx.commit().await?;
            }
            return Err(refused.into());
        }
        let session = moved.session;
        if let Some(state) = deed.transaction(now) {
            let transaction = Transaction::of_session(&session, refid, state, now);
            tx.transaction_insert(who, &transaction).await?;
        }
        let intent = deed.intent(who.mode, refid);
        let answer = render(&ActionResult { session, intent }).map_err(ResponseStoreError::from)?;
        self.answers
            .keep(tx.as_mut(), call, kept.as_ref(), &answer, now)
            .await?;
        tx.commit().await?;
        Ok(IdempotentResponse::Fresh(answer))
    }
}
