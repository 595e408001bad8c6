//! Deliveries in memory, all of them pending.

use async_trait::async_trait;
use kernel::{Cas, StoreError};
use partner_core::Tenant;
use partner_core::events::{DeliveryId, NewEvent, Service};
use partner_core::ports::{DeliveryAdmin, DeliveryFilter, DeliveryRecord, DeliveryView};
use partner_core::webhooks::delivery::{DeliveryState, Progress};

use super::Memory;

#[async_trait]
impl DeliveryAdmin for Memory {
    async fn deliveries_page(
        &self,
        _: &Tenant,
        _: Service,
        _: DeliveryFilter,
        _: u32,
    ) -> Result<Vec<DeliveryView>, StoreError> {
        Ok(Vec::new())
    }

    async fn delivery_get(
        &self,
        who: &Tenant,
        service: Service,
        id: DeliveryId,
    ) -> Result<Option<DeliveryView>, StoreError> {
        let rows = self.rows();
        let named =
            |it: &&NewEvent| it.delivery == id && it.tenant == *who && it.service == service;
        Ok(rows.events.iter().find(named).map(|event| DeliveryView {
            record: DeliveryRecord {
                id,
                event_id: event.id.clone(),
                progress: Progress {
                    state: DeliveryState::Pending {
                        due: event.created_at,
                    },
                    attempts: 0,
                },
                last_response_status: None,
                last_error: None,
            },
            event_kind: event.kind.clone(),
            target_url: "https://shop.example/hooks".to_owned(),
            created_at: event.created_at,
        }))
    }

    async fn delivery_replay(
        &self,
        _: &Tenant,
        _: Service,
        _: DeliveryId,
    ) -> Result<Option<(Cas, DeliveryView)>, StoreError> {
        Ok(None)
    }
}
