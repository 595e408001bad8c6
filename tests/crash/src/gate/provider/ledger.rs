//! The ledger of a rail. It moves the money of a payment that has begun, whether or not a poll asks.
//!
//! The fraction of the fiat amount chooses the end of a payment, by the sandbox's table and two more rows: `.34` comes back before the gate
//! has seen its settlement, and `.35` fails because less has arrived.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use kernel::Timestamp;
use serde_json::json;

use super::lies::Lie;
use super::terms::{LESS, Terms};
use super::word::{Answer, Arrived, Report, Word, another};

/// Longest duration of a payment, and the further duration of a slow one, in milliseconds. The user cancels a slow one after three
/// notifications, unless the machine stands still.
const MAX_STEP_MS: u64 = 120;
const SLOW_MS: u64 = 2_500;
/// Percentage of reports that say `processing` although the payment has ended.
pub(super) const LATE: u8 = 5;
/// The reports that lie, counted from 1. The first one says `processing`, so that the gate has acknowledged the payment before.
const LYING_REPORTS: RangeInclusive<u32> = 2..=3;
/// The response to a cancellation that comes too late.
pub(in crate::gate) const NOT_CANCELLABLE: &str = "not_cancellable";
/// The status of a payment that has not begun. A report of it is 404.
const UNKNOWN: &str = "unknown";

/// A payment that the gate has called the rail about.
#[derive(Debug, Default)]
pub(in crate::gate) struct Payment {
    pub(in crate::gate) terms: Terms,
    pub(in crate::gate) lie: Option<Lie>,
    /// Whether its instructions differed from its terms.
    pub(in crate::gate) asked_otherwise: bool,
    /// The instants of its begins, oldest first.
    pub(in crate::gate) begins: Vec<Timestamp>,
    /// Time from the first begin to the end.
    pub(in crate::gate) takes: Duration,
    pub(in crate::gate) cancelled: bool,
    /// Number of reports since it has begun.
    pub(in crate::gate) reports: u32,
    /// Whether reports of its end say what has arrived.
    pub(in crate::gate) says_received: bool,
    /// The status after the change of its end.
    pub(in crate::gate) changed: Option<&'static str>,
    /// What the gate may have received, oldest first.
    pub(in crate::gate) said: Vec<Word>,
}

impl Payment {
    fn new(terms: &Terms, chance: &mut fastrand::Rng) -> Self {
        let slow = if terms.is_slow() { SLOW_MS } else { 0 };
        Self {
            terms: terms.clone(),
            lie: Lie::about_payment(chance),
            takes: Duration::from_millis(slow + chance.u64(0..MAX_STEP_MS)),
            says_received: chance.bool(),
            ..Self::default()
        }
    }

    /// The true status, before a change of the end.
    pub(in crate::gate) fn status(&self, now: Timestamp) -> &'static str {
        if self.cancelled {
            return "cancelled";
        }
        match (self.begins.first(), self.terms.hundredths()) {
            (None, _) => UNKNOWN,
            (Some(begun), _) if now < begun.plus(self.takes) => "processing",
            (Some(_), "31" | "35") => "failed",
            (Some(_), "32") if self.terms.text("kind") != "pay_out" => "cancelled",
            (Some(_), "34") => "returned",
            (Some(_), _) => "settled",
        }
    }

    /// The status that the rail reports if it does not lie.
    pub(in crate::gate) fn word(&self, now: Timestamp) -> &'static str {
        self.changed.unwrap_or_else(|| self.status(now))
    }

    /// Whether the payment has the terms of a record.
    fn has_terms_of(&self, record: &Ended) -> bool {
        [
            ("kind", &record.kind),
            ("fiat_amount", &record.fiat_amount),
            ("crypto_amount", &record.crypto_amount),
            ("source_asset", &record.source_asset),
            ("source_amount", &record.source_amount),
        ]
        .into_iter()
        .all(|(field, known)| self.terms.text(field) == known)
    }

    /// The lie of the next report. A rail that has cancelled a payment no longer lies about it.
    fn next_lie(&self) -> Option<Lie> {
        let is_due = !self.cancelled && LYING_REPORTS.contains(&self.reports);
        self.lie.filter(|lie| is_due && lie.is_about_reports())
    }

    /// Whether the rail reports `processing` before it lies.
    fn lies_next(&self) -> bool {
        !self.cancelled
            && self.reports < *LYING_REPORTS.start()
            && self.lie.is_some_and(Lie::is_about_reports)
    }

    fn true_report(&self, now: Timestamp) -> Report {
        let report = Report::of(self.word(now));
        let report = match (report.status, self.terms.hundredths()) {
            ("failed", "35") => report
                .with("code", json!("wrong_amount"))
                .with("reason", json!("amount_differs")),
            ("failed", "31") => report
                .with("code", json!("provider_declined"))
                .with("reason", json!("refused")),
            ("failed", _) => report.with("code", json!("recalled")),
            _ => report,
        };
        let paid = self.terms.paid();
        match (report.status, self.terms.hundredths()) {
            ("processing" | "failed", "35") => {
                report.with_received(Arrived::Less, paid.received(LESS, now))
            }
            ("settled", _) if self.says_received => {
                let whole = paid.received(&paid.with_more_digits(), now);
                report.with_received(Arrived::Whole, whole)
            }
            _ => report,
        }
    }
}

/// What a partner knows about a payment that has ended.
#[derive(Debug)]
pub(in crate::gate) struct Ended {
    /// The kind of its record, as the contract names it.
    pub(in crate::gate) kind: String,
    pub(in crate::gate) status: String,
    pub(in crate::gate) fiat_amount: String,
    pub(in crate::gate) crypto_amount: String,
    /// The asset that the user of a swap sends, and its amount; empty for every other kind.
    pub(in crate::gate) source_asset: String,
    pub(in crate::gate) source_amount: String,
}

/// The status of the gate's record of a payment with this end.
pub(in crate::gate) fn status_of_record(end: &str) -> &str {
    match end {
        "returned" => "failed",
        other => other,
    }
}

#[derive(Debug)]
pub(in crate::gate) struct Ledger {
    pub(in crate::gate) payments: BTreeMap<String, Payment>,
    pub(super) chance: fastrand::Rng,
    /// Number of untrue reports.
    pub(super) lies: u64,
    pub(super) breaches: Vec<String>,
}

impl Ledger {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            payments: BTreeMap::new(),
            chance: fastrand::Rng::with_seed(seed),
            lies: 0,
            breaches: Vec::new(),
        }
    }

    fn entry(&mut self, id: &str, terms: &Terms) -> &mut Payment {
        let Self {
            payments, chance, ..
        } = self;
        let new = || Payment::new(terms, chance);
        payments.entry(id.to_owned()).or_insert_with(new)
    }

    pub(super) fn instructions(&mut self, id: &str, terms: &Terms) -> Answer {
        let payment = self.entry(id, terms);
        let honest = payment.terms.instructions(id);
        let mut named = honest.clone();
        if let Some(lie) = payment.lie {
            lie.misdirect(&payment.terms, &mut named);
        }
        let id = match payment.lie {
            Some(Lie::AsksForAnother) => another(id),
            _ => id.to_owned(),
        };
        payment.asked_otherwise = named != honest || payment.lie == Some(Lie::AsksForAnother);
        Answer::body(&json!({ "id": id, "instructions": named }))
    }

    pub(super) fn begin(&mut self, id: &str, terms: &Terms, now: Timestamp) -> Answer {
        let payment = self.entry(id, terms);
        if payment.terms != *terms {
            let before = &payment.terms;
            let breach = format!("{id} was {before:?} and has begun as {terms:?}");
            self.breaches.push(breach);
            return Answer::refuses(409, id);
        }
        payment.begins.push(now);
        let is_first = payment.begins.len() == 1;
        match payment.lie {
            Some(Lie::NamesAnother) if is_first => Answer::about_another(id, "accepted"),
            _ => Answer::says(id, Word::new("accepted", now)),
        }
    }

    pub(super) fn report(&mut self, id: &str, now: Timestamp) -> Answer {
        let is_late = self.chance.u8(0..100) < LATE;
        let known = self.payments.get_mut(id);
        let Some(payment) = known.filter(|payment| payment.status(now) != UNKNOWN) else {
            return Answer::refuses(404, id);
        };
        payment.reports = payment.reports.saturating_add(1);
        if let Some(lie) = payment.next_lie() {
            self.lies += 1;
            return match (lie, lie.report(&payment.terms, now)) {
                (_, Some(report)) => Answer::reports(id, &report, now),
                (Lie::Forgets, _) => Answer::refuses(404, id),
                (Lie::IsHidden, _) => Answer::proxy_page(),
                (Lie::NamesAnother, _) => Answer::about_another(id, "settled"),
                _ => Answer::silence(),
            };
        }
        let report = match is_late || payment.lies_next() {
            true => Report::of("processing"),
            false => payment.true_report(now),
        };
        Answer::reports(id, &report, now)
    }

    pub(super) fn cancel(&mut self, id: &str, terms: &Terms, now: Timestamp) -> Answer {
        let payment = self.entry(id, terms);
        let goes_on = matches!(payment.status(now), UNKNOWN | "processing");
        payment.cancelled |= goes_on && payment.terms.is_slow();
        let status = match payment.cancelled {
            true => "cancelled",
            false => NOT_CANCELLABLE,
        };
        if !payment.cancelled && payment.begins.is_empty() {
            // The payer has paid as instructed, so that the payment has begun.
            payment.begins.push(now);
        }
        Answer::says(id, Word::new(status, now))
    }

    /// Records that a response was sent.
    pub(super) fn note(&mut self, id: &str, word: Word) {
        if let Some(payment) = self.payments.get_mut(id) {
            payment.said.push(word);
        }
    }

    /// Changes the end of a payment if the rail lies so about it. The money of a settled one comes back, or has never come; that of
    /// any other one comes late.
    pub(in crate::gate) fn change_end(&mut self, id: &str, now: Timestamp) {
        let is_returned = self.chance.bool();
        let known = self.payments.get_mut(id);
        let Some(payment) = known.filter(|payment| payment.lie == Some(Lie::ChangesEnd)) else {
            return;
        };
        if payment.changed.is_none() {
            payment.changed = match payment.status(now) {
                "settled" if is_returned => Some("returned"),
                "settled" => Some("failed"),
                "failed" | "cancelled" => Some("settled"),
                _ => None,
            };
        }
    }

    /// Number of begins of payments that had begun.
    pub(super) fn repeated(&self) -> u64 {
        let begins = self.payments.values().map(|payment| payment.begins.len());
        begins.map(|begins| begins.saturating_sub(1) as u64).sum()
    }

    /// Returns the contradiction between a payment that has ended and the ledger: another end, or other terms.
    pub(in crate::gate) fn contradicts(
        &self,
        id: &str,
        record: &Ended,
        now: Timestamp,
    ) -> Option<String> {
        let payment = self.payments.get(id)?;
        let end = status_of_record(payment.status(now));
        let sound = end == record.status && payment.has_terms_of(record);
        (!sound).then(|| format!("{id} is {record:?}; its rail says {payment:?}"))
    }
}
