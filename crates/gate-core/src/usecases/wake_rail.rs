//! Waking a rail record: the rail says that its state may have changed, and the rail's next report about it becomes due.
//!
//! The notification decides nothing. Whichever process polls next asks the rail, and applies only what the rail reports then. A
//! notification counts only for the records of the rail that signed it.

use kernel::{Mode, UpstreamName};
use partner_core::races::retry_lost_races;

use super::context::GateContext;
use crate::error::GateError;
use crate::rail::RailId;

/// Wakes rail records.
#[derive(Clone)]
pub struct WakeRail {
    /// The store.
    pub context: GateContext,
}

kernel::closed_list! {
    /// What a notification has done.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Waking {
        /// The record's next poll is due.
        Woken = "woken",
        /// It was due already, or was woken before.
        Awake = "awake",
        /// Another rail holds the record.
        Elsewhere = "elsewhere",
        /// There is no such record.
        Unknown = "unknown",
    }
}

impl WakeRail {
    /// Makes the next poll of a record due, or one report if the record has ended. Changes nothing if it is due already, was woken
    /// before, belongs to a rail that is not among the signers, or does not exist, so any number of notifications costs one write per
    /// poll.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(rail.id = %id))]
    pub async fn wake(
        &self,
        mode: Mode,
        id: RailId,
        signers: &[UpstreamName],
    ) -> Result<Waking, GateError> {
        let Some(found) = self.context.store.rail_notified(mode, id).await? else {
            return Ok(Waking::Unknown);
        };
        if !signers.contains(&found.rail) {
            return Ok(Waking::Elsewhere);
        }
        if !found.is_asleep {
            return Ok(Waking::Awake);
        }
        retry_lost_races(|| async {
            let mut tx = self.context.store.gate_begin("rail_wake").await?;
            tx.rail_lock(&found.who, id).await?;
            let now = tx.now().await?;
            // A lost race means that the record is due meanwhile.
            if tx.rail_wake(&found.who, id, now).await?.won().is_err() {
                return Ok(Waking::Awake);
            }
            tx.commit().await?;
            Ok(Waking::Woken)
        })
        .await
    }
}
