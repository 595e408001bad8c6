//! An engine that is any number of steps ahead of the polls, and whose responses are lost, repeated or contradictory.
//!
//! The polls must move the same money as if they had seen every step.

use pools_core::ledger::{Transfer, TransferRole};
use pools_core::quote::Side;
use pools_core::trade::{EngineReport, Trade, TradeEvent, TradeState, TradeStatus};
use proptest::prelude::*;

use crate::fixtures::{after, eur, trade, usdt};

/// The possible histories of a confirmed trade at the engine, step by step.
fn courses() -> [Vec<EngineReport>; 4] {
    let at_work = EngineReport::InProgress;
    let delivered = EngineReport::Delivered("fill".into());
    let returned = EngineReport::Reversed(Some("fill".to_owned()));
    [
        vec![at_work.clone(), delivered.clone()],
        vec![at_work.clone(), delivered, returned],
        vec![at_work.clone(), EngineReport::CannotComplete],
        vec![at_work, EngineReport::Released],
    ]
}

/// The response that a poll receives.
#[derive(Debug, Clone)]
enum Response {
    /// The current report.
    Truth,
    /// None: the response is lost.
    Nothing,
    /// The report of this many steps before.
    Earlier(usize),
    /// A report that contradicts the settlement. It occurs only after a settlement.
    Contradiction(EngineReport),
}

/// For each poll, the number of steps that the engine takes before it, and the response.
fn polls() -> impl Strategy<Value = Vec<(usize, Response)>> {
    let contradiction = prop_oneof![
        Just(EngineReport::CannotComplete),
        Just(EngineReport::Released),
        Just(EngineReport::Delivered("another".into())),
    ];
    let response = prop_oneof![
        4 => Just(Response::Truth),
        2 => Just(Response::Nothing),
        2 => (1..3_usize).prop_map(Response::Earlier),
        1 => contradiction.prop_map(Response::Contradiction),
    ];
    prop::collection::vec((0..3_usize, response), 0..8)
}

/// A trade with the transfers, events and contradictions of its steps.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    trade: Trade,
    transfers: Vec<(Transfer, TransferRole)>,
    events: Vec<TradeEvent>,
    contradictions: usize,
}

impl Seen {
    fn new(trade: Trade) -> Self {
        Self {
            trade,
            transfers: Vec::new(),
            events: Vec::new(),
            contradictions: 0,
        }
    }

    fn response(&mut self, report: &EngineReport) {
        match self.trade.steps(report, after(20_000)) {
            Err(_) => self.contradictions += 1,
            Ok(steps) => {
                for step in steps {
                    self.transfers.extend(step.transfer);
                    self.events.extend(step.event);
                    self.trade.state = step.state;
                }
            }
        }
    }
}

fn trades() -> [Trade; 3] {
    let sold = trade(Side::OffRamp, None).terms.crypto;
    [
        trade(Side::OnRamp, Some(eur("100"))),
        trade(Side::OnRamp, None),
        trade(Side::OffRamp, Some(sold)),
    ]
}

proptest! {
    // rule: pools.trade.returned-unseen, pools.trade.contradiction, pools.trade.converge
    #[test]
    fn engine_ahead_of_polls_ends_with_the_same_money(
        which in 0..3_usize,
        course in 0..4_usize,
        polls in polls(),
    ) {
        let trade = trades()[which].clone();
        let course = courses()[course].clone();
        let mut each_step = Seen::new(trade.clone());
        for report in &course {
            each_step.response(report);
        }
        let mut seen = Seen::new(trade);
        let (mut stage, mut contradicted) = (0, 0);
        for (steps, response) in polls {
            stage = (stage + steps).min(course.len() - 1);
            let is_settled = matches!(seen.trade.state, TradeState::Settled(_));
            match response {
                Response::Truth => seen.response(&course[stage]),
                Response::Nothing => {}
                Response::Earlier(ago) => seen.response(&course[stage.saturating_sub(ago)]),
                Response::Contradiction(report) => if is_settled {
                    seen.response(&report);
                    contradicted += 1;
                },
            }
        }
        seen.response(course.last().unwrap());
        prop_assert_eq!(seen.contradictions, contradicted);
        seen.contradictions = 0;
        prop_assert_eq!(seen, each_step);
    }
}

// rule: pools.trade.returned-unseen
#[test]
fn unseen_return_settles_then_refunds_with_and_without_fill() {
    for fill in [None, Some("fill".to_owned())] {
        for trade in trades() {
            let mut seen = Seen::new(trade.clone());
            seen.response(&EngineReport::Reversed(fill.clone()));
            seen.response(&EngineReport::Reversed(fill.clone()));
            let settlement = seen.trade.state.settlement().unwrap();
            let unknown = format!("unknown:{}", trade.id);
            assert_eq!(settlement.fill, fill.clone().unwrap_or(unknown));
            assert_eq!(seen.trade.state.status(), TradeStatus::Returned);
            assert_eq!(seen.events, [TradeEvent::Settled]);
            let parts: Vec<TransferRole> = seen.transfers.iter().map(|(_, part)| *part).collect();
            let refunded = seen.transfers.last().map(|(transfer, _)| transfer.amount);
            let due = match trade.terms.side {
                Side::OnRamp => trade.reserved,
                Side::OffRamp => {
                    assert_eq!(seen.transfers[0].0.amount, usdt("100"));
                    Some(trade.terms.fiat)
                }
            };
            let moved = [TransferRole::Close, TransferRole::Return];
            assert_eq!(parts, if due.is_some() { &moved[..] } else { &[] });
            assert_eq!(refunded, due);
        }
    }
}
