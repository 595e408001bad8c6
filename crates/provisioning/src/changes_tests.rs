use super::*;
use partner_core::PartnerId;
use pools_core::profile::Network;

/// All lines, the loosening ones first.
fn lines(changes: Changes) -> Vec<String> {
    let (loosened, other) = changes.into_lines();
    [loosened, other].concat()
}

#[test]
fn only_different_values_are_changes() {
    let partner = PartnerId::parse("acme").unwrap();
    let pool = PoolId::parse("EUR-USDT").unwrap();
    let mut before = PoolsProfile::absent(&partner);
    before.terms.insert(pool, PoolTerms::default());
    let mut after = before.clone();
    let mut changes = Changes::of("partner acme");
    of_profile(&mut changes, Some(&before), &after);
    assert!(changes.is_empty());
    after.kyc = Kyc::Approved;
    after.tier = "gold plus".to_owned();
    after.velocity_cap = Some(25_000_050_000_000);
    after.allowed.insert(pool);
    after.terms.entry(pool).or_default().min_order_usdt = Decimal::new(250, 1);
    of_profile(&mut changes, Some(&before), &after);
    assert_eq!(
        lines(changes),
        [
            "partner acme: pools.kyc pending -> approved",
            "partner acme: pools.tier standard -> \"gold plus\"",
            "partner acme: pools.allowed [] -> [EUR-USDT]",
            "partner acme: pools.velocity_cap_usdt none -> 250000.5",
            "partner acme: pools.terms EUR-USDT min_order_usdt 1 -> 25",
        ]
    );
}

#[test]
fn pool_is_compared_by_its_offer() {
    let mut pool = Pool {
        id: PoolId::parse("EUR-USDT").unwrap(),
        networks: vec![Network::Tron, Network::Bsc],
        available: true,
        native_addresses: false,
    };
    let before = pool.clone();
    assert_eq!(lines(of_pool(None, &pool)), ["pool EUR-USDT: created"]);
    assert!(of_pool(Some(&before), &pool).is_empty());
    pool.networks.pop();
    pool.available = false;
    pool.native_addresses = true;
    assert_eq!(
        lines(of_pool(Some(&before), &pool)),
        [
            "pool EUR-USDT: networks [tron, bsc] -> [tron]",
            "pool EUR-USDT: available true -> false",
            "pool EUR-USDT: native_addresses false -> true",
        ]
    );
}

// rule: apply.loosening
#[test]
fn changes_loosen_when_a_protection_falls() {
    let partner = PartnerId::parse("acme").unwrap();
    let pool = PoolId::parse("EUR-USDT").unwrap();
    let mut strict = PoolsProfile {
        balance_gate: true,
        velocity_cap: Some(5),
        ..PoolsProfile::absent(&partner)
    };
    strict.terms.insert(
        pool,
        PoolTerms {
            max_order_usdt: Some(Decimal::TEN),
            ..PoolTerms::default()
        },
    );
    type Change = fn(&mut PoolsProfile);
    let loosenings: [(Change, &str); 7] = [
        (|it| it.balance_gate = false, "balance_gate"),
        (|it| it.velocity_cap = Some(6), "velocity_cap_usdt"),
        (|it| it.velocity_cap = None, "velocity_cap_usdt"),
        (|it| it.kyc = Kyc::Approved, "kyc"),
        (
            |it| terms_of(it).max_order_usdt = Some(Decimal::ONE_HUNDRED),
            "max_order_usdt",
        ),
        (|it| terms_of(it).max_order_usdt = None, "max_order_usdt"),
        (|it| terms_of(it).off_ramp = true, "off_ramp"),
    ];
    for (change, name) in loosenings {
        let mut loose = strict.clone();
        change(&mut loose);
        let checked = |before, after| {
            let mut changes = Changes::of("partner acme");
            of_profile(&mut changes, before, after);
            changes
        };
        let (loosened, other) = checked(Some(&strict), &loose).into_lines();
        assert_eq!((loosened.len(), other.len()), (1, 0), "{name}");
        assert!(loosened[0].contains(name), "{loosened:?}");
        assert!(
            !checked(Some(&loose), &strict).loosens(),
            "{name} tightened"
        );
        assert!(!checked(None, &loose).loosens(), "{name} of a new partner");
    }
}

/// The loosening lines and the other lines of a change of pools access.
fn split(
    before: Option<&PoolsProfile>,
    after: &PoolsProfile,
    mut changes: Changes,
) -> (Vec<String>, Vec<String>) {
    of_profile(&mut changes, before, after);
    changes.into_lines()
}

// rule: apply.loosening-access
#[test]
fn ending_a_suspension_loosens() {
    let id = PartnerId::parse("acme").unwrap();
    let partner = |status| Partner {
        id: id.clone(),
        name: "Acme".to_owned(),
        status,
    };
    let active = partner(PartnerStatus::Active);
    let suspended = partner(PartnerStatus::Suspended);
    let lines = |before: &Partner, after: &Partner| of_partner(Some(before), after).into_lines();
    let none = Vec::<String>::new();
    assert_eq!(
        lines(&suspended, &active),
        (
            vec!["partner acme: status suspended -> active".to_owned()],
            none.clone()
        )
    );
    assert_eq!(lines(&active, &suspended).0, none);
    let open = PoolsProfile::absent(&id);
    let closed = PoolsProfile {
        access: PoolsAccess::Suspended,
        ..open.clone()
    };
    let of_acme = || Changes::of("partner acme");
    assert_eq!(
        split(Some(&closed), &open, of_acme()),
        (
            vec!["partner acme: pools.access suspended -> active".to_owned()],
            none.clone()
        )
    );
    assert_eq!(split(Some(&open), &closed, of_acme()).0, none);
}

// rule: apply.loosening-access
#[test]
fn enabling_pools_loosens_without_gate_or_cap() {
    let id = PartnerId::parse("acme").unwrap();
    let enabled = "partner acme: pools.enabled false -> true";
    for (balance_gate, velocity_cap, loosens) in [
        (true, Some(5), false),
        (false, Some(5), true),
        (true, None, true),
        (false, None, true),
    ] {
        let off = PoolsProfile {
            balance_gate,
            velocity_cap,
            ..PoolsProfile::absent(&id)
        };
        let on = PoolsProfile {
            enabled: true,
            ..off.clone()
        };
        let expected = if loosens { vec![enabled] } else { Vec::new() };
        let of_acme = || Changes::of("partner acme");
        assert_eq!(split(Some(&off), &on, of_acme()).0, expected, "{on:?}");
        assert!(split(Some(&on), &off, of_acme()).0.is_empty());
        // The first profile of a partner that exists is compared with no access.
        assert_eq!(split(None, &on, of_acme()).0, expected, "{on:?}");
        let created = Partner {
            id: id.clone(),
            name: "Acme".to_owned(),
            status: PartnerStatus::Active,
        };
        let created = of_partner(None, &created);
        assert!(split(None, &on, created).0.is_empty(), "{on:?}");
    }
}

// rule: apply.loosening-access
#[test]
fn trusted_kyc_and_higher_quota_loosen() {
    let strict = GateProfile {
        live_session_quota: Some(5),
        ..GateProfile::default()
    };
    type Change = fn(&mut GateProfile);
    let loosenings: [(Change, &str); 3] = [
        (|it| it.kyc_trusted = true, "gate.kyc_trusted false -> true"),
        (
            |it| it.live_session_quota = Some(6),
            "gate.live_session_quota 5 -> 6",
        ),
        (
            |it| it.live_session_quota = None,
            "gate.live_session_quota 5 -> none",
        ),
    ];
    let split = |before: Option<&GateProfile>, after: &GateProfile| {
        let mut changes = Changes::of("partner acme");
        of_gate(&mut changes, before, after);
        changes.into_lines()
    };
    for (change, line) in loosenings {
        let mut loose = strict.clone();
        change(&mut loose);
        let line = format!("partner acme: {line}");
        assert_eq!(split(Some(&strict), &loose), (vec![line], Vec::new()));
        assert!(split(Some(&loose), &strict).0.is_empty());
    }
    let mut first = strict.clone();
    assert!(split(None, &first).0.is_empty());
    first.kyc_trusted = true;
    assert_eq!(
        split(None, &first).0,
        ["partner acme: gate.kyc_trusted false -> true"]
    );
    first.enabled = true;
    let enabled = GateProfile {
        enabled: false,
        ..first.clone()
    };
    assert!(split(Some(&enabled), &first).0.is_empty());
}

fn terms_of(profile: &mut PoolsProfile) -> &mut PoolTerms {
    profile.terms.values_mut().next().unwrap()
}

// rule: apply.loosening
#[test]
fn new_terms_loosen_against_the_default_terms() {
    let partner = PartnerId::parse("acme").unwrap();
    let before = PoolsProfile::absent(&partner);
    let mut after = before.clone();
    let terms = PoolTerms {
        off_ramp: true,
        draw_fee_bps: 30,
        ..PoolTerms::default()
    };
    after
        .terms
        .insert(PoolId::parse("EUR-USDT").unwrap(), terms);
    let mut changes = Changes::of("partner acme");
    of_profile(&mut changes, Some(&before), &after);
    let (loosened, other) = changes.into_lines();
    assert_eq!(
        loosened,
        ["partner acme: pools.terms EUR-USDT off_ramp false -> true"]
    );
    assert_eq!(other, ["partner acme: pools.terms EUR-USDT created"]);
}
