//! Compares the gate's rows with the books of the providers.
//!
//! A row is read before the books, so that whatever the gate has stored was said before. The books have every response that was sent, and
//! no response that was lost.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use kernel::Timestamp;
use test_support::time;

use super::super::Gate;
use super::super::provider::{Arrived, Books, Ended, NOT_CANCELLABLE, Payment, status_of_record};
use super::super::rows::{PaymentRow, Rows, VerificationRow};
use super::super::writing::notification;
use super::orders;
use crate::Result;
use crate::http::Client;

/// Checks at any time that each payment and verification is where its row says, and that what the rows say was said. Then the rails may
/// change the ends that the gate has stored.
pub(super) fn check(gate: &Gate) -> Result<Vec<String>> {
    let Some(upstreams) = &gate.upstreams else {
        return Ok(Vec::new());
    };
    let rows = Rows::read(&gate.installation)?;
    let found = upstreams.with_books(|books| contradictions(&rows, books));
    let ended = rows.payments.iter().filter(|row| row.has_ended());
    upstreams.change_ends(ended.map(|row| &row.id), time::wall());
    Ok(found)
}

/// Checks that every payment has ended as its rail says, with the open item that the rail's present status requires. Notifies the gate of
/// the others.
pub(super) fn check_ends(gate: &Gate, address: SocketAddr) -> Result<Vec<String>> {
    let Some(upstreams) = &gate.upstreams else {
        return Ok(Vec::new());
    };
    let rows = Rows::read(&gate.installation)?;
    let known = orders::ended(gate);
    let now = time::wall();
    let (mut found, open) = upstreams.with_books(|books| {
        let mut found = contradictions(&rows, books);
        found.extend(disagreements(&known, books, now));
        (found, open_ends(&rows.payments, books, now))
    });
    let mut client = Client::new(address);
    for (id, complaint) in open {
        let [holder, _] = gate.signers(&id);
        // A notification that is lost is sent again, because the payment then is still open.
        let _ = notification(&holder.secret, &id).map(|bytes| client.call(&bytes));
        found.push(complaint);
    }
    Ok(found)
}

impl PaymentRow {
    fn has_ended(&self) -> bool {
        self.status != "processing"
    }
}

/// What contradicts the books at any time.
pub(super) fn contradictions(rows: &Rows, books: [&Books; 2]) -> Vec<String> {
    let mut found = Vec::new();
    for of_provider in books {
        let name = of_provider.name;
        let breaches = of_provider.breaches();
        found.extend(breaches.map(|breach| format!("the {name} provider: {breach}")));
    }
    let [one, other] = books;
    let both = one.called.intersection(&other.called);
    found.extend(both.map(|id| format!("both providers were called about {id}")));
    for row in &rows.payments {
        let payment = payment_of(row, books);
        let why = of_payment(row, payment, books).into_iter();
        found.extend(why.map(|why| format!("{row:?}: {why}; its rail: {payment:?}")));
    }
    for row in &rows.verifications {
        let why = of_verification(row, books).into_iter();
        found.extend(why.map(|why| format!("{row:?}: {why}")));
    }
    found
}

/// What clients know, and the ledgers do not have so: the ends and the terms of payments, and payments that no client received.
pub(super) fn disagreements(
    (ended, known): &(BTreeMap<String, Ended>, BTreeSet<String>),
    books: [&Books; 2],
    now: Timestamp,
) -> Vec<String> {
    let mut found = Vec::new();
    for ledger in books.map(|books| &books.ledger) {
        let ended = ended.iter();
        found.extend(ended.filter_map(|(id, record)| ledger.contradicts(id, record, now)));
        let begun = ledger.payments.iter();
        let strays = begun.filter(|(id, it)| !it.begins.is_empty() && !known.contains(*id));
        found.extend(strays.map(|(id, _)| format!("{id} has begun, and no client received it")));
    }
    found
}

/// The payment in the ledger of the rail that holds it.
fn payment_of<'b>(row: &PaymentRow, books: [&'b Books; 2]) -> Option<&'b Payment> {
    let holder = books.into_iter().find(|books| books.name == row.rail)?;
    holder.ledger.payments.get(&row.id)
}

/// Whether another provider than this one was called about an id.
fn is_called_elsewhere(name: &str, id: &str, books: [&Books; 2]) -> bool {
    let mut others = books.into_iter().filter(|books| books.name != name);
    others.any(|books| books.called.contains(id))
}

/// The complaints that are true.
fn complaints<const N: usize>(all: [(bool, &'static str); N]) -> Vec<&'static str> {
    let found = all.into_iter().filter(|(is_true, _)| *is_true);
    found.map(|(_, complaint)| complaint).collect()
}

fn of_payment(
    row: &PaymentRow,
    payment: Option<&Payment>,
    books: [&Books; 2],
) -> Vec<&'static str> {
    let is_elsewhere = is_called_elsewhere(&row.rail, &row.id, books);
    let has_begun = row.acknowledged_at.is_some() || row.has_ended();
    let is_unknown = has_begun && payment.is_none();
    let mut found = complaints([
        (is_elsewhere, "another rail was called about it"),
        (!row.is_verified, "its user was not verified before it"),
        (is_unknown, "its rail does not know it"),
    ]);
    if let Some(payment) = payment {
        let differs = payment.asked_otherwise;
        found.extend(complaints([
            (differs, "its instructions differed from its terms"),
            (
                begins_again(row, payment),
                "it began again after its acknowledgement was stored",
            ),
            (
                !is_acknowledged(row, payment),
                "its acknowledgement contradicts what its rail said",
            ),
            (!has_said_end(row, payment), "its rail never said its end"),
            (
                !explains_item(row, payment),
                "its rail never said what its open item says",
            ),
        ]));
    }
    found
}

/// A cancellation that the rail refuses is stored during a poll, whose request to begin may still be on its way.
fn begins_again(row: &PaymentRow, payment: &Payment) -> bool {
    let mut said = payment.said.iter();
    let is_refused = said.any(|word| word.status == NOT_CANCELLABLE);
    let stored = row.acknowledged_at.filter(|_| !is_refused);
    stored.is_some_and(|stored| payment.begins.iter().any(|begin| *begin > stored))
}

/// Whether the rail had said that it knows the payment when the gate stored that. A record that ends is acknowledged.
fn is_acknowledged(row: &PaymentRow, payment: &Payment) -> bool {
    match row.acknowledged_at {
        Some(stored) => payment.said.iter().any(|word| word.at <= stored),
        None => !row.has_ended(),
    }
}

/// Whether the rail has said the end of the record, in a report that fits the terms.
fn has_said_end(row: &PaymentRow, payment: &Payment) -> bool {
    let sound = payment.said.iter().filter(|word| word.is_sound());
    let mut ends = sound.map(|word| status_of_record(word.status));
    !row.has_ended() || ends.any(|end| end == row.status)
}

/// Whether something that the rail has said, perhaps before other words, leads to the open item.
fn explains_item(row: &PaymentRow, payment: &Payment) -> bool {
    let said = |statuses: &[&str]| {
        let mut words = payment.said.iter();
        words.any(|word| statuses.contains(&word.status))
    };
    let arrived = |what| payment.said.iter().any(|word| word.arrived == what);
    let Some(item) = row.open_item.as_deref() else {
        return true;
    };
    match (row.status.as_str(), item) {
        ("processing", "underpaid") => arrived(Arrived::Less),
        ("processing", "overpaid") => arrived(Arrived::More),
        ("failed" | "cancelled", "late") => {
            let money = [Arrived::Less, Arrived::Whole, Arrived::More];
            said(&["settled"]) || money.into_iter().any(arrived)
        }
        ("settled", "overpaid") => arrived(Arrived::More),
        ("settled", "returned") => said(&["returned"]),
        ("settled", "retracted") => said(&["failed", "cancelled"]),
        _ => false,
    }
}

/// The open item of a record that has ended, for the status that its rail reports now.
fn due_item(record: &str, word: &str) -> Option<&'static str> {
    match (record, word) {
        ("failed" | "cancelled", "settled") => Some("late"),
        ("settled", "returned") => Some("returned"),
        ("settled", "failed" | "cancelled") => Some("retracted"),
        _ => None,
    }
}

/// Whether an open item stays, although the status that the rail reports now requires none: a cancellation does not return what has
/// arrived, and a settlement that does not say how much has arrived returns nothing.
fn keeps_item(row: &PaymentRow, word: &str) -> bool {
    let item = row.open_item.as_deref();
    matches!(
        (row.status.as_str(), item, word),
        ("cancelled", Some("late"), "cancelled") | ("settled", Some("overpaid"), "settled")
    )
}

/// The payments that must still change, each with the complaint.
pub(super) fn open_ends(
    rows: &[PaymentRow],
    books: [&Books; 2],
    now: Timestamp,
) -> Vec<(String, String)> {
    let mut open = Vec::new();
    for row in rows {
        let payment = payment_of(row, books);
        let end = payment.map(|payment| status_of_record(payment.status(now)));
        let word = payment.map_or("", |payment| payment.word(now));
        let due = due_item(&row.status, word);
        let has_end = end == Some(row.status.as_str());
        let has_item = row.open_item.as_deref() == due || keeps_item(row, word);
        let why = complaints([
            (!row.has_ended(), "it has not ended"),
            (row.has_ended() && !has_end, "its rail has another end"),
            (
                row.has_ended() && !has_item,
                "the status at its rail requires another open item",
            ),
        ]);
        let complaint = |why: &str| format!("{row:?}: {why}: {due:?}; its rail: {payment:?}");
        let why = why.into_iter();
        open.extend(why.map(|why| (row.id.clone(), complaint(why))));
    }
    open
}

fn of_verification(row: &VerificationRow, books: [&Books; 2]) -> Vec<&'static str> {
    let name = row.verifier.as_deref().unwrap_or_default();
    let holder = books.into_iter().find(|books| books.name == name);
    let user = holder.and_then(|books| books.users.users.get(&row.id));
    let has_ended = matches!(row.status.as_str(), "approved" | "rejected");
    let said = user.is_some_and(|user| user.said.iter().any(|word| word.status == row.status));
    let is_elsewhere = is_called_elsewhere(name, &row.id, books);
    complaints([
        (is_elsewhere, "another verifier was called about it"),
        (has_ended && !said, "its verifier never said its end"),
    ])
}
