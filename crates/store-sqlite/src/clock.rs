//! The store's clock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

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

    /// How far this clock is ahead of the process's: that one was set back, or the database comes
    /// from a machine whose clock was ahead.
    pub(crate) fn ahead(&self) -> Duration {
        let process = self.process.now();
        let last = Timestamp::from_millis(self.last.load(Ordering::Acquire));
        last.map_or(Duration::ZERO, |last| last.since(process))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine's clock that somebody sets.
    struct Set(AtomicI64);
    impl Clock for Set {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(self.0.load(Ordering::Acquire)).unwrap()
        }
    }

    // rule: base.clock-forward
    #[test]
    fn a_clock_that_is_set_back_is_waited_for_and_seen() {
        let machine = Arc::new(Set(AtomicI64::new(1_780_000_000_000)));
        let clock = StoreClock {
            process: Arc::clone(&machine) as Arc<dyn Clock>,
            last: AtomicI64::new(i64::MIN),
        };
        assert_eq!(clock.ahead(), Duration::ZERO, "nothing was asked yet");
        let before = clock.now();
        assert_eq!(clock.ahead(), Duration::ZERO);
        machine.0.fetch_sub(90_000, Ordering::AcqRel);
        assert_eq!(clock.now(), before);
        assert_eq!(clock.ahead(), Duration::from_secs(90));
        machine.0.fetch_add(90_001, Ordering::AcqRel);
        assert!(clock.now() > before);
        assert_eq!(clock.ahead(), Duration::ZERO);
    }
}
