//! Actions on an open session: cancel, and in test mode complete and fail.
//!
//! An idempotency key is optional for all three.

use async_trait::async_trait;
use kernel::{Id, Mode, StoreResult, Timestamp};
use partner_core::Tenant;
use partner_core::idempotency::{Fingerprint, OperationKey};
use partner_core::stored_response::{IdempotentRequest, IdempotentResponse, Render};
use serde_json::json;

use super::context::GateContext;
use crate::error::GateError;
use crate::idempotent::{Decision, GateWrite, Idempotent};
use crate::ports::GateTx;
use crate::session::{Session, SessionAction, SessionId, SessionRefusal};
use crate::transaction::{RefId, Transaction, TransactionState};

kernel::id_kind!(IntentIdKind, "int");

/// `int_<mode>_<ULID>`. It shares the ULID with its transaction.
pub type IntentId = Id<IntentIdKind>;

/// The default failure code of an intent.
const DEFAULT_CODE: &str = "provider_declined";

/// The default failure message of an intent.
const DEFAULT_MESSAGE: &str = "The payment was declined (test failure).";

#[derive(Clone)]
pub struct ActOnSession {
    pub context: GateContext,
    /// Runs the write.
    pub idempotent: Idempotent,
}

/// The requested action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionRequest {
    /// Cancel the session.
    Cancel,
    /// Complete the session with a test payment.
    Complete,
    /// Record a failed test payment. The session stays open.
    Fail {
        /// The failure code.
        code: Option<String>,
        /// The failure message.
        message: Option<String>,
    },
}

#[derive(Debug)]
pub struct ActionResult {
    /// The session after the action.
    pub session: Session,
    /// The intent of a failed test payment.
    pub intent: Option<Intent>,
}

/// A failed test payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    pub id: IntentId,
    /// The reference of its transaction.
    pub refid: RefId,
    pub failure_code: String,
    pub failure_message: String,
}

/// Why nothing was changed. The idempotency key stays unused.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// Only a test session can be completed or failed by request.
    #[error("live sessions are neither completed nor failed by hand")]
    LiveMode,
    /// The partner has no such session.
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
        Fingerprint::of_json(&read)
    }

    /// The state of the test payment's transaction; `None` for a cancel.
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
    /// Acts on an open session, or replays the response that is stored under the request's key.
    ///
    /// # Errors
    /// [`ActError`]. A refusal because of a due expiry still commits the expiry (rule `gate.session.lazy-expiry`).
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
        let request = key.map(|key| IdempotentRequest::new(who, key, action.fingerprint()));
        let prepare = async {
            Ok(ActionWrite {
                context: &self.context,
                who,
                id,
                action,
            })
        };
        self.idempotent.run(request, prepare, render).await
    }
}

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

    async fn lock(&self, tx: &mut dyn GateTx) -> StoreResult<Option<Session>> {
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
