//! What a rail's answers do to a record: what has arrived, what an operator must look at, and properties of sequences of answers.

use std::cmp::Ordering;
use std::time::Duration;

use gate_core::rail::{
    Contradiction, Finding, OpenItem, RailAnswer, RailKind, RailRecord, RailReport, RailState,
    RailStatus, Receipt, Reported, WATCH_AGAIN, WATCH_INTERVAL, WATCHED_FOR,
};
use kernel::{Bound, Timestamp};
use proptest::prelude::*;

use crate::fixtures::{after, assert_documented, noon};
use crate::rails::{failed, record, reports, terms};

/// A pay-in of 100.00 EUR in the widget.
fn pay_in(state: RailState) -> RailRecord {
    record((RailKind::PayIn, true), state)
}

/// So much fiat has arrived, in the words of a rail.
fn receipt(amount: &str) -> Receipt {
    Receipt {
        amount: amount.to_owned(),
        currency: Some("EUR".to_owned()),
        asset: None,
        network: None,
        at: None,
    }
}

fn reported(report: RailReport, receipt: Option<Receipt>) -> RailAnswer {
    RailAnswer::Reported(Reported { report, receipt })
}

fn finding(record: &RailRecord) -> Option<Finding> {
    record.open_item.map(|item| item.finding)
}

fn shown(finding: Option<Finding>) -> &'static str {
    finding.map_or("none", Finding::as_str)
}

/// A record with this finding, and with what has arrived if the finding is about that.
fn with(record: RailRecord, finding: Option<Finding>) -> RailRecord {
    let arrived = match finding {
        Some(Finding::Underpaid) => Some("20.00"),
        Some(Finding::Overpaid) => Some("120.00"),
        _ => None,
    };
    let received = arrived.map(|amount| receipt(amount).of(&record.terms, after(500)).unwrap());
    RailRecord {
        open_item: finding.map(|finding| OpenItem {
            finding,
            at: after(500),
        }),
        received,
        ..record
    }
}

/// The rows of a record: what each report does to its state and to its finding.
fn rows(record: &RailRecord, receipts: &[(&str, Option<&str>)]) -> Vec<String> {
    let mut rows = Vec::new();
    for (name, report) in reports() {
        for (arrived, amount) in receipts {
            let answer = reported(report.clone(), amount.map(receipt));
            let progress = record.progress(&answer, after(2_000));
            let next = match progress.contradiction {
                Some(_) => "stays: a contradiction",
                None if progress.record.state == record.state => "stays",
                None => progress.record.state.status().as_str(),
            };
            let status = record.state.status().as_str();
            let [before, found] = [record, &progress.record].map(|it| shown(finding(it)));
            rows.push(format!(
                "| {status} | {before} | {name} | {arrived} | {next} | {found} |"
            ));
        }
    }
    rows
}

// rule: rail.findings, rail.received, rail.settled-amount
#[test]
fn finding_matrix_covers_every_report_state_and_finding() {
    let at = after(1_000);
    let settled = RailState::Settled {
        at,
        reference: None,
    };
    let receipts = [
        ("not said", None),
        ("less", Some("20.00")),
        ("equal", Some("100.00")),
        ("more", Some("120.00")),
    ];
    let mut lines = vec![
        "| stored | finding | report | received | next | finding afterwards |".to_owned(),
        "| --- | --- | --- | --- | --- | --- |".to_owned(),
    ];
    for found in [None, Some(Finding::Underpaid), Some(Finding::Overpaid)] {
        let record = with(pay_in(RailState::Processing), found);
        lines.extend(rows(&record, &receipts));
    }
    for (state, found) in [
        (settled.clone(), None),
        (settled.clone(), Some(Finding::Overpaid)),
        (settled.clone(), Some(Finding::Returned)),
        (settled, Some(Finding::Retracted)),
        (failed(at), None),
        (failed(at), Some(Finding::Late)),
        (RailState::Cancelled { at }, None),
        (RailState::Cancelled { at }, Some(Finding::Late)),
    ] {
        let record = with(pay_in(state), found);
        lines.extend(rows(&record, &[receipts[0], receipts[3]]));
    }
    assert_documented("rail finding", &lines.join("\n"));
}

// rule: rail.received
#[test]
fn received_counts_in_what_the_customer_pays() {
    let given = |amount: &str, currency: &str, asset: &str, network: &str| {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Receipt {
            amount: amount.to_owned(),
            currency: text(currency),
            asset: text(asset),
            network: text(network),
            at: None,
        }
    };
    for (kind, receipt, expected) in [
        (RailKind::PayIn, given("20", "EUR", "", ""), Some("20.00")),
        (RailKind::PayIn, given("20.019", "", "", ""), Some("20.01")),
        (RailKind::PayIn, given("0.001", "EUR", "", ""), Some("0.00")),
        (RailKind::PayIn, given("0", "", "", ""), Some("0.00")),
        (RailKind::PayIn, given("0", "USD", "", ""), None),
        (RailKind::PayIn, given("20", "USD", "", ""), None),
        (RailKind::PayIn, given("20", "EUR", "USDT", ""), None),
        (RailKind::PayIn, given("20", "EUR", "", "tron"), None),
        (RailKind::PayIn, given("100000000000", "EUR", "", ""), None),
        (
            RailKind::PayOut,
            given("1.12345678901", "", "USDT", "tron"),
            Some("1.123456"),
        ),
        (RailKind::PayOut, given("98.5", "", "", ""), Some("98.5")),
        (RailKind::PayOut, given("98.5", "EUR", "", ""), None),
        (RailKind::PayOut, given("98.5", "", "USDC", "tron"), None),
        (
            RailKind::PayOut,
            given("98.5", "", "USDT", "ethereum"),
            None,
        ),
        (
            RailKind::Swap,
            given("7", "", "USDC", "ethereum"),
            Some("7"),
        ),
        (RailKind::Swap, given("7", "", "USDT", "tron"), None),
    ] {
        let received = receipt.of(&terms(kind), noon());
        let amount = received.map(|it| it.amount.to_string());
        let expected = expected.map(str::to_owned);
        assert_eq!(
            amount,
            expected.ok_or(Contradiction::OtherAsset),
            "{receipt:?}"
        );
    }
}

// rule: rail.received
#[test]
fn arrival_has_the_instant_of_the_rail_or_else_of_its_report() {
    let said = Timestamp::parse("2026-05-28T11:59:00Z", Bound::Lower).unwrap();
    let of_rail = Receipt {
        at: Some(said),
        ..receipt("20.00")
    };
    for (receipt, at) in [(of_rail, said), (receipt("20.00"), after(1))] {
        let answer = reported(RailReport::InProgress, Some(receipt));
        let record = pay_in(RailState::Processing);
        let progress = record.progress(&answer, after(1));
        let received = progress.record.received.unwrap();
        assert_eq!(
            (received.amount.to_string(), received.at),
            ("20.00".to_owned(), at)
        );
        assert_eq!(progress.found, Some(Finding::Underpaid));
    }
}

// rule: rail.received, rail.settled-amount
#[test]
fn contradictory_report_about_money_changes_no_state() {
    let settled = RailReport::Settled { reference: None };
    let arrival = reported(RailReport::InProgress, Some(receipt("20.00")));
    let record = pay_in(RailState::Processing);
    let partly_paid = record.progress(&arrival, after(1)).record;
    for (receipt, expected, received) in [
        (
            Receipt {
                currency: Some("USD".to_owned()),
                ..receipt("100.00")
            },
            Contradiction::OtherAsset,
            Some("20.00"),
        ),
        (receipt("99.99"), Contradiction::OtherAmount, Some("99.99")),
        (
            receipt("100.01"),
            Contradiction::OtherAmount,
            Some("100.01"),
        ),
        (receipt("0"), Contradiction::OtherAmount, None),
    ] {
        let answer = reported(settled.clone(), Some(receipt));
        let progress = partly_paid.progress(&answer, after(2));
        assert_eq!(progress.contradiction, Some(expected));
        assert_eq!(progress.record.state, RailState::Processing);
        let shown = progress.record.received.map(|it| it.amount.to_string());
        assert_eq!(shown, received.map(str::to_owned));
    }
}

// rule: rail.acknowledged-stays-begun
#[test]
fn first_answer_that_knows_the_payment_is_remembered() {
    let record = pay_in(RailState::Processing);
    for answer in [RailAnswer::Silent, RailAnswer::Unknown] {
        let progress = record.progress(&answer, after(1));
        assert_eq!(progress.record, record);
        assert_eq!(progress.contradiction, None);
    }
    for answer in [RailAnswer::Accepted, RailReport::InProgress.into()] {
        let known = record.progress(&answer, after(1)).record;
        assert_eq!(known.acknowledged_at, Some(after(1)));
        let forgotten = known.progress(&RailAnswer::Unknown, after(2));
        assert_eq!(forgotten.contradiction, Some(Contradiction::Forgotten));
        assert_eq!(forgotten.record, known);
    }
    // A rail may forget a payment that has ended.
    let ended = record.progress(&RailReport::Cancelled.into(), after(1));
    let forgotten = ended.record.progress(&RailAnswer::Unknown, after(2));
    assert_eq!(forgotten.contradiction, None);
}

// rule: rail.watch
#[test]
fn ended_record_is_watched_for_thirty_days() {
    let record = pay_in(RailState::Processing);
    let ended = record.progress(&RailReport::Cancelled.into(), noon());
    let ended = ended.record;
    assert_eq!(ended.watch_at, Some(noon().plus(WATCH_INTERVAL)));
    for pause in [WATCH_INTERVAL, WATCH_AGAIN] {
        let last = noon().plus(WATCHED_FOR.saturating_sub(pause));
        let until = noon().plus(WATCHED_FOR);
        assert_eq!(ended.next_watch(last, pause), Some(until));
        let too_late = last.plus(Duration::from_millis(1));
        assert_eq!(ended.next_watch(too_late, pause), None);
    }
    assert_eq!(record.next_watch(noon(), WATCH_AGAIN), None);
}

/// What holds of a record after each answer, written a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Expected {
    status: RailStatus,
    acknowledged_at: Option<Timestamp>,
    /// How what has arrived compares with the payment's amount.
    arrived: Option<Ordering>,
    finding: Option<Finding>,
    contradicts: bool,
}

/// What a receipt says has arrived: `None` if nothing.
fn compared(receipt: &Receipt) -> Option<Ordering> {
    match receipt.amount.as_str() {
        "0" => None,
        "100" => Some(Ordering::Equal),
        "120.5" => Some(Ordering::Greater),
        _ => Some(Ordering::Less),
    }
}

impl Expected {
    const BEFORE: Self = Self {
        status: RailStatus::Processing,
        acknowledged_at: None,
        arrived: None,
        finding: None,
        contradicts: false,
    };

    fn after(self, answer: &RailAnswer, now: Timestamp) -> Self {
        let before = Self {
            contradicts: false,
            ..self
        };
        let reported = match answer {
            RailAnswer::Silent => return before,
            RailAnswer::Unknown => {
                let has_begun = self.acknowledged_at.is_some();
                return Self {
                    contradicts: has_begun && self.status == RailStatus::Processing,
                    ..self
                };
            }
            RailAnswer::Accepted => None,
            RailAnswer::Reported(reported) => Some(reported),
        };
        let known = Self {
            acknowledged_at: self.acknowledged_at.or(Some(now)),
            ..before
        };
        match (reported, self.status) {
            (None, _) => known,
            (Some(reported), RailStatus::Processing) => known.processing(reported),
            (Some(reported), _) => known.ended(reported),
        }
    }

    fn processing(self, reported: &Reported) -> Self {
        let contradiction = |it: Self| Self {
            contradicts: true,
            ..it
        };
        let receipt = reported.receipt.as_ref();
        if receipt.is_some_and(|receipt| receipt.currency.as_deref() != Some("EUR")) {
            return contradiction(self);
        }
        let arrived = receipt.map_or(self.arrived, compared);
        let difference = match arrived {
            Some(Ordering::Less) => Some(Finding::Underpaid),
            Some(Ordering::Greater) => Some(Finding::Overpaid),
            Some(Ordering::Equal) | None => None,
        };
        let seen = Self {
            arrived,
            finding: difference,
            ..self
        };
        let ends = |status, finding| Self {
            status,
            finding,
            ..seen
        };
        match &reported.report {
            RailReport::InProgress => seen,
            RailReport::Settled { .. } if receipt.is_some() && arrived != Some(Ordering::Equal) => {
                contradiction(seen)
            }
            RailReport::Settled { .. } => Self {
                arrived: arrived.filter(|it| it.is_ge()),
                ..ends(
                    RailStatus::Settled,
                    difference.filter(|it| *it == Finding::Overpaid),
                )
            },
            RailReport::Failed { .. } | RailReport::Returned => ends(RailStatus::Failed, None),
            RailReport::Cancelled => ends(RailStatus::Cancelled, arrived.map(|_| Finding::Late)),
        }
    }

    /// A record that has ended, after a report.
    fn ended(self, reported: &Reported) -> Self {
        let receipt = reported.receipt.as_ref();
        let own = receipt.filter(|receipt| receipt.currency.as_deref() == Some("EUR"));
        let money = own.and_then(compared);
        let arrived = money.or(self.arrived);
        let overpaid = (arrived == Some(Ordering::Greater)).then_some(Finding::Overpaid);
        let has_returned = self.finding == Some(Finding::Returned);
        let finding = match (self.status == RailStatus::Settled, &reported.report) {
            (true, RailReport::Returned) => Some(Finding::Returned),
            (true, _) if has_returned => Some(Finding::Returned),
            (true, RailReport::Settled { .. }) => overpaid,
            (true, RailReport::InProgress) => self.finding.or(overpaid),
            (true, RailReport::Failed { .. } | RailReport::Cancelled) => Some(Finding::Retracted),
            (false, RailReport::Settled { .. }) => Some(Finding::Late),
            (false, RailReport::InProgress) if money.is_some() => Some(Finding::Late),
            (false, RailReport::InProgress) => self.finding,
            (false, RailReport::Cancelled) => self.finding.filter(|_| arrived.is_some()),
            (false, RailReport::Failed { .. } | RailReport::Returned) => None,
        };
        Self {
            arrived,
            finding,
            ..self
        }
    }
}

fn an_answer() -> impl Strategy<Value = RailAnswer> {
    let report = prop_oneof![
        4 => Just(RailReport::InProgress),
        2 => Just(RailReport::Settled { reference: None }),
        1 => Just(RailReport::Failed { code: "account_closed".to_owned(), reason: None }),
        1 => Just(RailReport::Cancelled),
        1 => Just(RailReport::Returned),
    ];
    let amount = prop_oneof![
        Just("0"),
        Just("20.00"),
        Just("99.99"),
        Just("100"),
        Just("120.5")
    ];
    let arrived = prop_oneof![
        2 => Just(None::<Receipt>),
        4 => amount.prop_map(|amount| Some(receipt(amount))),
        1 => Just(Some(Receipt { currency: Some("USD".to_owned()), ..receipt("100.00") })),
    ];
    prop_oneof![
        1 => Just(RailAnswer::Silent),
        1 => Just(RailAnswer::Accepted),
        1 => Just(RailAnswer::Unknown),
        5 => (report, arrived).prop_map(|(report, receipt)| reported(report, receipt)),
    ]
}

proptest! {
    // rule: gate.rail.states, rail.acknowledged-stays-begun, rail.findings, rail.findings-close, rail.settled-amount, rail.received
    #[test]
    fn record_follows_the_rules_after_any_answers(answers in prop::collection::vec(an_answer(), 0..16)) {
        let mut current = pay_in(RailState::Processing);
        let mut expected = Expected::BEFORE;
        for (index, answer) in answers.iter().enumerate() {
            let now = after(u64::try_from(index).unwrap() + 1);
            let before = current.clone();
            let progress = before.progress(answer, now);
            current = progress.record;
            expected = expected.after(answer, now);
            let found = Expected {
                status: current.state.status(),
                acknowledged_at: current.acknowledged_at,
                arrived: current.received.map(|it| it.against(&current.terms)),
                finding: finding(&current),
                contradicts: progress.contradiction.is_some(),
            };
            prop_assert_eq!(found, expected, "{:?}", answer);
            // An end is final, with its facts.
            if before.state != RailState::Processing {
                prop_assert_eq!(&current.state, &before.state);
            }
            // A finding is new once, and keeps its instant while it stays.
            let is_new = finding(&current) != finding(&before);
            prop_assert_eq!(progress.found, finding(&current).filter(|_| is_new));
            if !is_new {
                prop_assert_eq!(current.open_item, before.open_item);
            }
            let ends = current.state != before.state;
            let watch_at = if ends { Some(now.plus(WATCH_INTERVAL)) } else { before.watch_at };
            prop_assert_eq!(current.watch_at, watch_at);
            prop_assert_eq!(current.asking, before.asking);
        }
    }
}
