//! Maintenance: bounds the tables, records when keys were used, and gathers statistics.

use std::time::Duration;

use async_trait::async_trait;
use kernel::{Mode, Readable, StoreError};
use partner_core::Tenant;
use partner_core::events::Service;
use partner_core::key::KeyUse;
use partner_core::ports::{KeySweep, KeysSwept, Maintenance};
use pools_core::ports::{Forgotten, QuoteRetention};
use store_sql::{idempotency, previews, quote_retention, rails};

use crate::tx::PgTx;
use crate::{PostgresStore, errors, keys};

#[async_trait]
impl Maintenance for PostgresStore {
    async fn idempotency_sweep(
        &self,
        sweep: &KeySweep,
        limit: u32,
    ) -> Result<KeysSwept, StoreError> {
        let mut tx = PgTx::begin(self, "idempotency_sweep").await?;
        let now = tx.instant().await?;
        let ttl = self.inner.options.idempotency_ttl;
        let mut swept = idempotency::sweep(tx.conn(), sweep, limit, now, ttl).await?;
        if sweep.service == Service::Gate {
            let previews = previews::sweep(tx.conn(), now.minus(sweep.age), limit).await?;
            let payouts = rails::erase_payouts(tx.conn(), sweep.mode, now, limit).await?;
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
        let mut tx = PgTx::begin(self, "key_uses_record").await?;
        let now = tx.instant().await?;
        keys::record_uses(tx.conn(), uses, now).await?;
        tx.finish().await
    }

    async fn gather_statistics(&self) -> Result<u64, StoreError> {
        let mut conn = self.inner.conn().await?;
        let gathered: i64 = sqlx::query_scalar("SELECT gather_statistics()")
            .fetch_one(&mut *conn)
            .await
            .map_err(errors::statement)?;
        Ok(gathered.unsigned_abs())
    }
}

#[async_trait]
impl QuoteRetention for PostgresStore {
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
