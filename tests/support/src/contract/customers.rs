//! Customers: sealed rows that blind indexes find and revisions protect.

use gate_core::change::Change;
use gate_core::customer::{
    Customer, CustomerId, CustomerIndexes, CustomerUpdate, IdentityIndexes, KycStatus,
    SealedCustomer, TextIndexes, Unique,
};
use gate_core::ports::CustomerFilter;
use gate_core::usecases::customers::CustomerError;
use kernel::{Cas, Mode, StoreResult};
use partner_core::Tenant;
use partner_core::sealing::{BlindIndex, Sealed};
use partner_core::stored_response::IdempotentResponse;
use tokio::task::JoinSet;

use crate::contract::fixture::GateFixture;
use crate::contract::gate_world::person;
use crate::contract::world::{MILLI, World, assert_guarded};

impl<F: GateFixture> World<F> {
    /// A row that is not stored yet, with blind indexes of these bytes.
    pub(super) fn customer(
        &self,
        who: &Tenant,
        email: u8,
        external_id: Option<u8>,
    ) -> SealedCustomer {
        let at = self.now();
        SealedCustomer {
            id: CustomerId::new(who.mode, at, &self.entropy),
            person: Sealed(vec![email; 60]),
            marks: marks(email, external_id),
            kyc: KycStatus::Pending,
            created_at: at,
            updated_at: at,
            deleted_at: None,
            revision: 1,
        }
    }

    pub(super) async fn insert(&self, who: &Tenant, customer: &SealedCustomer) -> StoreResult<()> {
        let mut tx = self.gate_begin().await;
        tx.customer_insert(who, customer).await?;
        tx.commit().await
    }

    pub(super) async fn put(&self, who: &Tenant, customer: &SealedCustomer) -> Cas {
        let mut tx = self.gate_begin().await;
        let outcome = tx.customer_put(who, customer).await.unwrap();
        tx.commit().await.unwrap();
        outcome
    }

    pub(super) async fn kept(&self, who: &Tenant, id: CustomerId) -> Option<SealedCustomer> {
        let store = &self.fixture.gate().store;
        let read = store.customer_get(who, id).await.unwrap();
        let mut tx = self.gate_begin().await;
        assert_eq!(tx.customer_lock(who, id).await.unwrap(), read);
        read
    }

    pub(super) async fn taken(&self, who: &Tenant, identity: IdentityIndexes) -> Option<Unique> {
        let mut tx = self.gate_begin().await;
        tx.customer_taken(who, &identity).await.unwrap()
    }

    pub(super) async fn listed(&self, who: &Tenant, filter: CustomerFilter) -> Vec<CustomerId> {
        let store = &self.fixture.gate().store;
        let page = store.customers_page(who, &filter, 2).await.unwrap();
        page.into_iter().map(|customer| customer.id).collect()
    }
}

pub(super) const fn index(byte: u8) -> BlindIndex {
    BlindIndex([byte; 32])
}

/// The index of the form of comparison of the text whose spelling has the index of this byte.
pub(super) const fn compared(byte: u8) -> BlindIndex {
    index(byte | 0x80)
}

/// The indexes of a row.
pub(super) fn marks(email: u8, external_id: Option<u8>) -> CustomerIndexes {
    CustomerIndexes {
        email: index(email),
        external_id: external_id.map(index),
        email_compared: Some(compared(email)),
        external_id_compared: external_id.map(compared),
    }
}

/// The indexes by which a text with one spelling is sought.
fn text(byte: u8) -> TextIndexes {
    TextIndexes {
        compared: compared(byte),
        spellings: [index(byte); 4],
    }
}

fn identity(email: u8, external_id: Option<u8>) -> IdentityIndexes {
    IdentityIndexes {
        email: text(email),
        external_id: external_id.map(text),
    }
}

// rule: gate.customer.fields, gate.customer.sealed, tenancy.foreign-is-absent, mode.on-every-row
pub async fn customer_reads_back(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let other = world.member("other").await.who;
    for (email, external_id) in [(1, None), (2, Some(2))] {
        let customer = world.customer(&who, email, external_id);
        assert_eq!(world.kept(&who, customer.id).await, None);
        world.insert(&who, &customer).await.unwrap();
        assert_eq!(world.kept(&who, customer.id).await, Some(customer.clone()));
        assert_eq!(world.kept(&other, customer.id).await, None);
        let strange = CustomerId::from_parts(Mode::Live, customer.id.ulid());
        assert_eq!(world.kept(&who, strange).await, None);
        assert_guarded(world.insert(&who, &customer).await);
    }
}

// rule: gate.customer.unique, gate.customer.taken-for-good
pub async fn blind_indexes_belong_to_one_customer(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let other = world.member("other").await.who;
    let first = world.customer(&who, 1, Some(2));
    assert_eq!(world.taken(&who, identity(1, Some(2))).await, None);
    world.insert(&who, &first).await.unwrap();
    // Two customers without an external id do not conflict.
    for email in [3, 4] {
        let customer = world.customer(&who, email, None);
        world.insert(&who, &customer).await.unwrap();
    }
    let gone = SealedCustomer {
        deleted_at: Some(world.now()),
        revision: 2,
        ..first.clone()
    };
    for _ in 0..2 {
        for (sought, found) in [
            (identity(1, Some(2)), Some(Unique::Email)),
            (identity(1, None), Some(Unique::Email)),
            (identity(9, Some(2)), Some(Unique::ExternalId)),
            (identity(2, Some(1)), None),
            (identity(9, None), None),
        ] {
            assert_eq!(world.taken(&who, sought).await, found, "{sought:?}");
        }
        for twin in [
            world.customer(&who, 1, None),
            world.customer(&who, 9, Some(2)),
        ] {
            assert_guarded(world.insert(&who, &twin).await);
        }
        // In the second round the customer is deleted.
        let _ = world.put(&who, &gone).await;
    }
    assert_eq!(world.taken(&other, identity(1, Some(2))).await, None);
    let theirs = SealedCustomer {
        id: world.customer(&other, 1, Some(2)).id,
        ..first
    };
    world.insert(&other, &theirs).await.unwrap();
}

// rule: gate.customer.no-lost-update, gate.customer.delete
pub async fn stale_customer_revision_is_refused(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let other = world.member("other").await.who;
    let first = world.customer(&who, 1, None);
    assert_eq!(world.put(&who, &first).await, Cas::Lost);
    world.insert(&who, &first).await.unwrap();
    world.clock().advance(MILLI);
    let second = SealedCustomer {
        person: Sealed(vec![8; 60]),
        kyc: KycStatus::Verified,
        updated_at: world.now(),
        revision: 2,
        ..first.clone()
    };
    assert_eq!(world.put(&other, &second).await, Cas::Lost);
    assert_eq!(world.put(&who, &first).await, Cas::Lost);
    assert_eq!(world.put(&who, &second).await, Cas::Won);
    assert_eq!(world.put(&who, &second).await, Cas::Lost);
    assert_eq!(world.kept(&who, first.id).await, Some(second.clone()));
    let gone = SealedCustomer {
        deleted_at: Some(world.now()),
        revision: 3,
        ..second
    };
    assert_eq!(world.put(&who, &gone).await, Cas::Won);
    let after = SealedCustomer {
        revision: 4,
        ..gone.clone()
    };
    assert_eq!(world.put(&who, &after).await, Cas::Lost);
    assert_eq!(world.kept(&who, first.id).await, Some(gone));
}

// rule: gate.customer.list, list.order, list.no-loss, list.foreign-cursor
pub async fn customer_pages_are_contiguous(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let other = world.member("other").await.who;
    let mut made = Vec::new();
    for number in 0..5 {
        if number % 2 == 0 {
            world.clock().advance(MILLI);
        }
        let customer = world.customer(&who, number, Some(number + 100));
        world.insert(&who, &customer).await.unwrap();
        made.push(customer);
    }
    made.sort_by_key(|customer| (customer.created_at, customer.id));
    made.reverse();
    let gone = SealedCustomer {
        deleted_at: Some(world.now()),
        revision: 2,
        ..made[1].clone()
    };
    assert_eq!(world.put(&who, &gone).await, Cas::Won);
    let ids: Vec<CustomerId> = made.iter().map(|customer| customer.id).collect();
    let after = |id| CustomerFilter {
        after: Some(id),
        ..CustomerFilter::default()
    };
    let first = world.listed(&who, CustomerFilter::default()).await;
    assert_eq!(first, [ids[0], ids[2]]);
    // A cursor remains valid after its customer is deleted.
    assert_eq!(world.listed(&who, after(ids[1])).await, [ids[2], ids[3]]);
    assert_eq!(world.listed(&who, after(ids[3])).await, [ids[4]]);
    assert_eq!(world.listed(&who, after(ids[4])).await, []);
    assert_eq!(world.listed(&other, after(ids[0])).await, []);
    let numbers: Vec<u8> = made.iter().map(|it| it.marks.email.0[0]).collect();
    let of = |number: u8, name: bool| CustomerFilter {
        email: (!name).then(|| text(number)),
        external_id: name.then(|| text(number + 100)),
        ..CustomerFilter::default()
    };
    for (number, customer) in made.iter().enumerate() {
        let found: &[CustomerId] = if number == 1 { &[] } else { &[customer.id] };
        for name in [true, false] {
            let filter = of(numbers[number], name);
            assert_eq!(world.listed(&who, filter).await, found);
            assert_eq!(world.listed(&other, filter).await, []);
        }
    }
    let both = |email: usize, name: usize, after| CustomerFilter {
        after,
        email: Some(text(numbers[email])),
        external_id: Some(text(numbers[name] + 100)),
        ..CustomerFilter::default()
    };
    assert_eq!(world.listed(&who, both(2, 2, None)).await, [ids[2]]);
    assert_eq!(world.listed(&who, both(2, 3, None)).await, []);
    assert_eq!(world.listed(&who, both(2, 2, Some(ids[0]))).await, [ids[2]]);
    assert_eq!(world.listed(&who, both(2, 2, Some(ids[2]))).await, []);
}

/// A row of an earlier version has only the indexes of what was written, and two rows may have one text in two spellings.
// rule: gate.customer.compared, gate.customer.unique
pub async fn customers_of_earlier_versions_are_found_by_each_spelling(
    world: World<impl GateFixture>,
) {
    let who = world.member("acme").await.who;
    let other = world.member("other").await.who;
    let mut ids = Vec::new();
    for (email, external_id) in [(1, 11), (2, 12)] {
        let mut customer = world.customer(&who, email, Some(external_id));
        customer.marks.email_compared = None;
        customer.marks.external_id_compared = None;
        world.insert(&who, &customer).await.unwrap();
        assert_eq!(world.kept(&who, customer.id).await, Some(customer.clone()));
        ids.push(customer.id);
        world.clock().advance(MILLI);
    }
    let newer = world.customer(&who, 3, Some(13));
    world.insert(&who, &newer).await.unwrap();
    let spelled = |bytes: [u8; 4]| TextIndexes {
        compared: index(0xff),
        spellings: bytes.map(index),
    };
    let by = |email: Option<[u8; 4]>, external_id: Option<[u8; 4]>| CustomerFilter {
        email: email.map(spelled),
        external_id: external_id.map(spelled),
        ..CustomerFilter::default()
    };
    let (all, one, none) = ([9, 2, 1, 8], [9, 9, 9, 1], [9; 4]);
    let (all_ids, one_id) = ([12, 7, 7, 11], [7, 11, 7, 7]);
    for (filter, found) in [
        (by(Some(all), None), &[ids[1], ids[0]][..]),
        (by(Some(one), None), &[ids[0]]),
        (by(Some(none), None), &[]),
        (by(None, Some(all_ids)), &[ids[1], ids[0]]),
        (by(None, Some(one_id)), &[ids[0]]),
        (by(Some(all), Some(one_id)), &[ids[0]]),
        (by(Some(none), Some(one_id)), &[]),
        // A row with the form of comparison is found by this form alone.
        (by(Some([3; 4]), None), &[]),
        (by(None, Some([13; 4])), &[]),
    ] {
        assert_eq!(world.listed(&who, filter).await, found, "{filter:?}");
        assert_eq!(world.listed(&other, filter).await, []);
        let (Some(email), external_id) = (filter.email, filter.external_id) else {
            continue;
        };
        let identity = IdentityIndexes { email, external_id };
        let taken = world.taken(&who, identity).await;
        let by_email = world.listed(
            &who,
            CustomerFilter {
                external_id: None,
                ..filter
            },
        );
        let expected = match (by_email.await.is_empty(), external_id.is_some()) {
            (false, _) => Some(Unique::Email),
            (true, true) => Some(Unique::ExternalId),
            (true, false) => None,
        };
        assert_eq!(taken, expected, "{filter:?}");
        assert_eq!(world.taken(&other, identity).await, None);
    }
    let after = CustomerFilter {
        after: Some(ids[1]),
        ..by(Some(all), None)
    };
    assert_eq!(world.listed(&who, after).await, [ids[0]]);
}

// rule: gate.customer.unique, gate.customer.events, idempotency.only-success
pub async fn concurrent_creates_of_one_email_count_once(world: World<impl GateFixture>) {
    let gate = world.open_gate("acme", Mode::Test, None).await;
    let mut racing = JoinSet::new();
    for number in 0..20 {
        let email = if number % 2 == 0 {
            "Ann@a.example"
        } else {
            "ann@A.example"
        };
        let draft = person(email);
        racing.spawn(gate.clone().customer(format!("key-{number}"), draft));
    }
    let given = racing.join_all().await;
    let fresh: Vec<_> = given
        .iter()
        .filter_map(|given| given.as_ref().ok())
        .collect();
    assert!(
        matches!(fresh[..], [IdempotentResponse::First(_)]),
        "{given:?}"
    );
    let refused = |given: &&Result<IdempotentResponse, CustomerError>| {
        matches!(given, Err(CustomerError::Exists(Unique::Email)))
    };
    assert_eq!(given.iter().filter(refused).count(), 19);
    let made = world
        .listed(&gate.access.tenant, CustomerFilter::default())
        .await;
    let [made] = made[..] else { panic!("{made:?}") };
    let said = world.said_of(&gate.access.tenant, &made.to_string()).await;
    assert_eq!(said, ["customer.created"]);
    world.assert_clean().await;
}

// rule: gate.customer.no-lost-update, gate.customer.delete, gate.customer.events
pub async fn concurrent_customer_changes_all_count(world: World<impl GateFixture>) {
    let gate = world.open_gate("acme", Mode::Test, None).await;
    let set = |text: &str| Change::Set(text.to_owned());
    let updates = [
        CustomerUpdate {
            first_name: set("Anna"),
            ..CustomerUpdate::default()
        },
        CustomerUpdate {
            last_name: set("Li"),
            ..CustomerUpdate::default()
        },
        CustomerUpdate {
            country_code: set("fr"),
            ..CustomerUpdate::default()
        },
    ];
    for round in 0..6 {
        let draft = person(&format!("ann-{round}@a.example"));
        let id = gate.known(&format!("round-{round}"), draft).await;
        let mut racing = JoinSet::new();
        for update in updates.clone() {
            racing.spawn(gate.clone().updated(id, None, update));
        }
        let deletes = round % 2 == 1;
        if deletes {
            for _ in 0..2 {
                racing.spawn(gate.clone().deleted(id, None));
            }
        }
        let mut counted = 0;
        for done in racing.join_all().await {
            match done {
                Ok(()) => counted += 1,
                Err(CustomerError::NotFound) if deletes => {}
                Err(fault) => panic!("{fault}"),
            }
        }
        let customer: Option<Customer> = gate.customers.get(&gate.access.tenant, id).await.unwrap();
        assert_eq!(customer.is_none(), deletes);
        if let Some(customer) = customer {
            assert_eq!(customer.revision, 4);
            let person = customer.person;
            assert_eq!(person.first_name.as_deref(), Some("Anna"));
            assert_eq!(person.last_name.as_deref(), Some("Li"));
            assert_eq!(person.country.unwrap().as_str(), "FR");
        }
        let said = world.said_of(&gate.access.tenant, &id.to_string()).await;
        // The second deletion has a response and emits no event.
        assert_eq!(said.len(), if deletes { counted } else { 4 });
    }
    world.assert_clean().await;
}
