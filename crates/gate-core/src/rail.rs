//! Rail records: a pay-in or a pay-out that redeems a signed quote for the user of a session.
//!
//! A record starts as `processing` and ends once. A rail moves the money, and its reports advance the record. A sent
//! payment cannot be recalled, so a pay-out is never cancelled.

use std::collections::BTreeMap;
use std::fmt;

use kernel::rates::Side;
use kernel::{Entropy, Id, IdKind, Mode, Timestamp};

use crate::session::{Flow, Session, SessionId};
use crate::signed_quote::{QuoteTerms, SignedQuoteId};
use crate::transaction::{RefId, Transaction, TransactionState};

/// The id kind of rail records.
#[derive(Debug)]
pub enum RailIdKind {}

impl IdKind for RailIdKind {
    const PREFIX: &'static str = "rail";
}

/// The direction of the fiat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RailKind {
    /// The user pays fiat.
    PayIn,
    /// The user receives fiat.
    PayOut,
}

impl RailKind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::PayIn, Self::PayOut];

    /// The text on the wire and in rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PayIn => "pay_in",
            Self::PayOut => "pay_out",
        }
    }

    /// The prefix of ids of this kind.
    const fn prefix(self) -> &'static str {
        match self {
            Self::PayIn => "pi",
            Self::PayOut => "po",
        }
    }

    /// The id discriminator of this kind.
    #[must_use]
    pub const fn object(self) -> &'static str {
        match self {
            Self::PayIn => "rail_pay_in",
            Self::PayOut => "rail_pay_out",
        }
    }

    /// Parses the text of [`RailKind::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// The side of the quotes that this kind redeems.
    #[must_use]
    pub const fn side(self) -> Side {
        match self {
            Self::PayIn => Side::OnRamp,
            Self::PayOut => Side::OffRamp,
        }
    }
}

/// `pi_<mode>_<ULID>` or `po_<mode>_<ULID>`.
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

    /// Parses the canonical form of a kind. `None` for any other text; in a path, that is 404.
    #[must_use]
    pub fn parse(kind: RailKind, text: &str) -> Option<Self> {
        let rest = text.strip_prefix(kind.prefix())?;
        let id = Id::parse(&format!("rail{rest}"))?;
        Some(Self::from_parts(kind, id))
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

impl fmt::Debug for RailId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What the payer needs in order to pay: names and texts, as the rail provides them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instructions(pub BTreeMap<String, String>);

/// The status of a rail record, as a partner reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RailStatus {
    /// The rail is processing the payment.
    Processing,
    /// The money has moved.
    Settled,
    /// The rail could not complete the payment.
    Failed,
    /// The payer has not paid.
    Cancelled,
}

impl RailStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [
        Self::Processing,
        Self::Settled,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The text on the wire and in rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Processing => "processing",
            Self::Settled => "settled",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Parses the text of [`RailStatus::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
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
    },
    /// The rail could not complete the payment.
    Failed {
        /// When the report was applied.
        at: Timestamp,
        /// The failure code of the rail.
        code: String,
    },
    /// The payer has not paid.
    Cancelled {
        /// When the report was applied.
        at: Timestamp,
    },
}

impl RailState {
    /// The state for a stored status and its facts. `None` if the facts contradict the status or the kind of record.
    #[must_use]
    pub fn stored(
        kind: RailKind,
        status: RailStatus,
        ended: Option<Timestamp>,
        code: Option<&str>,
    ) -> Option<Self> {
        match (status, ended, code) {
            (RailStatus::Processing, None, None) => Some(Self::Processing),
            (RailStatus::Settled, Some(at), None) => Some(Self::Settled { at }),
            (RailStatus::Failed, Some(at), Some(code)) => Some(Self::Failed {
                at,
                code: code.to_owned(),
            }),
            (RailStatus::Cancelled, Some(at), None) if kind == RailKind::PayIn => {
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
            Self::Settled { at } | Self::Failed { at, .. } | Self::Cancelled { at } => Some(*at),
        }
    }

    /// When the money had moved, if it has.
    #[must_use]
    pub const fn settled_at(&self) -> Option<Timestamp> {
        match self {
            Self::Settled { at } => Some(*at),
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

    /// The state of the record's transaction.
    #[must_use]
    pub const fn transaction(&self) -> TransactionState {
        match self {
            Self::Processing => TransactionState::Processing,
            Self::Settled { at } => TransactionState::Completed { at: *at },
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

/// A rail record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RailRecord {
    /// Its id.
    pub id: RailId,
    /// The quote that it redeemed.
    pub quote: SignedQuoteId,
    /// The terms that the quote locked.
    pub terms: QuoteTerms,
    /// The session it pays.
    pub session: SessionId,
    /// The reference of its transaction.
    pub refid: RefId,
    /// What the payer needs; `None` for a pay-out.
    pub instructions: Option<Instructions>,
    /// When it was made.
    pub created_at: Timestamp,
    /// The state.
    pub state: RailState,
    /// The poll lease.
    pub asking: PollLease,
}

/// The report of a rail about a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RailReport {
    /// The rail is processing the payment.
    InProgress,
    /// The money has moved.
    Settled,
    /// The rail could not complete the payment.
    Failed {
        /// The failure code of the rail.
        code: String,
    },
    /// The payer has not paid.
    Cancelled,
}

/// One step of a record: its next state. The event and the transaction's state follow from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RailStep(pub RailState);

/// The report contradicts the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the rail says that a pay-out was cancelled: money that has left cannot be called back")]
pub struct Contradiction;

/// The session and the quote do not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the quote is not one of the session's {0}")]
pub struct Mismatch(pub &'static str);

impl RailRecord {
    /// The instant of the latest change.
    #[must_use]
    pub fn updated_at(&self) -> Timestamp {
        self.state.ended_at().unwrap_or(self.created_at)
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
            (S::Processing, R::Settled) => Some(RailStep(S::Settled { at: now })),
            (S::Processing, R::Failed { code }) => Some(RailStep(S::Failed {
                at: now,
                code: code.clone(),
            })),
            (S::Processing, R::Cancelled) => match self.id.kind() {
                RailKind::PayIn => Some(RailStep(S::Cancelled { at: now })),
                RailKind::PayOut => return Err(Contradiction),
            },
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

    /// The event type of the record's state.
    #[must_use]
    pub const fn event(&self) -> &'static str {
        match (self.id.kind(), self.state.status()) {
            (RailKind::PayIn, RailStatus::Processing) => "rail.pay_in.processing",
            (RailKind::PayIn, RailStatus::Settled) => "rail.pay_in.settled",
            (RailKind::PayIn, RailStatus::Failed) => "rail.pay_in.failed",
            (RailKind::PayIn, RailStatus::Cancelled) => "rail.pay_in.cancelled",
            (RailKind::PayOut, RailStatus::Processing) => "rail.pay_out.processing",
            (RailKind::PayOut, RailStatus::Settled) => "rail.pay_out.settled",
            // A pay-out is never cancelled.
            (RailKind::PayOut, RailStatus::Failed | RailStatus::Cancelled) => "rail.pay_out.failed",
        }
    }

    /// The transaction of the record, in its current state.
    #[must_use]
    pub fn transaction(&self) -> Transaction {
        let priced = &self.terms.priced;
        Transaction {
            refid: self.refid,
            session: self.session,
            action: flow_of(self.terms.side),
            state: self.state.transaction(),
            token: Some(self.terms.asset().code().to_owned()),
            network: Some(self.terms.network.clone()),
            currency: self.terms.currency().code().to_owned(),
            payment_method: Some(self.terms.payment_method.clone()),
            fiat_amount: Some(priced.fiat.to_string()),
            token_amount: Some(priced.crypto.to_string()),
            exchange_rate: Some(priced.rate.to_string()),
            total_fees: Some(priced.fees.total.to_string()),
            local_rail_transaction_id: Some(self.id.to_string()),
            created_at: self.created_at,
        }
    }
}

/// Whether the session's user is approved. In test mode every user is. In live mode a trusted partner must have
/// verified the user.
#[must_use]
pub const fn user_is_approved(session: &Session, mode: Mode) -> bool {
    match mode {
        Mode::Test => true,
        Mode::Live => session.kyc_pre_verified,
    }
}

/// Checks that a record of this kind may redeem a quote of these terms for the session.
///
/// A field that the session leaves open matches every quote. A session's amount does not name a leg: on a purchase it
/// is the fiat leg, on a sale it is either leg.
///
/// # Errors
/// [`Mismatch`] names the field that differs.
pub fn fits(kind: RailKind, session: &Session, quote: &QuoteTerms) -> Result<(), Mismatch> {
    let terms = &session.terms;
    let priced = &quote.priced;
    let bound = i64::try_from(terms.amount.units()).ok();
    let amount_fits = match quote.side {
        Side::OnRamp => bound == Some(priced.fiat.units()),
        Side::OffRamp => [priced.crypto.units(), priced.fiat.units()]
            .map(Some)
            .contains(&bound),
    };
    let same = |set: &Option<String>, of: &str| {
        let set = set.as_deref();
        set.is_none_or(|set| set.eq_ignore_ascii_case(of))
    };
    let flow_fits = terms.flow.is_none_or(|flow| flow == flow_of(quote.side));
    let checked = [
        (kind.side() == quote.side, "kind of rail"),
        (flow_fits, "flow"),
        (terms.currency == quote.currency(), "currency"),
        (amount_fits, "amount"),
        (same(&terms.target_token, quote.asset().code()), "token"),
        (same(&terms.target_network, &quote.network), "network"),
    ];
    match checked.into_iter().find(|(fits, _)| !fits) {
        Some((_, what)) => Err(Mismatch(what)),
        None => Ok(()),
    }
}

const fn flow_of(side: Side) -> Flow {
    match side {
        Side::OnRamp => Flow::OnRamp,
        Side::OffRamp => Flow::OffRamp,
    }
}
