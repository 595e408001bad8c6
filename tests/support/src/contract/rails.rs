//! Signed quotes and rail records: a quote is redeemed once before it expires. A record has one poller at a time, ends once, and
//! emits one event.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::catalogue::Catalogue;
use gate_core::order::OrderDraft;
use gate_core::ports::{CancelReport, GivenUp, Rail, RailOrder, RailPoll};
use gate_core::rail::{
    Instructions, PollLease, RailAnswer, RailId, RailKind, RailRecord, RailReport, RailState,
};
use gate_core::session::{
    SessionEvent, SessionId, SessionRefusal, SessionState, SessionStatus, Step,
};
use gate_core::signed_quote::{Issue, SignedQuote, SignedQuoteId};
use gate_core::usecases::act_on_session::{ActError, ActionRequest};
use gate_core::usecases::advance_rails::AdvanceRails;
use gate_core::usecases::lock_quote::{LockDraft, LockQuote};
use gate_core::usecases::redeem_quote::{RedeemError, RedeemQuote, Redemption};
use gate_core::usecases::watch_rails::WatchRails;
use kernel::rates::{Side, SourceRate};
use kernel::{
    Amount, Asset, Cas, Mid, Mode, Named, Timestamp, TraceParent, UpstreamName, Upstreams,
};
use partner_core::Tenant;
use partner_core::ports::RateSource;
use partner_core::stored_response::{IdempotentResponse, RenderError, RenderedResponse};
use rust_decimal::Decimal;
use tokio::task::JoinSet;

use crate::contract::fixture::GateFixture;
use crate::contract::gate_world::{DAY, Gate, RAIL, answer, draft, key};
use crate::contract::world::{MILLI, World};

/// The position of each redemption in its trace.
const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
pub(crate) const TTL: Duration = Duration::from_secs(60);

/// A rate of one unit of crypto for one of fiat.
pub(crate) struct Even;

#[async_trait]
impl RateSource for Even {
    async fn rate(&self, _: Asset, _: Asset, _: Amount) -> Option<SourceRate> {
        let mid = Mid::new(Decimal::ONE)?;
        Some(SourceRate { mid, spread_bps: 0 })
    }
}

/// Fails amounts that end in five and settles the rest. It cancels everything that it has not been asked about. After the end, all money
/// has come back.
pub(crate) struct Straight;

impl Named for Straight {
    fn name(&self) -> UpstreamName {
        UpstreamName::built_in(RAIL)
    }
}

#[async_trait]
impl Rail for Straight {
    async fn instructions(&self, order: &RailOrder) -> Option<Instructions> {
        let named = [("reference".to_owned(), order.id.to_string())];
        Some(Instructions(BTreeMap::from(named)))
    }

    async fn advance(&self, order: &RailOrder, _: RailPoll) -> RailAnswer {
        let fails = order.terms.priced.fiat.to_string().ends_with('5');
        let report = if fails {
            RailReport::Failed {
                code: "provider_declined".to_owned(),
                reason: None,
            }
        } else {
            RailReport::Settled {
                reference: Some("e2e-1".to_owned()),
            }
        };
        report.into()
    }

    async fn watch(&self, _: &RailOrder) -> RailAnswer {
        RailReport::Returned.into()
    }

    async fn cancel(&self, _: &RailOrder, _: GivenUp) -> Option<CancelReport> {
        Some(CancelReport::Cancelled)
    }
}

/// The use cases of rails, with those of the gate.
#[derive(Clone)]
pub(crate) struct Rails {
    pub(crate) gate: Gate,
    locking: LockQuote,
    redeeming: RedeemQuote,
    pub(crate) settling: AdvanceRails,
    pub(crate) watching: WatchRails,
}

impl Rails {
    pub(crate) fn of(gate: Gate) -> Self {
        let sessions = gate.creating.context.clone();
        let idempotent = gate.creating.idempotent.clone();
        let rail: Arc<dyn Rail> = Arc::new(Straight);
        Self {
            locking: LockQuote {
                context: sessions.clone(),
                idempotent: idempotent.clone(),
                catalogue: Arc::new(Catalogue::built_in().unwrap()),
                rates: Arc::new(Even),
                ttl: TTL,
            },
            redeeming: RedeemQuote {
                context: sessions.clone(),
                idempotent,
                catalogue: Arc::new(Catalogue::built_in().unwrap()),
                rails: Upstreams {
                    present: Some(Arc::clone(&rail)),
                    former: None,
                },
            },
            watching: WatchRails {
                context: sessions.clone(),
                rail: Arc::clone(&rail),
            },
            settling: AdvanceRails {
                context: sessions,
                rail,
            },
            gate,
        }
    }

    pub(crate) fn who(&self) -> &Tenant {
        &self.gate.access.tenant
    }

    /// Locks a purchase of an amount.
    pub(crate) async fn locked(&self, name: &str, amount: &str) -> SignedQuoteId {
        let draft = LockDraft {
            order: OrderDraft {
                currency: "EUR".to_owned(),
                asset: "USDT".to_owned(),
                amount: amount.to_owned(),
                side: Side::OnRamp,
                network: None,
                country_code: None,
            },
            payment_method: "sepa".to_owned(),
        };
        let access = &self.gate.access;
        let key = key("POST /v1/quotes", name);
        let given = self.locking.lock(access, key, &draft, &quoted).await;
        SignedQuoteId::parse(&text(given.unwrap())).unwrap()
    }

    pub(crate) async fn redeem(
        self,
        name: String,
        quote: SignedQuoteId,
        session: SessionId,
    ) -> Result<RailId, RedeemError> {
        let asked = Redemption {
            kind: RailKind::PayIn,
            quote: quote.to_string(),
            session: session.to_string(),
            trace_parent: TraceParent::parse(TRACE.as_bytes()),
        };
        let access = &self.gate.access;
        let key = key("POST /v1/rails/pay_ins", &name);
        let redeeming = self.redeeming.redeem(access, key, &asked, &made);
        let given = redeeming.await?;
        Ok(RailId::parse(RailKind::PayIn, &text(given)).unwrap())
    }

    /// A quote of an amount, redeemed for its own session.
    pub(crate) async fn redeemed(&self, name: &str, amount: &str) -> (SessionId, RailId) {
        let quote = self.locked(&format!("{name}-quote"), amount).await;
        let key = format!("{name}-session");
        let session = self.gate.opened(&key, draft(amount)).await;
        let redeeming = self.clone().redeem(name.to_owned(), quote, session);
        (session, redeeming.await.unwrap())
    }
}

fn quoted(quote: &SignedQuote) -> Result<RenderedResponse, RenderError> {
    Ok(answer(quote.id.to_string()))
}

fn made(record: &RailRecord) -> Result<RenderedResponse, RenderError> {
    Ok(answer(record.id.to_string()))
}

fn text(given: IdempotentResponse) -> String {
    String::from_utf8(given.into_rendered().0).unwrap()
}

impl<F: GateFixture> World<F> {
    pub(crate) async fn open_rails(&self, name: &str) -> Rails {
        Rails::of(self.open_gate(name, Mode::Test, None).await)
    }

    pub(crate) async fn record(&self, who: &Tenant, id: RailId) -> Option<RailRecord> {
        let mut tx = self.gate_begin().await;
        tx.rail_lock(who, id).await.unwrap()
    }

    async fn consumed(&self, who: &Tenant, id: SignedQuoteId, now: Timestamp) -> Cas {
        let mut tx = self.gate_begin().await;
        let consumed = tx.signed_quote_consume(who, id, now).await.unwrap();
        // No record was stored.
        drop(tx);
        consumed
    }
}

// rule: gate.quote.answer, gate.quote.once
pub async fn signed_quote_reads_back_and_is_consumed_once_before_expiry(
    world: World<impl GateFixture>,
) {
    let rails = world.open_rails("acme").await;
    let who = rails.who().clone();
    let id = rails.locked("quote", "100.00").await;
    let gate = world.fixture.gate().store.clone();
    let seen = gate.signed_quote_get(&who, id).await.unwrap().unwrap();
    let quote = seen.value;
    let installation = gate.installation_get().await.unwrap();
    let issue = |tenant| Issue {
        installation: &installation,
        tenant,
    };
    assert!(quote.is_genuine(issue(&who), &crate::contract::world::sealer()));
    assert_eq!(quote.terms.priced.fiat.to_string(), "100.00");
    assert_eq!(quote.consumed_at, None);
    let rival = world.open_rails("rival").await;
    let foreign = gate.signed_quote_get(rival.who(), id).await;
    assert!(foreign.unwrap().is_none());
    let now = quote.created_at;
    assert_eq!(world.consumed(rival.who(), id, now).await, Cas::Lost);
    assert_eq!(world.consumed(&who, id, quote.expires_at).await, Cas::Lost);
    let last = quote.expires_at.minus(MILLI);
    assert_eq!(world.consumed(&who, id, last).await, Cas::Won);
    let session = rails.gate.opened("session", draft("100.00")).await;
    rails
        .clone()
        .redeem("p".to_owned(), id, session)
        .await
        .unwrap();
    assert_eq!(world.consumed(&who, id, now).await, Cas::Lost);
    world.assert_clean().await;
}

// rule: gate.rail.record, gate.rail.states, rail.http.reference
pub async fn rail_record_reads_back_and_ends_once(world: World<impl GateFixture>) {
    let rails = world.open_rails("acme").await;
    let who = rails.who().clone();
    let (session, id) = rails.redeemed("one", "100.00").await;
    let record = world.record(&who, id).await.unwrap();
    assert_eq!((record.id, record.session), (id, session));
    assert_eq!(
        record.instructions.as_ref().unwrap().0["reference"],
        id.to_string()
    );
    assert_eq!(record.state, RailState::Processing);
    assert_eq!(record.rail, UpstreamName::built_in(RAIL));
    assert_eq!(record.trace_parent.unwrap().to_string(), TRACE);
    let deadline = record.created_at.plus(3 * DAY);
    assert_eq!(record.pay_until, Some(deadline));
    let rival = world.open_rails("rival").await;
    assert!(world.record(rival.who(), id).await.is_none());
    // Only one poller at a time has the lease.
    let asked = async |before: &PollLease, after: &PollLease| {
        let asked = world.asked(&who, id, before, after);
        asked.await
    };
    let claimed = PollLease {
        attempts: 1,
        token: Some(u64::MAX),
        next_at: record.created_at.plus(TTL),
    };
    assert_eq!(
        world.asked(rival.who(), id, &record.asking, &claimed).await,
        Cas::Lost
    );
    assert_eq!(asked(&record.asking, &claimed).await, Cas::Won);
    assert_eq!(asked(&record.asking, &claimed).await, Cas::Lost);
    assert_eq!(world.record(&who, id).await.unwrap().asking, claimed);
    assert!(world.rails_due(Mode::Test).await.is_empty());
    world.clock().advance(TTL);
    assert_eq!(world.rails_due(Mode::Test).await, [(who.clone(), id)]);
    assert!(world.rails_due(Mode::Live).await.is_empty());
    // Only the current poller may end it.
    let reference = Some("e2e-1".to_owned());
    let state = RailState::Settled {
        at: world.now(),
        reference,
    };
    let settled = RailRecord {
        state: state.clone(),
        ..record.clone()
    };
    let mut tx = world.gate_begin().await;
    let stale = tx.rail_end(&who, &record.asking, &settled).await.unwrap();
    assert_eq!(stale, Cas::Lost);
    drop(tx);
    rails.settling.advance(&who, id).await.unwrap();
    let ended = world.record(&who, id).await.unwrap();
    assert_eq!(ended.state, state);
    assert_eq!(ended.acknowledged_at, state.ended_at());
    rails.settling.advance(&who, id).await.unwrap();
    assert_eq!(world.record(&who, id).await.unwrap(), ended);
    world.assert_clean().await;
}

// rule: gate.rail.one-winner, gate.rail.atomic
pub async fn concurrent_redemptions_count_once(world: World<impl GateFixture>) {
    let rails = world.open_rails("acme").await;
    let quote = rails.locked("quote", "100.00").await;
    let session = rails.gate.opened("session", draft("100.00")).await;
    let mut racing = JoinSet::new();
    for number in 0..20 {
        // Some requests share a key and must receive one response.
        let name = format!("key-{}", number % 15);
        racing.spawn(rails.clone().redeem(name, quote, session));
    }
    let outcomes = racing.join_all().await;
    let mut won: Vec<RailId> = outcomes.iter().flatten().copied().collect();
    won.dedup();
    let [record] = &won[..] else {
        panic!("{outcomes:?}")
    };
    let closed = |outcome: &Result<RailId, RedeemError>| {
        let refused = matches!(
            outcome,
            Err(RedeemError::Session(SessionRefusal::PaymentInProgress))
        );
        outcome.is_ok() || refused
    };
    assert!(outcomes.iter().all(closed), "{outcomes:?}");
    let who = rails.who();
    assert_eq!(
        world.said_of(who, &quote.to_string()).await,
        ["quote.consumed"]
    );
    let said = world.said_of(who, &record.to_string()).await;
    assert_eq!(said, ["rail.pay_in.processing"]);
    world.assert_clean().await;
}

// rule: gate.rail.settled, gate.rail.completes, gate.event.once
pub async fn concurrent_settlements_have_one_winner(world: World<impl GateFixture>) {
    let rails = world.open_rails("acme").await;
    let who = rails.who().clone();
    let (session, settling) = rails.redeemed("settles", "100.00").await;
    let (open, failing) = rails.redeemed("fails", "100.05").await;
    let mut racing = JoinSet::new();
    for _ in 0..5 {
        for id in [settling, failing] {
            let (settling, who) = (rails.settling.clone(), who.clone());
            racing.spawn(async move { settling.advance(&who, id).await });
        }
    }
    for outcome in racing.join_all().await {
        outcome.unwrap();
    }
    let said = world.said_of(&who, &settling.to_string()).await;
    assert_eq!(said, ["rail.pay_in.processing", "rail.pay_in.settled"]);
    let said = world.said_of(&who, &failing.to_string()).await;
    assert_eq!(said, ["rail.pay_in.processing", "rail.pay_in.failed"]);
    let completed = ["gate_session.created", "gate_session.completed"];
    assert_eq!(world.said(&who, session).await, completed);
    assert_eq!(world.said(&who, open).await, completed[..1]);
    world.assert_clean().await;
}

const PAYMENT_IN_PROGRESS: SessionRefusal = SessionRefusal::PaymentInProgress;

// rule: gate.session.one-payment
pub async fn concurrent_redemptions_of_session_have_one_winner(world: World<impl GateFixture>) {
    let rails = world.open_rails("acme").await;
    let who = rails.who().clone();
    let session = rails.gate.opened("session", draft("100.05")).await;
    // The first payment fails, so a second one pays the session.
    for round in 0..2 {
        let mut racing = JoinSet::new();
        for number in 0..8 {
            let name = format!("key-{round}-{number}");
            let quote = rails.locked(&format!("{name}-quote"), "100.05").await;
            racing.spawn(rails.clone().redeem(name, quote, session));
        }
        let outcomes = racing.join_all().await;
        let won: Vec<RailId> = outcomes.iter().flatten().copied().collect();
        let [record] = won[..] else {
            panic!("{outcomes:?}")
        };
        let refused = outcomes
            .iter()
            .filter(|it| matches!(it, Err(RedeemError::Session(PAYMENT_IN_PROGRESS))));
        assert_eq!(refused.count(), 7, "{outcomes:?}");
        rails.settling.advance(&who, record).await.unwrap();
        let ended = world.record(&who, record).await.unwrap();
        assert!(matches!(ended.state, RailState::Failed { .. }));
    }
    assert_eq!(world.said(&who, session).await, ["gate_session.created"]);
    world.assert_clean().await;
}

// rule: gate.session.one-payment, gate.session.payment-waits, gate.rail.completes
pub async fn session_waits_for_its_payment_and_completes_after_its_deadline(
    world: World<impl GateFixture>,
) {
    let rails = world.open_rails("acme").await;
    let who = rails.who().clone();
    let gate = world.fixture.gate().store.clone();
    let (paid, settles) = rails.redeemed("settles", "100.00").await;
    let (unpaid, fails) = rails.redeemed("fails", "100.05").await;
    let refused =
        |done: Result<(), ActError>| matches!(done, Err(ActError::Refused(PAYMENT_IN_PROGRESS)));
    for deed in [ActionRequest::Cancel, ActionRequest::Complete] {
        assert!(refused(
            rails.gate.clone().act(paid, None, Some(deed)).await
        ));
    }
    world.clock().advance(DAY);
    assert!(gate.sessions_overdue(&who, 9).await.unwrap().is_empty());
    assert!(world.overdue_in(Mode::Test).await.is_empty());
    rails.gate.clone().act(paid, None, None).await.unwrap();
    let seen = gate.session_get(&who, paid).await.unwrap().unwrap();
    assert!(seen.value.payment_in_progress && !seen.value.is_overdue(seen.at));
    // The store refuses every other end too.
    let at = world.now();
    let event = SessionEvent::Expired;
    for state in [SessionState::Cancelled { at }, SessionState::Expired { at }] {
        let step = Step { state, event };
        let mut tx = world.gate_begin().await;
        assert_eq!(
            tx.session_apply(&who, paid, &step).await.unwrap(),
            Cas::Lost
        );
        drop(tx);
    }
    for id in [settles, fails] {
        rails.settling.advance(&who, id).await.unwrap();
    }
    let said = world.said(&who, paid).await;
    assert_eq!(said, ["gate_session.created", "gate_session.completed"]);
    // The other session can end, because none of its payments is in progress.
    let overdue = gate.sessions_overdue(&who, 9).await.unwrap();
    assert_eq!(overdue, [unpaid]);
    rails.gate.clone().act(unpaid, None, None).await.unwrap();
    let said = world.said(&who, unpaid).await;
    assert_eq!(said, ["gate_session.created", "gate_session.expired"]);
    world.assert_clean().await;
}

// rule: gate.session.one-payment, gate.session.one-end
pub async fn concurrent_redemption_and_end_of_session_have_one_winner(
    world: World<impl GateFixture>,
) {
    let rails = world.open_rails("acme").await;
    let who = rails.who().clone();
    let gate = world.fixture.gate().store.clone();
    for round in 0..8_u32 {
        let name = format!("round-{round}");
        let session = rails.gate.opened(&name, draft("100.00")).await;
        let quote = rails.locked(&format!("{name}-quote"), "100.00").await;
        let (mut paying, mut ending) = (JoinSet::new(), JoinSet::new());
        paying.spawn(rails.clone().redeem(format!("{name}-pay"), quote, session));
        for deed in [ActionRequest::Cancel, ActionRequest::Complete] {
            ending.spawn(rails.gate.clone().act(session, None, Some(deed)));
        }
        let paid: Vec<_> = paying.join_all().await;
        let ended: Vec<_> = ending.join_all().await;
        let won = paid.iter().filter(|it| it.is_ok()).count()
            + ended.iter().filter(|it| it.is_ok()).count();
        assert_eq!(won, 1, "{paid:?} {ended:?}");
        for record in paid.into_iter().flatten() {
            rails.settling.advance(&who, record).await.unwrap();
            let seen = gate.session_get(&who, session).await.unwrap().unwrap();
            assert_eq!(seen.value.state.status(), SessionStatus::Completed);
        }
    }
    world.assert_clean().await;
}

// rule: gate.rail.settles-late, gate.session.one-payment
pub async fn payments_older_than_rule_settle_and_session_completes_once(
    world: World<impl GateFixture>,
) {
    let rails = world.open_rails("acme").await;
    let who = rails.who().clone();
    let (session, first) = rails.redeemed("one", "100.00").await;
    let (_, second) = rails.redeemed("two", "100.00").await;
    let shared = session.ulid();
    let damage = format!(
        "UPDATE rail_records SET session_id = '{shared}', predates_rule = (1 = 1);
         UPDATE transactions SET session_id = '{shared}'"
    );
    world.fixture.damage(&damage).await;
    world.assert_clean().await;
    let quote = rails.locked("third-quote", "100.00").await;
    let further = rails.clone().redeem("third".to_owned(), quote, session);
    let refused = further.await.unwrap_err();
    assert!(matches!(refused, RedeemError::Session(PAYMENT_IN_PROGRESS)));
    for id in [first, second] {
        rails.settling.advance(&who, id).await.unwrap();
        let ended = world.record(&who, id).await.unwrap();
        assert!(matches!(ended.state, RailState::Settled { .. }));
    }
    let said = world.said(&who, session).await;
    assert_eq!(said, ["gate_session.created", "gate_session.completed"]);
    world.assert_clean().await;
}
