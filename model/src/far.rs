//! The liquidity engine, as somebody else's system: it keeps its own book, and its messages get lost.

use std::collections::BTreeMap;

use pools_core::ports::{Confirmation, Hold};
use pools_core::trade::{EngineReport, TradeId, TradeStatus};

use crate::digest::Digest;

/// The engine's book.
#[derive(Debug, Clone, Default)]
pub(crate) struct Far {
    pub(crate) holds: BTreeMap<TradeId, Stage>,
}

/// What the engine has made of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Held,
    /// Nobody confirmed it in time.
    Lapsed,
    /// Given back, by us or by the engine before it attempted anything.
    LetGo,
    /// Confirmed, and at work.
    Working,
    CannotComplete,
    Delivered,
    /// Delivered, and reversed since.
    Reversed,
}

impl Stage {
    /// Has anything ever been delivered?
    pub(crate) const fn delivered(self) -> bool {
        matches!(self, Self::Delivered | Self::Reversed)
    }

    /// What the engine may do next by itself.
    pub(crate) const fn next(self) -> &'static [Self] {
        match self {
            Self::Held => &[Self::Lapsed],
            Self::Working => &[Self::Delivered, Self::CannotComplete, Self::LetGo],
            Self::Delivered => &[Self::Reversed],
            Self::Lapsed | Self::LetGo | Self::CannotComplete | Self::Reversed => &[],
        }
    }
}

impl Far {
    /// A hold under a trade's id; asking twice changes nothing.
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
            None | Some(Stage::Lapsed | Stage::LetGo) => Confirmation::Lapsed,
            Some(Stage::Working | Stage::CannotComplete | Stage::Delivered | Stage::Reversed) => {
                Confirmation::Confirmed
            }
        }
    }

    pub(crate) fn let_go(&mut self, trade: TradeId) {
        if let Some(stage @ Stage::Held) = self.holds.get_mut(&trade) {
            *stage = Stage::LetGo;
        }
    }

    /// What has become of a trade. A reversal is told once the delivery is known.
    pub(crate) fn report(&self, trade: TradeId, known: TradeStatus) -> EngineReport {
        match self.holds.get(&trade) {
            Some(Stage::Held | Stage::Working) => EngineReport::InProgress,
            Some(Stage::CannotComplete) => EngineReport::CannotComplete,
            Some(Stage::Reversed) if known != TradeStatus::Reserved => EngineReport::Reversed,
            Some(Stage::Delivered | Stage::Reversed) => EngineReport::Delivered("fill".to_owned()),
            None | Some(Stage::Lapsed | Stage::LetGo) => EngineReport::LetGo,
        }
    }

    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        digest.add(&self.holds);
        digest.finish()
    }
}
