//! Forms of comparison for the customers of earlier versions, so that a new customer is compared with them in every spelling.
//!
//! A customer without a form is found by the spellings of its text, and stays so if it can get no form.

use std::sync::Arc;

use kernel::{Mode, StoreError, StoreResult};
use partner_core::races::retry_lost_races;
use partner_core::sealing::Sealer;
use partner_core::{PartnerId, Tenant};

use super::customers::open;
use crate::customer::{CustomerId, SealedCustomer, Unique};
use crate::ports::{CustomerForms, CustomerFormsTx, FormsPage};

/// Maximum customers of one transaction, which holds the partner's lock.
pub const AT_A_TIME: usize = 10;

/// Maximum rows of one read.
const PAGE: u32 = 1_000;

/// Fills in the forms of comparison of customers that an earlier version stored without.
#[derive(Clone)]
pub struct CompareCustomers {
    pub store: Arc<dyn CustomerForms>,
    /// Opens personal data.
    pub sealer: Arc<Sealer>,
}

/// The outcome of one transaction.
#[derive(Debug, Default)]
pub struct Compared {
    /// The number of customers that got a form.
    pub filled: u64,
    /// Customers without a form because another customer has it, with the field and the other customer.
    pub shared: Vec<(CustomerId, Unique, CustomerId)>,
    /// The number of customers without a form because their text has an unassigned character.
    pub withheld: u64,
    /// The number of customers that are sealed with a master key that this process does not hold.
    pub without_key: u64,
    /// Customers that cannot be read or decrypted, with the error.
    pub unreadable: Vec<(CustomerId, StoreError)>,
}

impl CompareCustomers {
    /// A page of the partners of a mode.
    pub async fn partners(
        &self,
        mode: Mode,
        after: Option<&PartnerId>,
    ) -> StoreResult<FormsPage<PartnerId>> {
        self.store.partners_after(mode, after, PAGE).await
    }

    /// The customers without a form in a page of a partner's customers.
    pub async fn page(
        &self,
        who: &Tenant,
        after: Option<CustomerId>,
    ) -> StoreResult<FormsPage<CustomerId>> {
        self.store.customers_without_forms(who, after, PAGE).await
    }

    /// Fills in the missing forms of customers, at most [`AT_A_TIME`], in one transaction.
    ///
    /// A form belongs to one customer. If two customers have the same one, it stays with the customer that has it already, and
    /// otherwise the first of `ids` gets it.
    ///
    /// # Errors
    /// [`StoreError`]; nothing was written.
    pub async fn compare(&self, who: &Tenant, ids: &[CustomerId]) -> StoreResult<Compared> {
        retry_lost_races(|| self.compare_once(who, ids)).await
    }

    async fn compare_once(&self, who: &Tenant, ids: &[CustomerId]) -> StoreResult<Compared> {
        let mut compared = Compared::default();
        let mut tx = self.store.forms_begin("customer_forms").await?;
        for id in ids {
            match tx.customer_lock(who, *id).await {
                Ok(Some(found)) => self.fill(&mut *tx, who, &found, &mut compared).await?,
                Ok(None) => {}
                Err(error @ StoreError::Inconsistent { .. }) => {
                    compared.unreadable.push((*id, error));
                }
                Err(error) => return Err(error),
            }
        }
        if compared.filled > 0 {
            tx.commit().await?;
        }
        Ok(compared)
    }

    /// Fills in the missing forms of a locked customer.
    async fn fill(
        &self,
        tx: &mut dyn CustomerFormsTx,
        who: &Tenant,
        found: &SealedCustomer,
        compared: &mut Compared,
    ) -> StoreResult<()> {
        let person = match open(&self.sealer, who, found) {
            Ok(customer) => customer.person,
            Err(StoreError::Unavailable(_)) => {
                compared.without_key += 1;
                return Ok(());
            }
            Err(error) => {
                compared.unreadable.push((found.id, error));
                return Ok(());
            }
        };
        let (mut forms, is_withheld) = person.missing_forms(&self.sealer, who, &found.marks);
        compared.withheld += u64::from(is_withheld);
        if forms.is_empty() {
            return Ok(());
        }
        let held = tx.customer_forms_held(who, &forms).await?;
        if let Some(holder) = held.email {
            forms.email = None;
            compared.shared.push((found.id, Unique::Email, holder));
        }
        if let Some(holder) = held.external_id {
            forms.external_id = None;
            compared.shared.push((found.id, Unique::ExternalId, holder));
        }
        if forms.is_empty() {
            return Ok(());
        }
        tx.customer_forms_put(who, found, &forms).await?.won()?;
        compared.filled += 1;
        Ok(())
    }
}
