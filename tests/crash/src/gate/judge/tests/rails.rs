//! Checks of the rows against the books of the providers.

use std::collections::{BTreeMap, BTreeSet};

use kernel::Timestamp;
use serde_json::json;

use super::super::rails::{contradictions, disagreements, open_ends};
use crate::gate::provider::{Arrived, Books, Ended, Payment, User, Word};
use crate::gate::rows::{PaymentRow, Rows, VerificationRow};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000).unwrap()
}

/// Rows of the gate, and the books of two providers.
struct Scene {
    rows: Rows,
    first: Books,
    second: Books,
}

impl Scene {
    fn payment(&mut self) -> &mut Payment {
        self.first.ledger.payments.get_mut("pi_1").unwrap()
    }

    fn row(&mut self) -> &mut PaymentRow {
        self.rows.payments.first_mut().unwrap()
    }

    fn verification(&mut self) -> &mut VerificationRow {
        self.rows.verifications.first_mut().unwrap()
    }

    /// Makes the rail say a status after the end.
    fn change(&mut self, status: &'static str, item: Option<&str>) {
        let payment = self.payment();
        payment.changed = Some(status);
        payment.said.push(Word::new(status, at(4)));
        self.row().open_item = item.map(str::to_owned);
    }

    /// Makes the payment end in another way than settled, as both know.
    fn end(&mut self, hundredths: &str, status: &'static str) {
        let fiat = format!("20.{hundredths}");
        let payment = self.payment();
        payment.terms.0["fiat_amount"] = json!(fiat);
        payment.said.push(Word::new(status, at(3)));
        self.row().status = status.to_owned();
    }
}

/// A payment and a user that the first provider holds: settled and approved.
fn scene() -> Scene {
    let (mut first, second) = (Books::new("first", 1), Books::new("second", 1));
    let mut payment = Payment {
        begins: vec![at(1)],
        said: vec![Word::new("accepted", at(1)), Word::new("settled", at(2))],
        ..Payment::default()
    };
    payment.terms.0 = json!({ "kind": "pay_in", "fiat_amount": "20.00", "crypto_amount": "21" });
    let user = User {
        lie: None,
        decided_at: at(1),
        starts: 1,
        reports: 0,
        said: vec![Word::new("approved", at(1))],
    };
    first.ledger.payments.insert("pi_1".to_owned(), payment);
    first.users.users.insert("ver_1".to_owned(), user);
    first.called = ["pi_1", "ver_1"].map(str::to_owned).into();
    let rows = Rows {
        payments: vec![PaymentRow {
            id: "pi_1".to_owned(),
            rail: "first".to_owned(),
            status: "settled".to_owned(),
            acknowledged_at: Some(at(2)),
            open_item: None,
            is_verified: true,
        }],
        verifications: vec![VerificationRow {
            id: "ver_1".to_owned(),
            verifier: Some("first".to_owned()),
            status: "approved".to_owned(),
        }],
    };
    Scene {
        rows,
        first,
        second,
    }
}

/// The complaints at any time about a scene that was changed.
fn found(change: impl FnOnce(&mut Scene)) -> Vec<String> {
    let mut scene = scene();
    change(&mut scene);
    contradictions(&scene.rows, [&scene.first, &scene.second])
}

/// The complaints at the end.
fn open(change: impl FnOnce(&mut Scene)) -> Vec<String> {
    let mut scene = scene();
    change(&mut scene);
    let books = [&scene.first, &scene.second];
    let open = open_ends(&scene.rows.payments, books, at(9));
    open.into_iter().map(|(_, complaint)| complaint).collect()
}

fn has(complaints: &[String], text: &str) -> bool {
    complaints.iter().any(|complaint| complaint.contains(text))
}

#[test]
fn rows_that_repeat_the_books_have_no_complaint() {
    assert_eq!(found(|_| ()), [""; 0]);
    assert_eq!(open(|_| ()), [""; 0]);
    let just_made = |scene: &mut Scene| {
        scene.first.ledger.payments.clear();
        let row = scene.row();
        row.status = "processing".to_owned();
        row.acknowledged_at = None;
    };
    assert_eq!(found(just_made), [""; 0], "no poll was made yet");
}

#[test]
fn call_about_an_id_of_another_provider_is_detected() {
    let asked = |id: &'static str| {
        move |scene: &mut Scene| {
            scene.second.called.insert(id.to_owned());
        }
    };
    let payment = found(asked("pi_1"));
    assert!(has(&payment, "another rail was called about it"));
    assert!(has(&payment, "both providers were called about pi_1"));
    assert!(has(&found(asked("ver_1")), "another verifier was called"));
    assert_eq!(found(asked("pi_2")), [""; 0]);
    let moved = found(|scene| scene.row().rail = "second".to_owned());
    assert!(has(&moved, "another rail was called about it"));
    assert!(has(&moved, "its rail does not know it"));
    let moved = found(|scene| scene.verification().verifier = Some("second".to_owned()));
    assert!(has(&moved, "another verifier was called about it"));
    let unstarted = |scene: &mut Scene| {
        let row = scene.verification();
        row.verifier = None;
        row.status = "required".to_owned();
    };
    assert!(has(&found(unstarted), "another verifier was called"));
}

#[test]
fn begin_after_a_stored_acknowledgement_is_detected() {
    let again = |seconds: i64| found(move |scene| scene.payment().begins.push(at(seconds)));
    assert_eq!(again(2), [""; 0], "the response to the first may be lost");
    assert!(has(&again(3), "it began again after its acknowledgement"));
}

#[test]
fn acknowledgement_that_the_rail_has_not_sent_is_detected() {
    let contradicts = "its acknowledgement contradicts what its rail said";
    let too_early = found(|scene| scene.row().acknowledged_at = Some(at(0)));
    assert!(has(&too_early, contradicts));
    let forgotten = found(|scene| scene.row().acknowledged_at = None);
    assert!(has(&forgotten, contradicts), "it has ended");
}

#[test]
fn payment_with_other_instructions_or_without_verification_is_detected() {
    let asked = found(|scene| scene.payment().asked_otherwise = true);
    assert!(has(&asked, "its instructions differed from its terms"));
    let unverified = found(|scene| scene.row().is_verified = false);
    assert!(has(&unverified, "its user was not verified before it"));
}

#[test]
fn end_that_its_rail_has_not_said_is_detected() {
    let said = |status: &'static str, arrived, record: &'static str| {
        found(move |scene| {
            let word = Word {
                arrived,
                ..Word::new(status, at(2))
            };
            scene.payment().said = vec![word];
            scene.row().status = record.to_owned();
        })
    };
    for (status, arrived, record, is_said) in [
        ("settled", Arrived::Unsaid, "settled", true),
        ("settled", Arrived::Whole, "settled", true),
        ("settled", Arrived::Less, "settled", false),
        ("settled", Arrived::More, "settled", false),
        ("settled", Arrived::Other, "settled", false),
        ("accepted", Arrived::Unsaid, "settled", false),
        ("processing", Arrived::Unsaid, "settled", false),
        ("returned", Arrived::Unsaid, "failed", true),
        ("failed", Arrived::Less, "failed", true),
        ("failed", Arrived::Other, "failed", false),
        ("failed", Arrived::Unsaid, "cancelled", false),
        ("cancelled", Arrived::Unsaid, "cancelled", true),
        ("accepted", Arrived::Unsaid, "processing", true),
    ] {
        let complains = has(
            &said(status, arrived, record),
            "its rail never said its end",
        );
        assert_eq!(complains, !is_said, "{status} {arrived:?} {record}");
    }
    let rejected = found(|scene| scene.verification().status = "rejected".to_owned());
    assert!(has(&rejected, "its verifier never said its end"));
}

#[test]
fn open_item_that_nothing_explains_is_detected() {
    let item = |record: &'static str, item: &'static str, said: &'static str, arrived| {
        let found = found(move |scene| {
            let payment = scene.payment();
            let ends = ["accepted", "settled", "failed", "cancelled"].into_iter();
            let is_record = |end: &&str| *end == record;
            let words = ends.filter(is_record).map(|end| Word::new(end, at(2)));
            payment.said = words.collect();
            payment.said.push(Word {
                arrived,
                ..Word::new(said, at(2))
            });
            scene.row().status = record.to_owned();
            scene.row().open_item = Some(item.to_owned());
        });
        has(&found, "its rail never said what its open item says")
    };
    let unsaid = Arrived::Unsaid;
    assert!(!item(
        "processing",
        "underpaid",
        "processing",
        Arrived::Less
    ));
    assert!(!item("processing", "overpaid", "processing", Arrived::More));
    assert!(item("processing", "underpaid", "processing", unsaid));
    assert!(item("processing", "overpaid", "processing", Arrived::Less));
    assert!(item("settled", "underpaid", "processing", Arrived::Less));
    for (record, finding, word) in [
        ("failed", "late", "settled"),
        ("cancelled", "late", "settled"),
        ("settled", "returned", "returned"),
        ("settled", "retracted", "failed"),
        ("settled", "retracted", "cancelled"),
    ] {
        assert!(!item(record, finding, word, unsaid), "{record} {finding}");
        assert!(item(record, finding, "processing", unsaid));
        assert!(item("processing", finding, word, unsaid));
    }
    assert!(item("failed", "returned", "returned", unsaid));
    assert!(item("settled", "late", "settled", unsaid));
}

#[test]
fn breach_that_a_provider_has_noticed_is_reported() {
    let noticed = found(|scene| scene.second.notice("it was called with another secret"));
    assert!(has(&noticed, "the second provider: it was called"));
}

#[test]
fn payment_that_has_not_ended_as_at_its_rail_is_detected() {
    let processing = open(|scene| scene.row().status = "processing".to_owned());
    assert!(has(&processing, "it has not ended"));
    let failed = open(|scene| scene.row().status = "failed".to_owned());
    assert!(has(&failed, "its rail has another end"));
    let unknown = open(|scene| scene.first.ledger.payments.clear());
    assert!(has(&unknown, "its rail has another end"));
    assert_eq!(open(|scene| scene.end("31", "failed")), [""; 0]);
    let came_back = open(|scene| {
        scene.end("34", "returned");
        scene.row().status = "failed".to_owned();
    });
    assert_eq!(came_back, [""; 0]);
}

#[test]
fn missing_or_outdated_open_item_is_detected() {
    let changed = |status: &'static str, item: Option<&'static str>| {
        open(move |scene| scene.change(status, item))
    };
    let requires = "requires another open item";
    for (status, item) in [("returned", "returned"), ("failed", "retracted")] {
        assert_eq!(changed(status, Some(item)), [""; 0]);
        assert!(has(&changed(status, None), requires));
        assert!(has(&changed(status, Some("late")), requires));
    }
    assert!(has(&changed("settled", Some("returned")), requires));
    let late = |hundredths: &'static str, end: &'static str, item: Option<&'static str>| {
        open(move |scene| {
            scene.end(hundredths, end);
            scene.change("settled", item);
        })
    };
    for (hundredths, end) in [("31", "failed"), ("32", "cancelled")] {
        assert_eq!(late(hundredths, end, Some("late")), [""; 0]);
        assert!(has(&late(hundredths, end, None), requires));
    }
}

#[test]
fn begun_payment_without_client_and_other_terms_are_detected() {
    let disagreeing = |fiat: &str, known: &str| {
        let scene = scene();
        let record = Ended {
            kind: "pay_in".to_owned(),
            status: "settled".to_owned(),
            fiat_amount: fiat.to_owned(),
            crypto_amount: "21".to_owned(),
            source_asset: String::new(),
            source_amount: String::new(),
        };
        let ended = BTreeMap::from([("pi_1".to_owned(), record)]);
        let known = BTreeSet::from([known.to_owned()]);
        disagreements(&(ended, known), [&scene.first, &scene.second], at(9))
    };
    assert_eq!(disagreeing("20.00", "pi_1"), [""; 0]);
    assert!(has(&disagreeing("21.00", "pi_1"), "its rail says"));
    let stray = disagreeing("20.00", "pi_2");
    assert!(has(&stray, "pi_1 has begun, and no client received it"));
}
