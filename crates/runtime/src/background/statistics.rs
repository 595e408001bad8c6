//! Refreshes the statistics of tables that have grown.

use std::sync::Arc;
use std::time::Duration;

use partner_core::ports::Maintenance;
use tokio_util::sync::CancellationToken;

use super::failed;
use crate::supervise::every;

/// Interval between two refreshes. A table can grow much in this time.
const INTERVAL: Duration = Duration::from_secs(2);

pub(super) async fn gather(store: Arc<dyn Maintenance>, stop: CancellationToken) {
    let turn = |()| async {
        match store.gather_statistics().await {
            Ok(0) => {}
            Ok(tables) => tracing::debug!(tables.gathered = tables, "Statistics gathered"),
            Err(error) => failed(&error, "Failed to gather statistics"),
        }
    };
    every(INTERVAL, &stop, (), turn).await;
}
