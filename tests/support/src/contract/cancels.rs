//! Cancelling a payment while its rail is asked about it: whatever the rail says to each, the payment has one outcome, and the books
//! and events agree with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use gate_core::ports::{CancelReport, GivenUp, Rail, RailOrder, RailPoll};
use gate_core::rail::{
    Finding, Instructions, PaymentId, RailAnswer, RailId, RailKind, RailRecord, RailReport,
    RailState, RailStatus,
};
use gate_core::session::SessionId;
use gate_core::usecases::advance_rails::AdvanceRails;
use gate_core::usecases::cancel_payment::{CancelError, CancelPayment};
use kernel::{Named, UpstreamName, Upstreams};
use tokio::join;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::contract::fixture::GateFixture;
use crate::contract::gate_world::RAIL;
use crate::contract::payments::{Payments, first_token};
use crate::contract::world::World;

/// A cancellation and a poll of one payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    CancelThenPoll,
    PollThenCancel,
    /// The rail gives its report after the cancellation has ended.
    CancelDuringPoll,
    /// The rail responds to the cancellation after the poll has ended.
    PollDuringCancel,
}

const ORDERS: [Order; 4] = [
    Order::CancelThenPoll,
    Order::PollThenCancel,
    Order::CancelDuringPoll,
    Order::PollDuringCancel,
];

const CANCELS: [Option<CancelReport>; 3] = [
    None,
    Some(CancelReport::TooLate),
    Some(CancelReport::Cancelled),
];

/// What the rail may say to a poll. `None` is silence.
fn reports() -> [Option<RailReport>; 5] {
    [
        None,
        Some(RailReport::InProgress),
        Some(RailReport::Settled { reference: None }),
        Some(RailReport::Failed {
            code: "provider_declined".to_owned(),
            reason: None,
        }),
        // The answer to an earlier cancellation may have been lost.
        Some(RailReport::Cancelled),
    ]
}

/// A rail that says the same to each cancellation, and to each poll. In two orders one of the calls waits for the end of the other.
struct Scripted {
    order: Order,
    cancel: Option<CancelReport>,
    report: Option<RailReport>,
    asked: Notify,
    other_ended: Notify,
}

impl Scripted {
    /// Waits for the end of the other call, in this order only.
    async fn hold(&self, order: Order) {
        if self.order == order {
            self.asked.notify_one();
            self.other_ended.notified().await;
        }
    }
}

impl Named for Scripted {
    fn name(&self) -> UpstreamName {
        UpstreamName::built_in(RAIL)
    }
}

#[async_trait]
impl Rail for Scripted {
    async fn instructions(&self, _: &RailOrder) -> Option<Instructions> {
        Some(Instructions(BTreeMap::new()))
    }

    async fn advance(&self, _: &RailOrder, _: RailPoll) -> RailAnswer {
        self.hold(Order::CancelDuringPoll).await;
        self.report.clone().map_or(RailAnswer::Silent, Into::into)
    }

    async fn watch(&self, _: &RailOrder) -> RailAnswer {
        RailAnswer::Silent
    }

    async fn cancel(&self, _: &RailOrder, _: GivenUp) -> Option<CancelReport> {
        self.hold(Order::PollDuringCancel).await;
        self.cancel
    }
}

/// How a cancellation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Cancelled,
    TooLate,
    Silent,
}

impl Told {
    fn of(given: Result<RailRecord, CancelError>) -> Self {
        match given {
            Ok(_) => Self::Cancelled,
            Err(CancelError::TooLate) => Self::TooLate,
            Err(CancelError::RailSilent) => Self::Silent,
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// The end of the cancellation, and the status of the record. The call that ends first decides.
fn expected(rail: &Scripted) -> (Told, RailStatus) {
    let reported = match rail.report {
        Some(RailReport::Settled { .. }) => Some(RailStatus::Settled),
        Some(RailReport::Failed { .. }) => Some(RailStatus::Failed),
        Some(RailReport::Cancelled) => Some(RailStatus::Cancelled),
        _ => None,
    };
    let cancels = rail.cancel == Some(CancelReport::Cancelled);
    let polled_first = matches!(rail.order, Order::PollThenCancel | Order::PollDuringCancel);
    let told = match (rail.cancel, reported) {
        // The rail is not asked about a payment that is over.
        (_, Some(_)) if rail.order == Order::PollThenCancel => Told::TooLate,
        (Some(CancelReport::Cancelled), Some(RailStatus::Settled | RailStatus::Failed))
            if polled_first =>
        {
            Told::TooLate
        }
        (Some(CancelReport::Cancelled), _) => Told::Cancelled,
        (Some(CancelReport::TooLate), _) => Told::TooLate,
        (None, _) => Told::Silent,
    };
    let status = match reported {
        Some(reported) if polled_first || !cancels => reported,
        _ if cancels => RailStatus::Cancelled,
        _ => RailStatus::Processing,
    };
    (told, status)
}

/// What an operator must look at: a settlement beside a granted cancellation, of which the second contradicts the first.
fn finding(rail: &Scripted) -> Option<Finding> {
    let cancels = rail.cancel == Some(CancelReport::Cancelled);
    let settles = matches!(rail.report, Some(RailReport::Settled { .. }));
    match rail.order {
        Order::CancelDuringPoll if cancels && settles => Some(Finding::Late),
        Order::PollDuringCancel if cancels && settles => Some(Finding::Retracted),
        _ => None,
    }
}

/// A payment under way.
struct Started {
    widget: Payments,
    session: SessionId,
    id: RailId,
    payment: PaymentId,
}

impl Started {
    async fn cancel(&self, cancelling: &CancelPayment) -> Told {
        let who = self.widget.who();
        let token = first_token(self.session);
        Told::of(cancelling.cancel(who, token, self.payment).await)
    }

    /// Cancels and polls in the rail's order. Returns the end of the cancellation.
    async fn meet(&self, rail: &Arc<Scripted>) -> Told {
        let rail_port: Arc<dyn Rail> = rail.clone();
        let cancelling = CancelPayment {
            rails: Upstreams {
                present: Some(Arc::clone(&rail_port)),
                former: None,
            },
            ..self.widget.cancelling.clone()
        };
        let settling = AdvanceRails {
            rail: rail_port,
            ..self.widget.rails.settling.clone()
        };
        let cancel = || self.cancel(&cancelling);
        let poll = async || {
            let advancing = settling.advance(self.widget.who(), self.id);
            advancing.await.unwrap();
        };
        match rail.order {
            Order::CancelThenPoll => {
                let told = cancel().await;
                poll().await;
                told
            }
            Order::PollThenCancel => {
                poll().await;
                cancel().await
            }
            Order::CancelDuringPoll => {
                let meanwhile = async {
                    rail.asked.notified().await;
                    let told = cancel().await;
                    rail.other_ended.notify_one();
                    told
                };
                join!(meanwhile, poll()).0
            }
            Order::PollDuringCancel => {
                let meanwhile = async {
                    rail.asked.notified().await;
                    poll().await;
                    rail.other_ended.notify_one();
                };
                join!(cancel(), meanwhile).0
            }
        }
    }
}

impl<F: GateFixture> World<F> {
    async fn started(&self, widget: &Payments, kind: RailKind, name: &str) -> Started {
        let (session, id) = match kind {
            RailKind::PayIn => widget.bought(name, "100.00").await,
            RailKind::PayOut => widget.sold(name, "100.00").await,
            RailKind::Swap => widget.swapped(name, "100.00").await,
        };
        let record = self.payment(widget.who(), session).await.unwrap();
        Started {
            widget: widget.clone(),
            session,
            id,
            payment: record.payment_id(),
        }
    }

    /// The status of a payment. Its events agree with it.
    async fn outcome(&self, started: &Started) -> RailStatus {
        let who = started.widget.who();
        let record = self.payment(who, started.session).await.unwrap();
        let status = record.state.status();
        let said = self.said(who, started.session).await;
        let of_session: &[&str] = match status {
            RailStatus::Settled => &["gate_session.processing", "gate_session.completed"],
            RailStatus::Failed => &["gate_session.processing", "gate_session.failed"],
            RailStatus::Processing | RailStatus::Cancelled => &["gate_session.processing"],
        };
        assert_eq!(said[1..], *of_session, "{status:?}");
        let of_rail = match (started.id.kind(), status) {
            (RailKind::Swap, _) => 0,
            (_, RailStatus::Processing) => 1,
            _ => 2,
        };
        let said = self.said_of(who, &started.id.to_string()).await;
        assert_eq!(said.len(), of_rail, "{status:?}: {said:?}");
        status
    }
}

// rule: gate.payment.cancel, gate.payment.once, gate.payment.events, rail.findings, rail.acknowledged-stays-begun
pub async fn cancel_and_poll_have_one_outcome_in_each_order(world: World<impl GateFixture>) {
    let widget = world.open_payments("acme", true).await;
    let mut number = 0;
    for (turn, order) in ORDERS.into_iter().enumerate() {
        // Each order begins with another kind, so that no response meets one kind alone.
        let mut kinds = RailKind::ALL.into_iter().cycle().skip(turn);
        for (cancel, report) in CANCELS
            .into_iter()
            .flat_map(|cancel| reports().map(|report| (cancel, report)))
        {
            let kind = kinds.next().unwrap();
            let case = format!("{order:?} {cancel:?} {report:?} {kind:?}");
            number += 1;
            let rail = Arc::new(Scripted {
                order,
                cancel,
                report,
                asked: Notify::new(),
                other_ended: Notify::new(),
            });
            let started = world.started(&widget, kind, &number.to_string()).await;
            let told = started.meet(&rail).await;
            let outcome = (told, world.outcome(&started).await);
            assert_eq!(outcome, expected(&rail), "{case}");
            let record = world.payment(widget.who(), started.session).await.unwrap();
            let found = record.open_item.map(|item| item.finding);
            assert_eq!(found, finding(&rail), "{case}");
            if outcome == (Told::TooLate, RailStatus::Processing) {
                assert!(record.acknowledged_at.is_some(), "{case}");
            }
            // A second cancellation finds the payment over, or the rail still cancels it.
            let again = started.cancel(&widget.cancelling).await;
            let finally = match outcome.1 {
                RailStatus::Processing => (Told::Cancelled, RailStatus::Cancelled),
                over => (Told::TooLate, over),
            };
            assert_eq!((again, world.outcome(&started).await), finally, "{case}");
        }
    }
    world.assert_clean().await;
}

// rule: gate.payment.cancel, gate.payment.once
pub async fn concurrent_cancel_and_settlement_have_one_winner(world: World<impl GateFixture>) {
    let widget = world.open_payments("acme", true).await;
    let who = widget.who().clone();
    for round in 0..9 {
        let name = format!("round-{round}");
        let (session, id) = match round % 3 {
            0 => widget.bought(&name, "100.00").await,
            1 => widget.sold(&name, "100.00").await,
            _ => widget.swapped(&name, "100.00").await,
        };
        let payment = world.payment(&who, session).await.unwrap().payment_id();
        let mut racing = JoinSet::new();
        for _ in 0..2 {
            let (widget, who) = (widget.clone(), who.clone());
            racing.spawn(async move {
                let token = first_token(session);
                let cancelling = widget.cancelling.cancel(&who, token, payment);
                cancelling.await.map(|record| record.state.status())
            });
        }
        widget.rails.settling.advance(&who, id).await.unwrap();
        let outcomes = racing.join_all().await;
        let record = world.payment(&who, session).await.unwrap();
        let cancelled = matches!(record.state, RailState::Cancelled { .. });
        let mut succeeded = 0;
        for outcome in outcomes {
            match outcome {
                Ok(_) => succeeded += 1,
                Err(CancelError::TooLate) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        assert_eq!(succeeded > 0, cancelled);
        let last = world.said(&who, session).await.pop().unwrap();
        let expected = if cancelled {
            "gate_session.processing"
        } else {
            "gate_session.completed"
        };
        assert_eq!(last, expected);
    }
    world.assert_clean().await;
}
