//! Customers of earlier versions: a background task gives them the forms by which new customers are compared with them.

use std::sync::Arc;

use acceptance::{ACME, Call, Gate, Logs, RIVAL, Setup};
use gate_core::customer::{CustomerId, SealedCustomer, Unique};
use gate_core::usecases::compare_customers::CompareCustomers;
use kernel::Mode;
use runtime::customer_forms::compare_customers;
use serde_json::json;
use sqlx::Connection as _;

use super::customer_texts::{PATH, found, person};
use super::rails::in_turn;
use crate::isolation::{Running, until};

/// More customers than one transaction compares.
const CROWD: usize = 25;

/// The stored row of a customer.
async fn row(gate: &Gate, partner: &str, id: &str) -> SealedCustomer {
    let who = gate.world().operator().tenant(partner);
    let id = CustomerId::parse(id).unwrap();
    let found = gate.sessions().store.customer_get(&who, id).await;
    found.unwrap().unwrap()
}

/// Replaces the row of a customer.
async fn replace(gate: &Gate, partner: &str, row: &SealedCustomer) {
    let who = gate.world().operator().tenant(partner);
    let delete = format!("DELETE FROM customers WHERE id = '{}'", row.id.ulid());
    gate.world().damage(&delete).await;
    let mut tx = gate.sessions().store.gate_begin("case").await.unwrap();
    tx.customer_insert(&who, row).await.unwrap();
    tx.commit().await.unwrap();
}

/// Creates a customer as an earlier version did, with any email and `external_id`; returns its id.
async fn earlier(gate: &Gate, partner: &str, email: &str, external_id: &str) -> String {
    let client = if partner == ACME {
        gate.acme()
    } else {
        gate.rival()
    };
    let name: String = external_id
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let body = person(&format!("{name}@new.example"), &name);
    let created = client.create_customer(&body, &name).await.created();
    let id = created["id"].as_str().unwrap().to_owned();
    let who = gate.world().operator().tenant(partner);
    let context = gate.sessions();
    let stored = row(gate, partner, &id).await;
    let mut customer = stored.open(&who, &context.sealer).unwrap();
    customer.person.email = email.to_owned();
    customer.person.external_id = Some(external_id.to_owned());
    let sealed = customer.seal(&who, &context.sealer, context.entropy.as_ref());
    let mut sealed = sealed.unwrap();
    sealed.marks.email_compared = None;
    sealed.marks.external_id_compared = None;
    replace(gate, partner, &sealed).await;
    id
}

/// Customers of earlier versions that differ in their number.
async fn crowd(gate: &Gate, partner: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..CROWD {
        let email = format!("stra\u{df}e-{number}@shop.example");
        ids.push(earlier(gate, partner, &email, &format!("user-{number}")).await);
    }
    ids
}

fn comparing(gate: &Gate) -> CompareCustomers {
    CompareCustomers {
        store: gate.world().store(),
        sealer: Arc::clone(&gate.sessions().sealer),
    }
}

/// Starts the background task.
fn walk(gate: &Gate) -> Running {
    let (comparing, readiness) = (comparing(gate), gate.world().store());
    Running::start(|stop| compare_customers(comparing, Mode::Test, readiness, stop))
}

/// The number of a partner's customers without the form of a text.
async fn without(gate: &Gate, partner: &str) -> i64 {
    let sql = format!(
        "SELECT count(*) FROM customers WHERE partner_id = '{partner}'
         AND (email_compared IS NULL OR external_id_compared IS NULL)"
    );
    gate.world().database().number(&sql).await
}

/// Waits until a number of acme's customers are without a form.
async fn until_without(gate: &Gate, left: i64) {
    let what = format!("a walk that leaves out {left} customers");
    until(&what, async || without(gate, ACME).await == left).await;
}

// rule: gate.customer.earlier, gate.customer.unique
#[tokio::test]
async fn new_customers_are_compared_with_earlier_ones_in_every_spelling() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let street = earlier(&gate, ACME, "Stra\u{df}e@shop.example", "Ko\u{308}ln 7").await;
    let cat = earlier(&gate, ACME, "ca\u{200b}t@shop.example", "user\u{2069}-1").await;
    let jorg = earlier(&gate, ACME, "jo\u{308}rg@shop.example", "user-2").await;
    for email in ["STRASSE@shop.example", "cat@shop.example"] {
        assert!(found(&acme, "email", email).await.is_empty(), "{email}");
    }
    let before = row(&gate, ACME, &street).await;
    let task = walk(&gate);
    until_without(&gate, 0).await;
    task.end().await;
    for (email, id) in [
        ("STRASSE@shop.example", &street),
        ("stra\u{df}e@shop.example", &street),
        ("Cat@shop.example", &cat),
        ("J\u{f6}rg@shop.example", &jorg),
        ("jo\u{308}rg@SHOP.example", &jorg),
    ] {
        let answer = acme.create_customer(&person(email, "u"), "k").await;
        let answer = answer.refused(409, "customer_already_exists");
        answer.saying("`email`");
        assert_eq!(found(&acme, "email", email).await, [id.as_str()]);
    }
    for (external_id, id) in [
        ("K\u{f6}ln 7", &street),
        ("Ko\u{308}ln\u{a0}7", &street),
        ("user-1", &cat),
    ] {
        let body = person("new@shop.example", external_id);
        let answer = acme.create_customer(&body, "k").await;
        let answer = answer.refused(409, "customer_already_exists");
        answer.saying("`external_id`");
        let listed = found(&acme, "external_id", external_id).await;
        assert_eq!(listed, [id.as_str()]);
    }
    // Nothing else has changed.
    let mut after = row(&gate, ACME, &street).await;
    assert!(after.marks.email_compared.is_some());
    after.marks = before.marks;
    assert_eq!(after, before);
    for id in [street, cat, jorg] {
        gate.notice(ACME, &id).await;
    }
    gate.finish().await;
}

// rule: gate.customer.earlier, gate.customer.unique
#[tokio::test]
async fn form_of_two_earlier_customers_belongs_to_the_older_one() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let older = earlier(&gate, ACME, "Stra\u{df}e@shop.example", "a").await;
    gate.world().after(1);
    let newer = earlier(&gate, ACME, "STRASSE@shop.example", "b").await;
    let (logs, caught) = Logs::catch();
    let task = walk(&gate);
    until_without(&gate, 1).await;
    task.end().await;
    drop(caught);
    assert!(!logs.text().contains("shop.example"));
    let logged = logs.text();
    assert_eq!(logged.matches("have one text in two spellings").count(), 1);
    assert!(
        logged.contains(&older) && logged.contains(&newer),
        "{logged}"
    );
    let older_row = row(&gate, ACME, &older).await;
    let newer_row = row(&gate, ACME, &newer).await;
    assert!(older_row.marks.email_compared.is_some());
    assert_eq!(newer_row.marks.email_compared, None);
    assert!(newer_row.marks.external_id_compared.is_some());
    for email in ["stra\u{df}e@shop.example", "strasse@SHOP.example"] {
        let answer = acme.create_customer(&person(email, "u"), "k").await;
        answer.refused(409, "customer_already_exists");
        let listed = found(&acme, "email", email).await;
        assert_eq!(listed, [newer.as_str(), older.as_str()]);
    }
    // The next walk finds the same.
    let who = gate.world().operator().tenant(ACME);
    let ids = [older_row.id, newer_row.id];
    let again = comparing(&gate).compare(&who, &ids).await.unwrap();
    assert_eq!(again.filled, 0);
    assert_eq!(again.shared, [(newer_row.id, Unique::Email, older_row.id)]);
    for id in [older, newer] {
        let change = Call::new("PATCH", &format!("{PATH}/{id}"));
        let change = change.json(&json!({ "last_name": "Lee" }));
        assert_eq!(acme.send(change).await.ok()["last_name"], "Lee");
        let delete = Call::new("DELETE", &format!("{PATH}/{id}"));
        acme.send(delete).await.ok();
        gate.notice(ACME, &id).await;
    }
    let body = person("strasse@shop.example", "u");
    let answer = acme.create_customer(&body, "k").await;
    answer.refused(409, "customer_already_exists");
    gate.finish().await;
}

// rule: gate.customer.earlier, background.unreadable, gate.customer.never-logged
#[tokio::test]
async fn customers_that_get_no_form_stop_no_walk() {
    let gate = Gate::new().await;
    let broken = earlier(&gate, ACME, "broken@shop.example", "a").await;
    let unassigned = earlier(&gate, ACME, "an\u{378}n@shop.example", "b").await;
    let whole = earlier(&gate, ACME, "whole@shop.example", "c").await;
    let sealed = row(&gate, ACME, &broken).await;
    let damage = format!(
        "UPDATE customers SET person = email_mark WHERE id = '{}'",
        sealed.id.ulid()
    );
    gate.world().damage(&damage).await;
    let (logs, caught) = Logs::catch();
    let task = walk(&gate);
    until_without(&gate, 2).await;
    task.end().await;
    drop(caught);
    let logged = logs.text();
    assert_eq!(logged.matches("A row cannot be read").count(), 1);
    assert!(!logged.contains("shop.example"));
    let marks = row(&gate, ACME, &unassigned).await.marks;
    assert_eq!(marks.email_compared, None);
    assert!(marks.external_id_compared.is_some());
    let marks = row(&gate, ACME, &whole).await.marks;
    assert!(marks.email_compared.is_some());
    replace(&gate, ACME, &sealed).await;
    for id in [broken, unassigned, whole] {
        gate.notice(ACME, &id).await;
    }
    gate.finish().await;
}

// rule: gate.customer.earlier, gate.customer.no-lost-update
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn walk_continues_after_a_restart_and_loses_no_change() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let ids = crowd(&gate, ACME).await;
    let task = walk(&gate);
    let has_begun = async || without(&gate, ACME).await < 25;
    until("a transaction of the walk", has_begun).await;
    task.end().await;
    // Two replicas start while requests change and delete customers.
    let replica = gate.replica().await;
    let tasks = [walk(&gate), walk(&replica)];
    for (number, id) in ids.iter().enumerate() {
        let path = format!("{PATH}/{id}");
        let change = Call::new("PATCH", &path).json(&json!({ "last_name": "Lee" }));
        let changed = in_turn(|| acme.send(change.clone())).await.ok();
        assert_eq!(changed["last_name"], "Lee");
        if number % 3 == 0 {
            in_turn(|| acme.send(Call::new("DELETE", &path))).await.ok();
        }
    }
    until_without(&gate, 0).await;
    for task in tasks {
        task.end().await;
    }
    for (number, id) in ids.iter().enumerate() {
        let body = person(&format!("STRASSE-{number}@shop.example"), "u");
        let answer = acme.create_customer(&body, "k").await;
        answer.refused(409, "customer_already_exists");
        let is_deleted = row(&gate, ACME, id).await.deleted_at.is_some();
        assert_eq!(is_deleted, number % 3 == 0);
        gate.notice(ACME, id).await;
    }
    replica.close().await;
    gate.finish().await;
}

// rule: gate.customer.earlier, background.isolated
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn customers_of_other_partners_are_compared_while_one_partner_is_locked() {
    let gate = Gate::with(Setup::give_up_locked_rows).await;
    let mut crowds = Vec::new();
    for partner in [ACME, RIVAL] {
        crowds.push((partner, crowd(&gate, partner).await));
    }
    let lock = gate.world().lock_rows("books", ACME).await;
    let task = walk(&gate);
    let is_done = async || without(&gate, RIVAL).await == 0;
    until("the walk of the other partner", is_done).await;
    if let Some(lock) = lock {
        assert_eq!(without(&gate, ACME).await, 25);
        lock.close().await.unwrap();
    }
    until_without(&gate, 0).await;
    task.end().await;
    for (partner, ids) in crowds {
        for id in ids {
            gate.notice(partner, &id).await;
        }
    }
    gate.finish().await;
}
