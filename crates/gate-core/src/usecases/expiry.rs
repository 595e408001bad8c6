//! Expiry: applied by whoever meets it first, and by a sweep.
//!
//! One compare-and-swap and one event per session, however many meet it at once.

use std::fmt;
use std::sync::Arc;

use kernel::{Entropy, Mode, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::races::{LostRace, retry_lost_races};
use partner_core::sealing::Sealer;

use crate::events::{EventError, EventFactory};
use crate::ports::{GateStore, GateTx};
use crate::session::{Session, SessionAction, SessionId, SessionRefusal};

/// Sessions expired in one transaction.
const BATCH: u32 = 100;

/// How often a list is begun again because something expired meanwhile.
const ROUNDS: u32 = 64;

/// Moves sessions, expiry first.
#[derive(Clone)]
pub struct GateContext {
    /// The store.
    pub store: Arc<dyn GateStore>,
    /// Seals event bodies.
    pub sealer: Arc<Sealer>,
    /// For ids.
    pub entropy: Arc<dyn Entropy>,
}

impl fmt::Debug for GateContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Expiring")
    }
}

/// Why an expiry could not be applied; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ExpiryError {
    /// An event could not be made.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LostRace for ExpiryError {
    fn lost_race(&self) -> bool {
        matches!(self, Self::Store(error) if error.lost_race())
    }
}

impl ExpiryError {
    /// Is it about a session, where the next may fare better?
    const fn is_of_one_session(&self) -> bool {
        match self {
            Self::Event(_) => true,
            Self::Store(fault) => match fault {
                StoreError::Inconsistent { .. }
                | StoreError::Guard(_)
                | StoreError::Unexpected(_)
                | StoreError::Retry => true,
                StoreError::Unavailable(_)
                | StoreError::Overloaded
                | StoreError::CommitUnknown(_) => false,
            },
        }
    }
}

/// A session after an act.
#[derive(Debug)]
pub(super) struct SessionChange {
    /// As it is now.
    pub(super) session: Session,
    /// Was a step written?
    pub(super) changed: bool,
    /// Why what was wanted did not happen.
    pub(super) refused: Option<SessionRefusal>,
}

impl GateContext {
    /// A session as it stands once its expiry has been applied.
    ///
    /// # Errors
    /// [`ExpiryError`].
    pub async fn expire_if_due(
        &self,
        who: &Tenant,
        id: SessionId,
    ) -> Result<Option<Session>, ExpiryError> {
        retry_lost_races(|| self.settle_once(who, id)).await
    }

    async fn settle_once(
        &self,
        who: &Tenant,
        id: SessionId,
    ) -> Result<Option<Session>, ExpiryError> {
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
    /// [`ExpiryError`].
    pub async fn expire_all_due(&self, who: &Tenant) -> Result<(), ExpiryError> {
        for _ in 0..ROUNDS {
            let overdue = self.store.sessions_overdue(who, BATCH).await?;
            if overdue.is_empty() {
                return Ok(());
            }
            retry_lost_races(|| self.expire_batch(who, &overdue)).await?;
        }
        Ok(())
    }

    async fn expire_batch(&self, who: &Tenant, overdue: &[SessionId]) -> Result<(), ExpiryError> {
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
    /// [`ExpiryError`], the last there was.
    pub async fn sweep(&self, mode: Mode) -> Result<u64, ExpiryError> {
        let overdue = self.store.sessions_overdue_in(mode, BATCH).await?;
        let mut found = 0_u64;
        let mut failed = None;
        for (who, id) in overdue {
            match self.expire_if_due(&who, id).await {
                Ok(_) => found = found.saturating_add(1),
                Err(fault) if fault.is_of_one_session() => failed = Some(fault),
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
    ) -> Result<SessionChange, ExpiryError> {
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
        let event = self.ink().session(who, &session, step.event, now)?;
        tx.event_insert(&event).await?;
        Ok(SessionChange {
            session,
            changed: true,
            refused: verdict.refused,
        })
    }

    pub(super) fn ink(&self) -> EventFactory<'_> {
        EventFactory {
            sealer: &self.sealer,
            entropy: self.entropy.as_ref(),
        }
    }
}
