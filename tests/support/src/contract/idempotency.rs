//! Idempotency records: one effect per scope until they expire.

use std::time::Duration;

use kernel::Mode;
use partner_core::events::Service;
use partner_core::ports::KeySweep;
use pools_core::batch::{IdempotencyRecord, Refusal, TransactCommand, TransactOutcome};
use pools_core::ports::TransactSnapshot;

use crate::contract::fixture::{Fixture, IDEMPOTENCY_TTL};
use crate::contract::world::{MILLI, World, assert_opened, expired_keys};

impl<F: Fixture> World<F> {
    async fn look(&self, command: &TransactCommand) -> TransactSnapshot {
        let (store, quote) = (&self.ports().store, command.quote);
        let look = store.transact_snapshot(&command.scope, &command.pool, quote);
        look.await.unwrap().value
    }

    async fn answered(&self, command: &TransactCommand) -> Option<IdempotencyRecord> {
        self.look(command).await.answered
    }
}

// rule: idempotency.same-transaction, idempotency.transact-stores-no-answer
pub async fn snapshot_shows_result_of_transact(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let quote = world.buy(&member, 1).await;
    let command = world.command(&member, quote.id);
    let before = world.look(&command).await;
    assert_eq!(
        (before.answered, before.quote, before.trade),
        (None, Some(quote), None)
    );
    world.clock().advance(MILLI);
    let Ok(TransactOutcome::Opened(trade)) = world.transact_one(command.clone()).await else {
        panic!()
    };
    let seen = world
        .ports()
        .store
        .transact_snapshot(&command.scope, &command.pool, command.quote)
        .await
        .unwrap();
    assert_eq!(seen.at, world.now());
    assert_eq!(
        seen.value.answered,
        Some(IdempotencyRecord {
            fingerprint: command.fingerprint,
            expires_at: world.now().plus(IDEMPOTENCY_TTL),
        })
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
pub async fn reused_key_with_other_request_is_refused(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let (one, two) = (world.buy(&member, 1).await, world.buy(&member, 1).await);
    let first = world.command_under(&member, one.id, "k", b"one");
    let Ok(TransactOutcome::Opened(trade)) = world.transact_one(first.clone()).await else {
        panic!()
    };
    let other = world.command_under(&member, two.id, "k", b"two");
    assert_eq!(world.transact_one(other).await, Err(Refusal::KeyReused));
    let repeat = world.command_under(&member, one.id, "k", b"one");
    assert_eq!(
        world.transact_one(repeat).await,
        Ok(TransactOutcome::Existing(trade.clone()))
    );
    let elsewhere = world.command_under(&member, one.id, "another", b"one");
    assert_eq!(
        world.transact_one(elsewhere.clone()).await,
        Ok(TransactOutcome::Existing(trade))
    );
    assert_eq!(
        world.answered(&elsewhere).await,
        None,
        "a replay stores no record"
    );
    world.assert_clean().await;
}

/// A batch sees its own keys too.
// rule: idempotency.reused
pub async fn key_used_twice_in_batch_has_one_effect(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let (one, two) = (world.buy(&member, 1).await, world.buy(&member, 1).await);
    let batch = [
        world.command_under(&member, one.id, "k", b"one"),
        world.command_under(&member, two.id, "k", b"two"),
        world.command_under(&member, one.id, "k", b"one"),
    ];
    let decided = world.transact(&batch).await;
    let Ok(TransactOutcome::Opened(trade)) = &decided[0] else {
        panic!("{decided:?}")
    };
    assert_eq!(decided[1], Err(Refusal::KeyReused));
    assert_eq!(decided[2], Ok(TransactOutcome::Existing(trade.clone())));
}

// rule: idempotency.scope
pub async fn keys_are_separate_between_partners(world: World<impl Fixture>) {
    for name in ["acme", "other"] {
        let member = world.funded(name).await;
        let quote = world.buy(&member, 1).await;
        let command = world.command_under(&member, quote.id, "k", name.as_bytes());
        assert_eq!(world.answered(&command).await, None);
        assert_opened(&world.transact_one(command).await);
    }
    world.assert_clean().await;
}

/// A record counts up to the last millisecond of its lifetime and is overwritten afterwards.
// rule: idempotency.kept
pub async fn expired_record_is_overwritten(world: World<impl Fixture>) {
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
    assert_opened(&world.transact_one(second.clone()).await);
    assert_eq!(
        world.answered(&second).await,
        Some(IdempotencyRecord {
            fingerprint: second.fingerprint,
            expires_at: world.now().plus(IDEMPOTENCY_TTL),
        })
    );
    world.assert_clean().await;
}

// rule: idempotency.only-success
pub async fn refusal_stores_no_record(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let quote = world.buy(&member, 1).await;
    let command = world.command_under(&member, quote.id, "k", b"poor");
    assert_eq!(
        world.transact_one(command.clone()).await,
        Err(Refusal::InsufficientBalance)
    );
    assert_eq!(world.answered(&command).await, None);
}

/// Five records, one millisecond apart. The third expires one hour later than the others.
async fn five_records<F: Fixture>(world: &World<F>) -> Vec<TransactCommand> {
    let member = world.funded("acme").await;
    let mut commands = Vec::new();
    for _ in 0..5 {
        let quote = world.buy(&member, 1).await;
        let command = world.command(&member, quote.id);
        assert!(world.transact_one(command.clone()).await.is_ok());
        commands.push(command);
        world.clock().advance(MILLI);
    }
    let third = commands[2].scope.key.as_str();
    let longer = format!(
        "UPDATE idempotency_keys SET expires_at = expires_at + 3600000 WHERE key = '{third}'"
    );
    world.fixture.damage(&longer).await;
    commands
}

/// A sweep continues after its last step. It deletes records by their own expiry, in its own mode and service.
// rule: idempotency.own-expiry
pub async fn sweep_deletes_only_its_own_expired_records(world: World<impl Fixture>) {
    let commands = five_records(&world).await;
    let mut pools = expired_keys(Service::Pools);
    let first = world.answered(&commands[0]).await.unwrap().expires_at;
    world.clock().set(first.minus(MILLI));
    assert_eq!(world.sweep_keys(pools, 100).await.deleted, 0);
    // Four records have expired.
    world.clock().set(first.plus(MILLI * 10));
    for foreign in [
        expired_keys(Service::Gate),
        KeySweep {
            mode: Mode::Live,
            ..pools
        },
        KeySweep {
            grace: Duration::from_secs(1),
            ..pools
        },
        KeySweep {
            age: IDEMPOTENCY_TTL * 2,
            ..pools
        },
    ] {
        let swept = world.sweep_keys(foreign, 100).await;
        assert_eq!(swept.deleted, 0, "{foreign:?}");
    }
    let mut steps = Vec::new();
    loop {
        let swept = world.sweep_keys(pools, 2).await;
        steps.push((swept.deleted, swept.left));
        pools.after = Some(swept.reached);
        if !swept.more {
            break;
        }
    }
    assert_eq!(steps, [(2, false), (1, true), (1, false)]);
    for (place, command) in commands.iter().enumerate() {
        let there = world.answered(command).await.is_some();
        assert_eq!(there, place == 2, "{place}");
    }
    world.clock().advance(Duration::from_secs(3600));
    let again = world.sweep_keys(expired_keys(Service::Pools), 100).await;
    assert_eq!((again.deleted, again.left), (1, false));
    world.assert_clean().await;
}

/// A changed setting applies to new records only: each record keeps its own expiry.
// rule: idempotency.own-expiry, idempotency.kept, idempotency.no-expiry
pub async fn record_expires_by_its_own_expiry(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let hour = Duration::from_secs(3600);
    let day = hour * 24;
    // A record with its lifetime. It may have been made under another setting, or by a release without the expiry column.
    for (held, counts) in [
        ("created_at + 3600000", hour),
        ("created_at + 172800000", day * 2),
        ("NULL", day),
        ("created_at", day),
        ("created_at - 1", day),
    ] {
        let key = format!("key-{counts:?}-{}", world.entropy.next());
        let one = world.buy(&member, 1).await;
        let first = world.command_under(&member, one.id, &key, b"one");
        assert!(world.transact_one(first.clone()).await.is_ok());
        let made = world.now();
        let sql = format!("UPDATE idempotency_keys SET expires_at = {held} WHERE key = '{key}'");
        world.fixture.damage(&sql).await;
        assert_eq!(
            world.answered(&first).await.unwrap().expires_at,
            made.plus(counts)
        );
        world.clock().set(made.plus(counts).minus(MILLI));
        let two = world.buy(&member, 1).await;
        let second = world.command_under(&member, two.id, &key, b"two");
        let reused = world.transact_one(second.clone()).await;
        assert_eq!(reused, Err(Refusal::KeyReused), "{held}");
        world.clock().advance(MILLI);
        let opened = world.transact_one(second.clone()).await;
        assert!(
            matches!(opened, Ok(TransactOutcome::Opened(_))),
            "{held}: {opened:?}"
        );
        let until = world.answered(&second).await.unwrap().expires_at;
        assert_eq!(until, world.now().plus(IDEMPOTENCY_TTL));
    }
    world.assert_clean().await;
}
