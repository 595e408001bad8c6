//! Deposits: the operator credits a reference once, in every spelling, also if an earlier version credited it.

use acceptance::{ACME, World, money};
use kernel::AssetKind;
use pools_core::profile::Network;
use pools_core::usecases::credit_account::{Credit, CreditError};

/// Credits a deposit of 5 EUR, or a receipt of 5 USDT. Returns whether it was applied.
async fn credit(world: &World, asset: &str, reference: &str) -> Result<bool, CreditError> {
    let amount = money("5", asset);
    let is_crypto = amount.asset().kind() == AssetKind::Crypto;
    let credit = Credit {
        amount,
        network: is_crypto.then_some(Network::Tron),
        reference: reference.to_owned(),
    };
    let credited = world.operator().try_credit(ACME, &credit).await?;
    Ok(credited.applied)
}

/// Stores a credited reference in another spelling, without its form of comparison, as an earlier version did.
async fn respell(world: &World, from: &str, to: &str) {
    world
        .damage(&format!(
            "UPDATE deposits SET reference = '{to}', compared = NULL WHERE reference = '{from}';
             UPDATE ledger_entries SET reference = '{to}' WHERE reference = '{from}'"
        ))
        .await;
}

// rule: cli.credit.once, cli.credit.hash, text.compared
#[tokio::test]
async fn deposit_of_an_earlier_version_is_credited_once_in_every_spelling() {
    let world = World::new().await;
    let hash = "1b5b".repeat(16);
    let (prefixed, upper) = (format!("0x{hash}"), hash.to_uppercase());
    for (asset, reference, earlier, spellings) in [
        (
            "EUR",
            "wire-77",
            "\u{202a}wire-77",
            ["wire-77", "wire-77", "wire-77"],
        ),
        (
            "EUR",
            "\u{dc}ber 7",
            "U\u{308}ber 7",
            ["\u{dc}ber 7", "U\u{308}ber 7", "\u{dc}ber\u{a0}7"],
        ),
        ("USDT", &hash, &prefixed, [&hash, &prefixed, &upper]),
    ] {
        assert!(credit(&world, asset, reference).await.unwrap());
        respell(&world, reference, earlier).await;
        for spelling in spellings {
            let again = credit(&world, asset, spelling).await;
            assert!(!again.unwrap(), "{spelling:?}");
        }
    }
    assert_eq!(world.acme().balance("EUR-USDT").await, "10.00");
    let other = credit(&world, "EUR", &upper).await;
    assert!(
        matches!(other, Err(CreditError::ReferenceReused(..))),
        "{other:?}"
    );
    world.finish().await;
}

/// The deposits are more than one transaction makes comparable.
// rule: cli.credit.once, text.compared
#[tokio::test]
async fn many_deposits_of_an_earlier_version_become_comparable_before_a_credit() {
    let world = World::new().await;
    for number in 0..105 {
        let reference = format!("deposit-{number}");
        assert!(credit(&world, "EUR", &reference).await.unwrap());
    }
    world.damage("UPDATE deposits SET compared = NULL").await;
    for number in [104, 0, 50] {
        let again = credit(&world, "EUR", &format!("deposit-{number}")).await;
        assert!(!again.unwrap(), "{number}");
    }
    assert!(credit(&world, "EUR", "deposit-105").await.unwrap());
    let left = "SELECT reference FROM deposits WHERE compared IS NULL";
    let left = world.database().texts(left).await;
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(world.acme().balance("EUR-USDT").await, "530.00");
    world.finish().await;
}

// rule: cli.credit.hash
#[tokio::test]
async fn receipt_is_stored_under_the_plain_hash_of_its_transaction() {
    let world = World::new().await;
    let hash = "1b5b".repeat(16);
    let output = format!("0X{}:1", hash.to_uppercase());
    for reference in [&format!("0x{hash}"), &output] {
        assert!(credit(&world, "USDT", reference).await.unwrap());
    }
    let stored = "SELECT reference FROM deposits ORDER BY reference";
    let stored = world.database().texts(stored).await;
    assert_eq!(stored, [hash.clone(), format!("{hash}:1")]);
    let again = credit(&world, "USDT", &format!("{hash}:1")).await;
    assert!(!again.unwrap());
    world.finish().await;
}
