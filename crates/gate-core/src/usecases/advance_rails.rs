//! Advancing rail records: ask the rail about records that are processing, and apply its reports.
//!
//! One transaction claims the record with a lease, and a second one applies the report under the lease's token. The
//! rail is asked between the two, outside any transaction. If the process stops in between, another poller claims the
//! record after the lease has expired.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Mode, Readable, StoreError, StoreResult, Timestamp};
use partner_core::Tenant;
use partner_core::races::retry_lost_races;

use super::context::GateContext;
use crate::due::DueShare;
use crate::error::GateError;
use crate::events::Resource;
use crate::payout::Payout;
use crate::ports::{GateTx, Rail, RailOrder};
use crate::rail::{PollLease, RailId, RailRecord, RailReport, RailState, RailStep};
use crate::session::{Session, SessionAction};

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
    pub context: GateContext,
    /// The rail that moves the money.
    pub rail: Arc<dyn Rail>,
}

impl AdvanceRails {
    /// Records of a mode whose next poll is due, of each partner the longest overdue first.
    pub async fn due(
        &self,
        mode: Mode,
        share: &DueShare,
    ) -> StoreResult<Readable<(Tenant, RailId)>> {
        self.context.store.rails_due(mode, share).await
    }

    /// Whether the last polls of a partner all timed out.
    #[must_use]
    pub fn polls_hang(&self, who: &Tenant) -> bool {
        self.rail.polls_hang(&who.partner)
    }

    /// Polls the rail about a due record and applies the report.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(rail.id = %id))]
    pub async fn advance(&self, who: &Tenant, id: RailId) -> Result<(), GateError> {
        let Some(claimed) = retry_lost_races(|| self.claim(who, id)).await? else {
            return Ok(());
        };
        let order = order_of(&self.context, who, &claimed)?;
        let report = self.rail.advance(&order, claimed.asking.attempts).await;
        let attempts = claimed.asking.attempts;
        let wait = self.rail.ask_again(&order, attempts);
        let wait = wait.unwrap_or_else(|| backoff(attempts));
        retry_lost_races(|| self.apply(who, &claimed, report.as_ref(), wait)).await
    }

    async fn claim(&self, who: &Tenant, id: RailId) -> Result<Option<RailRecord>, GateError> {
        let mut tx = self.context.store.gate_begin("rail_claim").await?;
        let found = tx.rail_lock(who, id).await?;
        let now = tx.now().await?;
        // Records are never deleted, so the quote's row is missing.
        let record = found.ok_or_else(|| StoreError::unexpected(MissingQuote))?;
        if !record.is_due(now) {
            return Ok(None);
        }
        let asking = PollLease {
            attempts: record.asking.attempts.saturating_add(1),
            token: Some(self.context.entropy.number()),
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
        wait: Duration,
    ) -> Result<(), GateError> {
        let mut tx = self.context.store.gate_begin("rail_apply").await?;
        let session = tx.session_lock(who, claimed.session).await?;
        let found = tx.rail_lock(who, claimed.id).await?;
        let now = tx.now().await?;
        let Some(record) = found else {
            return Ok(());
        };
        if record.asking != claimed.asking {
            log_settled_although_cancelled(&record, report);
            return Ok(());
        }
        let Some(step) = step_of(&record, report, now) else {
            let rested = PollLease {
                token: None,
                next_at: now.plus(wait),
                ..record.asking
            };
            let resting = tx.rail_ask(who, record.id, &record.asking, &rested);
            resting.await?.won()?;
            return Ok(tx.commit().await?);
        };
        let locked = LockedRecord {
            session,
            record,
            now,
        };
        let ended = end_record(&self.context, tx.as_mut(), who, locked, step).await?;
        tx.commit().await?;
        ended.log_if_late(who);
        Ok(())
    }
}

/// The order of a record, for the rail.
///
/// # Errors
/// [`GateError`] if the payout details cannot be opened.
pub(super) fn order_of(
    context: &GateContext,
    who: &Tenant,
    record: &RailRecord,
) -> Result<RailOrder, GateError> {
    let hosted = record.hosted.as_ref();
    let sealed = hosted.and_then(|hosted| hosted.payout.as_ref());
    let opened = sealed.map(|sealed| {
        let opened = Payout::open(who, record.id, sealed, &context.sealer);
        opened.ok_or_else(|| StoreError::unexpected(PayoutDamage))
    });
    Ok(RailOrder {
        partner: who.partner.clone(),
        id: record.id,
        terms: record.terms.clone(),
        wallet_address: hosted.and_then(|hosted| hosted.wallet_address.clone()),
        payout: opened.transpose()?,
    })
}

/// A due record that the store cannot lock.
#[derive(Debug, thiserror::Error)]
#[error("a due rail record has no quote")]
struct MissingQuote;

/// The payout details of a record cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("the payout details of a rail record do not open")]
struct PayoutDamage;

/// A record that is locked after its session, and the instant after the locks.
pub(super) struct LockedRecord {
    pub(super) session: Option<Session>,
    pub(super) record: RailRecord,
    pub(super) now: Timestamp,
}

/// A record after its end.
pub(super) struct EndedRecord {
    pub(super) record: RailRecord,
    /// The session of a settled record if the session had ended before, without this payment.
    ended_before: Option<Session>,
}

impl EndedRecord {
    fn of(record: RailRecord) -> Self {
        Self {
            record,
            ended_before: None,
        }
    }

    /// Logs money that moved for a session that had ended before. Its partner gets no event of the session, so the operator settles the
    /// payment with the partner.
    fn log_if_late(&self, who: &Tenant) {
        let Some(session) = &self.ended_before else {
            return;
        };
        let amount = self.record.terms.priced.fiat;
        let currency = amount.asset();
        tracing::warn!(
            partner.id = %who.partner,
            session.id = %session.id,
            session.status = session.state.status().as_str(),
            rail.id = %self.record.id,
            rail.amount = %amount,
            rail.currency = currency.code(),
            "A payment settled after its session had ended, so the session stays unchanged. Settle the payment with the partner"
        );
    }
}

/// Ends a locked record: writes its step, the end of its transaction and the events, and completes the session of a record that
/// has settled.
pub(super) async fn end_record(
    context: &GateContext,
    tx: &mut dyn GateTx,
    who: &Tenant,
    locked: LockedRecord,
    step: RailStep,
) -> Result<EndedRecord, GateError> {
    let LockedRecord {
        session,
        record,
        now,
    } = locked;
    let moving = tx.rail_apply(who, record.id, &record.asking, &step);
    moving.await?.won()?;
    let record = record.after(step);
    let ending = tx.transaction_end(who, record.refid, record.state.transaction());
    ending.await?.won()?;
    let events = context.events();
    if let Some(kind) = record.event() {
        let event = events.event(who, kind, Resource::Rail(&record), now)?;
        tx.event_insert(&event).await?;
    }
    let Some(session) = session else {
        return Ok(EndedRecord::of(record));
    };
    if let RailState::Settled { .. } = record.state {
        // A session can have ended here only if it predates the rule of one payment. It keeps its state, although the
        // money has moved.
        let paid = SessionAction::Settle(record.refid);
        let change = context.act(tx, who, session, paid, now).await?;
        let ended_before = change.refused.map(|_| change.session);
        return Ok(EndedRecord {
            record,
            ended_before,
        });
    }
    if let Some(kind) = record.session_event() {
        let event = events.event(who, kind, Resource::Payment(&session, &record), now)?;
        tx.event_insert(&event).await?;
    }
    Ok(EndedRecord::of(record))
}

/// A rail that confirms a cancellation has promised that no money moves. A later report that money has moved is for the operator.
fn log_settled_although_cancelled(record: &RailRecord, report: Option<&RailReport>) {
    if let (RailState::Cancelled { .. }, Some(RailReport::Settled { .. })) = (&record.state, report)
    {
        tracing::error!(
            session.id = %record.session,
            rail.id = %record.id,
            "The rail reports a settled payment that it had cancelled; settle it with the rail"
        );
    }
}

/// The step for a report; `None` if the rail is processing the payment or did not respond.
fn step_of(record: &RailRecord, report: Option<&RailReport>, now: Timestamp) -> Option<RailStep> {
    match record.advance(report?, now) {
        Ok(step) => step,
        Err(contradiction) => {
            tracing::error!(session.id = %record.session, rail.id = %record.id, "{contradiction}");
            None
        }
    }
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
