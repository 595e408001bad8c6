//! The gate's use cases over a store, and a partner with all entitlements.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::access::GateAccess;
use gate_core::customer::{Customer, CustomerDraft, CustomerId, CustomerUpdate, Deleted};
use gate_core::draft::Draft;
use gate_core::due::DueShare;
use gate_core::idempotent::Idempotent;
use gate_core::ports::{HeldBy, SessionFilter};
use gate_core::profile::GateProfile;
use gate_core::rail::RailId;
use gate_core::session::{Session, SessionId};
use gate_core::usecases::act_on_session::{ActError, ActOnSession, ActionRequest, ActionResult};
use gate_core::usecases::context::GateContext;
use gate_core::usecases::create_session::{CreateError, CreateSession, Created};
use gate_core::usecases::customers::{CustomerError, Customers};
use gate_core::usecases::update_branding::UpdateBranding;
use kernel::{Mode, Readable, UpstreamName};
use partner_core::Tenant;
use partner_core::events::Service;
use partner_core::idempotency::{IdempotencyKey, Operation, OperationKey, Scope};
use partner_core::origin::AllowedDomain;
use partner_core::ports::{InFlight, Ticket};
use partner_core::stored_response::{
    IdempotentResponse, RenderError, RenderedResponse, ResponseStore,
};
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::contract::fixture::GateFixture;
use crate::contract::world::{MILLI, Member, Seeded, World, profile, sealer};

/// The names of the rail and the verifier.
pub(crate) const RAIL: &str = "rail";
pub(crate) const VERIFIER: &str = "verifier";
pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Admits every twin, so that only the store separates them.
struct Everyone;

#[async_trait]
impl InFlight for Everyone {
    async fn enter(&self, _: &Scope) -> Option<Ticket> {
        Some(Ticket(Box::new(())))
    }
}

/// The use cases for one partner.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) member: Member,
    pub(crate) creating: CreateSession,
    pub(crate) acting: ActOnSession,
    pub(crate) rebranding: UpdateBranding,
    pub(crate) customers: Customers,
    pub(crate) access: Arc<GateAccess>,
}

impl<F: GateFixture> World<F> {
    pub(crate) async fn open_gate(&self, name: &str, mode: Mode, quota: Option<u64>) -> Gate {
        let member = self.member_with(name, mode, &profile()).await;
        let shop = AllowedDomain::parse("https://shop.example", mode).unwrap();
        let gate = GateProfile {
            enabled: true,
            allowed_domains: [shop].into(),
            flow_sessions: true,
            kyc_trusted: true,
            rails: true,
            live_session_quota: quota,
            ..GateProfile::default()
        };
        let mut tx = self.provision_begin("gate").await;
        tx.gate_profile_put(&member.who, &gate).await.unwrap();
        tx.commit().await.unwrap();
        let access = self.ports().gate_directory.access_find(mode, &member.hash);
        let access = access.await.unwrap().unwrap();
        self.use_cases(member, access)
    }

    /// A partner with an endpoint for the gate's events.
    pub(crate) async fn open_listening_gate(&self, name: &str) -> Gate {
        let gate = self.open_gate(name, Mode::Test, None).await;
        let url = format!("https://{name}.example/");
        self.listen(&gate.member, Service::Gate, &url).await;
        // Events of the endpoint's first millisecond may be older than the endpoint.
        self.clock().advance(MILLI);
        gate
    }

    fn use_cases(&self, member: Member, access: Arc<GateAccess>) -> Gate {
        let store = self.fixture.gate().store.clone();
        let entropy = Arc::new(Seeded::new(self.entropy.next()));
        let sealer = Arc::new(sealer());
        let sessions = GateContext {
            store: store.clone(),
            sealer: sealer.clone(),
            entropy: entropy.clone(),
            render: |_, resource, _| {
                let data = json!({ "id": resource.id() });
                to_raw_value(&data).map_err(|error| RenderError(error.into()))
            },
        };
        let idempotent = Idempotent {
            store: store.clone(),
            responses: ResponseStore {
                in_flight: Arc::new(Everyone),
                reads: store.clone(),
                sealer: sealer.clone(),
                entropy: entropy.clone(),
                ttl: DAY,
            },
        };
        Gate {
            member,
            creating: CreateSession {
                context: sessions.clone(),
                idempotent: idempotent.clone(),
                ttl: DAY,
            },
            acting: ActOnSession {
                context: sessions.clone(),
                idempotent: idempotent.clone(),
            },
            rebranding: UpdateBranding {
                idempotent: idempotent.clone(),
            },
            customers: Customers {
                context: sessions.clone(),
                idempotent,
            },
            access,
        }
    }

    pub(crate) async fn sessions(&self, who: &Tenant) -> Vec<Session> {
        let filter = SessionFilter::default();
        let page = self.fixture.gate().store.sessions_page(who, &filter, 100);
        page.await.unwrap().value
    }

    /// The types of the events about a session, in order.
    pub(crate) async fn said(&self, who: &Tenant, id: SessionId) -> Vec<String> {
        self.said_of(who, &id.to_string()).await
    }

    /// The types of the events about an object, in order.
    pub(crate) async fn said_of(&self, who: &Tenant, object: &str) -> Vec<String> {
        let events = self.events_of(who, object).await;
        events.into_iter().map(|event| event.kind).collect()
    }
}

/// The rows of a read that found none unreadable.
fn whole<T>(read: Readable<T>) -> Vec<T> {
    let Readable { rows, unreadable } = read;
    assert!(unreadable.is_empty(), "{unreadable:?}");
    rows
}

/// What is due, at most nine objects of each partner.
impl<F: GateFixture> World<F> {
    pub(crate) async fn overdue_in(&self, mode: Mode) -> Vec<(Tenant, SessionId)> {
        let store = &self.fixture.gate().store;
        let overdue = store.sessions_overdue_in(mode, &DueShare::of_each(9)).await;
        whole(overdue.unwrap())
    }

    pub(crate) async fn rails_due(&self, mode: Mode) -> Vec<(Tenant, RailId)> {
        self.due_of(mode, RAIL).await
    }

    pub(crate) async fn due_of(&self, mode: Mode, rail: &'static str) -> Vec<(Tenant, RailId)> {
        let store = &self.fixture.gate().store;
        let upstream = &UpstreamName::built_in(rail);
        let held = HeldBy { mode, upstream };
        let due = store.rails_due(held, &DueShare::of_each(9)).await;
        whole(due.unwrap())
    }

    pub(crate) async fn rails_watched(&self, mode: Mode) -> Vec<(Tenant, RailId)> {
        let store = &self.fixture.gate().store;
        let upstream = &UpstreamName::built_in(RAIL);
        let held = HeldBy { mode, upstream };
        let due = store.rails_watched(held, &DueShare::of_each(9)).await;
        whole(due.unwrap())
    }

    pub(crate) async fn verifications_due(&self, mode: Mode) -> Vec<(Tenant, SessionId)> {
        let store = &self.fixture.gate().store;
        let upstream = &UpstreamName::built_in(VERIFIER);
        let held = HeldBy { mode, upstream };
        let due = store.verifications_due(held, &DueShare::of_each(9)).await;
        whole(due.unwrap())
    }
}

/// The body of a create.
pub(crate) fn draft(amount: &str) -> Draft {
    Draft {
        amount: amount.to_owned(),
        currency: "EUR".to_owned(),
        return_url: "https://shop.example/done".to_owned(),
        ..Draft::default()
    }
}

/// A customer with this email and a name.
pub(crate) fn person(email: &str) -> CustomerDraft {
    CustomerDraft {
        email: email.to_owned(),
        first_name: Some("Ann".to_owned()),
        ..CustomerDraft::default()
    }
}

/// A key that was sent to an operation, such as `POST /v1/customers`.
pub(crate) fn key(operation: &str, name: &str) -> OperationKey {
    let (method, path) = operation.split_once(' ').unwrap();
    OperationKey {
        operation: Operation::new(method, path),
        key: IdempotencyKey::parse(name.as_bytes()).unwrap(),
    }
}

fn action(id: SessionId, action: &ActionRequest) -> String {
    match action {
        ActionRequest::Cancel => format!("POST /v1/gate_sessions/{id}/cancel"),
        ActionRequest::Complete => format!("POST /v1/test_helpers/sessions/{id}/complete"),
        ActionRequest::Fail { .. } => format!("POST /v1/test_helpers/sessions/{id}/fail"),
    }
}

impl Gate {
    pub(crate) async fn create(
        self,
        name: String,
        draft: Draft,
    ) -> Result<IdempotentResponse, CreateError> {
        let key = key("POST /v1/gate_sessions", &name);
        let given = self.creating.create(&self.access, key, &draft, &created);
        given.await
    }

    /// Creates a session under this key.
    pub(crate) async fn opened(&self, name: &str, draft: Draft) -> SessionId {
        let given = self.clone().create(name.to_owned(), draft).await;
        let body = given.unwrap().into_rendered().0;
        SessionId::parse(&String::from_utf8(body).unwrap()).unwrap()
    }

    /// Applies an action to a session; without one, only expires it if due.
    pub(crate) async fn act(
        self,
        id: SessionId,
        name: Option<&str>,
        deed: Option<ActionRequest>,
    ) -> Result<(), ActError> {
        let who = &self.access.tenant;
        match deed {
            Some(deed) => {
                let key = name.map(|name| key(&action(id, &deed), name));
                let acting = self.acting.act(who, id, key, &deed, &done);
                acting.await.map(drop)
            }
            None => Ok(self.acting.context.expire_if_due(who, id).await.map(drop)?),
        }
    }
}

impl Gate {
    pub(crate) async fn customer(
        self,
        name: String,
        draft: CustomerDraft,
    ) -> Result<IdempotentResponse, CustomerError> {
        let who = &self.access.tenant;
        let key = key("POST /v1/customers", &name);
        let making = self.customers.create(who, key, &draft, &shown);
        making.await
    }

    /// Creates a customer under this key.
    pub(crate) async fn known(&self, name: &str, draft: CustomerDraft) -> CustomerId {
        let given = self.clone().customer(name.to_owned(), draft).await;
        let body = given.unwrap().into_rendered().0;
        CustomerId::parse(&String::from_utf8(body).unwrap()).unwrap()
    }

    pub(crate) async fn updated(
        self,
        id: CustomerId,
        name: Option<&str>,
        update: CustomerUpdate,
    ) -> Result<(), CustomerError> {
        let who = &self.access.tenant;
        let key = name.map(|name| key(&format!("PATCH /v1/customers/{id}"), name));
        let updating = self.customers.update(who, id, key, &update, &shown);
        updating.await.map(drop)
    }

    pub(crate) async fn deleted(
        self,
        id: CustomerId,
        name: Option<&str>,
    ) -> Result<(), CustomerError> {
        let who = &self.access.tenant;
        let key = name.map(|name| key(&format!("DELETE /v1/customers/{id}"), name));
        let deleting = self.customers.delete(who, id, key, &gone);
        deleting.await.map(drop)
    }
}

fn shown(customer: &Customer) -> Result<RenderedResponse, RenderError> {
    Ok(answer(customer.id.to_string()))
}

fn gone(deleted: &Deleted) -> Result<RenderedResponse, RenderError> {
    Ok(answer(deleted.id.to_string()))
}

fn created(created: &Created) -> Result<RenderedResponse, RenderError> {
    Ok(answer(created.session.id.to_string()))
}

fn done(done: &ActionResult) -> Result<RenderedResponse, RenderError> {
    Ok(answer(done.session.state.status().as_str().to_owned()))
}

pub(crate) fn answer(body: String) -> RenderedResponse {
    RenderedResponse(body.into_bytes())
}
