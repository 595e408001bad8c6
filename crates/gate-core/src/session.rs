//! Sessions: one amount a user is to pay or be paid through the hosted flow.
//!
//! A session is made `open` and ends once: completed, cancelled or expired. Expiry is applied by
//! whoever meets it first, so every use of a session goes through [`Session::advance`].

use kernel::{Asset, Id, IdKind, Timestamp};

use crate::amount::SessionAmount;
use crate::object::JsonObject;
use crate::secret::SecretHash;
use crate::transaction::RefId;

/// Names a session.
#[derive(Debug)]
pub enum SessionIdKind {}

impl IdKind for SessionIdKind {
    const PREFIX: &'static str = "gs";
}

/// `gs_<mode>_<ULID>`: the session's id, also the list cursor.
pub type SessionId = Id<SessionIdKind>;

/// What a session's widget is locked to, and what a transaction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The user buys.
    OnRamp,
    /// The user sells.
    OffRamp,
    /// The user exchanges one asset for another.
    Swap,
}

impl Flow {
    /// Every flow.
    pub const ALL: [Self; 3] = [Self::OnRamp, Self::OffRamp, Self::Swap];

    /// The word on the wire and in rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OnRamp => "on_ramp",
            Self::OffRamp => "off_ramp",
            Self::Swap => "swap",
        }
    }

    /// Reads the word written by [`Flow::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flow| flow.as_str() == text)
    }
}

/// Everything a create has bound. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// The amount.
    pub amount: SessionAmount,
    /// Its currency.
    pub currency: Asset,
    /// Where the user is led after success.
    pub return_url: String,
    /// Where the user is led after giving up.
    pub cancel_url: Option<String>,
    /// The asset, in upper case.
    pub target_token: Option<String>,
    /// The chain, in upper case.
    pub target_network: Option<String>,
    /// The flow the widget is locked to; `None`: the open widget.
    pub flow: Option<Flow>,
    /// The destination, pre-filled; judged when the flow knows its network.
    pub wallet_address: Option<String>,
    /// The partner's own name for its user.
    pub user_reference: Option<String>,
    /// The partner's own data.
    pub metadata: JsonObject,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// What it is bound to.
    pub terms: Terms,
    /// What its client secret is compared by.
    pub secret: SecretHash,
    /// Has a trusted partner verified the user?
    pub kyc_pre_verified: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// From this instant on it is not open.
    pub expires_at: Timestamp,
    /// Where it stands.
    pub state: SessionState,
    /// Does a rail record of the session still move its money? Then only that record ends the
    /// session, and expiry waits for it. A store derives this from the rail records.
    pub payment_in_progress: bool,
}

/// The state of a session with the facts that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// The user may pay, or nobody has noticed yet that it is too late.
    Open,
    /// Paid.
    Completed {
        /// When.
        at: Timestamp,
        /// The transaction that paid.
        refid: RefId,
    },
    /// Called off by the partner.
    Cancelled {
        /// When.
        at: Timestamp,
    },
    /// Its time is over.
    Expired {
        /// When that was noticed.
        at: Timestamp,
    },
}

/// A session's status as a partner reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStatus {
    /// The user may pay.
    Open,
    /// Paid.
    Completed,
    /// Its time is over.
    Expired,
    /// Called off.
    Cancelled,
}

impl SessionStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Open, Self::Completed, Self::Expired, Self::Cancelled];

    /// The word on the wire and in rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Completed => "completed",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads the word written by [`SessionStatus::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// What can be done with a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionAction {
    /// Somebody reads it.
    Touch,
    /// The sandbox's attempt to pay that fails: the session stays open.
    Fail,
    /// A rail begins to pay it.
    Pay,
    /// The partner calls it off.
    Cancel,
    /// The sandbox pays it by this transaction.
    Complete(RefId),
    /// The rail's payment has settled, by this transaction.
    Settle(RefId),
}

/// Why an act on a session was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionRefusal {
    /// The session has ended.
    #[error(transparent)]
    NotOpen(#[from] NotOpen),
    /// A payment of the session is in progress.
    #[error("a payment of the session is in progress")]
    PaymentInProgress,
}

/// The session is not open, and what was wanted needs an open one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session is {}", .0.as_str())]
pub struct NotOpen(pub SessionStatus);

/// The events of a session's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEvent {
    /// `gate_session.created`
    Created,
    /// `gate_session.kyc_package_accepted`
    KycPackageAccepted,
    /// `gate_session.completed`
    Completed,
    /// `gate_session.cancelled`
    Cancelled,
    /// `gate_session.expired`
    Expired,
}

impl SessionEvent {
    /// The event's type on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "gate_session.created",
            Self::KycPackageAccepted => "gate_session.kyc_package_accepted",
            Self::Completed => "gate_session.completed",
            Self::Cancelled => "gate_session.cancelled",
            Self::Expired => "gate_session.expired",
        }
    }
}

/// One step of a session, as data: its next state and the event it emits. The use case applies
/// both in one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The next state.
    pub state: SessionState,
    /// The event it emits.
    pub event: SessionEvent,
}

/// What an act comes to. Both may be there: an act that meets an expiry is refused, and the expiry
/// is applied all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionDecision {
    /// The step to be applied; `None` leaves the session as it is.
    pub step: Option<Step>,
    /// Why what was wanted did not happen.
    pub refused: Option<SessionRefusal>,
}

impl SessionState {
    /// The state of a status with the facts stored beside it: when it was completed, cancelled and
    /// expired, and what paid it. `None` where they do not belong together.
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

    /// When it was completed, cancelled and expired, as it is stored; at most one of them.
    #[must_use]
    pub const fn ended(&self) -> [Option<Timestamp>; 3] {
        match *self {
            Self::Open => [None, None, None],
            Self::Completed { at, .. } => [Some(at), None, None],
            Self::Cancelled { at } => [None, Some(at), None],
            Self::Expired { at } => [None, None, Some(at)],
        }
    }

    /// What paid it.
    #[must_use]
    pub const fn paid(&self) -> Option<RefId> {
        match *self {
            Self::Completed { refid, .. } => Some(refid),
            Self::Open | Self::Cancelled { .. } | Self::Expired { .. } => None,
        }
    }

    /// The status a partner reads, once expiry has been applied.
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
    /// Is its time over, with nobody having noticed? A payment in progress makes expiry wait.
    #[must_use]
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.state == SessionState::Open && self.is_late(now) && !self.payment_in_progress
    }

    fn is_late(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }

    /// Every pair of state and act is decided here, expiry first; see `docs/state-machines.md`,
    /// table session.
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
            (S::Open, A::Cancel | A::Complete(_) | A::Pay) if self.payment_in_progress => {
                ActionDecision::stays(Some(SessionRefusal::PaymentInProgress))
            }
            // Only the payment in progress keeps a late session open: it takes no other attempt.
            (S::Open, A::Fail) if self.is_late(now) => {
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

/// A session in this status can be looked at, and nothing else.
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
