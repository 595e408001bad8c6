use kernel::address::AddressForm;

use super::*;

const ID: &str = "sw_test_01KSFVT4Z2V6B9C1D3F5G7H8JK";
const TRON: &str = "T9yD14Nj9j7xAB4dbGeiX9h8upfCg3PBbY";
const BITCOIN: &str = "1BitcoinEaterAddressDontSendf59kuE";

fn terms(kind: &str, fiat: &str) -> Value {
    let mut terms = json!({
        "kind": kind, "currency": "EUR", "asset": "USDT", "network": "tron", "fiat_amount": fiat, "crypto_amount": "107.10",
        "pay_until": "2026-05-25T12:30:00.000Z",
    });
    if kind == "swap" {
        terms["source_asset"] = "BTC".into();
        terms["source_network"] = "bitcoin".into();
        terms["source_amount"] = "0.002".into();
    }
    terms
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text, Bound::Lower).unwrap()
}

/// The body of a response.
fn body(response: &Response) -> Value {
    serde_json::from_str(&response.body).unwrap()
}

/// The report of the payment.
fn report(payments: &Payments) -> Value {
    body(&payments.report(ID))
}

fn status_of(payments: &Payments) -> Value {
    report(payments)["status"].clone()
}

/// A payment of an amount that has begun.
fn begun(kind: &str) -> Payments {
    let mut payments = Payments::default();
    payments.begin(ID, &terms(kind, "100.33"));
    payments
}

/// What a cancellation gets.
fn cancel(payments: &mut Payments) -> Value {
    let response = payments.cancel(ID, &terms("swap", "100.33"));
    body(&response)["status"].clone()
}

// rule: gate.payment.swap
#[test]
fn payer_is_told_what_they_send() {
    let note = "A trial: no money moves.";
    let told = |kind: &str| body(&instructions(ID, &terms(kind, "100.00")))["instructions"].clone();
    let swap = json!({
        "asset": "BTC", "network": "bitcoin", "amount": "0.002", "note": note, "address": BITCOIN,
    });
    assert_eq!(told("swap"), swap);
    let sale = json!({
        "asset": "USDT", "network": "tron", "amount": "107.10", "note": note, "address": TRON,
    });
    assert_eq!(told("pay_out"), sale);
    let purchase = json!({ "currency": "EUR", "amount": "100.00", "reference": ID, "note": note });
    assert_eq!(told("pay_in"), purchase);
}

// rule: gate.rail.instructions-repeat-terms
#[test]
fn address_has_the_form_of_its_network() {
    for (network, form) in [
        ("tron", AddressForm::Tron),
        ("solana", AddressForm::Solana),
        ("bitcoin", AddressForm::Bitcoin),
        ("ethereum", AddressForm::Evm),
    ] {
        assert_eq!(form.check(address_on(network)), Ok(()), "{network}");
    }
}

#[test]
fn payer_cancels_at_amount_of_cancellation() {
    let cancels = |terms: &Value| matches!(end_of(ID, terms), Some(Ended::Cancelled));
    let mut hosted = terms("pay_out", "100.32");
    hosted["payout"] = json!({ "iban": "DE89370400440532013000" });
    for terms in [terms("swap", "100.32"), terms("pay_in", "100.32"), hosted] {
        assert!(cancels(&terms), "{terms}");
    }
    for terms in [terms("pay_out", "100.32"), terms("swap", "100.00")] {
        assert!(
            matches!(end_of(ID, &terms), Some(Ended::Settled(_))),
            "{terms}"
        );
    }
}

// rule: rail.received
#[test]
fn part_that_has_arrived_is_reported_in_what_the_payer_sends() {
    let now = at("2026-05-25T12:10:00Z");
    let instant = "2026-05-25T12:10:00.000Z";
    for (kind, received) in [
        (
            "pay_in",
            json!({ "amount": "5", "currency": "EUR", "at": instant }),
        ),
        (
            "pay_out",
            json!({ "amount": "5", "asset": "USDT", "network": "tron", "at": instant }),
        ),
        (
            "swap",
            json!({ "amount": "5", "asset": "BTC", "network": "bitcoin", "at": instant }),
        ),
    ] {
        let mut payments = begun(kind);
        for bad in ["", "0", "-5", "5,0", "x"] {
            assert!(!payments.receive(ID, bad, now), "{bad}");
        }
        assert_eq!(report(&payments).get("received"), None);
        assert!(payments.receive(ID, "5", now));
        let expected = json!({ "id": ID, "status": "processing", "received": received });
        assert_eq!(report(&payments), expected);
        // It ends only by a command, and can no longer be cancelled.
        let settled = Ended::Settled("r-1".to_owned());
        assert!(!payments.end_by_itself(ID, settled.clone()));
        assert_eq!(cancel(&mut payments), "not_cancellable");
        assert_eq!(status_of(&payments), "processing");
        assert!(payments.end(ID, settled));
        assert_eq!(report(&payments)["received"], received);
        assert!(!payments.receive(ID, "5", now));
    }
}

// rule: gate.payment.deadline
#[test]
fn payment_honours_its_deadline() {
    let (before, after) = (at("2026-05-25T12:29:59.999Z"), at("2026-05-25T12:30:00Z"));
    // An unpaid payment can be cancelled.
    let mut unpaid = begun("swap");
    unpaid.0.get_mut(ID).unwrap().expire(after);
    assert_eq!(status_of(&unpaid), "processing");
    assert_eq!(cancel(&mut unpaid), "cancelled");
    // The rail returns a part.
    let mut part = begun("swap");
    assert!(part.receive(ID, "0.001", before));
    part.0.get_mut(ID).unwrap().expire(before);
    assert_eq!(status_of(&part), "processing");
    part.0.get_mut(ID).unwrap().expire(after);
    assert_eq!(cancel(&mut part), "not_cancellable");
    let failed = report(&part);
    let ends = [&failed["status"], &failed["code"], &failed["reason"]];
    assert_eq!(ends, ["failed", "expired", "expired"]);
    assert_eq!(failed["received"]["amount"], "0.001");
}

// rule: rail.watch, rail.findings
#[test]
fn ended_payment_can_end_otherwise_by_command() {
    let mut payments = begun("swap");
    assert!(!payments.come_back(ID) && !payments.settle_late(ID));
    let reason = Some(FailureReason::AmountDiffers);
    assert!(payments.end(ID, Ended::Failed("too_little".to_owned(), reason)));
    let failed =
        json!({ "id": ID, "status": "failed", "code": "too_little", "reason": "amount_differs" });
    assert_eq!(report(&payments), failed);
    assert!(!payments.come_back(ID));
    assert!(payments.settle_late(ID));
    let late = json!({ "id": ID, "status": "settled", "reference": format!("late-{ID}") });
    assert_eq!(report(&payments), late);
    assert!(!payments.settle_late(ID));
    assert!(payments.come_back(ID));
    assert_eq!(report(&payments), json!({ "id": ID, "status": "returned" }));
    assert!(!payments.come_back(ID) && !payments.settle_late(ID));
}

// rule: rail.http.unknown
#[test]
fn forgotten_payment_is_unknown() {
    let mut payments = begun("swap");
    assert!(payments.forget(ID));
    let unknown = payments.report(ID);
    assert_eq!((unknown.status, body(&unknown)), (404, json!({ "id": ID })));
    assert!(!payments.forget(ID));
}
