//! The store's clock, which never runs backwards, not even over a restart.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock as _, StoreError, StoreResult, Timestamp};
use partner_core::clock::LARGEST_JUMP;
use partner_core::events::Service;
use partner_core::key::KeyUse;
use pools_core::ports::CLOCK_TOLERANCE;
use pools_core::quote::{Quote, QuoteStatus, Side};
use pools_core::trade::EngineReport::{Released, Reversed};

use crate::contract::fixture::{Fixture, ManualClock, WINDOW};
use crate::contract::gate_world::DAY;
use crate::contract::world::{MILLI, Member, ONE, World, amount, delivered, eur, terms};

const HOUR: Duration = Duration::from_secs(3600);

impl<F: Fixture> World<F> {
    async fn store_now(&self) -> Timestamp {
        let mut tx = self.ports().store.begin("clock").await.unwrap();
        tx.now().await.unwrap()
    }
}

// rule: base.clock-forward
pub async fn clock_never_runs_backwards(world: World<impl Fixture>) {
    let used = world.store_now().await;
    assert_eq!(used, world.now());
    world.clock().go_back(HOUR);
    assert_eq!(world.store_now().await, used);
    world.clock().advance(HOUR * 2);
    assert_eq!(world.store_now().await, used.plus(HOUR));
}

/// The clock starts at the newest stored instant, in whichever table it is.
// rule: base.clock-forward
pub async fn clock_resumes_after_newest_stored_instant(mut world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    for last in 0..9 {
        world.clock().advance(HOUR);
        let stored = world.write_something(&member, last).await;
        world.clock().go_back(HOUR * 100);
        world.fixture.reopen(WINDOW).await;
        assert_eq!(world.store_now().await, stored, "kind {last}");
        world.clock().set(stored);
    }
}

impl<F: Fixture> World<F> {
    /// Writes an instant of a kind and returns it.
    async fn write_something(&self, member: &Member, kind: u32) -> Timestamp {
        match kind {
            0 => {
                self.buy(member, 1).await;
            }
            1 => {
                let quote = self.buy(member, 1).await;
                self.clock().advance(Duration::from_secs(1));
                self.reject(&member.who, quote.id).await.won().unwrap();
            }
            2 => {
                self.trade(member, Side::OnRamp, ONE).await;
            }
            3 => {
                let trade = self.trade(member, Side::OffRamp, ONE).await;
                self.clock().advance(HOUR);
                self.report(&member.who, trade.id, Released).await;
            }
            4 => {
                self.member("new").await;
            }
            5 => {
                self.fund(&member.who, amount("1", eur()), "later").await;
            }
            6 => {
                let url = "https://a.example/";
                self.listen(member, Service::Pools, url).await;
            }
            7 => {
                let trade = self.trade(member, Side::OnRamp, ONE).await;
                self.report(&member.who, trade.id, delivered()).await;
                self.clock().advance(HOUR);
                self.report(&member.who, trade.id, Reversed(None)).await;
            }
            _ => {
                let mut tx = self.provision_begin("revoke").await;
                tx.key_revoke(member.key, self.now())
                    .await
                    .unwrap()
                    .won()
                    .unwrap();
                tx.commit().await.unwrap();
            }
        }
        self.now()
    }
}

// rule: base.clock-forward, pools.quote-record.monotone
pub async fn expired_quote_stays_expired_when_clock_is_set_back(world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    let quote = world.buy(&member, 1).await;
    world.clock().set(quote.expires_at);
    for _ in 0..2 {
        let seen = world.ports().store.quote_get(&member.who, quote.id).await;
        let seen = seen.unwrap().unwrap();
        assert_eq!(seen.at, quote.expires_at);
        let status = seen.value.status(seen.at);
        assert_eq!(status, pools_core::quote::QuoteStatus::Expired);
        world.clock().go_back(HOUR);
    }
    world.clock().set(quote.expires_at.minus(CLOCK_TOLERANCE));
    let next = world.buy(&member, 1).await;
    assert_eq!(next.created_at, quote.expires_at);
}

/// A process whose clock is ahead credits. The next write of any process continues from that instant.
// rule: base.clock-forward, pools.ledger.order
pub async fn clock_never_precedes_another_process(world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    let quote = world.buy(&member, 1).await;
    let ahead = Arc::new(ManualClock::default());
    let beside = world.fixture.beside(Arc::clone(&ahead)).await;
    for round in 0..3 {
        ahead.set(world.now().plus(CLOCK_TOLERANCE));
        let reference = format!("beside-{round}");
        let one = amount("1", eur());
        world.fund_over(&beside, &member.who, one, &reference).await;
        match round {
            0 => {
                world.fund(&member.who, one, "after").await;
            }
            1 => {
                let command = world.command(&member, quote.id);
                world.transact_one(command).await.unwrap();
                let next = world.buy(&member, 1).await;
                assert_eq!(next.created_at, ahead.now());
            }
            _ => {
                world.report(&member.who, trade.id, Released).await;
            }
        }
        let entries = world.entries(&member.who, eur()).await;
        assert_eq!(entries[0].created_at, ahead.now(), "round {round}");
        assert!(
            entries
                .windows(2)
                .all(|pair| pair[1].created_at <= pair[0].created_at),
            "{entries:?}"
        );
        world.clock().advance(MILLI);
    }
    world.assert_clean().await;
}

/// While the clock is stopped, a quote would live too long.
// rule: base.clock-standing
pub async fn stopped_clock_prevents_trading(world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    let settled = world.trade(&member, Side::OnRamp, ONE).await;
    let quote = world.buy(&member, 1).await;
    let before = world.standing(&member.who).await;
    world.clock().go_back(CLOCK_TOLERANCE + MILLI);

    let new = world.new_quote(&member.who, terms(Side::OnRamp, ONE));
    assert_unavailable(world.ports().quotes.quotes_open(&[new]).await);
    let command = world.command(&member, quote.id);
    let transact = &world.ports().transact;
    assert_unavailable(transact.transact(&[command]).await);
    assert_eq!(world.standing(&member.who).await, before);

    // Open work is finished, and credits are accepted.
    world.report(&member.who, trade.id, Released).await;
    world.report(&member.who, settled.id, delivered()).await;
    world
        .fund(&member.who, amount("1", eur()), "meanwhile")
        .await;
    let rejected = world.reject(&member.who, quote.id).await;
    rejected.won().unwrap();

    world.clock().advance(MILLI);
    let quote = world.buy(&member, 1).await;
    let command = world.command(&member, quote.id);
    world.transact_one(command).await.unwrap();
    world.assert_clean().await;
}

impl<F: Fixture> World<F> {
    /// Every write with an instant fails, and every read succeeds.
    async fn writes_are_refused(&self, member: &Member, quote: &Quote) {
        let before = self.standing(&member.who).await;
        let new = self.new_quote(&member.who, terms(Side::OnRamp, ONE));
        let refused = self.ports().quotes.quotes_open(&[new]).await;
        assert_unavailable(refused);
        let batch = [self.command(member, quote.id)];
        let transact = &self.ports().transact;
        // A refused batch rolls back in the background; until then its partner is not used.
        let unlocked = loop {
            match transact.transact_unlocked(&batch).await {
                Ok(left_out) if left_out.iter().all(Option::is_none) => {}
                other => break other,
            }
        };
        assert_unavailable(unlocked);
        assert_unavailable(transact.transact(&batch).await);
        let mut tx = self.ports().store.begin("refused").await.unwrap();
        assert_unavailable(tx.now().await);
        drop(tx);
        let uses = [KeyUse {
            who: member.who.clone(),
            key: member.key,
            at: self.now(),
        }];
        assert_unavailable(self.ports().housekeeping.key_uses_record(&uses).await);
        assert_eq!(self.standing(&member.who).await, before);
        let seen = self.ports().store.quote_get(&member.who, quote.id).await;
        let seen = seen.unwrap().unwrap();
        assert_eq!(
            seen.value.status(seen.at),
            QuoteStatus::Active,
            "{}",
            seen.at
        );
    }

    async fn writes_go_through(&self, member: &Member) {
        self.trade(member, Side::OnRamp, ONE).await;
        let reference = format!("after-{}", self.entropy.below(1_000_000));
        self.fund(&member.who, amount("1", eur()), &reference).await;
    }
}

fn assert_unavailable<T: std::fmt::Debug>(outcome: StoreResult<T>) {
    assert!(
        matches!(outcome, Err(StoreError::Unavailable(_))),
        "{outcome:?}"
    );
}

/// A machine that resumes one day ahead.
// rule: base.clock-jump
pub async fn clock_jump_prevents_writes_until_accepted(world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    let guard = world.ports().clock.clone();
    assert_eq!(guard.clock_check().await.unwrap(), None);
    assert_eq!(guard.clock_accept().await.unwrap(), None);

    world.clock().jump(LARGEST_JUMP);
    world.writes_go_through(&member).await;
    world.clock().jump(DAY);
    let mut tx = world.ports().store.begin("refused").await.unwrap();
    assert_unavailable(tx.now().await);
    drop(tx);
    let jump = guard.clock_check().await.unwrap().unwrap();
    assert_eq!(jump.found, world.now());
    assert_eq!(jump.span(), DAY + LARGEST_JUMP);
    assert_eq!(guard.clock_noted().await.unwrap(), Some(jump));

    assert_eq!(guard.clock_accept().await.unwrap(), Some(jump));
    assert_eq!(guard.clock_check().await.unwrap(), None);
    assert_eq!(guard.clock_noted().await.unwrap(), None);
    world.writes_go_through(&member).await;
    world.assert_clean().await;
}

// rule: base.clock-jump
pub async fn restart_does_not_accept_clock_jump(mut world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    world.clock().jump(DAY);
    let noted = world.ports().clock.clock_check().await.unwrap();
    world.fixture.reopen(WINDOW).await;
    let mut tx = world.ports().store.begin("refused").await.unwrap();
    assert_unavailable(tx.now().await);
    drop(tx);
    assert_eq!(world.ports().clock.clock_noted().await.unwrap(), noted);
    world.ports().clock.clock_accept().await.unwrap();
    world.ports().clock.clock_check().await.unwrap();
    world.writes_go_through(&member).await;
}

/// The clock is corrected before an operator accepts the jump. No instant of the jump was stored, so trading continues at once.
// rule: base.clock-jump
pub async fn corrected_clock_jump_leaves_no_trace(world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    let quote = world.buy(&member, 1).await;
    world.clock().jump(DAY);
    world.writes_are_refused(&member, &quote).await;
    world.ports().clock.clock_check().await.unwrap().unwrap();
    world.writes_are_refused(&member, &quote).await;
    world.clock().go_back(DAY);
    assert_eq!(world.ports().clock.clock_check().await.unwrap(), None);
    assert_eq!(world.ports().clock.clock_noted().await.unwrap(), None);
    let command = world.command(&member, quote.id);
    world.transact_one(command).await.unwrap();
    world.writes_go_through(&member).await;
    world.assert_clean().await;
}
