use secrecy::ExposeSecret as _;

use super::*;

const TEST: Setting = Setting {
    mode: Mode::Test,
    allow_private: AllowPrivate::Loopback,
};
const LIVE: Setting = Setting {
    mode: Mode::Live,
    allow_private: AllowPrivate::None,
};

/// The example of the documentation, with its own keys and secret.
const FULL: &str = r#"
[[pools]]
id = "EUR-USDT"
networks = ["tron", "ethereum", "bsc", "polygon", "solana"]
available = true

[[partners]]
id = "acme"                    # the operator's own name for it
name = "Acme Wallet"
status = "active"

[partners.pools]
enabled = true
access = "active"
kyc = "approved"
tier = "gold"
allowed = ["EUR-USDT"]
balance_gate = true
velocity_cap_usdt = "250000"
iban = "DE89 3704 0044 0532 0130 00"
funding_reference = "ACME-7F3K"

[[partners.pools.terms]]
pool = "EUR-USDT"
draw_fee_bps = 30
spread_cap_bps = 40
min_order_usdt = 10
max_order_usdt = 100_000.50
off_ramp = true
crypto_deposit_address = "0x52908400098527886E0F7030069857D2E4169EE7"

[partners.pools.webhook]
url = "http://127.0.0.1:9999/pools"
secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

[partners.gate]
enabled = true
allowed_domains = ["https://shop.example", "https://Bücher.example:443"]
flow_sessions = true
kyc_trusted = true
rails = true
preview_locks = true
live_session_quota = 1_000
create_session_limit = "100/60s"
legal_name = " Acme Payments GmbH "
support_url = "https://shop.example/help"
terms_url = "https://shop.example/terms"
privacy_url = "https://shop.example/privacy"

[partners.gate.webhook]
url = "http://127.0.0.1:9999/gate"

[[partners.keys]]
kind = "secret"
key = "sk_test_0123456789abcdefghijABCDEFGHIJ01"

[[partners.keys]]
kind = "publishable"
"#;

fn faults(text: &str, setting: Setting) -> Vec<String> {
    let Faults(found) = parse(text, setting).unwrap_err();
    found.iter().map(ToString::to_string).collect()
}

/// The errors of a partner's tables, without their lines.
pub(crate) fn faults_in(tables: &str) -> Vec<String> {
    let text = format!("[[partners]]\nid = \"acme\"\nname = \"Acme\"\n{tables}");
    let strip = |error: String| error.split_once(": ").unwrap().1.to_owned();
    faults(&text, TEST).into_iter().map(strip).collect()
}

#[test]
fn reads_every_key() {
    let Document { pools, partners } = parse(FULL, TEST).unwrap();
    assert_eq!(pools.len(), 1);
    assert_eq!(pools[0].networks, Network::ALL);
    let [entry] = partners.as_slice() else {
        panic!("one partner")
    };
    assert_eq!(entry.partner.name, "Acme Wallet");
    let profile = &entry.profile_over(None).unwrap();
    assert_eq!(profile.tier, "gold");
    assert_eq!(profile.velocity_cap, Some(25_000_000_000_000));
    assert_eq!(profile.iban.as_deref(), Some("DE89370400440532013000"));
    assert!(profile.enabled && profile.balance_gate);
    let (pool, terms) = &entry.terms[0];
    assert_eq!(pool.to_string(), "EUR-USDT");
    assert_eq!(terms.max_order_usdt.unwrap().to_string(), "100000.50");
    assert_eq!((terms.draw_fee_bps, terms.spread_cap_bps), (30, 40));
    assert!(terms.off_ramp);
    let [pools, gate] = entry.webhooks.as_slice() else {
        panic!("two webhooks")
    };
    assert_eq!(pools.service, Service::Pools);
    let secret = pools.secret.as_ref().unwrap();
    assert!(secret.expose_secret().starts_with("whsec_AAEC"));
    assert_eq!(
        (gate.service, gate.url.as_str(), gate.secret.is_none()),
        (Service::Gate, "http://127.0.0.1:9999/gate", true)
    );
    assert!(entry.keys[0].literal.is_some() && entry.keys[1].literal.is_none());
    assert_eq!(entry.mentions.len(), 2);
    assert_eq!((entry.mentions[0].line, entry.keys[1].line), (17, 57));
}

#[test]
fn absent_keys_have_defaults() {
    let text = "[[partners]]\nid = \"a-1\"\nname = \"A\"\n[partners.pools]\n[[partners.pools.terms]]\npool = \"EUR-USDT\"\n[[pools]]\nid = \"EUR-USDT\"\nnetworks = [\"tron\"]\n";
    let document = parse(text, LIVE).unwrap();
    let entry = &document.partners[0];
    assert_eq!(entry.partner.status, PartnerStatus::Active);
    let (pool, terms) = (PoolId::parse("EUR-USDT").unwrap(), PoolTerms::default());
    let mut expected = PoolsProfile::absent(&entry.partner.id);
    assert_eq!(expected.funding_reference, "A-1");
    expected.terms.insert(pool, terms);
    assert_eq!(entry.profile_over(None), Some(expected));
    assert_eq!(entry.terms[0].1, PoolTerms::default());
    assert!(!document.pools[0].available);
    assert!(entry.webhooks.is_empty() && entry.keys.is_empty());
    assert!(entry.gate.is_none());
}

#[test]
fn table_is_present_by_header_or_own_keys() {
    let profile = |tables: &str| {
        let text = format!("[[partners]]\nid = \"a\"\nname = \"A\"\n{tables}");
        parse(&text, TEST).unwrap().partners.remove(0).profile
    };
    assert!(profile("[partners.pools.webhook]\nurl = \"http://127.0.0.1/\"\n").is_none());
    assert!(profile("[[partners.pools.terms]]\npool = \"EUR-USDT\"\n").is_none());
    assert!(profile("").is_none());
    assert!(profile("[partners.pools]\n").is_some());
    assert!(profile("pools = {}\n").is_some());
    assert!(profile("pools.enabled = false\n").is_some());
}

#[test]
fn every_error_is_reported_with_line_and_key() {
    let text = "[[pools]]\nid = \"eur-usdt\"\nnetworks = [\"tron\",\n  \"eth\"]\n\n[[partners]]\nid = \"Acme\"\nstatus = \"on\"\n\n[partners.pools]\nkyc = true\ntier = \"\"\n";
    assert_eq!(
        faults(text, TEST),
        [
            "line 2: pools.id: expected a pool id <FIAT>-<CRYPTO> in upper case, such as EUR-USDT, found \"eur-usdt\"",
            "line 4: pools.networks: expected one of tron, ethereum, bsc, polygon, solana, found \"eth\"",
            "line 6: partners.name: missing; expected the partner's name",
            "line 7: partners.id: expected 1 to 64 of a-z, 0-9, _ and -, found \"Acme\"",
            "line 8: partners.status: expected active or suspended, found \"on\"",
            "line 11: partners.pools.kyc: expected approved, pending or revoked, found true",
            "line 12: partners.pools.tier: expected 1 to 64 printable characters without a space at either end, found \"\"",
        ]
    );
}

#[test]
fn broken_syntax_is_reported_alone_and_on_one_line() {
    let found = faults("[[partners]]\nid = \nname = \"A\"\nname = \"B\"\n", TEST);
    assert!(found[0].starts_with("line 2: "), "{found:?}");
    assert!(
        found
            .iter()
            .any(|error| error == "line 4: duplicate key `name`; remove one of the two"),
        "{found:?}"
    );
    assert!(found.iter().all(|error| !error.contains('\n')), "{found:?}");
}

#[test]
fn unknown_key_names_nearest_known_key() {
    assert_eq!(
        faults("[[partner]]\nid = \"a\"\n", TEST),
        ["line 1: partner: unknown key; the nearest known one is `partners`"]
    );
    assert_eq!(
        faults_in("[partners.pools]\naccesses = \"active\"\nEnabled = true\nstatus = \"active\"\n"),
        [
            "partners.pools.accesses: unknown key; the nearest known one is `access`",
            "partners.pools.Enabled: unknown key; the nearest known one is `enabled`",
            "partners.pools.status: unknown key here; `status` belongs in partners",
        ]
    );
    assert_eq!(
        faults_in("pools = { webhook = { uri = \"x\", url = \"http://127.0.0.1/\" } }\n"),
        ["partners.pools.webhook.uri: unknown key; the nearest known one is `url`"]
    );
    assert_eq!(
        faults_in("[partners.pool]\nenabled = true\n[[partners.key]]\nkind = \"secret\"\n"),
        [
            "partners.pool: unknown key; the nearest known one is `pools`",
            "partners.key: unknown key; the nearest known one is `keys`",
        ]
    );
    assert_eq!(
        faults_in("\"a\\nb\" = 1\n"),
        ["partners.a\\nb: unknown key; the nearest known one is `id`"]
    );
}

#[test]
fn duplicates_in_file_are_refused() {
    let text = "[[pools]]\nid = \"EUR-USDT\"\nnetworks = [\"tron\", \"tron\"]\n[[pools]]\nid = \"EUR-USDT\"\nnetworks = []\n[[partners]]\nid = \"a\"\nname = \"A\"\n[[partners]]\nid = \"a\"\nname = \"A\"\n";
    assert_eq!(
        faults(text, TEST),
        [
            "line 3: pools.networks: expected every entry once, found \"tron\"",
            "line 5: pools.id: expected every pool once, found \"EUR-USDT\"",
            "line 6: pools.networks: expected at least one network",
            "line 11: partners.id: expected every partner once, found \"a\"",
        ]
    );
    let terms = "[[partners.pools.terms]]\npool = \"EUR-USDT\"\n";
    assert_eq!(
        faults_in(&terms.repeat(2)),
        ["partners.pools.terms.pool: expected the terms of a pool once, found \"EUR-USDT\""]
    );
    let key = format!(
        "[[partners.keys]]\nkind = \"secret\"\nkey = \"sk_test_{}\"\n",
        "a".repeat(32)
    );
    assert_eq!(
        faults_in(&key.repeat(2)),
        ["partners.keys.key: this key occurs twice in the file"]
    );
}

#[test]
fn numbers_stay_within_their_bounds_and_out_of_binary_floats() {
    let terms = |lines: &str| {
        faults_in(&format!(
            "[[partners.pools.terms]]\npool = \"EUR-USDT\"\n{lines}\n"
        ))
    };
    for (line, error) in [
        (
            "draw_fee_bps = 5001",
            "expected a whole number from 0 to 5000, found \"5001\"",
        ),
        (
            "draw_fee_bps = -1",
            "expected a whole number from 0 to 5000, found \"-1\"",
        ),
        (
            "draw_fee_bps = 1.5",
            "expected a whole number from 0 to 5000, found \"1.5\"",
        ),
        (
            "draw_fee_bps = \"30\"",
            "expected a whole number from 0 to 5000, found \"30\"",
        ),
        (
            "spread_cap_bps = 51",
            "expected a whole number from 0 to 50, found \"51\"",
        ),
        (
            "max_order_usdt = 0.5",
            "expected at least min_order_usdt, 1, found \"0.5\"",
        ),
    ] {
        let found = terms(line);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with(error), "{found:?}");
    }
    for bad in [
        "-1",
        "1e3",
        "inf",
        "nan",
        "0x10",
        "0.000000001",
        "90000000001",
        "true",
        "\"1,5\"",
    ] {
        let found = terms(&format!("min_order_usdt = {bad}"));
        assert_eq!(found.len(), 1, "{bad}: {found:?}");
        assert!(
            found[0].contains("min_order_usdt: expected a decimal from 0 to 90000000000"),
            "{found:?}"
        );
        let found = faults_in(&format!("[partners.pools]\nvelocity_cap_usdt = {bad}\n"));
        assert!(
            found[0].contains("velocity_cap_usdt: expected a decimal"),
            "{found:?}"
        );
    }
    let exact = "[[partners]]\nid = \"a\"\nname = \"A\"\n[[partners.pools.terms]]\npool = \"EUR-USDT\"\nmin_order_usdt = 12345678901.12345678\nmax_order_usdt = \"12345678901.12345679\"\n";
    let terms = parse(exact, TEST)
        .unwrap()
        .partners
        .remove(0)
        .terms
        .remove(0)
        .1;
    assert_eq!(terms.min_order_usdt.to_string(), "12345678901.12345678");
    assert_eq!(
        terms.max_order_usdt.unwrap().to_string(),
        "12345678901.12345679"
    );
}

#[test]
fn keys_and_secrets_are_validated_and_never_shown() {
    let literal = "a".repeat(32);
    for (kind, key) in [
        ("secret", format!("pk_test_{literal}")),
        ("publishable", format!("sk_test_{literal}")),
        ("secret", format!("sk_live_{literal}")),
        ("secret", format!("sk_test_{literal}0")),
        ("secret", "hunter2".to_owned()),
    ] {
        let found = faults_in(&format!(
            "[[partners.keys]]\nkind = \"{kind}\"\nkey = \"{key}\"\n"
        ));
        assert!(
            found[0].starts_with("partners.keys.key: expected "),
            "{found:?}"
        );
        assert!(!found[0].contains(&key), "{found:?}");
    }
    let found = faults_in(
        "[partners.pools.webhook]\nurl = \"http://127.0.0.1/\"\nsecret = \"whsec_c2hvcnQ=\"\n",
    );
    assert_eq!(
        found,
        ["partners.pools.webhook.secret: expected whsec_ and the base64 of 32 bytes"]
    );
    assert_eq!(
        faults_in("[[partners.keys]]\nkind = \"root\"\n"),
        ["partners.keys.kind: expected secret or publishable, found \"root\""]
    );
    let live = format!(
        "[[partners]]\nid = \"a\"\nname = \"A\"\n[[partners.keys]]\nkind = \"secret\"\nkey = \"sk_test_{literal}\"\n"
    );
    let found = faults(&live, LIVE);
    assert!(found[0].contains("accepted in test mode only"), "{found:?}");
}

/// Keys pasted as a key name, as the value of another key, and without quotes.
// rule: auth.keys-never-logged
#[test]
fn misplaced_key_is_not_shown() {
    let random = "Q".repeat(32);
    for key in [
        format!("sk_test_{random}"),
        format!("pk_live_{random}"),
        format!("sk_{random}"),
        format!("whsec_{random}"),
    ] {
        for tables in [
            format!("{key} = 1\n"),
            format!("\"{key}\" = 1\n"),
            format!("[partners.{key}]\na = 1\n"),
            format!("[partners.pools.\"{key}=\"]\n"),
            format!("status = \"{key}\"\n"),
            format!("status = {key}\n"),
            format!("keys = [\"{key}\"]\n"),
            format!("[[partners.keys]]\nkind = \"my key is {key}\"\n"),
            format!("[partners.pools]\nallowed = [\"{key}\"]\n"),
            format!("[partners.pools.webhook]\nurl = \"{key}\"\n"),
            format!("[[partners.pools.terms]]\npool = \"{key}\"\nmin_order_usdt = \"{key}\"\n"),
        ] {
            let found = faults_in(&tables).join("\n");
            assert!(!found.contains("QQ"), "{tables}: {found}");
        }
    }
    assert_eq!(
        faults_in(&format!("sk_test_{random} = 1\n")),
        ["partners.sk_test_…: unknown key; the nearest known one is `status`"]
    );
}

// rule: apply.deposit-address
#[test]
fn mistyped_deposit_address_is_refused() {
    let with = |address: &str| {
        faults_in(&format!(
            "[[partners.pools.terms]]\npool = \"EUR-USDT\"\ncrypto_deposit_address = \"{address}\"\n"
        ))
    };
    assert_eq!(
        with("0x52908400098527886E0F7030069857D2E4169eE7"),
        [
            "partners.pools.terms.crypto_deposit_address: the address is mixed-case and fails its EIP-55 checksum, found \"0x52908400098527886E0F7030069857D2E4169eE7\""
        ]
    );
    let zero = with(&format!("0x{}", "0".repeat(40)));
    assert!(
        zero[0].contains("no one has the key of this address"),
        "{zero:?}"
    );
    let tron = with("TJRabPrwbZy45sbavfcjinPJC18kjpRTv9");
    assert!(
        tron[0].contains("the TRON address fails its checksum"),
        "{tron:?}"
    );
}

// rule: apply.protections-written
#[test]
fn enabled_pools_need_written_balance_gate_and_cap() {
    let written = |lines: &str| faults_in(&format!("[partners.pools]\nenabled = true\n{lines}"));
    let gate =
        "partners.pools.balance_gate: missing; expected true, or false if purchases need no funds";
    let cap = "partners.pools.velocity_cap_usdt: missing; expected a decimal such as \"250000\", or \"none\" for no cap";
    assert_eq!(written("velocity_cap_usdt = \"none\"\n"), [gate]);
    assert_eq!(written("balance_gate = true\n"), [cap]);
    assert_eq!(written(""), [gate, cap]);
    let refused = written("balance_gate = true\nvelocity_cap_usdt = \"None\"\n");
    assert!(
        refused[0].contains("velocity_cap_usdt: expected a decimal"),
        "{refused:?}"
    );
}

// rule: apply.gate, apply.gate-origins
#[test]
fn gate_table_stores_origins_in_spelling_of_browsers() {
    let entry = parse(FULL, TEST).unwrap().partners.remove(0);
    let gate = entry.gate.unwrap();
    let domains: Vec<&str> = gate.allowed_domains.iter().map(|it| it.as_str()).collect();
    assert_eq!(
        domains,
        ["https://shop.example", "https://xn--bcher-kva.example"]
    );
    assert!(gate.enabled && gate.flow_sessions && gate.kyc_trusted);
    assert!(gate.rails && gate.preview_locks);
    assert_eq!(gate.live_session_quota, Some(1_000));
    let creates = gate.create_session_limit.unwrap();
    assert_eq!((creates.name, creates.limit), ("short", 100));
    assert_eq!(creates.per, std::time::Duration::from_secs(60));
}

// rule: apply.merchant
#[test]
fn gate_table_names_who_takes_the_money() {
    let entry = parse(FULL, TEST).unwrap().partners.remove(0);
    let merchant = entry.gate.unwrap().merchant;
    assert_eq!(merchant.legal_name.unwrap(), "Acme Payments GmbH");
    let pages = [
        merchant.support_url,
        merchant.terms_url,
        merchant.privacy_url,
    ];
    let expected =
        ["help", "terms", "privacy"].map(|page| Some(format!("https://shop.example/{page}")));
    assert_eq!(pages, expected);
}

// rule: apply.gate, apply.table-replaces
#[test]
fn absent_gate_keys_have_defaults() {
    let gate = |tables: &str| {
        let text = format!("[[partners]]\nid = \"a\"\nname = \"A\"\n{tables}");
        parse(&text, TEST).unwrap().partners.remove(0).gate
    };
    assert_eq!(gate("[partners.gate]\n"), Some(GateProfile::default()));
    assert_eq!(
        gate("[partners.gate.webhook]\nurl = \"http://127.0.0.1/\"\n"),
        None
    );
    assert!(gate("gate.enabled = true\n").unwrap().enabled);
    assert_eq!(gate(""), None);
}

// rule: apply.gate, apply.gate-origins, apply.unknown-key, gate.origin.any-port
#[test]
fn invalid_gate_values_are_named() {
    let origin = "expected an exact origin without a path or a wildcard, such as https://shop.example, or every port of a loopback host, such as http://localhost:*, found";
    for (tables, expected) in [
        ("allowed_domains = [\"shop.example\"]", format!("allowed_domains: {origin} \"shop.example\"")),
        ("allowed_domains = [\"https://*.shop.example\"]", format!("allowed_domains: {origin} \"https://*.shop.example\"")),
        ("allowed_domains = [\"https://shop.example/\"]", format!("allowed_domains: {origin} \"https://shop.example/\"")),
        ("allowed_domains = [\"http://shop.example\"]", format!("allowed_domains: {origin} \"http://shop.example\"")),
        ("allowed_domains = [\"https://shop.example:*\"]", format!("allowed_domains: {origin} \"https://shop.example:*\"")),
        (
            "allowed_domains = [\"https://shop.example\", \"https://SHOP.example:443\"]",
            "allowed_domains: expected every entry once, found \"https://SHOP.example:443\"".to_owned(),
        ),
        ("live_session_quota = -1", "live_session_quota: expected a whole number from 0 to 1000000000, found \"-1\"".to_owned()),
        ("live_session_quota = 0.5", "live_session_quota: expected a whole number from 0 to 1000000000, found \"0.5\"".to_owned()),
        ("live_session_quota = 1000000001", "live_session_quota: expected a whole number from 0 to 1000000000, found \"1000000001\"".to_owned()),
        ("create_session_limit = \"100\"", "create_session_limit: expected one limit such as \"100/60s\", found \"100\"".to_owned()),
        ("create_session_limit = \"0/60s\"", "create_session_limit: expected one limit such as \"100/60s\", found \"0/60s\"".to_owned()),
        ("create_session_limit = \"10/10s,60/60s\"", "create_session_limit: expected one limit such as \"100/60s\", found \"10/10s,60/60s\"".to_owned()),
        ("create_session_limit = 100", "create_session_limit: expected one limit such as \"100/60s\", found \"100\"".to_owned()),
        ("rails = \"yes\"", "rails: expected true or false, found \"yes\"".to_owned()),
        ("allowed_domain = []", "allowed_domain: unknown key; the nearest known one is `allowed_domains`".to_owned()),
        ("kyc = \"approved\"", "kyc: unknown key here; `kyc` belongs in partners.pools".to_owned()),
    ] {
        let found = faults_in(&format!("[partners.gate]\n{tables}\n"));
        assert_eq!(found, [format!("partners.gate.{expected}")]);
    }
    assert_eq!(
        faults_in("[partners.gate.webhook]\nurl = \"http://10.0.0.1/\"\nsecrte = \"x\"\n").len(),
        2
    );
    for local in [
        "http://localhost:3000",
        "http://localhost:*",
        "https://[::1]:*",
    ] {
        let live = format!(
            "[[partners]]\nid = \"a\"\nname = \"A\"\n[partners.gate]\nallowed_domains = [\"{local}\"]\n"
        );
        assert!(parse(&live, TEST).is_ok(), "{local}");
        let refused = faults(&live, LIVE);
        assert!(
            refused[0].contains("an exact origin with https://, which mode live needs"),
            "{refused:?}"
        );
    }
}

#[test]
fn webhook_targets_follow_mode_and_policy() {
    let with = |url: &str| {
        format!(
            "[[partners]]\nid = \"a\"\nname = \"A\"\n[partners.pools.webhook]\nurl = \"{url}\"\n"
        )
    };
    assert!(parse(&with("http://localhost:9999/"), TEST).is_ok());
    assert!(parse(&with("https://partner.example/"), LIVE).is_ok());
    let found = faults(&with("http://partner.example/"), LIVE);
    assert_eq!(
        found,
        ["line 5: partners.pools.webhook.url: expected an https URL in live mode"]
    );
    assert!(faults(&with("http://10.0.0.1/"), TEST)[0].contains("private"));
    assert!(faults(&with("https://127.1/"), LIVE)[0].contains("loopback"));
}

#[test]
fn wrong_kinds_of_tables_are_named() {
    assert_eq!(
        faults("[partners]\nid = \"a\"\n", TEST),
        ["line 1: partners: expected an array of tables, written [[partners]], found a table"]
    );
    assert_eq!(
        faults_in("pools = 3\nkeys = [1]\n"),
        [
            "partners.pools: expected a table, written [partners.pools], found \"3\"",
            "partners.keys: expected an array of tables, written [[partners.keys]]",
        ]
    );
}

#[test]
fn single_typo_neither_panics_nor_shows_secret() {
    let slips = ["", "\"", "=", "\n", "é"];
    for (at, letter) in FULL.char_indices() {
        let (before, after) = FULL.split_at(at);
        let rest = after.strip_prefix(letter).unwrap();
        for slip in slips {
            let Err(Faults(found)) = parse(&format!("{before}{slip}{rest}"), TEST) else {
                continue;
            };
            assert!(!found.is_empty(), "{at} {slip:?}");
            for error in found {
                let line = error.to_string();
                let plain = !line.contains('\n') && error.line <= FULL.lines().count() + 1;
                assert!(plain, "{at} {slip:?}: {line}");
                let secret = line.contains("abcdefghijABCDEFGHIJ") || line.contains("AAECAwQF");
                assert!(!secret, "{at} {slip:?}: {line}");
            }
        }
    }
}
