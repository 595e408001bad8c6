//! A partner's view of its deliveries, and the replay of dead-lettered ones.

use std::sync::Arc;

use kernel::{Cas, StoreError, StoreResult};

use crate::Tenant;
use crate::events::{DeliveryId, Service};
use crate::page::Page;
use crate::ports::{DeliveryAdmin, DeliveryFilter, DeliveryView};

/// The deliveries of one service.
#[derive(Clone)]
pub struct Delivered {
    /// The delivery queue.
    pub deliveries: Arc<dyn DeliveryAdmin>,
    /// The service whose events they deliver.
    pub service: Service,
}

/// Why a delivery was not replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The partner and service have no such delivery.
    #[error("no such delivery")]
    NotFound,
    /// The delivery is pending or succeeded.
    #[error("only a dead-lettered delivery is replayed")]
    NotDeadLettered,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Delivered {
    /// A page of deliveries, newest first.
    pub async fn list(
        &self,
        who: &Tenant,
        filter: DeliveryFilter,
        limit: u32,
    ) -> StoreResult<Page<DeliveryView>> {
        let wanted = limit.saturating_add(1);
        let page = self
            .deliveries
            .deliveries_page(who, self.service, filter, wanted);
        Ok(Page::cut(page.await?, limit))
    }

    /// Replays a dead-lettered delivery: the same event is queued again, with its attempts counted from zero.
    pub async fn replay(&self, who: &Tenant, id: DeliveryId) -> Result<DeliveryView, ReplayError> {
        let id = id.in_mode(who.mode).ok_or(ReplayError::NotFound)?;
        let replayed = self
            .deliveries
            .delivery_replay(who, self.service, id)
            .await?;
        match replayed.ok_or(ReplayError::NotFound)? {
            (Cas::Won, view) => Ok(view),
            (Cas::Lost, _) => Err(ReplayError::NotDeadLettered),
        }
    }
}
