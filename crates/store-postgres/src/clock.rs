//! The store's clock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::conn::Conn;
use kernel::{Clock, StoreError, Timestamp};
use partner_core::clock::{ClockJump, ClockWatch};
use pools_core::ports::CLOCK_TOLERANCE;
use store_sql::jumps;

use crate::errors;
use crate::quotes::Instants;

/// The server's clock, held back from ever going backwards: the largest of what it says, the last
/// instant used here, and the last one written to the books that are held. Servers' clocks step,
/// and after a failover it is another server's.
///
/// A jump ahead of the time that has passed here is not believed: what would write is refused, and reads go by the time
/// passed.
///
/// Tests give it a clock of theirs, which then counts instead of the server's.
pub(crate) struct StoreClock {
    given: Option<Arc<dyn Clock>>,
    last: AtomicI64,
    ahead: AtomicI64,
    /// Tells how much time has passed.
    process: Arc<dyn Clock>,
    watch: ClockWatch,
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
        process: Arc<dyn Clock>,
        conn: &mut Conn,
    ) -> Result<Self, StoreError> {
        let noted = jumps::read(conn).await?;
        let elapsed = process.elapsed();
        let now = match &given {
            Some(clock) => clock.now(),
            None => instant(server(conn).await?)?,
        };
        let newest = newest(conn).await?;
        // Another process has stored a later instant since, so only the process that noted the jump was wrong.
        let jump = noted.jump.filter(|jump| newest < jump.found.millis());
        Ok(Self {
            given,
            last: AtomicI64::new(newest),
            ahead: AtomicI64::new(0),
            process,
            watch: ClockWatch::start(now, elapsed, jump),
        })
    }

    /// Learns what other processes have stored, and answers the newest instant of it.
    pub(crate) async fn learn(&self, conn: &mut Conn) -> Result<Timestamp, StoreError> {
        let newest = newest(conn).await?;
        // What this process has stored tells it nothing new.
        if newest > self.last() {
            self.watch.learn(instant(newest)?, self.elapsed());
        }
        instant(newest)
    }

    /// What counts instead of the server's clock.
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

    /// What counts where the server's clock said `server`.
    pub(crate) fn read(&self, server: i64) -> Result<Timestamp, StoreError> {
        instant(self.given().unwrap_or(server))
    }

    /// Is the clock believed?
    pub(crate) fn judge(&self, now: Timestamp) -> Result<(), ClockJump> {
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

    /// The instant of a read at which the server's clock said `server`. While the clock is not believed, reads go by the
    /// time that has passed.
    pub(crate) fn seen(&self, server: i64, floor: i64) -> Result<Timestamp, StoreError> {
        match self.judge(self.read(server)?) {
            Ok(()) => self.settle(server, floor),
            Err(jump) => instant(jump.expected.millis().max(floor).max(self.last())),
        }
    }

    /// The instant of something that is written, at which the server's clock said `server`, no earlier than `floor`.
    pub(crate) fn settle(&self, server: i64, floor: i64) -> Result<Timestamp, StoreError> {
        let base = self.given().unwrap_or(server);
        self.take(base, base.max(floor).max(self.last()))
    }

    /// Takes an instant that was settled in a statement, where the clock said `base`.
    pub(crate) fn take(&self, base: i64, at: i64) -> Result<Timestamp, StoreError> {
        self.judge(instant(base)?).map_err(|jump| refused(&jump))?;
        self.last.fetch_max(at, Ordering::AcqRel);
        self.ahead.store(at.saturating_sub(base), Ordering::Release);
        instant(at)
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

fn instant(millis: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_millis(millis).ok_or_else(|| StoreError::Inconsistent {
        table: "books",
        column: "at",
        row: millis.to_string(),
    })
}

/// Nothing is stored at an instant that nobody believes.
fn refused(jump: &ClockJump) -> StoreError {
    StoreError::unavailable(format!(
        "the database's clock jumped {} s ahead of the time that has passed; nothing is stored until it is set right, or an operator runs `penstock clock accept`",
        jump.span().as_secs()
    ))
}

/// Asks the server, in a statement of its own: one that also locks would say when it began to wait.
pub(crate) async fn server(conn: &mut Conn) -> Result<i64, StoreError> {
    sqlx::query_scalar("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        .fetch_one(conn)
        .await
        .map_err(errors::statement)
}

async fn newest(conn: &mut Conn) -> Result<i64, StoreError> {
    let newest = sqlx::query_scalar(NEWEST).fetch_one(conn).await;
    newest.map_err(errors::statement)
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

    struct Noon;

    impl Clock for Noon {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(1_780_000_000_000).unwrap()
        }
    }

    fn clock() -> StoreClock {
        StoreClock {
            given: None,
            last: AtomicI64::new(0),
            ahead: AtomicI64::new(0),
            process: Arc::new(Noon),
            watch: ClockWatch::start(Noon.now(), Noon.elapsed(), None),
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
