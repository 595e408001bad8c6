//! The queue of deliveries. Workers claim deliveries by endpoint, and conclude them with the lease's token.
//!
//! A delivery is never due before the earlier open deliveries of its object. So a claim skips few rows, even if many deliveries wait
//! for a failing endpoint.

pub(crate) mod claim;
pub(crate) mod step;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Cas, Mode, StoreError};
use partner_core::Tenant;
use partner_core::events::{DeliveryId, Service};
use partner_core::ports::{
    ClaimRequest, ClaimedDelivery, ConcludedDelivery, Deliveries, DeliveryAdmin, DeliveryFilter,
    DeliveryRecord, DeliveryView, QueueStats, QueueWaker,
};
use partner_core::webhooks::delivery::{DeliveryInput, Lease, Progress};
use partner_core::webhooks::fairness::allocate;
use sqlx::SqliteConnection;
use store_sql::Row;
use store_sql::deliveries::{self, LeftOutRows, admin, progress};

use crate::row::{Columns, json, key};
use crate::tx::SqliteTx;
use crate::{SqliteStore, errors};
use claim::{endpoints_of, first_lease, lapse, pick, queues, take_leases};
use step::{Step, apply, follow};

/// The deliveries that could not be read, by the numbers of their rows.
pub(crate) type LeftOut = LeftOutRows<i64>;

#[async_trait]
impl Deliveries for SqliteStore {
    async fn deliveries_claim(
        &self,
        request: &ClaimRequest,
    ) -> Result<Vec<ClaimedDelivery>, StoreError> {
        let mut tx = SqliteTx::begin(self, "deliveries_claim").await?;
        let now = tx.instant().await?;
        let (mode, left_out) = (request.mode, &self.inner.left_out);
        let lapsed = lapse(tx.conn(), mode, now, left_out).await?;
        let mut queues = queues(tx.conn(), mode, request.service, (left_out, now)).await?;
        queues.retain(|queue| queue.since <= now);
        let allocated = allocate(queues, &request.room);
        let picked = pick(tx.conn(), mode, &allocated, now, left_out).await?;
        if lapsed == 0 && picked.is_empty() {
            return Ok(Vec::new());
        }
        let lease = Lease {
            token: request.token,
            until: now.plus(request.lease),
        };
        take_leases(tx.conn(), &picked, lease, now).await?;
        let endpoints = endpoints_of(tx.conn(), request, &picked, (now, left_out)).await?;
        tx.finish().await?;
        picked
            .into_iter()
            .map(|picked| picked.claimed(mode, &endpoints))
            .collect()
    }

    /// The transaction is the only writer, so no delivery is locked.
    async fn deliveries_conclude(
        &self,
        batch: &[ConcludedDelivery],
    ) -> Result<Vec<Option<Cas>>, StoreError> {
        let mut tx = SqliteTx::begin(self, "deliveries_conclude").await?;
        let now = tx.instant().await?;
        let mut found = find(tx.conn(), batch).await?;
        let mut outcomes = vec![Some(Cas::Lost); batch.len()];
        let mut steps = Vec::new();
        for ((place, concluded), outcome) in batch.iter().enumerate().zip(&mut outcomes) {
            let input = DeliveryInput::End(concluded.token, concluded.outcome);
            if let Some(read) = found.remove(&place)
                && let Some(stored) = self.inner.left_out.readable(None, read, now)
                && let Some(next) = stored.progress.advance(input, now)
            {
                *outcome = Some(Cas::Won);
                steps.push(Step::new(&stored, next).with_report(concluded));
            }
        }
        if steps.is_empty() {
            return Ok(outcomes);
        }
        apply(tx.conn(), &steps).await?;
        follow(tx.conn(), &steps, now).await?;
        tx.finish().await?;
        Ok(outcomes)
    }

    async fn deliveries_next(
        &self,
        mode: Mode,
        service: Service,
    ) -> Result<Option<Duration>, StoreError> {
        let mut conn = self.inner.reader().await?;
        let now = self.inner.clock.now();
        let lease = first_lease(&mut conn, mode).await?;
        let left_out = (&self.inner.left_out, now);
        let queues = queues(&mut conn, mode, service, left_out).await?;
        let next = queues.iter().map(|queue| queue.since).chain(lease).min();
        Ok(next.map(|next| next.since(now)))
    }

    async fn deliveries_of(
        &self,
        who: &Tenant,
        object_id: &str,
    ) -> Result<Vec<DeliveryRecord>, StoreError> {
        deliveries::of_object(&mut self.inner.read().await?, who, object_id).await
    }

    async fn deliveries_standing(
        &self,
        mode: Mode,
        service: Service,
    ) -> Result<QueueStats, StoreError> {
        deliveries::stats(&mut self.inner.read().await?, mode, service).await
    }

    fn deliveries_watch(&self, wake: Arc<dyn QueueWaker>) {
        self.inner.watchers.add(&wake);
    }
}

#[async_trait]
impl DeliveryAdmin for SqliteStore {
    async fn deliveries_page(
        &self,
        who: &Tenant,
        service: Service,
        filter: DeliveryFilter,
        limit: u32,
    ) -> Result<Vec<DeliveryView>, StoreError> {
        let mut reader = self.inner.read_page(who).await?;
        admin::page(&mut reader, who, service, filter, limit).await
    }

    async fn delivery_get(
        &self,
        who: &Tenant,
        service: Service,
        id: DeliveryId,
    ) -> Result<Option<DeliveryView>, StoreError> {
        admin::get(&mut self.inner.read().await?, who, service, id).await
    }

    async fn delivery_replay(
        &self,
        who: &Tenant,
        service: Service,
        id: DeliveryId,
    ) -> Result<Option<(Cas, DeliveryView)>, StoreError> {
        admin::replay(self.begin_tx("delivery_replay").await?, who, service, id).await
    }
}

/// The state of a stored delivery, with the number of its row.
struct Stored {
    sequence: i64,
    progress: Progress,
}

fn stored(row: &dyn Row) -> Result<Stored, StoreError> {
    Ok(Stored {
        sequence: row.integer("sequence")?,
        progress: progress(row)?,
    })
}

/// Finds the deliveries of a batch, tenant by tenant. The keys are their positions in the batch.
async fn find(
    conn: &mut SqliteConnection,
    batch: &[ConcludedDelivery],
) -> Result<BTreeMap<usize, Result<Stored, StoreError>>, StoreError> {
    let mut places: BTreeMap<&Tenant, BTreeMap<String, usize>> = BTreeMap::new();
    for (place, concluded) in batch.iter().enumerate() {
        let of_tenant = places.entry(&concluded.tenant).or_default();
        of_tenant.insert(key(concluded.id), place);
    }
    let mut found = BTreeMap::new();
    for (tenant, places) in places {
        let ids: Vec<&String> = places.keys().collect();
        let rows = sqlx::query(FIND)
            .bind(tenant.mode.as_str())
            .bind(tenant.partner.as_str())
            .bind(json(&ids)?)
            .fetch_all(&mut *conn)
            .await
            .map_err(errors::statement)?;
        for row in &rows {
            let row = Columns::new("deliveries", row);
            let place = places.get(row.text("id")?);
            found.insert(*place.ok_or_else(|| row.bad("id"))?, stored(&row));
        }
    }
    Ok(found)
}

pub(crate) const FIND: &str =
    "SELECT partner_id, id, sequence, status, attempts, next_attempt_at, lease_token,
            lease_until, delivered_at
     FROM deliveries
     WHERE mode = ?1 AND partner_id = ?2 AND id IN (SELECT j.value FROM json_each(?3) AS j)";
