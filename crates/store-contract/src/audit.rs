//! The audit: clean after everything the rules do, and every planted breach has its name.

use std::collections::BTreeSet;
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

    async fn broken(&self) -> BTreeSet<&'static str> {
        let findings = self.audit().await.findings;
        for finding in &findings {
            assert_eq!(
                finding.count > 0,
                !finding.breaches.is_empty(),
                "{finding:?}"
            );
            assert!(finding.breaches.len() <= 20);
        }
        findings
            .into_iter()
            .filter(|finding| finding.count > 0)
            .map(|finding| finding.invariant)
            .collect()
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

/// Plants one breach in a whole database and expects it to be named.
async fn planted(store: impl Fixture, damage: &str, named: &[&str]) {
    let world = World::new(store);
    world.scenario().await;
    world.assert_clean().await;
    world.fixture.damage(damage).await;
    let broken = world.broken().await;
    for name in named {
        assert!(
            broken.contains(name),
            "{name} was not found by {damage}; found {broken:?}"
        );
    }
    assert!(!world.audit().await.clean());
}

macro_rules! planted {
    ($($case:ident: $damage:literal is $($named:literal),+;)+) => { $(
        pub async fn $case(store: impl Fixture) {
            planted(store, $damage, &[$($named),+]).await;
        }
    )+ };
}

planted! {
    money_on_an_account_is_found:
        "UPDATE accounts SET available = available + 1"
        is "balance-is-sum-of-entries", "accounts-sum-to-zero";
    a_negative_balance_is_found:
        "UPDATE accounts SET available = -1"
        is "balance-is-sum-of-entries", "accounts-sum-to-zero";
    a_changed_entry_is_found:
        "UPDATE ledger_entries SET amount = amount + 100 WHERE part = 'reserve'"
        is "ledger-chains", "reserve-is-posted-once", "reserved-is-open-reserves";
    a_broken_chain_is_found:
        "UPDATE ledger_entries SET balance_after = balance_after + 1 WHERE account_sequence = 2"
        is "ledger-chains";
    a_gap_in_the_sequence_is_found:
        "UPDATE ledger_entries SET account_sequence = 1000 WHERE account_sequence = 2"
        is "ledger-chains";
    an_entry_out_of_time_is_found:
        "UPDATE ledger_entries SET created_at = 5 WHERE account_sequence = 2"
        is "ledger-chains";
    a_lost_account_is_found:
        "DELETE FROM accounts WHERE asset = 'EUR'"
        is "balance-is-sum-of-entries", "accounts-sum-to-zero";
    a_lost_reserve_is_found:
        "DELETE FROM ledger_entries WHERE part = 'reserve'"
        is "reserve-is-posted-once", "ledger-chains";
    a_reserve_without_a_fate_is_found:
        "DELETE FROM ledger_entries WHERE part = 'close' AND credit = 'operator'"
        is "reserve-has-one-fate", "reserved-is-open-reserves";
    a_refund_that_never_came_is_found:
        "DELETE FROM ledger_entries WHERE part = 'return'"
        is "return-is-refunded-once";
    a_failed_trade_that_kept_its_reserve_is_found:
        "UPDATE ledger_entries SET credit = 'operator', account_sequence = NULL, balance_after = NULL WHERE part = 'close' AND credit = 'partner'"
        is "reserve-has-one-fate";
    an_entry_of_another_quote_is_found:
        "UPDATE ledger_entries SET reference = 'pq_live_0' WHERE part = 'reserve'"
        is "entry-of-trade-names-its-quote";
    a_deposit_of_another_amount_is_found:
        "UPDATE deposits SET amount = amount + 1"
        is "deposit-is-its-entry";
    a_trade_with_other_terms_is_found:
        "UPDATE trades SET rate = '2'"
        is "trade-has-its-quotes-terms";
    a_spread_past_the_ceiling_is_found:
        "UPDATE quotes SET spread_bps = 51"
        is "bps-within-limits", "trade-has-its-quotes-terms";
    a_consumed_quote_without_a_trade_is_found:
        "UPDATE quotes SET consumed_at = created_at WHERE consumed_at IS NULL AND rejected_at IS NULL"
        is "consumed-quote-has-one-trade";
    a_trade_of_an_open_quote_is_found:
        "UPDATE quotes SET consumed_at = NULL"
        is "trade-has-one-consumed-quote";
    a_quote_with_two_fates_is_found:
        "UPDATE quotes SET rejected_at = consumed_at WHERE consumed_at IS NOT NULL"
        is "quote-has-one-fate";
    a_quote_consumed_late_is_found:
        "UPDATE quotes SET expires_at = consumed_at WHERE consumed_at IS NOT NULL"
        is "quote-is-decided-in-time";
    a_step_that_does_not_exist_is_found:
        "UPDATE trade_transitions SET from_status = 'failed' WHERE to_status = 'settled'"
        is "trade-moves-by-allowed-steps", "rows-refer-to-rows";
    a_lost_step_is_found:
        "DELETE FROM trade_transitions WHERE to_status = 'returned'"
        is "trade-steps-fit-its-state";
    a_status_against_its_steps_is_found:
        "UPDATE trades SET status = 'failed', failed_at = released_at, released_at = NULL WHERE status = 'released'"
        is "trade-steps-fit-its-state", "terminal-trade-has-one-event", "event-has-its-trade";
    a_reserved_trade_that_settled_is_found:
        "UPDATE trades SET settled_at = created_at WHERE status = 'reserved'"
        is "trade-state-fits-its-facts";
    a_settlement_that_moved_is_found:
        "UPDATE trades SET settled_at = settled_at + 1 WHERE status = 'settled'"
        is "trade-steps-fit-its-state";
    a_lost_event_is_found:
        "DELETE FROM events"
        is "terminal-trade-has-one-event", "delivery-is-of-its-event", "rows-refer-to-rows";
    an_event_of_no_end_is_found:
        "UPDATE events SET type = 'pool.transaction.failed' WHERE type = 'pool.transaction.released'"
        is "event-has-its-trade", "terminal-trade-has-one-event";
    an_event_said_twice_is_found:
        "DROP INDEX events_terminal_once; INSERT INTO events (mode, partner_id, id, service, type, object_id, body, created_at) SELECT mode, partner_id, id || 'x', service, type, object_id, body, created_at FROM events"
        is "terminal-trade-has-one-event";
    a_delivery_of_another_object_is_found:
        "UPDATE deliveries SET object_id = object_id || 'x'"
        is "delivery-is-of-its-event";
    a_record_of_another_instant_is_found:
        "UPDATE idempotency_keys SET created_at = created_at + 1"
        is "idempotency-record-is-of-its-trade";
    a_record_of_no_trade_is_found:
        "DELETE FROM trades"
        is "idempotency-record-is-of-its-trade", "rows-refer-to-rows", "consumed-quote-has-one-trade";
    a_running_total_that_is_off_is_found:
        "UPDATE velocity SET total = '1'"
        is "velocity-total-is-plain-sum";
    a_lost_running_total_is_found:
        "DELETE FROM velocity"
        is "velocity-total-is-plain-sum";
    an_event_of_the_other_mode_is_found:
        "UPDATE events SET object_id = replace(object_id, 'txn_test_', 'txn_live_')"
        is "rows-stay-in-their-mode", "terminal-trade-has-one-event";
    a_row_of_the_other_mode_is_found:
        "UPDATE ledger_entries SET mode = 'live' WHERE mode = 'test' AND part = 'close' AND credit = 'operator'"
        is "rows-refer-to-rows", "rows-stay-in-their-mode";
}
