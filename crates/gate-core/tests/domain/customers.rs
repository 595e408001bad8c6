//! Customers: created once, updated, deleted once, each change with its event.

use gate_core::access::GateAccess;
use gate_core::change::Change;
use gate_core::customer::{
    Customer, CustomerDraft, CustomerFormError, CustomerId, CustomerUpdate, Deleted, Unique,
};
use gate_core::usecases::customers::{CustomerError, CustomerSearch};
use kernel::{Mode, StoreError};
use partner_core::events::event_place;
use partner_core::idempotency::Scope;
use partner_core::stored_response::{IdempotentResponse, RenderError, RenderedResponse};

use crate::fixtures::{Gate, access, acme, after, key, noon, ready};

fn rendered(body: String) -> RenderedResponse {
    RenderedResponse(body.into_bytes())
}

fn shown(customer: &Customer) -> Result<RenderedResponse, RenderError> {
    let person = &customer.person;
    let told = [
        Some(&person.email),
        person.first_name.as_ref(),
        person.last_name.as_ref(),
    ];
    Ok(rendered(format!(
        "{} {told:?} {}",
        customer.id, customer.updated_at
    )))
}

fn gone(deleted: &Deleted) -> Result<RenderedResponse, RenderError> {
    Ok(rendered(format!("{} {}", deleted.id, deleted.at)))
}

fn draft(email: &str) -> CustomerDraft {
    CustomerDraft {
        email: email.to_owned(),
        external_id: Some(format!("name of {}", email.to_lowercase())),
        first_name: Some("Ann".to_owned()),
        ..CustomerDraft::default()
    }
}

fn create(
    gate: &Gate,
    name: &str,
    draft: &CustomerDraft,
) -> Result<IdempotentResponse, CustomerError> {
    ready(gate.customers.create(
        &acme().tenant,
        key("POST /v1/customers", name),
        draft,
        &shown,
    ))
}

fn made(gate: &Gate, email: &str) -> CustomerId {
    let body = create(gate, email, &draft(email))
        .unwrap()
        .into_rendered()
        .0;
    let body = String::from_utf8(body).unwrap();
    CustomerId::parse(body.split(' ').next().unwrap()).unwrap()
}

fn named(first: &str) -> CustomerUpdate {
    CustomerUpdate {
        first_name: Change::Set(first.to_owned()),
        ..CustomerUpdate::default()
    }
}

fn update(
    gate: &Gate,
    id: CustomerId,
    name: Option<&str>,
    update: &CustomerUpdate,
) -> Result<IdempotentResponse, CustomerError> {
    let who = acme().tenant;
    let operation = format!("PATCH /v1/customers/{id}");
    let name = name.map(|name| key(&operation, name));
    ready(gate.customers.update(&who, id, name, update, &shown))
}

fn delete(
    gate: &Gate,
    id: CustomerId,
    name: Option<&str>,
) -> Result<IdempotentResponse, CustomerError> {
    let operation = format!("DELETE /v1/customers/{id}");
    let name = name.map(|name| key(&operation, name));
    ready(gate.customers.delete(&acme().tenant, id, name, &gone))
}

fn read(gate: &Gate, id: CustomerId) -> Option<Customer> {
    ready(gate.customers.get(&acme().tenant, id)).unwrap()
}

// rule: gate.customer.unique, gate.customer.events, gate.customer.sealed, idempotency.only-success
#[test]
fn customer_is_created_once_with_one_event() {
    let gate = Gate::new(&[acme()]);
    let id = made(&gate, "Ann@a.example");
    let customer = read(&gate, id).unwrap();
    assert_eq!((customer.created_at, customer.revision), (noon(), 1));
    let twin = create(&gate, "b", &draft("ann@A.example"));
    assert!(matches!(twin, Err(CustomerError::Exists(Unique::Email))));
    let namesake = CustomerDraft {
        external_id: customer.person.external_id.clone(),
        ..draft("bob@a.example")
    };
    let namesake = create(&gate, "b", &namesake);
    assert!(matches!(
        namesake,
        Err(CustomerError::Exists(Unique::ExternalId))
    ));
    let malformed = create(&gate, "b", &draft("bob"));
    assert!(matches!(
        malformed,
        Err(CustomerError::Field(CustomerFormError::Email))
    ));
    // The refused requests did not use the key.
    made(&gate, "b@b.example");
    assert_eq!(gate.memory.events_of(&id.to_string()), ["customer.created"]);
    let rows = gate.memory.rows();
    assert_eq!((rows.customers.len(), rows.events.len()), (2, 2));
    let event = &rows.events[0];
    let place = event_place(&acme().tenant, &event.id);
    let body = String::from_utf8(gate.sealer.open(&place, &event.body).unwrap()).unwrap();
    assert!(body.contains("\"data\":\"Customer(Customer {"), "{body}");
    let kept = format!("{:?}", rows.customers);
    assert!(
        !kept.contains("a.example") && !kept.contains("Ann"),
        "{kept}"
    );
}

// rule: idempotency.gate-replay, idempotency.in-flight
#[test]
fn repeat_is_replayed_and_twin_in_flight_is_refused() {
    let gate = Gate::new(&[acme()]);
    let first = create(&gate, "k", &draft("ann@a.example"))
        .unwrap()
        .into_rendered();
    let same_request = |given: IdempotentResponse| match given {
        IdempotentResponse::Replayed {
            response,
            same_request,
        } => {
            assert_eq!(response, first);
            same_request
        }
        IdempotentResponse::First(_) => panic!("the write was run again"),
    };
    assert!(same_request(
        create(&gate, "k", &draft("ann@a.example")).unwrap()
    ));
    assert!(!same_request(create(&gate, "k", &draft("nobody")).unwrap()));
    let busy = key("POST /v1/customers", "busy");
    gate.memory.hold(&Scope::of_request(acme().tenant, busy));
    let busy = create(&gate, "busy", &draft("bob@a.example"));
    assert!(matches!(busy, Err(CustomerError::InProgress)));
    assert_eq!(gate.memory.rows().customers.len(), 1);
}

// rule: gate.customer.patch, gate.customer.updated-event, gate.customer.no-lost-update, idempotency.gate-optional
#[test]
fn change_emits_event_and_empty_update_does_not() {
    let gate = Gate::new(&[acme()]);
    let id = made(&gate, "ann@a.example");
    gate.memory.pass(std::time::Duration::from_millis(7));
    // The write is run again after a lost race.
    gate.memory.lose(1);
    let first = update(&gate, id, Some("k"), &named("Anna"))
        .unwrap()
        .into_rendered();
    let customer = read(&gate, id).unwrap();
    assert_eq!(customer.person.first_name.as_deref(), Some("Anna"));
    assert_eq!((customer.updated_at, customer.revision), (after(7), 2));
    let again = update(&gate, id, Some("k"), &named("Bob")).unwrap();
    assert_eq!(again.into_rendered(), first);
    gate.memory.pass(std::time::Duration::from_millis(7));
    update(&gate, id, None, &named("Anna")).unwrap();
    assert_eq!(read(&gate, id), Some(customer));
    let wrong = update(&gate, id, None, &named(&"x".repeat(129)));
    assert!(matches!(
        wrong,
        Err(CustomerError::Field(CustomerFormError::Name("first_name")))
    ));
    let kinds = gate.memory.events_of(&id.to_string());
    assert_eq!(kinds, ["customer.created", "customer.updated"]);
}

// rule: gate.customer.delete, gate.customer.deleted-event, gate.customer.taken-for-good
#[test]
fn deletion_happens_once_and_repeats_same_response() {
    let gate = Gate::new(&[acme()]);
    let id = made(&gate, "ann@a.example");
    gate.memory.pass(std::time::Duration::from_millis(7));
    let first = delete(&gate, id, Some("k")).unwrap().into_rendered();
    assert_eq!(first.0, format!("{id} {}", after(7)).into_bytes());
    gate.memory.pass(std::time::Duration::from_millis(7));
    for name in [None, Some("k"), Some("l")] {
        assert_eq!(delete(&gate, id, name).unwrap().into_rendered().0, first.0);
    }
    assert_eq!(read(&gate, id), None);
    let late = update(&gate, id, None, &named("Bob"));
    assert!(matches!(late, Err(CustomerError::NotFound)));
    let twin = create(&gate, "l", &draft("ann@a.example"));
    assert!(matches!(twin, Err(CustomerError::Exists(Unique::Email))));
    let kinds = gate.memory.events_of(&id.to_string());
    assert_eq!(kinds, ["customer.created", "customer.deleted"]);
}

// rule: gate.customer.list, tenancy.foreign-is-absent, id.other-mode
#[test]
fn customer_is_found_only_by_its_partner() {
    let rival = access("rival", Mode::Test);
    let gate = Gate::new(&[acme(), rival.clone()]);
    let id = made(&gate, "Ann@a.example");
    made(&gate, "bob@a.example");
    let list = |who: &GateAccess, wanted: CustomerSearch| {
        let page = ready(gate.customers.list(&who.tenant, &wanted, 10)).unwrap();
        page.items.into_iter().map(|it| it.id).collect::<Vec<_>>()
    };
    let by_email = |email: &str| CustomerSearch {
        email: Some(email.to_owned()),
        ..CustomerSearch::default()
    };
    assert_eq!(list(&acme(), CustomerSearch::default()).len(), 2);
    assert_eq!(list(&acme(), by_email("ANN@a.example")), [id]);
    assert_eq!(list(&rival, by_email("ann@a.example")), []);
    let live = CustomerId::from_parts(Mode::Live, id.ulid());
    let stray = CustomerSearch {
        after: Some(live),
        ..CustomerSearch::default()
    };
    assert_eq!(list(&acme(), stray), []);
    assert_eq!(read(&gate, live), None);
    assert_eq!(ready(gate.customers.get(&rival.tenant, id)).unwrap(), None);
    let foreign = ready(gate.customers.delete(&rival.tenant, id, None, &gone));
    assert!(matches!(foreign, Err(CustomerError::NotFound)));
    let stray = delete(&gate, live, None);
    assert!(matches!(stray, Err(CustomerError::NotFound)));
}

// rule: gate.customer.sealed
#[test]
fn damaged_customer_is_error_that_names_row() {
    let gate = Gate::new(&[acme()]);
    let id = made(&gate, "ann@a.example");
    let strange = gate.sealer.mark("elsewhere", "ann@a.example");
    for row in gate.memory.rows().customers.values_mut() {
        row.marks.email = strange;
    }
    let fault = ready(gate.customers.get(&acme().tenant, id)).unwrap_err();
    let StoreError::Inconsistent { table, column, row } = fault else {
        panic!("{fault}")
    };
    assert_eq!((table, column), ("customers", "email_mark"));
    assert_eq!(row, format!("acme/{}", id.ulid()));
}
