//! The invariants of the whole database: this store's statements, and how they are run.
//!
//! What rows can show by themselves is asked in SQL (`queries.rs`, for the gate `gate.rs` and
//! `rails.rs`, and `checks.rs` for what the schema forbids). The rest is walked row by row
//! ([`store_sql::verify`]; `walked.rs`). All of it is read from one snapshot.

mod checks;
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
use sqlx::SqlSafeStr;
use store_sql::verify::{self, AuditQuery, ReportBreach, RowVisitor, Snapshot, Statements};

use crate::conn::Conn;
use crate::open::AUDIT;
use crate::row::Columns;
use crate::tx::PgTx;
use crate::{PostgresStore, clock, errors, velocity};

const STATEMENTS: Statements = Statements {
    figures: queries::FIGURES,
    asked: &[queries::INVARIANTS, gate::INVARIANTS, rails::INVARIANTS],
    walked: walked::WALKED,
};

#[async_trait]
impl Audit for PostgresStore {
    async fn audit(
        &self,
        sealer: &Sealer,
        is_well_formed: ResponseCheck,
        progress: &AuditProgress<'_>,
    ) -> Result<AuditReport, StoreError> {
        let mut conn = self.inner.auditor().await?;
        conn.run(AUDIT).await.map_err(errors::statement)?;
        let server = clock::server(&mut conn).await?;
        let now = self.inner.clock.seen(server, 0)?;
        let mut seen = Seen(&mut conn);
        let report = verify::audit(
            &mut seen,
            &STATEMENTS,
            sealer,
            is_well_formed,
            progress,
            now,
        )
        .await?;
        conn.run("ROLLBACK").await.map_err(errors::statement)?;
        conn.close().await;
        Ok(report)
    }

    async fn velocity_window_keep(&self) -> Result<(), StoreError> {
        let mut tx = PgTx::begin(self, "velocity_window_keep").await?;
        velocity::keep_window(tx.conn(), self.inner.options.velocity_window).await?;
        tx.finish().await
    }
}

/// The database as the snapshot of a connection has it.
struct Seen<'c>(&'c mut Conn);

#[async_trait]
impl Snapshot for Seen<'_> {
    async fn count(&mut self, statement: &'static str) -> Result<i64, StoreError> {
        sqlx::query_scalar(statement)
            .fetch_one(&mut *self.0)
            .await
            .map_err(errors::statement)
    }

    async fn ask(&mut self, ask: AuditQuery, tell: ReportBreach<'_>) -> Result<(), StoreError> {
        match ask {
            AuditQuery::Whole => {
                self.missed(tell).await?;
                self.made(checks::CHECKS, tell).await
            }
            AuditQuery::References => self.made(checks::REFERENCES, tell).await,
            AuditQuery::Statement(statement) => self.said(statement, tell).await,
        }
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

impl Seen<'_> {
    /// Tells what a statement answers, a text a row.
    async fn said(
        &mut self,
        statement: impl SqlSafeStr,
        tell: ReportBreach<'_>,
    ) -> Result<(), StoreError> {
        let mut texts = sqlx::query_scalar(statement).fetch(&mut *self.0);
        while let Some(text) = texts.try_next().await.map_err(errors::statement)? {
            tell(text);
        }
        Ok(())
    }
}
