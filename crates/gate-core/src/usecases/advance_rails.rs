//! Advancing rail records: ask the rail about records that are processing, and apply its reports.
//!
//! One transaction claims the record with a lease, and a second one applies the report under the lease's token. The
//! rail is asked between the two, outside any transaction. If the process stops in between, another poller claims the
//! record after the lease has expired.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Entropy, Mode, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::races::retry_lost_races;

use super::expiry::GateContext;
use crate::error::GateError;
use crate::events::Resource;
use crate::ports::{Rail, RailOrder};
use crate::rail::{PollLease, RailId, RailRecord, RailReport, RailState, RailStep};
use crate::session::SessionAction;

/// Timeout of a call to a rail.
pub const RAIL_TIMEOUT: Duration = Duration::from_secs(10);
/// Duration of a lease: the rail's timeout and 2 s more.
const CLAIM: Duration = RAIL_TIMEOUT.saturating_add(Duration::from_secs(2));
/// Backoff after the first poll without a result. It doubles up to `MAX_BACKOFF`.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Polls rails and advances their records.
#[derive(Clone)]
pub struct AdvanceRails {
    /// The store, the sealer and the source of ids.
    pub context: GateContext,
    /// The rail that moves the money.
    pub rail: Arc<dyn Rail>,
}

impl AdvanceRails {
    /// Records of a mode whose next poll is due, the longest overdue first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn due(&self, mode: Mode, limit: u32) -> Result<Vec<(Tenant, RailId)>, StoreError> {
        self.context.store.rails_due(mode, limit).await
    }

    /// Polls the rail about a due record and applies the report.
    ///
    /// # Errors
    /// [`GateError`].
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(rail.id = %id))]
    pub async fn advance(&self, who: &Tenant, id: RailId) -> Result<(), GateError> {
        let Some(claimed) = retry_lost_races(|| self.claim(who, id)).await? else {
            return Ok(());
        };
        let order = RailOrder {
            id,
            terms: claimed.terms.clone(),
        };
        let report = self.rail.advance(&order, claimed.asking.attempts).await;
        retry_lost_races(|| self.apply(who, &claimed, report.as_ref())).await
    }

    async fn claim(&self, who: &Tenant, id: RailId) -> Result<Option<RailRecord>, GateError> {
        let mut tx = self.context.store.gate_begin("rail_claim").await?;
        let found = tx.rail_lock(who, id).await?;
        let now = tx.now().await?;
        let Some(record) = found.filter(|record| record.is_due(now)) else {
            return Ok(None);
        };
        let asking = PollLease {
            attempts: record.asking.attempts.saturating_add(1),
            token: Some(token(self.context.entropy.as_ref())),
            next_at: now.plus(CLAIM),
        };
        let claiming = tx.rail_ask(who, id, &record.asking, &asking);
        claiming.await?.won()?;
        tx.commit().await?;
        Ok(Some(RailRecord { asking, ..record }))
    }

    async fn apply(
        &self,
        who: &Tenant,
        claimed: &RailRecord,
        report: Option<&RailReport>,
    ) -> Result<(), GateError> {
        let mut tx = self.context.store.gate_begin("rail_apply").await?;
        let session = tx.session_lock(who, claimed.session).await?;
        let found = tx.rail_lock(who, claimed.id).await?;
        let now = tx.now().await?;
        let Some(record) = found.filter(|record| record.asking == claimed.asking) else {
            return Ok(());
        };
        let Some(step) = step_of(&record, report, now) else {
            let rested = PollLease {
                token: None,
                next_at: now.plus(backoff(record.asking.attempts)),
                ..record.asking
            };
            let resting = tx.rail_ask(who, record.id, &record.asking, &rested);
            resting.await?.won()?;
            return Ok(tx.commit().await?);
        };
        let moving = tx.rail_apply(who, record.id, &record.asking, &step);
        moving.await?.won()?;
        let record = record.after(step);
        let ending = tx.transaction_end(who, record.refid, record.state.transaction());
        ending.await?.won()?;
        let events = self.context.events();
        let event = events.event(who, record.event(), Resource::Rail(&record), now)?;
        tx.event_insert(&event).await?;
        // A session can have ended here only if it predates the rule of one payment. It keeps its state, although the
        // money has moved.
        if let (RailState::Settled { .. }, Some(session)) = (&record.state, session) {
            let paid = SessionAction::Settle(record.refid);
            self.context
                .act(tx.as_mut(), who, session, paid, now)
                .await?;
        }
        Ok(tx.commit().await?)
    }
}

/// The step for a report; `None` if the rail is processing the payment or did not respond.
fn step_of(record: &RailRecord, report: Option<&RailReport>, now: Timestamp) -> Option<RailStep> {
    match record.advance(report?, now) {
        Ok(step) => step,
        Err(contradiction) => {
            tracing::error!(rail.id = %record.id, "{contradiction}");
            None
        }
    }
}

/// The random token of a lease.
fn token(entropy: &dyn Entropy) -> u64 {
    let mut bytes = [0; 8];
    entropy.fill(&mut bytes);
    u64::from_be_bytes(bytes)
}

/// The backoff after this many polls.
fn backoff(attempts: u32) -> Duration {
    let doubled = 1_u32.checked_shl(attempts.saturating_sub(1).min(16));
    FIRST_BACKOFF
        .saturating_mul(doubled.unwrap_or(u32::MAX))
        .min(MAX_BACKOFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_one_minute() {
        let backoffs: Vec<u64> = (1..9).map(|attempts| backoff(attempts).as_secs()).collect();
        assert_eq!(backoffs, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff(u32::MAX), MAX_BACKOFF);
        assert!(CLAIM > RAIL_TIMEOUT);
    }
}
