//! Recounting contingent credits, to remove sales that can no longer be returned.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Asset, Mode, Readable, StoreResult, Timestamp};
use partner_core::Tenant;
use partner_core::races::retry_lost_races;

use crate::contingent_credit::{Recount, SLICE, Slice, lowered};
use crate::ledger::{Account, BALANCE_LIMIT};
use crate::ports::{PoolsStore, PoolsTx};

/// The contingent credits above which the background recounts, in units of 10^-8. Below it no sale is refused soon,
/// and a recount reads all trades of the return window.
const RECOUNT_THRESHOLD: i64 = BALANCE_LIMIT / 2;

/// The pause of the background between two recounts of the same account.
const RECOUNT_BACKOFF: Duration = Duration::from_secs(10 * 60);

/// Recounts contingent credits in slices. Each slice is its own transaction: it locks one partner, reads a bounded
/// number of trades and stores its progress.
#[derive(Clone)]
pub struct RecountContingentCredits {
    pub store: Arc<dyn PoolsStore>,
    pub mode: Mode,
}

impl RecountContingentCredits {
    /// The accounts that need a recount: their contingent credits exceed half of the limit.
    pub async fn due(&self) -> StoreResult<Readable<(Tenant, Asset)>> {
        self.store
            .commitments_above(self.mode, RECOUNT_THRESHOLD)
            .await
    }

    /// Runs one slice of an account's recount; `false` if none is running and none is due.
    pub async fn advance(&self, who: &Tenant, asset: Asset) -> StoreResult<bool> {
        let rested = |ended: Timestamp, now: Timestamp| now >= ended.plus(RECOUNT_BACKOFF);
        let run = slice(&self.store, who, asset, rested).await?;
        Ok(run == Run::More)
    }
}

/// The outcome of one slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Run {
    /// The recount continues.
    More,
    /// The recount ended.
    Ended,
    /// No recount was running or due.
    Idle,
}

/// Runs one slice of an account's recount. If none is running, `again` decides from the end of the last one and from
/// the clock whether to start a new one.
pub(super) async fn slice(
    store: &Arc<dyn PoolsStore>,
    who: &Tenant,
    asset: Asset,
    again: impl Fn(Timestamp, Timestamp) -> bool + Send + Sync,
) -> StoreResult<Run> {
    retry_lost_races(|| slice_once(store, who, asset, &again)).await
}

async fn slice_once(
    store: &Arc<dyn PoolsStore>,
    who: &Tenant,
    asset: Asset,
    again: &(impl Fn(Timestamp, Timestamp) -> bool + Send + Sync),
) -> StoreResult<Run> {
    let mut tx = store.begin("recount").await?;
    let account = tx.account_lock(who, asset).await?;
    let now = tx.now().await?;
    let recount = match tx.recount_get(who, asset).await? {
        Some(recount) => match recount.ended_at {
            None => recount,
            Some(ended) if again(ended, now) => Recount::begin(now),
            Some(_) => return Ok(Run::Idle),
        },
        None => Recount::begin(now),
    };
    let (recount, run) = match read(tx.as_mut(), who, &account, recount, now).await? {
        (recount, Slice::Counted(total)) => {
            let counted = total.saturating_add(account.available.units().into());
            let before = tx.commitment_get(who, asset).await?;
            tx.commitment_put(who, asset, lowered(before, counted))
                .await?;
            (recount.ended(now), Run::Ended)
        }
        (_, Slice::More(recount)) => (recount, Run::More),
    };
    tx.recount_put(who, asset, &recount).await?;
    tx.commit().await?;
    Ok(run)
}

/// Reads the trades of one slice.
async fn read(
    tx: &mut dyn PoolsTx,
    who: &Tenant,
    account: &Account,
    recount: Recount,
    now: Timestamp,
) -> StoreResult<(Recount, Slice)> {
    let asset = account.asset();
    let range = recount.settled_range(now);
    let settled = tx.refundable(who, asset, range, SLICE).await?;
    let (recount, all) = recount.with_settled(&settled, now);
    if !all {
        return Ok((recount, Slice::More(recount)));
    }
    let range = recount.latest_range(now);
    let latest = tx.refundable(who, asset, range, SLICE).await?;
    let range = recount.reserved_range();
    let reserved = tx.refundable(who, asset, range, SLICE).await?;
    Ok((recount, recount.with_reserved(&latest, &reserved, now)))
}
