//! The liquidity engine of a campaign.
//!
//! It loses some responses after it acted, repeats some earlier responses, and contradicts some. The fraction of an amount chooses the
//! course of a trade, by the sandbox's table.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use test_support::engine::{Act, Call, Conduct, Course, Engine, Stage, Trade};
use test_support::http::Reply;
use test_support::time;

/// Lifetime of a hold that is not confirmed.
const HOLD_TTL: Duration = Duration::from_secs(3);
/// Longest duration of each further step of a trade, in milliseconds.
const MAX_STEP_MS: u64 = 120;
/// Age at which a reported delivery counts as known, because the poll that received the report has ended.
const REPORT_SETTLE_TIME: Duration = Duration::from_millis(300);

/// The scenario that an amount chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scenario {
    Dry,
    SilentDepth,
    HoldRefused,
    /// The trade goes through these stages; with `slow` later than usual.
    Ends {
        stages: &'static [Stage],
        slow: bool,
    },
}

impl Scenario {
    /// Returns the scenario of an order, from the fraction of its input.
    fn of(order: &Value) -> Self {
        let amount = order.pointer("/input/amount").and_then(Value::as_str);
        let amount = amount.unwrap_or_default();
        let fraction = amount.split_once('.').map_or("", |(_, fraction)| fraction);
        let ends = |stages, slow| Self::Ends { stages, slow };
        match fraction.trim_end_matches('0') {
            "11" => Self::Dry,
            "12" => Self::SilentDepth,
            "51" => Self::HoldRefused,
            "21" | "33" => ends(&[Stage::Delivered], true),
            "31" => ends(&[Stage::Failed], false),
            "32" => ends(&[Stage::Released], false),
            "41" => ends(&[Stage::Delivered, Stage::Returned], false),
            _ => ends(&[Stage::Delivered], false),
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

/// What the service may know of a trade.
#[derive(Debug, Default)]
struct Told {
    /// Confirmations, minus true or repeated reports that were sent. A poll of a reserved trade confirms before it asks for a report; a poll of a settled
    /// trade does not. A call may be repeated after a lost response, so a lost report does not count.
    unreported: i64,
    /// Whether a confirmation came after the last report that was sent, so that the trade may still be reserved: the service may have
    /// lost that report, and the confirmation that it sends at once.
    confirmed_again: bool,
    /// Instant of the first report of a delivery.
    delivered: Option<Duration>,
}

impl Told {
    /// Whether the service must know of the delivery. The first confirmation of a trade precedes every poll.
    fn is_settled(&self, now: Duration) -> bool {
        let settled = |told: Duration| now > told.saturating_add(REPORT_SETTLE_TIME);
        self.unreported <= 1 && !self.confirmed_again && self.delivered.is_some_and(settled)
    }
}

/// The conduct of an engine that fails by chance.
#[derive(Debug)]
pub(crate) struct Chance {
    told: BTreeMap<String, Told>,
    counts: Counts,
    chance: fastrand::Rng,
}

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            told: BTreeMap::new(),
            counts: Counts::default(),
            chance: fastrand::Rng::with_seed(seed),
        }
    }

    fn percent(&mut self, share: u8) -> bool {
        self.chance.u8(0..100) < share
    }

    fn confirm(&mut self, call: &Call, trade: Option<&Trade>) -> Act {
        let told = self.told.entry(call.trade.clone()).or_default();
        told.unreported += 1;
        told.confirmed_again = true;
        let is_valid = |trade: &Trade| !matches!(trade.stage, Stage::Lapsed | Stage::Released);
        if !(trade.is_some_and(is_valid) && self.percent(3)) {
            return Act::Acts;
        }
        self.counts.lapsed_untrue += 1;
        sends(&json!({ "status": "lapsed" }))
    }

    fn contradict(&mut self, call: &Call, now: Duration) -> Act {
        let told = self.told.get(&call.trade);
        if !(told.is_some_and(|told| told.is_settled(now)) && self.percent(50)) {
            return Act::Acts;
        }
        self.counts.contradictions += 1;
        let kinds = [
            json!({ "status": "failed" }),
            json!({ "status": "released" }),
            json!({ "status": "delivered", "fillTxId": "another" }),
        ];
        self.chance.choice(&kinds).map_or(Act::Acts, sends)
    }

    /// A report that is about to be sent: true, or an earlier one.
    fn report(&mut self, before: Option<&Value>, report: Value) -> Value {
        if let Some(before) = before
            && self.percent(5)
        {
            self.counts.repeated += 1;
            return before.clone();
        }
        if is_report(&report, "returned") && self.percent(50) {
            return json!({ "status": "returned" });
        }
        report
    }

    fn note(&mut self, call: &Call, before: Option<&Value>, report: &Value, now: Duration) {
        let told = self.told.entry(call.trade.clone()).or_default();
        told.unreported -= 1;
        told.confirmed_again = false;
        if is_report(report, "delivered") {
            told.delivered.get_or_insert(now);
        }
        let is_unseen = is_report(report, "returned") && told.delivered.is_none();
        self.counts.unseen_returns += u64::from(is_unseen && before != Some(report));
    }
}

fn sends(body: &Value) -> Act {
    Act::Sends(Reply::kept(200, &[], &body.to_string()))
}

fn is_report(body: &Value, status: &str) -> bool {
    body.get("status").and_then(Value::as_str) == Some(status)
}

impl Conduct for Chance {
    fn has_depth(&mut self, order: &Value) -> bool {
        Scenario::of(order) != Scenario::Dry
    }

    fn course(&mut self, order: &Value) -> Option<Course> {
        let Scenario::Ends { stages, slow } = Scenario::of(order) else {
            return None;
        };
        let mut after = Duration::from_millis(if slow { MAX_STEP_MS } else { 0 });
        let steps = stages.iter().map(|stage| {
            after = after.saturating_add(Duration::from_millis(self.chance.u64(0..MAX_STEP_MS)));
            (after, *stage)
        });
        Some(Course {
            confirmed: steps.collect(),
            hold: Some(HOLD_TTL),
        })
    }

    fn act(&mut self, call: &Call, trade: Option<&Trade>, now: Duration) -> Act {
        match call.operation.as_str() {
            "depth" if Scenario::of(&call.body) == Scenario::SilentDepth => {
                Act::Sends(Reply::Closes)
            }
            "confirm" => self.confirm(call, trade),
            "report" => self.contradict(call, now),
            _ => Act::Acts,
        }
    }

    fn answer(
        &mut self,
        call: &Call,
        trade: Option<&Trade>,
        answer: Value,
        now: Duration,
    ) -> Result<Value, Reply> {
        if call.operation != "depth" && self.percent(3) {
            self.counts.lost += 1;
            return Err(Reply::Closes);
        }
        if call.operation != "report" {
            return Ok(answer);
        }
        let before = trade.and_then(|trade| trade.told.as_ref());
        let report = self.report(before, answer);
        self.note(call, before, &report, now);
        Ok(report)
    }
}

/// Compares the final statuses of trades with the engine's records and returns the contradictions.
pub(crate) fn disagreements<'t>(
    engine: &Engine<Chance>,
    trades: impl Iterator<Item = (&'t str, &'t str)>,
) -> Vec<String> {
    let (now, mut records) = (time::now(), engine.records());
    let mut found = Vec::new();
    for (id, status) in trades {
        let trade = records.trade(id, now);
        let so = trade.map_or("unknown", |trade| trade.stage.status());
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

pub(crate) fn figures(engine: &Engine<Chance>) -> [(&'static str, u64); 5] {
    let counts = engine.records().conduct.counts;
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

#[cfg(test)]
mod tests {
    use test_support::engine::Records;

    use super::*;

    fn order(amount: &str) -> Value {
        json!({ "input": { "amount": amount } })
    }

    #[test]
    fn amount_chooses_by_its_fraction() {
        let delivered = |slow| Scenario::Ends {
            stages: &[Stage::Delivered],
            slow,
        };
        let returned = Scenario::Ends {
            stages: &[Stage::Delivered, Stage::Returned],
            slow: false,
        };
        for (amount, path) in [
            ("100", delivered(false)),
            ("100.1", delivered(false)),
            ("100.11", Scenario::Dry),
            ("100.410", returned),
            ("100.411", delivered(false)),
            ("100.33", delivered(true)),
            ("7.51", Scenario::HoldRefused),
        ] {
            assert_eq!(Scenario::of(&order(amount)), path, "{amount}");
        }
    }

    /// The service may lose the confirmation that it sends at once, and the first report of a delivery; its next poll confirms again.
    #[test]
    fn trade_that_may_be_reserved_is_not_contradicted() {
        let mut records = Records::new(Chance::new(1));
        let mut call = |operation: &str, trade: i32, at: u64| {
            let call = Call {
                operation: operation.to_owned(),
                trade: trade.to_string(),
                authorization: String::new(),
                traceparent: String::new(),
                body: json!({ "order": order("100") }),
            };
            records.respond(&call, Duration::from_secs(at));
            records.conduct.counts.contradictions
        };
        for trade in 0..500 {
            call("hold", trade, 0);
            for poll in 1..=4 {
                call("confirm", trade, poll);
                assert_eq!(call("report", trade, poll), 0);
            }
        }
        let contradictions = (0..500).map(|trade| call("report", trade, 5)).last();
        assert!(contradictions > Some(0), "a settled trade is contradicted");
    }
}
