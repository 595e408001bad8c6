//! Compares quotes, pay-ins and pay-outs with the observations.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::Gate;
use super::super::book::{Book, Session};
use super::super::provider::Ended;
use super::Payment;
use crate::receiver::Event;

/// Objects that are read by id because they have no list: quotes, pay-ins and pay-outs.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pub(super) quotes: BTreeMap<String, Value>,
    pub(super) rails: BTreeMap<String, Value>,
}

/// Checks that quotes and the records that redeemed them are as created, or ended as their amounts require.
pub(super) fn check(book: &mut Book, seen: &Orders) -> Vec<String> {
    let known = &mut book.orders;
    let quotes = seen.quotes.iter();
    let quotes = quotes.filter_map(|(id, read)| known.quotes.get_mut(id)?.read(read, true));
    let mut breaches: Vec<String> = quotes.collect();
    let rails = seen.rails.iter();
    breaches.extend(rails.filter_map(|(id, read)| known.rails.get_mut(id)?.read(read)));
    breaches
}

/// Checks that every pay-in and pay-out has exactly one payment, with its status and of its session. A session that was paid in
/// time must complete.
pub(super) fn check_payments(
    book: &Book,
    payments: &BTreeMap<String, BTreeMap<String, Payment>>,
) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut of_rails: BTreeMap<&str, (&str, &Payment)> = BTreeMap::new();
    for (session, refid, payment) in payments
        .iter()
        .flat_map(|(session, of)| of.iter().map(move |(refid, is)| (session, refid, is)))
    {
        let Some(rail) = &payment.rail else { continue };
        if of_rails.insert(rail, (session, payment)).is_some() {
            breaches.push(format!("{rail} has two payments"));
        }
        let known = &book.orders;
        if !known.rails.contains_key(rail) && !known.hosted.contains_key(refid) {
            breaches.push(format!("a payment of {rail}, which no client received"));
        }
        let late = book
            .sessions
            .get(session)
            .is_some_and(|known| known.missed(payment));
        if late {
            breaches.push(format!("{session} has expired in spite of {payment:?}"));
        }
    }
    for (id, rail) in &book.orders.rails {
        let due = match rail.due_end() {
            "settled" => "completed",
            other => other,
        };
        let sound = of_rails.get(id.as_str()).is_some_and(|(session, payment)| {
            let goes_on = rail.end.is_none() && payment.status == "processing";
            *session == rail.session && (goes_on || payment.status == due)
        });
        if !sound {
            let paid = of_rails.get(id.as_str());
            breaches.push(format!("{id} for {} is paid {paid:?}", rail.session));
        }
    }
    breaches
}

impl Session {
    /// Whether the session was paid in time but expired anyway.
    fn missed(&self, payment: &Payment) -> bool {
        let in_time = payment.completed_at.is_some_and(|at| at < self.expires_at);
        in_time && self.end.as_deref() == Some("expired")
    }
}

/// Returns the pay-ins, pay-outs and payments in progress.
pub(super) fn in_progress(book: &Book) -> Vec<String> {
    let rails = book.orders.rails.iter();
    let rails = rails.filter(|(_, rail)| rail.end.is_none());
    let hosted = book.orders.hosted.iter();
    let hosted = hosted.filter(|(_, payment)| payment.end.is_none());
    let ids = rails.map(|(id, _)| id).chain(hosted.map(|(id, _)| id));
    ids.map(|id| format!("{id} is in progress")).collect()
}

/// Returns the payments that clients know have ended, and the ids of all payments that clients know, as rails name them.
pub(super) fn ended(gate: &Gate) -> (BTreeMap<String, Ended>, BTreeSet<String>) {
    let (mut ended, mut ids) = (BTreeMap::new(), BTreeSet::new());
    for shop in &gate.shops {
        let book = shop.book.lock();
        for (id, rail) in &book.orders.rails {
            ids.insert(id.clone());
            let text = |field| super::field(&rail.first, field).unwrap_or_default();
            let record = rail.end.as_ref().map(|_| Ended {
                kind: text("kind"),
                status: rail.due_end().to_owned(),
                fiat_amount: text("fiat_amount"),
                crypto_amount: text("crypto_amount"),
                source_asset: String::new(),
                source_amount: String::new(),
            });
            ended.extend(record.map(|record| (id.clone(), record)));
        }
        for paid in book.orders.hosted.values() {
            ids.insert(paid.rail.clone());
            let (source_asset, source_amount) = paid.source.clone().unwrap_or_default();
            let record = paid.end.as_deref().map(|end| Ended {
                kind: paid.kind.to_owned(),
                status: if end == "completed" { "settled" } else { end }.to_owned(),
                fiat_amount: paid.fiat_amount.clone(),
                crypto_amount: paid.crypto_amount.clone(),
                source_asset,
                source_amount,
            });
            ended.extend(record.map(|record| (paid.rail.clone(), record)));
        }
    }
    (ended, ids)
}

/// Checks for one event of a redemption, and none of a quote that was not redeemed.
pub(super) fn check_events_of_quote(book: &Book, id: &str, events: &[&Event]) -> Option<String> {
    let known = book.orders.quotes.get(id)?;
    let told: Vec<_> = events
        .iter()
        .map(|event| (event.kind.as_str(), event.data()))
        .collect();
    let end = known.end.clone().filter(|_| known.redeemed_by.is_some());
    let wanted: Vec<_> = end.map(|end| ("quote.consumed", end)).into_iter().collect();
    (told != wanted).then(|| format!("{id} is {known:?} and emitted {told:?}"))
}

/// Checks for one event of the creation and one of the end, each with the record of that time.
pub(super) fn check_events_of_rail(book: &Book, id: &str, events: &[&Event]) -> Option<String> {
    let known = book.orders.rails.get(id)?;
    let end = known.end.as_ref()?;
    let kind = known.first.get("kind").and_then(Value::as_str)?;
    let due = known.due_end();
    let wanted = BTreeMap::from([
        (format!("rail.{kind}.processing"), known.first.clone()),
        (format!("rail.{kind}.{due}"), end.clone()),
    ]);
    let told: BTreeMap<_, _> = events
        .iter()
        .map(|event| (event.kind.clone(), event.data()))
        .collect();
    let once = events.len() == wanted.len();
    (told != wanted || !once)
        .then(|| format!("{id} should have emitted {wanted:?}, and emitted {events:?}"))
}
