//! Expiry of sessions: the first use case that reads an overdue session expires it, or a sweep does.
//!
//! Concurrent use cases expire a session once: one compare-and-swap, one event.

use kernel::{Mode, Readable, StoreResult, Timestamp};
use partner_core::Tenant;
use partner_core::races::retry_lost_races;

use super::context::GateContext;
use crate::due::DueShare;
use crate::error::GateError;
use crate::session::{Session, SessionAction, SessionId};

/// Maximum sessions expired in one transaction.
const BATCH: u32 = 100;

/// Maximum batches per call of `expire_all_due`.
const ROUNDS: u32 = 64;

impl GateContext {
    /// A session of the tenant. If it is overdue, it is expired first.
    pub async fn session(&self, who: &Tenant, id: SessionId) -> Result<Option<Session>, GateError> {
        let Some(id) = id.in_mode(who.mode) else {
            return Ok(None);
        };
        let Some(seen) = self.store.session_get(who, id).await? else {
            return Ok(None);
        };
        self.current(who, seen.value, seen.at).await
    }

    /// A session that was read at an instant. If it is overdue, it is expired under its lock, because a payment may have come first.
    pub(super) async fn current(
        &self,
        who: &Tenant,
        session: Session,
        at: Timestamp,
    ) -> Result<Option<Session>, GateError> {
        if session.is_overdue(at) {
            return self.expire_if_due(who, session.id).await;
        }
        Ok(Some(session))
    }

    /// The session after a due expiry was applied; `None` if the tenant has no such session.
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
    pub async fn overdue(
        &self,
        mode: Mode,
        share: &DueShare,
    ) -> StoreResult<Readable<(Tenant, SessionId)>> {
        self.store.sessions_overdue_in(mode, share).await
    }
}
