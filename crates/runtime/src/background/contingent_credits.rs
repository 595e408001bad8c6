//! Recounts contingent credits.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Asset, Readable, StoreResult};
use partner_core::Tenant;
use partner_core::ports::Readiness;
use pools_core::usecases::recount_contingent_credits::RecountContingentCredits;
use tokio_util::sync::CancellationToken;

use super::{SWEEP_INTERVAL, SWEEP_PAUSE, concerns_one_partner, failed};
use crate::supervise::every;

const FAILED: &str = "Failed to recount contingent credits";

/// The recounts of accounts, so that a test can play them.
#[async_trait]
pub(super) trait Recounts: Send + Sync {
    /// The accounts that need a recount.
    async fn due(&self) -> StoreResult<Readable<(Tenant, Asset)>>;

    /// Runs one slice of an account's recount. Returns whether another one follows.
    async fn advance(&self, who: &Tenant, asset: Asset) -> StoreResult<bool>;
}

#[async_trait]
impl Recounts for RecountContingentCredits {
    async fn due(&self) -> StoreResult<Readable<(Tenant, Asset)>> {
        RecountContingentCredits::due(self).await
    }

    async fn advance(&self, who: &Tenant, asset: Asset) -> StoreResult<bool> {
        RecountContingentCredits::advance(self, who, asset).await
    }
}

/// Recounts what is due, each minute, until `stop`.
pub(super) async fn recount_all(
    recounting: RecountContingentCredits,
    readiness: Arc<dyn Readiness>,
    stop: CancellationToken,
) {
    let turn = |()| recount_due(&recounting, &*readiness, &stop);
    every(SWEEP_INTERVAL, &stop, (), turn).await;
}

/// Recounts what is due. It continues after a partner that fails.
pub(super) async fn recount_due(
    recounting: &dyn Recounts,
    readiness: &dyn Readiness,
    stop: &CancellationToken,
) {
    let due = match recounting.due().await {
        Ok(due) => due,
        Err(error) => return failed(&error, FAILED),
    };
    due.unreadable
        .iter()
        .for_each(|error| failed(error, FAILED));
    let mut without = BTreeSet::new();
    for (who, asset) in due.rows {
        if without.contains(&who) {
            continue;
        }
        match recount(recounting, &who, asset, stop).await {
            Ok(0) => {}
            Ok(slices) => tracing::debug!(
                partner.id = %who.partner,
                recount.slices = slices,
                "Contingent credits recounted"
            ),
            Err(error) => {
                failed(&error, FAILED);
                if !concerns_one_partner(&error, readiness).await {
                    break;
                }
                without.insert(who);
            }
        }
    }
}

/// Runs the slices of one account's recount. It stops only between slices, and continues there later.
async fn recount(
    recounting: &dyn Recounts,
    who: &Tenant,
    asset: Asset,
    stop: &CancellationToken,
) -> StoreResult<u64> {
    let mut slices = 0_u64;
    while !stop.is_cancelled() && recounting.advance(who, asset).await? {
        slices = slices.saturating_add(1);
        tokio::time::sleep(SWEEP_PAUSE).await;
    }
    Ok(slices)
}
