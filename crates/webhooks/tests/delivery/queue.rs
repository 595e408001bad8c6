//! The queue of deliveries with injected faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Cas, Mode, StoreError, StoreResult};
use partner_core::Tenant;
use partner_core::events::{EndpointId, Service};
use partner_core::ports::{
    ClaimRequest, ClaimedDelivery, ConcludedDelivery, Deliveries, DeliveryRecord, QueueStats,
    QueueWaker,
};
use store_sqlite::SqliteStore;

use crate::world::World;

/// The queue of the store, and its faults.
pub(crate) struct Queue {
    store: Arc<SqliteStore>,
    /// Reports that nothing is due.
    pub(crate) is_blind: AtomicBool,
    /// Never wakes the worker.
    pub(crate) is_silent: AtomicBool,
    /// Refuses to record outcomes.
    pub(crate) is_unavailable: AtomicBool,
    /// Another transaction has locked every delivery of the partner `locked`.
    pub(crate) has_locks: AtomicBool,
    /// Refuses to hasten deliveries.
    pub(crate) is_unable_to_hasten: AtomicBool,
    /// Takes 30 seconds to count.
    pub(crate) is_slow_to_count: AtomicBool,
    /// Calls to record outcomes.
    pub(crate) records: AtomicUsize,
    /// Calls to hasten deliveries.
    pub(crate) hastens: AtomicUsize,
}

impl Queue {
    pub(crate) fn over(world: &World) -> Arc<Self> {
        Arc::new(Self {
            store: world.store.clone(),
            is_blind: AtomicBool::default(),
            is_silent: AtomicBool::default(),
            is_unavailable: AtomicBool::default(),
            has_locks: AtomicBool::default(),
            is_unable_to_hasten: AtomicBool::default(),
            is_slow_to_count: AtomicBool::default(),
            records: AtomicUsize::default(),
            hastens: AtomicUsize::default(),
        })
    }
}

#[async_trait]
impl Deliveries for Queue {
    async fn deliveries_claim(&self, order: &ClaimRequest) -> StoreResult<Vec<ClaimedDelivery>> {
        self.store.deliveries_claim(order).await
    }

    async fn deliveries_conclude(
        &self,
        batch: &[ConcludedDelivery],
    ) -> StoreResult<Vec<Option<Cas>>> {
        self.records.fetch_add(1, Ordering::SeqCst);
        if self.is_unavailable.load(Ordering::SeqCst) {
            return Err(StoreError::Overloaded);
        }
        let has_locks = self.has_locks.load(Ordering::SeqCst);
        let mut outcomes = Vec::new();
        for one in batch {
            if has_locks && one.tenant.partner.as_str() == "locked" {
                outcomes.push(None);
            } else {
                let one = std::slice::from_ref(one);
                outcomes.extend(self.store.deliveries_conclude(one).await?);
            }
        }
        Ok(outcomes)
    }

    async fn deliveries_hasten(
        &self,
        who: &Tenant,
        endpoint: EndpointId,
        limit: u32,
    ) -> StoreResult<u64> {
        self.hastens.fetch_add(1, Ordering::SeqCst);
        if self.is_unable_to_hasten.load(Ordering::SeqCst) {
            return Err(StoreError::Overloaded);
        }
        self.store.deliveries_hasten(who, endpoint, limit).await
    }

    async fn deliveries_next(&self, mode: Mode, service: Service) -> StoreResult<Option<Duration>> {
        if self.is_blind.load(Ordering::SeqCst) {
            return Ok(None);
        }
        self.store.deliveries_next(mode, service).await
    }

    async fn deliveries_of(
        &self,
        who: &Tenant,
        object_id: &str,
    ) -> StoreResult<Vec<DeliveryRecord>> {
        self.store.deliveries_of(who, object_id).await
    }

    async fn queue_stats(&self, mode: Mode, service: Service) -> StoreResult<QueueStats> {
        if self.is_slow_to_count.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_secs(30)).await;
        }
        self.store.queue_stats(mode, service).await
    }

    fn deliveries_watch(&self, wake: Arc<dyn QueueWaker>) {
        if !self.is_silent.load(Ordering::SeqCst) {
            self.store.deliveries_watch(wake);
        }
    }
}
