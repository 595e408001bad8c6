//! Sessions: one amount that a user pays or receives through the hosted flow.
//!
//! A session starts `open` and ends once: completed, cancelled or expired. The first action after the deadline
//! applies the expiry, so every action goes through [`Session::advance`].

use kernel::rates::Side;
use kernel::{Amount, Asset, Id, Timestamp};

use crate::amount::SessionAmount;
use crate::embed::SessionToken;
use crate::object::JsonObject;
use crate::secret::SecretHash;
use crate::transaction::RefId;

kernel::id_kind!(SessionIdKind, "gs");

/// `gs_<mode>_<ULID>`: the session's id, also the list cursor.
pub type SessionId = Id<SessionIdKind>;

/// Maximum valid tokens of a session.
const MAX_TOKENS: u32 = 10;

kernel::closed_list! {
    /// The flow that a session's widget is locked to, or the action of a transaction.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Flow {
        /// The user buys crypto.
        OnRamp = "on_ramp",
        /// The user sells crypto.
        OffRamp = "off_ramp",
        /// The user exchanges one asset for another.
        Swap = "swap",
    }
}

impl From<Side> for Flow {
    fn from(side: Side) -> Self {
        match side {
            Side::OnRamp => Self::OnRamp,
            Side::OffRamp => Self::OffRamp,
        }
    }
}

/// The terms of a session. They never change after its creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    pub amount: SessionAmount,
    pub currency: Asset,
    /// The URL after success.
    pub return_url: String,
    /// The URL after the user cancels.
    pub cancel_url: Option<String>,
    /// The asset, in upper case.
    pub target_token: Option<String>,
    /// The chain, in upper case.
    pub target_network: Option<String>,
    /// The flow the widget is locked to; `None`: the open widget.
    pub flow: Option<Flow>,
    /// The destination that the widget shows first. The flow validates it when it knows the network.
    pub wallet_address: Option<String>,
    /// The partner's own id of the user.
    pub user_reference: Option<String>,
    /// The partner's own data.
    pub metadata: JsonObject,
}

impl Terms {
    /// The amount in the session's currency; `None` if it has more digits than the currency.
    #[must_use]
    pub fn fiat(&self) -> Option<Amount> {
        let units = i64::try_from(self.amount.units()).ok()?;
        Amount::from_units(units, self.currency)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub id: SessionId,
    pub terms: Terms,
    /// The hash of its client secret.
    pub secret: SecretHash,
    /// Whether a trusted partner has verified the user.
    pub kyc_pre_verified: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it expires. It is open while `now < expires_at`, unless a payment is in progress.
    pub expires_at: Timestamp,
    pub state: SessionState,
    /// Whether a payment of the session is in progress. Then only that payment ends the session, and expiry waits for it. A
    /// store derives this from the rail records.
    pub payment_in_progress: bool,
    /// How many embed tokens were made for the session. No response shows it.
    pub tokens_made: u32,
}

/// The stored state of a session, with its facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// The user may pay, or the deadline has passed and no action has applied the expiry.
    Open,
    /// Paid.
    Completed {
        /// When.
        at: Timestamp,
        /// The transaction that paid.
        refid: RefId,
    },
    /// Cancelled by the partner.
    Cancelled {
        /// When.
        at: Timestamp,
    },
    Expired {
        /// When the expiry was applied.
        at: Timestamp,
    },
}

kernel::closed_list! {
    /// The status of a session, as a partner reads it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum SessionStatus {
        /// The user may pay.
        Open = "open",
        /// Paid.
        Completed = "completed",
        Expired = "expired",
        Cancelled = "cancelled",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionAction {
    /// A read, which changes only an overdue session.
    Touch,
    /// A test payment that fails. The session stays open.
    Fail,
    /// A rail starts to pay the session.
    Pay,
    /// The partner cancels the session.
    Cancel,
    /// A test payment completes the session with this transaction.
    Complete(RefId),
    /// The payment of the rail has settled with this transaction.
    Settle(RefId),
}

/// Why an action on a session was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionRefusal {
    /// The session has ended.
    #[error(transparent)]
    NotOpen(#[from] NotOpen),
    /// A payment of the session is in progress.
    #[error("a payment of the session is in progress")]
    PaymentInProgress,
}

/// The session is not open, and the action needs an open session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session is {}", .0.as_str())]
pub struct NotOpen(pub SessionStatus);

kernel::closed_list! {
    /// The types of session events.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum SessionEvent {
        Created = "gate_session.created",
        KycPackageAccepted = "gate_session.kyc_package_accepted",
        Completed = "gate_session.completed",
        Cancelled = "gate_session.cancelled",
        Expired = "gate_session.expired",
    }
}

/// One step of a session, as data: its next state and its event. The use case applies both in one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The next state.
    pub state: SessionState,
    /// The event of the step.
    pub event: SessionEvent,
}

/// The decision about an action. An action that meets a due expiry has both fields: the refusal, and the step that
/// expires the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionDecision {
    /// The step to apply; `None` leaves the session unchanged.
    pub step: Option<Step>,
    /// Why the action was refused.
    pub refused: Option<SessionRefusal>,
}

impl SessionState {
    /// The state for a stored status and its facts: the instants of completion, cancellation and expiry, and the
    /// transaction. `None` if they do not match.
    #[must_use]
    pub const fn stored(
        status: SessionStatus,
        ended: [Option<Timestamp>; 3],
        paid: Option<RefId>,
    ) -> Option<Self> {
        match (status, ended, paid) {
            (SessionStatus::Open, [None, None, None], None) => Some(Self::Open),
            (SessionStatus::Completed, [Some(at), None, None], Some(refid)) => {
                Some(Self::Completed { at, refid })
            }
            (SessionStatus::Cancelled, [None, Some(at), None], None) => {
                Some(Self::Cancelled { at })
            }
            (SessionStatus::Expired, [None, None, Some(at)], None) => Some(Self::Expired { at }),
            _ => None,
        }
    }

    /// The transaction that completed the session.
    #[must_use]
    pub const fn refid(&self) -> Option<RefId> {
        match self {
            Self::Completed { refid, .. } => Some(*refid),
            Self::Open | Self::Cancelled { .. } | Self::Expired { .. } => None,
        }
    }

    /// The stored instants of completion, cancellation and expiry. At most one is present.
    #[must_use]
    pub const fn ended(&self) -> [Option<Timestamp>; 3] {
        match *self {
            Self::Open => [None, None, None],
            Self::Completed { at, .. } => [Some(at), None, None],
            Self::Cancelled { at } => [None, Some(at), None],
            Self::Expired { at } => [None, None, Some(at)],
        }
    }

    /// The transaction that paid the session.
    #[must_use]
    pub const fn paid(&self) -> Option<RefId> {
        match *self {
            Self::Completed { refid, .. } => Some(refid),
            Self::Open | Self::Cancelled { .. } | Self::Expired { .. } => None,
        }
    }

    /// The status of the state.
    #[must_use]
    pub const fn status(&self) -> SessionStatus {
        match self {
            Self::Open => SessionStatus::Open,
            Self::Completed { .. } => SessionStatus::Completed,
            Self::Cancelled { .. } => SessionStatus::Cancelled,
            Self::Expired { .. } => SessionStatus::Expired,
        }
    }
}

impl Session {
    /// Whether expiry is due and not yet applied. A payment in progress postpones expiry.
    #[must_use]
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.state == SessionState::Open && self.is_late(now) && !self.payment_in_progress
    }

    fn is_late(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }

    /// Whether a token of the session is one of the newest, and so still counts.
    #[must_use]
    pub const fn admits(&self, token: SessionToken) -> bool {
        token.number.saturating_add(MAX_TOKENS) > self.tokens_made
    }

    /// The session's newest token.
    #[must_use]
    pub const fn newest_token(&self) -> SessionToken {
        SessionToken {
            session: self.id,
            number: self.tokens_made,
        }
    }

    /// The session with one more token.
    #[must_use]
    pub fn with_token(self) -> Self {
        Self {
            tokens_made: self.tokens_made.saturating_add(1),
            ..self
        }
    }

    /// The decision for every pair of state and action, expiry first; see `docs/state-machines.md`, table Session.
    #[must_use]
    pub fn advance(&self, act: SessionAction, now: Timestamp) -> ActionDecision {
        use {SessionAction as A, SessionState as S};
        if self.is_overdue(now) {
            return ActionDecision {
                step: Some(step(S::Expired { at: now }, SessionEvent::Expired)),
                refused: refused(act, SessionStatus::Expired),
            };
        }
        match (&self.state, act) {
            (S::Open, A::Touch) => ActionDecision::stays(None),
            (S::Open, A::Settle(refid)) => ActionDecision::moves(completed(now, refid)),
            (S::Open, A::Cancel | A::Complete(_) | A::Fail | A::Pay)
                if self.payment_in_progress =>
            {
                ActionDecision::stays(Some(SessionRefusal::PaymentInProgress))
            }
            (S::Open, A::Fail | A::Pay) => ActionDecision::stays(None),
            (S::Open, A::Cancel) => {
                ActionDecision::moves(step(S::Cancelled { at: now }, SessionEvent::Cancelled))
            }
            (S::Open, A::Complete(refid)) => ActionDecision::moves(completed(now, refid)),
            (S::Completed { .. } | S::Cancelled { .. } | S::Expired { .. }, act) => {
                ActionDecision::stays(refused(act, self.state.status()))
            }
        }
    }

    /// The session after a step.
    #[must_use]
    pub fn after(self, step: &Step) -> Self {
        Self {
            state: step.state,
            ..self
        }
    }
}

impl ActionDecision {
    const fn stays(refused: Option<SessionRefusal>) -> Self {
        Self {
            step: None,
            refused,
        }
    }

    const fn moves(step: Step) -> Self {
        Self {
            step: Some(step),
            refused: None,
        }
    }
}

const fn step(state: SessionState, event: SessionEvent) -> Step {
    Step { state, event }
}

const fn completed(at: Timestamp, refid: RefId) -> Step {
    step(
        SessionState::Completed { at, refid },
        SessionEvent::Completed,
    )
}

/// The refusal of an action on a session that has ended. Only `Touch` is allowed.
const fn refused(act: SessionAction, status: SessionStatus) -> Option<SessionRefusal> {
    match act {
        SessionAction::Touch => None,
        SessionAction::Fail
        | SessionAction::Pay
        | SessionAction::Cancel
        | SessionAction::Complete(_)
        | SessionAction::Settle(_) => Some(SessionRefusal::NotOpen(NotOpen(status))),
    }
}
