//! The store's clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::conn::Conn;
use kernel::{Clock, StoreError, StoreResult, Timestamp};
use partner_core::clock::{ClockJump, ClockWatch};
use pools_core::ports::CLOCK_TOLERANCE;
use store_sql::jumps;

use crate::errors;
use crate::quotes::Instants;

/// A clock that never goes backwards.
///
/// Its instant is the latest of the server's clock, the last instant used here, and the last instant stored with the partner
/// locks held. A server's clock may be set back, and after a failover it is another server's.
///
/// A jump of the server's clock ahead of the time elapsed here is rejected: writes are refused, and reads use the elapsed time.
/// Tests replace the server's clock by a clock of their own.
pub(crate) struct StoreClock {
    given: Option<Arc<dyn Clock>>,
    last: AtomicI64,
    ahead: AtomicI64,
    /// Measures the elapsed time.
    process: Arc<dyn Clock>,
    watch: ClockWatch,
}

impl StoreClock {
    /// Creates a clock that starts no earlier than the newest stored instant.
    pub(crate) async fn start(
        given: Option<Arc<dyn Clock>>,
        process: Arc<dyn Clock>,
        conn: &mut Conn,
    ) -> StoreResult<Self> {
        let noted = jumps::read(conn).await?;
        let elapsed = process.elapsed();
        let now = match &given {
            Some(clock) => clock.now(),
            None => instant(server(conn).await?)?,
        };
        let newest = newest(conn).await?;
        // If another process has stored a later instant since, only the process that stored the jump was wrong.
        let jump = noted.jump.filter(|jump| newest < jump.found.millis());
        Ok(Self {
            given,
            last: AtomicI64::new(newest),
            ahead: AtomicI64::new(0),
            process,
            watch: ClockWatch::start(now, elapsed, jump),
        })
    }

    /// Reads the newest instant that any process has stored, and lets the watch accept it.
    pub(crate) async fn learn(&self, conn: &mut Conn) -> StoreResult<Timestamp> {
        let newest = newest(conn).await?;
        // An instant that this process has stored proves nothing.
        if newest > self.last() {
            self.watch.learn(instant(newest)?, self.elapsed());
        }
        instant(newest)
    }

    /// The instant of the clock that replaces the server's in tests.
    pub(crate) fn given(&self) -> Option<i64> {
        self.given.as_ref().map(|clock| clock.now().millis())
    }

    /// The last instant used here.
    pub(crate) fn last(&self) -> i64 {
        self.last.load(Ordering::Acquire)
    }

    /// The process's monotonic time.
    pub(crate) fn elapsed(&self) -> Duration {
        self.process.elapsed()
    }

    pub(crate) const fn watch(&self) -> &ClockWatch {
        &self.watch
    }

    /// The instant of the clock, given the server's.
    pub(crate) fn read(&self, server: i64) -> StoreResult<Timestamp> {
        instant(self.given().unwrap_or(server))
    }

    /// Returns the jump if the clock is ahead of the elapsed time.
    pub(crate) fn check(&self, now: Timestamp) -> Result<(), ClockJump> {
        let last = Timestamp::from_millis(self.last()).unwrap_or(Timestamp::EARLIEST);
        self.watch.judge(now, self.elapsed(), last)
    }

    /// The bounds of the instant of a statement that commits by itself.
    pub(crate) fn instants(&self) -> Instants {
        let last = Timestamp::from_millis(self.last()).unwrap_or(Timestamp::EARLIEST);
        Instants {
            given: self.given(),
            last: self.last(),
            latest: self.watch.latest(self.elapsed(), last).millis(),
        }
    }

    /// The instant of a read, given the server's. While the clock is rejected, it is the elapsed time's.
    pub(crate) fn seen(&self, server: i64, floor: i64) -> StoreResult<Timestamp> {
        match self.check(self.read(server)?) {
            Ok(()) => self.resolve(server, floor),
            Err(jump) => instant(jump.expected.millis().max(floor).max(self.last())),
        }
    }

    /// The instant of a write, given the server's. It is not earlier than `floor`.
    pub(crate) fn resolve(&self, server: i64, floor: i64) -> StoreResult<Timestamp> {
        let base = self.given().unwrap_or(server);
        self.take(base, base.max(floor).max(self.last()))
    }

    /// Accepts the instant `at` that a statement resolved from the clock's instant `base`.
    pub(crate) fn take(&self, base: i64, at: i64) -> StoreResult<Timestamp> {
        self.check(instant(base)?).map_err(|jump| refused(&jump))?;
        self.last.fetch_max(at, Ordering::AcqRel);
        self.ahead.store(at.saturating_sub(base), Ordering::Release);
        instant(at)
    }

    /// Refuses to trade at the instant `at` if it is ahead of the clock's, `base`, by more than the tolerance.
    pub(crate) fn check_moving(base: i64, at: Timestamp) -> StoreResult<()> {
        let ahead = u64::try_from(at.millis().saturating_sub(base)).unwrap_or_default();
        if Duration::from_millis(ahead) <= CLOCK_TOLERANCE {
            return Ok(());
        }
        Err(StoreError::unavailable(format!(
            "the database's clock is {ahead} ms behind the last stored instant; trading resumes when it has caught up"
        )))
    }

    /// How far this clock was ahead of the server's at its last use.
    pub(crate) fn ahead(&self) -> Duration {
        let ahead = u64::try_from(self.ahead.load(Ordering::Acquire));
        Duration::from_millis(ahead.unwrap_or_default())
    }
}

fn instant(millis: i64) -> StoreResult<Timestamp> {
    Timestamp::from_millis(millis).ok_or_else(|| StoreError::Inconsistent {
        table: "books",
        column: "at",
        row: millis.to_string(),
    })
}

/// The error of a write while the clock is rejected.
fn refused(jump: &ClockJump) -> StoreError {
    StoreError::unavailable(format!(
        "the database's clock jumped {} s ahead of the elapsed time; writes are refused until you correct the clock or run `penstock clock accept`",
        jump.span().as_secs()
    ))
}

/// Reads the server's clock in a separate statement: one that also waits for a lock could read it before the wait.
pub(crate) async fn server(conn: &mut Conn) -> StoreResult<i64> {
    sqlx::query_scalar("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        .fetch_one(conn)
        .await
        .map_err(errors::statement)
}

async fn newest(conn: &mut Conn) -> StoreResult<i64> {
    let newest = sqlx::query_scalar(NEWEST).fetch_one(conn).await;
    newest.map_err(errors::statement)
}

/// The newest stored instant. Every write except a quote stores its instant with the partner lock, in `books`.
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

    struct FixedClock;

    impl Clock for FixedClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(1_780_000_000_000).unwrap()
        }
    }

    fn clock() -> StoreClock {
        StoreClock {
            given: None,
            last: AtomicI64::new(0),
            ahead: AtomicI64::new(0),
            process: Arc::new(FixedClock),
            watch: ClockWatch::start(FixedClock.now(), FixedClock.elapsed(), None),
        }
    }

    // rule: base.clock-forward
    #[test]
    fn store_clock_stands_and_reports_lead_when_server_clock_is_set_back() {
        let (clock, noon) = (clock(), 1_780_000_000_000);
        let before = clock.resolve(noon, 0).unwrap();
        assert_eq!(clock.ahead(), Duration::ZERO);
        assert_eq!(clock.resolve(noon - 90_000, 0).unwrap(), before);
        assert_eq!(clock.ahead(), Duration::from_secs(90));
        assert!(clock.resolve(noon + 1, 0).unwrap() > before);
        assert_eq!(clock.ahead(), Duration::ZERO);
    }

    // rule: base.clock-forward
    #[test]
    fn store_clock_never_precedes_stored_instant() {
        let (clock, noon) = (clock(), 1_780_000_000_000);
        let at = clock.resolve(noon, noon + 500).unwrap();
        assert_eq!(at.millis(), noon + 500);
        assert_eq!(clock.resolve(noon, 0).unwrap(), at);
    }

    // rule: base.clock-standing
    #[test]
    fn trading_is_refused_when_clock_is_too_far_behind() {
        let noon = 1_780_000_000_000;
        let at = Timestamp::from_millis(noon).unwrap();
        assert!(StoreClock::check_moving(noon, at).is_ok());
        assert!(StoreClock::check_moving(noon - 2_000, at).is_ok());
        assert!(StoreClock::check_moving(noon - 2_001, at).is_err());
    }
}
