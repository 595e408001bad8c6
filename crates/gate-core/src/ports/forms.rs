//! The port that fills in the forms of comparison of customers that an earlier version stored without.

use async_trait::async_trait;
use kernel::{Cas, Mode, Readable, StoreResult};
use partner_core::ports::UnitOfWork;
use partner_core::{PartnerId, Tenant};

use super::CustomerTx;
use crate::customer::{CustomerId, Forms, SealedCustomer};

/// What one read of a walk returns.
#[derive(Debug)]
pub struct FormsPage<I> {
    /// What was found, in the order of its ids.
    pub found: Readable<I>,
    /// The last id that was read, after which the next read begins; `None` at the end.
    pub next: Option<I>,
}

/// Which customers have forms of comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeldForms {
    /// The customer with the form of the email.
    pub email: Option<CustomerId>,
    /// The customer with the form of the partner's own id.
    pub external_id: Option<CustomerId>,
}

/// Reads of customers without forms of comparison, page by page, and the transactions that fill them in.
#[async_trait]
pub trait CustomerForms: Send + Sync {
    /// At most `limit` partners of a mode after one of them.
    async fn partners_after(
        &self,
        mode: Mode,
        after: Option<&PartnerId>,
        limit: u32,
    ) -> StoreResult<FormsPage<PartnerId>>;

    /// The customers without the form of a text that they have, also deleted ones, among at most `limit` customers of a partner after
    /// one of them.
    async fn customers_without_forms(
        &self,
        who: &Tenant,
        after: Option<CustomerId>,
        limit: u32,
    ) -> StoreResult<FormsPage<CustomerId>>;

    /// Opens a transaction. `name` labels it in metrics and logs.
    async fn forms_begin(&self, name: &'static str) -> StoreResult<Box<dyn CustomerFormsTx>>;
}

/// A transaction that fills in forms of comparison.
#[async_trait]
pub trait CustomerFormsTx: CustomerTx + UnitOfWork {
    /// Which customers of the partner have these forms, also deleted ones. Until the end of the transaction no other transaction
    /// can take a free form.
    async fn customer_forms_held(&mut self, who: &Tenant, forms: &Forms) -> StoreResult<HeldForms>;

    /// Stores forms of a customer as it was read. Stored forms stay, and the revision and the instant of the last change do too. Guard:
    /// the stored revision is that of the customer.
    async fn customer_forms_put(
        &mut self,
        who: &Tenant,
        customer: &SealedCustomer,
        forms: &Forms,
    ) -> StoreResult<Cas>;
}
