//! Rail records: a pay-in, a pay-out or a swap that redeems a signed quote for the user of a session.
//!
//! A record starts as `processing` and ends once. A rail moves the money, and its reports advance the record. A sent
//! payment cannot be recalled, so a pay-out is never cancelled, except a hosted one: its user may give up before
//! sending the crypto. The same holds for a swap, which is always hosted.

mod fitting;
mod instructions;
mod progress;
mod report;
mod scan;

use std::fmt;
use std::time::Duration;

use kernel::{Entropy, Id, Mode, Timestamp, TraceParent, UpstreamName};
use partner_core::Tenant;
use partner_core::sealing::Sealed;

pub use fitting::{Mismatch, fits, is_for, user_is_approved};
pub use instructions::Instructions;
pub use progress::{
    Contradiction, Finding, OpenItem, Progress, WATCH_AGAIN, WATCH_INTERVAL, WATCHED_FOR,
};
pub use report::{FailureReason, RailAnswer, RailReport, Receipt, Received, Reported};

use crate::events::{SESSION_FAILED, SESSION_PROCESSING};
use crate::session::{Flow, SessionId};
use crate::signed_quote::{QuoteTerms, SignedQuoteId};
use crate::transaction::{RefId, Transaction, TransactionState};

kernel::id_kind!(RailIdKind, "rail");

kernel::closed_list! {
    /// What a rail moves.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum RailKind {
        /// The user pays fiat.
        PayIn = "pay_in",
        /// The user receives fiat.
        PayOut = "pay_out",
        /// The user sends one asset and receives another. Only the widget makes swaps: they are closed to the rail routes,
        /// and no `rail.*` event is sent about them.
        Swap = "swap",
    }
}

impl RailKind {
    /// The prefix of ids of this kind.
    const fn prefix(self) -> &'static str {
        match self {
            Self::PayIn => "pi",
            Self::PayOut => "po",
            Self::Swap => "sw",
        }
    }

    /// The id discriminator of this kind.
    #[must_use]
    pub const fn object(self) -> &'static str {
        match self {
            Self::PayIn => "rail_pay_in",
            Self::PayOut => "rail_pay_out",
            Self::Swap => "rail_swap",
        }
    }

    /// The kind that redeems quotes of a flow.
    #[must_use]
    pub const fn of(flow: Flow) -> Self {
        match flow {
            Flow::OnRamp => Self::PayIn,
            Flow::OffRamp => Self::PayOut,
            Flow::Swap => Self::Swap,
        }
    }
}

/// `pi_<mode>_<ULID>`, `po_<mode>_<ULID>` or `sw_<mode>_<ULID>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RailId {
    kind: RailKind,
    id: Id<RailIdKind>,
}

impl RailId {
    /// Makes a new id at an instant.
    #[must_use]
    pub fn new(kind: RailKind, mode: Mode, at: Timestamp, entropy: &dyn Entropy) -> Self {
        Self::from_parts(kind, Id::new(mode, at, entropy))
    }

    /// Builds an id from the parts in a row.
    #[must_use]
    pub const fn from_parts(kind: RailKind, id: Id<RailIdKind>) -> Self {
        Self { kind, id }
    }

    /// The id of the record of a payment, which has the payment's ULID.
    #[must_use]
    pub const fn of_payment(kind: RailKind, payment: PaymentId) -> Self {
        Self::from_parts(kind, Id::from_parts(payment.mode(), payment.ulid()))
    }

    /// Parses the canonical form of a kind. `None` for any other text; in a path, that is 404.
    #[must_use]
    pub fn parse(kind: RailKind, text: &str) -> Option<Self> {
        let rest = text.strip_prefix(kind.prefix())?;
        let id = Id::parse(&format!("rail{rest}"))?;
        Some(Self::from_parts(kind, id))
    }

    /// Parses the canonical form of any kind.
    #[must_use]
    pub fn parse_any(text: &str) -> Option<Self> {
        let mut kinds = RailKind::ALL.into_iter();
        kinds.find_map(|kind| Self::parse(kind, text))
    }

    /// The kind of the record.
    #[must_use]
    pub const fn kind(&self) -> RailKind {
        self.kind
    }

    /// The id if it belongs to this mode.
    #[must_use]
    pub fn in_mode(self, mode: Mode) -> Option<Self> {
        self.id.in_mode(mode).map(|id| Self { id, ..self })
    }

    /// The inner id, which a store keeps with the kind.
    #[must_use]
    pub const fn id(&self) -> Id<RailIdKind> {
        self.id
    }
}

impl fmt::Display for RailId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = self.kind.prefix();
        write!(f, "{prefix}_{}_{}", self.id.mode(), self.id.ulid())
    }
}

kernel::debug_as_display!(RailId);

kernel::id_kind!(PaymentIdKind, "pay");

/// `pay_<mode>_<ULID>`: a rail record as the widget names it, with the same ULID.
pub type PaymentId = Id<PaymentIdKind>;

/// What a payment has that a user makes in the widget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosted {
    /// Where the rail delivers the asset of a purchase or swap; `None` for a sale.
    pub wallet_address: Option<String>,
    /// Where the rail pays a sale out, sealed for [`payout_place`]. `None` for every other payment, and after its erasure.
    pub payout: Option<Sealed>,
    /// Whether the partner had rails when the payment began. Only then are `rail.*` and `quote.consumed` events sent.
    pub rail_events: bool,
}

/// How long a store keeps the payout account of a payment that has ended.
pub const PAYOUT_KEPT_FOR: Duration = Duration::from_hours(30 * 24);

/// The place that the payout details of a record are sealed for.
#[must_use]
pub fn payout_place(who: &Tenant, id: Id<RailIdKind>) -> String {
    let (mode, partner, ulid) = (who.mode, &who.partner, id.ulid());
    format!("rail_records/{mode}/{partner}/{ulid}/payout")
}

kernel::closed_list! {
    /// The status of a rail record, as a partner reads it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum RailStatus {
        /// The rail is processing the payment.
        Processing = "processing",
        /// The money has moved.
        Settled = "settled",
        /// The rail could not complete the payment.
        Failed = "failed",
        /// The payer has not paid.
        Cancelled = "cancelled",
    }
}

/// The state of a rail record, with its facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RailState {
    /// The rail is processing the payment.
    Processing,
    /// The money has moved.
    Settled {
        /// When the report was applied.
        at: Timestamp,
        /// The rail's reference of the movement, for the operator.
        reference: Option<String>,
    },
    /// The rail could not complete the payment.
    Failed {
        /// When the report was applied.
        at: Timestamp,
        /// The failure code of the rail.
        code: String,
        reason: Option<FailureReason>,
    },
    /// The payer has not paid.
    Cancelled {
        /// When the report was applied.
        at: Timestamp,
    },
}

impl RailState {
    /// The state for a stored status and its facts: the failure code with the reason, and the reference. `None` if the facts
    /// contradict the status, or if the record cannot be cancelled and is.
    #[must_use]
    pub fn stored(
        cancellable: bool,
        status: RailStatus,
        ended: Option<Timestamp>,
        (code, reason, reference): (Option<&str>, Option<FailureReason>, Option<&str>),
    ) -> Option<Self> {
        match (status, ended, code, reason, reference) {
            (RailStatus::Processing, None, None, None, None) => Some(Self::Processing),
            (RailStatus::Settled, Some(at), None, None, reference) => Some(Self::Settled {
                at,
                reference: reference.map(str::to_owned),
            }),
            (RailStatus::Failed, Some(at), Some(code), reason, None) => Some(Self::Failed {
                at,
                code: code.to_owned(),
                reason,
            }),
            (RailStatus::Cancelled, Some(at), None, None, None) if cancellable => {
                Some(Self::Cancelled { at })
            }
            _ => None,
        }
    }

    /// The status a partner reads.
    #[must_use]
    pub const fn status(&self) -> RailStatus {
        match self {
            Self::Processing => RailStatus::Processing,
            Self::Settled { .. } => RailStatus::Settled,
            Self::Failed { .. } => RailStatus::Failed,
            Self::Cancelled { .. } => RailStatus::Cancelled,
        }
    }

    /// When the record ended, if it has.
    #[must_use]
    pub const fn ended_at(&self) -> Option<Timestamp> {
        match self {
            Self::Processing => None,
            Self::Settled { at, .. } | Self::Failed { at, .. } | Self::Cancelled { at } => {
                Some(*at)
            }
        }
    }

    /// When the money had moved, if it has.
    #[must_use]
    pub const fn settled_at(&self) -> Option<Timestamp> {
        match self {
            Self::Settled { at, .. } => Some(*at),
            Self::Processing | Self::Failed { .. } | Self::Cancelled { .. } => None,
        }
    }

    /// The failure code, if the record failed.
    #[must_use]
    pub fn failure_code(&self) -> Option<&str> {
        match self {
            Self::Failed { code, .. } => Some(code),
            Self::Processing | Self::Settled { .. } | Self::Cancelled { .. } => None,
        }
    }

    /// The reason of the failure, if the rail named one.
    #[must_use]
    pub const fn failure_reason(&self) -> Option<FailureReason> {
        match self {
            Self::Failed { reason, .. } => *reason,
            Self::Processing | Self::Settled { .. } | Self::Cancelled { .. } => None,
        }
    }

    /// The rail's reference of the movement, if the money has moved and the rail named one.
    #[must_use]
    pub fn reference(&self) -> Option<&str> {
        match self {
            Self::Settled { reference, .. } => reference.as_deref(),
            Self::Processing | Self::Failed { .. } | Self::Cancelled { .. } => None,
        }
    }

    /// The state of the record's transaction.
    #[must_use]
    pub const fn transaction(&self) -> TransactionState {
        match self {
            Self::Processing => TransactionState::Processing,
            Self::Settled { at, .. } => TransactionState::Completed { at: *at },
            Self::Failed { .. } => TransactionState::Failed,
            Self::Cancelled { .. } => TransactionState::Cancelled,
        }
    }
}

/// The lease of a poll, and the time of the next poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollLease {
    /// Number of polls so far.
    pub attempts: u32,
    /// The lease token of the current poller. Only a poller with this token may apply the rail's report.
    pub token: Option<u64>,
    /// The next poll is due from this instant on.
    pub next_at: Timestamp,
}

impl PollLease {
    /// The lease before the first poll, which is due from an instant on.
    #[must_use]
    pub const fn first_due(next_at: Timestamp) -> Self {
        Self {
            attempts: 0,
            token: None,
            next_at,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RailRecord {
    pub id: RailId,
    /// The quote that it redeemed.
    pub quote: SignedQuoteId,
    /// The terms that the quote locked.
    pub terms: QuoteTerms,
    /// The session it pays.
    pub session: SessionId,
    /// The reference of its transaction.
    pub refid: RefId,
    /// What the payer needs; `None` for a pay-out that is not hosted.
    pub instructions: Option<Instructions>,
    /// Set if the user pays in the widget.
    pub hosted: Option<Hosted>,
    /// The rail that holds it, and that alone is asked about it.
    pub rail: UpstreamName,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when the customer can pay; `None` for a pay-out that is not hosted, which needs no payment.
    pub pay_until: Option<Timestamp>,
    pub state: RailState,
    /// The poll lease.
    pub asking: PollLease,
    /// When the rail first answered that it knows the payment.
    pub acknowledged_at: Option<Timestamp>,
    /// What has arrived, if the rail says so.
    pub received: Option<Received>,
    /// What an operator must look at.
    pub open_item: Option<OpenItem>,
    /// The request that made it, for the traces of the rail's calls.
    pub trace_parent: Option<TraceParent>,
    /// When the rail is asked about the ended record again; `None` while it is processing, and after 30 days.
    pub watch_at: Option<Timestamp>,
}

/// The failure code of a cancelled pay-out on the rail routes.
const USER_CANCELLED: &str = "user_cancelled";

/// One step of a record: its next state. The event and the transaction's state follow from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RailStep(pub RailState);

impl RailRecord {
    /// The record's id in the widget.
    #[must_use]
    pub fn payment_id(&self) -> PaymentId {
        let id = self.id.id();
        PaymentId::from_parts(id.mode(), id.ulid())
    }

    /// The instant of the latest change.
    #[must_use]
    pub fn updated_at(&self) -> Timestamp {
        self.state.ended_at().unwrap_or(self.created_at)
    }

    /// Whether a record of this kind can be cancelled. A sent payment cannot be recalled, so of the payments to a user only a hosted
    /// pay-out and a swap can be cancelled: their user has to send the crypto first.
    #[must_use]
    pub const fn is_cancellable(kind: RailKind, hosted: bool) -> bool {
        match kind {
            RailKind::PayIn => true,
            RailKind::PayOut | RailKind::Swap => hosted,
        }
    }

    /// Whether the partner had rails when the record began: `quote.consumed` is sent, and `rail.*` if the kind has such events.
    #[must_use]
    pub fn has_rail_events(&self) -> bool {
        self.hosted.as_ref().is_none_or(|hosted| hosted.rail_events)
    }

    /// The type of the session's event that reports this state of a payment in the widget. A settlement completes the session, which
    /// has an event of its own.
    #[must_use]
    pub fn session_event(&self) -> Option<&'static str> {
        self.hosted.as_ref()?;
        match self.state {
            RailState::Processing => Some(SESSION_PROCESSING),
            RailState::Failed { .. } => Some(SESSION_FAILED),
            RailState::Settled { .. } | RailState::Cancelled { .. } => None,
        }
    }

    /// The status and the failure code on the rail routes and in rail events, where a pay-out is never cancelled.
    #[must_use]
    pub fn on_rails(&self) -> (RailStatus, Option<&str>) {
        match (self.id.kind(), self.state.status()) {
            (RailKind::PayOut, RailStatus::Cancelled) => (RailStatus::Failed, Some(USER_CANCELLED)),
            (_, status) => (status, self.state.failure_code()),
        }
    }

    /// Whether the customer can no longer pay.
    #[must_use]
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.pay_until.is_some_and(|until| now >= until)
    }

    /// Whether the next poll is due.
    #[must_use]
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.state == RailState::Processing && now >= self.asking.next_at
    }

    /// The transition for every pair of state and report; see `docs/state-machines.md`, table Rail record.
    ///
    /// # Errors
    /// [`Contradiction`] if a report contradicts the record.
    pub fn advance(
        &self,
        report: &RailReport,
        now: Timestamp,
    ) -> Result<Option<RailStep>, Contradiction> {
        use {RailReport as R, RailState as S};
        Ok(match (&self.state, report) {
            (S::Processing, R::InProgress) => None,
            (S::Processing, R::Settled { reference }) => Some(RailStep(S::Settled {
                at: now,
                reference: reference.clone(),
            })),
            (S::Processing, R::Failed { code, reason }) => Some(RailStep(S::Failed {
                at: now,
                code: code.clone(),
                reason: *reason,
            })),
            (S::Processing, R::Returned) => Some(RailStep(progress::came_back(now))),
            (S::Processing, R::Cancelled) => {
                if !Self::is_cancellable(self.id.kind(), self.hosted.is_some()) {
                    return Err(Contradiction::CancelledPayOut);
                }
                Some(RailStep(S::Cancelled { at: now }))
            }
            (S::Settled { .. } | S::Failed { .. } | S::Cancelled { .. }, _) => None,
        })
    }

    /// The record after a step.
    #[must_use]
    pub fn after(self, step: RailStep) -> Self {
        Self {
            state: step.0,
            ..self
        }
    }

    /// The event type of the record's state; `None` if no such event is sent.
    #[must_use]
    pub fn event(&self) -> Option<&'static str> {
        if !self.has_rail_events() {
            return None;
        }
        match (self.id.kind(), self.state.status()) {
            (RailKind::PayIn, RailStatus::Processing) => Some("rail.pay_in.processing"),
            (RailKind::PayIn, RailStatus::Settled) => Some("rail.pay_in.settled"),
            (RailKind::PayIn, RailStatus::Failed) => Some("rail.pay_in.failed"),
            (RailKind::PayIn, RailStatus::Cancelled) => Some("rail.pay_in.cancelled"),
            (RailKind::PayOut, RailStatus::Processing) => Some("rail.pay_out.processing"),
            (RailKind::PayOut, RailStatus::Settled) => Some("rail.pay_out.settled"),
            // On the rail routes, a cancelled pay-out has failed.
            (RailKind::PayOut, RailStatus::Failed | RailStatus::Cancelled) => {
                Some("rail.pay_out.failed")
            }
            (RailKind::Swap, _) => None,
        }
    }

    /// The transaction of the record, in its current state.
    #[must_use]
    pub fn transaction(&self) -> Transaction {
        let priced = &self.terms.priced;
        Transaction {
            refid: self.refid,
            session: self.session,
            action: self.terms.flow(),
            state: self.state.transaction(),
            token: Some(self.terms.asset().code().to_owned()),
            network: Some(self.terms.network.clone()),
            currency: self.terms.currency().code().to_owned(),
            payment_method: self.terms.payment_method().map(str::to_owned),
            fiat_amount: Some(priced.fiat.to_string()),
            token_amount: Some(priced.crypto.to_string()),
            exchange_rate: Some(priced.rate.to_string()),
            total_fees: Some(priced.fees.total.to_string()),
            local_rail_transaction_id: Some(self.id.to_string()),
            created_at: self.created_at,
        }
    }
}
