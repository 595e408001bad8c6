//! Idempotency records: one effect per scope while they count, none of it afterwards.

use std::time::Duration;

use kernel::Timestamp;
use partner_core::idempotency::Fingerprint;
use pools_core::books::{Command, Outcome, Refusal};
use pools_core::ports::TransactLook;

use crate::fixture::{Fixture, IDEMPOTENCY_TTL};
use crate::world::World;

const MILLI: Duration = Duration::from_millis(1);

impl<F: Fixture> World<F> {
    async fn look(&self, command: &Command) -> TransactLook {
        self.ports()
            .store
            .transact_look(&command.scope, command.quote)
            .await
            .unwrap()
            .value
    }

    async fn answered(&self, command: &Command) -> Option<(Fingerprint, Timestamp)> {
        self.look(command).await.answered
    }
}

// rule: idempotency.same-transaction, idempotency.transact-stores-no-answer
pub async fn a_look_knows_what_a_transact_left(store: impl Fixture) {
    let world = World::new(store);
    let member = world.funded("acme").await;
    let quote = world.buy(&member, 1).await;
    let command = world.command(&member, quote.id);
    let before = world.look(&command).await;
    assert_eq!(
        (before.answered, before.quote, before.trade),
        (None, Some(quote), None)
    );
    world.clock().advance(MILLI);
    let Ok(Outcome::Opened(trade)) = world.transact_one(command.clone()).await else {
        panic!()
    };
    let seen = world
        .ports()
        .store
        .transact_look(&command.scope, command.quote)
        .await
        .unwrap();
    assert_eq!(seen.at, world.now());
    assert_eq!(
        seen.value.answered,
        Some((command.fingerprint, world.now()))
    );
    assert_eq!(
        seen.value.quote,
        Some(world.seen(&member.who, trade.quote).await)
    );
    assert_eq!(seen.value.trade, Some(trade));
    let unused = world.command(&member, command.quote);
    assert_eq!(world.look(&unused).await.answered, None);
}

// rule: idempotency.reused, pools.transact.repeat-leaves-key
pub async fn the_same_key_for_another_request_is_refused(store: impl Fixture) {
    let world = World::new(store);
    let member = world.funded("acme").await;
    let (one, two) = (world.buy(&member, 1).await, world.buy(&member, 1).await);
    let first = world.command_under(&member, one.id, "k", b"one");
    let Ok(Outcome::Opened(trade)) = world.transact_one(first.clone()).await else {
        panic!()
    };
    let other = world.command_under(&member, two.id, "k", b"two");
    assert_eq!(world.transact_one(other).await, Err(Refusal::KeyReused));
    let repeat = world.command_under(&member, one.id, "k", b"one");
    assert_eq!(
        world.transact_one(repeat).await,
        Ok(Outcome::Existing(trade.clone()))
    );
    let elsewhere = world.command_under(&member, one.id, "another", b"one");
    assert_eq!(
        world.transact_one(elsewhere.clone()).await,
        Ok(Outcome::Existing(trade))
    );
    assert_eq!(
        world.answered(&elsewhere).await,
        None,
        "a repeat leaves its key free"
    );
    world.assert_clean().await;
}

/// One batch sees its own keys as well.
// rule: idempotency.reused
pub async fn a_key_used_twice_in_one_batch_counts_once(store: impl Fixture) {
    let world = World::new(store);
    let member = world.funded("acme").await;
    let (one, two) = (world.buy(&member, 1).await, world.buy(&member, 1).await);
    let batch = [
        world.command_under(&member, one.id, "k", b"one"),
        world.command_under(&member, two.id, "k", b"two"),
        world.command_under(&member, one.id, "k", b"one"),
    ];
    let decided = world.transact(&batch).await;
    let Ok(Outcome::Opened(trade)) = &decided[0] else {
        panic!("{decided:?}")
    };
    assert_eq!(decided[1], Err(Refusal::KeyReused));
    assert_eq!(decided[2], Ok(Outcome::Existing(trade.clone())));
}

// rule: idempotency.scope
pub async fn keys_never_meet_across_partners(store: impl Fixture) {
    let world = World::new(store);
    for name in ["acme", "other"] {
        let member = world.funded(name).await;
        let quote = world.buy(&member, 1).await;
        let command = world.command_under(&member, quote.id, "k", name.as_bytes());
        assert_eq!(world.answered(&command).await, None);
        assert!(matches!(
            world.transact_one(command).await,
            Ok(Outcome::Opened(_))
        ));
    }
    world.assert_clean().await;
}

/// It counts to the last millisecond of its time and is overwritten from then on.
// rule: idempotency.kept
pub async fn an_expired_record_is_overwritten(store: impl Fixture) {
    let world = World::new(store);
    let member = world.funded("acme").await;
    let one = world.buy(&member, 1).await;
    let first = world.command_under(&member, one.id, "k", b"one");
    assert!(world.transact_one(first).await.is_ok());
    world.clock().advance(IDEMPOTENCY_TTL - MILLI);
    let two = world.buy(&member, 1).await;
    let second = world.command_under(&member, two.id, "k", b"two");
    assert_eq!(
        world.transact_one(second.clone()).await,
        Err(Refusal::KeyReused)
    );
    world.clock().advance(MILLI);
    assert!(matches!(
        world.transact_one(second.clone()).await,
        Ok(Outcome::Opened(_))
    ));
    assert_eq!(
        world.answered(&second).await,
        Some((second.fingerprint, world.now()))
    );
    world.assert_clean().await;
}

// rule: idempotency.only-success
pub async fn a_refusal_leaves_its_key_free(store: impl Fixture) {
    let world = World::new(store);
    let member = world.member("acme").await;
    let quote = world.buy(&member, 1).await;
    let command = world.command_under(&member, quote.id, "k", b"poor");
    assert_eq!(
        world.transact_one(command.clone()).await,
        Err(Refusal::InsufficientBalance)
    );
    assert_eq!(world.answered(&command).await, None);
}

/// Only what was made before the instant, the oldest first, and never more than asked for.
pub async fn a_sweep_takes_the_oldest(store: impl Fixture) {
    let world = World::new(store);
    let member = world.funded("acme").await;
    let mut commands = Vec::new();
    for _ in 0..5 {
        let quote = world.buy(&member, 1).await;
        let command = world.command(&member, quote.id);
        assert!(world.transact_one(command.clone()).await.is_ok());
        commands.push(command);
        world.clock().advance(MILLI);
    }
    let fourth = world.answered(&commands[3]).await.unwrap().1;
    assert_eq!(world.sweep_keys(fourth, 2).await, 2);
    assert!(world.answered(&commands[1]).await.is_none());
    assert!(world.answered(&commands[2]).await.is_some());
    assert_eq!(world.sweep_keys(fourth, 100).await, 1);
    assert_eq!(world.sweep_keys(fourth, 100).await, 0);
    assert!(world.answered(&commands[3]).await.is_some());
    world.assert_clean().await;
}
