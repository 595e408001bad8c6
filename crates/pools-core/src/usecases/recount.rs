//! Counting commitments anew: what sales were made and could be returned for a time no longer can.

use std::sync::Arc;

use kernel::{Asset, Mode, StoreError};
use partner_core::Tenant;
use partner_core::races::retry_lost_races;

use super::commitment;
use crate::ledger::BALANCE_LIMIT;
use crate::ports::PoolsStore;

/// Only where a sale might be refused for it soon: a count reads all trades of the return window.
const WORTH_IT: i64 = BALANCE_LIMIT / 2;

/// Counts commitments anew.
#[derive(Clone)]
pub struct Recounting {
    /// The store.
    pub store: Arc<dyn PoolsStore>,
    /// The mode worked in.
    pub mode: Mode,
}

impl std::fmt::Debug for Recounting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recounting")
    }
}

impl Recounting {
    /// Counts anew what is above half the limit; how many accounts that were.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn recount(&self) -> Result<usize, StoreError> {
        let accounts = self.store.commitments_above(self.mode, WORTH_IT).await?;
        for (who, asset) in &accounts {
            retry_lost_races(|| self.recount_one(who, *asset)).await?;
        }
        Ok(accounts.len())
    }

    async fn recount_one(&self, who: &Tenant, asset: Asset) -> Result<(), StoreError> {
        let mut tx = self.store.begin("recount").await?;
        let account = tx.account_lock(who, asset).await?;
        let now = tx.now().await?;
        let total = commitment::count(tx.as_mut(), who, &account, now).await?;
        tx.commitment_put(who, asset, commitment::stored(total))
            .await?;
        tx.commit().await
    }
}
