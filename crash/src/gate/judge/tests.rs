//! Each check finds what it is there for.

use serde_json::json;

use super::*;

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

fn tell(book: &mut Book, key: &str, kind: Kind, session: Option<&str>, answer: Answer) {
    book.doubt(key, kind, session, b"");
    assert!(book.note(key, &Ok(answer)));
}

/// A session that was completed after a payment had failed, one that was cancelled, and a branding: nothing is wrong.
fn clean() -> (Book, Seen) {
    let (mut book, mut seen) = (Book::default(), Seen::default());
    for (id, status) in [("gs_1", "completed"), ("gs_2", "cancelled")] {
        tell(&mut book, id, Kind::Create, None, created(id));
        let mut listed = created(id).json();
        listed["status"] = json!(status);
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
    let payments = payments.map(|(refid, status)| (refid.to_owned(), status.to_owned()));
    seen.payments.insert("gs_1".to_owned(), payments.into());
    let brand = said(200, &json!({ "brand_name": "b" }));
    tell(&mut book, "b", Kind::Rebrand, None, brand);
    seen.brand = Some("b".to_owned());
    (book, seen)
}

fn breaches(book: &mut Book, seen: &Seen, quota: Option<u64>) -> usize {
    let mut found = check_sessions(book, seen);
    found.extend(check_transactions(book, seen));
    found.extend(check_quota(book, quota, seen));
    found.extend(check_branding(book, seen.brand.as_deref()));
    found.len()
}

fn found(spoil: impl FnOnce(&mut Book, &mut Seen)) -> usize {
    let (mut book, mut seen) = clean();
    spoil(&mut book, &mut seen);
    breaches(&mut book, &seen, None)
}

#[test]
fn nothing_is_wrong_with_a_book_that_agrees() {
    assert_eq!(found(|_, _| {}), 0);
}

#[test]
fn a_session_lost_made_twice_changed_or_ended_otherwise_is_found() {
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
    assert_eq!(found(set("status", "expired")), 1);
    assert_eq!(found(set("status", "open")), 1);
}

#[test]
fn a_payment_too_few_or_too_many_is_found() {
    let pay = |id: &'static str, refid: &'static str, status: &'static str| {
        move |_: &mut Book, seen: &mut Seen| {
            let of = seen.payments.entry(id.to_owned()).or_default();
            of.insert(refid.to_owned(), status.to_owned());
        }
    };
    assert_eq!(found(pay("gs_1", "tx_3", "completed")), 1);
    assert_eq!(found(pay("gs_1", "tx_3", "failed")), 1);
    assert_eq!(found(pay("gs_2", "tx_3", "completed")), 1);
    assert_eq!(found(pay("gs_3", "tx_3", "failed")), 1);
    assert_eq!(found(|_, seen| seen.payments.clear()), 1);
}

#[test]
fn more_than_the_quota_or_a_refusal_before_it_is_found() {
    for (quota, told, wrong) in [
        (Some(3), false, 0),
        (Some(2), true, 0),
        (Some(3), true, 1),
        (Some(1), true, 1),
        (Some(1), false, 1),
        (None, true, 1),
    ] {
        let (mut book, seen) = clean();
        book.exhausted = told;
        assert_eq!(breaches(&mut book, &seen, quota), wrong, "{quota:?} {told}");
    }
}

#[test]
fn a_brand_that_is_lost_unknown_or_back_again_is_found() {
    assert_eq!(found(|_, seen| seen.brand = None), 1);
    assert_eq!(found(|_, seen| seen.brand = Some("x".to_owned())), 1);
    let later = |book: &mut Book, _: &mut Seen| {
        thread::sleep(std::time::Duration::from_millis(1));
        let brand = said(200, &json!({ "brand_name": "c" }));
        tell(book, "c2", Kind::Rebrand, None, brand.clone());
        // Its name is not its key: that is told of too.
        book.breaches.clear();
    };
    assert_eq!(found(later), 1);
}

#[test]
fn an_event_too_few_too_many_or_untrue_is_found() {
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
        let payments = seen.payments.get("gs_1");
        check_events(
            "gs_1",
            &book.sessions["gs_1"],
            "completed",
            events,
            payments,
        )
        .len()
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
