//! The sweep that bounds a service's tables.

use std::time::Duration;

use kernel::StoreResult;
use partner_core::events::Service;
use partner_core::ports::{KeySweep, KeysSwept, UnitOfWork as _};

use crate::{StoreTx, idempotency, previews, rails};

/// Runs one step of a sweep and commits. `ttl` is the configured lifetime of idempotency records.
pub async fn sweep(
    mut tx: Box<StoreTx>,
    sweep: &KeySweep,
    limit: u32,
    ttl: Duration,
) -> StoreResult<KeysSwept> {
    let now = tx.now().await?;
    let connection = tx.connection();
    let mut swept = idempotency::sweep(connection, sweep, limit, now, ttl).await?;
    if sweep.service == Service::Gate {
        let previews = previews::sweep(connection, now.minus(sweep.age), limit).await?;
        let payouts = rails::erase_payouts(connection, sweep.mode, now, limit).await?;
        swept.deleted = swept
            .deleted
            .saturating_add(previews)
            .saturating_add(payouts);
        swept.more |= previews.max(payouts) >= u64::from(limit);
    }
    tx.commit().await?;
    Ok(swept)
}
