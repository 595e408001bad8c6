//! Wrappers that pass calls on to an upstream, count and time the responses, and add them to the trace.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::object::JsonObject;
use gate_core::ports::{
    CancelReport, GivenUp, Rail, RailOrder, RailPoll, RailSimulation, VerificationOrder,
    VerificationStart, Verifier,
};
use gate_core::rail::{self, Finding, Instructions, RailAnswer, RailReport};
use gate_core::verification::{self, VerificationReport};
use instruments::failpoint::around;
use instruments::faults::{Violation, violated};
use instruments::{Stopwatch, trace, upstream};
use kernel::rates::SourceRate;
use kernel::{Amount, Asset, Named, UpstreamName};
use partner_core::ports::{RateSource, Ticket};
use partner_core::{PartnerId, Tenant};
use pools_core::ports::{Confirmation, Depth, Engine, Hold, Order, TradeReportRequest};
use pools_core::trade::{Contradiction, EngineReport, TradeId};
use tracing::Instrument;

/// The counted response if the upstream did not respond.
const NO_RESPONSE: &str = "none";

/// An upstream with metrics.
pub struct Measured<T: ?Sized>(Arc<T>);

pub type MeasuredEngine = Measured<dyn Engine>;
pub type MeasuredRail = Measured<dyn Rail>;
pub type MeasuredVerifier = Measured<dyn Verifier>;
pub type MeasuredRates = Measured<dyn RateSource>;

impl<T: ?Sized> Measured<T> {
    /// Adds metrics to an upstream.
    #[must_use]
    pub fn new(upstream: Arc<T>) -> Self {
        Self(upstream)
    }
}

impl<T: Named + ?Sized> Named for Measured<T> {
    fn name(&self) -> UpstreamName {
        self.0.name()
    }
}

/// Makes one call of an upstream, and records its response in one word, and its duration.
async fn measured<T>(
    (upstream, operation): (&'static str, &'static str),
    record: fn(&'static str, &'static str, Option<Duration>),
    call: impl Future<Output = Option<T>>,
    word: impl FnOnce(&T) -> &'static str,
) -> Option<T> {
    let watch = Stopwatch::start();
    let response = call.instrument(trace::call(upstream, operation)).await;
    let word = response.as_ref().map_or(NO_RESPONSE, word);
    record(operation, word, watch.read());
    response
}

/// Makes one call that confirms a hold, and records its response and duration.
async fn confirmed(call: impl Future<Output = Option<Confirmation>>) -> Option<Confirmation> {
    let confirm = around("engine.confirm", call);
    let call = ("engine", "confirm");
    measured(call, upstream::engine, confirm, |response| match response {
        Confirmation::Confirmed => "confirmed",
        Confirmation::Lapsed => "lapsed",
    })
    .await
}

#[async_trait]
impl Engine for MeasuredEngine {
    async fn depth(&self, who: &Tenant, order: &Order) -> Option<Depth> {
        let depth = self.0.depth(who, order);
        let call = ("engine", "depth");
        measured(call, upstream::engine, depth, |response| match response {
            Depth::Enough => "enough",
            Depth::Insufficient => "dry",
        })
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
        let call = ("engine", "hold");
        measured(call, upstream::engine, hold, |response| match response {
            Hold::Unsent => NO_RESPONSE,
            Hold::Held => "held",
            Hold::Refused => "refused",
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
        let release = self.0.release(who, trade);
        let call = ("engine", "let_go");
        measured(call, upstream::engine, release, |_| "done").await
    }

    async fn report(&self, who: &Tenant, request: &TradeReportRequest) -> Option<EngineReport> {
        let report = around("engine.report", self.0.report(who, request));
        let call = ("engine", "report");
        measured(call, upstream::engine, report, EngineReport::kind).await
    }

    fn admit_poll(&self, who: &Tenant) -> Option<Ticket> {
        self.0.admit_poll(who)
    }

    fn contradicted(&self, contradiction: &Contradiction) {
        violated(Violation::Contradiction);
        self.0.contradicted(contradiction);
    }

    fn timeout(&self) -> Duration {
        self.0.timeout()
    }
}

#[async_trait]
impl Rail for MeasuredRail {
    async fn instructions(&self, order: &RailOrder) -> Option<Instructions> {
        let asked = self.0.instructions(order);
        let call = ("rail", "instructions");
        measured(call, upstream::rail, asked, |_| "instructions").await
    }

    async fn advance(&self, order: &RailOrder, poll: RailPoll) -> RailAnswer {
        let polling = polled("advance", self.0.advance(order, poll));
        trace::caused_by(order.trace_parent, polling).await
    }

    async fn watch(&self, order: &RailOrder) -> RailAnswer {
        let polling = polled("watch", self.0.watch(order));
        trace::caused_by(order.trace_parent, polling).await
    }

    fn ask_again(&self, order: &RailOrder, attempt: u32) -> Option<Duration> {
        self.0.ask_again(order, attempt)
    }

    async fn cancel(&self, order: &RailOrder, given_up: GivenUp) -> Option<CancelReport> {
        let asked = self.0.cancel(order, given_up);
        let call = ("rail", "cancel");
        let cancelling = measured(call, upstream::rail, asked, |report| match report {
            CancelReport::Cancelled => "cancelled",
            CancelReport::TooLate => "not_cancellable",
        });
        let cause = match given_up {
            GivenUp::ByCustomer => None,
            GivenUp::AtDeadline => order.trace_parent,
        };
        trace::caused_by(cause, cancelling).await
    }

    fn polls_hang(&self, partner: &PartnerId) -> bool {
        self.0.polls_hang(partner)
    }

    fn contradicted(&self, contradiction: rail::Contradiction) {
        violated(Violation::Contradiction);
        self.0.contradicted(contradiction);
    }

    fn found(&self, finding: Finding) {
        upstream::rail_found(finding.as_str());
        self.0.found(finding);
    }

    fn simulation(&self) -> Option<Arc<dyn RailSimulation>> {
        self.0.simulation()
    }
}

/// Polls a rail, and records its answer and duration.
async fn polled(operation: &'static str, call: impl Future<Output = RailAnswer>) -> RailAnswer {
    let answered = async {
        match call.await {
            RailAnswer::Silent => None,
            answer => Some(answer),
        }
    };
    let answer = measured(
        ("rail", operation),
        upstream::rail,
        answered,
        |answer| match answer {
            RailAnswer::Silent => NO_RESPONSE,
            RailAnswer::Accepted => "accepted",
            RailAnswer::Unknown => "unknown",
            RailAnswer::Reported(reported) => match reported.report {
                RailReport::InProgress => "processing",
                RailReport::Settled { .. } => "settled",
                RailReport::Failed { .. } => "failed",
                RailReport::Cancelled => "cancelled",
                RailReport::Returned => "returned",
            },
        },
    );
    answer.await.unwrap_or(RailAnswer::Silent)
}

/// Makes one call of the verifier, and records its response and duration.
async fn verified<T>(
    operation: &'static str,
    call: impl Future<Output = Option<T>>,
    report: impl FnOnce(&T) -> &VerificationReport,
) -> Option<T> {
    let call_of = ("verifier", operation);
    measured(call_of, upstream::verifier, call, |response| {
        match report(response) {
            VerificationReport::Pending => "pending",
            VerificationReport::Approved => "approved",
            VerificationReport::Rejected { .. } => "rejected",
        }
    })
    .await
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
        let reporting = verified("report", self.0.report(order), |report| report);
        trace::caused_by(order.trace_parent, reporting).await
    }

    fn polls_hang(&self, partner: &PartnerId) -> bool {
        self.0.polls_hang(partner)
    }

    fn is_simulated(&self) -> bool {
        self.0.is_simulated()
    }

    fn contradicted(&self, contradiction: &verification::Contradiction) {
        violated(Violation::Contradiction);
        self.0.contradicted(contradiction);
    }
}

#[async_trait]
impl RateSource for MeasuredRates {
    async fn rate(&self, fiat: Asset, crypto: Asset, order: Amount) -> Option<SourceRate> {
        let asked = self.0.rate(fiat, crypto, order);
        let record = |_: &'static str, word: &'static str, took| upstream::rates(word, took);
        measured(("rates", "rate"), record, asked, |_| "rate").await
    }
}

#[cfg(test)]
mod tests {
    use kernel::Mode;

    use super::*;
    use crate::NoEngine;
    use crate::sandbox_rail::tests::{pay_in, poll, rail_after};
    use crate::sandbox_verifier::tests::{order, verifier_after};

    fn install() {
        instruments::install(&instruments::Program {
            version: "1",
            mode: "test",
            started: 0,
        });
    }

    fn trade() -> TradeId {
        TradeId::parse("txn_test_01KSFVT4Z2V6B9C1D3F5G7H8JK").unwrap()
    }

    /// Checks that calls of the upstream were counted once for each operation with its response.
    fn assert_counted_once(upstream: &str, calls: &[(&str, &str)]) {
        let counted = instruments::render();
        for (operation, answer) in calls {
            let labels = format!("{{operation=\"{operation}\",answer=\"{answer}\"}}");
            let series = format!("penstock_{upstream}_calls_total{labels} 1\n");
            assert!(counted.contains(&series), "{series} in\n{counted}");
        }
    }

    // rule: pools.trade.contradiction
    #[tokio::test]
    async fn each_contradiction_is_counted_once() {
        install();
        let contradiction = Contradiction {
            trade: trade(),
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
        install();
        let engine = MeasuredEngine::new(Arc::new(NoEngine));
        let who = Tenant {
            partner: PartnerId::parse("acme").unwrap(),
            mode: Mode::Test,
        };
        assert_eq!(engine.confirm(&who, trade()).await, None);
        assert_eq!(engine.release(&who, trade()).await, None);
        assert_counted_once("engine", &[("confirm", "none"), ("let_go", "none")]);
    }

    // rule: rail.watch
    #[tokio::test]
    async fn every_call_of_the_rail_is_counted_by_its_response() {
        install();
        let rail = MeasuredRail::new(Arc::new(rail_after(0)));
        let order = pay_in("100.00");
        assert!(rail.instructions(&order).await.is_some());
        for order in [&order, &pay_in("100.31")] {
            assert_ne!(rail.advance(order, poll(1)).await, RailAnswer::Silent);
        }
        assert_eq!(rail.watch(&order).await, RailAnswer::Unknown);
        let cancelled = rail.cancel(&order, GivenUp::ByCustomer).await;
        assert_eq!(cancelled, Some(CancelReport::TooLate));
        let calls = [
            ("instructions", "instructions"),
            ("advance", "settled"),
            ("advance", "failed"),
            ("watch", "unknown"),
            ("cancel", "not_cancellable"),
        ];
        assert_counted_once("rail", &calls);
    }

    #[tokio::test]
    async fn each_answer_to_a_poll_has_its_word() {
        install();
        let failed = RailReport::Failed {
            code: "x".to_owned(),
            reason: None,
        };
        for (answer, word) in [
            (RailAnswer::Silent, "none"),
            (RailAnswer::Accepted, "accepted"),
            (RailAnswer::Unknown, "unknown"),
            (RailReport::InProgress.into(), "processing"),
            (RailReport::Settled { reference: None }.into(), "settled"),
            (failed.into(), "failed"),
            (RailReport::Cancelled.into(), "cancelled"),
            (RailReport::Returned.into(), "returned"),
        ] {
            // No other test of the process counts under this name.
            let call = std::future::ready(answer.clone());
            assert_eq!(polled("trial", call).await, answer);
            assert_counted_once("rail", &[("trial", word)]);
        }
    }

    // rule: rail.findings
    #[tokio::test]
    async fn each_finding_is_counted() {
        install();
        let rail = MeasuredRail::new(Arc::new(rail_after(0)));
        for finding in Finding::ALL {
            rail.found(finding);
            let name = finding.as_str();
            let series = format!("penstock_rail_findings_total{{finding=\"{name}\"}} 1\n");
            assert!(instruments::render().contains(&series), "{series}");
        }
    }

    // rule: gate.verification.contradiction
    #[tokio::test]
    async fn every_call_of_the_verifier_and_every_contradiction_is_counted() {
        install();
        let verifier = MeasuredVerifier::new(Arc::new(verifier_after(0)));
        let (approved, rejected) = (order("10.61"), order("10.62"));
        assert!(verifier.start(&approved).await.is_some());
        assert!(verifier.report(&rejected).await.is_some());
        let submitted = verifier.submit(&approved, &JsonObject::empty()).await;
        assert!(submitted.is_some());
        let status = verification::VerificationStatus::Approved;
        verifier.contradicted(&verification::Contradiction(status));
        let calls = [
            ("start", "approved"),
            ("report", "rejected"),
            ("submit", "approved"),
        ];
        assert_counted_once("verifier", &calls);
        let counted = instruments::render();
        let series = "invariant_violations_total{kind=\"contradiction\"} ";
        assert!(!counted.contains(&format!("{series}0\n")), "{counted}");
    }
}
