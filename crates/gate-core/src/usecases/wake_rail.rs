//! Waking a rail record: the rail says that its state may have changed, and the record's next poll becomes due.
//!
//! The notification decides nothing. Whichever process polls next asks the rail, and applies only what the rail reports then.

use kernel::Mode;
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

impl WakeRail {
    /// Makes the next poll of a record due. Changes nothing if it is due already, was woken before, has ended or does not exist,
    /// so any number of notifications costs one write per poll.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(rail.id = %id))]
    pub async fn wake(&self, mode: Mode, id: RailId) -> Result<(), GateError> {
        let Some(who) = self.context.store.rail_asleep(mode, id).await? else {
            return Ok(());
        };
        retry_lost_races(|| async {
            let mut tx = self.context.store.gate_begin("rail_wake").await?;
            tx.rail_lock(&who, id).await?;
            let now = tx.now().await?;
            // A lost race means that the record is due or has ended meanwhile.
            if tx.rail_wake(&who, id, now).await?.won().is_ok() {
                tx.commit().await?;
            }
            Ok(())
        })
        .await
    }
}
