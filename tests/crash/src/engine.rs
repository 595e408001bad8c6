//! The liquidity engine of a campaign, over HTTP.
//!
//! The engine keeps its own ledger: it delivers and reverses trades whether or not a poll asks. It loses some responses after it
//! acted, repeats some earlier responses, and contradicts some. The fraction of an amount chooses the outcome of a trade, by the
//! sandbox's table.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{Result, time, upstream};

/// Lifetime of a hold that is not confirmed.
const HOLD_TTL: Duration = Duration::from_secs(3);
/// Longest duration of each further step of a trade, in milliseconds.
const MAX_STEP_MS: u64 = 120;
/// Age at which a reported delivery counts as known, because the poll that received the report has ended.
const REPORT_SETTLE_TIME: Duration = Duration::from_millis(300);

/// The outcome of a confirmed trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Delivered,
    Returned,
    Failed,
    Released,
}

/// The scenario that an amount chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scenario {
    Dry,
    SilentDepth,
    HoldRefused,
    /// The trade is carried out; with `slow` the first report is lost or says in progress.
    Ends {
        fate: Outcome,
        slow: bool,
    },
}

impl Scenario {
    /// Returns the scenario of a decimal amount, from its fraction.
    fn of(amount: &str) -> Self {
        let fraction = amount.split_once('.').map_or("", |(_, fraction)| fraction);
        let ends = |fate, slow| Self::Ends { fate, slow };
        match fraction.trim_end_matches('0') {
            "11" => Self::Dry,
            "12" => Self::SilentDepth,
            "51" => Self::HoldRefused,
            "21" | "33" => ends(Outcome::Delivered, true),
            "31" => ends(Outcome::Failed, false),
            "32" => ends(Outcome::Released, false),
            "41" => ends(Outcome::Returned, false),
            _ => ends(Outcome::Delivered, false),
        }
    }
}

#[derive(Debug)]
struct Trade {
    fate: Outcome,
    held: Duration,
    /// Instant of the confirmation.
    confirmed: Option<Duration>,
    /// Time until the outcome, and from the outcome until a reversal.
    steps: (Duration, Duration),
    released: bool,
    lapsed: bool,
    /// Confirmations after the first, minus reports that were sent. A poll of a reserved trade confirms before it asks for a report;
    /// a poll of a settled trade does not. A call may be repeated after a lost response, so a lost report does not count.
    unreported: i64,
    /// Whether a confirmation came after the last report that was sent, so that the trade may still be reserved: the service may have
    /// lost that report, and the confirmation that it sends at once.
    confirmed_again: bool,
    /// Instant of the first report of a delivery.
    told_delivered: Option<Duration>,
    /// The last report that was sent.
    last: Option<Value>,
}

impl Trade {
    fn new(fate: Outcome, held: Duration, steps: (Duration, Duration)) -> Self {
        Self {
            fate,
            held,
            confirmed: None,
            steps,
            released: false,
            lapsed: false,
            unreported: -1,
            confirmed_again: false,
            told_delivered: None,
            last: None,
        }
    }

    fn lapse(&mut self, now: Duration) {
        self.lapsed |= self.confirmed.is_none() && now > self.held.saturating_add(HOLD_TTL);
    }

    /// Returns the true status.
    fn status(&self, now: Duration) -> &'static str {
        if self.released || self.lapsed {
            return "released";
        }
        let Some(confirmed) = self.confirmed else {
            return "in_progress";
        };
        let done = confirmed.saturating_add(self.steps.0);
        let back = done.saturating_add(self.steps.1);
        match self.fate {
            _ if now < done => "in_progress",
            Outcome::Failed => "failed",
            Outcome::Released => "released",
            Outcome::Returned if now >= back => "returned",
            Outcome::Delivered | Outcome::Returned => "delivered",
        }
    }
}

/// Counts of the engine's faults.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    lost: u64,
    repeated: u64,
    contradictions: u64,
    lapsed_untrue: u64,
    /// Reversals that were reported although no delivery was reported.
    unseen_returns: u64,
}

#[derive(Debug)]
struct Ledger {
    trades: BTreeMap<String, Trade>,
    counts: Counts,
    chance: fastrand::Rng,
}

/// An engine that listens until the driver ends.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    address: SocketAddr,
    ledger: Arc<Mutex<Ledger>>,
}

impl Engine {
    pub(crate) fn start(seed: u64) -> Result<Self> {
        let ledger = Arc::new(Mutex::new(Ledger {
            trades: BTreeMap::new(),
            counts: Counts::default(),
            chance: fastrand::Rng::with_seed(seed),
        }));
        let shared = Arc::clone(&ledger);
        let address = upstream::play(move |path, body| {
            let said = shared.lock().answer(path, body)?;
            Some((200, said))
        })?;
        Ok(Self { address, ledger })
    }

    /// Returns the value of `PENSTOCK_ENGINE`.
    pub(crate) fn setting(&self) -> String {
        format!("http:http://{}", self.address)
    }

    /// Compares the final statuses of trades with the engine's ledger and returns the contradictions.
    pub(crate) fn disagreements<'t>(
        &self,
        trades: impl Iterator<Item = (&'t str, &'t str)>,
    ) -> Vec<String> {
        let (now, ledger) = (time::now(), self.ledger.lock());
        let mut found = Vec::new();
        for (id, status) in trades {
            let so = ledger
                .trades
                .get(id)
                .map_or("unknown", |trade| trade.status(now));
            let agrees = match status {
                "settled" => matches!(so, "delivered" | "returned"),
                "returned" => so == "returned",
                "failed" | "released" => so == status,
                _ => false,
            };
            if !agrees {
                found.push(format!("{id} is {status}; the engine says {so}"));
            }
        }
        found
    }

    pub(crate) fn figures(&self) -> [(&'static str, u64); 5] {
        let counts = self.ledger.lock().counts;
        [
            ("engine's responses lost", counts.lost),
            ("engine's responses repeated", counts.repeated),
            (
                "reports that contradicted a settlement",
                counts.contradictions,
            ),
            ("holds untruly said to have lapsed", counts.lapsed_untrue),
            ("returns of unseen deliveries", counts.unseen_returns),
        ]
    }
}

impl Ledger {
    fn percent(&mut self, share: u8) -> bool {
        self.chance.u8(0..100) < share
    }

    /// Acts and returns the response; `None` if the response is lost.
    fn answer(&mut self, path: &str, body: &Value) -> Option<Value> {
        let now = time::now();
        let steps: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let said = match steps.as_slice() {
            ["v1", "depth"] => return depth(body),
            ["v1", "trades", id, "hold"] => self.hold(id, body, now),
            ["v1", "trades", id, "confirm"] => self.confirm(id, now),
            ["v1", "trades", id, "release"] => self.release(id, now),
            ["v1", "trades", id] => return self.report(id, now),
            _ => return None,
        };
        self.unless_lost(said)
    }

    fn unless_lost(&mut self, said: Value) -> Option<Value> {
        let lost = self.percent(3);
        self.counts.lost += u64::from(lost);
        (!lost).then_some(said)
    }

    fn hold(&mut self, id: &str, body: &Value, now: Duration) -> Value {
        let amount = body.pointer("/order/input/amount").and_then(Value::as_str);
        let Scenario::Ends { fate, slow } = Scenario::of(amount.unwrap_or_default()) else {
            return json!({ "status": "refused" });
        };
        let mut step = || Duration::from_millis(self.chance.u64(0..MAX_STEP_MS));
        let (mut first, second) = (step(), step());
        if slow {
            first = first.saturating_add(Duration::from_millis(MAX_STEP_MS));
        }
        let new = Trade::new(fate, now, (first, second));
        let trade = self.trades.entry(id.to_owned()).or_insert(new);
        let held = if trade.released { "refused" } else { "held" };
        json!({ "status": held })
    }

    fn confirm(&mut self, id: &str, now: Duration) -> Value {
        let untrue = self.percent(3);
        let Some(trade) = self.trades.get_mut(id) else {
            return json!({ "status": "lapsed" });
        };
        trade.lapse(now);
        trade.unreported += 1;
        trade.confirmed_again = true;
        if trade.lapsed || trade.released {
            return json!({ "status": "lapsed" });
        }
        if untrue {
            self.counts.lapsed_untrue += 1;
            return json!({ "status": "lapsed" });
        }
        trade.confirmed.get_or_insert(now);
        json!({ "status": "confirmed" })
    }

    fn release(&mut self, id: &str, now: Duration) -> Value {
        let new = Trade {
            released: true,
            ..Trade::new(Outcome::Released, now, (Duration::ZERO, Duration::ZERO))
        };
        let trade = self.trades.entry(id.to_owned()).or_insert(new);
        trade.released |= trade.confirmed.is_none();
        json!({ "status": "released" })
    }

    fn report(&mut self, id: &str, now: Duration) -> Option<Value> {
        let (repeats, contradicts, names_fill) =
            (self.percent(5), self.percent(50), self.percent(50));
        let trade = self.trades.get_mut(id)?;
        trade.lapse(now);
        let is_known = trade.unreported <= 0
            && !trade.confirmed_again
            && trade
                .told_delivered
                .is_some_and(|told| now > told.saturating_add(REPORT_SETTLE_TIME));
        if is_known && contradicts {
            trade.unreported -= 1;
            self.counts.contradictions += 1;
            let kinds = [
                json!({ "status": "failed" }),
                json!({ "status": "released" }),
                json!({ "status": "delivered", "fillTxId": "another" }),
            ];
            return self.chance.choice(kinds);
        }
        let status = trade.status(now);
        let mut said = json!({ "status": status });
        if status == "delivered" || status == "returned" && names_fill {
            said = json!({ "status": status, "fillTxId": format!("fill-{id}") });
        }
        if repeats && let Some(last) = &trade.last {
            said.clone_from(last);
            self.counts.repeated += 1;
        }
        let said = self.unless_lost(said)?;
        let trade = self.trades.get_mut(id)?;
        trade.unreported -= 1;
        trade.confirmed_again = false;
        let told = said.get("status").and_then(Value::as_str);
        if told == Some("delivered") {
            trade.told_delivered.get_or_insert(now);
        }
        let is_new = trade.last.as_ref() != Some(&said);
        if told == Some("returned") && trade.told_delivered.is_none() && is_new {
            self.counts.unseen_returns += 1;
        }
        trade.last = Some(said.clone());
        Some(said)
    }
}

fn depth(order: &Value) -> Option<Value> {
    let amount = order.pointer("/input/amount").and_then(Value::as_str);
    match Scenario::of(amount.unwrap_or_default()) {
        Scenario::SilentDepth => None,
        Scenario::Dry => Some(json!({ "status": "dry" })),
        Scenario::HoldRefused | Scenario::Ends { .. } => Some(json!({ "status": "enough" })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amount_chooses_by_its_fraction() {
        let ends = |fate, slow| Scenario::Ends { fate, slow };
        for (amount, path) in [
            ("100", ends(Outcome::Delivered, false)),
            ("100.1", ends(Outcome::Delivered, false)),
            ("100.11", Scenario::Dry),
            ("100.410", ends(Outcome::Returned, false)),
            ("100.411", ends(Outcome::Delivered, false)),
            ("100.33", ends(Outcome::Delivered, true)),
            ("7.51", Scenario::HoldRefused),
        ] {
            assert_eq!(Scenario::of(amount), path, "{amount}");
        }
    }
    /// The service may lose the confirmation that it sends at once, and the first report of a delivery; its next poll confirms again.
    #[test]
    fn trade_that_may_be_reserved_is_not_contradicted() {
        let mut ledger = Ledger {
            trades: BTreeMap::new(),
            counts: Counts::default(),
            chance: fastrand::Rng::with_seed(1),
        };
        let at = Duration::from_secs;
        for trade in 0..500 {
            let id = trade.to_string();
            ledger.hold(
                &id,
                &json!({ "order": { "input": { "amount": "100" } } }),
                at(0),
            );
            for poll in 1..=4 {
                ledger.confirm(&id, at(poll));
                ledger.report(&id, at(poll));
            }
        }
        assert_eq!(ledger.counts.contradictions, 0);
        for trade in 0..500 {
            ledger.report(&trade.to_string(), at(5));
        }
        assert!(
            ledger.counts.contradictions > 0,
            "a settled trade is contradicted"
        );
    }
}
