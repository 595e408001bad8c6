//! A long history costs no more than a short one: each step reads a bounded number of trades and stores its progress.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Amount, Timestamp};
use pools_core::batch::Refusal;
use pools_core::contingent_credit::SLICE;
use pools_core::ledger::BALANCE_LIMIT;
use pools_core::quote::Side;
use pools_core::usecases::credit_account::{Credit, CreditAccount, CreditError, Credited};
use pools_core::usecases::recount_contingent_credits::RecountContingentCredits;
use pools_core::velocity::{BATCH_STEP, STEP, Velocity};

use crate::contract::fixture::{Fixture, WINDOW};
use crate::contract::world::{Decided, MILLI, Member, ONE, Seeded, World, assert_opened, eur};

/// Trades of one partner, one millisecond apart.
const TRADES: u32 = 60_000;
const HOUR: Duration = Duration::from_secs(3600);

impl<F: Fixture> World<F> {
    /// A partner with settled sales of one euro each, the last of them at an instant. The total counts all of them.
    async fn with_history(&self, name: &str, cap: Option<i64>, last: Timestamp) -> Member {
        let member = self.funded(name).await;
        if let Some(cap) = cap {
            self.cap(&member, cap).await;
        }
        let first = last.minus(MILLI * TRADES);
        let (id, from) = (self.fixture.id("n.i"), first.millis());
        let n = format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {TRADES})"
        );
        let terms =
            "'EUR-USDT', 'off_ramp', 'ethereum', 100000000, 100000000, '1', 25, 30, 100000000";
        for table in [
            format!(
                "INSERT INTO quotes (mode, partner_id, id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps,
                                     notional, created_at, expires_at, consumed_at)
                 SELECT 'test', '{name}', {id}, {terms}, {from} + i, {from} + i + 1, {from} + i FROM n"
            ),
            format!(
                "INSERT INTO trades (mode, partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps,
                                     fee_bps, notional, reserved, status, created_at, settled_at, fill)
                 SELECT 'test', '{name}', {id}, {id}, {terms}, 100000000, 'settled', {from} + i, {from} + i, 'f' FROM n"
            ),
        ] {
            self.fixture.damage(&format!("{n} {table}")).await;
        }
        let mut tx = self.ports().store.begin("history").await.unwrap();
        let total = Velocity {
            total: i128::from(TRADES) * i128::from(ONE),
            floor: first,
        };
        tx.velocity_put(&member.who, &total).await.unwrap();
        tx.commit().await.unwrap();
        member
    }

    /// Runs the batch queue once, without catching up.
    async fn run_once(&self, member: &Member, euros: i64) -> Decided {
        let quote = self.buy(member, euros).await;
        let command = self.command(member, quote.id);
        self.transact(&[command]).await.remove(0)
    }

    async fn credit_once(&self, member: &Member, reference: &str) -> Result<Credited, CreditError> {
        let crediting = CreditAccount {
            store: self.ports().store.clone(),
            entropy: Arc::new(Seeded::new(self.entropy.next())),
        };
        let credit = Credit {
            amount: Amount::parse("5", eur()).unwrap(),
            network: None,
            reference: reference.to_owned(),
        };
        crediting.credit(&member.who, &credit).await
    }

    async fn stored_figure(&self, member: &Member) -> (Option<i64>, bool) {
        let mut tx = self.ports().store.begin("figure").await.unwrap();
        let stored = tx.commitment_get(&member.who, eur()).await.unwrap();
        let recount = tx.recount_get(&member.who, eur()).await.unwrap();
        (stored, recount.is_some())
    }
}

/// After a pause longer than the window, the first transact drops at most one batch of trades and stores that even if it opens
/// no trade. One more step makes the total exact.
// rule: pools.velocity.bounded, pools.velocity.exact, pools.velocity.cost
pub async fn first_transact_after_pause_takes_one_step(world: World<impl Fixture>) {
    let last = world.now().minus(WINDOW * 3);
    let member = world.with_history("acme", Some(100 * ONE), last).await;
    let before = world.total(&member.who).await.unwrap();
    let behind = world.run_once(&member, 100).await;
    assert_eq!(behind, Err(Refusal::VelocityBehind));
    let after = world.total(&member.who).await.unwrap();
    assert_eq!(after.floor, before.floor.plus(MILLI * BATCH_STEP));
    let forgotten = i128::from(BATCH_STEP) * i128::from(ONE);
    assert_eq!(after.total, before.total - forgotten);
    assert_eq!(world.catch_up().run(&member.who).await.unwrap(), 1);
    assert_eq!(world.total(&member.who).await.unwrap().total, 0);
    assert_opened(&world.run_once(&member, 100).await);
    let full = world.run_once(&member, 1).await;
    assert_eq!(full, Err(Refusal::VelocityCapExceeded));
}

/// After a pause within the window, each step drops a bounded number of trades and is stored. At the end the total is exact.
// rule: pools.velocity.bounded, pools.velocity.exact
pub async fn catch_up_runs_in_bounded_steps(world: World<impl Fixture>) {
    // Half of the trades are inside the window.
    let half = TRADES / 2;
    let last = world.now().minus(WINDOW).plus(MILLI * half);
    let cap = i64::from(half) * ONE + 10 * ONE;
    let member = world.with_history("acme", Some(cap), last).await;
    let behind = world.run_once(&member, 10).await;
    assert_eq!(behind, Err(Refusal::VelocityBehind));
    let steps = world.catch_up().run(&member.who).await.unwrap();
    assert_eq!(steps, (half - BATCH_STEP).div_ceil(STEP));
    let total = world.total(&member.who).await.unwrap();
    assert_eq!(total.total, i128::from(half) * i128::from(ONE));
    assert_opened(&world.run_once(&member, 10).await);
    let full = world.run_once(&member, 1).await;
    assert_eq!(full, Err(Refusal::VelocityCapExceeded));
}

/// Without a cap no trade is dropped and no transact waits, however long the history is.
// rule: pools.velocity.bounded, pools.velocity.off
pub async fn partner_without_cap_keeps_window_start(world: World<impl Fixture>) {
    let last = world.now().minus(WINDOW * 3);
    let member = world.with_history("acme", None, last).await;
    let before = world.total(&member.who).await.unwrap();
    assert_opened(&world.run_once(&member, 100).await);
    let after = world.total(&member.who).await.unwrap();
    assert_eq!(after.floor, before.floor);
    assert_eq!(after.total, before.total + i128::from(100 * ONE));
    // A later cap counts the window only, after one step.
    world.cap(&member, 100 * ONE).await;
    assert_eq!(world.catch_up().run(&member.who).await.unwrap(), 1);
    let full = world.run_once(&member, 1).await;
    assert_eq!(full, Err(Refusal::VelocityCapExceeded));
}

/// A credit starts no recount while the stored figure leaves room. Otherwise it recounts in bounded slices before it refuses.
// rule: money.recount, money.credit-limit
pub async fn credit_reads_no_trade_below_limit(world: World<impl Fixture>) {
    let member = world.with_history("acme", None, world.now()).await;
    let (before, _) = world.stored_figure(&member).await;
    let credited = world.credit_once(&member, "one").await.unwrap();
    assert!(credited.applied);
    let expected = before.unwrap() + 5 * ONE;
    assert_eq!(world.stored_figure(&member).await, (Some(expected), false));

    let mut tx = world.ports().store.begin("full").await.unwrap();
    tx.commitment_put(&member.who, eur(), BALANCE_LIMIT)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    world.clock().advance(MILLI);
    let recounting = RecountContingentCredits {
        store: world.ports().store.clone(),
        mode: member.who.mode,
    };
    let mut slices = 1;
    // The test runs half of the slices; the credit runs the others.
    while slices < (TRADES / SLICE) / 2 {
        assert!(recounting.advance(&member.who, eur()).await.unwrap());
        slices += 1;
    }
    let recount = async || {
        let mut tx = world.ports().store.begin("recount").await.unwrap();
        tx.recount_get(&member.who, eur()).await.unwrap().unwrap()
    };
    let half = recount().await;
    assert_eq!(half.total, i64::from((slices - 1) * SLICE) * ONE);
    assert!(world.credit_once(&member, "two").await.unwrap().applied);
    let ended = recount().await;
    assert_eq!(
        ended.begun_at, half.begun_at,
        "the credit continued the recount"
    );
    let back = i64::from(TRADES) * ONE;
    let available = world.available(&member.who, eur()).await;
    assert_eq!(world.stored_figure(&member).await.0, Some(available + back));
    // The next recount does not count trades outside the return window.
    world.clock().advance(HOUR * 24 * 40);
    assert!(!recounting.advance(&member.who, eur()).await.unwrap());
    assert_eq!(world.stored_figure(&member).await.0, Some(available));
    world.trade(&member, Side::OnRamp, ONE).await;
}
