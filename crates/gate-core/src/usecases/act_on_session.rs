//! Acting on an open session: cancel, and the sandbox's complete and fail.
//!
//! All three take an idempotency key and none needs one.

use async_trait::async_trait;
use kernel::{Id, IdKind, Mode, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::idempotency::{Fingerprint, OperationKey, Scope};
use partner_core::stored_response::{Begin, IdempotentRequest, IdempotentResponse, Render};
use serde_json::json;

use super::expiry::GateContext;
use crate::error::GateError;
use crate::idempotent::{Decision, GateWrite, Idempotent};
use crate::ports::GateTx;
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
    pub context: GateContext,
    /// Runs the write.
    pub idempotent: Idempotent,
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
    /// The use case could not finish.
    #[error(transparent)]
    Failed(#[from] GateError),
}

impl ActionRequest {
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
    /// Acts on an open session, or returns the first response under the request's key.
    ///
    /// # Errors
    /// [`ActError`]. An expiry that was due is applied all the same.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(session.id = %id))]
    pub async fn act(
        &self,
        who: &Tenant,
        id: SessionId,
        key: Option<OperationKey>,
        action: &ActionRequest,
        render: &Render<'_, ActionResult>,
    ) -> Result<IdempotentResponse, ActError> {
        if who.mode == Mode::Live && *action != ActionRequest::Cancel {
            return Err(ActError::LiveMode);
        }
        let id = id.in_mode(who.mode).ok_or(ActError::NotFound)?;
        let request = key.map(|key| IdempotentRequest {
            scope: Scope::of_request(who.clone(), key),
            fingerprint: action.fingerprint(),
        });
        let write = match self.idempotent.begin(request).await? {
            Begin::Replay(response) => return Ok(response),
            Begin::InProgress => return Err(ActError::InProgress),
            Begin::Proceed(write) => write,
        };
        let acting = ActionWrite {
            context: &self.context,
            who,
            id,
            action,
        };
        write.run(&acting, render).await
    }
}

/// The write of an action.
struct ActionWrite<'w> {
    context: &'w GateContext,
    who: &'w Tenant,
    id: SessionId,
    action: &'w ActionRequest,
}

#[async_trait]
impl GateWrite for ActionWrite<'_> {
    type Rows = Option<Session>;
    type Done = ActionResult;
    type Error = ActError;

    fn name(&self) -> &'static str {
        self.action.name()
    }

    async fn lock(&self, tx: &mut dyn GateTx) -> Result<Option<Session>, StoreError> {
        tx.session_lock(self.who, self.id).await
    }

    async fn decide(
        &self,
        tx: &mut dyn GateTx,
        session: Option<Session>,
        now: Timestamp,
    ) -> Result<Decision<ActionResult, ActError>, GateError> {
        let Some(session) = session else {
            return Ok(Decision::Refused(ActError::NotFound));
        };
        let who = self.who;
        let refid = RefId::new(who.mode, now, self.context.entropy.as_ref());
        let action = match self.action {
            ActionRequest::Cancel => SessionAction::Cancel,
            ActionRequest::Complete => SessionAction::Complete(refid),
            ActionRequest::Fail { .. } => SessionAction::Fail,
        };
        let change = self.context.act(tx, who, session, action, now).await?;
        if let Some(refusal) = change.refusal() {
            return Ok(refusal);
        }
        let session = change.session;
        if let Some(state) = self.action.transaction(now) {
            let transaction = Transaction::of_session(&session, refid, state, now);
            tx.transaction_insert(who, &transaction).await?;
        }
        let intent = self.action.intent(who.mode, refid);
        Ok(Decision::Done(ActionResult { session, intent }))
    }
}
