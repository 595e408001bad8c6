//! Sending a test event, so that a partner can test its endpoint.

use std::sync::Arc;

use partner_core::Tenant;
use partner_core::events::{DeliveryId, Service};
use partner_core::ports::{DeliveryAdmin, DeliveryView};
use partner_core::races::retry_lost_races;

use super::context::GateContext;
use crate::error::GateError;
use crate::events::{Resource, TEST_EVENT};

#[derive(Clone)]
pub struct SendTestEvent {
    pub context: GateContext,
    /// The administration of deliveries, which reports the delivery's outcome.
    pub deliveries: Arc<dyn DeliveryAdmin>,
}

/// Why no event was sent.
#[derive(Debug, thiserror::Error)]
pub enum TestSendError {
    /// The partner has no endpoint.
    #[error("the partner has no webhook endpoint")]
    NotConfigured,
    /// The use case could not finish.
    #[error(transparent)]
    Failed(#[from] GateError),
}

impl SendTestEvent {
    /// Queues a test event for the partner's endpoint and returns its delivery.
    pub async fn send(&self, who: &Tenant) -> Result<DeliveryView, TestSendError> {
        let delivery = retry_lost_races(|| self.send_once(who)).await?;
        let delivery = delivery.ok_or(TestSendError::NotConfigured)?;
        let view = self
            .deliveries
            .delivery_get(who, Service::Gate, delivery)
            .await;
        let view = view.map_err(GateError::from)?;
        view.ok_or(TestSendError::NotConfigured)
    }

    /// `None` if the partner has no endpoint.
    async fn send_once(&self, who: &Tenant) -> Result<Option<DeliveryId>, GateError> {
        let mut tx = self.context.store.gate_begin("webhook_test").await?;
        if !tx.endpoint_is_set(who, Service::Gate).await? {
            return Ok(None);
        }
        let now = tx.now().await?;
        let events = self.context.events();
        let event = events.event(who, TEST_EVENT, Resource::Endpoint, now)?;
        tx.event_insert(&event).await?;
        tx.commit().await?;
        Ok(Some(event.delivery))
    }
}
