//! Planted breaches of customers. The audit reports each under exactly its name.

use std::time::Duration;

use gate_core::change::Change;
use gate_core::customer::{CustomerDraft, CustomerId, CustomerUpdate};

use crate::contract::breaches::{Breach, CHECKED, update_of};
use crate::contract::fixture::GateFixture;
use crate::contract::gate_world::person;
use crate::contract::world::World;

/// Customers of every kind of one partner.
pub(crate) struct Rows {
    partner: String,
    /// A customer that was changed once.
    known: CustomerId,
    deleted: CustomerId,
}

impl<F: GateFixture> World<F> {
    /// A partner with all these customers.
    async fn with_customers(&self, name: &str) -> Rows {
        let gate = self.open_listening_gate(name).await;
        let named = CustomerDraft {
            external_id: Some("user-1".to_owned()),
            ..person("ann@a.example")
        };
        let rows = Rows {
            partner: name.to_owned(),
            known: gate.known("known", named).await,
            deleted: gate.known("deleted", person("bob@a.example")).await,
        };
        self.clock().advance(Duration::from_secs(1));
        let update = CustomerUpdate {
            last_name: Change::Set("Lee".to_owned()),
            ..CustomerUpdate::default()
        };
        let updating = gate.clone().updated(rows.known, Some("update"), update);
        updating.await.unwrap();
        let deleting = gate.clone().deleted(rows.deleted, Some("delete"));
        deleting.await.unwrap();
        rows
    }
}

fn update(rows: &Rows, table: &str, change: &str, row: &str) -> String {
    update_of(&rows.partner, table, change, row)
}

fn customer(rows: &Rows, change: &str, customer: CustomerId) -> String {
    let row = format!("id = '{}'", customer.ulid());
    update(rows, "customers", change, &row)
}

/// The event of a type about a customer.
fn told(rows: &Rows, change: &str, customer: CustomerId, kind: &str) -> String {
    let row = format!("object_id = '{customer}' AND type = 'customer.{kind}'");
    update(rows, "events", change, &row)
}

fn answered(rows: &Rows, change: &str, key: &str) -> String {
    update(rows, "answers", change, &format!("key = '{key}'"))
}

const EARLIER: &str = "created_at = created_at - 1";

const fn breach(invariant: &'static str, sql: fn(&Rows) -> String) -> Breach<Rows> {
    Breach::new(invariant, sql)
}

pub(crate) const BREACHES: &[Breach<Rows>] = &[
    breach("customer-says-what-happened", |rows| {
        told(rows, EARLIER, rows.known, "created")
    }),
    breach("customer-says-what-happened", |rows| {
        told(rows, EARLIER, rows.known, "updated")
    }),
    breach("customer-says-what-happened", |rows| {
        told(rows, EARLIER, rows.deleted, "deleted")
    }),
    breach("customer-says-what-happened", |rows| {
        customer(rows, "revision = revision + 1", rows.known)
    }),
    breach("event-has-its-customer", |rows| {
        let object = "object_id = 'cus_test_00000000000P1ANTED00000000'";
        told(rows, object, rows.known, "updated")
    })
    .with(&[
        "customer-says-what-happened",
        "delivery-is-of-its-event",
        "event-body-is-of-its-event",
    ]),
    breach("event-has-its-customer", |rows| {
        customer(rows, "deleted_at = NULL, revision = 1", rows.deleted)
    })
    // The deletion has a stored response.
    .with(&["answer-is-of-what-was-done"]),
    breach("answer-is-of-what-was-done", |rows| {
        answered(rows, EARLIER, "known")
    }),
    breach("answer-is-of-what-was-done", |rows| {
        answered(rows, "created_at = 0", "update")
    }),
    breach("answer-is-of-what-was-done", |rows| {
        answered(rows, EARLIER, "delete")
    }),
    breach("customer-is-what-is-sealed", |rows| {
        customer(rows, "person = zeroblob(80)", rows.known)
    }),
    breach("customer-is-what-is-sealed", |rows| {
        customer(rows, "email_mark = zeroblob(32)", rows.known)
    }),
    breach("customer-is-what-is-sealed", |rows| {
        customer(rows, "external_id_mark = NULL", rows.known)
    }),
    breach("customer-is-what-is-sealed", |rows| {
        customer(rows, "email_compared = zeroblob(32)", rows.known)
    }),
    breach("customer-is-what-is-sealed", |rows| {
        customer(rows, "external_id_compared = email_compared", rows.known)
    }),
    breach("rows-can-be-read", |rows| {
        customer(rows, "kyc_status = 'vip'", rows.known)
    })
    .with(CHECKED),
    breach("rows-stay-in-their-mode", |rows| {
        let row = format!("object_id = '{}'", rows.known);
        update(rows, "deliveries", "object_id = 'cus_live_planted'", &row)
    })
    .with(&["delivery-is-of-its-event"]),
];

// rule: cli.verify
pub async fn every_customer_breach_is_reported_by_name(world: World<impl GateFixture>) {
    let victim = async |name: String| world.with_customers(&name).await;
    world.assert_found(BREACHES, victim).await;
}
