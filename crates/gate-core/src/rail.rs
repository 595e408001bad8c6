//! Rail records: a pay-in or a pay-out that redeems a signed quote for the user of a session.
//!
//! A record is made `processing` and ends once. A rail moves the money; what it reports moves the
//! record. Money that has left cannot be called back, so a pay-out is never cancelled.

use std::collections::BTreeMap;
use std::fmt;

use kernel::rates::Side;
use kernel::{Entropy, Id, IdKind, Mode, Timestamp};

use crate::session::{Flow, Session, SessionId};
use crate::signed_quote::{QuoteTerms, SignedQuoteId};
use crate::transaction::{RefId, Transaction, TransactionState};

/// Names a rail record.
#[derive(Debug)]
pub enum RailIdKind {}

impl IdKind for RailIdKind {
    const PREFIX: &'static str = "rail";
}

/// Which way the fiat goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RailKind {
    /// The user pays.
    PayIn,
    /// The user is paid.
    PayOut,
}

impl RailKind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::PayIn, Self::PayOut];

    /// The word on the wire and in rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PayIn => "pay_in",
            Self::PayOut => "pay_out",
        }
    }

    /// What an id of it begins with.
    const fn prefix(self) -> &'static str {
        match self {
            Self::PayIn => "pi",
            Self::PayOut => "po",
        }
    }

    /// The discriminator of its records.
    #[must_use]
    pub const fn object(self) -> &'static str {
        match self {
            Self::PayIn => "rail_pay_in",
            Self::PayOut => "rail_pay_out",
        }
    }

    /// Reads the word written by [`RailKind::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// The quotes it redeems.
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

    /// Puts an id together from its parts, as a store does when it reads a row.
    #[must_use]
    pub const fn from_parts(kind: RailKind, id: Id<RailIdKind>) -> Self {
        Self { kind, id }
    }

    /// Reads the canonical form of a kind. Anything else is `None`: in a path that means "not found".
    #[must_use]
    pub fn parse(kind: RailKind, text: &str) -> Option<Self> {
        let rest = text.strip_prefix(kind.prefix())?;
        let id = Id::parse(&format!("rail{rest}"))?;
        Some(Self::from_parts(kind, id))
    }

    /// Which of the two it is.
    #[must_use]
    pub const fn kind(&self) -> RailKind {
        self.kind
    }

    /// The id, unless it is of the other mode: such a one names nothing here.
    #[must_use]
    pub fn in_mode(self, mode: Mode) -> Option<Self> {
        self.id.in_mode(mode).map(|id| Self { id, ..self })
    }

    /// The id behind it: what a store keeps beside the kind.
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

/// What the payer needs in order to pay, in the rail's own words: names and texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instructions(pub BTreeMap<String, String>);

/// A rail record's status as a partner reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RailStatus {
    /// The rail is at work.
    Processing,
    /// The money has moved.
    Settled,
    /// The rail has tried in vain.
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

    /// The word on the wire and in rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Processing => "processing",
            Self::Settled => "settled",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads the word written by [`RailStatus::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// The state of a rail record with the facts that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RailState {
    /// The rail is at work.
    Processing,
    /// The money has moved.
    Settled {
        /// When that was learnt.
        at: Timestamp,
    },
    /// The rail has tried in vain.
    Failed {
        /// When that was learnt.
        at: Timestamp,
        /// Why, in a word.
        code: String,
    },
    /// The payer has not paid.
    Cancelled {
        /// When that was learnt.
        at: Timestamp,
    },
}

impl RailState {
    /// The state of a status with the facts stored beside it. `None` where they do not belong
    /// together, or to the kind of record.
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

    /// When it ended, if it has.
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

    /// Why it has failed, if it has.
    #[must_use]
    pub fn failure_code(&self) -> Option<&str> {
        match self {
            Self::Failed { code, .. } => Some(code),
            Self::Processing | Self::Settled { .. } | Self::Cancelled { .. } => None,
        }
    }

    /// How the record's transaction stands.
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

/// When the rail is asked about a record, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollLease {
    /// How often it has been.
    pub attempts: u32,
    /// Of whoever asks at the moment: only its holder may apply the answer.
    pub token: Option<u64>,
    /// Not before.
    pub next_at: Timestamp,
}

/// A rail record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RailRecord {
    /// Its id.
    pub id: RailId,
    /// The quote it has redeemed.
    pub quote: SignedQuoteId,
    /// What that quote had locked.
    pub terms: QuoteTerms,
    /// The session it pays.
    pub session: SessionId,
    /// Its transaction.
    pub refid: RefId,
    /// What the payer needs; none on a pay-out.
    pub instructions: Option<Instructions>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Where it stands.
    pub state: RailState,
    /// When the rail is asked about it.
    pub asking: PollLease,
}

/// What a rail says of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RailReport {
    /// It is at work.
    InProgress,
    /// The money has moved.
    Settled,
    /// It has tried in vain.
    Failed {
        /// Why, in a word.
        code: String,
    },
    /// The payer has not paid.
    Cancelled,
}

/// One step of a record: its next state. Its event is that of the state, its transaction follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RailStep(pub RailState);

/// A rail says what cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the rail says that a pay-out was cancelled: money that has left cannot be called back")]
pub struct Contradiction;

/// Session and quote do not belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the quote is not one of the session's {0}")]
pub struct Mismatch(pub &'static str);

impl RailRecord {
    /// When something last happened to it.
    #[must_use]
    pub fn updated_at(&self) -> Timestamp {
        self.state.ended_at().unwrap_or(self.created_at)
    }

    /// May the rail be asked about it now?
    #[must_use]
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.state == RailState::Processing && now >= self.asking.next_at
    }

    /// Every pair of state and report is decided here; see `docs/state-machines.md`, table rail
    /// record.
    ///
    /// # Errors
    /// [`Contradiction`].
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

    /// The type of the event of its state.
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

    /// Its transaction, as it stands with it.
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

/// Is the session's user approved? In the sandbox everybody is; else a trusted partner has verified
/// the user.
#[must_use]
pub const fn user_is_approved(session: &Session, mode: Mode) -> bool {
    match mode {
        Mode::Test => true,
        Mode::Live => session.kyc_pre_verified,
    }
}

/// May a quote of these terms be redeemed by this kind of record for the session? What a session
/// leaves open, fits.
///
/// A session's amount is a number without a leg: on a purchase it is what the user pays, on a sale
/// what the user gives (as in a preview) or is paid.
///
/// # Errors
/// [`Mismatch`] names what differs.
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
    let judged = [
        (kind.side() == quote.side, "kind of rail"),
        (flow_fits, "flow"),
        (terms.currency == quote.currency(), "currency"),
        (amount_fits, "amount"),
        (same(&terms.target_token, quote.asset().code()), "token"),
        (same(&terms.target_network, &quote.network), "network"),
    ];
    match judged.into_iter().find(|(fits, _)| !fits) {
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
