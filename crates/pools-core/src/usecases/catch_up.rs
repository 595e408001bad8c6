//! Lets a running velocity total catch up with the window, in steps of bounded size.

use std::sync::Arc;
use std::time::Duration;

use kernel::StoreError;
use partner_core::Tenant;
use partner_core::races::retry_lost_races;

use crate::batch::{Decision, Refusal, TransactCommand};
use crate::ports::{PoolsStore, PoolsTx, VelocityRange};
use crate::velocity::{Catch, Crossed, STEP, Velocity, cutoff};

/// Steps of one call: more trades than any window holds. Past it two processes work with different windows.
const MAX_STEPS: u32 = 20_000;

/// How often a command may find its running total behind the window before it is refused for that.
const CATCH_UPS: u32 = 8;

/// Moves running totals to the start of the velocity window.
///
/// Each step is a transaction of its own that reads a bounded number of trades and stores the floor that it has
/// reached, so a step that fails loses nothing that earlier steps have done.
#[derive(Clone)]
pub struct CatchUpVelocity {
    /// The store.
    pub store: Arc<dyn PoolsStore>,
    /// The velocity window.
    pub window: Duration,
}

impl std::fmt::Debug for CatchUpVelocity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CatchUpVelocity")
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

impl CatchUpVelocity {
    /// Runs a command through `queue`, and again after the running total has caught up if that was behind. The queue
    /// runs other commands meanwhile.
    ///
    /// # Errors
    /// Those of the queue and of [`CatchUpVelocity::run`].
    pub async fn submit<F, R>(
        &self,
        command: TransactCommand,
        queue: F,
    ) -> Result<Decision, StoreError>
    where
        F: Fn(TransactCommand) -> R + Send + Sync,
        R: Future<Output = Result<Decision, StoreError>> + Send,
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

    /// Runs steps until the total of a partner is exact; returns how many transactions it took.
    ///
    /// # Errors
    /// [`StoreError`]; never [`StoreError::CommitUnknown`], because a step may be repeated.
    pub async fn run(&self, who: &Tenant) -> Result<u32, StoreError> {
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

    /// One step; `false` if there was nothing to do.
    async fn step(&self, who: &Tenant) -> Result<bool, StoreError> {
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
            Catch::Nothing => return Ok(false),
            Catch::Forget => {
                let crossed = read(tx.as_mut(), who, forward).await?;
                velocity.forgotten(cutoff, &crossed)
            }
            Catch::Recall => {
                let crossed = read(tx.as_mut(), who, back(velocity.floor)).await?;
                velocity.recalled(cutoff, &crossed)
            }
            Catch::Restart => {
                let crossed = read(tx.as_mut(), who, back(now)).await?;
                Velocity::restarted(now, cutoff, &crossed)
            }
        };
        tx.velocity_put(who, &moved).await?;
        tx.commit().await?;
        Ok(moved.floor != cutoff)
    }
}

async fn read(
    tx: &mut dyn PoolsTx,
    who: &Tenant,
    range: VelocityRange,
) -> Result<Crossed, StoreError> {
    tx.velocity_read(who, range, STEP).await
}
