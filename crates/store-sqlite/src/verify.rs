//! Audits the whole database: runs SQLite's own checks in the snapshot that the shared checks read.

use async_trait::async_trait;
use kernel::StoreResult;
use partner_core::ports::{Audit, AuditProgress, AuditReport};
use partner_core::sealing::Sealer;
use partner_core::stored_response::ResponseCheck;
use sqlx::{Connection as _, SqliteConnection};
use store_sql::velocity;
use store_sql::verify::{self, AuditSnapshot, ReportBreach, SchemaCheck};
use store_sql::{Connection, EngineTx as _, Row, Snapshot, Statement};

use crate::connection::Link;
use crate::tx::SqliteTx;
use crate::{SqliteStore, errors};

#[async_trait]
impl Audit for SqliteStore {
    async fn audit(
        &self,
        sealer: &Sealer,
        is_well_formed: ResponseCheck,
        progress: &AuditProgress<'_>,
    ) -> StoreResult<AuditReport> {
        let mut conn = self.inner.auditor().await?;
        let mut snapshot = conn.begin().await.map_err(errors::begin)?;
        let now = self.inner.clock.now();
        let mut seen = Link(&mut *snapshot);
        let report = verify::audit(&mut seen, sealer, is_well_formed, progress, now).await?;
        snapshot.rollback().await.map_err(errors::statement)?;
        conn.close().await.map_err(errors::statement)?;
        Ok(report)
    }

    async fn velocity_window_keep(&self) -> StoreResult<()> {
        let mut tx = SqliteTx::begin(self, "velocity_window_keep").await?;
        velocity::put_window(tx.connection(), self.inner.options.velocity_window).await?;
        tx.finish().await
    }
}

impl Snapshot for Link<&mut SqliteConnection> {
    fn connection(&mut self) -> &mut dyn Connection {
        self
    }
}

#[async_trait]
impl AuditSnapshot for Link<&mut SqliteConnection> {
    async fn check(&mut self, check: SchemaCheck, report: ReportBreach<'_>) -> StoreResult<()> {
        let statement = match check {
            SchemaCheck::Rules => &WHOLE,
            SchemaCheck::References => &REFERENCES,
        };
        let visit = &mut |row: &dyn Row| {
            report(row.text("breach")?.to_owned());
            Ok(())
        };
        self.walk(statement, &[], visit).await
    }
}

/// SQLite's integrity check: pages, indexes, types, unique keys, and the schema's `CHECK` constraints.
pub(crate) static WHOLE: Statement = Statement::new(
    "sqlite_schema",
    "SELECT integrity_check AS breach FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
);

/// SQLite's foreign key check.
pub(crate) static REFERENCES: Statement = Statement::new(
    "sqlite_schema",
    "SELECT \"table\" || ' row ' || coalesce(rowid, char(63)) || ' refers to no row of ' || parent AS breach
     FROM pragma_foreign_key_check",
);
