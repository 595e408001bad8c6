//! The ports of the queue. A macro implements them for a store, because the ports and the store's type belong to other crates.

/// The items that the implementations name.
#[doc(hidden)]
pub mod names {
    pub use std::sync::Arc;
    pub use std::time::Duration;

    pub use async_trait::async_trait;
    pub use kernel::{Cas, Mode, StoreResult};
    pub use partner_core::Tenant;
    pub use partner_core::events::{DeliveryId, EndpointId, Service};
    pub use partner_core::ports::{
        ClaimRequest, ClaimedDelivery, ConcludedDelivery, Deliveries, DeliveryAdmin,
        DeliveryFilter, DeliveryRecord, DeliveryView, QueueStats, QueueWaker,
    };

    pub use crate::ReadStore;
    pub use crate::deliveries::{admin, hasten, of_object, queue, stats};
}

/// Implements `Deliveries` and `DeliveryAdmin` for a [`ReadStore`](crate::ReadStore), with its type of transactions, a
/// [`QueueTx`](crate::deliveries::QueueTx).
///
/// The macro names the store's fields `inner.left_out` and `inner.watchers`, and the transaction's function `begin(store, name)`.
#[macro_export]
macro_rules! implement_deliveries {
    ($store:ty, $tx:ty) => {
        const _: () = {
            use $crate::deliveries::ports::names::*;

            #[async_trait]
            impl Deliveries for $store {
                async fn deliveries_claim(
                    &self,
                    request: &ClaimRequest,
                ) -> StoreResult<Vec<ClaimedDelivery>> {
                    let tx = <$tx>::begin(self, "deliveries_claim").await?;
                    queue::claim(Box::new(tx), &self.inner.left_out, request).await
                }

                async fn deliveries_conclude(
                    &self,
                    batch: &[ConcludedDelivery],
                ) -> StoreResult<Vec<Option<Cas>>> {
                    if batch.is_empty() {
                        return Ok(Vec::new());
                    }
                    let tx = <$tx>::begin(self, "deliveries_conclude").await?;
                    queue::conclude(Box::new(tx), &self.inner.left_out, batch).await
                }

                async fn deliveries_hasten(
                    &self,
                    who: &Tenant,
                    endpoint: EndpointId,
                    limit: u32,
                ) -> StoreResult<u64> {
                    if !hasten::was_down(&mut self.reader().await?, who, endpoint).await? {
                        return Ok(0);
                    }
                    let tx = <$tx>::begin(self, "deliveries_hasten").await?;
                    hasten::hasten(Box::new(tx), who, endpoint, limit).await
                }

                async fn deliveries_next(
                    &self,
                    mode: Mode,
                    service: Service,
                ) -> StoreResult<Option<Duration>> {
                    let left_out = &self.inner.left_out;
                    queue::next(&mut self.reader().await?, left_out, mode, service).await
                }

                async fn deliveries_of(
                    &self,
                    who: &Tenant,
                    object_id: &str,
                ) -> StoreResult<Vec<DeliveryRecord>> {
                    of_object(&mut self.reader().await?, who, object_id).await
                }

                async fn queue_stats(
                    &self,
                    mode: Mode,
                    service: Service,
                ) -> StoreResult<QueueStats> {
                    stats(&mut self.reader().await?, mode, service).await
                }

                fn deliveries_watch(&self, wake: Arc<dyn QueueWaker>) {
                    self.inner.watchers.add(&wake);
                }
            }

            #[async_trait]
            impl DeliveryAdmin for $store {
                async fn deliveries_page(
                    &self,
                    who: &Tenant,
                    service: Service,
                    filter: DeliveryFilter,
                    limit: u32,
                ) -> StoreResult<Vec<DeliveryView>> {
                    let mut reader = self.page_reader(who).await?;
                    admin::page(&mut reader, who, service, filter, limit).await
                }

                async fn delivery_get(
                    &self,
                    who: &Tenant,
                    service: Service,
                    id: DeliveryId,
                ) -> StoreResult<Option<DeliveryView>> {
                    admin::get(&mut self.reader().await?, who, service, id).await
                }

                async fn delivery_replay(
                    &self,
                    who: &Tenant,
                    service: Service,
                    id: DeliveryId,
                ) -> StoreResult<Option<(Cas, DeliveryView)>> {
                    let tx = <$tx>::begin(self, "delivery_replay").await?;
                    admin::replay(Box::new(tx), who, service, id).await
                }
            }
        };
    };
}
