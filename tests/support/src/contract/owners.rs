//! Owners of deposits and keys: claims of one partner, and the data of a key.

use std::collections::BTreeMap;
use std::time::Duration;

use kernel::{Cas, Mode};
use partner_core::key::{KeyKind, KeyTerms, KeyUse, NewKey};
use partner_core::sealing::Sealed;
use partner_core::{PartnerStatus, Tenant};
use pools_core::profile::PoolsProfile;
use secrecy::ExposeSecret as _;

use crate::contract::fixture::{Fixture, GateFixture};
use crate::contract::provisioning::full_profile;
use crate::contract::world::{Member, World, assert_guarded, partner, sealer, tenant};

/// A profile with one deposit address in one pool.
fn depositing(reference: &str, address: &str) -> PoolsProfile {
    let mut profile = full_profile();
    profile.funding_reference = reference.to_owned();
    for terms in profile.terms.values_mut() {
        terms.crypto_deposit_address = Some(address.to_owned());
    }
    profile
}

const FIRST: &str = "0x52908400098527886E0F7030069857D2E4169EE7";
const SECOND: &str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";
/// The EVM address of the same key.
const SECOND_AS_EVM: &str = "0x5cbdd86a2fa8dc4bddd8a8f69dba48572eec07fb";

// rule: apply.deposits-of-one-partner
pub async fn deposits_have_one_owner_per_mode(world: World<impl Fixture>) {
    let acme = world
        .member_with("acme", Mode::Test, &depositing("A", FIRST))
        .await;
    let live = tenant("rival", Mode::Live);
    let rival = tenant("rival", Mode::Test);
    let mut tx = world.provision_begin("rival").await;
    for mode in [Mode::Test, Mode::Live] {
        let rival = partner("rival", PartnerStatus::Active);
        tx.partner_put(mode, &rival).await.unwrap();
    }
    tx.commit().await.unwrap();
    for (reference, address) in [("a", SECOND), ("B", FIRST), ("B", &FIRST.to_lowercase())] {
        let mut tx = world.provision_begin("rival").await;
        let claiming = depositing(reference, address);
        assert_guarded(tx.pools_profile_put(&rival, &claiming).await);
    }
    let mut tx = world.provision_begin("rival").await;
    let (ours, theirs) = (depositing("B", SECOND), depositing("A", FIRST));
    tx.pools_profile_put(&rival, &ours).await.unwrap();
    tx.pools_profile_put(&live, &theirs).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = world.provision_begin("look").await;
    let all = tx.pools_profiles_all(Mode::Test).await.unwrap();
    let expected = [
        (acme.who.partner.clone(), depositing("A", FIRST)),
        (rival.partner.clone(), ours),
    ];
    assert_eq!(all, expected);
    drop(tx);
    world.assert_clean().await;
}

// rule: apply.deposits-of-one-partner
pub async fn deposits_can_be_exchanged(world: World<impl Fixture>) {
    let (a, b) = (depositing("A", FIRST), depositing("B", SECOND));
    let acme = world.member_with("acme", Mode::Test, &a).await.who;
    let rival = world.member("rival").await.who;
    let mut tx = world.provision_begin("b").await;
    tx.pools_profile_put(&rival, &b).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = world.provision_begin("exchange").await;
    for who in [&acme, &rival] {
        tx.deposits_release(who).await.unwrap();
    }
    tx.pools_profile_put(&acme, &b).await.unwrap();
    tx.pools_profile_put(&rival, &a).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = world.provision_begin("again").await;
    assert_guarded(tx.pools_profile_put(&acme, &a).await);
    drop(tx);
    world.assert_clean().await;
}

// rule: apply.deposits-of-one-partner, apply.deposits-compared
pub async fn spellings_of_one_deposit_have_one_owner(world: World<impl Fixture>) {
    let acme = depositing("ACME-7F3K", SECOND);
    world.member_with("acme", Mode::Test, &acme).await;
    let rival = world.member("rival").await.who;
    let upper = format!(
        "0x{}",
        SECOND_AS_EVM.trim_start_matches("0x").to_uppercase()
    );
    for (reference, address) in [
        ("acme 7f3k", FIRST),
        ("(ACME)7F3.K", FIRST),
        ("B", SECOND_AS_EVM),
        ("B", &upper),
    ] {
        let mut tx = world.provision_begin("rival").await;
        let claiming = depositing(reference, address);
        assert_guarded(tx.pools_profile_put(&rival, &claiming).await);
    }
    let mut tx = world.provision_begin("rival").await;
    let free = depositing("ACME_7F3K", FIRST);
    tx.pools_profile_put(&rival, &free).await.unwrap();
    tx.commit().await.unwrap();
    world.assert_clean().await;
}

/// Two partners have had one reference since before the rule. Both keep it, also in a change of their profiles, and no third partner
/// gets it.
// rule: apply.deposits-compared
pub async fn deposits_shared_before_the_rule_stay(world: World<impl Fixture>) {
    let (first, second) = (depositing("PEN-1", SECOND), depositing("PEN 1", FIRST));
    let acme = world.member_with("acme", Mode::Test, &first).await.who;
    let other = world.member("other").await.who;
    let third = world.member("third").await.who;
    let earlier =
        "UPDATE pools_profiles SET funding_reference = 'PEN 1' WHERE partner_id = 'other'";
    world.fixture.damage(earlier).await;
    for (who, profile) in [(&other, &second), (&acme, &first), (&other, &second)] {
        let mut changed = profile.clone();
        changed.tier = format!("tier of {}", who.partner);
        let mut tx = world.provision_begin("change").await;
        tx.pools_profile_put(who, &changed).await.unwrap();
        tx.commit().await.unwrap();
    }
    let mut tx = world.provision_begin("third").await;
    let claiming = depositing("pen1", "0xde709f2102306220921060314715629080e2fb77");
    assert_guarded(tx.pools_profile_put(&third, &claiming).await);
    drop(tx);
    let findings = world.audit().await.findings;
    let broken: Vec<_> = findings.iter().filter(|one| one.count > 0).collect();
    let [shared] = broken[..] else {
        panic!("{broken:?}")
    };
    assert_eq!(shared.invariant, "deposits-have-one-owner");
    assert_eq!(
        shared.breaches,
        ["test reference PEN1 is of partners acme, other"]
    );
}

// rule: cli.key-label, auth.expired
pub async fn key_label_and_expiry_read_back(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let terms = KeyTerms {
        label: Some("shop \"1\"".to_owned()),
        expires_at: Some(world.now().plus(Duration::from_secs(60))),
    };
    let (new, _) = NewKey::generate(KeyKind::Secret, Mode::Test, world.now(), &world.entropy);
    let new = new.with(terms.clone());
    let mut tx = world.provision_begin("keys").await;
    tx.key_insert(&member.who, &new).await.unwrap();
    tx.key_describe(&member.who, member.key, &terms)
        .await
        .unwrap();
    let rival = tenant("rival", Mode::Test);
    assert_guarded(tx.key_describe(&rival, member.key, &terms).await);
    drop(tx);
    let mut tx = world.provision_begin("keys").await;
    tx.key_insert(&member.who, &new).await.unwrap();
    tx.key_describe(&member.who, member.key, &terms)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let mut tx = world.provision_begin("keys").await;
    let listed = tx.keys_list(&member.who).await.unwrap();
    drop(tx);
    for record in listed {
        let read = (record.label, record.expires_at);
        assert_eq!(read, (terms.label.clone(), terms.expires_at));
    }
    let found = world.ports().directory.access_find(Mode::Test, &new.hash);
    let access = found.await.unwrap().unwrap();
    assert_eq!(access.key, new.record);
}

// rule: gate.session.url
pub async fn text_of_older_publishable_key_is_stored_once(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let rival = world.member("rival").await.who;
    let generate = |kind| NewKey::generate(kind, Mode::Test, world.now(), &world.entropy).0;
    let (older, secret) = (generate(KeyKind::Publishable), generate(KeyKind::Secret));
    let mut tx = world.provision_begin("keys").await;
    let text = Sealed(b"sealed".to_vec());
    for key in [&older, &secret] {
        tx.key_insert(&member.who, key).await.unwrap();
    }
    for (who, key, outcome) in [
        (&rival, &older, Cas::Lost),
        (&member.who, &secret, Cas::Lost),
        (&member.who, &older, Cas::Won),
        (&member.who, &older, Cas::Lost),
    ] {
        let kept = tx.key_keep_text(who, key.record.id, &text).await.unwrap();
        assert_eq!(kept, outcome, "{who:?} {key:?}");
    }
    drop(tx);
    world.assert_clean().await;
}

// rule: gate.session.url
pub async fn newest_publishable_key_has_a_stored_text(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let generate = || {
        let kind = KeyKind::Publishable;
        let (key, text) = NewKey::generate(kind, Mode::Test, world.now(), &world.entropy);
        let sealing = key.sealing(&who, text.expose_secret(), &sealer(), &world.entropy);
        sealing.unwrap()
    };
    let older = generate();
    world.clock().advance(Duration::from_secs(1));
    let newer = generate();
    let bare = NewKey {
        publishable: None,
        ..newer.clone()
    };
    let mut tx = world.provision_begin("keys").await;
    for key in [&older, &bare] {
        tx.key_insert(&who, key).await.unwrap();
    }
    tx.commit().await.unwrap();
    let newest = async || {
        let mut tx = world.gate_begin().await;
        let found = tx.publishable_key_newest(&who, world.now()).await;
        found.unwrap()
    };
    let stored = |key: &NewKey| Some((key.record.id, key.publishable.clone()?));
    assert_eq!(newest().await, stored(&older));
    let mut tx = world.provision_begin("text").await;
    let text = newer.publishable.as_ref().unwrap();
    let kept = tx.key_keep_text(&who, newer.record.id, text).await;
    assert_eq!(kept.unwrap(), Cas::Won);
    tx.commit().await.unwrap();
    assert_eq!(newest().await, stored(&newer));
    world.assert_clean().await;
}

// rule: auth.last-use
pub async fn last_uses_only_move_forward(world: World<impl Fixture>) {
    let acme = world.member("acme").await;
    let rival = world.member("rival").await;
    let begin = world.now();
    let at = |seconds| begin.plus(Duration::from_secs(seconds));
    world.clock().advance(Duration::from_secs(9));
    let of = |member: &Member, seconds| KeyUse {
        who: member.who.clone(),
        key: member.key,
        at: at(seconds),
    };
    let version = world.version().await;
    let housekeeping = &world.ports().housekeeping;
    for uses in [
        vec![of(&rival, 3), of(&acme, 5)],
        vec![of(&acme, 4)],
        // The process's clock may be ahead, but no stored instant is later than the store's.
        vec![of(&rival, 3600)],
    ] {
        housekeeping.key_uses_record(&uses).await.unwrap();
    }
    for (member, last) in [(&acme, 5), (&rival, 9)] {
        let read = world.ports().provision.keys_read(&member.who).await;
        let used = read.unwrap().used;
        assert_eq!(used, BTreeMap::from([(member.key, at(last))]));
    }
    assert_eq!(world.version().await, version, "no service reloads");
    world.assert_clean().await;
}

// rule: gate.embed.tenancy
pub async fn key_of_token_is_found_for_its_partner_only(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let other = world.member("other").await;
    let directory = world.ports().gate_directory.clone();
    let found = directory.access_of(&member.who, member.key).await.unwrap();
    let found = found.unwrap();
    assert_eq!((found.key.id, &found.tenant), (member.key, &member.who));
    let live = Tenant {
        mode: Mode::Live,
        ..member.who.clone()
    };
    for (who, key) in [
        (&other.who, member.key),
        (&member.who, other.key),
        (&live, member.key),
    ] {
        let found = directory.access_of(who, key).await.unwrap();
        assert!(found.is_none(), "{who:?}");
    }
}
