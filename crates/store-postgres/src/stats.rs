//! Counts of trades by status, for metrics.
//!
//! The counts are read every few seconds, so no statement scans the trades: reserved trades are found in the list's index, and
//! closed trades are counted in their partners' rows of `books`.

use kernel::{Mode, StoreResult};
use partner_core::Tenant;
use pools_core::ports::TradeStats;
use pools_core::trade::TradeStatus;

use crate::conn::Conn;
use crate::row::Columns;
use crate::{PostgresStore, clock, errors};

impl PostgresStore {
    /// The number of trades in each status, and the age of the oldest reserved one.
    pub(crate) async fn standing_trades(&self, mode: Mode) -> StoreResult<TradeStats> {
        let mut conn = self.inner.conn().await?;
        let row = sqlx::query(TRADE_STATS)
            .bind(mode.as_str())
            .fetch_one(&mut *conn)
            .await
            .map_err(errors::statement)?;
        let server = clock::server(&mut conn).await?;
        let now = self.inner.clock.seen(server, 0)?;
        let row = Columns::new("books", &row);
        let mut by_status = TradeStatus::ALL.map(|status| (status, 0));
        for (status, count) in &mut by_status {
            *count = row.count(status.as_str())?;
        }
        Ok(TradeStats {
            by_status,
            oldest_reserved: row.opt_instant("oldest")?.map(|at| now.since(at)),
        })
    }
}

/// Counts a trade's change of status in the partner's row of `books`, which the transaction has locked.
pub(crate) async fn count_trade(
    conn: &mut Conn,
    who: &Tenant,
    from: TradeStatus,
    to: TradeStatus,
) -> StoreResult<()> {
    sqlx::query(
        "UPDATE books
         SET settled = settled + ($4 = 'settled')::integer - ($3 = 'settled')::integer,
             released = released + ($4 = 'released')::integer, failed = failed + ($4 = 'failed')::integer,
             returned = returned + ($4 = 'returned')::integer
         WHERE mode = $1 AND partner_id = $2",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(from.as_str())
    .bind(to.as_str())
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}

/// Does a look-up in the list's index for each partner, instead of a scan of all trades.
pub(crate) const TRADE_STATS: &str = "SELECT coalesce(sum(open.reserved), 0)::bigint AS reserved, min(open.oldest) AS oldest,
            coalesce(sum(b.settled), 0)::bigint AS settled, coalesce(sum(b.released), 0)::bigint AS released,
            coalesce(sum(b.failed), 0)::bigint AS failed, coalesce(sum(b.returned), 0)::bigint AS returned
     FROM books AS b
     CROSS JOIN LATERAL (
         SELECT count(*) AS reserved, min(t.created_at) AS oldest FROM trades AS t
         WHERE t.mode = b.mode AND t.partner_id = b.partner_id AND t.status = 'reserved'
     ) AS open
     WHERE b.mode = $1";
