//! Verifications in memory.

use async_trait::async_trait;
use gate_core::ports::VerificationTx;
use gate_core::rail::PollLease;
use gate_core::session::SessionId;
use gate_core::verification::Verification;
use kernel::{Cas, StoreError};
use partner_core::Tenant;

use super::{MemoryTx, guarded};

#[async_trait]
impl VerificationTx for MemoryTx {
    async fn verification_insert(
        &mut self,
        who: &Tenant,
        verification: &Verification,
    ) -> Result<(), StoreError> {
        let at = (who.clone(), verification.session);
        let rows = &mut self.rows.verifications;
        assert!(rows.insert(at, verification.clone()).is_none());
        Ok(())
    }

    async fn verification_lock(
        &mut self,
        who: &Tenant,
        session: SessionId,
    ) -> Result<Option<Verification>, StoreError> {
        let at = (who.clone(), session);
        Ok(self.rows.verifications.get(&at).cloned())
    }

    async fn verification_put(
        &mut self,
        who: &Tenant,
        before: &PollLease,
        after: &Verification,
    ) -> Result<Cas, StoreError> {
        let at = (who.clone(), after.session);
        let stored = self.rows.verifications.get_mut(&at).unwrap();
        let holds = stored.state.ended_at().is_none() && stored.asking == *before;
        Ok(guarded(holds, || *stored = after.clone()))
    }
}
