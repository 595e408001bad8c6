//! Maintenance: bounds the tables and records when keys were used.

use std::time::Duration;

use async_trait::async_trait;
use kernel::{Mode, Readable, StoreError};
use partner_core::Tenant;
use partner_core::events::Service;
use partner_core::key::KeyUse;
use partner_core::ports::{KeySweep, KeysSwept, Maintenance};
use pools_core::ports::{Forgotten, QuoteRetention};
use store_sql::{EngineTx as _, idempotency, previews, quote_retention, rails};

use crate::tx::SqliteTx;
use crate::{SqliteStore, keys};

#[async_trait]
impl Maintenance for SqliteStore {
    async fn idempotency_sweep(
        &self,
        sweep: &KeySweep,
        limit: u32,
    ) -> Result<KeysSwept, StoreError> {
        let mut tx = SqliteTx::begin(self, "idempotency_sweep").await?;
        let now = tx.instant().await?;
        let ttl = self.inner.options.idempotency_ttl;
        let mut swept = idempotency::sweep(tx.connection(), sweep, limit, now, ttl).await?;
        if sweep.service == Service::Gate {
            let previews = previews::sweep(tx.connection(), now.minus(sweep.age), limit).await?;
            let payouts = rails::erase_payouts(tx.connection(), sweep.mode, now, limit).await?;
            swept.deleted = swept
                .deleted
                .saturating_add(previews)
                .saturating_add(payouts);
            swept.more |= previews.max(payouts) >= u64::from(limit);
        }
        tx.finish().await?;
        Ok(swept)
    }

    async fn key_uses_record(&self, uses: &[KeyUse]) -> Result<(), StoreError> {
        let mut tx = SqliteTx::begin(self, "key_uses_record").await?;
        let now = tx.instant().await?;
        keys::record_uses(tx.conn(), uses, now).await?;
        tx.finish().await
    }

    /// Does nothing: without statistics SQLite chooses the index of which a statement binds the most columns.
    async fn gather_statistics(&self) -> Result<u64, StoreError> {
        Ok(0)
    }
}

#[async_trait]
impl QuoteRetention for SqliteStore {
    async fn quotes_overdue(
        &self,
        mode: Mode,
        expired_for: Duration,
        limit: u32,
    ) -> Result<Readable<Tenant>, StoreError> {
        let mut reader = self.inner.read().await?;
        quote_retention::overdue(&mut reader, mode, expired_for, limit).await
    }

    async fn quotes_forget(
        &self,
        who: &Tenant,
        expired_for: Duration,
        limit: u32,
    ) -> Result<Forgotten, StoreError> {
        let tx = self.begin_tx("quotes_forget").await?;
        quote_retention::forget(tx, who, expired_for, limit).await
    }
}
