//! References of deposits: each spelling of a reference finds the deposit, also one of an earlier version.

use crate::contract::fixture::Fixture;
use crate::contract::world::{MILLI, World, amount, eur, usdt};

// rule: cli.credit.once, cli.credit.hash, text.compared
pub async fn deposit_is_found_in_every_spelling(world: World<impl Fixture>) {
    let who = world.member("acme").await.who;
    let hash = "1b5b".repeat(16);
    let (prefixed, upper) = (format!("0x{hash}"), format!("0X{}", hash.to_uppercase()));
    let composed = "\u{dc}ber 7";
    world.fund(&who, amount("10", eur()), composed).await;
    world.fund(&who, amount("3", usdt()), &hash).await;
    let mut tx = world.ports().store.begin("look").await.unwrap();
    for (spelling, stored) in [
        ("U\u{308}ber 7", composed),
        ("\u{dc}ber\u{a0}7", composed),
        (&prefixed, &hash),
        (&upper, &hash),
    ] {
        let found = tx.deposit_find(&who, spelling).await.unwrap();
        assert_eq!(found.unwrap().reference, stored, "{spelling:?}");
    }
    for other in ["\u{fc}ber 7", "Uber 7", &prefixed[..65]] {
        let found = tx.deposit_find(&who, other).await.unwrap();
        assert_eq!(found, None, "{other:?}");
    }
    drop(tx);
    world.assert_clean().await;
}

// rule: cli.credit.hash, text.compared
pub async fn references_of_earlier_versions_become_comparable(world: World<impl Fixture>) {
    let who = world.member("acme").await.who;
    let other = world.member("other").await.who;
    let hash = "1b5b".repeat(16);
    let (upper, prefixed) = (hash.to_uppercase(), format!("0x{hash}"));
    let decomposed = "U\u{308}ber";
    for reference in [upper.as_str(), prefixed.as_str(), decomposed] {
        world.fund(&who, amount("1", eur()), reference).await;
        world.clock().advance(MILLI);
    }
    world.fund(&other, amount("1", eur()), "other's").await;
    let earlier = "UPDATE deposits SET compared = NULL";
    world.fixture.damage(earlier).await;
    let mut tx = world.ports().store.begin("compare").await.unwrap();
    let found = tx.deposit_find(&who, "\u{dc}ber").await.unwrap();
    assert_eq!(found, None);
    for compared in [2, 1, 0] {
        assert_eq!(tx.deposits_compare(&who, 2).await.unwrap(), compared);
    }
    let found = tx.deposit_find(&other, "other's").await.unwrap();
    assert_eq!(found, None, "of another partner");
    // Two references that were credited as two: the same spelling is found, and the older one for a third spelling.
    for (spelling, stored) in [
        ("\u{dc}ber", decomposed),
        (&upper, &upper),
        (&prefixed, &prefixed),
        (&hash, &upper),
    ] {
        let found = tx.deposit_find(&who, spelling).await.unwrap();
        assert_eq!(found.unwrap().reference, stored, "{spelling:?}");
    }
    tx.commit().await.unwrap();
    let mut tx = world.ports().store.begin("again").await.unwrap();
    assert_eq!(tx.deposits_compare(&who, 9).await.unwrap(), 0);
    assert_eq!(tx.deposits_compare(&other, 9).await.unwrap(), 1);
    drop(tx);
    world.assert_clean().await;
}
