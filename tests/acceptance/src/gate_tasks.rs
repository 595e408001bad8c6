//! What the background tasks of the gate service do, once and one after another.

use std::time::Duration;

use gate_core::due::DueShare;
use gate_core::error::GateError;
use kernel::{Cas, Mode};
use partner_core::events::Service;
use partner_core::ports::{ClaimRequest, ConcludedDelivery};
use partner_core::webhooks::delivery::AttemptOutcome;
use partner_core::webhooks::fairness::ClaimCapacity;

use crate::gate::Gate;

impl Gate {
    /// Expires overdue sessions of a mode, at most a hundred of each partner. Returns their number, or the error of the last
    /// session that could not be expired.
    ///
    /// # Errors
    /// As [`gate_core::usecases::context::GateContext::expire_if_due`].
    pub async fn sweep(&self, mode: Mode) -> Result<u64, GateError> {
        let share = DueShare::of_each(100);
        let overdue = self.sessions().overdue(mode, &share).await?;
        let (mut expired, mut failed) = (0, None);
        for (who, id) in overdue.rows {
            match self.sessions().expire_if_due(&who, id).await {
                Ok(_) => expired += 1,
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(expired), Err)
    }

    /// Polls every due rail record of each rail.
    pub async fn settle_rails(&self) {
        let mode = self.world().setup().mode;
        for settling in &self.use_cases().settling {
            let due = settling.due(mode, &DueShare::of_each(1_000)).await;
            for (who, id) in due.expect("the due rail records").rows {
                settling.advance(&who, id).await.expect("an end");
            }
        }
    }

    /// Asks each rail about its ended records that are due.
    pub async fn watch_rails(&self) {
        let mode = self.world().setup().mode;
        for watching in &self.use_cases().watching {
            let due = watching.due(mode, &DueShare::of_each(1_000)).await;
            for (who, id) in due.expect("the due rail records").rows {
                watching.watch(&who, id).await.expect("a report");
            }
        }
    }

    /// Concludes every due delivery of the gate, as a worker does.
    pub async fn conclude(
        &self,
        outcome: AttemptOutcome,
        status: Option<u16>,
        error: Option<&str>,
    ) {
        let operator = self.world().operator();
        let order = ClaimRequest {
            mode: self.world().setup().mode,
            service: Service::Gate,
            capacity: ClaimCapacity {
                total: 1_000,
                max_per_endpoint: 1_000,
                ..ClaimCapacity::default()
            },
            token: operator.entropy.next(),
            lease: Duration::from_secs(30),
        };
        let claimed = operator.store.deliveries_claim(&order).await;
        let concluded = claimed
            .expect("a claim")
            .into_iter()
            .map(|one| ConcludedDelivery {
                tenant: one.tenant,
                id: one.id,
                token: order.token,
                outcome,
                response_status: status,
                error: error.map(str::to_owned),
            });
        let mut left: Vec<ConcludedDelivery> = concluded.collect();
        while !left.is_empty() {
            let ended = operator.store.deliveries_conclude(&left).await;
            let mut ended = ended.expect("an end").into_iter();
            left.retain(|_| match ended.next().expect("a result of each") {
                Some(cas) => {
                    assert_eq!(cas, Cas::Won);
                    false
                }
                // Another transaction has locked the delivery.
                None => true,
            });
        }
    }
}
