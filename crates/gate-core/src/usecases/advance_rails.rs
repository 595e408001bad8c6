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
use super::watch_rails::note;
use crate::due::DueShare;
use crate::error::GateError;
use crate::events::Resource;
use crate::payout::Payout;
use crate::ports::{CancelReport, GateTx, GivenUp, HeldBy, Rail, RailOrder, RailPoll};
use crate::rail::{PollLease, Progress, RailAnswer, RailId, RailRecord, RailReport, RailState};
use crate::session::{Session, SessionAction};

/// Timeout of the calls of one poll together.
pub const RAIL_TIMEOUT: Duration = Duration::from_secs(10);
/// Duration of a lease: the rail's timeout and 2 s more.
const CLAIM: Duration = RAIL_TIMEOUT.saturating_add(Duration::from_secs(2));
/// Backoff after the first poll without a result. It doubles up to `MAX_BACKOFF`.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Polls a rail and advances the records that it holds.
#[derive(Clone)]
pub struct AdvanceRails {
    pub context: GateContext,
    pub rail: Arc<dyn Rail>,
}

/// A record under a lease, and the instant at which it was claimed.
struct Claimed {
    record: RailRecord,
    at: Timestamp,
}

impl AdvanceRails {
    /// Records of a mode that the rail holds and whose next poll is due, of each partner the longest overdue first.
    pub async fn due(
        &self,
        mode: Mode,
        share: &DueShare,
    ) -> StoreResult<Readable<(Tenant, RailId)>> {
        let held = HeldBy {
            mode,
            upstream: &self.rail.name(),
        };
        self.context.store.rails_due(held, share).await
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
        let order = order_of(&self.context, who, &claimed.record)?;
        let answer = self.ask(&claimed, &order).await;
        let attempts = claimed.record.asking.attempts;
        let wait = self.rail.ask_again(&order, attempts);
        let wait = wait.unwrap_or_else(|| backoff(attempts));
        retry_lost_races(|| self.apply(who, &claimed.record, &answer, wait)).await
    }

    /// Asks the rail for a report. After the deadline the rail is asked to cancel the payment first, and nothing begins.
    async fn ask(&self, claimed: &Claimed, order: &RailOrder) -> RailAnswer {
        let Claimed { record, at } = claimed;
        let is_overdue = record.is_overdue(*at);
        if is_overdue
            && let Some(CancelReport::Cancelled) =
                self.rail.cancel(order, GivenUp::AtDeadline).await
        {
            return RailReport::Cancelled.into();
        }
        let poll = RailPoll {
            attempt: record.asking.attempts,
            may_begin: record.acknowledged_at.is_none() && !is_overdue,
        };
        self.rail.advance(order, poll).await
    }

    async fn claim(&self, who: &Tenant, id: RailId) -> Result<Option<Claimed>, GateError> {
        let mut tx = self.context.store.gate_begin("rail_claim").await?;
        let found = tx.rail_lock(who, id).await?;
        let at = tx.now().await?;
        // Records are never deleted, so the quote's row is missing.
        let record = found.ok_or_else(|| StoreError::unexpected(MissingQuote))?;
        if !record.is_due(at) || record.rail != self.rail.name() {
            return Ok(None);
        }
        let before = record.asking;
        let asking = PollLease {
            attempts: before.attempts.saturating_add(1),
            token: Some(self.context.entropy.number()),
            next_at: at.plus(CLAIM),
        };
        let record = RailRecord { asking, ..record };
        tx.rail_ask(who, &before, &record).await?.won()?;
        tx.commit().await?;
        Ok(Some(Claimed { record, at }))
    }

    async fn apply(
        &self,
        who: &Tenant,
        claimed: &RailRecord,
        answer: &RailAnswer,
        wait: Duration,
    ) -> Result<(), GateError> {
        let mut tx = self.context.store.gate_begin("rail_apply").await?;
        let session = tx.session_lock(who, claimed.session).await?;
        let found = tx.rail_lock(who, claimed.id).await?;
        let now = tx.now().await?;
        let Some(record) = found else {
            return Ok(());
        };
        tx.caused_by(record.trace_parent);
        if record.asking != claimed.asking {
            return self.apply_late(tx, who, &record, answer, now).await;
        }
        let progress = record.progress(answer, now);
        if progress.record.state == RailState::Processing {
            let rested = RailRecord {
                asking: PollLease {
                    token: None,
                    next_at: next_poll(&record, now, wait),
                    ..record.asking
                },
                ..progress.record.clone()
            };
            tx.rail_ask(who, &record.asking, &rested).await?.won()?;
            // Announced before the commit, so that no finding is stored without a word about it.
            announce(self.rail.as_ref(), &progress);
            return Ok(tx.commit().await?);
        }
        let ending = Ending {
            session,
            before: record.asking,
            record: progress.record.clone(),
            now,
        };
        let ended = end_record(&self.context, tx.as_mut(), who, ending).await?;
        announce(self.rail.as_ref(), &progress);
        tx.commit().await?;
        ended.log_if_late(who);
        Ok(())
    }

    /// Applies what is left of an answer whose lease has ended meanwhile: another poller has the record, or it was cancelled.
    async fn apply_late(
        &self,
        mut tx: Box<dyn GateTx>,
        who: &Tenant,
        record: &RailRecord,
        answer: &RailAnswer,
        now: Timestamp,
    ) -> Result<(), GateError> {
        if record.state != RailState::Processing {
            drop(tx);
            // What the rail reports about the payment now is a report after the end.
            return note(&self.context, self.rail.as_ref(), who, record, answer).await;
        }
        let knows = matches!(answer, RailAnswer::Accepted | RailAnswer::Reported(_));
        if knows && record.acknowledged_at.is_none() {
            let acknowledged = RailRecord {
                acknowledged_at: Some(now),
                ..record.clone()
            };
            let asking = tx.rail_ask(who, &record.asking, &acknowledged);
            asking.await?.won()?;
            tx.commit().await?;
        }
        Ok(())
    }
}

/// The next poll after a rest. The deadline is no further away.
fn next_poll(record: &RailRecord, now: Timestamp, wait: Duration) -> Timestamp {
    let next = now.plus(wait);
    let deadline = record.pay_until.filter(|until| *until > now);
    deadline.map_or(next, |until| until.min(next))
}

/// Logs and counts what an answer has shown.
pub(super) fn announce(rail: &dyn Rail, progress: &Progress) {
    let record = &progress.record;
    if let Some(contradiction) = progress.contradiction {
        tracing::error!(session.id = %record.session, rail.id = %record.id, rail.name = %record.rail, "{contradiction}");
        rail.contradicted(contradiction);
    }
    if let Some(finding) = progress.found {
        let paid = record.terms.paid();
        tracing::error!(
            session.id = %record.session,
            rail.id = %record.id,
            rail.name = %record.rail,
            rail.finding = finding.as_str(),
            rail.amount = %paid.amount,
            rail.currency = paid.amount.asset().code(),
            rail.received = record.received.map(|it| it.amount.to_string()),
            "The rail has other money than the payment, which stays as it is. Settle it with the rail"
        );
        rail.found(finding);
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
        pay_until: record.pay_until,
        wallet_address: hosted.and_then(|hosted| hosted.wallet_address.clone()),
        payout: opened.transpose()?,
        trace_parent: record.trace_parent,
    })
}

/// A due record that the store cannot lock.
#[derive(Debug, thiserror::Error)]
#[error("a due rail record has no quote")]
pub(super) struct MissingQuote;

/// The payout details of a record cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("the payout details of a rail record do not open")]
struct PayoutDamage;

/// The end of a record that is locked after its session.
pub(super) struct Ending {
    pub(super) session: Option<Session>,
    /// The stored lease.
    pub(super) before: PollLease,
    /// The record after its end.
    pub(super) record: RailRecord,
    /// The instant after the locks.
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

/// Ends a locked record: writes its end, the end of its transaction and the events, and completes the session of a record that
/// has settled.
pub(super) async fn end_record(
    context: &GateContext,
    tx: &mut dyn GateTx,
    who: &Tenant,
    ending: Ending,
) -> Result<EndedRecord, GateError> {
    let Ending {
        session,
        before,
        record,
        now,
    } = ending;
    tx.rail_end(who, &before, &record).await?.won()?;
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
