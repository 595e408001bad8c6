//! The audit: clean after everything the rules do. What it finds is in `breaches`.

use std::time::Duration;

use kernel::Mode;
use partner_core::events::Service;
use pools_core::quote::Side;
use pools_core::trade::EngineReport;

use crate::fixture::{Fixture, WINDOW};
use crate::world::{Member, ONE, World, profile};

impl<F: Fixture> World<F> {
    /// A bit of everything: both sides, every end, both modes, deliveries, rejections, deposits.
    async fn scenario(&self) -> Member {
        let member = self.rich("acme").await;
        let other = self.rich("other").await;
        let live = self.member_with("acme", Mode::Live, &profile()).await;
        self.fund(
            &live.who,
            crate::world::amount("50", crate::world::eur()),
            "start",
        )
        .await;
        self.set_endpoint(
            &member,
            &self.endpoint(Mode::Test, Service::Pools, "https://acme.example/"),
        )
        .await;
        self.trade(&live, Side::OnRamp, ONE).await;
        let delivered = || EngineReport::Delivered("fill".to_owned());
        let ends = [
            vec![],
            vec![EngineReport::LetGo],
            vec![EngineReport::CannotComplete],
            vec![delivered()],
            vec![delivered(), EngineReport::Reversed],
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

pub async fn a_fresh_database_is_clean(store: impl Fixture) {
    let world = World::new(store);
    world.assert_clean().await;
    assert!(world.audit().await.clean());
}

// rule: money.zero-sum, cli.verify
pub async fn everything_the_rules_do_is_clean(store: impl Fixture) {
    let world = World::new(store);
    world.scenario().await;
    world.clock().advance(WINDOW);
    world.scenario_again().await;
    world.assert_clean().await;
}

impl<F: Fixture> World<F> {
    /// A day later, so that the first trades have left the window.
    async fn scenario_again(&self) {
        let member = self.rich("late").await;
        for _ in 0..3 {
            self.trade(&member, Side::OnRamp, ONE).await;
        }
    }
}
