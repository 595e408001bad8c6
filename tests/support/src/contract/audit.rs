//! The audit finds no breach after any permitted operation. `breaches` has the breaches that it must find.

use std::time::Duration;

use kernel::Mode;
use partner_core::events::Service;
use pools_core::quote::Side;
use pools_core::trade::EngineReport::{CannotComplete, Released, Reversed};

use crate::contract::fixture::{Fixture, WINDOW};
use crate::contract::world::{Member, ONE, World, amount, delivered, eur, profile};

impl<F: Fixture> World<F> {
    /// One of each: both sides, every end, both modes, deliveries, rejections, deposits.
    async fn scenario(&self) -> Member {
        let member = self.rich("acme").await;
        let other = self.rich("other").await;
        let live = self.member_with("acme", Mode::Live, &profile()).await;
        self.fund(&live.who, amount("50", eur()), "start").await;
        let url = "https://acme.example/";
        self.listen(&member, Service::Pools, url).await;
        self.trade(&live, Side::OnRamp, ONE).await;
        let ends = [
            vec![],
            vec![Released],
            vec![CannotComplete],
            vec![delivered()],
            vec![delivered(), Reversed(None)],
        ];
        for side in [Side::OnRamp, Side::OffRamp] {
            for end in &ends {
                for who in [&member, &other] {
                    let trade = self.trade(who, side, 3 * ONE).await;
                    self.clock().advance(Duration::from_secs(60));
                    for report in end {
                        self.report(&who.who, trade.id, report.clone()).await;
                    }
                }
            }
        }
        let quote = self.buy(&member, 1).await;
        self.reject(&member.who, quote.id).await.won().unwrap();
        self.buy(&member, 1).await;
        member
    }
}

pub async fn fresh_database_has_no_breach(world: World<impl Fixture>) {
    world.assert_clean().await;
    assert!(world.audit().await.clean());
}

// rule: money.zero-sum, cli.verify
pub async fn permitted_operations_cause_no_breach(world: World<impl Fixture>) {
    world.scenario().await;
    world.clock().advance(WINDOW);
    world.scenario_again().await;
    world.assert_clean().await;
}

impl<F: Fixture> World<F> {
    /// One day later, when the first trades have left the window.
    async fn scenario_again(&self) {
        let member = self.rich("late").await;
        for _ in 0..3 {
            self.trade(&member, Side::OnRamp, ONE).await;
        }
    }
}

/// Trades under an earlier cap or window are not checked against the present ones.
// rule: pools.velocity.window, cli.verify
pub async fn trades_under_earlier_cap_are_no_breach(mut world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    world.cap(&member, 10 * ONE).await;
    world.ports().audit.velocity_window_keep().await.unwrap();
    for _ in 0..2 {
        world.clock().advance(WINDOW / 2);
        world.trade(&member, Side::OnRamp, 5 * ONE).await;
    }
    world.assert_clean().await;
    // Another window, in which the trades exceed the cap twofold.
    world.clock().advance(WINDOW);
    world.trade(&member, Side::OnRamp, 10 * ONE).await;
    world.reopen(WINDOW * 4).await;
    world.ports().audit.velocity_window_keep().await.unwrap();
    world.assert_clean().await;
    // A cap below what was traded.
    world.cap(&member, ONE).await;
    world.assert_clean().await;
    world.clock().advance(WINDOW * 4);
    world.trade(&member, Side::OnRamp, ONE).await;
    world.assert_clean().await;
    // From now on the present cap and window have been in force.
    let planted = "UPDATE trades SET notional = notional + 1
         WHERE created_at = (SELECT max(created_at) FROM trades)";
    world.fixture.damage(planted).await;
    let findings = world.audit().await.findings;
    let cap = findings
        .iter()
        .find(|one| one.invariant == "velocity-stays-within-cap");
    assert_eq!(cap.unwrap().count, 1);
}
