//! Settling rail records: asking the rail about what is under way, and applying what it says.
//!
//! A record is claimed in one transaction and moved in another, under the claim's token; the rail
//! is asked in between, outside any. Whoever dies in the middle leaves the record to the next once
//! the claim is over.

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

/// A rail answers within this time, or has not answered.
pub const RAIL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a claim holds: longer than the rail may take.
const CLAIM: Duration = RAIL_TIMEOUT.saturating_add(Duration::from_secs(2));
/// How long a record that is under way rests: the first time, and at most.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);

/// Settles records.
#[derive(Clone)]
pub struct AdvanceRails {
    /// The store, and what events are made with.
    pub context: GateContext,
    /// What moves the money.
    pub rail: Arc<dyn Rail>,
}

impl AdvanceRails {
    /// Records of a mode that the rail is to be asked about, the longest overdue first, at most
    /// `limit`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn due(&self, mode: Mode, limit: u32) -> Result<Vec<(Tenant, RailId)>, StoreError> {
        self.context.store.rails_due(mode, limit).await
    }

    /// Asks the rail about a record that is due, and applies what it says.
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
        let Some(step) = judge(&record, report, now) else {
            let rested = PollLease {
                token: None,
                next_at: now.plus(rest(record.asking.attempts)),
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
        // Only sessions from before the rule of one payment can have ended meanwhile. They stay as
        // they are: the money has moved all the same.
        if let (RailState::Settled { .. }, Some(session)) = (&record.state, session) {
            let paid = SessionAction::Settle(record.refid);
            self.context
                .act(tx.as_mut(), who, session, paid, now)
                .await?;
        }
        Ok(tx.commit().await?)
    }
}

/// The step that a report comes to; none where the rail is at work, or silent.
fn judge(record: &RailRecord, report: Option<&RailReport>, now: Timestamp) -> Option<RailStep> {
    match record.advance(report?, now) {
        Ok(step) => step,
        Err(contradiction) => {
            tracing::error!(rail.id = %record.id, "{contradiction}");
            None
        }
    }
}

/// The claimant's random token.
fn token(entropy: &dyn Entropy) -> u64 {
    let mut bytes = [0; 8];
    entropy.fill(&mut bytes);
    u64::from_be_bytes(bytes)
}

/// How long a record rests after so many attempts.
fn rest(attempts: u32) -> Duration {
    let doubled = 1_u32.checked_shl(attempts.saturating_sub(1).min(16));
    FIRST_REST
        .saturating_mul(doubled.unwrap_or(u32::MAX))
        .min(LONGEST_REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_rests_longer_each_time_and_a_minute_at_most() {
        let rests: Vec<u64> = (1..9).map(|attempts| rest(attempts).as_secs()).collect();
        assert_eq!(rests, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(rest(u32::MAX), LONGEST_REST);
        assert!(CLAIM > RAIL_TIMEOUT);
    }
}
