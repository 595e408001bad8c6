//! Races of a session in the widget: a quote against a payment, an expiry, giving up, and the rails of the partner's server. In each
//! exactly one side wins, and the events say which.

use gate_core::session::{Flow, NotOpen, SessionId, SessionRefusal, SessionStatus};
use gate_core::signed_quote::{QuoteClosed, SignedQuoteId};
use gate_core::usecases::act_on_session::{ActError, ActionRequest};
use gate_core::usecases::pay_session::PayError;
use gate_core::usecases::quote_session::QuoteSessionError;
use gate_core::usecases::redeem_quote::RedeemError;
use tokio::task::JoinSet;

use crate::contract::fixture::GateFixture;
use crate::contract::gate_world::{DAY, draft};
use crate::contract::payments::{Payments, purchase};
use crate::contract::rails::TTL;
use crate::contract::world::{MILLI, World};

const CREATED: &str = "gate_session.created";
const PROCESSING: &str = "gate_session.processing";
const COMPLETED: &str = "gate_session.completed";

/// Starts payments of a session with a quote, each under a key of its own.
fn pay(
    widget: &Payments,
    session: SessionId,
    quote: SignedQuoteId,
    times: u32,
) -> JoinSet<Result<String, PayError>> {
    let mut racing = JoinSet::new();
    for number in 0..times {
        let key = format!("{quote}-{number}");
        racing.spawn(widget.clone().pay(session, key, purchase(quote)));
    }
    racing
}

impl<F: GateFixture> World<F> {
    /// Settles the payment of a session; returns all events of the session.
    async fn settled(&self, widget: &Payments, session: SessionId) -> Vec<String> {
        let who = widget.who();
        let record = self.payment(who, session).await.unwrap();
        let settling = &widget.rails.settling;
        settling.advance(who, record.id).await.unwrap();
        self.said(who, session).await
    }
}

// rule: gate.embed-quote.superseded, gate.payment.once
pub async fn quote_and_payment_at_once_have_one_winner(world: World<impl GateFixture>) {
    let widget = world.open_payments("acme", true).await;
    for round in 0..12 {
        let name = format!("round-{round}");
        let session = widget.rails.gate.opened(&name, draft("100.00")).await;
        let quote = widget.quoted(session).await;
        let mut quoting = JoinSet::new();
        for _ in 0..round % 3 {
            let widget = widget.clone();
            quoting.spawn(async move { widget.quote(session, Flow::OnRamp).await });
        }
        let paying = pay(&widget, session, quote, 2);
        let (mut quotes, mut paid) = (Vec::new(), 0);
        for quoted in quoting.join_all().await {
            match quoted {
                Ok(quote) => quotes.push(quote.id),
                Err(QuoteSessionError::Session(SessionRefusal::PaymentInProgress)) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        for outcome in paying.join_all().await {
            match outcome {
                Ok(_) => paid += 1,
                Err(
                    PayError::Closed(QuoteClosed::Superseded)
                    | PayError::Session(SessionRefusal::PaymentInProgress),
                ) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        // A quote that was made before the payment has superseded the one that it would redeem.
        assert_eq!(paid, usize::from(quotes.is_empty()), "{quotes:?}");
        for quote in quotes {
            let again = pay(&widget, session, quote, 1).join_all().await;
            paid += again.iter().flatten().count();
        }
        assert_eq!(paid, 1);
        let said = world.settled(&widget, session).await;
        assert_eq!(said, [CREATED, PROCESSING, COMPLETED]);
    }
    world.assert_clean().await;
}

// rule: gate.session.payment-waits, gate.session.lazy-expiry, gate.event.once, time.read-after-lock
pub async fn payment_and_expiry_at_once_have_one_winner(world: World<impl GateFixture>) {
    let widget = world.open_payments("acme", true).await;
    for round in 0..12_u32 {
        let name = format!("round-{round}");
        let session = widget.rails.gate.opened(&name, draft("100.00")).await;
        world.clock().advance(DAY - TTL);
        let quote = widget.quoted(session).await;
        // Quote and session expire at one instant, which is before, during, or after the requests.
        world.clock().advance(TTL - MILLI * (round % 3));
        let paying = pay(&widget, session, quote, 3);
        let mut looking = JoinSet::new();
        for _ in 0..3 {
            looking.spawn(widget.rails.gate.clone().act(session, None, None));
        }
        world.clock().advance(MILLI);
        for looked in looking.join_all().await {
            looked.unwrap();
        }
        let mut paid = 0;
        for outcome in paying.join_all().await {
            match outcome {
                Ok(_) => paid += 1,
                Err(PayError::Session(
                    SessionRefusal::PaymentInProgress
                    | SessionRefusal::NotOpen(NotOpen(SessionStatus::Expired)),
                )) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        assert!(paid <= 1, "{paid}");
        world.clock().advance(DAY);
        let gate = widget.rails.gate.clone();
        gate.act(session, None, None).await.unwrap();
        if paid == 1 {
            let said = world.settled(&widget, session).await;
            assert_eq!(said, [CREATED, PROCESSING, COMPLETED]);
        } else {
            let said = world.said(widget.who(), session).await;
            assert_eq!(said, [CREATED, "gate_session.expired"]);
        }
    }
    world.assert_clean().await;
}

// rule: gate.embed.cancel, gate.session.one-end, gate.event.once
pub async fn giving_up_and_settlement_at_once_have_one_winner(world: World<impl GateFixture>) {
    let widget = world.open_payments("acme", true).await;
    for round in 0..12 {
        // A payment that fails leaves the session to its user, who may have given up after that.
        let fails = round % 2 == 1;
        let amount = if fails { "100.05" } else { "100.00" };
        let (session, id) = widget.bought(&format!("round-{round}"), amount).await;
        let mut giving_up = JoinSet::new();
        for _ in 0..3 {
            let gate = widget.rails.gate.clone();
            giving_up.spawn(gate.act(session, None, Some(ActionRequest::Cancel)));
        }
        let settling = &widget.rails.settling;
        settling.advance(widget.who(), id).await.unwrap();
        let mut given_up = 0;
        for outcome in giving_up.join_all().await {
            match outcome {
                Ok(()) => given_up += 1,
                Err(ActError::Refused(_)) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        assert!(given_up <= usize::from(fails), "{given_up}");
        let mut expected = vec![CREATED, PROCESSING];
        expected.push(if fails {
            "gate_session.failed"
        } else {
            COMPLETED
        });
        expected.extend((given_up == 1).then_some("gate_session.cancelled"));
        assert_eq!(world.said(widget.who(), session).await, expected);
    }
    world.assert_clean().await;
}

// rule: gate.session.one-payment, gate.payment.once
pub async fn widget_and_rails_of_server_at_once_pay_session_once(world: World<impl GateFixture>) {
    let widget = world.open_payments("acme", true).await;
    for round in 0..12 {
        let name = format!("round-{round}");
        let session = widget.rails.gate.opened(&name, draft("100.00")).await;
        let quote = widget.quoted(session).await;
        let locked = widget.rails.locked(&name, "100.00").await;
        let mut redeeming = JoinSet::new();
        for number in 0..3 {
            let rails = widget.rails.clone();
            redeeming.spawn(rails.redeem(format!("{name}-{number}"), locked, session));
        }
        let paying = pay(&widget, session, quote, 3);
        let (mut hosted, mut by_server) = (0, 0);
        for outcome in paying.join_all().await {
            match outcome {
                Ok(_) => hosted += 1,
                Err(PayError::Session(SessionRefusal::PaymentInProgress)) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        for outcome in redeeming.join_all().await {
            match outcome {
                Ok(_) => by_server += 1,
                Err(RedeemError::Session(SessionRefusal::PaymentInProgress)) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        assert_eq!(hosted + by_server, 1);
        let said = world.settled(&widget, session).await;
        let expected = [CREATED, PROCESSING, COMPLETED];
        let expected = expected
            .into_iter()
            .filter(|kind| hosted == 1 || *kind != PROCESSING);
        assert_eq!(said, expected.collect::<Vec<_>>());
    }
    world.assert_clean().await;
}
