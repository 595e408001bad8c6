//! The reference: the same statements through sqlx on SQLite, one commit per command, without HTTP.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Connection, Row, SqliteConnection};
use tokio::task::JoinSet;

use crate::Result;
use crate::provision::partner;
use acceptance::measure::Stopwatch;

const SCHEMA: &str = include_str!("reference.sql");

const START: i64 = 1_780_000_000_000;
const AMOUNT: i64 = 10_000_000_000;
const NOTIONAL: i64 = 10_850_000_000;
const CAP: i64 = 900_000_000_000_000_000;

/// A separate database with the service's schema.
pub(crate) struct Reference {
    pool: SqlitePool,
    options: SqliteConnectOptions,
    next: u64,
}

impl Reference {
    pub(crate) async fn create(folder: &Path, partners: usize) -> Result<Self> {
        let options = SqliteConnectOptions::new()
            .filename(folder.join("reference.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(Duration::from_secs(30));
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .connect_with(options.clone())
            .await?;
        sqlx::raw_sql(SCHEMA).execute(&pool).await?;
        let mut tx = pool.begin().await?;
        for number in 0..partners {
            sqlx::query("INSERT INTO accounts (mode, partner_id, asset, available, sequence) VALUES ('test', ?, 'EUR', ?, 1)")
                .bind(partner(number))
                .bind(CAP)
                .execute(&mut *tx)
                .await?;
            sqlx::query(
                "INSERT INTO velocity (mode, partner_id, total, floor) VALUES ('test', ?, 0, 0)",
            )
            .bind(partner(number))
            .execute(&mut *tx)
            .await?;
        }
        tx.commit().await?;
        Ok(Self {
            pool,
            options,
            next: 0,
        })
    }

    /// The version of the SQLite library that both sides link.
    pub(crate) async fn sqlite(&self) -> Result<String> {
        Ok(sqlx::query_scalar("SELECT sqlite_version()")
            .fetch_one(&self.pool)
            .await?)
    }

    /// Ids start with the time, as in the service.
    fn ids(&mut self, count: usize) -> Vec<String> {
        let first = self.next;
        self.next += count as u64;
        (first..self.next)
            .map(|number| format!("{number:026}"))
            .collect()
    }

    /// Creates quotes in one transaction before the measurement.
    pub(crate) async fn quotes(&mut self, count: usize, partners: usize) -> Result<Vec<Command>> {
        let ids = self.ids(count);
        let mut tx = self.pool.begin().await?;
        let mut commands = Vec::with_capacity(count);
        for (place, id) in ids.into_iter().enumerate() {
            let partner = partner(place % partners);
            insert_quote(&mut tx, &partner, &id).await?;
            commands.push(Command { partner, quote: id });
        }
        tx.commit().await?;
        Ok(commands)
    }

    /// Executes them sequentially, each with its own commit; returns the rate.
    pub(crate) async fn transact(&mut self, commands: &[Command]) -> Result<f64> {
        let ids = self.ids(commands.len() * 2);
        let mut conn = self.pool.acquire().await?;
        let watch = Stopwatch::start();
        for (command, ids) in commands.iter().zip(ids.chunks_exact(2)) {
            if let [trade, entry] = ids {
                execute(&mut conn, command, trade, entry).await?;
            }
        }
        Ok(commands.len() as f64 / watch.elapsed().as_secs_f64())
    }

    /// One row and one commit each, over this many connections; returns the rate.
    pub(crate) async fn insert_quotes(&mut self, count: usize, connections: usize) -> Result<f64> {
        let ids = self.ids(count);
        let share = count.div_ceil(connections);
        let mut open = Vec::new();
        for _ in 0..connections {
            open.push(SqliteConnection::connect_with(&self.options).await?);
        }
        let mut tasks: JoinSet<Result<()>> = JoinSet::new();
        let watch = Stopwatch::start();
        for (number, (mut conn, ids)) in open.into_iter().zip(ids.chunks(share)).enumerate() {
            let ids = ids.to_vec();
            let partner = partner(number);
            tasks.spawn(async move {
                for id in ids {
                    insert_quote(&mut conn, &partner, &id).await?;
                }
                Ok(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok(count as f64 / watch.elapsed().as_secs_f64())
    }

    /// Reads the newest 50 trades of a partner this often, over this many connections.
    pub(crate) async fn pages(
        &self,
        count: usize,
        connections: usize,
        number: usize,
    ) -> Result<f64> {
        let mut open = Vec::new();
        for _ in 0..connections {
            open.push(SqliteConnection::connect_with(&self.options).await?);
        }
        let mut tasks: JoinSet<Result<()>> = JoinSet::new();
        let watch = Stopwatch::start();
        for mut conn in open {
            let partner = partner(number);
            tasks.spawn(async move {
                for _ in 0..count.div_ceil(connections) {
                    page(&mut conn, &partner).await?;
                }
                Ok(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok((count.div_ceil(connections) * connections) as f64 / watch.elapsed().as_secs_f64())
    }

    pub(crate) async fn close(self) {
        self.pool.close().await;
    }
}

/// A transact: its partner and its quote.
pub(crate) struct Command {
    partner: String,
    quote: String,
}

async fn insert_quote(conn: &mut SqliteConnection, partner: &str, id: &str) -> Result<()> {
    sqlx::query(
        "INSERT INTO quotes (mode, partner_id, id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps, notional,
            dest_address, dest_network, created_at, expires_at)
         VALUES ('test', ?, ?, 'EUR-USDT', 'on_ramp', 'tron', ?, 10790325000, '1.0790325', 25, 30, ?,
            '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed', 'tron', ?, ?)",
    )
    .bind(partner)
    .bind(id)
    .bind(AMOUNT)
    .bind(NOTIONAL)
    .bind(START)
    .bind(START + 86_400_000)
    .execute(conn)
    .await?;
    Ok(())
}

/// One money transaction, statement by statement.
async fn execute(
    conn: &mut SqliteConnection,
    command: &Command,
    trade: &str,
    entry: &str,
) -> Result<()> {
    let Command { partner, quote } = command;
    let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
    let route = "POST /v1/pools/EUR-USDT/transact";
    let known = sqlx::query(
        "SELECT fingerprint, trade_id, created_at FROM idempotency_keys WHERE mode = 'test' AND partner_id = ? AND route = ? AND key = ?",
    )
    .bind(partner)
    .bind(route)
    .bind(quote)
    .fetch_optional(&mut *tx)
    .await?;
    let claimed = sqlx::query(
        "UPDATE quotes SET consumed_at = ? WHERE mode = 'test' AND partner_id = ? AND id = ?
            AND consumed_at IS NULL AND rejected_at IS NULL AND expires_at > ? RETURNING fiat, notional",
    )
    .bind(START + 1)
    .bind(partner)
    .bind(quote)
    .bind(START + 1)
    .fetch_optional(&mut *tx)
    .await?;
    let counted = sqlx::query(
        "UPDATE velocity SET total = total + ? WHERE mode = 'test' AND partner_id = ? AND total + ? <= ? RETURNING total",
    )
    .bind(NOTIONAL)
    .bind(partner)
    .bind(NOTIONAL)
    .bind(CAP)
    .fetch_optional(&mut *tx)
    .await?;
    let debited = sqlx::query(
        "UPDATE accounts SET available = available - ?, sequence = sequence + 1
         WHERE mode = 'test' AND partner_id = ? AND asset = 'EUR' AND available >= ? RETURNING available, sequence",
    )
    .bind(AMOUNT)
    .bind(partner)
    .bind(AMOUNT)
    .fetch_optional(&mut *tx)
    .await?;
    let (None, Some(_), Some(_), Some(account)) = (known, claimed, counted, debited) else {
        return Err("the reference refused a command".into());
    };
    insert_trade(&mut tx, partner, quote, trade).await?;
    sqlx::query(
        "INSERT INTO ledger_entries (mode, partner_id, id, asset, debit, credit, amount, reason, account_sequence, balance_after,
            reference, trade_id, part, created_at)
         VALUES ('test', ?, ?, 'EUR', 'partner', 'reserved', ?, 'buy_debit', ?, ?, ?, ?, 'reserve', ?)",
    )
    .bind(partner)
    .bind(entry)
    .bind(AMOUNT)
    .bind(account.try_get::<i64, _>("sequence")?)
    .bind(account.try_get::<i64, _>("available")?)
    .bind(quote)
    .bind(trade)
    .bind(START + 1)
    .execute(&mut *tx)
    .await?;
    sqlx::query(
        "INSERT INTO idempotency_keys (mode, partner_id, route, key, fingerprint, trade_id, created_at) VALUES ('test', ?, ?, ?, zeroblob(32), ?, ?)",
    )
    .bind(partner)
    .bind(route)
    .bind(quote)
    .bind(trade)
    .bind(START + 1)
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(())
}

async fn insert_trade(
    conn: &mut SqliteConnection,
    partner: &str,
    quote: &str,
    trade: &str,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO trades (mode, partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps, notional,
            dest_address, dest_network, reserved, status, created_at)
         VALUES ('test', ?, ?, ?, 'EUR-USDT', 'on_ramp', 'tron', ?, 10790325000, '1.0790325', 25, 30, ?,
            '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed', 'tron', ?, 'reserved', ?)",
    )
    .bind(partner)
    .bind(trade)
    .bind(quote)
    .bind(AMOUNT)
    .bind(NOTIONAL)
    .bind(AMOUNT)
    .bind(START + 1)
    .execute(conn)
    .await?;
    Ok(())
}

/// The select of a page; decodes every column.
async fn page(conn: &mut SqliteConnection, partner: &str) -> Result<()> {
    let rows = sqlx::query(
        "SELECT id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps, status, created_at, settled_at, fill
         FROM trades WHERE mode = 'test' AND partner_id = ? ORDER BY created_at DESC, id DESC LIMIT 51",
    )
    .bind(partner)
    .fetch_all(conn)
    .await?;
    let mut decoded = 0;
    for row in &rows {
        for text in [
            "id", "quote_id", "pool", "side", "network", "rate", "status",
        ] {
            decoded += row.try_get::<&str, _>(text)?.len();
        }
        for number in ["fiat", "crypto", "spread_bps", "fee_bps", "created_at"] {
            decoded += usize::from(row.try_get::<i64, _>(number)? > 0);
        }
        decoded += usize::from(row.try_get::<Option<i64>, _>("settled_at")?.is_some());
        decoded += usize::from(row.try_get::<Option<&str>, _>("fill")?.is_some());
    }
    if rows.len() < 50 || decoded == 0 {
        return Err("the reference page is not full".into());
    }
    Ok(())
}
