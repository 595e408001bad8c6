//! The upstreams if no engine or rate source is configured, which is the default in mode live. Without rates a quote is refused
//! as `rate_unavailable`, without an engine as `engine_unavailable`.

use std::time::Duration;

use async_trait::async_trait;
use kernel::rates::SourceRate;
use kernel::{Amount, Asset, Named, UpstreamName};
use partner_core::Tenant;
use partner_core::ports::RateSource;
use pools_core::ports::{Confirmation, Depth, Engine, Hold, Order, TradeReportRequest};
use pools_core::trade::{EngineReport, TradeId};

/// A rate source without any rate.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRates;

#[async_trait]
impl RateSource for NoRates {
    async fn rate(&self, _: Asset, _: Asset, _: Amount) -> Option<SourceRate> {
        None
    }
}

/// An engine that never responds. Callers do not wait for it.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEngine;

impl Named for NoEngine {
    fn name(&self) -> UpstreamName {
        UpstreamName::built_in("none")
    }
}

#[async_trait]
impl Engine for NoEngine {
    async fn depth(&self, _: &Tenant, _: &Order) -> Option<Depth> {
        None
    }

    async fn hold(&self, _: &Tenant, _: TradeId, _: &Order, _: Amount) -> Option<Hold> {
        None
    }

    async fn confirm(&self, _: &Tenant, _: TradeId) -> Option<Confirmation> {
        None
    }

    async fn release(&self, _: &Tenant, _: TradeId) -> Option<()> {
        None
    }

    async fn report(&self, _: &Tenant, _: &TradeReportRequest) -> Option<EngineReport> {
        None
    }

    fn timeout(&self) -> Duration {
        Duration::ZERO
    }
}
