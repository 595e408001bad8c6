//! The provider behind the rail of a live campaign, over HTTP.
//!
//! The provider keeps its own ledger: it moves the money of a payment that has begun whether or not a poll asks. It loses some
//! responses after it acted, and some reports come late. The fraction of the fiat amount chooses the end of a payment, by the
//! sandbox's table.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use test_support::http::{self, Reply, Request};
use test_support::time;

/// Longest duration of a payment, and the further duration of a slow one, in milliseconds. The user cancels a slow one after three
/// notifications, unless the machine stands still.
const MAX_STEP_MS: u64 = 120;
const SLOW_MS: u64 = 2_500;

/// A payment that has begun, or was cancelled before.
#[derive(Debug)]
struct Payment {
    terms: Value,
    /// Instant of the first begin.
    begun: Option<Duration>,
    /// Time from the begin to the end.
    takes: Duration,
    cancelled: bool,
}

impl Payment {
    fn text(&self, field: &str) -> &str {
        let found = self.terms.get(field).and_then(Value::as_str);
        found.unwrap_or_default()
    }

    fn hundredths(&self) -> &str {
        let parts = self.text("fiat_amount").rsplit_once('.');
        parts.map_or("", |(_, hundredths)| hundredths)
    }

    /// Whether its user may cancel it while it is in progress.
    fn is_slow(&self) -> bool {
        let hosted = self
            .terms
            .get("wallet_address")
            .or(self.terms.get("payout"));
        self.hundredths() == "33" && hosted.is_some()
    }

    /// Returns the true status.
    fn status(&self, now: Duration) -> &'static str {
        if self.cancelled {
            return "cancelled";
        }
        match (self.begun, self.hundredths()) {
            (None, _) => "unknown",
            (Some(begun), _) if now < begun.saturating_add(self.takes) => "processing",
            (Some(_), "31") => "failed",
            (Some(_), "32") if self.text("kind") != "pay_out" => "cancelled",
            (Some(_), _) => "settled",
        }
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
        .all(|(field, known)| self.text(field) == known)
    }
}

/// What a partner knows of a payment that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// The kind of its record, as the contract names it.
    pub(super) kind: String,
    pub(super) status: String,
    pub(super) fiat_amount: String,
    pub(super) crypto_amount: String,
    /// The asset that the user of a swap sends, and its amount; empty for every other kind.
    pub(super) source_asset: String,
    pub(super) source_amount: String,
}

#[derive(Debug)]
struct Ledger {
    payments: BTreeMap<String, Payment>,
    chance: fastrand::Rng,
    lost: u64,
    /// Begins of payments that had begun.
    repeated: u64,
    breaches: Vec<String>,
}

/// A provider that listens until the driver ends.
#[derive(Debug)]
pub(super) struct Provider {
    address: SocketAddr,
    ledger: Arc<Mutex<Ledger>>,
}

impl Provider {
    pub(super) fn start(seed: u64) -> Self {
        let ledger = Arc::new(Mutex::new(Ledger {
            payments: BTreeMap::new(),
            chance: fastrand::Rng::with_seed(seed),
            lost: 0,
            repeated: 0,
            breaches: Vec::new(),
        }));
        let shared = Arc::clone(&ledger);
        let address = http::serve(move |request| {
            let answer = shared.lock().answer(&request, time::now());
            answer.map_or(Reply::Closes, |(status, body)| {
                Reply::kept(status, &[], &body.to_string())
            })
        });
        Self { address, ledger }
    }

    /// Returns the value of `PENSTOCK_RAIL`.
    pub(super) fn setting(&self) -> String {
        format!("http:http://{}", self.address)
    }

    /// Compares the payments that have ended, by the ids of their records, with the ledger. Returns the contradictions: another end,
    /// other terms, a payment that began without a record, or began twice with different terms.
    pub(super) fn disagreements(
        &self,
        ended: &BTreeMap<String, Ended>,
        known: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        self.ledger.lock().disagreements(ended, known, time::now())
    }

    pub(super) fn figures(&self) -> [(&'static str, u64); 3] {
        let ledger = self.ledger.lock();
        [
            ("payments at the provider", ledger.payments.len() as u64),
            ("provider's responses lost", ledger.lost),
            ("payments begun again", ledger.repeated),
        ]
    }
}

impl Ledger {
    fn percent(&mut self, share: u8) -> bool {
        self.chance.u8(0..100) < share
    }

    /// Acts and returns the response; `None` if the response is lost.
    fn answer(&mut self, request: &Request, now: Duration) -> Option<(u16, Value)> {
        let (path, body) = (request.path().trim_start_matches('/'), &request.json());
        let steps: Vec<&str> = path.split('/').collect();
        let (id, word) = match steps.as_slice() {
            ["v1", "payments", id, "instructions"] => {
                let told = json!({ "id": id, "instructions": { "reference": id } });
                return Some((200, told));
            }
            ["v1", "payments", id, "cancel"] => (*id, self.cancel(id, body, now)),
            // A begin has a body, a report is without one.
            ["v1", "payments", id] if body.is_null() => (*id, self.report(id, now)),
            ["v1", "payments", id] => (*id, self.begin(id, body, now)),
            _ => return None,
        };
        if self.percent(3) {
            self.lost += 1;
            return None;
        }
        let status = match word {
            "unknown" => 404,
            "other terms" => 409,
            _ => 200,
        };
        let code = (word == "failed").then_some("provider_declined");
        Some((status, json!({ "id": id, "status": word, "code": code })))
    }

    fn entry(&mut self, id: &str, terms: &Value) -> &mut Payment {
        let mut takes = Duration::from_millis(self.chance.u64(0..MAX_STEP_MS));
        let payments = &mut self.payments;
        let payment = payments.entry(id.to_owned()).or_insert_with(|| Payment {
            terms: terms.clone(),
            begun: None,
            takes,
            cancelled: false,
        });
        if payment.begun.is_none() && payment.is_slow() {
            takes = takes.saturating_add(Duration::from_millis(SLOW_MS));
            payment.takes = takes;
        }
        payment
    }

    fn begin(&mut self, id: &str, terms: &Value, now: Duration) -> &'static str {
        let payment = self.entry(id, terms);
        if payment.terms != *terms {
            let breach = format!("{id} has begun as {}, then as {terms}", payment.terms);
            self.breaches.push(breach);
            return "other terms";
        }
        let again = payment.begun.is_some();
        payment.begun.get_or_insert(now);
        self.repeated += u64::from(again);
        "accepted"
    }

    fn report(&mut self, id: &str, now: Duration) -> &'static str {
        let late = self.percent(5);
        match self.payments.get(id).map(|payment| payment.status(now)) {
            None | Some("unknown") => "unknown",
            Some(_) if late => "processing",
            Some(status) => status,
        }
    }

    fn cancel(&mut self, id: &str, terms: &Value, now: Duration) -> &'static str {
        let payment = self.entry(id, terms);
        let goes_on = matches!(payment.status(now), "unknown" | "processing");
        payment.cancelled |= goes_on && payment.is_slow();
        match payment.cancelled {
            true => "cancelled",
            false => "not_cancellable",
        }
    }

    fn disagreements(
        &self,
        ended: &BTreeMap<String, Ended>,
        known: impl Fn(&str) -> bool,
        now: Duration,
    ) -> Vec<String> {
        let mut found = self.breaches.clone();
        for (id, record) in ended {
            let sound = self.payments.get(id).is_some_and(|payment| {
                payment.status(now) == record.status && payment.has_terms_of(record)
            });
            if !sound {
                let so = self.payments.get(id);
                found.push(format!("{id} is {record:?}; the provider says {so:?}"));
            }
        }
        let strays = self.payments.iter();
        let strays = strays.filter(|(id, payment)| payment.begun.is_some() && !known(id));
        found.extend(strays.map(|(id, _)| format!("{id} has begun, and no client received it")));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAST: Duration = Duration::from_secs(9);

    fn ledger() -> Ledger {
        Ledger {
            payments: BTreeMap::new(),
            chance: fastrand::Rng::with_seed(1),
            lost: 0,
            repeated: 0,
            breaches: Vec::new(),
        }
    }

    fn terms(fiat: &str) -> Value {
        json!({ "kind": "pay_in", "fiat_amount": fiat, "crypto_amount": "1", "wallet_address": "T" })
    }

    fn ended(status: &str, fiat: &str) -> Ended {
        Ended {
            kind: "pay_in".to_owned(),
            status: status.to_owned(),
            fiat_amount: fiat.to_owned(),
            crypto_amount: "1".to_owned(),
            source_asset: String::new(),
            source_amount: String::new(),
        }
    }

    fn found(ledger: &Ledger, id: &str, record: Ended) -> usize {
        let ended = BTreeMap::from([(id.to_owned(), record)]);
        let found = ledger.disagreements(&ended, |known| known == id, PAST);
        found.len()
    }

    fn breaches(ledger: &Ledger, status: &str, fiat: &str) -> usize {
        found(ledger, "pi_1", ended(status, fiat))
    }

    #[test]
    fn record_must_have_end_and_amounts_of_ledger() {
        for (fiat, status) in [
            ("7.00", "settled"),
            ("7.31", "failed"),
            ("7.32", "cancelled"),
            ("7.33", "settled"),
        ] {
            let mut ledger = ledger();
            assert_eq!(
                ledger.begin("pi_1", &terms(fiat), Duration::ZERO),
                "accepted"
            );
            assert_eq!(breaches(&ledger, status, fiat), 0, "{fiat}");
            assert_eq!(breaches(&ledger, status, "8.00"), 1, "{fiat}");
            assert_eq!(breaches(&ledger, "expired", fiat), 1, "{fiat}");
        }
        assert_eq!(breaches(&ledger(), "settled", "7.00"), 1, "it never began");
    }

    #[test]
    fn swap_must_have_kind_and_source_of_ledger() {
        let terms = |fiat: &str| {
            json!({
                "kind": "swap", "fiat_amount": fiat, "crypto_amount": "1", "wallet_address": "T",
                "source_asset": "USDC", "source_amount": "2",
            })
        };
        let swap = |status: &str, fiat: &str| Ended {
            kind: "swap".to_owned(),
            source_asset: "USDC".to_owned(),
            source_amount: "2".to_owned(),
            ..ended(status, fiat)
        };
        for (fiat, status) in [
            ("7.00", "settled"),
            ("7.31", "failed"),
            ("7.32", "cancelled"),
        ] {
            let mut ledger = ledger();
            ledger.begin("sw_1", &terms(fiat), Duration::ZERO);
            assert_eq!(found(&ledger, "sw_1", swap(status, fiat)), 0, "{fiat}");
            assert_eq!(found(&ledger, "sw_1", ended(status, fiat)), 1, "{fiat}");
            let changes: [fn(&mut Ended); 3] = [
                |it| it.kind = "pay_in".to_owned(),
                |it| it.source_asset = "BTC".to_owned(),
                |it| it.source_amount = "3".to_owned(),
            ];
            for change in changes {
                let mut other = swap(status, fiat);
                change(&mut other);
                assert_eq!(found(&ledger, "sw_1", other), 1, "{fiat}");
            }
        }
        let mut ledger = ledger();
        let cancelled = ledger.cancel("sw_1", &terms("7.33"), Duration::ZERO);
        assert_eq!(cancelled, "cancelled", "its user may cancel it");
        let mut pay_out = terms("7.32");
        pay_out["kind"] = json!("pay_out");
        ledger.begin("sw_2", &pay_out, Duration::ZERO);
        let report = ledger.payments["sw_2"].status(PAST);
        assert_eq!(report, "settled", "a pay-out is not cancelled");
    }

    #[test]
    fn payment_without_record_and_second_begin_with_other_terms_are_found() {
        let mut ledger = ledger();
        for _ in 0..2 {
            ledger.begin("pi_1", &terms("7.00"), Duration::ZERO);
        }
        assert_eq!(
            (breaches(&ledger, "settled", "7.00"), ledger.repeated),
            (0, 1)
        );
        ledger.begin("pi_2", &terms("7.00"), Duration::ZERO);
        assert_eq!(breaches(&ledger, "settled", "7.00"), 1);
        let other = ledger.begin("pi_1", &terms("8.00"), Duration::ZERO);
        assert_eq!(other, "other terms");
        assert_eq!(breaches(&ledger, "settled", "7.00"), 2);
    }

    #[test]
    fn cancelled_payment_never_moves_money() {
        let mut ledger = ledger();
        let cancelled = ledger.cancel("pi_1", &terms("7.33"), Duration::ZERO);
        assert_eq!(cancelled, "cancelled");
        assert_eq!(
            ledger.begin("pi_1", &terms("7.33"), Duration::ZERO),
            "accepted"
        );
        assert_eq!(breaches(&ledger, "cancelled", "7.33"), 0);
        assert_eq!(breaches(&ledger, "settled", "7.33"), 1);
        let late = ledger.cancel("pi_2", &terms("7.00"), Duration::ZERO);
        assert_eq!(late, "not_cancellable");
    }
}
