//! Pairs of requests about one session in every order of their steps, on the real store. After each order the
//! session has at most one quote that can be paid and at most one payment in progress or settled; every invariant is checked after at
//! most 25 orders.

use std::sync::Arc;
use std::time::Duration;

use acceptance::{
    ACME, ACME_PUBLISHABLE, ACME_SECRET, Cast, Gate, GateUseCases, Paced, Setup, World,
};
use gate_core::access::GateAccess;
use gate_core::embed::SessionToken;
use gate_core::profile::GateProfile;
use gate_core::rail::{RailKind, RailRecord};
use gate_core::session::{SessionId, SessionRefusal};
use gate_core::signed_quote::{QuoteClosed, SignedQuote, SignedQuoteId};
use gate_core::usecases::act_on_session::{ActError, ActionRequest};
use gate_core::usecases::cancel_payment::CancelError;
use gate_core::usecases::pay_session::{PayError, PaymentRequest};
use gate_core::usecases::quote_session::{OrderedConversion, QuoteSessionError, SessionOrder};
use gate_core::usecases::redeem_quote::{RedeemError, Redemption};
use kernel::Cas;
use kernel::rates::Side;
use partner_core::Tenant;
use partner_core::idempotency::{IdempotencyKey, Operation, OperationKey};
use partner_core::stored_response::{IdempotentResponse, RenderedResponse};
use serde_json::json;

mod pretences;

use super::rails::{self, DAY};
use super::widget_payments::WALLET;
use crate::interleavings::Played;

/// Lifetime of the widget's token.
const TOKEN_TTL: Duration = Duration::from_secs(60 * 60);

/// Plays a scene of one session in every order.
struct Scene {
    played: Played,
    setup: fn(&mut Setup),
    gate: Option<Gate>,
    /// How many sessions were opened.
    opened: usize,
}

impl Scene {
    fn new() -> Self {
        Self::of(|_| {})
    }

    fn of(setup: fn(&mut Setup)) -> Self {
        Self {
            played: Played::new(),
            setup,
            gate: None,
            opened: 0,
        }
    }

    /// The session of the next order, with a quote; `None` after the last order.
    async fn next(&mut self, amount: &str) -> Option<Paying> {
        if self.played.needs_world().await? {
            let gate = Gate::with(self.setup).await;
            self.played.set_world(gate.world());
            self.gate = Some(gate);
        }
        self.opened += 1;
        let gate = self.gate.clone()?;
        let key = format!("session-{}", self.opened);
        let session = rails::session(&gate.acme(), &key, amount, json!({})).await;
        let session = SessionId::parse(&session).unwrap();
        Some(Paying::open(gate, session, ACME_PUBLISHABLE).await)
    }

    async fn play(&mut self, cast: Cast) -> Vec<String> {
        self.played.play(cast).await
    }

    /// Records the outcome of an order, and checks the session.
    async fn ended(&mut self, paying: &Paying, outcome: &str) {
        assert!(paying.quotes().await <= 1, "{outcome}");
        assert!(paying.payments().await <= 1, "{outcome}");
        self.played.ended(paying.world(), outcome).await;
    }

    /// Expects exactly these outcomes.
    fn had(&self, name: &str, outcomes: &[&str]) {
        self.played.had(name, outcomes);
    }
}

/// A session with a quote, and the key of its widget.
#[derive(Clone)]
struct Paying {
    gate: Gate,
    access: Arc<GateAccess>,
    session: SessionId,
    quote: SignedQuoteId,
}

impl Paying {
    /// Quotes a session for a widget with this key.
    async fn open(gate: Gate, session: SessionId, key: &str) -> Self {
        let access = gate.access(key).await;
        let quote = quote(gate.use_cases(), &access, session).await.unwrap().id;
        Self {
            gate,
            access,
            session,
            quote,
        }
    }

    fn world(&self) -> &World {
        self.gate.world()
    }

    fn who(&self) -> &Tenant {
        &self.access.tenant
    }

    /// The widget's token.
    fn token(&self) -> SessionToken {
        first_token(self.session)
    }

    /// Pays the session with its quote.
    async fn pay(&self, uses: &GateUseCases, key: &str) -> Result<IdempotentResponse, PayError> {
        let key = operation_key(&format!("/v1/embed/payments {}", self.session), key);
        let asked = PaymentRequest {
            quote: self.quote.to_string(),
            wallet_address: Some(WALLET.to_owned()),
            payout: None,
            country: None,
            until: self.gate.now().plus(TOKEN_TTL),
            trace_parent: None,
        };
        uses.paying
            .pay(&self.access, self.token(), key, &asked, &|record| {
                Ok(rendered(record))
            })
            .await
    }

    /// A payment in a scene; returns `paid`, or the refusal.
    async fn pays(self, paced: Paced, key: &'static str) -> String {
        let outcome = match self.pay(&paced.gate(), key).await {
            Ok(_) => "paid",
            Err(PayError::Session(refusal)) => refused(refusal),
            Err(PayError::Closed(QuoteClosed::Superseded)) => "superseded",
            Err(PayError::Denied(_)) => "denied",
            Err(PayError::TokenExpired) => "token ended",
            Err(error) => panic!("{error:?}"),
        };
        outcome.to_owned()
    }

    /// A payment in a scene; returns the bytes of the response.
    async fn pays_with_response(self, paced: Paced, key: &'static str) -> String {
        let response = self.pay(&paced.gate(), key).await.unwrap();
        String::from_utf8(response.into_rendered().0).unwrap()
    }

    /// Another quote in a scene; returns `quoted`, or the refusal.
    async fn quotes_again(self, paced: Paced) -> String {
        let outcome = match quote(&paced.gate(), &self.access, self.session).await {
            Ok(_) => "quoted",
            Err(QuoteSessionError::Session(refusal)) => refused(refusal),
            Err(error) => panic!("{error:?}"),
        };
        outcome.to_owned()
    }

    /// The redemption of another quote by the partner's server; returns `redeemed`, or the refusal.
    async fn redeems(self, paced: Paced, quote: String) -> String {
        let access = self.gate.access(ACME_SECRET).await;
        let asked = Redemption {
            kind: RailKind::PayIn,
            quote,
            session: self.session.to_string(),
            trace_parent: None,
        };
        let key = operation_key("/v1/rails/pay_ins", &asked.session);
        let redeeming = paced.gate().redeeming;
        let redeemed = redeeming
            .redeem(&access, key, &asked, &|record| Ok(rendered(record)))
            .await;
        let outcome = match redeemed {
            Ok(_) => "redeemed",
            Err(RedeemError::Session(refusal)) => refused(refusal),
            Err(error) => panic!("{error:?}"),
        };
        outcome.to_owned()
    }

    /// The instant of expiry passes, and then the session expires if that is due; returns its status.
    async fn expires(self, paced: Paced) -> String {
        paced.turn().await;
        self.world().after(1);
        self.status(&paced.gate()).await.to_owned()
    }

    /// The user cancels a payment and then the session; returns both outcomes.
    async fn gives_up(self, paced: Paced, record: RailRecord) -> String {
        let uses = paced.gate();
        let cancelling = uses.cancelling;
        let payment = cancelling.cancel(self.who(), self.token(), record.payment_id());
        let payment = match payment.await {
            Ok(_) => "cancelled",
            Err(CancelError::TooLate) => "too late",
            Err(error) => panic!("{error:?}"),
        };
        let acted = uses
            .acting
            .act(
                self.who(),
                self.session,
                None,
                &ActionRequest::Cancel,
                &|_| Ok(RenderedResponse(Vec::new())),
            )
            .await;
        let session = match acted {
            Ok(_) => "cancelled",
            Err(ActError::Refused(refusal)) => refused(refusal),
            Err(error) => panic!("{error:?}"),
        };
        format!("{payment}, {session}")
    }

    /// A poll of the rail in a scene.
    async fn settles(self, paced: Paced, record: RailRecord) -> String {
        let uses = paced.gate();
        let advanced = uses.settling[0].advance(self.who(), record.id).await;
        advanced.unwrap();
        "polled".to_owned()
    }

    /// What the widget reads of the session and its payment in a scene.
    async fn reads(self, paced: Paced) -> String {
        let showing = paced.gate().showing;
        let shown = showing.show(self.who(), self.token(), None).await.unwrap();
        let payment = shown.payment.unwrap().state.status().as_str();
        format!("{}, {payment}", shown.session.state.status().as_str())
    }

    /// Revokes a key, or without one switches the gate off; returns the number of payments afterwards.
    async fn ends_access(self, paced: Paced, key: Option<String>) -> String {
        paced.turn_to_write().await;
        let operator = self.world().operator();
        match key {
            Some(key) => operator.revoke(&key).await,
            None => operator.change_gate(ACME, switch(false)).await,
        }
        let made = self.payments().await;
        paced.turn().await;
        made.to_string()
    }

    /// Newer tokens of the session end the widget's; returns the number of payments afterwards.
    async fn ends_token(self, paced: Paced) -> String {
        let store = paced.gate().context.store;
        let mut tx = store.gate_begin("tokens").await.unwrap();
        for number in 1..=11 {
            let session = self.session;
            let token = SessionToken { session, number };
            let counted = tx.session_count_token(self.who(), token).await;
            assert_eq!(counted.unwrap(), Cas::Won);
        }
        tx.commit().await.unwrap();
        let made = self.payments().await;
        paced.turn().await;
        made.to_string()
    }

    /// The session's status after a due expiry was applied.
    async fn status(&self, uses: &GateUseCases) -> &'static str {
        let found = uses.context.expire_if_due(self.who(), self.session).await;
        found.unwrap().unwrap().state.status().as_str()
    }

    /// The session's newest payment.
    async fn payment(&self) -> RailRecord {
        let store = &self.gate.sessions().store;
        let found = store.payment_of_session(self.who(), self.session).await;
        found.unwrap().unwrap()
    }

    /// The number of the session's payments that are in progress or settled.
    async fn payments(&self) -> i64 {
        let rows = "rail_records WHERE status IN ('processing', 'settled')";
        self.count(rows).await
    }

    /// The number of the session's quotes that are neither redeemed nor superseded.
    async fn quotes(&self) -> i64 {
        let rows = "signed_quotes WHERE consumed_at IS NULL AND superseded_at IS NULL";
        self.count(rows).await
    }

    async fn count(&self, rows: &str) -> i64 {
        let of_session = format!("{rows} AND session_id = '{}'", self.session.ulid());
        self.world().database().count(&of_session).await
    }
}

/// Quotes a purchase of the session's amount.
async fn quote(
    uses: &GateUseCases,
    access: &GateAccess,
    session: SessionId,
) -> Result<SignedQuote, QuoteSessionError> {
    let order = SessionOrder {
        conversion: OrderedConversion::Ramp {
            side: Side::OnRamp,
            payment_method: "sepa".to_owned(),
        },
        asset: "USDT".to_owned(),
        network: "tron".to_owned(),
        country: None,
    };
    let token = first_token(session);
    uses.quoting.quote(access, token, &order).await
}

/// The first token of a session.
const fn first_token(session: SessionId) -> SessionToken {
    SessionToken { session, number: 1 }
}

fn operation_key(path: &str, key: &str) -> OperationKey {
    OperationKey {
        operation: Operation::new("POST", path),
        key: IdempotencyKey::parse(key.as_bytes()).unwrap(),
    }
}

/// A response with the id of its record. Only a replay equals another response.
fn rendered(record: &RailRecord) -> RenderedResponse {
    RenderedResponse(format!("201 req_1\n\"{}\"", record.id).into_bytes())
}

fn refused(refusal: SessionRefusal) -> &'static str {
    match refusal {
        SessionRefusal::PaymentInProgress => "in progress",
        SessionRefusal::NotOpen(_) => "not open",
    }
}

/// Switches the gate of a partner on or off.
fn switch(enabled: bool) -> impl FnOnce(&mut GateProfile) {
    move |profile| profile.enabled = enabled
}

// rule: gate.embed-quote.superseded, gate.session.one-payment
#[tokio::test]
async fn quote_and_payment() {
    let mut scene = Scene::new();
    while let Some(paying) = scene.next("100.00").await {
        let (one, other) = (paying.clone(), paying.clone());
        let cast = Cast::of(paying.world())
            .and(move |paced| one.pays(paced, "k"))
            .and(move |paced| other.quotes_again(paced));
        let answers = scene.play(cast).await;
        scene.ended(&paying, &answers.join(", ")).await;
    }
    scene.had(
        "quote and payment",
        &["paid, in progress", "superseded, quoted"],
    );
}

// rule: gate.payment.once, gate.session.one-payment
#[tokio::test]
async fn payment_and_payment_with_two_keys() {
    let mut scene = Scene::new();
    while let Some(paying) = scene.next("100.00").await {
        let (one, other) = (paying.clone(), paying.clone());
        let cast = Cast::of(paying.world())
            .and(move |paced| one.pays(paced, "k"))
            .and(move |paced| other.pays(paced, "l"));
        let mut answers = scene.play(cast).await;
        answers.sort_unstable();
        scene.ended(&paying, &answers.join(", ")).await;
    }
    scene.had("payment and payment with two keys", &["in progress, paid"]);
}

// rule: gate.payment.once, idempotency.gate-twin, idempotency.gate-replay
#[tokio::test]
async fn payment_and_payment_with_one_key() {
    let mut scene = Scene::new();
    while let Some(paying) = scene.next("100.00").await {
        let (one, other) = (paying.clone(), paying.clone());
        // Two processes that share only the database.
        let cast = Cast::of(paying.world())
            .and(move |paced| one.pays_with_response(paced, "k"))
            .elsewhere()
            .and(move |paced| other.pays_with_response(paced, "k"));
        let answers = scene.play(cast).await;
        assert_eq!(answers[0], answers[1], "the same bytes");
        assert_eq!(paying.payments().await, 1);
        scene.ended(&paying, "one response").await;
    }
    scene.had("payment and payment with one key", &["one response"]);
}

// rule: gate.session.lazy-expiry, gate.session.payment-waits
#[tokio::test]
async fn payment_and_expiry() {
    let mut scene = Scene::new();
    while let Some(opened) = scene.next("100.00").await {
        opened.world().after(DAY - 1);
        let paying = Paying::open(opened.gate, opened.session, ACME_PUBLISHABLE).await;
        let (one, other) = (paying.clone(), paying.clone());
        let cast = Cast::of(paying.world())
            .and(move |paced| one.pays(paced, "k"))
            .and(move |paced| other.expires(paced));
        let answers = scene.play(cast).await;
        let status = paying.status(paying.gate.use_cases()).await;
        assert_eq!(answers[1], status, "an observed end persists");
        let outcome = format!("{}: {status}", answers[0]);
        scene.ended(&paying, &outcome).await;
    }
    scene.had("payment and expiry", &["paid: open", "not open: expired"]);
}

// rule: gate.payment.cancel, gate.embed.cancel, gate.session.payment-waits, gate.session.one-end, gate.rail.settled
#[tokio::test]
async fn giving_up_and_settlement() {
    for (amount, outcomes) in [
        (
            "100.00",
            [
                "too late, in progress: completed, settled",
                "too late, not open: completed, settled",
            ],
        ),
        (
            "100.31",
            [
                "too late, in progress: open, failed",
                "too late, cancelled: cancelled, failed",
            ],
        ),
    ] {
        let mut scene = Scene::new();
        while let Some(paying) = scene.next(amount).await {
            paying.pay(paying.gate.use_cases(), "k").await.unwrap();
            let record = paying.payment().await;
            let one = (paying.clone(), record.clone());
            let other = (paying.clone(), record);
            let cast = Cast::of(paying.world())
                .and(move |paced| one.0.gives_up(paced, one.1))
                .and(move |paced| other.0.settles(paced, other.1));
            let answers = scene.play(cast).await;
            let session = paying.status(paying.gate.use_cases()).await;
            let record = paying.payment().await.state.status().as_str();
            let outcome = format!("{}: {session}, {record}", answers[0]);
            scene.ended(&paying, &outcome).await;
        }
        scene.had(&format!("giving up and settlement, {amount}"), &outcomes);
    }
}

// rule: gate.embed.settled
#[tokio::test]
async fn settlement_and_reading() {
    let mut scene = Scene::new();
    while let Some(paying) = scene.next("100.00").await {
        paying.pay(paying.gate.use_cases(), "k").await.unwrap();
        let (one, other) = (paying.clone(), paying.clone());
        let record = paying.payment().await;
        let cast = Cast::of(paying.world())
            .and(move |paced| one.settles(paced, record))
            .and(move |paced| other.reads(paced));
        let answers = scene.play(cast).await;
        scene.ended(&paying, &answers[1]).await;
    }
    scene.had(
        "settlement and reading",
        &["open, processing", "completed, settled"],
    );
}

// rule: gate.session.one-payment, gate.payment.once
#[tokio::test]
async fn rails_and_widget() {
    let mut scene = Scene::new();
    while let Some(paying) = scene.next("100.00").await {
        let acme = paying.gate.acme();
        let locked = rails::purchase(&acme, &paying.session.to_string(), "100.00").await;
        let locked = rails::id(&locked);
        let (one, other) = (paying.clone(), paying.clone());
        let cast = Cast::of(paying.world())
            .and(move |paced| one.redeems(paced, locked))
            .and(move |paced| other.pays(paced, "k"));
        let answers = scene.play(cast).await;
        scene.ended(&paying, &answers.join(", ")).await;
    }
    // Each side has won at least once.
    scene.had(
        "rails and widget",
        &["redeemed, in progress", "in progress, paid"],
    );
}

// rule: gate.payment.admitted-again, gate.bootstrap.token-limit
#[tokio::test]
async fn payment_and_newer_tokens() {
    let mut scene = Scene::new();
    while let Some(paying) = scene.next("100.00").await {
        let (one, other) = (paying.clone(), paying.clone());
        let cast = Cast::of(paying.world())
            .and(move |paced| one.pays(paced, "k"))
            .and(move |paced| other.ends_token(paced));
        let answers = scene.play(cast).await;
        let made = paying.payments().await;
        assert_eq!(
            answers[1],
            made.to_string(),
            "no payment after the end of the token"
        );
        let outcome = format!("{}: {made}", answers[0]);
        scene.ended(&paying, &outcome).await;
    }
    scene.had("payment and newer tokens", &["paid: 1", "token ended: 0"]);
}

// rule: gate.payment.admitted-again, auth.revocation-beats-money
#[tokio::test]
async fn payment_and_revocation() {
    for revoked in [true, false] {
        let mut scene = Scene::new();
        while let Some(opened) = scene.next("100.00").await {
            // Each order ends a key of its own.
            let key = ACME_PUBLISHABLE.replace("0003", &(1_000 + scene.opened).to_string());
            opened.world().operator().put_key(ACME, &key).await;
            let paying = Paying::open(opened.gate, opened.session, &key).await;
            let (one, other) = (paying.clone(), paying.clone());
            let ended = revoked.then_some(key);
            let cast = Cast::of(paying.world())
                .and(move |paced| one.pays(paced, "k"))
                .and(move |paced| other.ends_access(paced, ended));
            let answers = scene.play(cast).await;
            let made = paying.payments().await;
            assert_eq!(
                answers[1],
                made.to_string(),
                "no payment after the revocation"
            );
            let outcome = format!("{}: {made}", answers[0]);
            let operator = paying.world().operator();
            operator.change_gate(ACME, switch(true)).await;
            scene.ended(&paying, &outcome).await;
        }
        let name = if revoked { "revocation" } else { "suspension" };
        scene.had(&format!("payment and {name}"), &["paid: 1", "denied: 0"]);
    }
}
