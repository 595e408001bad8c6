//! Trades: the execution of a quote.
//!
//! A trade starts as `reserved`. Only the engine's report to a status poll changes it. [`Trade::advance`] decides
//! every pair of state and report.

use kernel::{Amount, Id, Mid, Timestamp, UpstreamName};

use crate::ledger::{AccountKind, Reason, Transfer, TransferRole};
use crate::quote::{QuoteId, Side, Terms};

kernel::id_kind!(TradeIdKind, "txn");

/// `txn_<mode>_<ULID>`: the trade's id on the wire (`transactId`), also the list cursor.
pub type TradeId = Id<TradeIdKind>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trade {
    /// The id. The engine receives the same id.
    pub id: TradeId,
    /// The quote it executed.
    pub quote: QuoteId,
    /// The locked terms of the quote.
    pub terms: Terms,
    /// The engine that holds the trade; `None` for trades older than the column.
    pub engine: Option<UpstreamName>,
    /// The amount reserved on the partner's account: the fiat leg of a purchase under the balance gate, the crypto
    /// leg of a sale. `None` for a purchase without the balance gate.
    pub reserved: Option<Amount>,
    /// When it was created.
    pub created_at: Timestamp,
    pub state: TradeState,
    /// The number of status polls that asked the engine about it.
    pub attempts: u32,
    /// The lease of the poll that is asking the engine.
    pub lease: Option<Lease>,
}

/// A poll's claim on a trade while it asks the engine outside any transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The random token of the poll. Only a poll with this token may apply the report.
    pub token: u64,
    /// When the lease expires. From this instant on another poll may claim the trade.
    pub until: Timestamp,
}

/// The state of a trade, with its facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TradeState {
    /// The value is reserved, and the engine is working.
    Reserved,
    /// Delivered or paid out.
    Settled(Settlement),
    /// The engine released the hold before any attempt.
    Released {
        /// When the report was applied.
        at: Timestamp,
    },
    /// The engine attempted the trade and failed.
    Failed {
        /// When the report was applied.
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

/// The settlement of a trade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// When the report was applied. It never changes.
    pub at: Timestamp,
    /// The engine's opaque fill reference. It is `unknown:<transactId>` if the engine reported a return before any
    /// delivery and without a reference.
    pub fill: String,
    /// The rate of the fill, if the engine reported one.
    pub rate: Option<Mid>,
}

/// The engine's report of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fill {
    /// The engine's opaque fill reference.
    pub reference: String,
    /// The rate of the fill, in units of the pool's crypto per unit of its fiat, if the engine reported one.
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

kernel::closed_list! {
    /// The status of a trade, as a partner reads it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum TradeStatus {
        /// The value is reserved.
        Reserved = "reserved",
        /// Delivered or paid out.
        Settled = "settled",
        /// Released before any attempt.
        Released = "released",
        /// The attempt failed.
        Failed = "failed",
        /// Settled, then refunded.
        Returned = "returned",
    }
}

/// The engine's report about a trade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineReport {
    /// The engine is working.
    InProgress,
    /// Delivered or paid out.
    Delivered(Fill),
    /// The attempt failed, and the trade cannot complete.
    CannotComplete,
    /// The hold was released, or lapsed, before any attempt.
    Released,
    /// The delivery was reversed downstream. Contains the fill reference if the engine sent one.
    Reversed(Option<String>),
}

impl EngineReport {
    /// The kind of report, as metrics name it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Delivered(_) => "delivered",
            Self::CannotComplete => "cannot_complete",
            Self::Released => "let_go",
            Self::Reversed(_) => "reversed",
        }
    }
}

/// The report contradicts the settlement that the engine reported before. The trade stays settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the engine reports trade {trade} {report} although the trade is settled")]
pub struct Contradiction {
    /// The settled trade.
    pub trade: TradeId,
    /// What the engine reported.
    pub report: &'static str,
}

/// One step of a trade, as data: its next state, its transfer and its event. The use case applies all of them in one
/// transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The next state.
    pub state: TradeState,
    /// The transfer of the step; `None` if nothing was reserved.
    pub transfer: Option<(Transfer, TransferRole)>,
    /// The event of the step; `None` for a return.
    pub event: Option<TradeEvent>,
    /// Whether the trade stops counting for velocity.
    pub leaves_velocity: bool,
}

impl Step {
    /// The instant of the step's state.
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

kernel::closed_list! {
    /// The types of trade events.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum TradeEvent {
        Settled = "pool.transaction.settled",
        Failed = "pool.transaction.failed",
        Released = "pool.transaction.released",
    }
}

impl TradeState {
    /// The status of the state.
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

    /// The settlement, also after a return.
    #[must_use]
    pub const fn settlement(&self) -> Option<&Settlement> {
        match self {
            Self::Settled(settlement) | Self::Returned { settlement, .. } => Some(settlement),
            Self::Reserved | Self::Released { .. } | Self::Failed { .. } => None,
        }
    }

    /// The instants at which the trade was released, failed and returned, in this order.
    #[must_use]
    pub const fn ends(&self) -> [Option<Timestamp>; 3] {
        match self {
            Self::Reserved | Self::Settled(_) => [None, None, None],
            Self::Released { at } => [Some(*at), None, None],
            Self::Failed { at } => [None, Some(*at), None],
            Self::Returned { at, .. } => [None, None, Some(*at)],
        }
    }
}

impl Trade {
    /// The steps that a report causes, in order; empty if the report changes nothing.
    ///
    /// A return of a reserved trade causes two steps: the trade settles, then it returns (rule
    /// `pools.trade.returned-unseen`).
    ///
    /// # Errors
    /// [`Contradiction`] if the report contradicts the trade's settlement.
    pub fn steps(&self, report: &EngineReport, now: Timestamp) -> Result<Vec<Step>, Contradiction> {
        let mut trade = self.clone();
        let mut steps = Vec::new();
        while let Some(step) = trade.advance(report.clone(), now)? {
            trade.state = step.state.clone();
            steps.push(step);
        }
        Ok(steps)
    }

    /// The transition for every pair of state and report; see `docs/state-machines.md`, table Trade.
    ///
    /// `None` leaves the trade unchanged, for example if the report was applied before. [`Trade::steps`] repeats the
    /// call until it returns `None`.
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
            (S::Reserved, R::Released) => {
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
            (S::Settled(_), R::Released) => return Err(self.contradiction("released")),
            (S::Settled(_), R::InProgress | R::Delivered(_)) => None,
            (S::Released { .. } | S::Failed { .. } | S::Returned { .. }, _) => None,
        })
    }

    /// Whether an engine may be asked about the trade. Only the engine that holds it may. A trade that names no
    /// engine belongs to the configured one.
    #[must_use]
    pub fn is_held_by(&self, engine: &UpstreamName) -> bool {
        self.engine.as_ref().is_none_or(|own| own == engine)
    }

    const fn contradiction(&self, report: &'static str) -> Contradiction {
        Contradiction {
            trade: self.id,
            report,
        }
    }

    /// The fill reference of a return that was reported without one.
    fn unknown_fill(&self) -> String {
        format!("unknown:{}", self.id)
    }

    /// The transfer that creates the trade: partner to reserved.
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

    /// The transfer of a return. A purchase returns its reserve, if there was one; a sale returns its fiat leg, with
    /// or without the balance gate.
    #[must_use]
    pub const fn return_amount(&self) -> Option<Amount> {
        match self.terms.side {
            Side::OnRamp => self.reserved,
            Side::OffRamp => Some(self.terms.fiat),
        }
    }

    fn settle(&self, fill: Fill, now: Timestamp) -> Step {
        let state = TradeState::Settled(Settlement {
            at: now,
            fill: fill.reference,
            rate: fill.rate,
        });
        Step {
            state,
            transfer: self.close(AccountKind::Operator, Reason::Settlement),
            event: Some(TradeEvent::Settled),
            leaves_velocity: false,
        }
    }

    fn give_back(&self, state: TradeState, event: TradeEvent) -> Step {
        let reason = match self.terms.side {
            Side::OnRamp => Reason::BuyRefund,
            Side::OffRamp => Reason::SellRefund,
        };
        Step {
            state,
            transfer: self.close(AccountKind::Partner, reason),
            event: Some(event),
            leaves_velocity: true,
        }
    }

    /// The transfer that ends the reserve; `None` if nothing was reserved.
    fn close(&self, credit: AccountKind, reason: Reason) -> Option<(Transfer, TransferRole)> {
        let transfer = self.reserved.map(|amount| Transfer {
            debit: AccountKind::Reserved,
            credit,
            amount,
            reason,
        });
        transfer.map(|transfer| (transfer, TransferRole::Close))
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
            leaves_velocity: false,
        }
    }
}
