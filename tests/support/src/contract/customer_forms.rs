//! Forms of comparison of customers that an earlier version stored without: pages of them, and the write of a form.

use gate_core::customer::{
    CustomerId, Forms, IdentityIndexes, SealedCustomer, TextIndexes, Unique,
};
use gate_core::ports::{CustomerFilter, CustomerFormsTx, HeldForms};
use kernel::{Cas, Mode};
use partner_core::Tenant;
use partner_core::sealing::Sealed;

use crate::contract::customers::{compared, index, marks};
use crate::contract::fixture::GateFixture;
use crate::contract::world::{MILLI, World};

impl<F: GateFixture> World<F> {
    /// A stored row of an earlier version.
    async fn earlier(&self, who: &Tenant, email: u8, external_id: Option<u8>) -> SealedCustomer {
        self.clock().advance(MILLI);
        let mut customer = self.customer(who, email, external_id);
        customer.marks.email_compared = None;
        customer.marks.external_id_compared = None;
        self.insert(who, &customer).await.unwrap();
        customer
    }

    async fn forms_begin(&self) -> Box<dyn CustomerFormsTx> {
        let forms = &self.fixture.gate().forms;
        forms.forms_begin("case").await.unwrap()
    }

    /// Stores forms of a customer as it was read.
    async fn fill(&self, who: &Tenant, customer: &SealedCustomer, forms: Forms) -> Cas {
        let mut tx = self.forms_begin().await;
        let outcome = tx.customer_forms_put(who, customer, &forms).await.unwrap();
        tx.commit().await.unwrap();
        outcome
    }

    /// The customers without forms, read in pages of this many customers.
    async fn without_forms(&self, who: &Tenant, limit: u32) -> Vec<CustomerId> {
        let forms = &self.fixture.gate().forms;
        let (mut ids, mut after) = (Vec::new(), None);
        loop {
            let page = forms.customers_without_forms(who, after, limit);
            let page = page.await.unwrap();
            assert!(page.found.unreadable.is_empty(), "{page:?}");
            ids.extend(page.found.rows);
            after = page.next;
            if after.is_none() {
                return ids;
            }
        }
    }
}

/// The forms of the texts with these bytes.
const fn forms(email: u8, external_id: u8) -> Forms {
    Forms {
        email: Some(compared(email)),
        external_id: Some(compared(external_id)),
    }
}

// rule: gate.customer.compared
pub async fn customers_without_forms_are_read_in_pages(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let other = world.member("other").await.who;
    let mut without = Vec::new();
    for number in 1..6 {
        without.push(world.earlier(&who, number, Some(number + 100)).await.id);
        let newer = world.customer(&who, number + 50, None);
        world.insert(&who, &newer).await.unwrap();
    }
    // A deleted customer keeps its texts.
    let mut gone = world.earlier(&who, 6, None).await;
    (gone.deleted_at, gone.revision) = (Some(world.now()), 2);
    assert_eq!(world.put(&who, &gone).await, Cas::Won);
    without.push(gone.id);
    // A customer may have the form of one of its texts.
    let half = world.earlier(&who, 7, Some(107)).await;
    let email = Forms {
        external_id: None,
        ..forms(7, 107)
    };
    assert_eq!(world.fill(&who, &half, email).await, Cas::Won);
    without.push(half.id);
    let nameless = world.earlier(&who, 8, None).await;
    let email = Forms {
        external_id: None,
        ..forms(8, 108)
    };
    assert_eq!(world.fill(&who, &nameless, email).await, Cas::Won);
    without.sort_unstable();
    for limit in [1, 2, 3, 1_000] {
        assert_eq!(world.without_forms(&who, limit).await, without, "{limit}");
        assert_eq!(world.without_forms(&other, limit).await, []);
    }
    let partners = &world.fixture.gate().forms;
    let first = partners.partners_after(Mode::Test, None, 1).await.unwrap();
    assert_eq!(first.found.rows, std::slice::from_ref(&who.partner));
    assert_eq!(first.next, Some(who.partner));
    let rest = partners.partners_after(Mode::Test, first.next.as_ref(), 2);
    let rest = rest.await.unwrap();
    assert_eq!(rest.found.rows, [other.partner]);
    assert_eq!(rest.next, None);
    let live = partners.partners_after(Mode::Live, None, 9).await.unwrap();
    assert!(live.found.rows.is_empty());
}

// rule: gate.customer.compared, gate.customer.unique
pub async fn form_is_stored_once_and_changes_nothing_else(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let other = world.member("other").await.who;
    let earlier = world.earlier(&who, 1, Some(101)).await;
    // The form of comparison is that of other spellings too.
    let sought = |byte: u8| TextIndexes {
        compared: compared(byte),
        spellings: [index(9); 4],
    };
    let identity = IdentityIndexes {
        email: sought(1),
        external_id: Some(sought(101)),
    };
    assert_eq!(world.taken(&who, identity).await, None);
    let held = async |who: &Tenant, forms: Forms| {
        let mut tx = world.forms_begin().await;
        tx.customer_forms_held(who, &forms).await.unwrap()
    };
    let both = forms(1, 101);
    assert_eq!(held(&who, both).await, HeldForms::default());
    let email = Forms {
        external_id: None,
        ..both
    };
    assert_eq!(world.fill(&other, &earlier, both).await, Cas::Lost);
    assert_eq!(world.fill(&who, &earlier, email).await, Cas::Won);
    assert_eq!(world.taken(&who, identity).await, Some(Unique::Email));
    let by_email = HeldForms {
        email: Some(earlier.id),
        external_id: None,
    };
    assert_eq!(held(&who, both).await, by_email);
    // The form of the email stays.
    assert_eq!(world.fill(&who, &earlier, forms(2, 101)).await, Cas::Won);
    let mut filled = earlier.clone();
    filled.marks = marks(1, Some(101));
    assert_eq!(world.kept(&who, earlier.id).await, Some(filled));
    assert_eq!(held(&other, both).await, HeldForms::default());
    assert_eq!(held(&who, Forms::default()).await, HeldForms::default());
    let filter = CustomerFilter {
        external_id: Some(sought(101)),
        ..CustomerFilter::default()
    };
    assert_eq!(world.listed(&who, filter).await, [earlier.id]);
}

// rule: gate.customer.no-lost-update
pub async fn changed_customer_gets_no_form_of_its_earlier_state(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let earlier = world.earlier(&who, 1, None).await;
    let form = Forms {
        external_id: None,
        ..forms(1, 1)
    };
    let mut changed = earlier.clone();
    (changed.person, changed.revision) = (Sealed(vec![8; 60]), 2);
    assert_eq!(world.put(&who, &changed).await, Cas::Won);
    assert_eq!(world.fill(&who, &earlier, form).await, Cas::Lost);
    let mut gone = changed.clone();
    (gone.deleted_at, gone.revision) = (Some(world.now()), 3);
    assert_eq!(world.put(&who, &gone).await, Cas::Won);
    assert_eq!(world.fill(&who, &changed, form).await, Cas::Lost);
    assert_eq!(world.kept(&who, earlier.id).await, Some(gone.clone()));
    assert_eq!(world.fill(&who, &gone, form).await, Cas::Won);
    gone.marks = marks(1, None);
    assert_eq!(world.kept(&who, earlier.id).await, Some(gone.clone()));
    // A dropped transaction stores nothing.
    let later = world.earlier(&who, 2, None).await;
    let mut tx = world.forms_begin().await;
    let email = Forms {
        external_id: None,
        ..forms(2, 2)
    };
    let outcome = tx.customer_forms_put(&who, &later, &email).await.unwrap();
    assert_eq!(outcome, Cas::Won);
    drop(tx);
    assert_eq!(world.kept(&who, later.id).await, Some(later));
}
