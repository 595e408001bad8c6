//! The sandbox's verifier, for mode test: no user is checked, and no form is asked for.
//!
//! The fractional part of the session's amount chooses what happens. It is compared by value, as by the sandbox's engine.
//!
//! | fraction | what happens |
//! |---|---|
//! | `.61` | approved at once |
//! | `.62` | rejected at once, without a reason |
//! | `.63` | pending for 3 seconds after the verification was made, then approved |
//! | `.64` | pending until the user has decided on the page of the sandbox's verification |
//! | else | approved at once |

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::object::JsonObject;
use gate_core::ports::{VerificationOrder, VerificationStart, Verifier};
use gate_core::verification::{TestVerification, VerificationReport};
use kernel::{Clock, Named, UpstreamName};

use crate::sandbox_pages::SandboxPages;

/// How long a verification of `.63` is pending.
const DELAY: Duration = Duration::from_secs(3);

/// The sandbox's verifier. It stores nothing; each report follows from the request and the clock.
pub struct SandboxVerifier {
    clock: Arc<dyn Clock>,
    pages: SandboxPages,
}

impl SandboxVerifier {
    /// A verifier that measures its delay by this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, pages: SandboxPages) -> Self {
        Self { clock, pages }
    }

    fn outcome(&self, order: &VerificationOrder) -> VerificationReport {
        match TestVerification::of(&order.amount) {
            Some(TestVerification::Rejected) => VerificationReport::Rejected { reason: None },
            Some(TestVerification::Delayed) if self.clock.now() < order.created_at.plus(DELAY) => {
                VerificationReport::Pending
            }
            Some(TestVerification::Decided) => VerificationReport::Pending,
            Some(TestVerification::Delayed | TestVerification::Approved) | None => {
                VerificationReport::Approved
            }
        }
    }
}

impl Named for SandboxVerifier {
    fn name(&self) -> UpstreamName {
        UpstreamName::built_in("sandbox")
    }
}

#[async_trait]
impl Verifier for SandboxVerifier {
    async fn start(&self, order: &VerificationOrder) -> Option<VerificationStart> {
        let decided = TestVerification::of(&order.amount) == Some(TestVerification::Decided);
        Some(VerificationStart {
            report: self.outcome(order),
            url: self.pages.identity().filter(|_| decided),
            form: None,
            expires_at: None,
            reference: Some(format!("sandbox-{}", order.id)),
        })
    }

    async fn submit(
        &self,
        order: &VerificationOrder,
        _: &JsonObject,
    ) -> Option<VerificationReport> {
        Some(self.outcome(order))
    }

    async fn report(&self, order: &VerificationOrder) -> Option<VerificationReport> {
        Some(self.outcome(order))
    }

    fn is_simulated(&self) -> bool {
        true
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use gate_core::amount::SessionAmount;
    use gate_core::verification::VerificationId;
    use kernel::{Asset, Timestamp};
    use partner_core::PartnerId;
    use partner_core::origin::Origin;

    use super::*;
    use crate::sandbox::tests::StoppedClock;

    const NOON: i64 = 1_780_000_000_000;

    pub(crate) fn order(amount: &str) -> VerificationOrder {
        VerificationOrder {
            partner: PartnerId::parse("acme").unwrap(),
            id: VerificationId::parse("ver_test_01KSFVT4Z2V6B9C1D3F5G7H8JK").unwrap(),
            amount: SessionAmount::parse(amount).unwrap(),
            currency: Asset::fiat("EUR").unwrap(),
            created_at: Timestamp::from_millis(NOON).unwrap(),
            trace_parent: None,
        }
    }

    /// A verifier whose clock stands this many milliseconds after the verification was made.
    pub(crate) fn verifier_after(waited: i64) -> SandboxVerifier {
        let now = Timestamp::from_millis(NOON + waited).unwrap();
        let pages = SandboxPages::default();
        pages.are_at(Origin::of_address(([127, 0, 0, 1], 4030).into()));
        SandboxVerifier::new(Arc::new(StoppedClock(now)), pages)
    }

    // rule: gate.verification.sandbox
    #[tokio::test]
    async fn fraction_of_amount_chooses_outcome() {
        let rejected = VerificationReport::Rejected { reason: None };
        for (amount, waited, expected) in [
            ("10.61", 0, &VerificationReport::Approved),
            ("10.62", 0, &rejected),
            ("10.62", 9_000, &rejected),
            ("10.63", 0, &VerificationReport::Pending),
            ("10.63", -5_000, &VerificationReport::Pending),
            ("10.63", 2_999, &VerificationReport::Pending),
            ("10.63", 3_000, &VerificationReport::Approved),
            ("10.630", 2_999, &VerificationReport::Pending),
            ("10.64", 0, &VerificationReport::Pending),
            ("10.64", 9_000, &VerificationReport::Pending),
            ("10.00", 0, &VerificationReport::Approved),
        ] {
            let verifier = verifier_after(waited);
            let order = order(amount);
            let start = verifier.start(&order).await.unwrap();
            assert_eq!(&start.report, expected, "{amount} {waited}");
            let page = (amount == "10.64").then_some("http://127.0.0.1:4030/sandbox/identity");
            assert_eq!((start.url.as_deref(), start.form), (page, None));
            let reports = [
                verifier.report(&order).await,
                verifier.submit(&order, &JsonObject::empty()).await,
            ];
            for report in reports {
                assert_eq!(report.as_ref(), Some(expected), "{amount} {waited}");
            }
        }
    }
}
