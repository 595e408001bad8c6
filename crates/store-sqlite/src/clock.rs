//! The store's clock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use kernel::{Clock, StoreError, Timestamp};
use sqlx::SqliteConnection;

use crate::errors;

/// The process's clock, held back from ever going backwards: the larger of what it says, the
/// last instant used, and the newest one stored when the database was opened.
pub(crate) struct StoreClock {
    process: Arc<dyn Clock>,
    last: AtomicI64,
}

impl fmt::Debug for StoreClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreClock")
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

impl StoreClock {
    /// A clock that starts no earlier than the newest instant stored.
    pub(crate) async fn start(
        process: Arc<dyn Clock>,
        conn: &mut SqliteConnection,
    ) -> Result<Self, StoreError> {
        let newest = newest_stored(conn).await?;
        Ok(Self {
            process,
            last: AtomicI64::new(newest.unwrap_or(i64::MIN)),
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        let process = self.process.now();
        let last = self.last.fetch_max(process.millis(), Ordering::AcqRel);
        Timestamp::from_millis(last).map_or(process, |last| last.max(process))
    }
}

/// Rows are stored in the order of the clock, so each table's newest instant is at its end. Only
/// rejections change later, which have an index, and keys and secrets, which are few.
async fn newest_stored(conn: &mut SqliteConnection) -> Result<Option<i64>, StoreError> {
    sqlx::query_scalar(
        "SELECT max(at) FROM (
            SELECT (SELECT created_at FROM quotes ORDER BY rowid DESC LIMIT 1) AS at
            UNION ALL SELECT max(rejected_at) FROM quotes WHERE rejected_at IS NOT NULL
            UNION ALL SELECT (SELECT created_at FROM trades ORDER BY rowid DESC LIMIT 1)
            UNION ALL SELECT (SELECT created_at FROM trade_transitions ORDER BY rowid DESC LIMIT 1)
            UNION ALL SELECT (SELECT created_at FROM ledger_entries ORDER BY rowid DESC LIMIT 1)
            UNION ALL SELECT (SELECT created_at FROM events ORDER BY rowid DESC LIMIT 1)
            UNION ALL SELECT max(created_at) FROM idempotency_keys
            UNION ALL SELECT max(created_at) FROM webhook_secrets
            UNION ALL SELECT max(max(created_at, coalesce(revoked_at, created_at))) FROM api_keys
        )",
    )
    .fetch_one(conn)
    .await
    .map_err(errors::statement)
}
