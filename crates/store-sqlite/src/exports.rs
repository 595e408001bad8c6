//! Exports of a partner's trades and ledger entries. Each export reads its own snapshot.

use async_trait::async_trait;
use kernel::StoreError;
use partner_core::Tenant;
use pools_core::export::{ExportedEntry, Window};
use pools_core::ports::{Exports, Pages};
use pools_core::trade::Trade;
use store_sql::exports;

use crate::SqliteStore;
use crate::connection::Link;

#[async_trait]
impl Exports for SqliteStore {
    async fn trades_export(
        &self,
        who: &Tenant,
        window: Window,
    ) -> Result<Box<dyn Pages<Trade>>, StoreError> {
        let snapshot = Link(self.inner.snapshot().await?);
        Ok(exports::trades(Box::new(snapshot), who, window))
    }

    async fn ledger_export(
        &self,
        who: &Tenant,
        window: Window,
    ) -> Result<Box<dyn Pages<ExportedEntry>>, StoreError> {
        let snapshot = Link(self.inner.snapshot().await?);
        exports::ledger(Box::new(snapshot), who, window).await
    }
}
