//! Quotes and payments in widgets, from the responses to them.

use std::time::Duration;

use kernel::{Bound, Timestamp};
use test_support::time;

use super::super::writing::Writing;
use super::Orders;
use crate::history::Outcome;
use crate::http::{Answer, Lost};

/// A payment in a widget.
#[derive(Debug)]
pub(crate) struct Hosted {
    pub(crate) session: String,
    pub(crate) quote: String,
    /// The kind and the id of its rail record.
    pub(crate) kind: &'static str,
    pub(crate) rail: String,
    pub(crate) fiat_amount: String,
    pub(crate) crypto_amount: String,
    /// The asset that the user of a swap sends, and its amount.
    pub(crate) source: Option<(String, String)>,
    /// An instant before the payment was first sent.
    sent: Duration,
    /// When the gate created the payment, by the clock of its store.
    created_at: Timestamp,
    /// Whether a cancellation was sent, and whether a response confirmed it.
    pub(crate) giving_up: bool,
    pub(crate) given_up: bool,
    /// The status of its transaction as first read after its end.
    pub(crate) end: Option<String>,
}

/// A request of a widget for a quote of its session.
#[derive(Debug)]
pub(crate) struct QuoteRequest {
    /// An instant before the request was sent.
    sent: Duration,
    response: QuoteResponse,
}

/// What a client knows about a request for a quote.
#[derive(Debug)]
enum QuoteResponse {
    /// Nothing: the session may have a quote whose id no client knows.
    Unknown,
    Refused,
    Quote(NewQuote),
}

/// A quote in a response.
#[derive(Debug)]
struct NewQuote {
    id: String,
    /// When the gate created the quote, by the clock of its store.
    created_at: Timestamp,
    /// An instant after the response was read.
    read: Duration,
}

impl QuoteRequest {
    fn quote(&self) -> Option<&NewQuote> {
        match &self.response {
            QuoteResponse::Quote(quote) => Some(quote),
            QuoteResponse::Unknown | QuoteResponse::Refused => None,
        }
    }

    /// Whether the request may have created a quote after another request was sent.
    fn may_supersede(&self, other: &Self) -> bool {
        match &self.response {
            QuoteResponse::Unknown => true,
            QuoteResponse::Refused => false,
            QuoteResponse::Quote(quote) => quote.read > other.sent,
        }
    }
}

impl Orders {
    /// Records that a widget requests a quote of its session. Returns the number of the request.
    pub(crate) fn request_quote(&mut self, session: &str) -> usize {
        let requests = self.quote_requests.entry(session.to_owned()).or_default();
        requests.push(QuoteRequest {
            sent: time::now(),
            response: QuoteResponse::Unknown,
        });
        requests.len().saturating_sub(1)
    }

    /// Records the response to a request for a quote. Returns the id of the quote.
    pub(crate) fn quote_response(
        &mut self,
        session: &str,
        number: usize,
        answer: &Result<Answer, Lost>,
    ) -> Option<String> {
        let request = self.quote_requests.get_mut(session)?.get_mut(number)?;
        if Outcome::of(answer) == Outcome::Fail || matches!(answer, Err(Lost::Unsent)) {
            request.response = QuoteResponse::Refused;
        }
        let answer = answer.as_ref().ok().filter(|answer| answer.status < 300)?;
        let id = answer.text("id")?;
        request.response = QuoteResponse::Quote(NewQuote {
            id: id.clone(),
            created_at: created_at(answer)?,
            read: time::now(),
        });
        Some(id)
    }

    fn requests_of(&self, session: &str) -> impl Iterator<Item = &QuoteRequest> {
        self.quote_requests.get(session).into_iter().flatten()
    }

    /// The request that created a quote of a session.
    fn request_of(&self, session: &str, quote: &str) -> Option<&QuoteRequest> {
        let mut requests = self.requests_of(session);
        requests.find(|request| request.quote().is_some_and(|of| of.id == quote))
    }

    /// Whether another request may have superseded the quote that a payment names.
    pub(super) fn may_be_superseded(&self, payment: &Writing) -> bool {
        let session = payment.with.as_deref().unwrap_or_default();
        let Some(own) = self.request_of(session, &payment.object) else {
            return true;
        };
        self.requests_of(session)
            .any(|other| !std::ptr::eq(own, other) && other.may_supersede(own))
    }

    /// Returns a later quote of the session that the payment contradicts. The quote was superseded before the payment was sent or
    /// created, or the gate created it in spite of the payment.
    pub(crate) fn contradicts_later_quote(&self, paid: &Hosted) -> Option<String> {
        let own = self.request_of(&paid.session, &paid.quote)?;
        let own_read = own.quote()?.read;
        let later = self.requests_of(&paid.session);
        let later = later.filter(|request| request.sent > own_read);
        later.filter_map(QuoteRequest::quote).find_map(|later| {
            let id = &later.id;
            if later.read < paid.sent || later.created_at < paid.created_at {
                return Some(format!("{id} had superseded its quote"));
            }
            let holds_session = matches!(paid.end.as_deref(), None | Some("completed"));
            let meanwhile = holds_session && later.created_at > paid.created_at;
            meanwhile.then(|| format!("the session was quoted again as {id}"))
        })
    }

    /// Records the first response to a payment that was first sent at or after `sent`.
    pub(super) fn paid(
        &mut self,
        writing: &Writing,
        answer: &Answer,
        sent: Duration,
    ) -> Result<(), Option<String>> {
        let text = |field: &str| answer.text(field).ok_or(None::<String>);
        let (id, refid) = (text("id")?, text("tx_refid")?);
        let session = writing.with.clone().ok_or(None)?;
        let (kind, prefix) = match text("side")?.as_str() {
            "on_ramp" => ("pay_in", "pi_"),
            "swap" => ("swap", "sw_"),
            _ => ("pay_out", "po_"),
        };
        let source = answer
            .text("source_asset")
            .zip(answer.text("source_amount"));
        if text("status")? != "processing" || source.is_some() != (kind == "swap") {
            return Err(None);
        }
        let quote = &writing.object;
        if self.hosted.values().any(|other| other.quote == *quote) {
            return Err(Some(format!("{quote} was paid again by {id}")));
        }
        let hosted = Hosted {
            session,
            quote: quote.clone(),
            kind,
            rail: id.replacen("pay_", prefix, 1),
            fiat_amount: text("fiat_amount")?,
            crypto_amount: text("crypto_amount")?,
            source,
            sent,
            created_at: created_at(answer).ok_or(None)?,
            giving_up: false,
            given_up: false,
            end: None,
        };
        match self.hosted.insert(refid.clone(), hosted) {
            Some(_) => Err(Some(format!("{refid} is the reference of two payments"))),
            None => Ok(()),
        }
    }
}

fn created_at(answer: &Answer) -> Option<Timestamp> {
    Timestamp::parse(&answer.text("created_at")?, Bound::Upper).ok()
}

impl Hosted {
    /// Records the status of the transaction. Returns whether it is one that the payment may have now.
    pub(crate) fn read(&mut self, status: &str) -> bool {
        let sound = match &self.end {
            Some(end) => end == status,
            None => status == "processing" && !self.given_up || self.may_end_as(status),
        };
        if sound && status != "processing" {
            self.end = Some(status.to_owned());
        }
        sound
    }

    /// Whether the hundredths of the fiat amount and the cancellations allow this end. A payer who does not pay cancels a purchase or
    /// a swap. Only the rails of live payments return `.34`, receive less of `.35`, and cancel nothing but `.33`.
    fn may_end_as(&self, status: &str) -> bool {
        let is_live = self.rail.contains("_live_");
        let hundredths = self.fiat_amount.rsplit_once('.').map(|(_, it)| it);
        if !is_live || hundredths == Some("33") {
            if self.given_up {
                return status == "cancelled";
            }
            if self.giving_up && status == "cancelled" {
                return true;
            }
        }
        match hundredths {
            Some("31") => status == "failed",
            Some("34" | "35") if is_live => status == "failed",
            Some("32") if self.kind != "pay_out" => status == "cancelled",
            _ => status == "completed",
        }
    }
}
