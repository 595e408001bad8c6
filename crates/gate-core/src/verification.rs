//! Verification of a session's user: the rule that says when it is needed, and its state machine.
//!
//! A verification is `required` after a payment was refused for it, or after a start without a verifier. It is `pending`
//! after its start at a provider, and ends once, as approved or rejected. A provider carries it out, and its reports advance
//! the verification. Penstock stores no document and no answer of the user: only the provider's reference, the state with its
//! reason, and the times.

pub mod form;

use kernel::{Amount, Asset, Id, Mode, Timestamp, TraceParent, UpstreamName};

use crate::amount::SessionAmount;
use crate::rail::PollLease;
use crate::session::SessionId;

kernel::id_kind!(VerificationIdKind, "ver");

/// `ver_<mode>_<ULID>`.
pub type VerificationId = Id<VerificationIdKind>;

/// When users of a country must be verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerificationRule {
    /// For no amount.
    Never,
    /// For every amount.
    Always,
    /// For every amount greater than this one, and for every amount in another currency.
    Above(Amount),
}

impl VerificationRule {
    /// Whether the rule asks for a verification before this amount is paid.
    #[must_use]
    pub fn applies(&self, amount: &SessionAmount, currency: Asset) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::Above(limit) => {
                let least = u64::try_from(limit.units()).unwrap_or_default();
                limit.asset() != currency || amount.units() > least
            }
        }
    }
}

/// Units of a session's amount in one whole and in a hundredth.
const WHOLE: u64 = 100_000_000;
const HUNDREDTH: u64 = 1_000_000;

/// The verification that an amount asks for in mode test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestVerification {
    /// `.61`: it is approved at once.
    Approved,
    /// `.62`: it is rejected at once.
    Rejected,
    /// `.63`: it is pending for a few seconds, and then approved.
    Delayed,
    /// `.64`: it is pending until the user has decided on the sandbox's page.
    Decided,
}

impl TestVerification {
    /// The verification for the fraction of an amount. The fraction is compared by value with two decimals, so `10.61`
    /// and `10.610` choose the same, and `10.615` chooses none.
    #[must_use]
    pub const fn of(amount: &SessionAmount) -> Option<Self> {
        let fraction = amount.units() % WHOLE;
        if !fraction.is_multiple_of(HUNDREDTH) {
            return None;
        }
        match fraction / HUNDREDTH {
            61 => Some(Self::Approved),
            62 => Some(Self::Rejected),
            63 => Some(Self::Delayed),
            64 => Some(Self::Decided),
            _ => None,
        }
    }
}

/// The facts of a session that decide whether its user must be verified.
#[derive(Debug, Clone, Copy)]
pub struct Need<'s> {
    /// The session's amount.
    pub amount: &'s SessionAmount,
    pub currency: Asset,
    /// Whether a trusted partner has verified the user.
    pub kyc_pre_verified: bool,
}

/// Whether the user of a session without a verification must be verified before a payment. In mode live the country's rule decides. In mode test the
/// amount decides, so that partners can try every outcome.
#[must_use]
pub fn needed(mode: Mode, rule: &VerificationRule, facts: &Need<'_>) -> bool {
    if facts.kyc_pre_verified {
        return false;
    }
    match mode {
        Mode::Test => TestVerification::of(facts.amount).is_some(),
        Mode::Live => rule.applies(facts.amount, facts.currency),
    }
}

kernel::closed_list! {
    /// The status of a session's verification, as the widget reads it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum VerificationStatus {
        /// The user may pay without a verification.
        NotRequired = "not_required",
        /// The user must be verified, and the verification has not started.
        Required = "required",
        /// The verification has started, and the provider has not decided yet.
        Pending = "pending",
        /// The provider approved the user.
        Approved = "approved",
        /// The provider rejected the user.
        Rejected = "rejected",
    }
}

impl VerificationStatus {
    /// The status for the session's verification. Without one, the need of one decides: a user who was asked once
    /// is not exempt because a later request comes from another country.
    #[must_use]
    pub fn shown(needed: bool, verification: Option<&VerificationState>) -> Self {
        match (verification, needed) {
            (Some(state), _) => state.status(),
            (None, true) => Self::Required,
            (None, false) => Self::NotRequired,
        }
    }

    /// Whether the user may pay.
    #[must_use]
    pub const fn allows_payment(self) -> bool {
        match self {
            Self::NotRequired | Self::Approved => true,
            Self::Required | Self::Pending | Self::Rejected => false,
        }
    }
}

/// The state of a verification, with its facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerificationState {
    /// A payment was refused for it, or no verifier is configured. It has not started.
    Required,
    /// It has started, and the provider has not decided yet.
    Pending,
    /// The provider approved the user.
    Approved {
        /// When the report was applied.
        at: Timestamp,
    },
    /// The provider rejected the user.
    Rejected {
        /// When the report was applied.
        at: Timestamp,
        /// The reason of the provider, if it gave one.
        reason: Option<String>,
    },
}

impl VerificationState {
    /// The state for a stored status and its facts. `None` if the facts contradict the status.
    #[must_use]
    pub fn stored(
        status: VerificationStatus,
        ended: Option<Timestamp>,
        reason: Option<&str>,
    ) -> Option<Self> {
        match (status, ended, reason) {
            (VerificationStatus::Required, None, None) => Some(Self::Required),
            (VerificationStatus::Pending, None, None) => Some(Self::Pending),
            (VerificationStatus::Approved, Some(at), None) => Some(Self::Approved { at }),
            (VerificationStatus::Rejected, Some(at), Some(reason)) => Some(Self::Rejected {
                at,
                reason: (!reason.is_empty()).then(|| reason.to_owned()),
            }),
            _ => None,
        }
    }

    /// The status of the state.
    #[must_use]
    pub const fn status(&self) -> VerificationStatus {
        match self {
            Self::Required => VerificationStatus::Required,
            Self::Pending => VerificationStatus::Pending,
            Self::Approved { .. } => VerificationStatus::Approved,
            Self::Rejected { .. } => VerificationStatus::Rejected,
        }
    }

    /// When the verification ended, if it has.
    #[must_use]
    pub const fn ended_at(&self) -> Option<Timestamp> {
        match self {
            Self::Required | Self::Pending => None,
            Self::Approved { at } | Self::Rejected { at, .. } => Some(*at),
        }
    }

    /// The reason of a rejection, if the provider gave one.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Rejected { reason, .. } => reason.as_deref(),
            Self::Required | Self::Pending | Self::Approved { .. } => None,
        }
    }

    /// The reason as [`VerificationState::stored`] takes it: empty for a rejection without one, absent for every other state.
    #[must_use]
    pub fn stored_reason(&self) -> Option<&str> {
        let is_rejected = self.status() == VerificationStatus::Rejected;
        is_rejected.then(|| self.reason().unwrap_or_default())
    }
}

/// The report of a provider about a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerificationReport {
    /// The provider has not decided yet.
    Pending,
    /// The provider approved the user.
    Approved,
    /// The provider rejected the user.
    Rejected {
        /// Why, in words for the user.
        reason: Option<String>,
    },
}

/// A verification of a session's user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    pub id: VerificationId,
    /// The session whose user is verified.
    pub session: SessionId,
    /// The verifier that holds it, and that alone is asked about it; `None` before the start.
    pub verifier: Option<UpstreamName>,
    /// The provider's own reference.
    pub reference: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    pub state: VerificationState,
    /// The poll lease.
    pub asking: PollLease,
    /// The request that started it, for the traces of the verifier's calls.
    pub trace_parent: Option<TraceParent>,
}

/// One step of a verification: its next state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerificationStep(pub VerificationState);

/// The report contradicts the end of the verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the provider reports the opposite of a verification that ended as {}", .0.as_str())]
pub struct Contradiction(pub VerificationStatus);

impl Verification {
    /// The instant of the latest end or creation.
    #[must_use]
    pub fn updated_at(&self) -> Timestamp {
        self.state.ended_at().unwrap_or(self.created_at)
    }

    /// A verification that no one has asked the provider about.
    #[must_use]
    pub const fn new(
        id: VerificationId,
        session: SessionId,
        state: VerificationState,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            session,
            verifier: None,
            reference: None,
            created_at: now,
            state,
            asking: PollLease::first_due(now),
            trace_parent: None,
        }
    }

    /// Whether the next poll is due. The provider does not know a verification that has not started.
    #[must_use]
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.state == VerificationState::Pending && now >= self.asking.next_at
    }

    /// The transition for every pair of state and report; see `docs/state-machines.md`, table Verification.
    ///
    /// # Errors
    /// [`Contradiction`] if a report is the opposite of the end of the verification.
    pub fn advance(
        &self,
        report: &VerificationReport,
        now: Timestamp,
    ) -> Result<Option<VerificationStep>, Contradiction> {
        use {VerificationReport as R, VerificationState as S};
        let next = match (&self.state, report) {
            (S::Required, R::Pending) => S::Pending,
            (S::Required | S::Pending, R::Approved) => S::Approved { at: now },
            (S::Required | S::Pending, R::Rejected { reason }) => S::Rejected {
                at: now,
                reason: reason.clone(),
            },
            (S::Pending | S::Approved { .. } | S::Rejected { .. }, R::Pending)
            | (S::Approved { .. }, R::Approved)
            | (S::Rejected { .. }, R::Rejected { .. }) => return Ok(None),
            (S::Approved { .. }, R::Rejected { .. }) | (S::Rejected { .. }, R::Approved) => {
                return Err(Contradiction(self.state.status()));
            }
        };
        Ok(Some(VerificationStep(next)))
    }

    /// The verification after a step.
    #[must_use]
    pub fn after(self, step: VerificationStep) -> Self {
        Self {
            state: step.0,
            ..self
        }
    }
}
