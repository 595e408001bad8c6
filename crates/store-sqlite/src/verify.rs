//! The invariants of the whole database: every check has a name, and names the rows that break it.
//!
//! What rows can show by themselves is asked in SQL (`queries.rs`); sums and chains are walked in
//! Rust in 128 bits (`walks.rs`), so that no total overflows and nothing rests on SQL arithmetic.
//! All of it is read from one snapshot.

mod queries;
mod walks;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use kernel::StoreError;
use partner_core::ports::{Audit, AuditReport, Finding};
use sqlx::{Row as _, SqliteConnection};

use crate::{SqliteStore, errors};

/// Breaches described; the rest is counted.
const SHOWN: usize = 20;

#[async_trait]
impl Audit for SqliteStore {
    async fn audit(&self) -> Result<AuditReport, StoreError> {
        let mut snapshot = self.inner.snapshot().await?;
        let mut report = AuditReport::default();
        for (figure, query) in queries::FIGURES {
            report
                .figures
                .push((figure, count(&mut snapshot, query).await?));
        }
        for (invariant, query) in queries::INVARIANTS {
            let breaches = described(&mut snapshot, query).await?;
            report.findings.push(breaches.finding(invariant));
        }
        walks::walk(&mut snapshot, &mut report).await?;
        snapshot.rollback().await.map_err(errors::statement)?;
        Ok(report)
    }
}

/// Rows that break one invariant.
#[derive(Debug, Default)]
struct Breaches {
    shown: Vec<String>,
    count: u64,
}

impl Breaches {
    fn add(&mut self, describe: impl FnOnce() -> String) {
        self.count = self.count.saturating_add(1);
        if self.shown.len() < SHOWN {
            self.shown.push(describe());
        }
    }

    fn finding(self, invariant: &'static str) -> Finding {
        Finding {
            invariant,
            breaches: self.shown,
            count: self.count,
        }
    }
}

async fn count(conn: &mut SqliteConnection, query: &'static str) -> Result<String, StoreError> {
    let rows: i64 = sqlx::query_scalar(query)
        .fetch_one(conn)
        .await
        .map_err(errors::statement)?;
    Ok(rows.to_string())
}

/// Runs a query whose every row is a breach, described in its one column.
async fn described(
    conn: &mut SqliteConnection,
    query: &'static str,
) -> Result<Breaches, StoreError> {
    let mut breaches = Breaches::default();
    let mut rows = sqlx::query(query).fetch(conn);
    while let Some(row) = rows.try_next().await.map_err(errors::statement)? {
        let text: String = row.try_get(0).map_err(errors::statement)?;
        breaches.add(|| text);
    }
    Ok(breaches)
}
