//! Expiry of sessions: the first use case that reads an overdue session expires it, or a sweep does.
//!
//! Concurrent use cases expire a session once: one compare-and-swap, one event.

use std::sync::Arc;

use kernel::{Entropy, Mode, Readable, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::races::retry_lost_races;
use partner_core::sealing::Sealer;

use crate::due::DueShare;
use crate::error::GateError;
use crate::events::{EventFactory, RenderResource, Resource};
use crate::idempotent::Decision;
use crate::ports::{GateStore, GateTx};
use crate::session::{Session, SessionAction, SessionId, SessionRefusal};

/// Maximum sessions expired in one transaction.
const BATCH: u32 = 100;

/// Maximum batches per call of `expire_all_due`.
const ROUNDS: u32 = 64;

/// The shared dependencies of the gate's use cases. It applies session actions, a due expiry first.
#[derive(Clone)]
pub struct GateContext {
    pub store: Arc<dyn GateStore>,
    /// Seals event bodies and personal data.
    pub sealer: Arc<Sealer>,
    /// Makes ids.
    pub entropy: Arc<dyn Entropy>,
    /// Renders what events are about.
    pub render: RenderResource,
}

/// A session after an action.
#[derive(Debug)]
pub(super) struct SessionChange {
    /// The session after the step.
    pub(super) session: Session,
    /// Whether a step was written.
    pub(super) changed: bool,
    /// Why the action was refused.
    pub(super) refused: Option<SessionRefusal>,
}

impl SessionChange {
    /// The decision if the action was refused. A due expiry is committed with the refusal.
    pub(super) fn refusal<T, E: From<SessionRefusal>>(&self) -> Option<Decision<T, E>> {
        let refusal = E::from(self.refused?);
        Some(if self.changed {
            Decision::RefusedWithWrites(refusal)
        } else {
            Decision::Refused(refusal)
        })
    }
}

impl GateContext {
    /// The session after a due expiry was applied; `None` if the tenant has no such session.
    ///
    /// # Errors
    /// [`GateError`].
    pub async fn expire_if_due(
        &self,
        who: &Tenant,
        id: SessionId,
    ) -> Result<Option<Session>, GateError> {
        retry_lost_races(|| self.expire_once(who, id)).await
    }

    async fn expire_once(&self, who: &Tenant, id: SessionId) -> Result<Option<Session>, GateError> {
        let mut tx = self.store.gate_begin("session_expire").await?;
        let Some(session) = tx.session_lock(who, id).await? else {
            return Ok(None);
        };
        let now = tx.now().await?;
        let moved = self
            .act(tx.as_mut(), who, session, SessionAction::Touch, now)
            .await?;
        if moved.changed {
            tx.commit().await?;
        }
        Ok(Some(moved.session))
    }

    /// Expires the overdue sessions of a tenant, so that a list does not show them as open.
    ///
    /// It stops after `BATCH` × `ROUNDS` sessions and then returns false. The sweep or the next call expires the rest.
    ///
    /// # Errors
    /// [`GateError`].
    pub async fn expire_all_due(&self, who: &Tenant) -> Result<bool, GateError> {
        for _ in 0..ROUNDS {
            let overdue = self.store.sessions_overdue(who, BATCH).await?;
            if overdue.is_empty() {
                return Ok(true);
            }
            retry_lost_races(|| self.expire_batch(who, &overdue)).await?;
        }
        Ok(false)
    }

    async fn expire_batch(&self, who: &Tenant, overdue: &[SessionId]) -> Result<(), GateError> {
        // Locks are taken in the order of the ids, so that batches cannot deadlock.
        let mut overdue = overdue.to_vec();
        overdue.sort_unstable();
        let mut tx = self.store.gate_begin("sessions_expire").await?;
        let mut locked = Vec::with_capacity(overdue.len());
        for id in overdue {
            locked.extend(tx.session_lock(who, id).await?);
        }
        let now = tx.now().await?;
        for session in locked {
            self.act(tx.as_mut(), who, session, SessionAction::Touch, now)
                .await?;
        }
        Ok(tx.commit().await?)
    }

    /// Overdue sessions of a mode, of each partner the oldest deadline first. The sweep expires them one by one.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn overdue(
        &self,
        mode: Mode,
        share: &DueShare,
    ) -> Result<Readable<(Tenant, SessionId)>, StoreError> {
        self.store.sessions_overdue_in(mode, share).await
    }

    /// Applies an action to a locked session: writes its step and the step's event.
    pub(super) async fn act(
        &self,
        tx: &mut dyn GateTx,
        who: &Tenant,
        session: Session,
        act: SessionAction,
        now: Timestamp,
    ) -> Result<SessionChange, GateError> {
        let decision = session.advance(act, now);
        let Some(step) = decision.step else {
            return Ok(SessionChange {
                session,
                changed: false,
                refused: decision.refused,
            });
        };
        tx.session_apply(who, session.id, &step).await?.won()?;
        let session = session.after(&step);
        let (kind, resource) = (step.event.as_str(), Resource::Session(&session));
        let event = self.events().event(who, kind, resource, now)?;
        tx.event_insert(&event).await?;
        Ok(SessionChange {
            session,
            changed: true,
            refused: decision.refused,
        })
    }

    pub(super) fn events(&self) -> EventFactory<'_> {
        EventFactory {
            sealer: &self.sealer,
            entropy: self.entropy.as_ref(),
            render: self.render,
        }
    }
}
