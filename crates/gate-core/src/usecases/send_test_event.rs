//! A partner sends itself an event, to see its endpoint work.

use std::fmt;
use std::sync::Arc;

use kernel::StoreError;
use partner_core::Tenant;
use partner_core::events::{DeliveryId, Service};
use partner_core::ports::{DeliveryAdmin, DeliveryView};
use partner_core::races::{LostRace, retry_lost_races};

use super::expiry::GateContext;
use crate::events::EventError;

/// Sends test events.
#[derive(Clone)]
pub struct SendTestEvent {
    /// The store, and what events are made with.
    pub sessions: GateContext,
    /// The queue, for what became of the event.
    pub desk: Arc<dyn DeliveryAdmin>,
}

impl fmt::Debug for SendTestEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TestSending")
    }
}

/// Why nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum TestSendError {
    /// The partner has no endpoint.
    #[error("the partner has no webhook endpoint")]
    NotConfigured,
    /// The event could not be made.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LostRace for TestSendError {
    fn lost_race(&self) -> bool {
        matches!(self, Self::Store(error) if error.lost_race())
    }
}

impl SendTestEvent {
    /// Queues a test event for the partner's endpoint, and returns its delivery.
    ///
    /// # Errors
    /// [`TestSendError`].
    pub async fn send(&self, who: &Tenant) -> Result<DeliveryView, TestSendError> {
        let delivery = retry_lost_races(|| self.send_once(who)).await?;
        let view = self.desk.delivery_get(who, Service::Gate, delivery).await?;
        view.ok_or(TestSendError::NotConfigured)
    }

    async fn send_once(&self, who: &Tenant) -> Result<DeliveryId, TestSendError> {
        let mut tx = self.sessions.store.gate_begin("webhook_test").await?;
        if !tx.endpoint_is_set(who, Service::Gate).await? {
            return Err(TestSendError::NotConfigured);
        }
        let now = tx.now().await?;
        let event = self.sessions.ink().test(who, now)?;
        tx.event_insert(&event).await?;
        tx.commit().await?;
        Ok(event.delivery)
    }
}
