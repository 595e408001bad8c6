//! The store's clock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use kernel::{Clock, StoreError, Timestamp};
use pools_core::ports::CLOCK_TOLERANCE;
use sqlx::PgConnection;

use crate::errors;

/// The server's clock, held back from ever going backwards: the largest of what it says, the last
/// instant used here, and the last one written to the books that are held. Servers' clocks step,
/// and after a failover it is another server's.
///
/// Tests give it a clock of theirs, which then counts instead of the server's.
pub(crate) struct StoreClock {
    given: Option<Arc<dyn Clock>>,
    last: AtomicI64,
    ahead: AtomicI64,
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
        given: Option<Arc<dyn Clock>>,
        conn: &mut PgConnection,
    ) -> Result<Self, StoreError> {
        let newest: i64 = sqlx::query_scalar(NEWEST)
            .fetch_one(conn)
            .await
            .map_err(errors::statement)?;
        Ok(Self {
            given,
            last: AtomicI64::new(newest),
            ahead: AtomicI64::new(0),
        })
    }

    /// What counts instead of the server's clock.
    pub(crate) fn given(&self) -> Option<i64> {
        self.given.as_ref().map(|clock| clock.now().millis())
    }

    /// The last instant used here.
    pub(crate) fn last(&self) -> i64 {
        self.last.load(Ordering::Acquire)
    }

    /// The instant at which the server's clock said `server`, no earlier than `floor`.
    pub(crate) fn settle(&self, server: i64, floor: i64) -> Result<Timestamp, StoreError> {
        let base = self.given().unwrap_or(server);
        self.take(base, base.max(floor).max(self.last()))
    }

    /// Takes an instant that was settled in a statement, where the clock said `base`.
    pub(crate) fn take(&self, base: i64, at: i64) -> Result<Timestamp, StoreError> {
        self.last.fetch_max(at, Ordering::AcqRel);
        self.ahead.store(at.saturating_sub(base), Ordering::Release);
        Timestamp::from_millis(at).ok_or_else(|| StoreError::Inconsistent {
            table: "books",
            column: "at",
            row: at.to_string(),
        })
    }

    /// Refuses to trade at an instant that is not the clock's, `base`, because that one stands
    /// behind it.
    pub(crate) fn moving(base: i64, at: Timestamp) -> Result<(), StoreError> {
        let ahead = u64::try_from(at.millis().saturating_sub(base)).unwrap_or_default();
        if Duration::from_millis(ahead) <= CLOCK_TOLERANCE {
            return Ok(());
        }
        Err(StoreError::unavailable(format!(
            "the database's clock is {ahead} ms behind the last instant stored; until it has caught up nothing is traded"
        )))
    }

    /// How far this clock was ahead of the server's when it was last asked.
    pub(crate) fn ahead(&self) -> Duration {
        let ahead = u64::try_from(self.ahead.load(Ordering::Acquire));
        Duration::from_millis(ahead.unwrap_or_default())
    }
}

/// Asks the server, in a statement of its own: one that also locks would say when it began to wait.
pub(crate) async fn server(conn: &mut PgConnection) -> Result<i64, StoreError> {
    sqlx::query_scalar("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        .fetch_one(conn)
        .await
        .map_err(errors::statement)
}

/// Everything but quotes is written by whoever holds the partner's books.
const NEWEST: &str = "SELECT greatest(0, (SELECT max(at) FROM books), (
         SELECT max(newest.created_at)
         FROM partners AS p
         CROSS JOIN LATERAL (
             SELECT q.created_at FROM quotes AS q
             WHERE q.mode = p.mode AND q.partner_id = p.partner_id ORDER BY q.id DESC LIMIT 1
         ) AS newest
     ))";

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> StoreClock {
        StoreClock {
            given: None,
            last: AtomicI64::new(0),
            ahead: AtomicI64::new(0),
        }
    }

    // rule: base.clock-forward
    #[test]
    fn a_server_whose_clock_is_set_back_is_waited_for_and_seen() {
        let (clock, noon) = (clock(), 1_780_000_000_000);
        let before = clock.settle(noon, 0).unwrap();
        assert_eq!(clock.ahead(), Duration::ZERO);
        assert_eq!(clock.settle(noon - 90_000, 0).unwrap(), before);
        assert_eq!(clock.ahead(), Duration::from_secs(90));
        assert!(clock.settle(noon + 1, 0).unwrap() > before);
        assert_eq!(clock.ahead(), Duration::ZERO);
    }

    // rule: base.clock-forward
    #[test]
    fn what_others_have_written_is_never_preceded() {
        let (clock, noon) = (clock(), 1_780_000_000_000);
        let at = clock.settle(noon, noon + 500).unwrap();
        assert_eq!(at.millis(), noon + 500);
        assert_eq!(clock.settle(noon, 0).unwrap(), at);
    }

    // rule: base.clock-standing
    #[test]
    fn a_clock_that_stands_too_far_behind_is_not_traded_on() {
        let noon = 1_780_000_000_000;
        let at = Timestamp::from_millis(noon).unwrap();
        assert!(StoreClock::moving(noon, at).is_ok());
        assert!(StoreClock::moving(noon - 2_000, at).is_ok());
        assert!(StoreClock::moving(noon - 2_001, at).is_err());
    }
}
