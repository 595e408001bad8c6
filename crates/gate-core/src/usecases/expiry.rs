//! Expiry of sessions: the first use case that meets a due expiry applies it, or a sweep does.
//!
//! One compare-and-swap and one event per session, however many use cases meet the expiry at once.

use std::sync::Arc;

use kernel::{Entropy, Mode, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::races::retry_lost_races;
use partner_core::sealing::Sealer;

use crate::error::GateError;
use crate::events::{EventFactory, RenderResource, Resource};
use crate::idempotent::Decision;
use crate::ports::{GateStore, GateTx};
use crate::session::{Session, SessionAction, SessionId, SessionRefusal};

/// Sessions expired in one transaction.
const BATCH: u32 = 100;

/// How often a list is read again because a session expired meanwhile.
const ROUNDS: u32 = 64;

/// What most use cases of the gate need. It applies the steps of sessions, a due expiry first.
#[derive(Clone)]
pub struct GateContext {
    /// The store.
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
    /// Was a step written?
    pub(super) changed: bool,
    /// Why the action was refused.
    pub(super) refused: Option<SessionRefusal>,
}

/// Does the failure concern one session only, so that the next may succeed?
const fn concerns_one_session(error: &GateError) -> bool {
    match error {
        GateError::Response(_) | GateError::Event(_) | GateError::Unsigned(_) => true,
        GateError::Store(error) => match error {
            StoreError::Inconsistent { .. }
            | StoreError::Guard(_)
            | StoreError::Unexpected(_)
            | StoreError::Retry => true,
            StoreError::Unavailable(_) | StoreError::Overloaded | StoreError::CommitUnknown(_) => {
                false
            }
        },
    }
}

impl SessionChange {
    /// The decision if the action was refused. An expiry that was due is committed.
    pub(super) fn refusal<T, E: From<SessionRefusal>>(&self) -> Option<Decision<T, E>> {
        let refusal = E::from(self.refused?);
        Some(if self.changed {
            Decision::RefusedAfterExpiry(refusal)
        } else {
            Decision::Refused(refusal)
        })
    }
}

impl GateContext {
    /// A session as it stands once its expiry has been applied.
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

    /// Expires everything of a tenant that is overdue, so that a list shows nothing as open that is
    /// not. Bounded: past `BATCH` × `ROUNDS` sessions the rest is the sweep's.
    ///
    /// # Errors
    /// [`GateError`].
    pub async fn expire_all_due(&self, who: &Tenant) -> Result<(), GateError> {
        for _ in 0..ROUNDS {
            let overdue = self.store.sessions_overdue(who, BATCH).await?;
            if overdue.is_empty() {
                return Ok(());
            }
            retry_lost_races(|| self.expire_batch(who, &overdue)).await?;
        }
        Ok(())
    }

    async fn expire_batch(&self, who: &Tenant, overdue: &[SessionId]) -> Result<(), GateError> {
        // Locked in the order of their ids: nothing can deadlock.
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

    /// Expires what is overdue in a mode and read by nobody, at most `BATCH` sessions; how many
    /// it found. One that cannot be expired holds up no other.
    ///
    /// # Errors
    /// [`GateError`], the last there was.
    pub async fn sweep(&self, mode: Mode) -> Result<u64, GateError> {
        let overdue = self.store.sessions_overdue_in(mode, BATCH).await?;
        let mut found = 0_u64;
        let mut failed = None;
        for (who, id) in overdue {
            match self.expire_if_due(&who, id).await {
                Ok(_) => found = found.saturating_add(1),
                Err(fault) if concerns_one_session(&fault) => failed = Some(fault),
                Err(fault) => return Err(fault),
            }
        }
        failed.map_or(Ok(found), Err)
    }

    /// Does something to a locked session: its step, and the event the step emits.
    pub(super) async fn act(
        &self,
        tx: &mut dyn GateTx,
        who: &Tenant,
        session: Session,
        act: SessionAction,
        now: Timestamp,
    ) -> Result<SessionChange, GateError> {
        let verdict = session.advance(act, now);
        let Some(step) = verdict.step else {
            return Ok(SessionChange {
                session,
                changed: false,
                refused: verdict.refused,
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
            refused: verdict.refused,
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
