//! Compares the payments in widgets with the observations.

use std::collections::BTreeMap;

use super::super::book::{Book, Hosted};
use super::Payment;
use crate::receiver::Event;

/// Checks that every payment still has its transaction and its rail record, has ended as its amount and its cancellations allow, and
/// agrees with the later quotes of its session.
pub(super) fn check(
    book: &mut Book,
    payments: &BTreeMap<String, BTreeMap<String, Payment>>,
) -> Vec<String> {
    let mut breaches = Vec::new();
    for (refid, known) in &mut book.orders.hosted {
        let listed = payments.get(&known.session).and_then(|of| of.get(refid));
        let sound = listed.is_some_and(|listed| {
            listed.rail.as_ref() == Some(&known.rail) && known.read(&listed.status)
        });
        if !sound {
            breaches.push(format!("{refid} is {listed:?} in spite of {known:?}"));
        }
    }
    let orders = &book.orders;
    for (refid, known) in &orders.hosted {
        let contradiction = orders.contradicts_later_quote(known);
        breaches.extend(contradiction.map(|why| format!("{refid} is {known:?}, and {why}")));
    }
    breaches
}

/// The kinds and references of a session's events about its payments: the begin and the failure of each payment in a widget, and
/// the completion.
pub(super) fn events_of_payments(
    book: &Book,
    session: &str,
    payments: Option<&BTreeMap<String, Payment>>,
) -> Vec<(String, String)> {
    let mut events = Vec::new();
    for (refid, payment) in payments.into_iter().flatten() {
        let mut add = |kind: &str| events.push((format!("gate_session.{kind}"), refid.clone()));
        let hosted = book.orders.hosted.get(refid);
        let hosted = hosted.is_some_and(|hosted| hosted.session == session);
        if hosted {
            add("processing");
        }
        match payment.status.as_str() {
            "completed" => add("completed"),
            "failed" if hosted => add("failed"),
            _ => {}
        }
    }
    events
}

/// Checks for one event of the redemption of the quote, and two of the rail record, unless it is of a swap.
pub(super) fn check_events(
    paid: &Hosted,
    of_quote: &[&Event],
    of_rail: &[&Event],
) -> Option<String> {
    let kinds = |events: &[&Event]| {
        let mut kinds: Vec<String> = events.iter().map(|event| event.kind.clone()).collect();
        kinds.sort_unstable();
        kinds
    };
    let end = match (paid.end.as_deref()?, paid.kind) {
        ("completed", _) => "settled",
        // On the rail routes, a cancelled pay-out has failed.
        ("cancelled", "pay_out") => "failed",
        (other, _) => other,
    };
    let mut wanted = match paid.kind {
        "swap" => Vec::new(),
        kind => vec![
            format!("rail.{kind}.processing"),
            format!("rail.{kind}.{end}"),
        ],
    };
    wanted.sort_unstable();
    let told = (kinds(of_quote), kinds(of_rail));
    let sound = told.0 == ["quote.consumed"] && told.1 == wanted;
    (!sound).then(|| format!("{paid:?} emitted {told:?}"))
}
