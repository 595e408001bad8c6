//! Customers: create, update, delete, find.

use async_trait::async_trait;
use kernel::{StoreError, StoreResult, Timestamp};
use partner_core::Tenant;
use partner_core::idempotency::{Fingerprint, OperationKey};
use partner_core::page::{CreatedRange, Page};
use partner_core::sealing::Sealer;
use partner_core::stored_response::{IdempotentRequest, IdempotentResponse, Render, RenderError};
use serde_json::json;

use super::context::GateContext;
use crate::customer::{
    Changes, Customer, CustomerDamage, CustomerDraft, CustomerEvent, CustomerFormError, CustomerId,
    CustomerUpdate, Deleted, Person, SealedCustomer, Unique, email_indexes, external_id_indexes,
};
use crate::error::GateError;
use crate::events::Resource;
use crate::idempotent::{Decision, GateWrite, Idempotent};
use crate::ports::{CustomerFilter, GateTx};

/// Creates, updates, deletes and finds customers.
#[derive(Clone)]
pub struct Customers {
    pub context: GateContext,
    /// Runs the writes.
    pub idempotent: Idempotent,
}

/// The search terms of a list.
#[derive(Clone, Default)]
pub struct CustomerSearch {
    /// Only customers after this one in the order of the list.
    pub after: Option<CustomerId>,
    /// Only the customer with this email, in any case and spelling.
    pub email: Option<String>,
    /// Only the customer with this `external_id`, in any spelling.
    pub external_id: Option<String>,
    /// Only customers created within this range.
    pub created: CreatedRange,
}

// Search terms are personal data, so `Debug` omits them.
kernel::debug_as_text!(CustomerSearch, "CustomerSearch");

/// Why nothing was changed. The idempotency key stays unused.
#[derive(Debug, thiserror::Error)]
pub enum CustomerError {
    /// A field is invalid.
    #[error(transparent)]
    Field(#[from] CustomerFormError),
    /// Another customer has the value, or a deleted customer had it.
    #[error("another customer has this email or external id")]
    Exists(Unique),
    /// The partner has no such customer, or it was deleted.
    #[error("no such customer")]
    NotFound,
    /// The use case could not finish.
    #[error(transparent)]
    Failed(#[from] GateError),
}

/// A change of an existing customer.
enum CustomerChange {
    Update(Changes),
    Delete,
}

impl CustomerChange {
    const fn name(&self) -> &'static str {
        match self {
            Self::Update(_) => "customer_update",
            Self::Delete => "customer_delete",
        }
    }

    /// The customer after the change, with its event. Without an event nothing changed. A deleted customer can be
    /// deleted again but not updated.
    fn apply(
        &self,
        customer: Customer,
        now: Timestamp,
    ) -> Result<(Customer, Option<CustomerEvent>), CustomerError> {
        let (after, event) = match self {
            Self::Update(_) if customer.deleted_at.is_some() => {
                return Err(CustomerError::NotFound);
            }
            Self::Update(changes) => (customer.updated(changes, now), CustomerEvent::Updated),
            Self::Delete => (customer.deleted(now), CustomerEvent::Deleted),
        };
        Ok(match after {
            Some(after) => (after, Some(event)),
            None => (customer, None),
        })
    }
}

impl Customers {
    /// A customer of the tenant.
    pub async fn get(&self, who: &Tenant, id: CustomerId) -> StoreResult<Option<Customer>> {
        let Some(id) = id.in_mode(who.mode) else {
            return Ok(None);
        };
        let found = self.context.store.customer_get(who, id).await?;
        let customer = found.map(|found| self.open(who, &found)).transpose()?;
        Ok(customer.filter(|customer| customer.deleted_at.is_none()))
    }

    /// A page of customers, newest first.
    pub async fn list(
        &self,
        who: &Tenant,
        wanted: &CustomerSearch,
        limit: u32,
    ) -> StoreResult<Page<Customer>> {
        if wanted.after.is_some_and(|id| id.mode() != who.mode) {
            return Ok(Page::empty());
        }
        let sealer = &self.context.sealer;
        let (email, external_id) = (wanted.email.as_deref(), wanted.external_id.as_deref());
        let filter = CustomerFilter {
            after: wanted.after,
            email: email.map(|email| email_indexes(sealer, who, email)),
            external_id: external_id.map(|id| external_id_indexes(sealer, who, id)),
            created: wanted.created,
        };
        let rows = self
            .context
            .store
            .customers_page(who, &filter, limit.saturating_add(1))
            .await?;
        let opened: StoreResult<Vec<Customer>> =
            rows.iter().map(|row| self.open(who, row)).collect();
        Ok(Page::cut(opened?, limit))
    }

    /// Creates a customer, or replays the response that is stored under the request's key.
    pub async fn create(
        &self,
        who: &Tenant,
        key: OperationKey,
        draft: &CustomerDraft,
        render: &Render<'_, Customer>,
    ) -> Result<IdempotentResponse, CustomerError> {
        let request = IdempotentRequest::new(who, key, draft.fingerprint());
        let prepare = async {
            Ok(NewCustomer {
                customers: self,
                who,
                person: draft.validate()?,
            })
        };
        self.idempotent.run(Some(request), prepare, render).await
    }

    /// Updates a customer, or replays the response that is stored under the request's key.
    pub async fn update(
        &self,
        who: &Tenant,
        id: CustomerId,
        key: Option<OperationKey>,
        update: &CustomerUpdate,
        render: &Render<'_, Customer>,
    ) -> Result<IdempotentResponse, CustomerError> {
        let request = key.map(|key| IdempotentRequest::new(who, key, update.fingerprint()));
        let change = || Ok(CustomerChange::Update(update.validate()?));
        self.change(who, id, request, change, render).await
    }

    /// Deletes a customer. A deleted customer stays unchanged.
    pub async fn delete(
        &self,
        who: &Tenant,
        id: CustomerId,
        key: Option<OperationKey>,
        render: &Render<'_, Deleted>,
    ) -> Result<IdempotentResponse, CustomerError> {
        let nothing = Fingerprint::of_json(&json!([]));
        let request = key.map(|key| IdempotentRequest::new(who, key, nothing));
        let render = |customer: &Customer| match customer.gone() {
            Some(gone) => render(&gone),
            None => Err(RenderError("a customer was not deleted".into())),
        };
        self.change(who, id, request, || Ok(CustomerChange::Delete), &render)
            .await
    }

    async fn change(
        &self,
        who: &Tenant,
        id: CustomerId,
        request: Option<IdempotentRequest>,
        change: impl FnOnce() -> Result<CustomerChange, CustomerError> + Send,
        render: &Render<'_, Customer>,
    ) -> Result<IdempotentResponse, CustomerError> {
        let id = id.in_mode(who.mode).ok_or(CustomerError::NotFound)?;
        let prepare = async {
            Ok(ChangedCustomer {
                customers: self,
                who,
                id,
                change: change()?,
            })
        };
        self.idempotent.run(request, prepare, render).await
    }

    async fn emit(
        &self,
        tx: &mut dyn GateTx,
        who: &Tenant,
        customer: &Customer,
        event: CustomerEvent,
        at: Timestamp,
    ) -> Result<(), GateError> {
        let resource = match customer.gone() {
            Some(deleted) => Resource::DeletedCustomer(deleted),
            None => Resource::Customer(customer),
        };
        let events = self.context.events();
        let event = events.event(who, event.as_str(), resource, at)?;
        Ok(tx.event_insert(&event).await?)
    }

    fn seal(&self, who: &Tenant, customer: &Customer) -> StoreResult<SealedCustomer> {
        let GateContext {
            sealer, entropy, ..
        } = &self.context;
        Ok(customer.seal(who, sealer, entropy.as_ref())?)
    }

    fn open(&self, who: &Tenant, found: &SealedCustomer) -> StoreResult<Customer> {
        open(&self.context.sealer, who, found)
    }
}

/// Opens a stored customer.
pub(super) fn open(sealer: &Sealer, who: &Tenant, found: &SealedCustomer) -> StoreResult<Customer> {
    let damaged = |damage: CustomerDamage| StoreError::Inconsistent {
        table: "customers",
        column: damage.column(),
        row: format!("{}/{}", who.partner, found.id.ulid()),
    };
    sealer.can_open(&found.person)?;
    found.open(who, sealer).map_err(damaged)
}

/// The write of a new customer.
struct NewCustomer<'w> {
    customers: &'w Customers,
    who: &'w Tenant,
    person: Person,
}

#[async_trait]
impl GateWrite for NewCustomer<'_> {
    /// The field whose value another customer has.
    type Rows = Option<Unique>;
    type Done = Customer;
    type Error = CustomerError;

    fn name(&self) -> &'static str {
        "customer_create"
    }

    async fn lock(&self, tx: &mut dyn GateTx) -> StoreResult<Option<Unique>> {
        let identity = (self.person).identity(&self.customers.context.sealer, self.who);
        tx.customer_taken(self.who, &identity).await
    }

    async fn decide(
        &self,
        tx: &mut dyn GateTx,
        taken: Option<Unique>,
        now: Timestamp,
    ) -> Result<Decision<Customer, CustomerError>, GateError> {
        if let Some(unique) = taken {
            return Ok(Decision::Refused(CustomerError::Exists(unique)));
        }
        let Self { customers, who, .. } = self;
        let id = CustomerId::new(who.mode, now, customers.context.entropy.as_ref());
        let customer = Customer::new(id, self.person.clone(), now);
        let sealed = customers.seal(who, &customer)?;
        tx.customer_insert(who, &sealed).await?;
        customers
            .emit(tx, who, &customer, CustomerEvent::Created, now)
            .await?;
        Ok(Decision::Done(customer))
    }
}

/// The write of an update or a deletion.
struct ChangedCustomer<'w> {
    customers: &'w Customers,
    who: &'w Tenant,
    id: CustomerId,
    change: CustomerChange,
}

#[async_trait]
impl GateWrite for ChangedCustomer<'_> {
    type Rows = Option<SealedCustomer>;
    type Done = Customer;
    type Error = CustomerError;

    fn name(&self) -> &'static str {
        self.change.name()
    }

    async fn lock(&self, tx: &mut dyn GateTx) -> StoreResult<Option<SealedCustomer>> {
        tx.customer_lock(self.who, self.id).await
    }

    async fn decide(
        &self,
        tx: &mut dyn GateTx,
        found: Option<SealedCustomer>,
        now: Timestamp,
    ) -> Result<Decision<Customer, CustomerError>, GateError> {
        let Self { customers, who, .. } = self;
        let Some(found) = found else {
            return Ok(Decision::Refused(CustomerError::NotFound));
        };
        let (customer, event) = match self.change.apply(customers.open(who, &found)?, now) {
            Ok(changed) => changed,
            Err(refusal) => return Ok(Decision::Refused(refusal)),
        };
        if let Some(event) = event {
            let sealed = customers.seal(who, &customer)?;
            tx.customer_put(who, &sealed).await?.won()?;
            customers.emit(tx, who, &customer, event, now).await?;
        }
        Ok(Decision::Done(customer))
    }
}
