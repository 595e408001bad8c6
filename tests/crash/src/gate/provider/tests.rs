//! The books of a provider, and each of its lies.

use std::time::Duration;

use serde_json::{Value, json};

use super::ledger::LATE;
use super::lies::Lie;
use super::*;

/// An instant of the test, in seconds.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000).unwrap()
}

/// An instant after the end of every payment.
fn past() -> Timestamp {
    at(9)
}

fn terms(kind: &str, fiat: &str) -> Terms {
    let mut terms = json!({
        "kind": kind, "currency": "EUR", "asset": "USDT", "network": "tron", "fiat_amount": fiat, "crypto_amount": "21",
        "wallet_address": "T",
    });
    if kind == "swap" {
        terms["source_asset"] = json!("USDC");
        terms["source_network"] = json!("ethereum");
        terms["source_amount"] = json!("22");
    }
    Terms(terms)
}

/// A ledger with one payment, about which the rail lies so.
fn lying(lie: Option<Lie>, terms: &Terms) -> Ledger {
    let mut ledger = Ledger::new(1);
    let payment = Payment {
        terms: terms.clone(),
        lie,
        ..Payment::default()
    };
    ledger.payments.insert("pi_1".to_owned(), payment);
    ledger
}

fn honest(terms: &Terms) -> Ledger {
    lying(None, terms)
}

fn begun(lie: Option<Lie>, terms: &Terms) -> Ledger {
    let mut ledger = lying(lie, terms);
    ledger.begin("pi_1", terms, at(0));
    ledger
}

fn said(answer: &Answer) -> Option<&'static str> {
    answer.word.map(|word| word.status)
}

/// The status and the body of a response.
fn sent(answer: &Answer) -> (String, Value) {
    let (Reply::Keeps(text) | Reply::Sends(text)) = &answer.reply else {
        return (String::new(), Value::Null);
    };
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap();
    (
        status.to_owned(),
        serde_json::from_str(body).unwrap_or_default(),
    )
}

/// The next report that is not late.
fn report(ledger: &mut Ledger) -> Answer {
    let is_punctual = |seed: &u64| fastrand::Rng::with_seed(*seed).u8(0..100) >= LATE;
    let seed = (0..).find(is_punctual).unwrap();
    ledger.chance = fastrand::Rng::with_seed(seed);
    ledger.report("pi_1", past())
}

fn ended(status: &str, terms: &Terms) -> Ended {
    let text = |field: &str| terms.text(field).to_owned();
    Ended {
        kind: text("kind"),
        status: status.to_owned(),
        fiat_amount: text("fiat_amount"),
        crypto_amount: text("crypto_amount"),
        source_asset: text("source_asset"),
        source_amount: text("source_amount"),
    }
}

#[test]
fn amount_chooses_end_of_payment() {
    for (kind, fiat, end) in [
        ("pay_in", "20.00", "settled"),
        ("pay_in", "20.31", "failed"),
        ("pay_in", "20.32", "cancelled"),
        ("swap", "20.32", "cancelled"),
        ("pay_out", "20.32", "settled"),
        ("pay_in", "20.33", "settled"),
        ("pay_in", "20.34", "returned"),
        ("pay_in", "20.35", "failed"),
    ] {
        let terms = terms(kind, fiat);
        let mut ledger = begun(None, &terms);
        assert_eq!(said(&report(&mut ledger)), Some(end), "{kind} {fiat}");
        let status = status_of_record(end);
        let record = ended(status, &terms);
        let contradiction = ledger.contradicts("pi_1", &record, past());
        assert_eq!(contradiction, None, "{kind} {fiat}");
    }
    let mut ledger = honest(&terms("pay_in", "20.00"));
    assert_eq!(sent(&report(&mut ledger)).0, "404", "it has not begun");
    assert_eq!(sent(&ledger.report("pi_2", past())).0, "404");
}

#[test]
fn record_must_have_end_and_terms_of_ledger() {
    let terms = terms("swap", "20.00");
    let ledger = begun(None, &terms);
    let contradicts = |change: fn(&mut Ended)| {
        let mut record = ended("settled", &terms);
        change(&mut record);
        ledger.contradicts("pi_1", &record, past()).is_some()
    };
    assert!(!contradicts(|_| ()));
    assert!(contradicts(|it| it.status = "failed".to_owned()));
    assert!(contradicts(|it| it.kind = "pay_in".to_owned()));
    assert!(contradicts(|it| it.fiat_amount = "21.00".to_owned()));
    assert!(contradicts(|it| it.crypto_amount = "20".to_owned()));
    assert!(contradicts(|it| it.source_asset = "BTC".to_owned()));
    assert!(contradicts(|it| it.source_amount = "23".to_owned()));
}

#[test]
fn second_begin_changes_nothing_and_with_other_terms_is_a_breach() {
    let terms = terms("pay_in", "20.00");
    let mut ledger = begun(None, &terms);
    assert_eq!(said(&ledger.begin("pi_1", &terms, at(1))), Some("accepted"));
    assert_eq!((ledger.repeated(), ledger.breaches.len()), (1, 0));
    let other = ledger.begin("pi_1", &self::terms("pay_in", "21.00"), at(2));
    assert_eq!((said(&other), sent(&other).0.as_str()), (None, "409"));
    assert_eq!((ledger.repeated(), ledger.breaches.len()), (1, 1));
}

#[test]
fn cancelled_payment_never_moves_money() {
    let slow = terms("pay_in", "20.33");
    let mut ledger = honest(&slow);
    assert_eq!(
        said(&ledger.cancel("pi_1", &slow, at(0))),
        Some("cancelled")
    );
    assert_eq!(said(&ledger.begin("pi_1", &slow, at(1))), Some("accepted"));
    assert_eq!(said(&report(&mut ledger)), Some("cancelled"));
    let quick = terms("pay_in", "20.00");
    let mut ledger = begun(None, &quick);
    let late = ledger.cancel("pi_1", &quick, at(1));
    assert_eq!(said(&late), Some("not_cancellable"));
    let mut ledger = honest(&quick);
    ledger.cancel("pi_1", &quick, at(0));
    assert_eq!(said(&report(&mut ledger)), Some("settled"));
}

#[test]
fn instructions_repeat_terms_unless_rail_lies_about_them() {
    let asked = |lie: Option<Lie>, kind: &str| {
        let terms = terms(kind, "20.00");
        let mut ledger = lying(lie, &terms);
        let (_, mut body) = sent(&ledger.instructions("pi_1", &terms));
        let is_other = ledger.payments["pi_1"].asked_otherwise;
        (is_other, body["id"].take(), body["instructions"].take())
    };
    for kind in ["pay_in", "pay_out", "swap"] {
        let (is_other, id, honest) = asked(None, kind);
        assert_eq!((is_other, &id), (false, &json!("pi_1")));
        let (amount, asset) = match kind {
            "pay_in" => ("20.00", "USDT"),
            "pay_out" => ("21", "USDT"),
            _ => ("22", "USDC"),
        };
        assert_eq!(
            (&honest["amount"], &honest["asset"]),
            (&json!(amount), &json!(asset))
        );
        for (lie, field) in [
            (Lie::AsksOtherAmount, "amount"),
            (Lie::AsksOtherCurrency, "currency"),
            (Lie::AsksOtherAsset, "asset"),
            (Lie::AsksOtherNetwork, "network"),
            (Lie::AsksOtherAddress, "address"),
        ] {
            let (is_other, _, told) = asked(Some(lie), kind);
            let differs = told[field] != honest[field];
            assert_eq!(is_other, differs, "{kind} {lie:?}");
            let is_possible = kind != "pay_in" || lie != Lie::AsksOtherAddress;
            assert_eq!(differs, is_possible, "{kind} {lie:?}");
        }
        let (is_other, other, told) = asked(Some(Lie::AsksForAnother), kind);
        assert!(is_other && other != id && told == honest);
    }
}

#[test]
fn lying_rail_says_processing_lies_twice_and_then_says_the_truth() {
    use Arrived::{Less, More, Other, Unsaid};
    for (lie, untrue) in [
        (Lie::LessArrived, ("processing", Less)),
        (Lie::MoreArrived, ("processing", More)),
        (Lie::OtherCurrencyArrived, ("settled", Other)),
        (Lie::OtherAssetArrived, ("settled", Other)),
        (Lie::OtherNetworkArrived, ("settled", Other)),
        (Lie::SettlesWithLess, ("settled", Less)),
    ] {
        let mut ledger = begun(Some(lie), &terms("swap", "20.00"));
        let reports: Vec<_> = (0..4)
            .map(|_| {
                let word = report(&mut ledger).word.unwrap();
                (word.status, word.arrived)
            })
            .collect();
        let all = [("processing", Unsaid), untrue, untrue, ("settled", Unsaid)];
        assert_eq!(reports, all, "{lie:?}");
        assert_eq!(ledger.lies, 2);
    }
}

#[test]
fn invalid_reports_say_nothing() {
    let second = |lie| {
        let mut ledger = begun(Some(lie), &terms("pay_in", "20.00"));
        report(&mut ledger);
        let second = report(&mut ledger);
        assert_eq!(said(&second), None, "{lie:?}");
        (sent(&second), matches!(second.reply, Reply::Waits))
    };
    let ((status, body), _) = second(Lie::Forgets);
    assert_eq!((status.as_str(), body), ("404", json!({ "id": "pi_1" })));
    let ((status, body), _) = second(Lie::IsHidden);
    assert_eq!((status.as_str(), body), ("404", Value::Null), "no JSON");
    let ((status, body), _) = second(Lie::NamesAnother);
    assert_eq!((status.as_str(), &body["id"]), ("200", &json!("pi_0")));
    assert!(second(Lie::IsSilent).1);
    let terms = terms("pay_in", "20.00");
    let mut ledger = lying(Some(Lie::NamesAnother), &terms);
    assert_eq!(said(&ledger.begin("pi_1", &terms, at(0))), None);
    assert_eq!(said(&ledger.begin("pi_1", &terms, at(1))), Some("accepted"));
}

#[test]
fn cancelled_payment_is_not_lied_about() {
    let slow = terms("pay_in", "20.33");
    let mut ledger = begun(Some(Lie::SettlesWithLess), &slow);
    ledger.payments.get_mut("pi_1").unwrap().takes = Duration::from_secs(60);
    report(&mut ledger);
    ledger.cancel("pi_1", &slow, at(1));
    assert_eq!(said(&report(&mut ledger)), Some("cancelled"));
}

#[test]
fn received_is_what_the_customer_pays_with_more_digits() {
    let mut ledger = begun(None, &terms("pay_in", "20.35"));
    let (_, less) = sent(&report(&mut ledger));
    assert_eq!(less["reason"], "amount_differs");
    assert_eq!(less["received"]["amount"], "1.5");
    let received = |kind: &str| {
        let mut ledger = begun(None, &terms(kind, "20.00"));
        ledger.payments.get_mut("pi_1").unwrap().says_received = true;
        let answer = report(&mut ledger);
        assert_eq!(answer.word.unwrap().arrived, Arrived::Whole);
        let (_, mut body) = sent(&answer);
        let mut received = body["received"].take();
        received.as_object_mut().unwrap().remove("at").unwrap();
        received
    };
    let fiat = json!({ "amount": "20.00000000000009", "currency": "EUR" });
    assert_eq!(received("pay_in"), fiat);
    let crypto = json!({ "amount": "22.000000000009", "asset": "USDC", "network": "ethereum" });
    assert_eq!(received("swap"), crypto);
}

#[test]
fn rail_changes_only_ends_that_it_lies_about() {
    let changed = |lie, fiat: &str| {
        let mut ledger = begun(lie, &terms("pay_in", fiat));
        ledger.change_end("pi_1", past());
        said(&report(&mut ledger))
    };
    assert_eq!(changed(None, "20.00"), Some("settled"));
    assert_eq!(changed(Some(Lie::LessArrived), "20.00"), Some("processing"));
    let changes = Some(Lie::ChangesEnd);
    assert_eq!(changed(changes, "20.31"), Some("settled"));
    assert_eq!(changed(changes, "20.32"), Some("settled"));
    assert_eq!(changed(changes, "20.34"), Some("returned"));
    let mut ledger = begun(changes, &terms("pay_in", "20.00"));
    assert_eq!(said(&report(&mut ledger)), Some("settled"));
    ledger.change_end("pi_1", past());
    let word = said(&report(&mut ledger));
    assert!(matches!(word, Some("returned" | "failed")), "{word:?}");
    for _ in 0..20 {
        ledger.change_end("pi_1", past());
    }
    assert_eq!(said(&report(&mut ledger)), word, "it changes once");
    let payment = &ledger.payments["pi_1"];
    assert_eq!(payment.status(past()), "settled", "the first end");
}

#[test]
fn verifier_approves_users_and_lies_in_two_reports() {
    let mut users = Users::new(1);
    let user = |lie| User {
        lie,
        decided_at: at(5),
        starts: 0,
        reports: 0,
        said: Vec::new(),
    };
    users.users.insert("ver_1".to_owned(), user(None));
    assert_eq!(said(&users.start("ver_1", "20.63", at(1))), Some("pending"));
    assert_eq!(said(&users.report("ver_1", at(4))), Some("pending"));
    assert_eq!(said(&users.report("ver_1", at(5))), Some("approved"));
    assert_eq!(sent(&users.report("ver_2", at(5))).0, "404");
    for lie in [
        Lie::Forgets,
        Lie::IsHidden,
        Lie::NamesAnother,
        Lie::IsSilent,
    ] {
        users.users.insert("ver_1".to_owned(), user(Some(lie)));
        let reports = [(); 3].map(|()| said(&users.report("ver_1", at(9))));
        assert_eq!(reports, [None, None, Some("approved")], "{lie:?}");
    }
    let mut users = Users::new(1);
    let starts = [(); 2].map(|()| said(&users.start("ver_1", "20.61", at(1))));
    assert_eq!(starts[1], Some("approved"), "a repeated start is answered");
}

/// A call with a secret.
fn call(line: &str, secret: &str, body: &Value) -> Request {
    Request {
        head: format!("{line} HTTP/1.1\r\nAuthorization: Bearer {secret}\r\n\r\n"),
        body: body.to_string().into_bytes(),
    }
}

#[test]
fn call_with_another_secret_or_without_configuration_is_a_breach() {
    let breaches = |line: &str, secret: &str, is_configured: bool| {
        let mut books = Books::new("first", 1);
        books.is_configured = is_configured;
        books.respond(&call(line, secret, &Value::Null), at(0));
        books.breaches().count()
    };
    let (payment, user) = ("GET /v1/payments/pi_1", "GET /v1/verifications/ver_1");
    let secret = |upstream: &str| super::secret("first", upstream);
    assert_eq!(breaches(payment, &secret("rail"), true), 0);
    assert_eq!(breaches(user, &secret("verifier"), true), 0);
    assert_eq!(breaches(payment, &secret("verifier"), true), 1);
    assert_eq!(breaches(payment, &super::secret("second", "rail"), true), 1);
    assert_eq!(breaches(payment, &secret("rail"), false), 1);
    assert_eq!(breaches("GET /v2/payments", &secret("rail"), true), 1);
}

#[test]
fn response_that_is_lost_was_not_said() {
    let mut books = Books::new("first", 1);
    books.is_configured = true;
    let Terms(terms) = terms("pay_in", "20.00");
    let begin = call("PUT /v1/payments/pi_1", &secret("first", "rail"), &terms);
    let mut sent = 0;
    for _ in 0..500 {
        let reply = books.respond(&begin, at(0));
        sent += usize::from(!matches!(reply, Reply::Closes));
    }
    let payment = &books.ledger.payments["pi_1"];
    assert_eq!(payment.begins.len(), 500);
    assert!(sent < 500 && books.lost == 500 - sent as u64, "{sent}");
    // The first one may have been about another payment.
    let said = payment.said.len();
    assert!(said == sent || said + 1 == sent, "{said} of {sent}");
    assert!(books.called.contains("pi_1"));
}
