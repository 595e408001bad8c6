//! Each check detects its breach.

mod rails;
mod widgets;

use serde_json::json;

use super::super::writing::Writing;
use super::*;
use crate::http::Answer;

fn created(id: &str) -> Answer {
    let body = json!({
        "id": id, "status": "open", "amount": "1.00", "client_secret": "gsec",
        "created_at": "2026-05-25T12:00:00.000Z", "expires_at": "2026-05-25T12:00:03.000Z",
    });
    said(201, &body)
}

fn said(status: u16, body: &Value) -> Answer {
    Answer {
        status,
        request_id: "req_1".to_owned(),
        body: body.to_string().into_bytes(),
    }
}

fn tell(book: &mut Book, key: &str, kind: Kind, object: Option<&str>, answer: Answer) {
    let with = match kind {
        Kind::Redeem => Some("gs_4".to_owned()),
        Kind::Pay => Some("gs_5".to_owned()),
        _ => None,
    };
    book.doubt(&Writing {
        kind,
        object: object.unwrap_or(key).to_owned(),
        with,
        key: Some(key.to_owned()),
        bytes: Vec::new(),
    });
    assert!(book.note(key, &Ok(answer)));
}

fn payment(status: &str) -> Payment {
    Payment {
        status: status.to_owned(),
        rail: None,
        completed_at: None,
    }
}

/// The payment of the one pay-in, completed while its session could be paid.
fn paid_by_rail() -> Payment {
    Payment {
        rail: Some("pi_1".to_owned()),
        completed_at: Timestamp::parse("2026-05-25T12:00:02.000Z", Bound::Upper).ok(),
        ..payment("completed")
    }
}

/// A session completed after a failed payment, a cancelled session, and a branding, without a breach.
fn clean() -> (Book, Seen) {
    let (mut book, mut seen) = (Book::default(), Seen::default());
    for (id, status) in [
        ("gs_1", "completed"),
        ("gs_2", "cancelled"),
        ("gs_4", "completed"),
        ("gs_5", "completed"),
    ] {
        tell(&mut book, id, Kind::Create, None, created(id));
        let mut listed = created(id).json();
        listed["status"] = json!(status);
        if status == "completed" {
            listed["tx_refid"] = json!("tx_2");
        }
        listed.as_object_mut().unwrap().remove("client_secret");
        seen.sessions.insert(id.to_owned(), listed);
    }
    let failed = json!({ "intent": { "tx_refid": "tx_1" } });
    tell(&mut book, "f", Kind::Fail, Some("gs_1"), said(200, &failed));
    tell(
        &mut book,
        "c",
        Kind::Cancel,
        Some("gs_2"),
        said(201, &json!({})),
    );
    let payments = [("tx_1", "failed"), ("tx_2", "completed")];
    let payments = payments.map(|(refid, status)| (refid.to_owned(), payment(status)));
    seen.payments.insert("gs_1".to_owned(), payments.into());
    let brand = said(200, &json!({ "brand_name": "b" }));
    tell(&mut book, "b", Kind::Rebrand, None, brand);
    seen.brand = Some("b".to_owned());
    enrolled(&mut book, &mut seen);
    redeemed(&mut book, &mut seen);
    paid_in_widget(&mut book, &mut seen);
    (book, seen)
}

fn customer(id: &str, name: &str) -> Value {
    json!({ "id": id, "email": "p@shop.example", "first_name": name, "updated_at": "then" })
}

/// A renamed customer and a deleted customer.
fn enrolled(book: &mut Book, seen: &mut Seen) {
    for (key, id) in [("e1", "cus_1"), ("e2", "cus_2")] {
        let person = format!("person-{key}");
        let made = said(201, &customer(id, key));
        tell(book, key, Kind::Enrol, Some(&person), made);
    }
    let named = said(200, &customer("cus_1", "n"));
    tell(book, "n", Kind::Rename, Some("cus_1"), named);
    let gone = json!({ "id": "cus_2", "deleted": true, "deleted_at": "then" });
    tell(book, "d", Kind::Dismiss, Some("cus_2"), said(200, &gone));
    seen.people
        .insert("cus_1".to_owned(), customer("cus_1", "n"));
}

fn quote(status: &str) -> Value {
    let consumed_at = (status == "consumed").then_some("then");
    json!({ "id": "qt_1", "side": "on_ramp", "fiat_amount": "20.00", "status": status, "consumed_at": consumed_at })
}

fn pay_in(status: &str) -> Value {
    let settled_at = (status == "settled").then_some("later");
    let updated_at = settled_at.unwrap_or("then");
    json!({
        "id": "pi_1", "kind": "pay_in", "quote_id": "qt_1", "session_id": "gs_4", "fiat_amount": "20.00",
        "status": status, "failure_code": null, "settled_at": settled_at, "updated_at": updated_at,
    })
}

/// A quote that was redeemed by a settled pay-in.
fn redeemed(book: &mut Book, seen: &mut Seen) {
    tell(book, "q", Kind::Lock, None, said(201, &quote("active")));
    let made = said(201, &pay_in("processing"));
    tell(book, "r", Kind::Redeem, Some("qt_1"), made);
    seen.orders
        .quotes
        .insert("qt_1".to_owned(), quote("consumed"));
    seen.orders
        .rails
        .insert("pi_1".to_owned(), pay_in("settled"));
    let of = seen.payments.entry("gs_4".to_owned()).or_default();
    of.insert("tx_9".to_owned(), paid_by_rail());
}

fn in_widget(id: &str, refid: &str, side: &str) -> Answer {
    let of_swap = |text: &str| (side == "swap").then(|| text.to_owned());
    let body = json!({
        "id": format!("pay_{id}"), "tx_refid": refid, "side": side, "fiat_amount": "20.33",
        "crypto_amount": "21.80", "source_asset": of_swap("USDC"), "source_amount": of_swap("22.05"),
        "created_at": "2026-05-25T12:00:01.000Z", "status": "processing",
    });
    said(201, &body)
}

/// A payment in a widget, completed.
fn paid_in_widget(book: &mut Book, seen: &mut Seen) {
    tell(
        book,
        "w",
        Kind::Pay,
        Some("qt_5"),
        in_widget("5", "tx_5", "on_ramp"),
    );
    let paid = Payment {
        rail: Some("pi_5".to_owned()),
        ..payment("completed")
    };
    let of = seen.payments.entry("gs_5".to_owned()).or_default();
    of.insert("tx_5".to_owned(), paid);
}

fn breaches(book: &mut Book, seen: &Seen, quota: Option<u64>) -> usize {
    let mut found = check_sessions(book, seen);
    found.extend(check_transactions(book, seen));
    found.extend(check_quota(book, quota, seen));
    found.extend(check_branding(book, seen.brand.as_deref()));
    found.extend(people::check(book, &seen.people));
    found.extend(orders::check_payments(book, &seen.payments));
    found.extend(orders::check(book, &seen.orders));
    found.extend(hosted::check(book, &seen.payments));
    found.len()
}

fn found(spoil: impl FnOnce(&mut Book, &mut Seen)) -> usize {
    let (mut book, mut seen) = clean();
    spoil(&mut book, &mut seen);
    breaches(&mut book, &seen, None)
}

#[test]
fn matching_observations_have_no_breach() {
    assert_eq!(found(|_, _| {}), 0);
}

#[test]
fn lost_doubled_or_changed_session_is_detected() {
    assert_eq!(found(|_, seen| drop(seen.sessions.remove("gs_2"))), 1);
    let second = |_: &mut Book, seen: &mut Seen| {
        let again = seen.sessions["gs_2"].clone();
        seen.sessions.insert("gs_3".to_owned(), again);
    };
    assert_eq!(found(second), 1);
    let set = |field: &'static str, value: &'static str| {
        move |_: &mut Book, seen: &mut Seen| {
            seen.sessions.get_mut("gs_2").unwrap()[field] = json!(value);
        }
    };
    assert_eq!(found(set("amount", "2.00")), 1);
    assert_eq!(found(set("tx_refid", "tx_2")), 1, "it was never paid");
    let unnamed = |_: &mut Book, seen: &mut Seen| {
        let session = seen.sessions.get_mut("gs_1").unwrap();
        session.as_object_mut().unwrap().remove("tx_refid");
    };
    assert_eq!(found(unnamed), 1);
    assert_eq!(found(set("status", "expired")), 1);
    assert_eq!(found(set("status", "open")), 1);
}

#[test]
fn breach_of_lost_session_has_the_pages_that_were_read() {
    let (mut book, mut seen) = clean();
    seen.sessions.remove("gs_2");
    seen.pages = vec![(100, true), (3, false)];
    let breaches = check_sessions(&mut book, &seen);
    let [breach] = &breaches[..] else {
        panic!("{breaches:?}")
    };
    assert!(breach.contains("gs_2 was acknowledged"), "{breach}");
    assert!(breach.ends_with("[(100, true), (3, false)]"), "{breach}");
}

#[test]
fn missing_or_extra_payment_is_detected() {
    let pay = |id: &'static str, refid: &'static str, status: &'static str| {
        move |_: &mut Book, seen: &mut Seen| {
            let of = seen.payments.entry(id.to_owned()).or_default();
            of.insert(refid.to_owned(), payment(status));
        }
    };
    assert_eq!(found(pay("gs_1", "tx_3", "completed")), 1);
    assert_eq!(found(pay("gs_1", "tx_3", "failed")), 1);
    assert_eq!(found(pay("gs_2", "tx_3", "completed")), 1);
    assert_eq!(found(pay("gs_3", "tx_3", "failed")), 1);
    // Three sessions, the pay-in and the payment in a widget.
    assert_eq!(found(|_, seen| seen.payments.clear()), 5);
}

#[test]
fn lost_doubled_changed_or_restored_customer_is_detected() {
    assert_eq!(found(|_, seen| seen.people.clear()), 1);
    let listed = |id: &'static str, name: &'static str| {
        move |_: &mut Book, seen: &mut Seen| {
            seen.people.insert(id.to_owned(), customer("cus_1", name));
        }
    };
    assert_eq!(found(listed("cus_1", "e1")), 1, "an earlier name");
    assert_eq!(found(listed("cus_1", "x")), 1);
    assert_eq!(found(listed("cus_3", "x")), 1);
    let back = |_: &mut Book, seen: &mut Seen| {
        seen.people
            .insert("cus_2".to_owned(), customer("cus_2", "e2"));
    };
    assert_eq!(found(back), 1);
    let (mut book, _) = clean();
    let again = said(201, &customer("cus_4", "e4"));
    tell(&mut book, "e4", Kind::Enrol, Some("person-e1"), again);
    assert_eq!(book.breaches.len(), 1, "two for one person");
    let later = json!({ "id": "cus_2", "deleted": true, "deleted_at": "later" });
    tell(
        &mut book,
        "d2",
        Kind::Dismiss,
        Some("cus_2"),
        said(200, &later),
    );
    assert_eq!(book.breaches.len(), 2, "deleted twice");
}

#[test]
fn doubled_or_missing_redemption_is_detected() {
    let quoted = |read: Value| {
        move |_: &mut Book, seen: &mut Seen| {
            seen.orders.quotes.insert("qt_1".to_owned(), read);
        }
    };
    assert_eq!(found(quoted(quote("active"))), 1);
    assert_eq!(found(quoted(quote("expired"))), 1);
    let mut dear = quote("consumed");
    dear["fiat_amount"] = json!("21.00");
    assert_eq!(found(quoted(dear)), 1);
    let (mut book, _) = clean();
    let mut second = pay_in("processing");
    second["id"] = json!("pi_2");
    tell(
        &mut book,
        "r2",
        Kind::Redeem,
        Some("qt_1"),
        said(201, &second),
    );
    assert_eq!(book.breaches.len(), 1);
    let (mut book, mut seen) = clean();
    book.orders.quotes.get_mut("qt_1").unwrap().redeemed_by = None;
    assert_eq!(breaches(&mut book, &seen, None), 1, "no client redeemed it");
    seen.orders.quotes.clear();
    let (made, session) = (created("gs_8"), created("gs_9"));
    tell(&mut book, "p1", Kind::UsePreview, Some("0123"), made);
    assert!(book.breaches.is_empty());
    tell(&mut book, "p2", Kind::UsePreview, Some("0123"), session);
    assert_eq!(book.breaches.len(), 1, "two sessions with one preview");
}

#[test]
fn changed_end_or_doubled_payment_of_pay_in_is_detected() {
    let read = |status: &'static str| {
        move |_: &mut Book, seen: &mut Seen| {
            seen.orders.rails.insert("pi_1".to_owned(), pay_in(status));
        }
    };
    assert_eq!(found(read("processing")), 0);
    assert_eq!(found(read("failed")), 1);
    let twice = |book: &mut Book, seen: &mut Seen| {
        assert!(orders::check(book, &seen.orders).is_empty());
        read("processing")(book, seen);
    };
    assert_eq!(found(twice), 1, "it had ended");
    let pay = |refid: &'static str, change: fn(&mut Payment)| {
        move |_: &mut Book, seen: &mut Seen| {
            let mut payment = paid_by_rail();
            change(&mut payment);
            let of = seen.payments.entry("gs_4".to_owned()).or_default();
            of.insert(refid.to_owned(), payment);
        }
    };
    // The session is paid twice, or completed without a payment.
    assert_eq!(found(pay("tx_8", |_| ())), 2, "two payments");
    assert_eq!(found(pay("tx_9", |it| it.status = "failed".to_owned())), 2);
    let strange = |it: &mut Payment| it.rail = Some("pi_3".to_owned());
    assert_eq!(found(pay("tx_8", strange)), 2);
    let late = |book: &mut Book, seen: &mut Seen| {
        book.sessions.get_mut("gs_4").unwrap().end = Some("expired".to_owned());
        let session = seen.sessions.get_mut("gs_4").unwrap();
        session["status"] = json!("expired");
        session.as_object_mut().unwrap().remove("tx_refid");
    };
    assert_eq!(found(late), 2, "paid in time, and expired");
}

#[test]
fn missing_or_extra_customer_or_redemption_event_is_detected() {
    let event = |kind: &str, data: Value| Event {
        partner: "p".to_owned(),
        kind: kind.to_owned(),
        object: "it".to_owned(),
        body: json!({ "type": kind, "data": data })
            .to_string()
            .into_bytes(),
        times: 1,
        taken: true,
    };
    let (mut book, seen) = clean();
    assert!(orders::check(&mut book, &seen.orders).is_empty());
    let made = event("customer.created", customer("cus_1", "e1"));
    let named = event("customer.updated", customer("cus_1", "n"));
    let check = |events: &[&Event]| people::check_events(&book, "cus_1", events).is_none();
    assert!(check(&[&made, &named]));
    assert!(!check(&[&made]) && !check(&[&made, &named, &named]));
    assert!(!check(&[
        &made,
        &event("customer.updated", customer("cus_1", "x"))
    ]));
    let consumed = event("quote.consumed", quote("consumed"));
    let check = |events: &[&Event]| orders::check_events_of_quote(&book, "qt_1", events).is_none();
    assert!(check(&[&consumed]));
    assert!(!check(&[]) && !check(&[&consumed, &consumed]));
    let begun = event("rail.pay_in.processing", pay_in("processing"));
    let settled = event("rail.pay_in.settled", pay_in("settled"));
    let check = |events: &[&Event]| orders::check_events_of_rail(&book, "pi_1", events).is_none();
    assert!(check(&[&begun, &settled]));
    assert!(!check(&[&begun]) && !check(&[&begun, &settled, &settled]));
    assert!(!check(&[
        &begun,
        &event("rail.pay_in.settled", pay_in("processing"))
    ]));
}

#[test]
fn exceeded_quota_or_early_refusal_is_detected() {
    for (quota, told, wrong) in [
        (Some(5), false, 0),
        (Some(4), true, 0),
        (Some(5), true, 1),
        (Some(3), true, 1),
        (Some(3), false, 1),
        (None, true, 1),
    ] {
        let (mut book, seen) = clean();
        book.exhausted = told;
        assert_eq!(breaches(&mut book, &seen, quota), wrong, "{quota:?} {told}");
    }
}

#[test]
fn lost_unknown_or_restored_branding_is_detected() {
    assert_eq!(found(|_, seen| seen.brand = None), 1);
    assert_eq!(found(|_, seen| seen.brand = Some("x".to_owned())), 1);
    let later = |book: &mut Book, _: &mut Seen| {
        thread::sleep(std::time::Duration::from_millis(1));
        let brand = said(200, &json!({ "brand_name": "c" }));
        tell(book, "c2", Kind::Rebrand, None, brand.clone());
        // The name is not the key, which is also reported.
        book.breaches.clear();
    };
    assert_eq!(found(later), 1);
}

#[test]
fn missing_extra_or_wrong_event_is_detected() {
    let event = |kind: &str, more: Value| {
        let mut data = created("gs_1").json();
        let fields = data.as_object_mut().unwrap();
        fields.remove("client_secret");
        fields.extend(more.as_object().unwrap().clone());
        let body = json!({ "type": kind, "data": data }).to_string();
        Event {
            partner: "p".to_owned(),
            kind: kind.to_owned(),
            object: "gs_1".to_owned(),
            body: body.into_bytes(),
            times: 1,
            taken: true,
        }
    };
    let (book, seen) = clean();
    let check = |events: &[&Event]| {
        let payments = hosted::events_of_payments(&book, "gs_1", seen.payments.get("gs_1"));
        let session = &book.sessions["gs_1"];
        check_events("gs_1", session, "completed", events, payments).len()
    };
    let made = event("gate_session.created", json!({}));
    let paid = |refid: &str| {
        let more = json!({ "status": "completed", "tx_refid": refid });
        event("gate_session.completed", more)
    };
    assert_eq!(check(&[&made, &paid("tx_2")]), 0);
    assert_eq!(check(&[&made]), 1);
    assert_eq!(check(&[&made, &paid("tx_2"), &paid("tx_2")]), 1);
    assert_eq!(check(&[&made, &paid("tx_1")]), 1, "a payment that failed");
    let other = event("gate_session.created", json!({ "amount": "2.00" }));
    assert_eq!(check(&[&other, &paid("tx_2")]), 1);
}

#[test]
fn test_event_ends_as_the_receiver_took_it_or_given_up() {
    let of = |replayed, taken, status: &str| {
        let test = Test {
            event: "e".to_owned(),
            replayed,
        };
        is_status_of_test(&test, taken, status)
    };
    assert!(of(false, false, "dead_lettered"), "refused each time");
    assert!(
        of(false, true, "dead_lettered"),
        "taken at the last attempt, whose response was lost"
    );
    assert!(of(true, true, "succeeded"));
    assert!(!of(false, false, "succeeded"), "refused each time");
    assert!(
        !of(true, false, "dead_lettered"),
        "replayed and never taken"
    );
    assert!(
        of(true, true, "dead_lettered"),
        "taken after a replay, whose responses were all lost"
    );
    for open in ["pending", "in_flight", "lost"] {
        assert!(!of(true, true, open) && !of(false, false, open), "{open}");
    }
}
