//! The queue of deliveries: claimed endpoint by endpoint, concluded under the lease's token.
//!
//! A delivery that an earlier one of its object holds back is never due before that one is: who
//! claims then passes over few rows in vain, however much waits behind a dead endpoint.

pub(crate) mod claim;
mod desk;
pub(crate) mod step;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Cas, Mode, StoreError};
use partner_core::Tenant;
use partner_core::events::Service;
use partner_core::ports::{
    ClaimRequest, ClaimedDelivery, ConcludedDelivery, Deliveries, DeliveryRecord, QueueStats,
    QueueWaker,
};
use partner_core::webhooks::delivery::{DeliveryInput, Lease, Progress};
use partner_core::webhooks::fairness::allocate;
use sqlx::SqliteConnection;
use store_sql::Row;
use store_sql::deliveries::{progress, record, standing};

use crate::row::{Columns, json, key};
use crate::tx::SqliteTx;
use crate::{SqliteStore, errors};
use claim::{endpoints_of, first_lease, hold, lapse, pick, queues};
use step::{Step, apply, follow};

#[async_trait]
impl Deliveries for SqliteStore {
    async fn deliveries_claim(
        &self,
        order: &ClaimRequest,
    ) -> Result<Vec<ClaimedDelivery>, StoreError> {
        let mut tx = SqliteTx::begin(self, "deliveries_claim").await?;
        let now = tx.instant().await?;
        let lapsed = lapse(tx.conn(), order.mode, now).await?;
        let mut queues = queues(tx.conn(), order.mode, order.service).await?;
        queues.retain(|queue| queue.since <= now);
        let allotted = allocate(queues, &order.room);
        let picked = pick(tx.conn(), order.mode, &allotted, now).await?;
        if lapsed == 0 && picked.is_empty() {
            return Ok(Vec::new());
        }
        let lease = Lease {
            token: order.token,
            until: now.plus(order.lease),
        };
        hold(tx.conn(), &picked, lease, now).await?;
        let endpoints = endpoints_of(tx.conn(), order, &picked, now).await?;
        tx.finish().await?;
        picked
            .into_iter()
            .map(|picked| picked.claimed(order.mode, &endpoints))
            .collect()
    }

    async fn deliveries_conclude(
        &self,
        batch: &[ConcludedDelivery],
    ) -> Result<Vec<Cas>, StoreError> {
        let mut tx = SqliteTx::begin(self, "deliveries_conclude").await?;
        let now = tx.instant().await?;
        let found = find(tx.conn(), batch).await?;
        let mut outcomes = vec![Cas::Lost; batch.len()];
        let mut steps = Vec::new();
        for ((place, concluded), outcome) in batch.iter().enumerate().zip(&mut outcomes) {
            let act = DeliveryInput::End(concluded.token, concluded.ending);
            if let Some(stored) = found.get(&place)
                && let Some(next) = stored.progress.advance(act, now)
            {
                *outcome = Cas::Won;
                steps.push(Step::new(stored, next).noting(concluded));
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
        let queues = queues(&mut conn, mode, service).await?;
        let next = queues.iter().map(|queue| queue.since).chain(lease).min();
        Ok(next.map(|next| next.since(now)))
    }

    async fn deliveries_of(
        &self,
        who: &Tenant,
        object_id: &str,
    ) -> Result<Vec<DeliveryRecord>, StoreError> {
        let mut conn = self.inner.reader().await?;
        let rows = sqlx::query(
            "SELECT d.partner_id, d.id, d.event_id, d.status, d.attempts, d.next_attempt_at, d.lease_token,
                    d.lease_until, d.last_response_status, d.last_error, d.delivered_at
             FROM events AS e
             CROSS JOIN deliveries AS d ON d.mode = ?1 AND d.partner_id = ?2 AND d.event_id = e.id
             WHERE e.mode = ?1 AND e.partner_id = ?2 AND e.object_id = ?3
             ORDER BY d.sequence",
        )
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(object_id)
        .fetch_all(&mut *conn)
        .await
        .map_err(errors::statement)?;
        rows.iter()
            .map(|row| record(&Columns::new("deliveries", row), who.mode))
            .collect()
    }

    async fn deliveries_standing(
        &self,
        mode: Mode,
        service: Service,
    ) -> Result<QueueStats, StoreError> {
        let mut conn = self.inner.reader().await?;
        let now = self.inner.clock.now();
        let row = sqlx::query(STANDING)
            .bind(mode.as_str())
            .bind(service.as_str())
            .bind(now.millis())
            .fetch_one(&mut *conn)
            .await
            .map_err(errors::statement)?;
        standing(&Columns::new("deliveries", &row), now)
    }

    fn deliveries_watch(&self, wake: Arc<dyn QueueWaker>) {
        self.inner.watchers.add(&wake);
    }
}

/// Counted in the index, endpoint by endpoint.
const STANDING: &str = "SELECT coalesce(sum(due), 0) AS due, coalesce(sum(later), 0) AS scheduled,
            coalesce(sum(held), 0) AS in_flight, min(first) AS first
     FROM (
         SELECT (SELECT count(*) FROM deliveries AS d
                 WHERE d.status = 'pending' AND d.mode = ?1 AND d.endpoint_id = w.id AND d.next_attempt_at <= ?3) AS due,
                (SELECT count(*) FROM deliveries AS d
                 WHERE d.status = 'pending' AND d.mode = ?1 AND d.endpoint_id = w.id AND d.next_attempt_at > ?3) AS later,
                (SELECT min(d.next_attempt_at) FROM deliveries AS d
                 WHERE d.status = 'pending' AND d.mode = ?1 AND d.endpoint_id = w.id AND d.next_attempt_at <= ?3) AS first,
                0 AS held
         FROM webhook_endpoints AS w
         WHERE w.mode = ?1 AND w.service = ?2
         UNION ALL
         SELECT 0, 0, NULL, 1
         FROM deliveries AS d INDEXED BY deliveries_leased
         CROSS JOIN webhook_endpoints AS w ON w.mode = d.mode AND w.partner_id = d.partner_id AND w.id = d.endpoint_id
         WHERE d.status = 'in_flight' AND d.mode = ?1 AND w.service = ?2
     )";

/// Who is woken when deliveries have been queued, as long as there is anybody.
#[derive(Default)]
pub(crate) struct Watchers(Mutex<Vec<Weak<dyn QueueWaker>>>);

impl Watchers {
    fn add(&self, wake: &Arc<dyn QueueWaker>) {
        let mut watchers = self.lock();
        watchers.retain(|watcher| watcher.strong_count() > 0);
        watchers.push(Arc::downgrade(wake));
    }

    pub(crate) fn wake(&self) {
        let watchers = self.lock();
        let there = watchers.iter().filter_map(Weak::upgrade);
        there.for_each(|watcher| watcher.wake());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Weak<dyn QueueWaker>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watchers({})", self.lock().len())
    }
}

/// A delivery as it stands, and the number its row is found by.
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

/// The deliveries of a batch by their place in it, found tenant by tenant.
async fn find(
    conn: &mut SqliteConnection,
    batch: &[ConcludedDelivery],
) -> Result<BTreeMap<usize, Stored>, StoreError> {
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
            found.insert(*place.ok_or_else(|| row.bad("id"))?, stored(&row)?);
        }
    }
    Ok(found)
}

pub(crate) const FIND: &str =
    "SELECT partner_id, id, sequence, status, attempts, next_attempt_at, lease_token,
            lease_until, delivered_at
     FROM deliveries
     WHERE mode = ?1 AND partner_id = ?2 AND id IN (SELECT j.value FROM json_each(?3) AS j)";
