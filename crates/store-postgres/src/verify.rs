//! Audits the whole database: runs Postgres' own checks (`checks.rs`) in the snapshot that the shared checks read.

mod checks;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use kernel::StoreResult;
use partner_core::ports::{Audit, AuditProgress, AuditReport};
use partner_core::sealing::Sealer;
use partner_core::stored_response::ResponseCheck;
use sqlx::SqlSafeStr;
use store_sql::velocity;
use store_sql::verify::{self, AuditSnapshot, ReportBreach, SchemaCheck};
use store_sql::{Connection, Snapshot};

use crate::conn::Conn;
use crate::open::AUDIT;
use crate::tx::PgTx;
use crate::{PostgresStore, clock, errors};

#[async_trait]
impl Audit for PostgresStore {
    async fn audit(
        &self,
        sealer: &Sealer,
        is_well_formed: ResponseCheck,
        progress: &AuditProgress<'_>,
    ) -> StoreResult<AuditReport> {
        let mut conn = self.inner.auditor().await?;
        conn.run(AUDIT).await.map_err(errors::statement)?;
        let server = clock::server(&mut conn).await?;
        let now = self.inner.clock.seen(server, 0)?;
        let mut audited = Audited(&mut conn);
        let report = verify::audit(&mut audited, sealer, is_well_formed, progress, now).await?;
        conn.run("ROLLBACK").await.map_err(errors::statement)?;
        conn.close().await;
        Ok(report)
    }

    async fn velocity_window_keep(&self) -> StoreResult<()> {
        let mut tx = PgTx::begin(self, "velocity_window_keep").await?;
        velocity::put_window(tx.conn(), self.inner.options.velocity_window).await?;
        tx.finish().await
    }
}

/// A connection inside the snapshot of an audit.
struct Audited<'c>(&'c mut Conn);

impl Snapshot for Audited<'_> {
    fn connection(&mut self) -> &mut dyn Connection {
        &mut *self.0
    }
}

#[async_trait]
impl AuditSnapshot for Audited<'_> {
    async fn check(&mut self, check: SchemaCheck, report: ReportBreach<'_>) -> StoreResult<()> {
        match check {
            SchemaCheck::Rules => {
                self.report_missing(report).await?;
                self.report_generated(checks::CHECKS, report).await
            }
            SchemaCheck::References => self.report_generated(checks::REFERENCES, report).await,
        }
    }
}

impl Audited<'_> {
    /// Reports the text of each row of a statement.
    async fn report_rows(
        &mut self,
        statement: impl SqlSafeStr,
        report: ReportBreach<'_>,
    ) -> StoreResult<()> {
        let mut texts = sqlx::query_scalar(statement).fetch(&mut *self.0);
        while let Some(text) = texts.try_next().await.map_err(errors::statement)? {
            report(text);
        }
        Ok(())
    }
}
