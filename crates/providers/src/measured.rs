//! Wrappers that pass calls on to an upstream, count and time the responses, and add them to the trace.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::object::JsonObject;
use gate_core::ports::{
    CancelReport, Rail, RailOrder, VerificationOrder, VerificationStart, Verifier,
};
use gate_core::rail::{Instructions, RailReport};
use gate_core::verification::{self, VerificationReport};
use instruments::failpoint::around;
use instruments::faults::{Violation, violated};
use instruments::{Stopwatch, trace, upstream};
use kernel::rates::SourceRate;
use kernel::{Amount, Asset};
use partner_core::Tenant;
use partner_core::ports::{RateSource, Ticket};
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

/// Makes one call that confirms a hold, and records its response and duration.
async fn confirmed(call: impl Future<Output = Option<Confirmation>>) -> Option<Confirmation> {
    let confirm = around("engine.confirm", call);
    measured("confirm", confirm, |response| match response {
        None => NO_RESPONSE,
        Some(Confirmation::Confirmed) => "confirmed",
        Some(Confirmation::Lapsed) => "lapsed",
    })
    .await
}

#[async_trait]
impl Engine for MeasuredEngine {
    async fn depth(&self, who: &Tenant, order: &Order) -> Option<Depth> {
        measured(
            "depth",
            self.0.depth(who, order),
            |response| match response {
                None => NO_RESPONSE,
                Some(Depth::Enough) => "enough",
                Some(Depth::Insufficient) => "dry",
            },
        )
        .await
    }

    async fn hold(
        &self,
        who: &Tenant,
        trade: TradeId,
        order: &Order,
        output: Amount,
    ) -> Option<Hold> {
        let hold = around("engine.hold", self.0.hold(who, trade, order, output));
        measured("hold", hold, |response| match response {
            None | Some(Hold::Unsent) => NO_RESPONSE,
            Some(Hold::Held) => "held",
            Some(Hold::Refused) => "refused",
        })
        .await
    }

    async fn confirm(&self, who: &Tenant, trade: TradeId) -> Option<Confirmation> {
        confirmed(self.0.confirm(who, trade)).await
    }

    async fn confirm_again(&self, who: &Tenant, trade: TradeId) -> Option<Confirmation> {
        confirmed(self.0.confirm_again(who, trade)).await
    }

    async fn release(&self, who: &Tenant, trade: TradeId) -> Option<()> {
        measured(
            "let_go",
            self.0.release(who, trade),
            |response| match response {
                None => NO_RESPONSE,
                Some(()) => "done",
            },
        )
        .await
    }

    async fn report(&self, request: &TradeReportRequest) -> Option<EngineReport> {
        let report = around("engine.report", self.0.report(request));
        measured("report", report, |response| {
            response.as_ref().map_or(NO_RESPONSE, EngineReport::kind)
        })
        .await
    }

    fn admit_poll(&self, who: &Tenant) -> Option<Ticket> {
        self.0.admit_poll(who)
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

/// A rail with metrics.
pub struct MeasuredRail(Arc<dyn Rail>);

impl MeasuredRail {
    /// Adds metrics to a rail.
    #[must_use]
    pub fn new(rail: Arc<dyn Rail>) -> Self {
        Self(rail)
    }
}

impl std::fmt::Debug for MeasuredRail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MeasuredRail")
    }
}

#[async_trait]
impl Rail for MeasuredRail {
    async fn instructions(&self, order: &RailOrder) -> Option<Instructions> {
        let watch = Stopwatch::start();
        let asked = self.0.instructions(order);
        let response = asked.instrument(trace::call("rail", "instructions")).await;
        let word = response.as_ref().map_or(NO_RESPONSE, |_| "instructions");
        upstream::rail("instructions", word, watch.read());
        response
    }

    async fn advance(&self, order: &RailOrder, attempt: u32) -> Option<RailReport> {
        let watch = Stopwatch::start();
        let asked = self.0.advance(order, attempt);
        let report = asked.instrument(trace::call("rail", "advance")).await;
        let word = report.as_ref().map_or(NO_RESPONSE, |report| match report {
            RailReport::InProgress => "processing",
            RailReport::Settled { .. } => "settled",
            RailReport::Failed { .. } => "failed",
            RailReport::Cancelled => "cancelled",
        });
        upstream::rail("advance", word, watch.read());
        report
    }

    fn ask_again(&self, order: &RailOrder, attempt: u32) -> Option<Duration> {
        self.0.ask_again(order, attempt)
    }

    async fn cancel(&self, order: &RailOrder) -> Option<CancelReport> {
        let watch = Stopwatch::start();
        let asked = self.0.cancel(order);
        let report = asked.instrument(trace::call("rail", "cancel")).await;
        let word = report.as_ref().map_or(NO_RESPONSE, |report| match report {
            CancelReport::Cancelled => "cancelled",
            CancelReport::TooLate => "not_cancellable",
        });
        upstream::rail("cancel", word, watch.read());
        report
    }
}

/// A verifier with metrics.
pub struct MeasuredVerifier(Arc<dyn Verifier>);

impl MeasuredVerifier {
    /// Adds metrics to a verifier.
    #[must_use]
    pub fn new(verifier: Arc<dyn Verifier>) -> Self {
        Self(verifier)
    }
}

impl std::fmt::Debug for MeasuredVerifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MeasuredVerifier")
    }
}

/// Makes one call of the verifier, and records its response and duration.
async fn verified<T>(
    operation: &'static str,
    call: impl Future<Output = Option<T>>,
    report: impl FnOnce(&T) -> &VerificationReport,
) -> Option<T> {
    let watch = Stopwatch::start();
    let response = call.instrument(trace::call("verifier", operation)).await;
    let word = response
        .as_ref()
        .map_or(NO_RESPONSE, |response| match report(response) {
            VerificationReport::Pending => "pending",
            VerificationReport::Approved => "approved",
            VerificationReport::Rejected { .. } => "rejected",
        });
    upstream::verifier(operation, word, watch.read());
    response
}

#[async_trait]
impl Verifier for MeasuredVerifier {
    async fn start(&self, order: &VerificationOrder) -> Option<VerificationStart> {
        verified("start", self.0.start(order), |start| &start.report).await
    }

    async fn submit(
        &self,
        order: &VerificationOrder,
        answers: &JsonObject,
    ) -> Option<VerificationReport> {
        verified("submit", self.0.submit(order, answers), |report| report).await
    }

    async fn report(&self, order: &VerificationOrder) -> Option<VerificationReport> {
        verified("report", self.0.report(order), |report| report).await
    }

    fn contradicted(&self, contradiction: &verification::Contradiction) {
        violated(Violation::Contradiction);
        self.0.contradicted(contradiction);
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
    use partner_core::PartnerId;

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
        let who = Tenant {
            partner: PartnerId::parse("acme").unwrap(),
            mode: Mode::Test,
        };
        assert_eq!(engine.confirm(&who, trade).await, None);
        assert_eq!(engine.release(&who, trade).await, None);
        let counted = instruments::render();
        for operation in ["confirm", "let_go"] {
            let silent = format!(
                "penstock_engine_calls_total{{operation=\"{operation}\",answer=\"none\"}} 1\n"
            );
            assert!(counted.contains(&silent), "{silent} in\n{counted}");
        }
    }

    /// A rail that settles what it has been asked about before.
    struct SettlesLater;

    #[async_trait]
    impl Rail for SettlesLater {
        async fn instructions(&self, _: &RailOrder) -> Option<Instructions> {
            None
        }

        async fn advance(&self, _: &RailOrder, attempt: u32) -> Option<RailReport> {
            (attempt > 1).then_some(RailReport::Settled { reference: None })
        }

        async fn cancel(&self, _: &RailOrder) -> Option<CancelReport> {
            None
        }
    }

    #[tokio::test]
    async fn every_call_of_the_rail_is_counted_by_its_response() {
        instruments::install(&instruments::Program {
            version: "1",
            mode: "test",
            started: 0,
        });
        let order = crate::sandbox_rail::tests::pay_in("100.00");
        let rail = MeasuredRail::new(Arc::new(SettlesLater));
        assert_eq!(rail.instructions(&order).await, None);
        assert_eq!(rail.advance(&order, 1).await, None);
        assert_eq!(
            rail.advance(&order, 2).await,
            Some(RailReport::Settled { reference: None })
        );
        assert_eq!(rail.cancel(&order).await, None);
        let counted = instruments::render();
        for (operation, answer) in [
            ("instructions", "none"),
            ("advance", "none"),
            ("advance", "settled"),
            ("cancel", "none"),
        ] {
            let series = format!(
                "penstock_rail_calls_total{{operation=\"{operation}\",answer=\"{answer}\"}} 1\n"
            );
            assert!(counted.contains(&series), "{series} in\n{counted}");
        }
    }

    /// A verifier that approves everyone and takes no answers.
    struct Approving;

    #[async_trait]
    impl Verifier for Approving {
        async fn start(&self, order: &VerificationOrder) -> Option<VerificationStart> {
            Some(VerificationStart {
                report: self.report(order).await?,
                url: None,
                form: None,
                expires_at: None,
                reference: None,
            })
        }

        async fn submit(
            &self,
            _: &VerificationOrder,
            _: &JsonObject,
        ) -> Option<VerificationReport> {
            None
        }

        async fn report(&self, _: &VerificationOrder) -> Option<VerificationReport> {
            Some(VerificationReport::Approved)
        }
    }

    // rule: gate.verification.contradiction
    #[tokio::test]
    async fn every_call_of_the_verifier_and_every_contradiction_is_counted() {
        instruments::install(&instruments::Program {
            version: "1",
            mode: "test",
            started: 0,
        });
        let order = crate::sandbox_verifier::tests::order("10.61");
        let verifier = MeasuredVerifier::new(Arc::new(Approving));
        assert!(verifier.start(&order).await.is_some());
        assert!(verifier.report(&order).await.is_some());
        let answers = JsonObject::empty();
        assert_eq!(verifier.submit(&order, &answers).await, None);
        let status = verification::VerificationStatus::Approved;
        verifier.contradicted(&verification::Contradiction(status));
        let counted = instruments::render();
        for (operation, answer) in [
            ("start", "approved"),
            ("report", "approved"),
            ("submit", "none"),
        ] {
            let series = format!(
                "penstock_verifier_calls_total{{operation=\"{operation}\",answer=\"{answer}\"}} 1\n"
            );
            assert!(counted.contains(&series), "{series} in\n{counted}");
        }
        let series = "invariant_violations_total{kind=\"contradiction\"} ";
        assert!(!counted.contains(&format!("{series}0\n")), "{counted}");
    }
}
