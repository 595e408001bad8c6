//! Payments in the widget: a session has one quote that can be paid, and one payment at a time, whatever is repeated or raced.

use std::collections::BTreeMap;
use std::sync::Arc;

use gate_core::access::{GateAccess, GateDenial};
use gate_core::catalogue::Catalogue;
use gate_core::embed::SessionToken;
use gate_core::payout::Payout;
use gate_core::ports::Rail;
use gate_core::profile::GateProfile;
use gate_core::rail::{RailId, RailKind, RailRecord};
use gate_core::session::{Flow, SessionId, SessionRefusal};
use gate_core::signed_quote::{QuoteClosed, SignedQuote, SignedQuoteId};
use gate_core::usecases::act_on_session::ActionRequest;
use gate_core::usecases::cancel_payment::CancelPayment;
use gate_core::usecases::pay_session::{PayError, PaySession, PaymentRequest};
use gate_core::usecases::quote_session::{
    OrderedConversion, QuoteSession, QuoteSessionError, SessionOrder,
};
use gate_core::usecases::redeem_quote::RedeemError;
use gate_core::usecases::verify_user::VerifyUser;
use kernel::rates::Side;
use kernel::{Cas, Mode, Timestamp, Upstreams};
use partner_core::events::Service;
use partner_core::idempotency::{IdempotencyKey, Operation, OperationKey};
use partner_core::stored_response::{RenderError, RenderedResponse};
use partner_core::{Denial, PartnerStatus, Tenant};
use tokio::task::JoinSet;

use crate::contract::fixture::GateFixture;
use crate::contract::gate_world::{DAY, answer, draft};
use crate::contract::rails::{Even, Rails, Straight, TTL};
use crate::contract::world::{MILLI, World, expired_keys, partner, sealer};

const WALLET: &str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";

/// The use cases of the widget, with those of rails.
#[derive(Clone)]
pub(crate) struct Payments {
    pub(crate) rails: Rails,
    access: GateAccess,
    quoting: QuoteSession,
    paying: PaySession,
    pub(crate) cancelling: CancelPayment,
}

fn straight() -> Upstreams<dyn Rail> {
    Upstreams {
        present: Some(Arc::new(Straight)),
        former: None,
    }
}

impl Payments {
    /// The widget of a partner, with rails or without.
    pub(crate) fn of(rails: Rails, entitled: bool) -> Self {
        let context = rails.gate.creating.context.clone();
        let catalogue = Arc::new(Catalogue::built_in().unwrap());
        let mut access = (*rails.gate.access).clone();
        access.profile.rails = entitled;
        Self {
            quoting: QuoteSession {
                context: context.clone(),
                catalogue: Arc::clone(&catalogue),
                rates: Arc::new(Even),
                ttl: TTL,
            },
            paying: PaySession {
                context: context.clone(),
                idempotent: rails.gate.creating.idempotent.clone(),
                catalogue,
                rails: straight(),
                verifying: VerifyUser {
                    context: context.clone(),
                    catalogue: Arc::new(Catalogue::built_in().unwrap()),
                    verifiers: Upstreams {
                        present: None,
                        former: None,
                    },
                },
            },
            cancelling: CancelPayment {
                context,
                rails: straight(),
            },
            access,
            rails,
        }
    }

    pub(crate) fn who(&self) -> &Tenant {
        &self.access.tenant
    }

    pub(crate) async fn quote(
        &self,
        session: SessionId,
        flow: Flow,
    ) -> Result<SignedQuote, QuoteSessionError> {
        let ramp = |side| OrderedConversion::Ramp {
            side,
            payment_method: "sepa".to_owned(),
        };
        let order = SessionOrder {
            conversion: match flow {
                Flow::OnRamp => ramp(Side::OnRamp),
                Flow::OffRamp => ramp(Side::OffRamp),
                Flow::Swap => OrderedConversion::Swap {
                    source_asset: "USDC".to_owned(),
                    source_network: "ethereum".to_owned(),
                },
            },
            asset: "USDT".to_owned(),
            network: "tron".to_owned(),
            country: None,
        };
        let token = first_token(session);
        self.quoting.quote(&self.access, token, &order).await
    }

    pub(crate) async fn quoted(&self, session: SessionId) -> SignedQuoteId {
        self.quote(session, Flow::OnRamp).await.unwrap().id
    }

    pub(crate) async fn pay(
        self,
        session: SessionId,
        key: String,
        request: PaymentRequest,
    ) -> Result<String, PayError> {
        let key = OperationKey {
            operation: Operation::new("POST", &format!("/v1/embed/payments {session}")),
            key: IdempotencyKey::parse(key.as_bytes()).unwrap(),
        };
        let token = first_token(session);
        let paying = self.paying.pay(&self.access, token, key, &request, &made);
        Ok(String::from_utf8(paying.await?.into_rendered().0).unwrap())
    }

    /// A purchase of a new session, under way.
    pub(crate) async fn bought(&self, name: &str, amount: &str) -> (SessionId, RailId) {
        let session = self.rails.gate.opened(name, draft(amount)).await;
        let quote = self.quoted(session).await;
        let id = self
            .clone()
            .pay(session, name.to_owned(), purchase(quote))
            .await
            .unwrap();
        (session, RailId::parse(RailKind::PayIn, &id).unwrap())
    }

    /// A swap of a new session, under way.
    pub(crate) async fn swapped(&self, name: &str, amount: &str) -> (SessionId, RailId) {
        let session = self.rails.gate.opened(name, draft(amount)).await;
        let quote = self.quote(session, Flow::Swap).await.unwrap();
        let paying = self
            .clone()
            .pay(session, name.to_owned(), purchase(quote.id));
        let id = paying.await.unwrap();
        (session, RailId::parse(RailKind::Swap, &id).unwrap())
    }

    /// A sale of a new session, under way.
    pub(crate) async fn sold(&self, name: &str, amount: &str) -> (SessionId, RailId) {
        let session = self.rails.gate.opened(name, draft(amount)).await;
        let quote = self.quote(session, Flow::OffRamp).await.unwrap();
        let request = PaymentRequest {
            quote: quote.id.to_string(),
            wallet_address: None,
            payout: Some(account()),
            country: None,
            until: later(),
            trace_parent: None,
        };
        let id = self.clone().pay(session, name.to_owned(), request).await;
        (
            session,
            RailId::parse(RailKind::PayOut, &id.unwrap()).unwrap(),
        )
    }
}

/// The first token of a session.
pub(crate) const fn first_token(session: SessionId) -> SessionToken {
    SessionToken { session, number: 1 }
}

fn account() -> BTreeMap<String, String> {
    [
        ("iban", "DE89370400440532013000"),
        ("account_holder", "Erika Mustermann"),
    ]
    .map(|(name, text)| (name.to_owned(), text.to_owned()))
    .into()
}

/// The expiry of a token that does not expire during a test.
fn later() -> Timestamp {
    Timestamp::from_millis(253_402_300_799_999).unwrap()
}

pub(crate) fn purchase(quote: SignedQuoteId) -> PaymentRequest {
    PaymentRequest {
        quote: quote.to_string(),
        wallet_address: Some(WALLET.to_owned()),
        payout: None,
        country: None,
        until: later(),
        trace_parent: None,
    }
}

fn made(record: &RailRecord) -> Result<RenderedResponse, RenderError> {
    Ok(answer(record.id.to_string()))
}

impl<F: GateFixture> World<F> {
    pub(crate) async fn open_payments(&self, name: &str, rails: bool) -> Payments {
        Payments::of(self.open_rails(name).await, rails)
    }

    pub(crate) async fn payment(&self, who: &Tenant, session: SessionId) -> Option<RailRecord> {
        let gate = self.fixture.gate().store.clone();
        gate.payment_of_session(who, session).await.unwrap()
    }

    /// Switches the gate of the widget's partner on or off.
    async fn enable_gate(&self, widget: &Payments, enabled: bool) {
        let profile = GateProfile {
            enabled,
            ..widget.access.profile.clone()
        };
        let mut tx = self.provision_begin("enable").await;
        tx.gate_profile_put(widget.who(), &profile).await.unwrap();
        tx.commit().await.unwrap();
    }
}

// rule: gate.embed-quote.bound, gate.embed-quote.superseded
pub async fn session_has_one_quote_that_can_be_paid(world: World<impl GateFixture>) {
    let widget = world.open_payments("acme", true).await;
    let session = widget.rails.gate.opened("one", draft("100.00")).await;
    let other = widget.rails.gate.opened("two", draft("100.00")).await;
    let first = widget.quoted(session).await;
    let mut racing = JoinSet::new();
    for _ in 0..8 {
        let widget = widget.clone();
        racing.spawn(async move { widget.quote(session, Flow::OnRamp).await });
    }
    for outcome in racing.join_all().await {
        outcome.unwrap();
    }
    let last = widget.quoted(session).await;
    let pay =
        |session, quote, key: &str| widget.clone().pay(session, key.to_owned(), purchase(quote));
    let refused = pay(session, first, "first").await.unwrap_err();
    assert!(matches!(refused, PayError::Closed(QuoteClosed::Superseded)));
    // A quote is for its own session, and for the widget alone.
    let refused = pay(other, last, "other").await.unwrap_err();
    assert!(matches!(refused, PayError::NotFound), "{refused:?}");
    let redeeming = widget
        .rails
        .clone()
        .redeem("rail".to_owned(), last, session);
    let refused = redeeming.await.unwrap_err();
    assert!(matches!(refused, RedeemError::NotFound), "{refused:?}");
    let unbound = widget.rails.locked("unbound", "100.00").await;
    let refused = pay(session, unbound, "unbound").await.unwrap_err();
    assert!(matches!(refused, PayError::NotFound), "{refused:?}");
    pay(session, last, "last").await.unwrap();
    let refused = widget.quote(session, Flow::OnRamp).await.unwrap_err();
    let in_progress = SessionRefusal::PaymentInProgress;
    assert!(
        matches!(&refused, QuoteSessionError::Session(it) if *it == in_progress),
        "{refused:?}"
    );
    world.assert_clean().await;
}

// rule: gate.payment.admitted-again
pub async fn payment_is_refused_after_its_token_or_key_has_ended(world: World<impl GateFixture>) {
    let widget = world.open_payments("acme", true).await;
    let session = widget.rails.gate.opened("one", draft("100.00")).await;
    let quote = widget.quoted(session).await;
    let late = PaymentRequest {
        until: world.now(),
        ..purchase(quote)
    };
    let refused = widget.clone().pay(session, "late".to_owned(), late).await;
    assert!(
        matches!(refused, Err(PayError::TokenExpired)),
        "{refused:?}"
    );
    let paid = widget
        .clone()
        .pay(session, "early".to_owned(), purchase(quote));
    paid.await.unwrap();
    let next = widget.rails.gate.opened("two", draft("100.00")).await;
    let quote = widget.quoted(next).await;
    // The door admitted both calls before.
    assert_eq!(world.revoke(widget.access.key.id).await, Cas::Won);
    let refused = widget.quote(next, Flow::OnRamp).await;
    assert!(
        matches!(refused, Err(QuoteSessionError::Denied(_))),
        "{refused:?}"
    );
    let refused = widget
        .clone()
        .pay(next, "two".to_owned(), purchase(quote))
        .await;
    assert!(matches!(refused, Err(PayError::Denied(_))), "{refused:?}");
    world.assert_clean().await;
}

// rule: gate.embed-quote.deleted
pub async fn unused_quotes_are_deleted_after_the_end_of_their_session(
    world: World<impl GateFixture>,
) {
    let widget = world.open_payments("acme", true).await;
    let other = world.open_payments("other", true).await;
    let who = widget.who().clone();
    let gate = world.fixture.gate().clone();
    let due = async || {
        let due = gate.unused_quotes.unused_quotes_due(Mode::Test, 10).await;
        let mut partners = due.unwrap().rows;
        partners.sort_unstable();
        partners
    };
    let delete = async |who: &Tenant, limit| {
        let deleted = gate.unused_quotes.unused_quotes_delete(who, limit).await;
        deleted.unwrap()
    };
    let is_stored = async |id| {
        let found = gate.store.signed_quote_get(&who, id).await;
        found.unwrap().is_some()
    };
    let opened = async |name: &str| widget.rails.gate.opened(name, draft("100.00")).await;
    let (open, cancelled, paid) = (opened("a").await, opened("b").await, opened("c").await);
    let kept = widget.quoted(open).await;
    let mut unused = Vec::new();
    for session in [cancelled, cancelled, cancelled, paid] {
        unused.push(widget.quoted(session).await);
    }
    let redeemed = widget.quoted(paid).await;
    let locked = widget.rails.locked("locked", "100.00").await;
    let foreign = other.rails.gate.opened("a", draft("100.00")).await;
    other.quoted(foreign).await;
    let pay = widget
        .clone()
        .pay(paid, "pay".to_owned(), purchase(redeemed));
    let rail = RailId::parse(RailKind::PayIn, &pay.await.unwrap()).unwrap();
    assert_eq!(due().await, []);
    let end = |widget: &Payments, session| {
        let gate = widget.rails.gate.clone();
        gate.act(session, None, Some(ActionRequest::Cancel))
    };
    end(&widget, cancelled).await.unwrap();
    end(&other, foreign).await.unwrap();
    widget.rails.settling.advance(&who, rail).await.unwrap();
    assert_eq!(due().await, [who.clone(), other.who().clone()]);
    let live = gate.unused_quotes.unused_quotes_due(Mode::Live, 10).await;
    assert_eq!(live.unwrap().rows, []);
    // The transaction is bounded. A further one continues, and finds that all are deleted.
    for deleted in [2, 2, 0] {
        assert_eq!(due().await, [who.clone(), other.who().clone()]);
        assert_eq!(delete(&who, 2).await, deleted);
    }
    assert_eq!(due().await, [other.who().clone()]);
    assert_eq!(delete(other.who(), 2).await, 1);
    assert_eq!(due().await, []);
    for id in unused {
        assert!(!is_stored(id).await);
    }
    for id in [kept, redeemed, locked] {
        assert!(is_stored(id).await);
    }
    world.clock().advance(DAY);
    assert_eq!(due().await, []);
    let expiring = widget.rails.gate.clone().act(open, None, None);
    expiring.await.unwrap();
    assert_eq!(delete(&who, 2).await, 1);
    assert!(!is_stored(kept).await);
    world.assert_clean().await;
}

// rule: gate.payment.admitted-again
pub async fn payment_is_refused_while_its_partner_may_not_use_gate(world: World<impl GateFixture>) {
    let widget = world.open_payments("acme", true).await;
    let session = widget.rails.gate.opened("one", draft("100.00")).await;
    let quote = widget.quoted(session).await;
    let pay = || {
        widget
            .clone()
            .pay(session, "one".to_owned(), purchase(quote))
    };
    // The door admitted each call before.
    let assert_denied = async |expected: GateDenial| {
        let refused = widget.quote(session, Flow::OnRamp).await;
        assert!(
            matches!(&refused, Err(QuoteSessionError::Denied(denial)) if *denial == expected),
            "{refused:?}"
        );
        let refused = pay().await;
        assert!(
            matches!(&refused, Err(PayError::Denied(denial)) if *denial == expected),
            "{refused:?}"
        );
    };
    let status = |status| partner("acme", status);
    world.repartner(&status(PartnerStatus::Suspended)).await;
    assert_denied(GateDenial::Access(Denial::OrganizationSuspended)).await;
    world.repartner(&status(PartnerStatus::Active)).await;
    world.enable_gate(&widget, false).await;
    assert_denied(GateDenial::NotEnabled).await;
    world.enable_gate(&widget, true).await;
    // The refusals have used neither the quote nor the key.
    pay().await.unwrap();
    world.assert_clean().await;
}

// rule: gate.payment.once, gate.session.one-payment, gate.payment.events
pub async fn concurrent_payments_of_session_have_one_winner(world: World<impl GateFixture>) {
    let widget = world.open_payments("acme", false).await;
    let who = widget.who().clone();
    let session = widget.rails.gate.opened("one", draft("100.05")).await;
    // The first payment fails, so a second one pays the session.
    for round in 0..2 {
        let quote = widget.quoted(session).await;
        let mut racing = JoinSet::new();
        for number in 0..16 {
            // Some requests share a key and must receive one response.
            let key = format!("{round}-{}", number % 12);
            racing.spawn(widget.clone().pay(session, key, purchase(quote)));
        }
        let outcomes = racing.join_all().await;
        let mut won: Vec<&String> = outcomes.iter().flatten().collect();
        won.dedup();
        assert_eq!(won.len(), 1, "{outcomes:?}");
        let record = world.payment(&who, session).await.unwrap();
        assert_eq!(record.id.to_string(), *won[0]);
        let hosted = record.hosted.as_ref().unwrap();
        assert_eq!(hosted.wallet_address.as_deref(), Some(WALLET));
        let settling = &widget.rails.settling;
        settling.advance(&who, record.id).await.unwrap();
        // Of two payments of one instant either could be the newest.
        world.clock().advance(MILLI);
    }
    let said = world.said(&who, session).await;
    let [created, attempt @ ..] = &said[..] else {
        panic!("{said:?}")
    };
    assert_eq!(created, "gate_session.created");
    let expected = ["gate_session.processing", "gate_session.failed"];
    assert_eq!(attempt, [expected, expected].concat());
    // The partner has no rails, so it gets no event of them.
    let record = world.payment(&who, session).await.unwrap();
    let none: [&str; 0] = [];
    assert_eq!(world.said_of(&who, &record.id.to_string()).await, none);
    world.assert_clean().await;
}

// rule: gate.payment.key
pub async fn key_of_payment_counts_for_its_session_only(world: World<impl GateFixture>) {
    let widget = world.open_payments("acme", true).await;
    let mut paid = Vec::new();
    for name in ["one", "two"] {
        let session = widget.rails.gate.opened(name, draft("100.00")).await;
        let request = purchase(widget.quoted(session).await);
        let pay = || {
            widget
                .clone()
                .pay(session, "shared".to_owned(), request.clone())
        };
        let first = pay().await.unwrap();
        assert_eq!(pay().await.unwrap(), first);
        paid.push(first);
    }
    assert_ne!(paid[0], paid[1]);
    world.assert_clean().await;
}

// rule: gate.embed-quote.swap, gate.payment.swap, gate.payment.once, gate.transaction.rail
pub async fn swap_is_stored_whole_and_paid_once(world: World<impl GateFixture>) {
    let widget = world.open_payments("acme", true).await;
    let who = widget.who().clone();
    let gate = world.fixture.gate().store.clone();
    let session = widget.rails.gate.opened("one", draft("100.00")).await;
    // A quote of another flow is superseded like every other one.
    let bought = widget.quoted(session).await;
    let quote = widget.quote(session, Flow::Swap).await.unwrap();
    let stored = gate.signed_quote_get(&who, quote.id).await.unwrap();
    assert_eq!(stored.unwrap().value, quote);
    let source = quote.terms.source().unwrap();
    assert_eq!(source.network, "ethereum");
    assert_eq!(source.amount.to_string(), "100");
    let pay = |quote, key: &str| widget.clone().pay(session, key.to_owned(), purchase(quote));
    let refused = pay(bought, "bought").await.unwrap_err();
    assert!(matches!(refused, PayError::Closed(QuoteClosed::Superseded)));
    // Neither a rail route nor another session redeems it.
    let redeeming = widget.rails.clone();
    let redeeming = redeeming.redeem("rail".to_owned(), quote.id, session);
    let refused = redeeming.await.unwrap_err();
    assert!(matches!(refused, RedeemError::NotFound), "{refused:?}");
    let mut racing = JoinSet::new();
    for number in 0..16 {
        racing.spawn(pay(quote.id, &format!("swap-{number}")));
    }
    let outcomes = racing.join_all().await;
    let won: Vec<&String> = outcomes.iter().flatten().collect();
    assert_eq!(won.len(), 1, "{outcomes:?}");
    let record = world.payment(&who, session).await.unwrap();
    assert_eq!(record.id.to_string(), *won[0]);
    assert_eq!(record.terms, quote.terms);
    for kind in [RailKind::PayIn, RailKind::PayOut] {
        let other = RailId::from_parts(kind, record.id.id());
        assert_eq!(gate.rail_get(&who, other).await.unwrap(), None);
    }
    let due = world.rails_due(Mode::Test).await;
    assert_eq!(due, [(who.clone(), record.id)]);
    let settling = &widget.rails.settling;
    settling.advance(&who, record.id).await.unwrap();
    let said = world.said(&who, session).await;
    let [_, ended @ ..] = &said[..] else {
        panic!("{said:?}")
    };
    assert_eq!(ended, ["gate_session.processing", "gate_session.completed"]);
    // The partner has rails, so it learns of the quote. A swap has no event of its own.
    let none: [&str; 0] = [];
    assert_eq!(world.said_of(&who, &record.id.to_string()).await, none);
    let consumed = world.said_of(&who, &quote.id.to_string()).await;
    assert_eq!(consumed, ["quote.consumed"]);
    world.assert_clean().await;
}

// rule: gate.payment.payout
pub async fn payout_account_is_sealed_and_erased_after_thirty_days(world: World<impl GateFixture>) {
    let widget = world.open_payments("acme", true).await;
    let who = widget.who().clone();
    let (session, id) = widget.sold("sale", "100.00").await;
    let erased = |service| world.sweep_keys(expired_keys(service), 9);
    let payout = || async {
        let record = world.payment(&who, session).await.unwrap();
        record.hosted.unwrap().payout
    };
    let sealed = payout().await.unwrap();
    let opened = Payout::open(&who, id, &sealed, &sealer()).unwrap();
    assert_eq!(opened.fields(), &account());
    world.clock().advance(40 * DAY);
    // A payment in progress keeps its account.
    erased(Service::Gate).await;
    assert!(payout().await.is_some());
    widget.rails.settling.advance(&who, id).await.unwrap();
    let last = 30 * DAY - MILLI;
    world.clock().advance(last);
    erased(Service::Gate).await;
    assert!(payout().await.is_some());
    world.clock().advance(MILLI);
    erased(Service::Pools).await;
    assert!(payout().await.is_some());
    assert_eq!(erased(Service::Gate).await.deleted, 1);
    assert_eq!(payout().await, None);
    world.assert_clean().await;
}
