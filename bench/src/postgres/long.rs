//! What takes long: memory after many requests, and a database of many trades.

use sqlx::{Connection as _, PgConnection};

use super::databases::{EMPTY, FILLED};
use super::{ON, Suite};
use crate::Result;
use crate::service::{CLIENTS, PARTNERS, Service, many};
use crate::table::{Figure, Row, Turns, mebibytes, rate};

const FEW_REQUESTS: usize = 10_000;
const MANY_REQUESTS: usize = 1_000_000;
const TRADES: usize = 10_000_000;
/// Trades made by one statement.
const PORTION: usize = 250_000;

const MEMORY: Figure = Figure {
    on: ON,
    what: "resident memory after 1,000,000 requests; beside after 10,000",
    bar: "≤ 1.2",
    goal: "≤ 1.05",
};
const SIZE: Figure = Figure {
    on: ON,
    what: "transact, 1,000 partners with 10,000,000 trades, 64 clients; beside the same without any",
    bar: "≥ 0.9",
    goal: "≥ 0.97",
};

impl Suite<'_> {
    /// Requests are half quotes, half transacts, of a service that has just been started.
    pub(super) async fn memory(&mut self) -> Result<()> {
        let service = Service::start(&self.installation)?;
        let mut sent = requests(&service, FEW_REQUESTS).await?;
        let early = service.resident()?;
        let wanted = self.bench.work(MANY_REQUESTS);
        while sent < wanted {
            sent += requests(&service, FEW_REQUESTS).await?;
            eprint!("\r{sent} of {wanted} requests");
        }
        eprintln!();
        let late = service.resident()?;
        self.row(Row::pair(&MEMORY, late as f64, early as f64, mebibytes));
        Ok(())
    }

    /// Two databases, the service on each in turn.
    pub(super) async fn size(&mut self) -> Result<()> {
        let empty = self.databases.copy(self.bench, EMPTY).await?;
        let filled = self.databases.copy(self.bench, FILLED).await?;
        self.fill(self.bench.work(TRADES)).await?;
        let (empty, filled) = (Service::start(&empty)?, Service::start(&filled)?);
        let mut turns = Turns::default();
        for _ in self.bench.turns("PostgreSQL: transact, many trades") {
            let count = self.bench.work(8000);
            let (of_filled, of_empty) = (
                filled.transacts(count, many).await?,
                empty.transacts(count, many).await?,
            );
            let of_filled = filled.load(CLIENTS, of_filled).await?;
            let of_empty = empty.load(CLIENTS, of_empty).await?;
            turns.push(of_filled.per_second(), of_empty.per_second());
        }
        self.row(turns.row(&SIZE, rate));
        Ok(())
    }

    /// Settled trades of the thousand partners with their quotes and reserve entries, the newest two days old. Foreign keys
    /// are not looked up, as with a dump that is restored.
    async fn fill(&self, trades: usize) -> Result<()> {
        let url = self.databases.server().url(FILLED);
        let mut conn = PgConnection::connect(&url).await?;
        sqlx::raw_sql(include_str!("../../pgbench/history.sql"))
            .execute(&mut conn)
            .await?;
        for first in (0..trades).step_by(PORTION) {
            sqlx::query("SELECT history($1, $2, $3, $4)")
                .bind(i64::try_from(first)?)
                .bind(i64::try_from(PORTION.min(trades - first))?)
                .bind(i64::try_from(trades)?)
                .bind(i64::try_from(PARTNERS)?)
                .execute(&mut conn)
                .await?;
            eprint!("\r{first} of {trades} trades");
        }
        eprintln!();
        sqlx::raw_sql("SELECT history_end()")
            .execute(&mut conn)
            .await?;
        sqlx::raw_sql("VACUUM ANALYZE").execute(&mut conn).await?;
        sqlx::raw_sql("CHECKPOINT").execute(&mut conn).await?;
        Ok(())
    }
}

/// So many requests, half quotes and half transacts.
async fn requests(service: &Service, count: usize) -> Result<usize> {
    let transacts = service.transacts(count / 2, many).await?;
    service.load(CLIENTS, transacts).await?;
    Ok(count)
}
