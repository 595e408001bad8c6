//! Follows rotations of the master key. Seals only with the key that the database has recently confirmed as current.

use std::sync::Arc;
use std::time::Duration;

use kernel::Clock;
use partner_core::ports::PartnerStore;
use partner_core::sealing::{Fingerprint, Sealer};
use tokio_util::sync::CancellationToken;

use crate::supervise::every;

/// Interval between two reads of the current master key.
const INTERVAL: Duration = Duration::from_secs(1);

pub(super) async fn follow(
    store: Arc<dyn PartnerStore>,
    sealer: Arc<Sealer>,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
) {
    sealer.expect_confirmations();
    let turn = |known| confirm(&*store, &sealer, &*clock, known);
    every(INTERVAL, &stop, None, turn).await;
}

/// Confirms the current key. Returns it, or the last one that is `known`.
async fn confirm(
    store: &dyn PartnerStore,
    sealer: &Sealer,
    clock: &dyn Clock,
    known: Option<String>,
) -> Option<String> {
    let asked = clock.elapsed();
    // The watch of the configuration reports an unavailable store.
    let Ok(Some(current)) = store.master_key_fingerprint().await else {
        return known;
    };
    let held = Fingerprint::parse(&current).is_some_and(|key| sealer.confirm(key, asked));
    if !held && known.as_deref() != Some(current.as_str()) {
        tracing::error!(
            master_key.fingerprint = current,
            "The database's current master key is not configured: nothing that has to be encrypted is stored. Add the key \
             to PENSTOCK_MASTER_KEY or the key file beside the older one, and restart"
        );
    }
    Some(current)
}
