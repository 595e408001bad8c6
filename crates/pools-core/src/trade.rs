//! Trades: what has become of an executed quote.
//!
//! A trade is made `reserved` and moves only by what the engine reports to a status poll. Every
//! pair of state and report is decided in [`Trade::advance`].

use kernel::{Amount, Id, IdKind, Mid, Timestamp};

use crate::engine::EngineName;
use crate::ledger::{AccountKind, Reason, Transfer, TransferRole};
use crate::quote::{QuoteId, Side, Terms};

/// Names a trade.
#[derive(Debug)]
pub enum TradeIdKind {}

impl IdKind for TradeIdKind {
    const PREFIX: &'static str = "txn";
}

/// `txn_<mode>_<ULID>`: the trade's id on the wire (`transactId`), also the list cursor.
pub type TradeId = Id<TradeIdKind>;

/// A trade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trade {
    /// Its id; the engine knows it by this name too.
    pub id: TradeId,
    /// The quote it executed.
    pub quote: QuoteId,
    /// Everything the quote locked.
    pub terms: Terms,
    /// The engine that holds it; `None` on trades from before that was recorded.
    pub engine: Option<EngineName>,
    /// What was reserved on the partner's account: the fiat leg of a purchase under the balance
    /// gate, the crypto leg of a sale, nothing for a purchase without the gate.
    pub reserved: Option<Amount>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Where it stands.
    pub state: TradeState,
    /// How often a status poll has asked the engine about it.
    pub attempts: u32,
    /// The poll that is asking the engine right now.
    pub lease: Option<Lease>,
}

/// A poll's claim on a trade while it asks the engine outside any transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The claimant's random token: only its holder may apply the answer.
    pub token: u64,
    /// From this instant on another poll may claim the trade.
    pub until: Timestamp,
}

/// The state of a trade with the facts that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TradeState {
    /// Value is reserved; the engine is at work.
    Reserved,
    /// Delivered or paid out.
    Settled(Settlement),
    /// The engine gave the reservation back before attempting anything.
    Released {
        /// When the answer was applied.
        at: Timestamp,
    },
    /// The engine attempted and could not.
    Failed {
        /// When the answer was applied.
        at: Timestamp,
    },
    /// Settled, then reversed downstream and refunded.
    Returned {
        /// The settlement that was reversed.
        settlement: Settlement,
        /// When the refund was credited.
        at: Timestamp,
    },
}

/// When and under which reference a trade settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// When; it never changes.
    pub at: Timestamp,
    /// The engine's opaque fill reference; `unknown:<transactId>` if the engine reported the return
    /// of an unseen delivery without one.
    pub fill: String,
    /// The rate at which the engine filled the trade, if it has reported one.
    pub rate: Option<Mid>,
}

/// What the engine says of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fill {
    /// Its opaque reference.
    pub reference: String,
    /// The rate at which the trade was filled, in units of the pool's crypto per unit of its fiat, if
    /// the engine tells.
    pub rate: Option<Mid>,
}

impl From<String> for Fill {
    fn from(reference: String) -> Self {
        Self {
            reference,
            rate: None,
        }
    }
}

impl From<&str> for Fill {
    fn from(reference: &str) -> Self {
        reference.to_owned().into()
    }
}

/// A trade's status as a partner reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TradeStatus {
    /// Value is reserved.
    Reserved,
    /// Delivered or paid out.
    Settled,
    /// Given back unattempted.
    Released,
    /// Attempted in vain.
    Failed,
    /// Settled, then refunded.
    Returned,
}

impl TradeStatus {
    /// Every stored status.
    pub const ALL: [Self; 5] = [
        Self::Reserved,
        Self::Settled,
        Self::Released,
        Self::Failed,
        Self::Returned,
    ];

    /// The word on the wire and in rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Settled => "settled",
            Self::Released => "released",
            Self::Failed => "failed",
            Self::Returned => "returned",
        }
    }

    /// Reads the word written by [`TradeStatus::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// What the engine says about a trade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineReport {
    /// Still at work.
    InProgress,
    /// Delivered or paid out.
    Delivered(Fill),
    /// Attempted, and it cannot complete.
    CannotComplete,
    /// The hold was given back, or has lapsed, before anything was attempted.
    LetGo,
    /// What was delivered has been reversed downstream, with the fill's reference if the engine
    /// names it.
    Reversed(Option<String>),
}

/// The engine's report contradicts the settlement that it reported before. The trade stays settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the engine reports trade {trade} {report} although the trade is settled")]
pub struct Contradiction {
    /// The settled trade.
    pub trade: TradeId,
    /// What the engine reports of it.
    pub report: &'static str,
}

/// One step of a trade, as data: its next state, the transfer that goes with it and the event it
/// emits. The use case applies all of it in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The next state.
    pub state: TradeState,
    /// The value it moves; `None` where nothing was reserved.
    pub transfer: Option<(Transfer, TransferRole)>,
    /// The event it emits; a return emits none.
    pub event: Option<TradeEvent>,
    /// Does the trade stop counting for velocity?
    pub uncounts: bool,
}

impl Step {
    /// When the step's state is reached.
    #[must_use]
    pub const fn reached_at(&self, before: &Trade) -> Timestamp {
        match &self.state {
            TradeState::Reserved => before.created_at,
            TradeState::Settled(Settlement { at, .. })
            | TradeState::Released { at }
            | TradeState::Failed { at }
            | TradeState::Returned { at, .. } => *at,
        }
    }
}

/// The events of terminal trades.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TradeEvent {
    /// `pool.transaction.settled`
    Settled,
    /// `pool.transaction.failed`
    Failed,
    /// `pool.transaction.released`
    Released,
}

impl TradeEvent {
    /// The event's type on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Settled => "pool.transaction.settled",
            Self::Failed => "pool.transaction.failed",
            Self::Released => "pool.transaction.released",
        }
    }
}

impl TradeState {
    /// The status a partner reads.
    #[must_use]
    pub const fn status(&self) -> TradeStatus {
        match self {
            Self::Reserved => TradeStatus::Reserved,
            Self::Settled(_) => TradeStatus::Settled,
            Self::Released { .. } => TradeStatus::Released,
            Self::Failed { .. } => TradeStatus::Failed,
            Self::Returned { .. } => TradeStatus::Returned,
        }
    }

    /// The settlement, also of a trade returned since.
    #[must_use]
    pub const fn settlement(&self) -> Option<&Settlement> {
        match self {
            Self::Settled(settlement) | Self::Returned { settlement, .. } => Some(settlement),
            Self::Reserved | Self::Released { .. } | Self::Failed { .. } => None,
        }
    }
}

impl Trade {
    /// Every step that a report takes the trade, in order; none if it changes nothing.
    ///
    /// A return that is reported of a reserved trade takes two: the trade settles, then it returns.
    ///
    /// # Errors
    /// [`Contradiction`]
    pub fn steps(&self, report: &EngineReport, now: Timestamp) -> Result<Vec<Step>, Contradiction> {
        let mut trade = self.clone();
        let mut steps = Vec::new();
        while let Some(step) = trade.advance(report.clone(), now)? {
            trade.state = step.state.clone();
            steps.push(step);
        }
        Ok(steps)
    }

    /// Every pair of state and report is decided here; see `docs/state-machines.md`, table Trade.
    /// `None` leaves the trade as it is: a report that has been applied already changes nothing.
    /// [`Trade::steps`] applies a report until it changes nothing more.
    ///
    /// # Errors
    /// [`Contradiction`] if the report contradicts the trade's settlement.
    pub fn advance(
        &self,
        report: EngineReport,
        now: Timestamp,
    ) -> Result<Option<Step>, Contradiction> {
        use EngineReport as R;
        use TradeState as S;
        Ok(match (&self.state, report) {
            (S::Reserved, R::InProgress) => None,
            (S::Reserved, R::Delivered(fill)) => Some(self.settle(fill, now)),
            (S::Reserved, R::CannotComplete) => {
                Some(self.give_back(S::Failed { at: now }, TradeEvent::Failed))
            }
            (S::Reserved, R::LetGo) => {
                Some(self.give_back(S::Released { at: now }, TradeEvent::Released))
            }
            (S::Reserved, R::Reversed(fill)) => {
                Some(self.settle(fill.unwrap_or_else(|| self.unknown_fill()).into(), now))
            }
            (S::Settled(settlement), R::Reversed(_)) => Some(self.refund(settlement, now)),
            (S::Settled(settlement), R::Delivered(fill)) if fill.reference != settlement.fill => {
                return Err(self.contradiction("delivered under another fill id"));
            }
            (S::Settled(_), R::CannotComplete) => return Err(self.contradiction("failed")),
            (S::Settled(_), R::LetGo) => return Err(self.contradiction("released")),
            (S::Settled(_), R::InProgress | R::Delivered(_)) => None,
            (S::Released { .. } | S::Failed { .. } | S::Returned { .. }, _) => None,
        })
    }

    /// May an engine be asked about the trade? Only the engine that holds it; a trade that names none
    /// is held by the configured one.
    #[must_use]
    pub fn is_held_by(&self, engine: &EngineName) -> bool {
        self.engine.as_ref().is_none_or(|own| own == engine)
    }

    const fn contradiction(&self, report: &'static str) -> Contradiction {
        Contradiction {
            trade: self.id,
            report,
        }
    }

    /// The fill reference of a trade whose return is reported without one.
    fn unknown_fill(&self) -> String {
        format!("unknown:{}", self.id)
    }

    /// The transfer that made the trade: partner to reserved.
    #[must_use]
    pub fn reserve_transfer(&self) -> Option<Transfer> {
        let reason = match self.terms.side {
            Side::OnRamp => Reason::BuyDebit,
            Side::OffRamp => Reason::SellDebit,
        };
        self.reserved.map(|amount| Transfer {
            debit: AccountKind::Partner,
            credit: AccountKind::Reserved,
            amount,
            reason,
        })
    }

    /// What a return credits: a purchase's reserve, if there was one; the fiat leg of a sale,
    /// with or without the balance gate.
    #[must_use]
    pub const fn return_amount(&self) -> Option<Amount> {
        match self.terms.side {
            Side::OnRamp => self.reserved,
            Side::OffRamp => Some(self.terms.fiat),
        }
    }

    fn settle(&self, fill: Fill, now: Timestamp) -> Step {
        let transfer = self.reserved.map(|amount| {
            let transfer = Transfer {
                debit: AccountKind::Reserved,
                credit: AccountKind::Operator,
                amount,
                reason: Reason::Settlement,
            };
            (transfer, TransferRole::Close)
        });
        let state = TradeState::Settled(Settlement {
            at: now,
            fill: fill.reference,
            rate: fill.rate,
        });
        Step {
            state,
            transfer,
            event: Some(TradeEvent::Settled),
            uncounts: false,
        }
    }

    fn give_back(&self, state: TradeState, event: TradeEvent) -> Step {
        let reason = match self.terms.side {
            Side::OnRamp => Reason::BuyRefund,
            Side::OffRamp => Reason::SellRefund,
        };
        let transfer = self.reserved.map(|amount| {
            let transfer = Transfer {
                debit: AccountKind::Reserved,
                credit: AccountKind::Partner,
                amount,
                reason,
            };
            (transfer, TransferRole::Close)
        });
        Step {
            state,
            transfer,
            event: Some(event),
            uncounts: true,
        }
    }

    fn refund(&self, settlement: &Settlement, now: Timestamp) -> Step {
        let transfer = self.return_amount().map(|amount| {
            let transfer = Transfer {
                debit: AccountKind::Operator,
                credit: AccountKind::Partner,
                amount,
                reason: Reason::BuyRefund,
            };
            (transfer, TransferRole::Return)
        });
        let state = TradeState::Returned {
            settlement: settlement.clone(),
            at: now,
        };
        Step {
            state,
            transfer,
            event: None,
            uncounts: false,
        }
    }
}
