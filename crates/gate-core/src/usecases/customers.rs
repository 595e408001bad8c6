//! Customers: made once per email, changed field by field, deleted once.

use std::fmt;
use std::sync::Arc;

use kernel::{Entropy, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::idempotency::{Fingerprint, IdempotencyKey, Scope};
use partner_core::page::Page;
use partner_core::races::{LostRace, retry_lost_races};
use partner_core::sealing::Sealer;
use partner_core::stored_response::{
    Begin, IdempotentRequest, IdempotentResponse, Render, RenderError, ResponseStore,
    ResponseStoreError,
};
use serde_json::json;

use crate::customer::{
    Changes, Customer, CustomerDamage, CustomerDraft, CustomerEvent, CustomerFormError, CustomerId,
    CustomerUpdate, Deleted, Person, SealedCustomer, Unique, email_mark, external_id_mark,
};
use crate::events::{EventError, EventFactory};
use crate::ports::{CustomerFilter, GateStore, GateTx};

/// The route a create's idempotency key is scoped by.
pub const ROUTE: &str = "POST /v1/customers";

/// Keeps customers.
#[derive(Clone)]
pub struct Customers {
    /// The store.
    pub store: Arc<dyn GateStore>,
    /// Seals what is personal.
    pub sealer: Arc<Sealer>,
    /// For ids.
    pub entropy: Arc<dyn Entropy>,
    /// Keeps answers.
    pub answers: ResponseStore,
}

impl fmt::Debug for Customers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Customers")
    }
}

/// What is looked for in a list.
#[derive(Clone, Default)]
pub struct CustomerSearch {
    /// Only customers after this one in the order of the list.
    pub after: Option<CustomerId>,
    /// Only that of this email, in whatever case.
    pub email: Option<String>,
    /// Only that of this name of the partner's.
    pub external_id: Option<String>,
}

/// Whom a partner looks for is nobody else's business.
impl fmt::Debug for CustomerSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wanted")
    }
}

/// Why nothing was changed; the key stays free.
#[derive(Debug, thiserror::Error)]
pub enum CustomerError {
    /// A request with the same key is being worked on.
    #[error("a request with the same idempotency key is in progress")]
    InProgress,
    /// A field is wrong.
    #[error(transparent)]
    Field(#[from] CustomerFormError),
    /// Another customer has it, or a deleted one had.
    #[error("another customer has this email or external id")]
    Exists(Unique),
    /// No such customer of this partner, or no more.
    #[error("no such customer")]
    NotFound,
    /// The answer could not be given or kept.
    #[error(transparent)]
    Answer(#[from] ResponseStoreError),
    /// An event could not be made.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LostRace for CustomerError {
    fn lost_race(&self) -> bool {
        match self {
            Self::Answer(fault) => fault.lost_race(),
            Self::Store(error) => error.lost_race(),
            Self::InProgress
            | Self::Field(_)
            | Self::Exists(_)
            | Self::NotFound
            | Self::Event(_) => false,
        }
    }
}

/// What is done with a customer that is there.
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

    /// The customer after it, with the event to be emitted; unchanged and without one where there was
    /// nothing to do. Who is deleted can be deleted again, and nothing else.
    fn done(
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
    /// A customer.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn get(&self, who: &Tenant, id: CustomerId) -> Result<Option<Customer>, StoreError> {
        let Some(id) = id.in_mode(who.mode) else {
            return Ok(None);
        };
        let found = self.store.customer_get(who, id).await?;
        let customer = found.map(|found| self.open(who, &found)).transpose()?;
        Ok(customer.filter(|customer| customer.deleted_at.is_none()))
    }

    /// A page of customers, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list(
        &self,
        who: &Tenant,
        wanted: &CustomerSearch,
        limit: u32,
    ) -> Result<Page<Customer>, StoreError> {
        if wanted
            .after
            .is_some_and(|id| id.in_mode(who.mode).is_none())
        {
            return Ok(Page::empty());
        }
        let (email, external_id) = (wanted.email.as_deref(), wanted.external_id.as_deref());
        let filter = CustomerFilter {
            after: wanted.after,
            email: email.map(|email| email_mark(&self.sealer, who, email)),
            external_id: external_id.map(|name| external_id_mark(&self.sealer, who, name)),
        };
        let rows = self
            .store
            .customers_page(who, &filter, limit.saturating_add(1))
            .await?;
        let opened: Result<Vec<Customer>, StoreError> =
            rows.iter().map(|row| self.open(who, row)).collect();
        Ok(Page::cut(opened?, limit))
    }

    /// Creates a customer, or gives the answer its key was first given.
    ///
    /// # Errors
    /// [`CustomerError`].
    pub async fn create(
        &self,
        who: &Tenant,
        key: IdempotencyKey,
        draft: &CustomerDraft,
        render: &Render<'_, Customer>,
    ) -> Result<IdempotentResponse, CustomerError> {
        let call = call(who, Some(key), ROUTE.to_owned(), draft.fingerprint());
        let _ticket = match self.answers.enter(call.as_ref()).await? {
            Begin::Answered(given) => return Ok(given),
            Begin::Busy => return Err(CustomerError::InProgress),
            Begin::Free(ticket) => ticket,
        };
        let person = draft.judge()?;
        retry_lost_races(|| self.create_once(who, call.as_ref(), &person, render)).await
    }

    async fn create_once(
        &self,
        who: &Tenant,
        call: Option<&IdempotentRequest>,
        person: &Person,
        render: &Render<'_, Customer>,
    ) -> Result<IdempotentResponse, CustomerError> {
        let mut tx = self.store.gate_begin("customer_create").await?;
        let kept = self.answers.lock(tx.as_mut(), call).await?;
        let marks = person.marks(&self.sealer, who);
        let taken = tx.customer_taken(who, &marks).await?;
        let now = tx.now().await?;
        if let Some(call) = call
            && let Some(given) = self.answers.given(call, kept.as_ref(), now)?
        {
            return Ok(given);
        }
        if let Some(unique) = taken {
            return Err(CustomerError::Exists(unique));
        }
        let id = CustomerId::new(who.mode, now, self.entropy.as_ref());
        let customer = Customer::new(id, person.clone(), now);
        tx.customer_insert(who, &self.seal(who, &customer)?).await?;
        self.tell(tx.as_mut(), who, &customer, CustomerEvent::Created, now)
            .await?;
        let answer = render(&customer).map_err(ResponseStoreError::from)?;
        self.answers
            .keep(tx.as_mut(), call, kept.as_ref(), &answer, now)
            .await?;
        tx.commit().await?;
        Ok(IdempotentResponse::Fresh(answer))
    }

    /// Changes a customer, or gives the answer its key was first given.
    ///
    /// # Errors
    /// [`CustomerError`].
    pub async fn update(
        &self,
        who: &Tenant,
        id: CustomerId,
        key: Option<IdempotencyKey>,
        update: &CustomerUpdate,
        render: &Render<'_, Customer>,
    ) -> Result<IdempotentResponse, CustomerError> {
        let route = format!("PATCH /v1/customers/{id}");
        let call = call(who, key, route, update.fingerprint());
        let judge = || Ok(CustomerChange::Update(update.judge()?));
        self.change(who, id, call, judge, render).await
    }

    /// Deletes a customer; again and again, it is the first time that counts.
    ///
    /// # Errors
    /// [`CustomerError`].
    pub async fn delete(
        &self,
        who: &Tenant,
        id: CustomerId,
        key: Option<IdempotencyKey>,
        render: &Render<'_, Deleted>,
    ) -> Result<IdempotentResponse, CustomerError> {
        let route = format!("DELETE /v1/customers/{id}");
        let nothing = Fingerprint::of(json!([]).to_string().as_bytes());
        let call = call(who, key, route, nothing);
        let render = |customer: &Customer| match customer.gone() {
            Some(gone) => render(&gone),
            None => Err(RenderError("a customer was not deleted".into())),
        };
        self.change(who, id, call, || Ok(CustomerChange::Delete), &render)
            .await
    }

    async fn change(
        &self,
        who: &Tenant,
        id: CustomerId,
        call: Option<IdempotentRequest>,
        judge: impl FnOnce() -> Result<CustomerChange, CustomerError> + Send,
        render: &Render<'_, Customer>,
    ) -> Result<IdempotentResponse, CustomerError> {
        let id = id.in_mode(who.mode).ok_or(CustomerError::NotFound)?;
        let _ticket = match self.answers.enter(call.as_ref()).await? {
            Begin::Answered(given) => return Ok(given),
            Begin::Busy => return Err(CustomerError::InProgress),
            Begin::Free(ticket) => ticket,
        };
        let deed = judge()?;
        retry_lost_races(|| self.change_once(who, id, call.as_ref(), &deed, render)).await
    }

    async fn change_once(
        &self,
        who: &Tenant,
        id: CustomerId,
        call: Option<&IdempotentRequest>,
        deed: &CustomerChange,
        render: &Render<'_, Customer>,
    ) -> Result<IdempotentResponse, CustomerError> {
        let mut tx = self.store.gate_begin(deed.name()).await?;
        let kept = self.answers.lock(tx.as_mut(), call).await?;
        let found = tx.customer_lock(who, id).await?;
        let now = tx.now().await?;
        if let Some(call) = call
            && let Some(given) = self.answers.given(call, kept.as_ref(), now)?
        {
            return Ok(given);
        }
        let found = found.ok_or(CustomerError::NotFound)?;
        let (customer, event) = deed.done(self.open(who, &found)?, now)?;
        if let Some(event) = event {
            let sealed = self.seal(who, &customer)?;
            tx.customer_put(who, &sealed).await?.won()?;
            self.tell(tx.as_mut(), who, &customer, event, now).await?;
        }
        let answer = render(&customer).map_err(ResponseStoreError::from)?;
        self.answers
            .keep(tx.as_mut(), call, kept.as_ref(), &answer, now)
            .await?;
        tx.commit().await?;
        Ok(IdempotentResponse::Fresh(answer))
    }

    async fn tell(
        &self,
        tx: &mut dyn GateTx,
        who: &Tenant,
        customer: &Customer,
        event: CustomerEvent,
        at: Timestamp,
    ) -> Result<(), CustomerError> {
        let ink = EventFactory {
            sealer: &self.sealer,
            entropy: self.entropy.as_ref(),
        };
        let event = ink.customer(who, customer, event, at)?;
        Ok(tx.event_insert(&event).await?)
    }

    fn seal(&self, who: &Tenant, customer: &Customer) -> Result<SealedCustomer, CustomerError> {
        let sealed = customer.seal(who, &self.sealer, self.entropy.as_ref());
        Ok(sealed.map_err(StoreError::from)?)
    }

    fn open(&self, who: &Tenant, found: &SealedCustomer) -> Result<Customer, StoreError> {
        let damaged = |damage: CustomerDamage| StoreError::Inconsistent {
            table: "customers",
            column: damage.column(),
            row: format!("{}/{}", who.partner, found.id.ulid()),
        };
        self.sealer.can_open(&found.person)?;
        found.open(who, &self.sealer).map_err(damaged)
    }
}

fn call(
    who: &Tenant,
    key: Option<IdempotencyKey>,
    route: String,
    fingerprint: Fingerprint,
) -> Option<IdempotentRequest> {
    key.map(|key| IdempotentRequest {
        scope: Scope {
            tenant: who.clone(),
            route,
            key,
        },
        fingerprint,
    })
}
