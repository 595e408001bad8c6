//! The payments of the rail. The fractional part of a payment's fiat amount chooses its end.
//!
//! | fraction | what happens |
//! |---|---|
//! | `.31` | it fails: `provider_declined` |
//! | `.32` | the payer cancels it; a pay-out that is not hosted settles |
//! | `.33` | it stays processing until a command ends it, or the gate cancels it after its deadline |
//! | `.34` | requests for its instructions get 503 |
//! | else | it settles |

#![expect(
    clippy::indexing_slicing,
    reason = "a name that a JSON value does not have reads as null"
)]

use std::collections::BTreeMap;

use gate_core::rail::FailureReason;
use kernel::{Amount, Bound, Timestamp};
use serde_json::{Value, json};

use crate::listener::{Request, Response};

/// The failure code of a payment of which a part has arrived by its deadline.
const EXPIRED: &str = "expired";

/// How a payment ended.
#[derive(Clone)]
pub(crate) enum Ended {
    Settled(String),
    Failed(String, Option<FailureReason>),
    Cancelled,
    /// It had settled, and its money came back.
    Returned,
}

/// A payment that has begun, or was cancelled before.
struct Payment {
    terms: Value,
    /// What has arrived, and when.
    received: Option<(String, Timestamp)>,
    end: Option<Ended>,
}

impl Payment {
    fn new(terms: &Value) -> Self {
        Self {
            terms: terms.clone(),
            received: None,
            end: None,
        }
    }

    /// A payment of which only a part has arrived by its deadline fails, and the rail returns the part.
    fn expire(&mut self, now: Timestamp) {
        let until = self.terms["pay_until"].as_str();
        let until = until.and_then(|text| Timestamp::parse(text, Bound::Upper).ok());
        let is_overdue = until.is_some_and(|until| now >= until);
        if is_overdue && self.end.is_none() && self.received.is_some() {
            let reason = Some(FailureReason::Expired);
            self.end = Some(Ended::Failed(EXPIRED.to_owned(), reason));
        }
    }

    fn report(&self, id: &str) -> Value {
        let mut report = match &self.end {
            None => json!({ "status": "processing" }),
            Some(Ended::Settled(reference)) => {
                json!({ "status": "settled", "reference": reference })
            }
            Some(Ended::Failed(code, None)) => json!({ "status": "failed", "code": code }),
            Some(Ended::Failed(code, Some(reason))) => {
                json!({ "status": "failed", "code": code, "reason": reason.as_str() })
            }
            Some(Ended::Cancelled) => json!({ "status": "cancelled" }),
            Some(Ended::Returned) => json!({ "status": "returned" }),
        };
        report["id"] = id.into();
        if let Some((amount, at)) = &self.received {
            let mut received = json!({ "at": at.to_string() });
            for (name, field) in paid(&self.terms) {
                received[*name] = self.terms[*field].clone();
            }
            received["amount"] = amount.as_str().into();
            report["received"] = received;
        }
        report
    }
}

/// Every payment by its id.
#[derive(Default)]
pub(crate) struct Payments(BTreeMap<String, Payment>);

impl Payments {
    /// Responds to a request. Also returns the payment that it has begun, with the end that its amount chooses.
    pub(crate) fn respond(
        &mut self,
        request: &Request,
        now: Timestamp,
    ) -> (Response, Option<(String, Ended)>) {
        let Some(rest) = request.path.strip_prefix("/v1/payments/") else {
            return (status(404), None);
        };
        let (id, action) = rest.split_once('/').unwrap_or((rest, ""));
        if let Some(payment) = self.0.get_mut(id) {
            payment.expire(now);
        }
        match (request.method.as_str(), action) {
            ("POST", "instructions") => (instructions(id, &request.body), None),
            ("PUT", "") => self.begin(id, &request.body),
            ("GET", "") => (self.report(id), None),
            ("POST", "cancel") => (self.cancel(id, &request.body), None),
            _ => (status(404), None),
        }
    }

    fn begin(&mut self, id: &str, terms: &Value) -> (Response, Option<(String, Ended)>) {
        let accepted = ok(&json!({ "id": id, "status": "accepted" }));
        match self.0.get(id) {
            Some(known) if known.terms == *terms => return (accepted, None),
            Some(_) => return (status(409), None),
            None => {}
        }
        self.0.insert(id.to_owned(), Payment::new(terms));
        (accepted, end_of(id, terms).map(|end| (id.to_owned(), end)))
    }

    fn report(&self, id: &str) -> Response {
        match self.0.get(id) {
            Some(payment) => ok(&payment.report(id)),
            None => Response::json(404, &json!({ "id": id })),
        }
    }

    /// A payment that has not begun is remembered as cancelled: it must not begin later. One of which something has arrived can no longer
    /// be cancelled.
    fn cancel(&mut self, id: &str, terms: &Value) -> Response {
        let payment = self.0.entry(id.to_owned());
        let payment = payment.or_insert_with(|| Payment::new(terms));
        if payment.received.is_none() {
            payment.end.get_or_insert(Ended::Cancelled);
        }
        let word = match payment.end {
            Some(Ended::Cancelled) => "cancelled",
            Some(Ended::Settled(_) | Ended::Failed(..) | Ended::Returned) | None => {
                "not_cancellable"
            }
        };
        ok(&json!({ "id": id, "status": word }))
    }

    /// Ends a payment that is processing.
    pub(crate) fn end(&mut self, id: &str, end: Ended) -> bool {
        self.change(id, |payment| match payment.end {
            None => Some(end),
            Some(_) => None,
        })
    }

    /// Ends a payment as its amount chooses, unless a part of it has arrived.
    pub(crate) fn end_by_itself(&mut self, id: &str, end: Ended) -> bool {
        let payment = self.0.get(id);
        let has_part = payment.is_some_and(|payment| payment.received.is_some());
        !has_part && self.end(id, end)
    }

    /// So much of a payment that is processing has arrived.
    pub(crate) fn receive(&mut self, id: &str, amount: &str, now: Timestamp) -> bool {
        match self.0.get_mut(id) {
            Some(payment) if payment.end.is_none() && Amount::check_grammar(amount).is_ok() => {
                payment.received = Some((amount.to_owned(), now));
                true
            }
            _ => false,
        }
    }

    /// The money of a settled payment comes back.
    pub(crate) fn come_back(&mut self, id: &str) -> bool {
        self.change(id, |payment| match payment.end {
            Some(Ended::Settled(_)) => Some(Ended::Returned),
            Some(Ended::Failed(..) | Ended::Cancelled | Ended::Returned) | None => None,
        })
    }

    /// A payment that had failed or was cancelled is settled after all.
    pub(crate) fn settle_late(&mut self, id: &str) -> bool {
        self.change(id, |payment| match payment.end {
            Some(Ended::Failed(..) | Ended::Cancelled) => {
                Some(Ended::Settled(format!("late-{id}")))
            }
            Some(Ended::Settled(_) | Ended::Returned) | None => None,
        })
    }

    /// Loses a payment.
    pub(crate) fn forget(&mut self, id: &str) -> bool {
        self.0.remove(id).is_some()
    }

    /// Gives a payment its next end, if it has one.
    fn change(&mut self, id: &str, next: impl FnOnce(&Payment) -> Option<Ended>) -> bool {
        let Some(payment) = self.0.get_mut(id) else {
            return false;
        };
        let Some(end) = next(payment) else {
            return false;
        };
        payment.end = Some(end);
        true
    }
}

/// What the payer sends: fiat, the sold asset, or the source of a swap. The names of the contract, with the fields of the terms.
fn paid(terms: &Value) -> &'static [(&'static str, &'static str)] {
    match terms["kind"].as_str() {
        Some("pay_in") => &[("amount", "fiat_amount"), ("currency", "currency")],
        Some("swap") => &[
            ("amount", "source_amount"),
            ("asset", "source_asset"),
            ("network", "source_network"),
        ],
        _ => &[
            ("amount", "crypto_amount"),
            ("asset", "asset"),
            ("network", "network"),
        ],
    }
}

fn instructions(id: &str, terms: &Value) -> Response {
    let text = |field: &str| terms[field].as_str().unwrap_or_default();
    if text("fiat_amount").ends_with(".34") {
        return status(503);
    }
    let mut named = BTreeMap::from([("note", "A trial: no money moves.")]);
    let repeated = paid(terms).iter();
    named.extend(repeated.map(|(name, field)| (*name, text(field))));
    match named.get("network") {
        Some(network) => named.insert("address", address_on(network)),
        None => named.insert("reference", id),
    };
    ok(&json!({ "id": id, "instructions": named }))
}

/// An address of the network's form that no key is known for.
fn address_on(network: &str) -> &'static str {
    match network {
        "tron" => "T9yD14Nj9j7xAB4dbGeiX9h8upfCg3PBbY",
        "solana" => "1nc1nerator11111111111111111111111111111111",
        "bitcoin" => "1BitcoinEaterAddressDontSendf59kuE",
        _ => "0x50656e73746f636B2073616e64626f782065766D",
    }
}

/// The end that the amount of a payment chooses; `None` if a command chooses it.
fn end_of(id: &str, terms: &Value) -> Option<Ended> {
    let amount = terms["fiat_amount"].as_str().unwrap_or_default();
    let fraction = amount.split_once('.').map_or("", |(_, fraction)| fraction);
    let cancellable = terms["kind"] != "pay_out" || terms["payout"].is_object();
    match fraction {
        "31" => Some(Ended::Failed("provider_declined".to_owned(), None)),
        "32" if cancellable => Some(Ended::Cancelled),
        "33" => None,
        _ => Some(Ended::Settled(format!("trial-{id}"))),
    }
}

fn ok(body: &Value) -> Response {
    Response::json(200, body)
}

fn status(status: u16) -> Response {
    Response::json(status, &Value::Null)
}

#[cfg(test)]
mod tests;
