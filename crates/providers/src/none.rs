//! What stands where no engine or no rate source is configured, as in mode live by default:
//! nothing can be priced (`rate_unavailable`) and nothing be held (`engine_unavailable`).

use std::time::Duration;

use async_trait::async_trait;
use kernel::rates::SourceRate;
use kernel::{Amount, Asset};
use partner_core::ports::RateSource;
use pools_core::engine::EngineName;
use pools_core::ports::{Confirmation, Depth, Engine, Hold, Order, TradeReportRequest};
use pools_core::trade::{EngineReport, TradeId};

/// Knows no rate.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRates;

#[async_trait]
impl RateSource for NoRates {
    async fn rate(&self, _: Asset, _: Asset, _: Amount) -> Option<SourceRate> {
        None
    }
}

/// Never answers, and never keeps anybody waiting.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEngine;

#[async_trait]
impl Engine for NoEngine {
    async fn depth(&self, _: &Order) -> Option<Depth> {
        None
    }

    async fn hold(&self, _: TradeId, _: &Order, _: Amount) -> Option<Hold> {
        None
    }

    async fn confirm(&self, _: TradeId) -> Option<Confirmation> {
        None
    }

    async fn let_go(&self, _: TradeId) -> Option<()> {
        None
    }

    async fn report(&self, _: &TradeReportRequest) -> Option<EngineReport> {
        None
    }

    fn name(&self) -> EngineName {
        EngineName::built_in("none")
    }

    fn timeout(&self) -> Duration {
        Duration::ZERO
    }
}
