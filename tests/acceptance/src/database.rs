//! Queries on the service's database through a separate connection.
//!
//! Queries use SQL that both stores accept. They write ids as ULID texts
//! and use `ulid(id)` to read an id as text.

use std::collections::BTreeMap;
use std::path::Path;

use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

/// A reader of the service's database.
#[derive(Debug, Clone)]
pub enum Database {
    /// On the embedded store.
    Sqlite(SqlitePool),
    /// On a database server.
    Postgres(PgPool),
}

impl Database {
    pub(crate) async fn of_file(file: &Path) -> Self {
        let options = SqliteConnectOptions::new().filename(file).read_only(true);
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .connect_with(options)
            .await;
        Self::Sqlite(pool.expect("the service's database"))
    }

    pub(crate) async fn of_server(url: &str) -> Self {
        let pool = PgPoolOptions::new().max_connections(1).connect(url).await;
        Self::Postgres(pool.expect("the service's database"))
    }

    /// The content of every table, row by row.
    pub async fn digest(&self) -> BTreeMap<String, String> {
        let mut digest = BTreeMap::new();
        for table in self.texts(self.tables()).await {
            let rows = match self {
                Self::Sqlite(_) => self.rows_of_file(&table).await,
                Self::Postgres(_) => {
                    let rows = format!("SELECT t::text FROM \"{table}\" AS t ORDER BY t::text");
                    self.texts(&rows).await
                }
            };
            digest.insert(table, rows.join("\n"));
        }
        assert!(digest.len() > 5, "the tables are found");
        digest
    }

    const fn tables(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => {
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
            }
            Self::Postgres(_) => {
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
            }
        }
    }

    async fn rows_of_file(&self, table: &str) -> Vec<String> {
        let columns = format!("SELECT name FROM pragma_table_info('{table}')");
        let columns = self.texts(&columns).await;
        let row: Vec<String> = columns
            .iter()
            .map(|column| format!("quote(\"{column}\")"))
            .collect();
        let row = row.join("||','||");
        let rows = format!("SELECT {row} FROM \"{table}\" ORDER BY rowid");
        self.texts(&rows).await
    }

    /// What the database holds, byte by byte: the files of the embedded store, and the rows of a server with their columns of
    /// bytes in the clear.
    pub async fn files(&self) -> Vec<u8> {
        let Self::Sqlite(_) = self else {
            return in_the_clear(self.digest().await.into_values().collect());
        };
        let place = "SELECT file FROM pragma_database_list WHERE name = 'main'";
        let mut bytes = Vec::new();
        for file in self.texts(place).await {
            for part in ["", "-wal"] {
                bytes.extend(std::fs::read(format!("{file}{part}")).unwrap_or_default());
            }
        }
        assert!(bytes.len() > 4096, "the files are found");
        bytes
    }

    /// The number of rows of a table.
    pub async fn count(&self, table: &str) -> i64 {
        self.number(&format!("SELECT count(*) FROM {table}")).await
    }

    /// The single number that a query returns.
    pub async fn number(&self, sql: &str) -> i64 {
        let found = match self {
            Self::Sqlite(pool) => {
                let asked = sqlx::query_scalar(AssertSqlSafe(as_text(sql)));
                asked.fetch_one(pool).await
            }
            Self::Postgres(pool) => {
                let asked = format!(
                    "SELECT ({})::bigint",
                    test_support::test_database::with_ids(sql)
                );
                let asked = sqlx::query_scalar(AssertSqlSafe(asked));
                asked.fetch_one(pool).await
            }
        };
        found.unwrap_or_else(|fault| panic!("{sql}: {fault}"))
    }

    /// The texts that a query returns.
    pub async fn texts(&self, sql: &str) -> Vec<String> {
        let found = match self {
            Self::Sqlite(pool) => {
                let asked = sqlx::query_scalar(AssertSqlSafe(as_text(sql)));
                asked.fetch_all(pool).await
            }
            Self::Postgres(pool) => {
                let asked = test_support::test_database::with_ids(sql);
                let asked = format!("SELECT answer::text FROM ({asked}) AS answers (answer)");
                let asked = sqlx::query_scalar(AssertSqlSafe(asked));
                asked.fetch_all(pool).await
            }
        };
        found.unwrap_or_else(|fault| panic!("{sql}: {fault}"))
    }

    pub(crate) async fn damage(file: &Path, sql: &str) {
        let options = SqliteConnectOptions::new().filename(file);
        let mut conn = options.connect().await.expect("the service's database");
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        sql.execute(&mut conn).await.expect("damage");
        conn.close().await.expect("a closed connection");
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

/// Rows of a server, followed by the bytes that they show in hexadecimal.
fn in_the_clear(rows: String) -> Vec<u8> {
    let mut bytes = Vec::new();
    for shown in rows.split("\\x").skip(1) {
        let mut digits = shown.chars().map_while(|sign| sign.to_digit(16));
        while let (Some(high), Some(low)) = (digits.next(), digits.next()) {
            bytes.push(u8::try_from(high * 16 + low).expect("a byte"));
        }
        bytes.push(b'\n');
    }
    [rows.into_bytes(), bytes].concat()
}

/// SQLite stores ids as text already.
fn as_text(sql: &str) -> String {
    sql.replace("ulid(", "(")
}
