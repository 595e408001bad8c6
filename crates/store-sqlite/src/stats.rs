//! Counts of trades by status, for metrics.
//!
//! The counts are read every few seconds, so no statement scans a table: reserved trades are found in the list's index, and a
//! closed trade is counted once, when its transition is first read.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use kernel::{Mode, StoreResult};
use pools_core::ports::TradeStats;
use pools_core::trade::TradeStatus;
use sqlx::SqliteConnection;

use crate::row::Columns;
use crate::{SqliteStore, errors};

/// Transitions that one statement reads, so that the first count in a large database does not block for long.
const MAX_TRANSITIONS: i64 = 50_000;

/// The transitions read so far. Transitions are only appended, so their row numbers grow.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    seen: i64,
    /// The number of trades in each closed status.
    closed: BTreeMap<(Mode, TradeStatus), u64>,
}

impl SqliteStore {
    /// The number of trades in each status, and the age of the oldest reserved one.
    pub(crate) async fn standing_trades(&self, mode: Mode) -> StoreResult<TradeStats> {
        let mut tally = self.lock_tally().clone();
        let mut conn = self.inner.reader().await?;
        while tally.read_next(&mut conn).await? {}
        let (reserved, oldest) = reserved(&mut conn, mode).await?;
        let now = self.inner.clock.now();
        let closed = |status| {
            tally
                .closed
                .get(&(mode, status))
                .copied()
                .unwrap_or_default()
        };
        let count = |status| match status {
            TradeStatus::Reserved => reserved,
            status => closed(status),
        };
        let stats = TradeStats {
            by_status: TradeStatus::ALL.map(|status| (status, count(status))),
            oldest_reserved: oldest.map(|at| now.since(at)),
        };
        *self.lock_tally() = tally;
        Ok(stats)
    }

    fn lock_tally(&self) -> std::sync::MutexGuard<'_, Tally> {
        self.inner
            .tally
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tally {
    /// Counts the next transitions. Returns whether there may be more.
    async fn read_next(&mut self, conn: &mut SqliteConnection) -> StoreResult<bool> {
        let rows = sqlx::query(TRANSITIONS)
            .bind(self.seen)
            .bind(MAX_TRANSITIONS)
            .fetch_all(conn)
            .await
            .map_err(errors::statement)?;
        let mut read = 0_i64;
        for row in &rows {
            let row = Columns::new("trade_transitions", row);
            let mode = row.parsed("mode", Mode::parse)?;
            let (from, to) = (
                row.parsed("from_status", TradeStatus::parse)?,
                row.parsed("to_status", TradeStatus::parse)?,
            );
            let steps = row.integer("steps")?;
            read = read.saturating_add(steps);
            self.seen = self.seen.max(row.integer("newest")?);
            let steps = u64::try_from(steps).map_err(|_| row.bad("steps"))?;
            let arrived = self.closed.entry((mode, to)).or_default();
            *arrived = arrived.saturating_add(steps);
            if from != TradeStatus::Reserved {
                let left = self.closed.entry((mode, from)).or_default();
                *left = left.saturating_sub(steps);
            }
        }
        Ok(read >= MAX_TRANSITIONS)
    }
}

/// The number of reserved trades, and the instant of the oldest.
async fn reserved(
    conn: &mut SqliteConnection,
    mode: Mode,
) -> StoreResult<(u64, Option<kernel::Timestamp>)> {
    let row = sqlx::query(OPEN)
        .bind(mode.as_str())
        .fetch_one(conn)
        .await
        .map_err(errors::statement)?;
    let row = Columns::new("trades", &row);
    let reserved = u64::try_from(row.integer("reserved")?).map_err(|_| row.bad("reserved"))?;
    Ok((reserved, row.opt_instant("oldest")?))
}

pub(crate) const TRANSITIONS: &str =
    "SELECT mode, from_status, to_status, count(*) AS steps, max(place) AS newest
     FROM (
         SELECT rowid AS place, mode, from_status, to_status
         FROM trade_transitions WHERE rowid > ?1 ORDER BY rowid LIMIT +?2
     )
     GROUP BY mode, from_status, to_status";

/// Does two look-ups in the list's index for each partner, instead of a scan of all trades.
pub(crate) const OPEN: &str =
    "SELECT coalesce(sum(reserved), 0) AS reserved, min(oldest) AS oldest
     FROM (
         SELECT (SELECT count(*) FROM trades AS t
                 WHERE t.mode = p.mode AND t.partner_id = p.partner_id AND t.status = 'reserved') AS reserved,
                (SELECT min(created_at) FROM trades AS t
                 WHERE t.mode = p.mode AND t.partner_id = p.partner_id AND t.status = 'reserved') AS oldest
         FROM partners AS p WHERE p.mode = ?1
     )";
