//! The store's clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use kernel::{Clock, StoreError, StoreResult, Timestamp};
use partner_core::clock::{ClockJump, ClockWatch};
use pools_core::ports::CLOCK_TOLERANCE;
use sqlx::SqliteConnection;
use store_sql::jumps;

use crate::connection::Link;
use crate::errors;

/// A clock that never goes backwards.
///
/// Its instant is the latest of the process's clock, the last instant used here, and the last instant that any process has
/// stored in this database. A jump of the process's clock ahead of the elapsed time is rejected: writes are refused, and
/// reads use the elapsed time.
pub(crate) struct StoreClock {
    process: Arc<dyn Clock>,
    last: AtomicI64,
    watch: ClockWatch,
}

impl StoreClock {
    /// Creates a clock that starts no earlier than the last stored instant.
    pub(crate) async fn start(
        process: Arc<dyn Clock>,
        conn: &mut SqliteConnection,
    ) -> StoreResult<Self> {
        let noted = jumps::read(&mut Link(&mut *conn)).await?;
        let watch = ClockWatch::start(process.now(), process.elapsed(), noted.jump);
        Ok(Self {
            last: AtomicI64::new(stored(conn).await?),
            process,
            watch,
        })
    }

    /// The instant of a write transaction. The transaction holds the write lock, so no process has stored a later instant.
    pub(crate) async fn locked(&self, conn: &mut SqliteConnection) -> StoreResult<Timestamp> {
        self.last.fetch_max(stored(conn).await?, Ordering::AcqRel);
        self.resolve()
    }

    /// The instant of a transaction that holds the write lock and dates no row.
    pub(crate) async fn seen(&self, conn: &mut SqliteConnection) -> StoreResult<Timestamp> {
        self.last.fetch_max(stored(conn).await?, Ordering::AcqRel);
        Ok(self.now())
    }

    /// The instant of a write.
    pub(crate) fn resolve(&self) -> StoreResult<Timestamp> {
        let process = self.process.now();
        self.check(process).map_err(|jump| refused(&jump))?;
        Ok(self.take(process))
    }

    /// Returns the jump if the process's clock is ahead of the elapsed time.
    pub(crate) fn check(&self, process: Timestamp) -> Result<(), ClockJump> {
        self.watch.judge(process, self.elapsed(), self.last())
    }

    /// The instant of the process's clock.
    pub(crate) fn process(&self) -> Timestamp {
        self.process.now()
    }

    pub(crate) const fn watch(&self) -> &ClockWatch {
        &self.watch
    }

    fn last(&self) -> Timestamp {
        let last = self.last.load(Ordering::Acquire);
        Timestamp::from_millis(last).unwrap_or(Timestamp::EARLIEST)
    }

    fn take(&self, process: Timestamp) -> Timestamp {
        let last = self.last.fetch_max(process.millis(), Ordering::AcqRel);
        Timestamp::from_millis(last).map_or(process, |last| last.max(process))
    }

    /// The process's monotonic time.
    pub(crate) fn elapsed(&self) -> Duration {
        self.process.elapsed()
    }

    /// The instant of a read.
    pub(crate) fn now(&self) -> Timestamp {
        let process = self.process.now();
        match self.check(process) {
            Ok(()) => self.take(process),
            Err(jump) => jump.expected.max(self.last()),
        }
    }

    /// Refuses to trade while this clock is ahead of the process's by more than the tolerance and so does not advance.
    pub(crate) fn check_moving(&self) -> StoreResult<()> {
        let ahead = self.ahead();
        if ahead <= CLOCK_TOLERANCE {
            return Ok(());
        }
        Err(StoreError::unavailable(format!(
            "the machine's clock is {} ms behind the last stored instant; trading resumes when it has caught up",
            ahead.as_millis()
        )))
    }

    /// How far this clock is ahead of the process's. It is ahead if the process's clock was set back, or if the database comes
    /// from a machine whose clock was ahead.
    pub(crate) fn ahead(&self) -> Duration {
        let process = self.process.now();
        let last = Timestamp::from_millis(self.last.load(Ordering::Acquire));
        last.map_or(Duration::ZERO, |last| last.since(process))
    }
}

/// The error of a write while the clock is rejected.
pub(crate) fn refused(jump: &ClockJump) -> StoreError {
    StoreError::unavailable(format!(
        "the clock jumped {} s ahead of the elapsed time; writes are refused until you correct the clock or run `penstock clock accept`",
        jump.span().as_secs()
    ))
}

async fn stored(conn: &mut SqliteConnection) -> StoreResult<i64> {
    sqlx::query_scalar("SELECT at FROM clock WHERE id = 1")
        .fetch_one(conn)
        .await
        .map_err(errors::statement)
}

/// Stores the instant of a transaction together with its writes.
pub(crate) async fn put(conn: &mut SqliteConnection, at: Timestamp) -> StoreResult<()> {
    sqlx::query("UPDATE clock SET at = ?1 WHERE id = 1 AND at < ?1")
        .bind(at.millis())
        .execute(conn)
        .await
        .map_err(errors::statement)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine's clock that the test sets.
    struct SettableClock(AtomicI64);
    impl Clock for SettableClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(self.0.load(Ordering::Acquire)).unwrap()
        }
    }

    // rule: base.clock-forward
    #[test]
    fn store_clock_stands_and_reports_lead_when_machine_clock_is_set_back() {
        let machine = Arc::new(SettableClock(AtomicI64::new(1_780_000_000_000)));
        let clock = StoreClock {
            process: Arc::clone(&machine) as Arc<dyn Clock>,
            last: AtomicI64::new(i64::MIN),
            watch: ClockWatch::start(machine.now(), machine.elapsed(), None),
        };
        assert_eq!(clock.ahead(), Duration::ZERO, "before the first reading");
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
