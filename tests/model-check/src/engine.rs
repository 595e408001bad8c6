//! The liquidity engine as another operator's system. It keeps its own ledger and acts by itself, whatever a poll has seen. Its
//! responses get lost, arrive twice, and contradict each other.

use std::collections::BTreeMap;

use pools_core::ports::{Confirmation, Hold, TradeReportRequest};
use pools_core::trade::{EngineReport, TradeId};

use crate::digest::Digest;

/// The engine's ledger.
#[derive(Debug, Clone, Default)]
pub(crate) struct EngineState {
    pub(crate) holds: BTreeMap<TradeId, Stage>,
}

/// Stage of a hold at the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Held,
    /// The hold was not confirmed in time.
    Lapsed,
    /// Released, by Penstock or by the engine before it attempted the trade.
    Released,
    /// Confirmed and in progress.
    Working,
    CannotComplete,
    Delivered,
    /// Delivered, and reversed later.
    Reversed,
}

impl Stage {
    /// Whether anything was ever delivered.
    pub(crate) const fn delivered(self) -> bool {
        matches!(self, Self::Delivered | Self::Reversed)
    }

    /// The next stages that the engine may choose by itself.
    pub(crate) const fn next(self) -> &'static [Self] {
        match self {
            Self::Held => &[Self::Lapsed],
            Self::Working => &[Self::Delivered, Self::CannotComplete, Self::Released],
            Self::Delivered => &[Self::Reversed],
            Self::Lapsed | Self::Released | Self::CannotComplete | Self::Reversed => &[],
        }
    }

    /// The report about the stage. A return names the fill in every second attempt.
    fn report(self, attempt: u32) -> EngineReport {
        let fill = || "fill".to_owned();
        match self {
            Self::Held | Self::Working => EngineReport::InProgress,
            Self::CannotComplete => EngineReport::CannotComplete,
            Self::Delivered => EngineReport::Delivered(fill().into()),
            Self::Reversed => EngineReport::Reversed(attempt.is_multiple_of(2).then(fill)),
            Self::Lapsed | Self::Released => EngineReport::Released,
        }
    }

    /// The stage before.
    const fn before(self) -> Self {
        match self {
            Self::Reversed => Self::Delivered,
            Self::Held | Self::Lapsed => Self::Held,
            Self::Working | Self::Released | Self::CannotComplete | Self::Delivered => {
                Self::Working
            }
        }
    }
}

/// Returns a report that contradicts a settlement, of each kind in turn.
pub(crate) fn contradiction(attempt: u32) -> EngineReport {
    match attempt % 3 {
        2 => EngineReport::CannotComplete,
        0 => EngineReport::Released,
        _ => EngineReport::Delivered("another fill".into()),
    }
}

impl EngineState {
    /// Opens a hold under a trade's id; a repeat changes nothing.
    pub(crate) fn hold(&mut self, trade: TradeId) -> Hold {
        self.holds.entry(trade).or_insert(Stage::Held);
        Hold::Held
    }

    pub(crate) fn confirm(&mut self, trade: TradeId) -> Confirmation {
        match self.holds.get_mut(&trade) {
            Some(stage @ Stage::Held) => {
                *stage = Stage::Working;
                Confirmation::Confirmed
            }
            None | Some(Stage::Lapsed | Stage::Released) => Confirmation::Lapsed,
            Some(Stage::Working | Stage::CannotComplete | Stage::Delivered | Stage::Reversed) => {
                Confirmation::Confirmed
            }
        }
    }

    pub(crate) fn release(&mut self, trade: TradeId) {
        if let Some(stage @ Stage::Held) = self.holds.get_mut(&trade) {
            *stage = Stage::Released;
        }
    }

    /// Reports the outcome of a trade, whether or not Penstock knows it.
    pub(crate) fn report(&self, request: &TradeReportRequest) -> EngineReport {
        self.stage(request).report(request.attempt)
    }

    /// Repeats an earlier report.
    pub(crate) fn earlier_report(&self, request: &TradeReportRequest) -> EngineReport {
        self.stage(request).before().report(request.attempt)
    }

    fn stage(&self, request: &TradeReportRequest) -> Stage {
        let stage = self.holds.get(&request.trade).copied();
        stage.unwrap_or(Stage::Lapsed)
    }

    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        digest.add(&self.holds);
        digest.finish()
    }
}
