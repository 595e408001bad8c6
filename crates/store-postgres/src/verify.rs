//! The audit of the whole database: Postgres' own checks (`checks.rs`), in the snapshot that the shared checks read.

mod checks;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use kernel::StoreError;
use partner_core::ports::{Audit, AuditProgress, AuditReport};
use partner_core::sealing::Sealer;
use partner_core::stored_response::ResponseCheck;
use sqlx::SqlSafeStr;
use store_sql::verify::{self, AuditSnapshot, ReportBreach};
use store_sql::{Connection, Snapshot};

use crate::conn::Conn;
use crate::open::AUDIT;
use crate::tx::PgTx;
use crate::{PostgresStore, clock, errors, velocity};

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
        let report = verify::audit(&mut seen, sealer, is_well_formed, progress, now).await?;
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

impl Snapshot for Seen<'_> {
    fn connection(&mut self) -> &mut dyn Connection {
        &mut *self.0
    }
}

#[async_trait]
impl AuditSnapshot for Seen<'_> {
    async fn check_schema(&mut self, report: ReportBreach<'_>) -> Result<(), StoreError> {
        self.missed(report).await?;
        self.made(checks::CHECKS, report).await
    }

    async fn check_references(&mut self, report: ReportBreach<'_>) -> Result<(), StoreError> {
        self.made(checks::REFERENCES, report).await
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
