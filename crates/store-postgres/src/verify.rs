//! The invariants of the whole database: every check has a name, and names the rows that break it.
//!
//! What rows can show by themselves is asked in SQL (`queries.rs`, for the gate `gate.rs`, and `checks.rs` for the CHECKs of
//! the schema). The rest is walked row by row
//! in Rust, so that no total overflows and every rule is the cores' own: sums and chains of the
//! ledger (`ledger.rs`), what the velocity cap counts (`velocity.rs`), each row read as what it
//! stands for (`rows.rs`), and what is sealed (`seals.rs`). All of it is read from one snapshot,
//! and only sums per account or partner are kept, never the rows.

mod checks;
mod gate;
mod ledger;
mod previews;
mod queries;
mod rails;
mod rows;
mod seals;
mod velocity;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use kernel::{StoreError, Timestamp};
use partner_core::audit::Breaches;
use partner_core::ports::{Audit, AuditProgress, AuditReport, AuditStep};
use partner_core::sealing::Sealer;
use sqlx::postgres::PgRow;
use sqlx::types::Uuid;
use sqlx::{Connection as _, PgConnection, Row as _, SqlSafeStr};

use crate::open::AUDIT;
use crate::row::written;
use crate::tx::PgTx;
use crate::{PostgresStore, clock, errors};

/// Progress is told every so many rows.
const TOLD: u64 = 100_000;
/// Invariants that are walked, and the CHECKs of the schema; the others are asked in SQL.
const WALKED: usize = 19;

#[async_trait]
impl Audit for PostgresStore {
    async fn audit(
        &self,
        sealer: &Sealer,
        progress: &AuditProgress<'_>,
    ) -> Result<AuditReport, StoreError> {
        let mut conn = self.inner.auditor().await?;
        let mut snapshot = conn.begin_with(AUDIT).await.map_err(errors::statement)?;
        let server = clock::server(&mut snapshot).await?;
        let now = self.inner.clock.settle(server, 0)?;
        let mut work = Work {
            conn: &mut snapshot,
            sealer,
            progress,
            now,
            report: AuditReport::default(),
        };
        work.run().await?;
        let report = work.report;
        snapshot.rollback().await.map_err(errors::statement)?;
        conn.close().await.map_err(errors::statement)?;
        Ok(report)
    }

    async fn velocity_window_keep(&self) -> Result<(), StoreError> {
        let mut tx = PgTx::begin(self, "velocity_window_keep").await?;
        velocity::keep_window(tx.conn(), self.inner.options.velocity_window).await?;
        tx.finish().await
    }
}

/// What is asked in SQL: the name of each invariant, with the query for the rows that break it.
fn asked() -> impl Iterator<Item = (&'static str, &'static str)> {
    queries::INVARIANTS
        .into_iter()
        .chain(gate::INVARIANTS)
        .chain(rails::INVARIANTS)
}

/// An audit under way.
struct Work<'a> {
    conn: &'a mut PgConnection,
    sealer: &'a Sealer,
    progress: &'a AuditProgress<'a>,
    /// The store's clock when the audit began.
    now: Timestamp,
    report: AuditReport,
}

impl Work<'_> {
    async fn run(&mut self) -> Result<(), StoreError> {
        for (figure, query) in queries::FIGURES {
            let rows: i64 = sqlx::query_scalar(query)
                .fetch_one(&mut *self.conn)
                .await
                .map_err(errors::statement)?;
            self.report.figures.push((figure, rows.to_string()));
        }
        self.checks().await?;
        for (invariant, query) in asked() {
            self.described(invariant, query).await?;
        }
        self.ledger().await?;
        self.velocity().await?;
        self.rows().await?;
        self.previews().await?;
        self.rails().await?;
        self.seals().await
    }

    /// Runs a query whose every row is a breach, described in its one column.
    async fn described(
        &mut self,
        invariant: &'static str,
        query: &'static str,
    ) -> Result<(), StoreError> {
        let mut breaches = Breaches::default();
        self.each(invariant, query, |row| {
            let text: String = row.try_get(0).map_err(errors::statement)?;
            breaches.add(|| text);
            Ok(())
        })
        .await?;
        self.found(invariant, breaches);
        Ok(())
    }

    /// Goes through the rows of a query for an invariant, and tells how far it is. A few hundred
    /// of them at a time are in memory, however many there are.
    async fn each(
        &mut self,
        invariant: &'static str,
        query: impl SqlSafeStr,
        mut look: impl FnMut(&PgRow) -> Result<(), StoreError> + Send,
    ) -> Result<(), StoreError> {
        let mut step = AuditStep {
            invariant,
            number: self.report.findings.len().saturating_add(1),
            of: asked().count().saturating_add(WALKED),
            rows: 0,
        };
        (self.progress)(step);
        let mut rows = sqlx::query(query).fetch(&mut *self.conn);
        while let Some(row) = rows.try_next().await.map_err(errors::statement)? {
            look(&row)?;
            step.rows = step.rows.saturating_add(1);
            if step.rows.is_multiple_of(TOLD) {
                (self.progress)(step);
            }
        }
        Ok(())
    }

    fn found(&mut self, invariant: &'static str, breaches: Breaches) {
        self.report.findings.push(breaches.of(invariant));
    }
}

/// A row's own name: mode, partner and what else it is known by.
fn named(row: &PgRow, noun: &str) -> Result<String, StoreError> {
    let (mode, partner) = (text(row, "mode")?, text(row, "partner_id")?);
    let id = text(row, "id").or_else(|_| id(row))?;
    Ok(format!("{mode}/{partner} {noun} {id}"))
}

fn id(row: &PgRow) -> Result<String, StoreError> {
    row.try_get::<Uuid, _>("id")
        .map(written)
        .map_err(errors::statement)
}

fn text(row: &PgRow, column: &str) -> Result<String, StoreError> {
    row.try_get(column).map_err(errors::statement)
}

fn integer(row: &PgRow, column: &str) -> Result<i64, StoreError> {
    row.try_get(column).map_err(errors::statement)
}
