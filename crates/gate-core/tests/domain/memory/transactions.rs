//! Transactions in memory.

use async_trait::async_trait;
use gate_core::ports::TransactionTx;
use gate_core::transaction::{RefId, Transaction, TransactionState};
use kernel::{Cas, StoreError};
use partner_core::Tenant;

use super::{MemoryTx, guarded};

#[async_trait]
impl TransactionTx for MemoryTx {
    async fn transaction_insert(
        &mut self,
        who: &Tenant,
        transaction: &Transaction,
    ) -> Result<(), StoreError> {
        let at = (who.clone(), transaction.refid);
        assert!(
            self.rows
                .transactions
                .insert(at, transaction.clone())
                .is_none()
        );
        Ok(())
    }

    async fn transaction_end(
        &mut self,
        who: &Tenant,
        refid: RefId,
        state: TransactionState,
    ) -> Result<Cas, StoreError> {
        let stored = self.rows.transactions.get_mut(&(who.clone(), refid));
        let stored = stored.filter(|it| it.state == TransactionState::Processing);
        Ok(stored.map_or(Cas::Lost, |it| guarded(true, || it.state = state)))
    }
}
