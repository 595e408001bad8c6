//! Checks of the payments in widgets.

use std::time::Duration;

use super::*;

/// Records a quote of the session in the widget, created in a second of the minute.
fn quote_session(book: &mut Book, id: &str, second: u8) {
    let number = request_quote(book);
    receive_quote(book, number, id, second);
}

fn request_quote(book: &mut Book) -> usize {
    // Each step has an instant of its own.
    thread::sleep(Duration::from_millis(1));
    book.orders.request_quote("gs_5")
}

fn receive_quote(book: &mut Book, number: usize, id: &str, second: u8) {
    thread::sleep(Duration::from_millis(1));
    let created_at = format!("2026-05-25T12:00:0{second}.000Z");
    let quote = said(201, &json!({ "id": id, "created_at": created_at }));
    let received = book.orders.quote_response("gs_5", number, &Ok(quote));
    assert_eq!(received.as_deref(), Some(id));
}

/// Records a payment with the quote `qt_7`, created in second 1.
fn pay(book: &mut Book) {
    thread::sleep(Duration::from_millis(1));
    let paid = in_widget("7", "tx_7", "on_ramp");
    tell(book, "p", Kind::Pay, Some("qt_7"), paid);
}

fn contradicts(book: &Book) -> bool {
    let paid = &book.orders.hosted["tx_7"];
    book.orders.contradicts_later_quote(paid).is_some()
}

#[test]
fn payment_with_superseded_quote_is_detected() {
    let (mut book, _) = clean();
    quote_session(&mut book, "qt_6", 0);
    quote_session(&mut book, "qt_7", 0);
    pay(&mut book);
    assert!(!contradicts(&book), "the other quote is earlier");
    let (mut book, _) = clean();
    quote_session(&mut book, "qt_7", 0);
    // By the clock of the store the payment came first, but it was sent after the response.
    quote_session(&mut book, "qt_8", 2);
    pay(&mut book);
    assert!(contradicts(&book));
}

#[test]
fn payment_and_later_quote_at_once_are_in_either_order() {
    let at_once = |second: u8, end: Option<&str>| {
        let (mut book, _) = clean();
        quote_session(&mut book, "qt_7", 0);
        let number = request_quote(&mut book);
        pay(&mut book);
        receive_quote(&mut book, number, "qt_8", second);
        let paid = book.orders.hosted.get_mut("tx_7").unwrap();
        paid.end = end.map(str::to_owned);
        contradicts(&book)
    };
    for end in ["failed", "cancelled"] {
        assert!(at_once(0, Some(end)), "it was superseded before");
        assert!(!at_once(2, Some(end)), "it had ended before");
    }
    for end in [None, Some("completed")] {
        assert!(at_once(0, end) && at_once(2, end), "it holds its session");
        assert!(!at_once(1, end), "the clock does not tell");
    }
}

#[test]
fn refusal_as_superseded_needs_request_for_later_quote() {
    let refused = |prepare: fn(&mut Book)| {
        let (mut book, _) = clean();
        quote_session(&mut book, "qt_6", 0);
        quote_session(&mut book, "qt_7", 0);
        prepare(&mut book);
        let refusal = said(409, &json!({ "code": "quote_superseded" }));
        tell(&mut book, "p", Kind::Pay, Some("qt_7"), refusal);
        book.breaches.len()
    };
    assert_eq!(refused(|_| ()), 1);
    assert_eq!(refused(|book| quote_session(book, "qt_8", 0)), 0);
    let without_response = |book: &mut Book| {
        request_quote(book);
    };
    assert_eq!(refused(without_response), 0);
    let refused_itself = |book: &mut Book| {
        let number = request_quote(book);
        let refusal = said(409, &json!({ "code": "session_not_open" }));
        let quote = book.orders.quote_response("gs_5", number, &Ok(refusal));
        assert_eq!(quote, None);
    };
    assert_eq!(refused(refused_itself), 1);
}

#[test]
fn fraction_of_amount_chooses_end_of_payment() {
    let may_end = |side: &str, rail: &str, fiat: &str, status: &str| {
        let (mut book, _) = clean();
        let mut body = in_widget("7", "tx_7", side).json();
        body["fiat_amount"] = json!(fiat);
        tell(&mut book, "p", Kind::Pay, Some("qt_7"), said(201, &body));
        let paid = book.orders.hosted.get_mut("tx_7").unwrap();
        paid.rail = rail.to_owned();
        paid.read(status)
    };
    for (side, rail, fiat, end) in [
        ("on_ramp", "pi_live_7", "20.00", "completed"),
        ("on_ramp", "pi_live_7", "20.31", "failed"),
        ("on_ramp", "pi_live_7", "20.32", "cancelled"),
        ("on_ramp", "pi_live_7", "20.34", "failed"),
        ("off_ramp", "po_live_7", "20.35", "failed"),
        ("off_ramp", "po_test_7", "20.35", "completed"),
        ("swap", "sw_live_7", "20.32", "cancelled"),
        ("off_ramp", "po_live_7", "20.32", "completed"),
    ] {
        for status in ["completed", "failed", "cancelled"] {
            let is_allowed = may_end(side, rail, fiat, status);
            assert_eq!(is_allowed, status == end, "{rail} {fiat} {status}");
        }
    }
}

#[test]
fn lost_changed_or_doubled_payment_of_widget_is_detected() {
    let change = |change: fn(&mut Payment)| {
        move |_: &mut Book, seen: &mut Seen| {
            let of = seen.payments.get_mut("gs_5").unwrap();
            change(of.get_mut("tx_5").unwrap());
        }
    };
    // A completed session without a completed payment is a breach too.
    assert_eq!(found(change(|it| it.status = "failed".to_owned())), 2);
    assert_eq!(found(|_, seen| drop(seen.payments.remove("gs_5"))), 2);
    let moved = change(|it| it.rail = Some("pi_1".to_owned()));
    assert_eq!(found(moved), 3, "pi_1 has two payments, and is not of gs_5");
    let given_up = |book: &mut Book, _: &mut Seen| {
        let known = book.orders.hosted.get_mut("tx_5").unwrap();
        known.giving_up = true;
        known.given_up = true;
    };
    assert_eq!(found(given_up), 1, "completed in spite of its cancellation");
    let earlier = |book: &mut Book, seen: &mut Seen| {
        assert!(hosted::check(book, &seen.payments).is_empty());
        change(|it| it.status = "processing".to_owned())(book, seen);
    };
    assert_eq!(found(earlier), 2, "it had ended");
    let again = |key: &'static str, quote: &'static str, refid: &'static str| {
        move |book: &mut Book, _: &mut Seen| {
            let again = in_widget(key, refid, "on_ramp");
            tell(book, key, Kind::Pay, Some(quote), again);
        }
    };
    assert_eq!(found(again("x", "qt_5", "tx_6")), 1, "one quote twice");
    assert_eq!(found(again("x", "qt_6", "tx_5")), 2, "one reference twice");
}

#[test]
fn missing_or_extra_event_of_widget_is_detected() {
    let (mut book, seen) = clean();
    assert!(hosted::check(&mut book, &seen.payments).is_empty());
    let event = |kind: &str, refid: Option<&str>| {
        let mut data = created("gs_5").json();
        let fields = data.as_object_mut().unwrap();
        fields.remove("client_secret");
        match kind {
            "gate_session.completed" => fields.insert("status".to_owned(), json!("completed")),
            "gate_session.processing" => fields.insert("pay_until".to_owned(), json!("later")),
            _ => None,
        };
        fields.extend(refid.map(|refid| ("tx_refid".to_owned(), json!(refid))));
        Event {
            partner: "p".to_owned(),
            kind: kind.to_owned(),
            object: "gs_5".to_owned(),
            body: json!({ "type": kind, "data": data })
                .to_string()
                .into_bytes(),
            times: 1,
            taken: true,
        }
    };
    let made = event("gate_session.created", None);
    let begun = event("gate_session.processing", Some("tx_5"));
    let done = event("gate_session.completed", Some("tx_5"));
    let required = event(KYC_REQUIRED, None);
    let check = |book: &Book, events: &[&Event]| {
        let payments = hosted::events_of_payments(book, "gs_5", seen.payments.get("gs_5"));
        let session = &book.sessions["gs_5"];
        check_events("gs_5", session, "completed", events, payments).is_empty()
    };
    let all = [&made, &begun, &done];
    assert!(check(&book, &all));
    assert!(!check(&book, &[&made, &done]) && !check(&book, &[&made, &begun, &begun, &done]));
    let other = event("gate_session.processing", Some("tx_6"));
    assert!(!check(&book, &[&made, &other, &done]));
    let with_one = [&made, &begun, &done, &required];
    assert!(check(&book, &with_one), "it may have started");
    assert!(!check(&book, &[&made, &begun, &done, &required, &required]));
    book.sessions.get_mut("gs_5").unwrap().verified = true;
    assert!(check(&book, &with_one) && !check(&book, &all));
    let [consumed, rail, settled] = [
        "quote.consumed",
        "rail.pay_in.processing",
        "rail.pay_in.settled",
    ]
    .map(|kind| event(kind, None));
    let paid = &book.orders.hosted["tx_5"];
    assert!(hosted::check_events(paid, &[&consumed], &[&rail, &settled]).is_none());
    assert!(hosted::check_events(paid, &[], &[&rail, &settled]).is_some());
    assert!(hosted::check_events(paid, &[&consumed], &[&rail]).is_some());
    let swapped = in_widget("7", "tx_7", "swap");
    tell(&mut book, "swap", Kind::Pay, Some("qt_7"), swapped);
    let paid = book.orders.hosted.get_mut("tx_7").unwrap();
    assert_eq!(paid.rail, "sw_7");
    let source = ("USDC".to_owned(), "22.05".to_owned());
    assert_eq!(paid.source, Some(source));
    assert!(paid.read("completed"));
    assert!(hosted::check_events(paid, &[&consumed], &[]).is_none());
    assert!(hosted::check_events(paid, &[&consumed], &[&rail, &settled]).is_some());
    assert!(hosted::check_events(paid, &[], &[]).is_some());
}

#[test]
fn event_of_payment_has_its_deadline_or_its_code_and_its_words() {
    let (book, _) = clean();
    let is_shown = |kind: &str, more: Value| {
        let mut data = created("gs_5").json();
        let fields = data.as_object_mut().unwrap();
        fields.remove("client_secret");
        fields.extend(more.as_object().unwrap().clone());
        let event = Event {
            partner: "p".to_owned(),
            kind: format!("gate_session.{kind}"),
            object: "gs_5".to_owned(),
            body: json!({ "data": data }).to_string().into_bytes(),
            times: 1,
            taken: true,
        };
        shows(&book.sessions["gs_5"], &event)
    };
    let code = "provider_declined";
    let failure = json!({ "failure_code": code, "failure_message": "It was declined." });
    assert!(is_shown("failed", failure.clone()));
    assert!(!is_shown("failed", json!({ "failure_code": code })));
    assert!(!is_shown("failed", json!({})));
    let deadline = json!({ "pay_until": "later" });
    assert!(is_shown("processing", deadline.clone()));
    assert!(!is_shown("processing", json!({})));
    assert!(!is_shown("processing", failure) && !is_shown("failed", deadline));
}
