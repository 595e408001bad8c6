//! The invariants of the whole database: this store's statements, and how they are run.
//!
//! What rows can show by themselves is asked in SQL (`queries.rs`, for the gate `gate.rs` and
//! `rails.rs`). The rest is walked row by row ([`store_sql::verify`]; `walked.rs`). All of it is
//! read from one snapshot.

mod gate;
mod queries;
mod rails;
mod walked;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use kernel::StoreError;
use partner_core::ports::{Audit, AuditProgress, AuditReport};
use partner_core::sealing::Sealer;
use partner_core::stored_response::ResponseCheck;
use sqlx::{Connection as _, SqliteConnection};
use store_sql::verify::{self, AuditQuery, ReportBreach, RowVisitor, Snapshot, Statements};

use crate::row::Columns;
use crate::tx::SqliteTx;
use crate::{SqliteStore, errors, velocity};

const STATEMENTS: Statements = Statements {
    figures: queries::FIGURES,
    asked: &[queries::INVARIANTS, gate::INVARIANTS, rails::INVARIANTS],
    walked: walked::WALKED,
};

/// Every statement of an audit that finds rows.
#[cfg(test)]
pub(crate) fn statements() -> impl Iterator<Item = &'static str> {
    let schema = [queries::WHOLE, queries::REFERENCES];
    // What the operator provisions is small: this one sorts it.
    let growing = STATEMENTS
        .all()
        .filter(|one| *one != queries::SHARED_DEPOSITS);
    schema.into_iter().chain(growing)
}

#[async_trait]
impl Audit for SqliteStore {
    async fn audit(
        &self,
        sealer: &Sealer,
        is_well_formed: ResponseCheck,
        progress: &AuditProgress<'_>,
    ) -> Result<AuditReport, StoreError> {
        let mut conn = self.inner.auditor().await?;
        let mut snapshot = conn.begin().await.map_err(errors::begin)?;
        let now = self.inner.clock.now();
        let mut seen = Seen(&mut snapshot);
        let report = verify::audit(
            &mut seen,
            &STATEMENTS,
            sealer,
            is_well_formed,
            progress,
            now,
        )
        .await?;
        snapshot.rollback().await.map_err(errors::statement)?;
        conn.close().await.map_err(errors::statement)?;
        Ok(report)
    }

    async fn velocity_window_keep(&self) -> Result<(), StoreError> {
        let mut tx = SqliteTx::begin(self, "velocity_window_keep").await?;
        velocity::keep_window(tx.conn(), self.inner.options.velocity_window).await?;
        tx.finish().await
    }
}

/// The database as the snapshot of a connection has it.
struct Seen<'c>(&'c mut SqliteConnection);

#[async_trait]
impl Snapshot for Seen<'_> {
    async fn count(&mut self, statement: &'static str) -> Result<i64, StoreError> {
        sqlx::query_scalar(statement)
            .fetch_one(&mut *self.0)
            .await
            .map_err(errors::statement)
    }

    async fn ask(&mut self, ask: AuditQuery, tell: ReportBreach<'_>) -> Result<(), StoreError> {
        let statement = match ask {
            AuditQuery::Whole => queries::WHOLE,
            AuditQuery::References => queries::REFERENCES,
            AuditQuery::Statement(statement) => statement,
        };
        let mut texts = sqlx::query_scalar(statement).fetch(&mut *self.0);
        while let Some(text) = texts.try_next().await.map_err(errors::statement)? {
            tell(text);
        }
        Ok(())
    }

    async fn walk(
        &mut self,
        table: &'static str,
        statement: &'static str,
        look: RowVisitor<'_>,
    ) -> Result<(), StoreError> {
        let mut rows = sqlx::query(statement).fetch(&mut *self.0);
        while let Some(row) = rows.try_next().await.map_err(errors::statement)? {
            look(&Columns::new(table, &row))?;
        }
        Ok(())
    }
}
