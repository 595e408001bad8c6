//! Wrappers that pass calls on to an upstream, count and time the responses, and add them to the trace.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use instruments::failpoint::around;
use instruments::faults::{Violation, violated};
use instruments::{Stopwatch, trace, upstream};
use kernel::rates::SourceRate;
use kernel::{Amount, Asset};
use partner_core::ports::RateSource;
use pools_core::engine::EngineName;
use pools_core::ports::{Confirmation, Depth, Engine, Hold, Order, TradeReportRequest};
use pools_core::trade::{Contradiction, EngineReport, TradeId};
use tracing::Instrument;

/// The counted response if the upstream did not respond.
const NO_RESPONSE: &str = "none";

/// An engine with metrics.
pub struct MeasuredEngine(Arc<dyn Engine>);

impl MeasuredEngine {
    /// Adds metrics to an engine.
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self(engine)
    }
}

impl std::fmt::Debug for MeasuredEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MeasuredEngine")
    }
}

/// Makes one call, and records its response and duration.
async fn measured<T>(
    operation: &'static str,
    call: impl Future<Output = T>,
    word: impl FnOnce(&T) -> &'static str,
) -> T {
    let watch = Stopwatch::start();
    let response = call.instrument(trace::call("engine", operation)).await;
    upstream::engine(operation, word(&response), watch.read());
    response
}

#[async_trait]
impl Engine for MeasuredEngine {
    async fn depth(&self, order: &Order) -> Option<Depth> {
        measured("depth", self.0.depth(order), |response| match response {
            None => NO_RESPONSE,
            Some(Depth::Enough) => "enough",
            Some(Depth::Insufficient) => "dry",
        })
        .await
    }

    async fn hold(&self, trade: TradeId, order: &Order, output: Amount) -> Option<Hold> {
        let hold = around("engine.hold", self.0.hold(trade, order, output));
        measured("hold", hold, |response| match response {
            None => NO_RESPONSE,
            Some(Hold::Held) => "held",
            Some(Hold::Refused) => "refused",
        })
        .await
    }

    async fn confirm(&self, trade: TradeId) -> Option<Confirmation> {
        let confirm = around("engine.confirm", self.0.confirm(trade));
        measured("confirm", confirm, |response| match response {
            None => NO_RESPONSE,
            Some(Confirmation::Confirmed) => "confirmed",
            Some(Confirmation::Lapsed) => "lapsed",
        })
        .await
    }

    async fn release(&self, trade: TradeId) -> Option<()> {
        measured("let_go", self.0.release(trade), |response| match response {
            None => NO_RESPONSE,
            Some(()) => "done",
        })
        .await
    }

    async fn report(&self, enquiry: &TradeReportRequest) -> Option<EngineReport> {
        let report = around("engine.report", self.0.report(enquiry));
        measured("report", report, |response| {
            response.as_ref().map_or(NO_RESPONSE, EngineReport::kind)
        })
        .await
    }

    fn contradicted(&self, contradiction: &Contradiction) {
        violated(Violation::Contradiction);
        self.0.contradicted(contradiction);
    }

    fn name(&self) -> EngineName {
        self.0.name()
    }

    fn timeout(&self) -> Duration {
        self.0.timeout()
    }
}

/// A source of rates with metrics.
pub struct MeasuredRates(Arc<dyn RateSource>);

impl MeasuredRates {
    /// Adds metrics to a source of rates.
    #[must_use]
    pub fn new(source: Arc<dyn RateSource>) -> Self {
        Self(source)
    }
}

impl std::fmt::Debug for MeasuredRates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MeasuredRates")
    }
}

#[async_trait]
impl RateSource for MeasuredRates {
    async fn rate(&self, fiat: Asset, crypto: Asset, order: Amount) -> Option<SourceRate> {
        let watch = Stopwatch::start();
        let asked = self.0.rate(fiat, crypto, order);
        let rate = asked.instrument(trace::call("rates", "rate")).await;
        let response = rate.as_ref().map_or(NO_RESPONSE, |_| "rate");
        upstream::rates(response, watch.read());
        rate
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Entropy, Mode, Timestamp};

    use super::*;
    use crate::NoEngine;

    struct Ones;
    impl Entropy for Ones {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(1);
        }
    }

    // rule: pools.trade.contradiction
    #[tokio::test]
    async fn each_contradiction_is_counted_once() {
        instruments::install(&instruments::Program {
            version: "1",
            mode: "test",
            started: 0,
        });
        let at = Timestamp::from_millis(1_700_000_000_000).unwrap();
        let contradiction = Contradiction {
            trade: TradeId::new(Mode::Test, at, &Ones),
            report: "failed",
        };
        let engine = MeasuredEngine::new(Arc::new(NoEngine));
        for count in 1..=2 {
            engine.contradicted(&contradiction);
            let counted = instruments::render();
            let series = format!("invariant_violations_total{{kind=\"contradiction\"}} {count}\n");
            assert!(counted.contains(&series), "{series} in\n{counted}");
        }
    }

    #[tokio::test]
    async fn missing_response_is_counted_for_every_call_about_trade() {
        instruments::install(&instruments::Program {
            version: "1",
            mode: "test",
            started: 0,
        });
        let at = Timestamp::from_millis(1_700_000_000_000).unwrap();
        let trade = TradeId::new(Mode::Test, at, &Ones);
        let engine = MeasuredEngine::new(Arc::new(NoEngine));
        assert_eq!(engine.confirm(trade).await, None);
        assert_eq!(engine.release(trade).await, None);
        let counted = instruments::render();
        for operation in ["confirm", "let_go"] {
            let silent = format!(
                "penstock_engine_calls_total{{operation=\"{operation}\",answer=\"none\"}} 1\n"
            );
            assert!(counted.contains(&silent), "{silent} in\n{counted}");
        }
    }
}
