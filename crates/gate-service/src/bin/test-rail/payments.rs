//! The payments of the rail. The fractional part of a payment's fiat amount chooses its end.
//!
//! | fraction | what happens |
//! |---|---|
//! | `.31` | it fails: `provider_declined` |
//! | `.32` | the payer cancels it; a pay-out that is not hosted settles |
//! | `.33` | it stays processing until a command ends it |
//! | `.34` | requests for its instructions get 503 |
//! | else | it settles |

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::listener::{Request, Response};

/// How a payment ended.
#[derive(Clone)]
pub(crate) enum Ended {
    Settled(String),
    Failed(String),
    Cancelled,
}

/// A payment that has begun, or was cancelled before.
struct Payment {
    terms: Value,
    end: Option<Ended>,
}

/// Every payment by its id.
#[derive(Default)]
pub(crate) struct Payments(BTreeMap<String, Payment>);

impl Payments {
    /// Responds to a request. Also returns the payment that it has begun, with the end that its amount chooses.
    pub(crate) fn respond(&mut self, request: &Request) -> (Response, Option<(String, Ended)>) {
        let Some(rest) = request.path.strip_prefix("/v1/payments/") else {
            return (status(404), None);
        };
        let (id, action) = rest.split_once('/').unwrap_or((rest, ""));
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
        let payment = Payment {
            terms: terms.clone(),
            end: None,
        };
        self.0.insert(id.to_owned(), payment);
        (accepted, end_of(id, terms).map(|end| (id.to_owned(), end)))
    }

    fn report(&self, id: &str) -> Response {
        let Some(payment) = self.0.get(id) else {
            return status(404);
        };
        ok(&match &payment.end {
            None => json!({ "id": id, "status": "processing" }),
            Some(Ended::Settled(reference)) => {
                json!({ "id": id, "status": "settled", "reference": reference })
            }
            Some(Ended::Failed(code)) => json!({ "id": id, "status": "failed", "code": code }),
            Some(Ended::Cancelled) => json!({ "id": id, "status": "cancelled" }),
        })
    }

    /// A payment that has not begun is remembered as cancelled: it must not begin later.
    fn cancel(&mut self, id: &str, terms: &Value) -> Response {
        let payment = self.0.entry(id.to_owned()).or_insert_with(|| Payment {
            terms: terms.clone(),
            end: None,
        });
        let end = payment.end.get_or_insert(Ended::Cancelled);
        let word = match end {
            Ended::Cancelled => "cancelled",
            Ended::Settled(_) | Ended::Failed(_) => "not_cancellable",
        };
        ok(&json!({ "id": id, "status": word }))
    }

    /// Ends a payment that is processing.
    pub(crate) fn end(&mut self, id: &str, end: Ended) -> bool {
        match self.0.get_mut(id) {
            Some(payment) if payment.end.is_none() => {
                payment.end = Some(end);
                true
            }
            _ => false,
        }
    }
}

fn instructions(id: &str, terms: &Value) -> Response {
    let text = |field: &str| terms[field].as_str().unwrap_or_default();
    if text("fiat_amount").ends_with(".34") {
        return status(503);
    }
    // What the payer sends: fiat, the sold asset, or the source of a swap.
    let fields: &[(&str, &str)] = match text("kind") {
        "pay_in" => &[("amount", "fiat_amount"), ("currency", "currency")],
        "swap" => &[
            ("amount", "source_amount"),
            ("asset", "source_asset"),
            ("network", "source_network"),
        ],
        _ => &[
            ("amount", "crypto_amount"),
            ("asset", "asset"),
            ("network", "network"),
        ],
    };
    let mut named = BTreeMap::from([("note", "A trial: no money moves.")]);
    named.extend(fields.iter().map(|(name, field)| (*name, text(field))));
    match named.get("network") {
        Some(network) => named.insert("address", address_on(network)),
        None => named.insert("reference", id),
    };
    ok(&json!({ "id": id, "instructions": named }))
}

/// An address of the network's form that no key is known for.
fn address_on(network: &str) -> &'static str {
    match network {
        "tron" => "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb",
        "solana" => "1nc1nerator11111111111111111111111111111111",
        "bitcoin" => "1BitcoinEaterAddressDontSendf59kuE",
        _ => "0x000000000000000000000000000000000000dEaD",
    }
}

/// The end that the amount of a payment chooses; `None` if a command chooses it.
fn end_of(id: &str, terms: &Value) -> Option<Ended> {
    let amount = terms["fiat_amount"].as_str().unwrap_or_default();
    let fraction = amount.split_once('.').map_or("", |(_, fraction)| fraction);
    let cancellable = terms["kind"] != "pay_out" || terms["payout"].is_object();
    match fraction {
        "31" => Some(Ended::Failed("provider_declined".to_owned())),
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
mod tests {
    use super::*;

    const ID: &str = "sw_test_01KSFVT4Z2V6B9C1D3F5G7H8JK";

    fn terms(kind: &str, fiat: &str) -> Value {
        let mut terms = json!({
            "kind": kind, "currency": "EUR", "asset": "USDT", "network": "tron", "fiat_amount": fiat, "crypto_amount": "107.10",
        });
        if kind == "swap" {
            terms["source_asset"] = "BTC".into();
            terms["source_network"] = "bitcoin".into();
            terms["source_amount"] = "0.002".into();
        }
        terms
    }

    fn told(terms: &Value) -> Value {
        let said: Value = serde_json::from_str(&instructions(ID, terms).body).unwrap();
        said["instructions"].clone()
    }

    // rule: gate.payment.swap
    #[test]
    fn payer_is_told_what_they_send() {
        let note = "A trial: no money moves.";
        let swap = json!({
            "asset": "BTC", "network": "bitcoin", "amount": "0.002", "note": note,
            "address": "1BitcoinEaterAddressDontSendf59kuE",
        });
        assert_eq!(told(&terms("swap", "100.00")), swap);
        let sale = json!({
            "asset": "USDT", "network": "tron", "amount": "107.10", "note": note,
            "address": "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb",
        });
        assert_eq!(told(&terms("pay_out", "100.00")), sale);
        let purchase =
            json!({ "currency": "EUR", "amount": "100.00", "reference": ID, "note": note });
        assert_eq!(told(&terms("pay_in", "100.00")), purchase);
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
}
