//! Trades: every state reads back, a claim has one holder, a step happens once.

use std::time::Duration;

use kernel::{Cas, Mid, Mode, StoreResult, Timestamp};
use pools_core::ports::TradeFilter;
use pools_core::quote::Side;
use pools_core::trade::EngineReport::{self, CannotComplete, InProgress, Released, Reversed};
use pools_core::trade::{Fill, Lease, Settlement, Step, Trade, TradeId, TradeState};

use crate::contract::fixture::Fixture;
use crate::contract::world::{Member, ONE, World, amount, assert_guarded, eur, profile, usdt};

impl<F: Fixture> World<F> {
    /// A partner with funds of both currencies.
    pub(crate) async fn rich(&self, name: &str) -> Member {
        let member = self.funded(name).await;
        self.fund(&member.who, amount("1000000", usdt()), "crypto")
            .await;
        member
    }

    pub(crate) async fn stored(&self, member: &Member, id: TradeId) -> Trade {
        self.ports()
            .store
            .trade_get(&member.who, id)
            .await
            .unwrap()
            .unwrap()
    }

    async fn apply(
        &self,
        member: &Member,
        before: &Trade,
        step: &Step,
        token: u64,
    ) -> StoreResult<Cas> {
        let mut tx = self.ports().store.begin("apply").await?;
        let steps = std::slice::from_ref(step);
        let outcome = tx.trade_apply(&member.who, before, steps, token).await?;
        tx.commit().await?;
        Ok(outcome)
    }

    async fn applied(&self, member: &Member, before: &Trade, step: &Step, token: u64) -> Cas {
        self.apply(member, before, step, token).await.unwrap()
    }
}

fn delivered() -> EngineReport {
    EngineReport::Delivered(Fill {
        reference: "fill-1".to_owned(),
        rate: Mid::parse("1.0849"),
    })
}

fn settle(trade: &Trade, now: Timestamp) -> Step {
    trade.advance(delivered(), now).unwrap().unwrap()
}

// rule: pools.trade.settle, pools.trade.fail, pools.trade.release, pools.trade.return
// rule: pools.trade.settled-at
pub async fn trade_reads_back_in_every_state(world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    let paths = [
        vec![],
        vec![delivered()],
        vec![Released],
        vec![CannotComplete],
        vec![EngineReport::Delivered("without a rate".into())],
        vec![delivered(), Reversed(None)],
        vec![Reversed(None)],
        vec![Reversed(Some("fill-1".to_owned()))],
        vec![InProgress, delivered(), InProgress],
    ];
    for side in [Side::OnRamp, Side::OffRamp] {
        for path in &paths {
            let mut trade = world.trade(&member, side, ONE).await;
            assert_eq!(world.stored(&member, trade.id).await, trade);
            for report in path {
                world.clock().advance(Duration::from_millis(7));
                trade = world.report(&member.who, trade.id, report.clone()).await;
                trade.lease = None;
                assert_eq!(world.stored(&member, trade.id).await, trade);
            }
            let store = &world.ports().store;
            let of_quote = store.trade_by_quote(&member.who, trade.quote).await;
            let of_quote = of_quote.unwrap().unwrap();
            assert_eq!((of_quote.value, of_quote.at), (trade, world.now()));
        }
    }
    world.assert_clean().await;
}

// rule: tenancy.nothing-crosses, id.other-mode, list.foreign-cursor
pub async fn foreign_trade_is_absent(world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    let other = world.rich("other").await;
    let live = world.member_with("acme", Mode::Live, &profile()).await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    let token = world.claim(&member.who, trade.id).await.unwrap();
    let twin = TradeId::from_parts(Mode::Live, trade.id.ulid());
    let store = &world.ports().store;
    for (who, id) in [
        (&other.who, trade.id),
        (&live.who, trade.id),
        (&live.who, twin),
        (&member.who, twin),
    ] {
        assert!(store.trade_get(who, id).await.unwrap().is_none());
        let mut tx = store.begin("foreign").await.unwrap();
        assert!(tx.trade_lock(who, id).await.unwrap().is_none());
        let lease = Lease {
            token: 1,
            until: world.now(),
        };
        assert_eq!(tx.trade_claim(who, id, 2, lease).await.unwrap(), Cas::Lost);
        assert_eq!(tx.trade_unclaim(who, id, token).await.unwrap(), Cas::Lost);
        let rest = Lease { token, ..lease };
        assert_eq!(tx.trade_rest(who, id, rest).await.unwrap(), Cas::Lost);
        let before = Trade {
            id,
            ..trade.clone()
        };
        let step = settle(&trade, world.now());
        let steps = std::slice::from_ref(&step);
        let applied = tx.trade_apply(who, &before, steps, token).await;
        assert_eq!(applied.unwrap(), Cas::Lost);
        drop(tx);
        let filter = TradeFilter {
            cursor: Some(id),
            ..TradeFilter::default()
        };
        assert_eq!(store.trades_page(who, &filter, 10).await.unwrap(), []);
    }
    for who in [&other.who, &live.who] {
        let found = store.trade_by_quote(who, trade.quote).await.unwrap();
        assert!(found.is_none());
    }
}

// rule: pools.trade.converge
pub async fn claim_requires_previous_attempt(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    let lease = Lease {
        token: u64::MAX,
        until: world.now().plus(Duration::from_secs(12)),
    };
    let mut tx = world.ports().store.begin("claim").await.unwrap();
    for (attempt, outcome) in [(2, Cas::Lost), (1, Cas::Won), (1, Cas::Lost)] {
        let claimed = tx.trade_claim(&member.who, trade.id, attempt, lease).await;
        assert_eq!(claimed.unwrap(), outcome);
    }
    tx.commit().await.unwrap();
    let claimed = world.stored(&member, trade.id).await;
    assert_eq!((claimed.attempts, claimed.lease), (1, Some(lease)));
}

// rule: pools.trade.converge
pub async fn stale_token_changes_nothing(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    let step = settle(&trade, world.now());
    let apply = |token| world.applied(&member, &trade, &step, token);
    assert_eq!(apply(0).await, Cas::Lost, "never claimed");
    let stale = world.claim(&member.who, trade.id).await.unwrap();
    let fresh = world.claim(&member.who, trade.id).await.unwrap();
    assert_eq!(apply(stale).await, Cas::Lost);
    let mut tx = world.ports().store.begin("unclaim").await.unwrap();
    for (token, outcome) in [(stale, Cas::Lost), (fresh, Cas::Won), (fresh, Cas::Lost)] {
        let unclaimed = tx.trade_unclaim(&member.who, trade.id, token).await;
        assert_eq!(unclaimed.unwrap(), outcome);
    }
    tx.commit().await.unwrap();
    let left = world.stored(&member, trade.id).await;
    let attempts = 2;
    assert_eq!(left, Trade { attempts, ..trade });
}

// rule: pools.trade.converge, pools.trade.terminal
pub async fn step_is_applied_once(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    let step = settle(&trade, world.now());
    let token = world.claim(&member.who, trade.id).await.unwrap();
    let apply = |token| world.applied(&member, &trade, &step, token);
    assert_eq!(apply(token).await, Cas::Won);
    assert_eq!(apply(token).await, Cas::Lost, "the lease is over");
    let token = world.claim(&member.who, trade.id).await.unwrap();
    assert_eq!(apply(token).await, Cas::Lost, "the status has moved on");
}

// rule: pools.trade.converge
pub async fn concurrent_reports_have_one_winner(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    for _ in 0..10 {
        let trade = world.trade(&member, Side::OnRamp, ONE).await;
        let token = world.claim(&member.who, trade.id).await.unwrap();
        let settled = settle(&trade, world.now());
        let failed = trade.advance(CannotComplete, world.now()).unwrap().unwrap();
        let (one, two) = tokio::join!(
            world.applied(&member, &trade, &settled, token),
            world.applied(&member, &trade, &failed, token)
        );
        assert_ne!(one, two);
    }
}

/// The schema refuses impossible steps too, without the rules.
// rule: pools.trade.terminal
pub async fn unknown_step_is_refused(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    let token = world.claim(&member.who, trade.id).await.unwrap();
    let settlement = Settlement {
        at: world.now(),
        fill: "fill".to_owned(),
        rate: None,
    };
    let state = TradeState::Returned {
        settlement,
        at: world.now(),
    };
    let leap = Step {
        state,
        transfer: None,
        event: None,
        leaves_velocity: false,
    };
    assert_guarded(world.apply(&member, &trade, &leap, token).await);
    assert_eq!(
        world.stored(&member, trade.id).await.state,
        TradeState::Reserved
    );
}

// rule: pools.trade.settled-at
pub async fn settlement_never_changes(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    let settled = world.report(&member.who, trade.id, delivered()).await;
    world.clock().advance(Duration::from_secs(1));
    let token = world.claim(&member.who, trade.id).await.unwrap();
    let settlement = Settlement {
        at: world.now(),
        fill: "another".to_owned(),
        rate: None,
    };
    let state = TradeState::Returned {
        settlement,
        at: world.now(),
    };
    let forged = Step {
        state,
        transfer: None,
        event: None,
        leaves_velocity: false,
    };
    let refused = world.applied(&member, &settled, &forged, token).await;
    assert_eq!(refused, Cas::Lost);
    assert_eq!(world.stored(&member, trade.id).await.state, settled.state);
}

// rule: pools.gate-off.reserves-nothing
pub async fn purchase_without_balance_gate_reserves_nothing(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let mut ungated = profile();
    ungated.balance_gate = false;
    world.reprofile(&member, &ungated).await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    assert_eq!(trade.reserved, None);
    assert_eq!(world.stored(&member, trade.id).await, trade);
    assert!(world.account(&member.who, eur()).await.is_none());
    world.report(&member.who, trade.id, delivered()).await;
    world.report(&member.who, trade.id, Reversed(None)).await;
    assert!(world.account(&member.who, eur()).await.is_none());
    world.assert_clean().await;
}
