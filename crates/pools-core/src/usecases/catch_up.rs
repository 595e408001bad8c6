//! Lets a running velocity total catch up with the window, in steps of bounded size.

use std::sync::Arc;
use std::time::Duration;

use kernel::{StoreError, StoreResult};
use partner_core::Tenant;
use partner_core::races::retry_lost_races;

use crate::batch::{Decision, Refusal, TransactCommand};
use crate::ports::{PoolsStore, PoolsTx, VelocityRange};
use crate::velocity::{CatchUpStep, STEP, TradesRead, Velocity, cutoff};

/// Maximum steps of one call, more than any window needs. A call that exceeds it competes with a process that has
/// another window.
const MAX_STEPS: u32 = 20_000;

/// How often a command is submitted again because its running total has not caught up with the window.
const CATCH_UPS: u32 = 8;

/// Moves running totals to the start of the velocity window.
///
/// Each step is its own transaction. It reads a bounded number of trades and stores the floor that it reached, so a
/// failed step does not undo earlier steps.
#[derive(Clone)]
pub struct CatchUpVelocity {
    pub store: Arc<dyn PoolsStore>,
    /// The velocity window.
    pub window: Duration,
}

impl CatchUpVelocity {
    /// Runs a command through `queue`. If its running total has not caught up with the window, it lets the total
    /// catch up and submits the command again.
    ///
    /// The queue runs other commands between the two.
    ///
    /// # Errors
    /// The errors of the queue and of [`CatchUpVelocity::run`].
    pub async fn submit<F, R>(&self, command: TransactCommand, queue: F) -> StoreResult<Decision>
    where
        F: Fn(TransactCommand) -> R + Send + Sync,
        R: Future<Output = StoreResult<Decision>> + Send,
    {
        for _ in 0..CATCH_UPS {
            let decision = queue(command.clone()).await?;
            if decision != Err(Refusal::VelocityBehind) {
                return Ok(decision);
            }
            self.run(&command.scope.tenant).await?;
        }
        queue(command).await
    }

    /// Runs steps until the total of a partner is exact. Returns the number of transactions.
    ///
    /// # Errors
    /// [`StoreError`], but never [`StoreError::CommitUnknown`], because a step may be repeated.
    pub async fn run(&self, who: &Tenant) -> StoreResult<u32> {
        for steps in 1..=MAX_STEPS {
            let stepping = retry_lost_races(|| self.step(who)).await;
            match stepping {
                Ok(true) => {}
                Ok(false) => return Ok(steps),
                Err(StoreError::CommitUnknown(cause)) => {
                    return Err(StoreError::Unavailable(cause));
                }
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::unavailable(format!(
            "the velocity total of {} has not caught up after {MAX_STEPS} steps: do all replicas have the same PENSTOCK_VELOCITY_WINDOW?",
            who.partner
        )))
    }

    /// Runs one step; `false` if the total was exact.
    async fn step(&self, who: &Tenant) -> StoreResult<bool> {
        let mut tx = self.store.begin("velocity_step").await?;
        let Some(velocity) = tx.velocity_lock(who).await? else {
            return Ok(false);
        };
        let now = tx.now().await?;
        let cutoff = cutoff(now, self.window);
        let forward = VelocityRange {
            after: velocity.floor,
            up_to: cutoff,
            newest_first: false,
        };
        let back = |up_to| VelocityRange {
            after: cutoff,
            up_to,
            newest_first: true,
        };
        let moved = match velocity.next(cutoff, self.window) {
            CatchUpStep::Nothing => return Ok(false),
            CatchUpStep::RemoveOldest => {
                let trades = read(tx.as_mut(), who, forward).await?;
                velocity.remove_oldest(cutoff, &trades)
            }
            CatchUpStep::AddNewest => {
                let trades = read(tx.as_mut(), who, back(velocity.floor)).await?;
                velocity.add_newest(cutoff, &trades)
            }
            CatchUpStep::Restart => {
                let trades = read(tx.as_mut(), who, back(now)).await?;
                Velocity::restarted(now, cutoff, &trades)
            }
        };
        tx.velocity_put(who, &moved).await?;
        tx.commit().await?;
        Ok(moved.floor != cutoff)
    }
}

async fn read(tx: &mut dyn PoolsTx, who: &Tenant, range: VelocityRange) -> StoreResult<TradesRead> {
    tx.velocity_read(who, range, STEP).await
}
