//! Slow figures: memory after many requests, and a database of many trades.

use sqlx::{Connection as _, PgConnection};

use super::databases::{EMPTY, FILLED};
use super::{ON, Suite};
use crate::Result;
use crate::provision::{FUNDS, Installation, partner};
use crate::service::{CLIENTS, PARTNERS, READERS, Service, many};
use acceptance::measure::{Stopwatch, median};
use acceptance::table::{Figure, Row, Turns, mebibytes, millis, rate};

const FEW_REQUESTS: usize = 10_000;
const MANY_REQUESTS: usize = 1_000_000;
const TRADES: usize = 10_000_000;
/// Trades created by one statement.
const PORTION: usize = 250_000;

const MEMORY: Figure = Figure {
    on: ON,
    what: "resident memory after 1,000,000 requests; compared with after 10,000",
    bar: "≤ 1.2",
    goal: "≤ 1.05",
};
const SIZE: Figure = Figure {
    on: ON,
    what: "transact, 1,000 partners with 10,000,000 trades, 64 clients; compared with the same without any",
    bar: "≥ 0.9",
    goal: "≥ 0.97",
};

const CREDIT: Figure = Figure {
    on: ON,
    what: "`penstock balance credit`, partner with 10,000,000 trades; compared with a partner without any",
    bar: "≤ 1.2",
    goal: "≤ 1.05",
};
const PAUSE: Figure = Figure {
    on: ON,
    what: "first transact after a weekend, partner with 10,000,000 trades; compared with a partner without any",
    bar: "≤ 1.2",
    goal: "≤ 1.05",
};
const PAUSE_AT_THE_CAP: Figure = Figure {
    on: ON,
    what: "the same, after the partner with the trades had used up its velocity cap",
    bar: "≤ 1.2",
    goal: "≤ 1.05",
};
const POLL: Figure = Figure {
    on: ON,
    what: "poll, partner with 10,000,000 trades, 16 clients; compared with a partner without any",
    bar: "≥ 0.9",
    goal: "≥ 0.97",
};
/// Credits, and transacts after a pause of two days, per repetition.
const SAMPLES: usize = 20;
/// The single partner that owns all trades of a history.
const VETERAN: usize = 0;

impl Suite<'_> {
    /// Memory of a newly started service after requests, half quotes and half transacts.
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

    /// Alternates the service between two databases.
    pub(super) async fn size(&mut self) -> Result<()> {
        let empty = self.databases.copy(self.bench, EMPTY).await?;
        let filled = self.databases.copy(self.bench, FILLED).await?;
        self.fill(self.bench.work(TRADES), PARTNERS).await?;
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
        drop((empty, filled));
        self.databases.delete(EMPTY).await?;
        self.databases.delete(FILLED).await
    }

    /// Two databases; in one of them a single partner owns all trades.
    pub(super) async fn history(&mut self) -> Result<()> {
        let empty = self.databases.copy(self.bench, EMPTY).await?;
        let filled = self.databases.copy(self.bench, FILLED).await?;
        // Funds for the trades.
        filled.credit(VETERAN, FUNDS, "history")?;
        self.fill(self.bench.work(TRADES), 1).await?;
        let mut filled = self.veteran(filled, FILLED).await?;
        let mut empty = self.veteran(empty, EMPTY).await?;
        let [mut credits, mut pauses, mut at_the_cap, mut polls] = <[Turns; 4]>::default();
        for turn in self.bench.turns("PostgreSQL: one partner, many trades") {
            let mut spans = [const { Vec::new() }; 5];
            let [
                credit_filled,
                credit_empty,
                pause_filled,
                cap_filled,
                pause_empty,
            ] = &mut spans;
            for number in 0..SAMPLES {
                let reference = format!("turn-{turn}-{number}");
                credit_filled.push(filled.credit(&reference)?);
                credit_empty.push(empty.credit(&reference)?);
                pause_filled.push(filled.first_after_a_weekend(UNUSED).await?);
                cap_filled.push(filled.first_after_a_weekend(USED_UP).await?);
                pause_empty.push(empty.first_after_a_weekend(UNUSED).await?);
            }
            credits.push(median(credit_filled), median(credit_empty));
            let pause_empty = median(pause_empty);
            pauses.push(median(pause_filled), pause_empty);
            at_the_cap.push(median(cap_filled), pause_empty);
        }
        // After the pauses: polls need trades of today, but a paused partner must not trade.
        for _ in self.bench.turns("PostgreSQL: one partner, polls") {
            let count = self.bench.work(2000);
            polls.push(filled.polls(count).await?, empty.polls(count).await?);
        }
        self.row(credits.row(&CREDIT, millis));
        self.row(pauses.row(&PAUSE, millis));
        self.row(at_the_cap.row(&PAUSE_AT_THE_CAP, millis));
        self.row(polls.row(&POLL, rate));
        drop((filled, empty));
        self.databases.delete(EMPTY).await?;
        self.databases.delete(FILLED).await
    }

    async fn veteran(&self, installation: Installation, database: &str) -> Result<Veteran> {
        let service = Service::start(&installation)?;
        let conn = PgConnection::connect(&self.databases.server().url(database)).await?;
        Ok(Veteran {
            installation,
            service,
            conn,
        })
    }

    /// Settled trades of this many partners with their quotes and reserve entries, the newest two days old. Foreign keys
    /// are not checked, as in a restored dump.
    async fn fill(&self, trades: usize, partners: usize) -> Result<()> {
        let url = self.databases.server().url(FILLED);
        let mut conn = PgConnection::connect(&url).await?;
        sqlx::raw_sql(include_str!("../pgbench/history.sql"))
            .execute(&mut conn)
            .await?;
        for first in (0..trades).step_by(PORTION) {
            sqlx::query("SELECT history($1, $2, $3, $4)")
                .bind(i64::try_from(first)?)
                .bind(i64::try_from(PORTION.min(trades - first))?)
                .bind(i64::try_from(trades)?)
                .bind(i64::try_from(partners)?)
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

/// This many requests, half quotes and half transacts.
async fn requests(service: &Service, count: usize) -> Result<usize> {
    let transacts = service.transacts(count / 2, many).await?;
    service.load(CLIENTS, transacts).await?;
    Ok(count)
}

/// The partner that may have a history, and its service.
struct Veteran {
    installation: Installation,
    service: Service,
    conn: PgConnection,
}

impl Veteran {
    /// Duration of the operator's command, in seconds.
    fn credit(&self, reference: &str) -> Result<f64> {
        let watch = Stopwatch::start();
        self.installation.credit(VETERAN, "1", reference)?;
        Ok(watch.elapsed().as_secs_f64())
    }

    /// Duration of a transact two days after the previous one, in seconds. If the earlier trades had
    /// used up the cap, the total must drop them before the transact is admitted.
    async fn first_after_a_weekend(&mut self, total: &str) -> Result<f64> {
        sqlx::query(WEEKEND)
            .bind(partner(VETERAN))
            .bind(total)
            .execute(&mut self.conn)
            .await?;
        let transact = self.service.transacts(1, |_| VETERAN).await?;
        let load = self.service.load(1, transact).await?;
        Ok(load.took.as_secs_f64())
    }

    /// Polls of new trades per second.
    async fn polls(&self, count: usize) -> Result<f64> {
        let polls = self.service.polls(count, |_| VETERAN).await?;
        Ok(self.service.load(READERS, polls).await?.per_second())
    }
}

/// The cap, 9,000,000,000 USDT, in units of 10^-8: a partner with trades may have used it up.
const USED_UP: &str = "900000000000000000";
/// Value of the trades that count, far below the cap.
const UNUSED: &str = "0";
/// The total as the last trades before the pause left it, from three days ago.
const WEEKEND: &str = "INSERT INTO velocity (mode, partner_id, total, floor)
     VALUES ('test', $1, $2, (extract(epoch FROM now())::bigint - 3 * 86400) * 1000)
     ON CONFLICT (mode, partner_id) DO UPDATE SET total = excluded.total, floor = excluded.floor";
