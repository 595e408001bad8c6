//! The running totals of the velocity cap: their rows, and the trades that a total drops or adds.

use std::time::Duration;

use async_trait::async_trait;
use kernel::{Seen, StoreResult};
use partner_core::Tenant;
use pools_core::ports::{VelocityRange, VelocityTx};
use pools_core::velocity::{CountedTrades, TradesRead, Velocity};

use crate::{Connection, Reader, Row, Sql, Statement, StoreTx, values};

#[async_trait]
impl VelocityTx for StoreTx {
    async fn velocity_lock(&mut self, who: &Tenant) -> StoreResult<Option<Velocity>> {
        let values = values![who.mode, &who.partner];
        let row = self
            .locked(who)
            .await?
            .fetch_optional(&FIND, values)
            .await?;
        row.map(|row| velocity_of(&*row)).transpose()
    }

    async fn velocity_put(&mut self, who: &Tenant, velocity: &Velocity) -> StoreResult<()> {
        let total = velocity.total.to_string();
        let values = values![who.mode, &who.partner, &total, velocity.floor];
        let connection = self.locked(who).await?;
        connection.execute(&PUT, values).await.map(drop)
    }

    async fn velocity_read(
        &mut self,
        who: &Tenant,
        range: VelocityRange,
        limit: u32,
    ) -> StoreResult<TradesRead> {
        let statement = if range.newest_first { &NEWEST } else { &OLDEST };
        let offset = limit.saturating_sub(1);
        let values = values![who.mode, &who.partner, range.after, range.up_to, offset];
        let rows = self.locked(who).await?.fetch_all(statement, values).await?;
        let mut crossed = TradesRead::default();
        for row in &rows {
            crossed.reached = row.opt_instant("reached")?;
            crossed.notionals.extend(row.opt_integer("notional")?);
        }
        Ok(crossed)
    }
}

static FIND: Statement = Statement::new(
    "velocity",
    "SELECT partner_id, total, floor FROM velocity WHERE mode = $1 AND partner_id = $2",
);

static PUT: Statement = Statement::new(
    "velocity",
    "INSERT INTO velocity (mode, partner_id, total, floor) VALUES ($1, $2, $3, $4)
     ON CONFLICT (mode, partner_id) DO UPDATE SET total = excluded.total, floor = excluded.floor",
);

/// The counted trades after $3 and up to $4, the oldest first, but no later than the instant of the trade after the first $5.
/// Returns at least one row, which has that instant.
pub static OLDEST: Statement = Statement::new(
    "trades",
    "WITH bound AS MATERIALIZED (
         SELECT (SELECT t.created_at FROM trades AS t
                 WHERE t.mode = $1 AND t.partner_id = $2 AND t.created_at > $3 AND t.created_at <= $4
                 ORDER BY t.created_at LIMIT 1 OFFSET CAST($5 AS bigint)) AS reached
     )
     SELECT b.reached, t.notional FROM bound AS b
     LEFT JOIN trades AS t ON t.mode = $1 AND t.partner_id = $2 AND t.created_at > $3
          AND t.created_at <= coalesce(b.reached, $4) AND t.status NOT IN ('released', 'failed')",
);

/// The trades of [`OLDEST`], the newest first.
pub static NEWEST: Statement = Statement::new(
    "trades",
    "WITH bound AS MATERIALIZED (
         SELECT (SELECT t.created_at FROM trades AS t
                 WHERE t.mode = $1 AND t.partner_id = $2 AND t.created_at > $3 AND t.created_at <= $4
                 ORDER BY t.created_at DESC LIMIT 1 OFFSET CAST($5 AS bigint)) AS reached
     )
     SELECT b.reached, t.notional FROM bound AS b
     LEFT JOIN trades AS t ON t.mode = $1 AND t.partner_id = $2 AND t.created_at <= $4
          AND t.created_at >= coalesce(b.reached, $3 + 1) AND t.status NOT IN ('released', 'failed')",
);

/// The total of a partner with the oldest trades after its floor.
pub async fn counted(
    reader: &mut dyn Reader,
    who: &Tenant,
    limit: u32,
) -> StoreResult<Option<Seen<CountedTrades>>> {
    let values = values![who.mode, &who.partner, limit];
    let rows = reader.connection().fetch_all(&COUNTED, values).await?;
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let velocity = velocity_of(&**first)?;
    let mut oldest = Vec::with_capacity(rows.len());
    for row in &rows {
        let created_at = row.opt_instant("created_at")?;
        oldest.extend(created_at.zip(row.opt_integer("notional")?));
    }
    oldest.sort_unstable();
    let counted = CountedTrades { velocity, oldest };
    reader.seen(counted).await.map(Some)
}

/// The total, with each of the oldest $3 trades after its floor. A trade that does not count has the notional 0.
pub static COUNTED: Statement = Statement::new(
    "trades",
    "WITH running AS MATERIALIZED (
         SELECT total, floor FROM velocity WHERE mode = $1 AND partner_id = $2
     ), oldest AS MATERIALIZED (
         SELECT t.created_at, CASE WHEN t.status IN ('released', 'failed') THEN 0 ELSE t.notional END AS notional
         FROM trades AS t
         WHERE t.mode = $1 AND t.partner_id = $2 AND t.created_at > (SELECT floor FROM running)
         ORDER BY t.created_at LIMIT CAST($3 AS bigint)
     )
     SELECT running.total, running.floor, oldest.created_at, oldest.notional FROM running LEFT JOIN oldest ON true",
);

/// A total, or `None` if the statement's outer join found none.
pub fn opt_velocity(row: &dyn Row) -> StoreResult<Option<Velocity>> {
    if row.opt_text("total")?.is_none() {
        return Ok(None);
    }
    velocity_of(row).map(Some)
}

pub fn velocity_of(row: &dyn Row) -> StoreResult<Velocity> {
    Ok(Velocity {
        total: row.parsed("total", |text| text.parse().ok())?,
        floor: row.instant("floor")?,
    })
}

/// Stores the service's window with the instant of the newest trade, unless the window is stored already.
pub async fn put_window(connection: &mut dyn Connection, window: Duration) -> StoreResult<()> {
    let millis = i64::try_from(window.as_millis()).unwrap_or(i64::MAX);
    let values = values![millis];
    connection.execute(&PUT_WINDOW, values).await.map(drop)
}

macro_rules! put_window {
    ($newest:literal) => {
        concat!(
            "INSERT INTO velocity_window (id, millis, since) VALUES (1, $1, coalesce((",
            $newest,
            "), 0))
             ON CONFLICT (id) DO UPDATE SET millis = excluded.millis, since = excluded.since
             WHERE velocity_window.millis <> excluded.millis"
        )
    };
}

/// Postgres finds the newest trade by each partner's index, SQLite by the row number.
static PUT_WINDOW: Statement = Statement::per_engine(
    "velocity_window",
    Sql {
        sqlite: put_window!("SELECT created_at FROM trades ORDER BY rowid DESC LIMIT 1"),
        postgres: put_window!(
            "SELECT max(newest.created_at)
             FROM partners AS p
             CROSS JOIN LATERAL (
                 SELECT t.created_at FROM trades AS t
                 WHERE t.mode = p.mode AND t.partner_id = p.partner_id ORDER BY t.created_at DESC LIMIT 1
             ) AS newest"
        ),
    },
);
