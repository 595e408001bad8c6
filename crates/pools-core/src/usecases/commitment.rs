//! What an account is committed to: what it holds, and what trades may still credit to it.

use std::time::Duration;

use kernel::{StoreError, Timestamp};
use partner_core::Tenant;

use super::poll::RETURN_WINDOW;
use crate::ledger::Account;
use crate::ports::PoolsTx;

/// A poll that has claimed a trade on its last day may apply the return a little later.
const MARGIN: Duration = Duration::from_secs(24 * 60 * 60);

/// Counts the commitment of a locked account.
pub(super) async fn count(
    tx: &mut dyn PoolsTx,
    who: &Tenant,
    account: &Account,
    now: Timestamp,
) -> Result<i128, StoreError> {
    let settled_after = now.minus(RETURN_WINDOW).minus(MARGIN);
    let refundable = tx.refundable(who, account.asset(), settled_after).await?;
    Ok(refundable.saturating_add(account.available.units().into()))
}

/// As it is stored: past what fits it says as much as an account that is full.
pub(super) fn stored(total: i128) -> i64 {
    i64::try_from(total).unwrap_or(i64::MAX)
}
