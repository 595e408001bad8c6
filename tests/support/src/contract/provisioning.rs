//! Provisioning by the operator: rows read back, changes apply at once, and a key is revoked once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gate_core::profile::GateProfile;
use kernel::{Cas, Mode, StoreError};
use partner_core::PartnerStatus;
use partner_core::access::Access;
use partner_core::events::{EndpointSecret, Service};
use partner_core::key::{KeyHash, KeyId, KeyKind, NewKey};
use partner_core::origin::AllowedDomain;
use partner_core::sealing::Sealed;
use pools_core::profile::{Kyc, Network, Pool, PoolId, PoolTerms, PoolsAccess, PoolsProfile};
use pools_core::quote::Side;
use rust_decimal::Decimal;

use crate::contract::fixture::Fixture;
use crate::contract::world::{
    MILLI, Member, ONE, World, assert_guarded, partner, pool, profile, tenant,
};

impl<F: Fixture> World<F> {
    /// What a key of mode test may do.
    async fn access(&self, hash: &KeyHash) -> Arc<Access<PoolsProfile>> {
        let found = self.ports().directory.access_find(Mode::Test, hash);
        found.await.unwrap().unwrap()
    }

    pub(crate) async fn version(&self) -> i64 {
        self.ports().directory.config_version().await.unwrap()
    }

    pub(crate) async fn revoke(&self, key: KeyId) -> Cas {
        let mut tx = self.provision_begin("revoke").await;
        let outcome = tx.key_revoke(key, self.now()).await.unwrap();
        tx.config_version_raise().await.unwrap();
        tx.commit().await.unwrap();
        outcome
    }
}

pub async fn pools_read_back_in_order(world: World<impl Fixture>) {
    let shown = |id: &str, networks: &[Network], available| Pool {
        id: PoolId::parse(id).unwrap(),
        networks: networks.to_vec(),
        available,
        native_addresses: available,
    };
    let pools = [
        shown("EUR-BTC", &[], false),
        shown(
            "EUR-USDT",
            &[Network::Tron, Network::Bsc, Network::Ethereum],
            true,
        ),
        shown("GBP-USDC", &Network::ALL, true),
    ];
    let mut tx = world.provision_begin("pools").await;
    for pool in pools.iter().rev() {
        assert!(tx.pool_get(Mode::Test, pool.id).await.unwrap().is_none());
        tx.pool_put(Mode::Test, pool).await.unwrap();
        assert_eq!(
            tx.pool_get(Mode::Test, pool.id).await.unwrap().as_ref(),
            Some(pool)
        );
        assert!(tx.pool_get(Mode::Live, pool.id).await.unwrap().is_none());
    }
    tx.commit().await.unwrap();
    let listing = async |mode| world.ports().directory.listing(mode).await.unwrap();
    assert_eq!(listing(Mode::Test).await.as_ref(), pools);
    assert!(listing(Mode::Live).await.is_empty());

    let changed = shown("EUR-USDT", &[Network::Solana], false);
    let mut tx = world.provision_begin("pools").await;
    tx.pool_put(Mode::Test, &changed).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(listing(Mode::Test).await[1], changed);
}

pub async fn partners_read_back(world: World<impl Fixture>) {
    let who = tenant("acme", Mode::Test);
    let mut tx = world.provision_begin("partners").await;
    assert!(tx.partner_lock(&who).await.unwrap().is_none());
    for status in [PartnerStatus::Active, PartnerStatus::Suspended] {
        tx.partner_put(Mode::Test, &partner("acme", status))
            .await
            .unwrap();
        assert_eq!(
            tx.partner_lock(&who).await.unwrap(),
            Some(partner("acme", status))
        );
    }
    let ids = tx.partner_ids(Mode::Test).await.unwrap();
    assert_eq!(ids, [partner("acme", PartnerStatus::Active).id]);
    assert!(tx.partner_ids(Mode::Live).await.unwrap().is_empty());
    for other in [tenant("acme", Mode::Live), tenant("acm", Mode::Test)] {
        assert!(tx.partner_lock(&other).await.unwrap().is_none());
    }
}

// rule: gate.cors.preflight
pub async fn origins_list_active_partners_only(world: World<impl Fixture>) {
    let mut tx = world.provision_begin("origins").await;
    for (name, mode, status, domains) in [
        (
            "acme",
            Mode::Test,
            PartnerStatus::Active,
            &["https://a.example", "https://b.example"][..],
        ),
        (
            "bolt",
            Mode::Test,
            PartnerStatus::Active,
            &["https://b.example", "http://localhost:*"],
        ),
        (
            "gone",
            Mode::Test,
            PartnerStatus::Suspended,
            &["https://gone.example"],
        ),
        (
            "acme",
            Mode::Live,
            PartnerStatus::Active,
            &["https://live.example"],
        ),
    ] {
        let gate = GateProfile {
            allowed_domains: domains
                .iter()
                .map(|it| AllowedDomain::stored(it).unwrap())
                .collect(),
            ..GateProfile::default()
        };
        tx.partner_put(mode, &partner(name, status)).await.unwrap();
        tx.gate_profile_put(&tenant(name, mode), &gate)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
    let origins = async |mode| {
        let origins = world.ports().gate_directory.listing(mode).await.unwrap();
        origins.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        origins(Mode::Test).await,
        [
            "http://localhost:*",
            "https://a.example",
            "https://b.example"
        ]
    );
    assert_eq!(origins(Mode::Live).await, ["https://live.example"]);
}

pub(crate) fn full_profile() -> PoolsProfile {
    let terms = PoolTerms {
        draw_fee_bps: 5000,
        spread_cap_bps: 0,
        min_order_usdt: Decimal::new(105, 1),
        max_order_usdt: Some(Decimal::new(100_000_000_000_000_001, 8)),
        off_ramp: true,
        crypto_deposit_address: Some("0x52908400098527886E0F7030069857D2E4169EE7".to_owned()),
    };
    PoolsProfile {
        enabled: true,
        access: PoolsAccess::Suspended,
        kyc: Kyc::Revoked,
        tier: "gold \"first\"".to_owned(),
        allowed: BTreeSet::from([pool(), PoolId::parse("GBP-USDC").unwrap()]),
        balance_gate: true,
        velocity_cap: Some(i64::MAX),
        iban: Some("DE89370400440532013000".to_owned()),
        funding_reference: "ÄCME-7F3K".to_owned(),
        terms: BTreeMap::from([
            (pool(), terms),
            (PoolId::parse("GBP-USDC").unwrap(), PoolTerms::default()),
        ]),
    }
}

// rule: apply.table-replaces
pub async fn profiles_are_replaced_completely(world: World<impl Fixture>) {
    let who = tenant("acme", Mode::Test);
    let mut tx = world.provision_begin("profiles").await;
    let refused = tx.pools_profile_put(&who, &profile()).await;
    assert!(
        matches!(refused, Err(StoreError::Guard(_))),
        "without a partner: {refused:?}"
    );
    tx.partner_put(Mode::Test, &partner("acme", PartnerStatus::Active))
        .await
        .unwrap();
    assert!(tx.pools_profile_get(&who).await.unwrap().is_none());
    for profile in [
        full_profile(),
        PoolsProfile::absent(&who.partner),
        profile(),
    ] {
        tx.pools_profile_put(&who, &profile).await.unwrap();
        assert_eq!(tx.pools_profile_get(&who).await.unwrap(), Some(profile));
    }
    let live = tenant("acme", Mode::Live);
    assert_eq!(tx.pools_profile_get(&live).await.unwrap(), None);
}

pub async fn endpoints_are_replaced_with_their_secrets(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let secret = |byte: u8, expires_at| EndpointSecret {
        sealed: Sealed(vec![byte; 70]),
        created_at: world.now(),
        expires_at,
    };
    let mut endpoint = world.endpoint(Mode::Test, Service::Pools, "http://127.0.0.1:9999/pools");
    let gate = world.endpoint(Mode::Test, Service::Gate, "https://gate.example/");
    let mut tx = world.provision_begin("endpoints").await;
    let stored = tx.endpoint_get(&member.who, Service::Pools).await;
    assert_eq!(stored.unwrap(), None);
    tx.endpoint_put(&member.who, &gate).await.unwrap();
    let later = world.now().plus(Duration::from_secs(60));
    for secrets in [
        vec![secret(1, None)],
        vec![secret(2, None), secret(1, Some(later))],
        vec![
            secret(3, None),
            secret(2, Some(later)),
            secret(1, Some(later)),
        ],
        vec![secret(4, None)],
    ] {
        endpoint.secrets = secrets;
        endpoint.url.push('x');
        tx.endpoint_put(&member.who, &endpoint).await.unwrap();
        let stored = tx.endpoint_get(&member.who, Service::Pools).await;
        assert_eq!(stored.unwrap().as_ref(), Some(&endpoint));
    }
    let renamed = world.endpoint(Mode::Test, Service::Pools, "https://new.example/");
    tx.endpoint_put(&member.who, &renamed).await.unwrap();
    for (service, endpoint) in [(Service::Pools, renamed), (Service::Gate, gate)] {
        let stored = tx.endpoint_get(&member.who, service).await;
        assert_eq!(stored.unwrap(), Some(endpoint));
    }
    tx.commit().await.unwrap();
    world.assert_clean().await;
}

pub async fn keys_are_listed_oldest_first(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let other = world.member("other").await;
    let mut tx = world.provision_begin("keys").await;
    let first = tx.keys_list(&member.who).await.unwrap();
    let ids: Vec<KeyId> = first.iter().map(|key| key.id).collect();
    assert_eq!(ids, [member.key]);
    let mut expected = first;
    for kind in [KeyKind::Publishable, KeyKind::Secret] {
        world.clock().advance(MILLI);
        let (key, _) = NewKey::generate(kind, Mode::Test, world.now(), &world.entropy);
        tx.key_insert(&member.who, &key).await.unwrap();
        assert_eq!(
            tx.key_owner(&key.hash).await.unwrap(),
            Some((member.who.partner.clone(), Mode::Test, key.record.clone()))
        );
        assert_eq!(
            tx.key_find(key.record.id).await.unwrap(),
            Some((member.who.partner.clone(), key.record.clone()))
        );
        expected.push(key.record);
    }
    assert_eq!(tx.keys_list(&member.who).await.unwrap(), expected);
    assert_eq!(tx.keys_list(&other.who).await.unwrap().len(), 1);
    let live = tenant("acme", Mode::Live);
    assert!(tx.keys_list(&live).await.unwrap().is_empty());
    let twin = KeyId::from_parts(Mode::Live, member.key.ulid());
    assert!(tx.key_find(twin).await.unwrap().is_none());
    assert!(tx.key_owner(&KeyHash([0; 32])).await.unwrap().is_none());
}

// rule: apply.key-conflict
pub async fn key_hash_is_unique_across_modes(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let live = world.member_with("acme", Mode::Live, &profile()).await;
    for other in [&member, &live] {
        let (new, _) =
            NewKey::generate(KeyKind::Secret, other.who.mode, world.now(), &world.entropy);
        let stolen = NewKey {
            hash: member.hash,
            ..new
        };
        let mut tx = world.provision_begin("keys").await;
        assert_guarded(tx.key_insert(&other.who, &stolen).await);
    }
}

pub async fn key_is_revoked_once(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let twin = KeyId::from_parts(Mode::Live, member.key.ulid());
    assert_eq!(world.revoke(twin).await, Cas::Lost);
    let at = world.now();
    assert_eq!(world.revoke(member.key).await, Cas::Won);
    world.clock().advance(Duration::from_secs(1));
    assert_eq!(world.revoke(member.key).await, Cas::Lost);
    let access = world.access(&member.hash).await;
    assert_eq!(access.key.revoked_at, Some(at));
    let directory = &world.ports().gate_directory;
    let of_token = directory.access_of(&member.who, member.key).await.unwrap();
    assert_eq!(of_token.unwrap().key.revoked_at, Some(at));
}

pub async fn key_lookup_returns_its_partner(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let directory = world.ports().directory.clone();
    let access = world.access(&member.hash).await;
    assert_eq!((access.key.id, &access.tenant), (member.key, &member.who));
    assert_eq!(
        (&access.partner, &access.profile),
        (&partner("acme", PartnerStatus::Active), &profile())
    );
    for (mode, hash) in [(Mode::Live, member.hash), (Mode::Test, KeyHash([7; 32]))] {
        assert!(directory.access_find(mode, &hash).await.unwrap().is_none());
    }
    world.reprofile(&member, &full_profile()).await;
    let access = world.access(&member.hash).await;
    assert_eq!(access.profile, full_profile());
}

pub async fn partner_without_pools_has_absent_profile(world: World<impl Fixture>) {
    let who = tenant("bare", Mode::Test);
    let (key, _) = NewKey::generate(KeyKind::Secret, Mode::Test, world.now(), &world.entropy);
    let mut tx = world.provision_begin("bare").await;
    tx.partner_put(Mode::Test, &partner("bare", PartnerStatus::Active))
        .await
        .unwrap();
    tx.key_insert(&who, &key).await.unwrap();
    tx.commit().await.unwrap();
    let access = world.access(&key.hash).await;
    assert_eq!(access.profile, PoolsProfile::absent(&who.partner));
}

/// A change raises the version even if the caller does not; a transaction without a change does not raise it.
// rule: base.config-spreads
pub async fn every_change_raises_version(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let mut last = world.version().await;
    for change in 0..7 {
        let mut tx = world.provision_begin("change").await;
        match change {
            0 => tx
                .partner_put(Mode::Test, &partner("acme", PartnerStatus::Suspended))
                .await
                .unwrap(),
            1 => tx
                .pools_profile_put(&member.who, &full_profile())
                .await
                .unwrap(),
            2 => {
                let endpoint = world.endpoint(Mode::Test, Service::Pools, "https://acme.example/");
                tx.endpoint_put(&member.who, &endpoint).await.unwrap();
            }
            3 => {
                let (key, _) =
                    NewKey::generate(KeyKind::Secret, Mode::Test, world.now(), &world.entropy);
                tx.key_insert(&member.who, &key).await.unwrap();
            }
            4 => tx
                .key_revoke(member.key, world.now())
                .await
                .unwrap()
                .won()
                .unwrap(),
            5 => {
                let closed = Pool {
                    id: pool(),
                    networks: Vec::new(),
                    available: false,
                    native_addresses: true,
                };
                tx.pool_put(Mode::Test, &closed).await.unwrap();
            }
            _ => tx.config_version_raise().await.unwrap(),
        }
        tx.commit().await.unwrap();
        let version = world.version().await;
        assert_ne!(version, last, "change {change}");
        last = version;
    }
    let mut tx = world.provision_begin("nothing").await;
    tx.partner_lock(&member.who).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(world.version().await, last);
}

pub async fn dropped_provisioning_writes_nothing(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let before = world.version().await;
    let mut tx = world.provision_begin("dropped").await;
    tx.pools_profile_put(&member.who, &full_profile())
        .await
        .unwrap();
    tx.key_revoke(member.key, world.now())
        .await
        .unwrap()
        .won()
        .unwrap();
    tx.config_version_raise().await.unwrap();
    drop(tx);
    let access = world.access(&member.hash).await;
    assert_eq!((access.key.revoked_at, &access.profile), (None, &profile()));
    assert_eq!(world.version().await, before);
}

// rule: base.installation-mode
pub async fn first_mode_and_first_master_key_are_kept(world: World<impl Fixture>) {
    let provision = &world.ports().provision;
    assert_eq!(provision.master_key_fingerprint().await.unwrap(), None);
    assert_eq!(provision.installation_mode().await.unwrap(), None);
    for (mode, fingerprint) in [
        (Mode::Live, "0123456789abcdef"),
        (Mode::Test, "fedcba9876543210"),
    ] {
        let begun = provision.installation_begin(mode, fingerprint);
        begun.await.unwrap();
        let stored = provision.master_key_fingerprint().await.unwrap();
        assert_eq!(stored.as_deref(), Some("0123456789abcdef"));
        let stored = provision.installation_mode().await.unwrap();
        assert_eq!(stored, Some(Mode::Live));
    }
}

pub async fn open_store_is_ready(mut world: World<impl Fixture>) {
    crate::contract::outages::soon_ready(&*world.ports().readiness).await;
    world.fixture.reopen(crate::contract::fixture::WINDOW).await;
    crate::contract::outages::soon_ready(&*world.ports().readiness).await;
}

/// Stored rows survive a restart of the store.
pub async fn reopened_store_has_everything(mut world: World<impl Fixture>) {
    let member: Member = world.funded("acme").await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    let figures = world.audit().await.figures;
    world.fixture.reopen(crate::contract::fixture::WINDOW).await;
    assert_eq!(world.stored(&member, trade.id).await, trade);
    assert_eq!(world.audit().await.figures, figures);
    world.assert_clean().await;
}
