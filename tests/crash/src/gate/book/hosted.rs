//! Payments in widgets, from the responses to them.

use super::super::writing::Writing;
use super::Orders;
use crate::http::Answer;

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
    /// Whether a cancellation was sent, and whether a response confirmed it.
    pub(crate) giving_up: bool,
    pub(crate) given_up: bool,
    /// The status of its transaction as first read after its end.
    pub(crate) end: Option<String>,
}

impl Orders {
    /// Records the first response to a payment.
    pub(super) fn paid(
        &mut self,
        writing: &Writing,
        answer: &Answer,
    ) -> Result<(), Option<String>> {
        let text = |field: &str| answer.text(field).ok_or(None::<String>);
        let (id, refid) = (text("id")?, text("tx_refid")?);
        let session = writing.with.clone().ok_or(None)?;
        let (kind, prefix) = match text("side")?.as_str() {
            "on_ramp" => ("pay_in", "pi_"),
            "swap" => ("swap", "sw_"),
            _ => ("pay_out", "po_"),
        };
        if text("status")? != "processing" {
            return Err(None);
        }
        let quote = &writing.object;
        if self.superseded.contains(quote) {
            return Err(Some(format!(
                "{id} was paid with {quote}, which was superseded"
            )));
        }
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

    /// Whether the hundredths of the fiat amount and the cancellations allow this end.
    fn may_end_as(&self, status: &str) -> bool {
        match self.fiat_amount.rsplit_once('.') {
            Some((_, "31")) => status == "failed",
            Some((_, "33")) if self.given_up => status == "cancelled",
            Some((_, "33")) if self.giving_up => matches!(status, "completed" | "cancelled"),
            _ => status == "completed",
        }
    }
}
