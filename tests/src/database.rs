//! A look into the database beside the service, through a connection of its own.

use std::collections::BTreeMap;
use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

/// A reader of the service's database.
#[derive(Debug, Clone)]
pub struct Database(SqlitePool);

impl Database {
    pub(crate) async fn open(file: &Path) -> Self {
        let options = SqliteConnectOptions::new().filename(file).read_only(true);
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .connect_with(options)
            .await;
        Self(pool.expect("the service's database"))
    }

    /// The content of every table, row by row.
    pub async fn digest(&self) -> BTreeMap<String, String> {
        let tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
        let mut digest = BTreeMap::new();
        for table in self.texts(tables).await {
            let columns = self
                .texts(&format!("SELECT name FROM pragma_table_info('{table}')"))
                .await;
            let row: Vec<String> = columns
                .iter()
                .map(|column| format!("quote(\"{column}\")"))
                .collect();
            let rows = self
                .texts(&format!(
                    "SELECT {} FROM \"{table}\" ORDER BY rowid",
                    row.join("||','||")
                ))
                .await;
            digest.insert(table, rows.join("\n"));
        }
        assert!(digest.len() > 5, "the tables are found");
        digest
    }

    /// How many rows a table has.
    pub async fn count(&self, table: &str) -> i64 {
        self.number(&format!("SELECT count(*) FROM {table}")).await
    }

    /// The one number a question answers.
    pub async fn number(&self, sql: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned()))
            .fetch_one(&self.0)
            .await
            .expect("a number")
    }

    /// The texts a question answers.
    pub async fn texts(&self, sql: &str) -> Vec<String> {
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned()))
            .fetch_all(&self.0)
            .await
            .expect("texts")
    }

    pub(crate) async fn damage(file: &Path, sql: &str) {
        let options = SqliteConnectOptions::new().filename(file);
        let mut conn = options.connect().await.expect("the service's database");
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        sql.execute(&mut conn).await.expect("damage");
        conn.close().await.expect("a closed connection");
    }

    pub(crate) async fn close(&self) {
        self.0.close().await;
    }
}
