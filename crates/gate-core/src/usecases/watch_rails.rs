//! Watching rail records after their end: ask the rail whether it still says the same.
//!
//! Money can come late, and come back. A report about an ended record changes no state. It leaves a note for the operator, who settles
//! the money with the rail. The rail is asked daily for 30 days, and once after each notification.

use std::sync::Arc;

use kernel::{Mode, Readable, StoreError, StoreResult};
use partner_core::Tenant;
use partner_core::races::retry_lost_races;

use super::advance_rails::{MissingQuote, announce, order_of};
use super::context::GateContext;
use crate::due::DueShare;
use crate::error::GateError;
use crate::ports::{HeldBy, Rail};
use crate::rail::{RailAnswer, RailId, RailRecord, WATCH_AGAIN, WATCH_INTERVAL};

/// Asks a rail about records that have ended.
#[derive(Clone)]
pub struct WatchRails {
    pub context: GateContext,
    pub rail: Arc<dyn Rail>,
}

impl WatchRails {
    /// Ended records of a mode about which the rail must be asked, of each partner the longest overdue first.
    pub async fn due(
        &self,
        mode: Mode,
        share: &DueShare,
    ) -> StoreResult<Readable<(Tenant, RailId)>> {
        let held = HeldBy {
            mode,
            upstream: &self.rail.name(),
        };
        self.context.store.rails_watched(held, share).await
    }

    /// Whether the last polls of a partner all timed out.
    #[must_use]
    pub fn polls_hang(&self, who: &Tenant) -> bool {
        self.rail.polls_hang(&who.partner)
    }

    /// Asks the rail about an ended record, and notes what the operator must look at.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(rail.id = %id))]
    pub async fn watch(&self, who: &Tenant, id: RailId) -> Result<(), GateError> {
        let Some(claimed) = retry_lost_races(|| self.claim(who, id)).await? else {
            return Ok(());
        };
        let order = order_of(&self.context, who, &claimed)?;
        let answer = self.rail.watch(&order).await;
        note(&self.context, self.rail.as_ref(), who, &claimed, &answer).await
    }

    /// Takes the record for this process. If the rail does not answer, or the process stops, it is asked again an hour later.
    async fn claim(&self, who: &Tenant, id: RailId) -> Result<Option<RailRecord>, GateError> {
        let mut tx = self.context.store.gate_begin("rail_watch").await?;
        let found = tx.rail_lock(who, id).await?;
        let now = tx.now().await?;
        let record = found.ok_or_else(|| StoreError::unexpected(MissingQuote))?;
        let is_due = record.watch_at.is_some_and(|at| now >= at);
        if !is_due || record.rail != self.rail.name() {
            return Ok(None);
        }
        let before = record.watch_at;
        let watch_at = Some(now.plus(WATCH_AGAIN));
        let record = RailRecord { watch_at, ..record };
        tx.rail_watch(who, before, &record).await?.won()?;
        tx.commit().await?;
        Ok(Some(record))
    }
}

/// Notes on an ended record what the rail reports about it. A notification that has come meanwhile lets the rail be asked once more.
pub(super) async fn note(
    context: &GateContext,
    rail: &dyn Rail,
    who: &Tenant,
    seen: &RailRecord,
    answer: &RailAnswer,
) -> Result<(), GateError> {
    // A simulated rail has no money, so nothing that it says after an end needs an operator.
    let answer = match rail.simulation() {
        Some(_) => &RailAnswer::Unknown,
        None => answer,
    };
    let noting = || async {
        let mut tx = context.store.gate_begin("rail_watch").await?;
        let found = tx.rail_lock(who, seen.id).await?;
        let now = tx.now().await?;
        let record = found.ok_or_else(|| StoreError::unexpected(MissingQuote))?;
        let next = record.next_watch(now, WATCH_INTERVAL);
        if *answer == RailAnswer::Silent && next.is_some() {
            return Ok::<_, GateError>(());
        }
        let progress = record.progress(answer, now);
        let is_woken = record.watch_at != seen.watch_at;
        let after = RailRecord {
            watch_at: if is_woken { record.watch_at } else { next },
            ..progress.record.clone()
        };
        tx.rail_watch(who, record.watch_at, &after).await?.won()?;
        // Announced before the commit, so that no finding is stored without a word about it.
        announce(rail, &progress);
        Ok(tx.commit().await?)
    };
    retry_lost_races(noting).await
}
