//! Customers in memory.

use async_trait::async_trait;
use gate_core::customer::{CustomerId, CustomerIndexes, SealedCustomer, Unique};
use gate_core::ports::CustomerTx;
use kernel::{Cas, StoreError};
use partner_core::Tenant;

use super::{MemoryTx, guarded};

#[async_trait]
impl CustomerTx for MemoryTx {
    async fn customer_taken(
        &mut self,
        who: &Tenant,
        marks: &CustomerIndexes,
    ) -> Result<Option<Unique>, StoreError> {
        let own = self.rows.customers.iter().filter(|((it, _), _)| it == who);
        let own: Vec<CustomerIndexes> = own.map(|(_, customer)| customer.marks).collect();
        let email = own.iter().any(|it| it.email == marks.email);
        let named = marks.external_id.is_some();
        let external_id = named && own.iter().any(|it| it.external_id == marks.external_id);
        Ok(email
            .then_some(Unique::Email)
            .or(external_id.then_some(Unique::ExternalId)))
    }

    async fn customer_insert(
        &mut self,
        who: &Tenant,
        customer: &SealedCustomer,
    ) -> Result<(), StoreError> {
        let at = (who.clone(), customer.id);
        assert!(self.rows.customers.insert(at, customer.clone()).is_none());
        Ok(())
    }

    async fn customer_lock(
        &mut self,
        who: &Tenant,
        id: CustomerId,
    ) -> Result<Option<SealedCustomer>, StoreError> {
        Ok(self.rows.customers.get(&(who.clone(), id)).cloned())
    }

    async fn customer_put(
        &mut self,
        who: &Tenant,
        customer: &SealedCustomer,
    ) -> Result<Cas, StoreError> {
        let at = (who.clone(), customer.id);
        let stored = self.rows.customers.get_mut(&at).unwrap();
        let holds = stored.revision + 1 == customer.revision && stored.deleted_at.is_none();
        Ok(guarded(holds, || *stored = customer.clone()))
    }
}
