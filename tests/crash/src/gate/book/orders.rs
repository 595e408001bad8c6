//! Previews, signed quotes, pay-ins and pay-outs in the responses to clients.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::writing::Writing;
use super::Hosted;
use super::hosted::QuoteRequest;
use crate::history::Kind;
use crate::http::Answer;
use crate::orders::Side;

/// An order. The hundredths of its amount choose the outcome of the payment at the sandbox's rail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) side: Side,
    /// Whether the user of a widget pays a purchase with another asset: a swap.
    pub(crate) swaps: bool,
    /// Amount of the leg that the user gives.
    pub(crate) amount: String,
}

/// Amounts of sales: 40 USDT bring 36.52 EUR, and 72.5 bring 66.31.
const SALES: [&str; 3] = ["40", "50.5", "72.5"];

impl Order {
    pub(crate) fn any(chance: &mut fastrand::Rng) -> Self {
        let side = match chance.u8(0..3) {
            0 => Side::Sale,
            _ => Side::Purchase,
        };
        let amount = match side {
            Side::Purchase => {
                let hundredths = chance.choice(["00", "31", "32", "50"]);
                format!("{}.{}", chance.u8(20..100), hundredths.unwrap_or("00"))
            }
            Side::Sale => chance.choice(SALES).unwrap_or("40").to_owned(),
        };
        Self {
            side,
            swaps: false,
            amount,
        }
    }

    /// An order of a widget: half of them purchases, three in ten sales, the others swaps. The session's amount is the fiat leg of a
    /// purchase or a sale, and the value of a swap. Only the providers of live sessions know the last two fractions.
    pub(crate) fn hosted(chance: &mut fastrand::Rng, is_live: bool) -> Self {
        let (side, swaps) = match chance.u8(0..10) {
            0..=2 => (Side::Sale, false),
            3..=4 => (Side::Purchase, true),
            _ => (Side::Purchase, false),
        };
        let all = ["00", "31", "32", "33", "33", "61", "63", "34", "35"];
        let hundredths = chance.choice(all.into_iter().take(if is_live { 9 } else { 7 }));
        let amount = format!("{}.{}", chance.u8(20..100), hundredths.unwrap_or("00"));
        Self {
            side,
            swaps,
            amount,
        }
    }

    /// Whether a verifier verifies the user of a session with this amount.
    pub(crate) fn is_verified(&self) -> bool {
        self.amount.ends_with(".61") || self.amount.ends_with(".63")
    }

    /// Whether the rail keeps a payment of this amount in progress for a while.
    pub(crate) fn is_slow(&self) -> bool {
        self.amount.ends_with(".33")
    }

    /// The prefix of the id of its rail record.
    pub(crate) const fn rail_prefix(&self) -> &'static str {
        match self.side {
            Side::Purchase if self.swaps => "sw_",
            Side::Purchase => "pi_",
            Side::Sale => "po_",
        }
    }

    pub(crate) const fn side_word(&self) -> &'static str {
        match self.side {
            Side::Purchase if self.swaps => "swap",
            Side::Purchase => "on_ramp",
            Side::Sale => "off_ramp",
        }
    }

    /// Renders the request.
    pub(crate) fn asked(&self) -> Value {
        json!({ "currency": "EUR", "asset": "USDT", "amount": self.amount, "side": self.side_word() })
    }

    /// Renders the request with a payment method.
    pub(crate) fn asked_with(&self, method: &str) -> Value {
        let mut asked = self.asked();
        if let Some(fields) = asked.as_object_mut() {
            fields.insert("payment_method".to_owned(), json!(method));
        }
        asked
    }
}

/// A partner's orders.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// The order of each locked preview.
    pub(crate) previews: BTreeMap<String, Order>,
    pub(crate) quotes: BTreeMap<String, Quote>,
    pub(crate) rails: BTreeMap<String, Rail>,
    /// Payments in widgets by reference.
    pub(crate) hosted: BTreeMap<String, Hosted>,
    /// The requests of widgets for quotes by session, oldest first.
    pub(super) quote_requests: BTreeMap<String, Vec<QuoteRequest>>,
    /// Previews and quotes that clients share, newest last.
    pub(crate) hot_previews: Vec<String>,
    pub(crate) hot_quotes: Vec<String>,
    /// The session that has used each preview.
    used: BTreeMap<String, String>,
}

/// A signed quote.
#[derive(Debug)]
pub(crate) struct Quote {
    pub(crate) order: Order,
    /// The quote as created: only its status and the instant of its redemption may differ later.
    pub(crate) terms: Value,
    /// Sessions that fit the quote.
    pub(crate) payers: Vec<String>,
    /// The pay-in or pay-out that has redeemed it.
    pub(crate) redeemed_by: Option<String>,
    /// The quote as first read after it was consumed or expired.
    pub(crate) end: Option<Value>,
}

/// A pay-in or a pay-out.
#[derive(Debug)]
pub(crate) struct Rail {
    /// The record as created.
    pub(crate) first: Value,
    pub(crate) session: String,
    pub(crate) quote: String,
    /// The record as first read after its end.
    pub(crate) end: Option<Value>,
}

impl Orders {
    /// Records the response to a preview, which may have a lock.
    pub(crate) fn previewed(&mut self, id: &str, order: Order) {
        self.previews.insert(id.to_owned(), order);
        self.hot_previews.push(id.to_owned());
    }

    /// Records the session that was created with a preview. Returns a contradiction.
    pub(super) fn used_up(&mut self, preview: &str, session: &str) -> Option<String> {
        let other = self.used.insert(preview.to_owned(), session.to_owned())?;
        Some(format!(
            "{other} and {session} have used the preview {preview}"
        ))
    }

    /// Records the first response to a write that was first sent at or after `sent`. Returns a contradiction.
    pub(super) fn learn(
        &mut self,
        writing: &Writing,
        answer: &Answer,
        sent: Duration,
    ) -> Option<String> {
        let told = match writing.kind {
            Kind::Lock => self.quoted(answer),
            Kind::Pay => self.paid(writing, answer, sent),
            _ => self.redeemed(writing, answer),
        };
        let said = || format!("{writing:?} received {answer:?}");
        told.map_err(|fault| fault.unwrap_or_else(said)).err()
    }

    fn quoted(&mut self, answer: &Answer) -> Result<(), Option<String>> {
        let (status, terms) = parted(&answer.json()).ok_or(None)?;
        let (side, leg) = match terms.get("side").and_then(Value::as_str).ok_or(None)? {
            "on_ramp" => (Side::Purchase, "fiat_amount"),
            _ => (Side::Sale, "crypto_amount"),
        };
        let amount = answer.text(leg).ok_or(None)?;
        let id = answer.text("id").ok_or(None)?;
        if status != "active" {
            return Err(None);
        }
        let quote = Quote {
            order: Order {
                side,
                swaps: false,
                amount,
            },
            terms,
            payers: Vec::new(),
            redeemed_by: None,
            end: None,
        };
        self.hot_quotes.push(id.clone());
        match self.quotes.insert(id.clone(), quote) {
            Some(_) => Err(Some(format!("{id} was created under two keys"))),
            None => Ok(()),
        }
    }

    fn redeemed(&mut self, writing: &Writing, answer: &Answer) -> Result<(), Option<String>> {
        let quote = self.quotes.get_mut(&writing.object).ok_or(None)?;
        let id = answer.text("id").ok_or(None)?;
        let session = writing.with.clone().ok_or(None)?;
        let said = |field: &str, wanted: &str| answer.text(field).as_deref() == Some(wanted);
        if !said("quote_id", &writing.object)
            || !said("session_id", &session)
            || !said("status", "processing")
        {
            return Err(None);
        }
        let rail = Rail {
            first: answer.json(),
            session,
            quote: writing.object.clone(),
            end: None,
        };
        self.rails.insert(id.clone(), rail);
        match quote.redeemed_by.replace(id.clone()) {
            Some(other) => Err(Some(format!(
                "{other} and {id} have redeemed {}",
                writing.object
            ))),
            None => Ok(()),
        }
    }
}

impl Quote {
    /// Records a read and returns a contradiction. With `all_known`, when every outcome is resolved, a consumed quote must have a
    /// response that reports its redemption.
    pub(crate) fn read(&mut self, read: &Value, all_known: bool) -> Option<String> {
        let Some((status, terms)) = parted(read) else {
            return Some(format!("{self:?} is {read}"));
        };
        let redeemed = self.redeemed_by.is_some();
        let sound = match status.as_str() {
            "consumed" => redeemed || !all_known,
            "expired" => !redeemed,
            _ => !redeemed && status == "active",
        };
        let before = self.end.as_ref().filter(|end| *end != read);
        if !sound || terms != self.terms || before.is_some() {
            return Some(format!("{self:?} is {read}"));
        }
        if status != "active" {
            self.end = Some(read.clone());
        }
        None
    }
}

impl Rail {
    /// The final status that the hundredths of its fiat amount choose.
    pub(crate) fn due_end(&self) -> &'static str {
        let is_pay_in = self.text("kind") == "pay_in";
        match self.hundredths() {
            "32" if is_pay_in => "cancelled",
            _ if self.failure().is_some() => "failed",
            _ => "settled",
        }
    }

    /// The failure code that the hundredths choose. Only the rails of live payments return `.34`, and receive less of `.35`.
    fn failure(&self) -> Option<&'static str> {
        let is_live = self.text("id").contains("_live_");
        match self.hundredths() {
            "31" => Some("provider_declined"),
            "34" if is_live => Some("returned"),
            "35" if is_live => Some("wrong_amount"),
            _ => None,
        }
    }

    fn hundredths(&self) -> &str {
        let split = self.text("fiat_amount").rsplit_once('.');
        split.map_or("", |(_, hundredths)| hundredths)
    }

    fn text(&self, field: &str) -> &str {
        let text = self.first.get(field).and_then(Value::as_str);
        text.unwrap_or_default()
    }

    /// Records a read and returns a contradiction.
    pub(crate) fn read(&mut self, read: &Value) -> Option<String> {
        let sound = match &self.end {
            Some(end) => end == read,
            None if *read == self.first => return None,
            None => self.ends_as(read),
        };
        if sound {
            self.end = Some(read.clone());
            return None;
        }
        Some(format!("{self:?} is {read}"))
    }

    /// Whether a read shows the expected end with everything else unchanged.
    fn ends_as(&self, read: &Value) -> bool {
        let mut wanted = self.first.clone();
        let Some(fields) = wanted.as_object_mut() else {
            return false;
        };
        let due = self.due_end();
        let told = |field: &str| read.get(field).cloned().unwrap_or_default();
        let settled_at = match due {
            "settled" => told("updated_at"),
            _ => Value::Null,
        };
        fields.insert("status".to_owned(), json!(due));
        fields.insert("failure_code".to_owned(), json!(self.failure()));
        fields.insert("settled_at".to_owned(), settled_at);
        fields.insert("updated_at".to_owned(), told("updated_at"));
        wanted == *read
    }
}

/// Splits a quote into its status and the fields that never change.
fn parted(read: &Value) -> Option<(String, Value)> {
    let mut terms = read.clone();
    let fields = terms.as_object_mut()?;
    let status = fields.remove("status")?.as_str()?.to_owned();
    fields.remove("consumed_at")?;
    Some((status, terms))
}
