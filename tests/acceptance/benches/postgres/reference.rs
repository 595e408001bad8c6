//! The references: the scripts of `tests/acceptance/benches/pgbench`, run by `pgbench -M prepared` on the same server, with
//! the service's own tables in a separate database.

use sqlx::{Connection as _, PgConnection};
use test_support::servers::Postgres;

use super::databases::REFERENCE;
use acceptance::measure::pgbench_rate;

use crate::Result;

/// A script and its options.
#[derive(Clone, Copy)]
pub(super) struct Script {
    text: &'static str,
    pub(super) connections: usize,
    /// Number of partners.
    pub(super) partners: usize,
    /// Whether a money transaction also inserts an event.
    event: bool,
}

const MONEY: &str = include_str!("../pgbench/money.sql");
const NAIVE: &str = include_str!("../pgbench/naive.sql");
const QUOTE: &str = include_str!("../pgbench/quote.sql");
const PAGE: &str = include_str!("../pgbench/page.sql");

/// R: the money transaction as one plpgsql function.
pub(super) const fn money(connections: usize, partners: usize) -> Script {
    Script {
        text: MONEY,
        connections,
        partners,
        event: true,
    }
}

/// R with only the rows that the service writes: its event is written when a trade ends.
pub(super) const fn same_rows(connections: usize, partners: usize) -> Script {
    Script {
        event: false,
        ..money(connections, partners)
    }
}

/// BEGIN, nine statements, COMMIT.
pub(super) const fn naive(connections: usize, partners: usize) -> Script {
    Script {
        text: NAIVE,
        ..money(connections, partners)
    }
}

/// One insert and its commit.
pub(super) const fn quote(connections: usize, partners: usize) -> Script {
    Script {
        text: QUOTE,
        ..money(connections, partners)
    }
}

/// The select of a page.
pub(super) const fn page(connections: usize) -> Script {
    Script {
        text: PAGE,
        ..money(connections, 1)
    }
}

/// Results of an execution.
pub(super) struct Executed {
    pub(super) per_second: f64,
    /// Bytes of the server's log per transaction.
    pub(super) logged: f64,
}

/// The database of the references.
pub(super) struct Reference {
    conn: PgConnection,
    /// Positions up to here are used.
    next: usize,
}

impl Reference {
    /// Creates the function in a database with the service's tables.
    pub(super) async fn create(postgres: &Postgres) -> Result<Self> {
        let mut conn = PgConnection::connect(&postgres.url(REFERENCE)).await?;
        sqlx::raw_sql(include_str!("../pgbench/reference.sql"))
            .execute(&mut conn)
            .await?;
        Ok(Self { conn, next: 0 })
    }

    /// Executes about this many new quotes with a script of money transactions.
    pub(super) async fn execute(
        &mut self,
        postgres: &Postgres,
        script: Script,
        count: usize,
    ) -> Result<Executed> {
        let each = count.div_ceil(script.connections);
        let count = each * script.connections;
        let first = self.quotes(count, script.partners).await?;
        let before = self.logged().await?;
        let per_second = pgbench(postgres, script, first, each)?;
        let logged = (self.logged().await? - before) / count as f64;
        Ok(Executed { per_second, logged })
    }

    /// Runs a script without preparation about this often; returns its rate.
    pub(super) fn run(&mut self, postgres: &Postgres, script: Script, count: usize) -> Result<f64> {
        let each = count.div_ceil(script.connections);
        let first = self.take(each * script.connections);
        pgbench(postgres, script, first, each)
    }

    /// Gives the partner of the page script this many trades.
    pub(super) async fn history(&mut self, count: usize) -> Result<()> {
        let first = self.quotes(count, 1).await?;
        sqlx::query(
            "SELECT money(place, 'partner-0', true) FROM generate_series($1::bigint, $2) AS place",
        )
        .bind(i64::try_from(first)?)
        .bind(i64::try_from(first + count - 1)?)
        .execute(&mut self.conn)
        .await?;
        self.analyze().await
    }

    /// Bytes that the server has written to its log.
    pub(super) async fn logged(&mut self) -> Result<f64> {
        let bytes: i64 = sqlx::query_scalar("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
            .fetch_one(&mut self.conn)
            .await?;
        Ok(bytes as f64)
    }

    /// Creates quotes before the measurement. Returns the first position.
    async fn quotes(&mut self, count: usize, partners: usize) -> Result<usize> {
        let first = self.take(count);
        sqlx::query("SELECT reference_quotes($1, $2, $3)")
            .bind(i64::try_from(first)?)
            .bind(i64::try_from(count)?)
            .bind(i64::try_from(partners)?)
            .execute(&mut self.conn)
            .await?;
        self.analyze().await?;
        Ok(first)
    }

    /// Invalidates plans for the earlier table sizes.
    async fn analyze(&mut self) -> Result<()> {
        sqlx::raw_sql(
            "ANALYZE quotes, trades, ledger_entries, idempotency_keys, events, accounts, velocity",
        )
        .execute(&mut self.conn)
        .await?;
        Ok(())
    }

    fn take(&mut self, count: usize) -> usize {
        let first = self.next;
        self.next += count;
        first
    }
}

fn pgbench(postgres: &Postgres, script: Script, first: usize, each: usize) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("script.sql");
    std::fs::write(&file, script.text)?;
    let mut command = postgres.client("pgbench", REFERENCE)?;
    command
        .args([
            "-n",
            "-M",
            "prepared",
            "-c",
            &script.connections.to_string(),
        ])
        .args(["-t", &each.to_string(), "-f"])
        .arg(&file)
        .args(["-D", &format!("first={first}"), "-D", "done=0"])
        .args(["-D", &format!("connections={}", script.connections)])
        .args(["-D", &format!("partners={}", script.partners)])
        .args(["-D", &format!("event={}", script.event)]);
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("pgbench: {said}{why}").into());
    }
    pgbench_rate(&said).ok_or_else(|| format!("pgbench printed no rate: {said}").into())
}
