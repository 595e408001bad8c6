//! `apply`: required protections, and loosenings that are refused.

use crate::applying::profile;
use crate::fixture::{ACME, Installation, KEYS, POOL};

/// A file for a partner with every protection.
fn strict(tier: &str) -> String {
    format!(
        "{POOL}{ACME}[partners.pools]\nenabled = true\nkyc = \"pending\"\ntier = \"{tier}\"\nallowed = [\"EUR-USDT\"]\n\
         balance_gate = true\nvelocity_cap_usdt = \"250000\"\n\
         [[partners.pools.terms]]\npool = \"EUR-USDT\"\nmax_order_usdt = 500\noff_ramp = false\n"
    )
}

// rule: apply.protections-written
#[test]
fn apply_refuses_enabled_pools_without_gate_or_cap() {
    let installation = Installation::new();
    let written = |lines: &str| {
        let text = format!("{ACME}[partners.pools]\nenabled = true\n{lines}");
        installation.apply(&text, &[])
    };
    let gate = "file.toml: line 4: partners.pools.balance_gate: missing; expected true, or false if purchases need no funds\n";
    let cap = "file.toml: line 4: partners.pools.velocity_cap_usdt: missing; expected a decimal such as \"250000\", or \"none\" for no cap\n";
    for (lines, fault) in [
        ("velocity_cap_usdt = \"none\"\n", gate.to_owned()),
        ("balance_gate = true\n", cap.to_owned()),
        ("", format!("{gate}{cap}")),
    ] {
        let done = written(lines);
        assert_eq!((done.code, done.err), (2, fault));
    }
    let done = written("balance_gate = true\nvelocity_cap_usdt = \"None\"\n");
    assert!(done.code == 2 && done.err.contains("velocity_cap_usdt: expected a decimal"));
    let done = written("balance_gate = false\nvelocity_cap_usdt = \"none\"\n");
    assert_eq!(done.code, 0, "the file has both protections: {done:?}");
}

// rule: apply.loosening
#[tokio::test(flavor = "multi_thread")]
async fn apply_refuses_each_loosening_without_flag() {
    let installation = Installation::new();
    let base = installation.open().await;
    assert_eq!(installation.apply(&strict("old"), &[]).code, 0);
    let before = (profile(&base).await, base.store.config_version().await);
    for (tight, loose, line) in [
        (
            "gate = true",
            "gate = false",
            "pools.balance_gate true -> false",
        ),
        (
            "\"250000\"",
            "\"250001\"",
            "pools.velocity_cap_usdt 250000 -> 250001",
        ),
        (
            "\"250000\"",
            "\"none\"",
            "pools.velocity_cap_usdt 250000 -> none",
        ),
        ("pending", "approved", "pools.kyc pending -> approved"),
        (
            "usdt = 500",
            "usdt = 501",
            "pools.terms EUR-USDT max_order_usdt 500 -> 501",
        ),
        (
            "max_order_usdt = 500\n",
            "",
            "pools.terms EUR-USDT max_order_usdt 500 -> none",
        ),
        (
            "off_ramp = false",
            "off_ramp = true",
            "pools.terms EUR-USDT off_ramp false -> true",
        ),
    ] {
        let text = strict("new").replace(tight, loose);
        let line = format!("partner acme: {line}");
        let other = "partner acme: pools.tier old -> new";
        for words in [&[][..], &["--dry-run"]] {
            let done = installation.apply(&text, words);
            assert_eq!(
                (done.code, done.out),
                (1, format!("loosens: {line}\n{other}\n"))
            );
            assert_eq!(
                done.err,
                format!(
                    "file.toml: the file loosens what protects money: {line}; nothing was changed; use --allow-loosening to allow it\n"
                )
            );
            let json = installation.apply(&text, &[words, &["--output", "json"]].concat());
            assert_eq!(json.code, 1);
            assert!(json.error().contains(&line), "{json:?}");
            let report: serde_json::Value = serde_json::from_str(&json.out).unwrap();
            assert_eq!(report["loosened"], serde_json::json!([line]));
            assert_eq!(report["changed"], serde_json::json!([line, other]));
        }
        let after = (profile(&base).await, base.store.config_version().await);
        assert_eq!(format!("{after:?}"), format!("{before:?}"), "{line}");
        let allowed = installation.apply(&text, &["--allow-loosening", "--dry-run"]);
        assert_eq!(allowed.code, 0, "{allowed:?}");
        assert!(
            allowed
                .out
                .starts_with(&format!("loosens: {line}\n{other}\n"))
        );
    }
    let loose = strict("new")
        .replace("pending", "approved")
        .replace("gate = true", "gate = false");
    let done = installation.apply(&loose, &["--allow-loosening"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(!profile(&base).await.unwrap().balance_gate);
    assert_eq!(
        installation.apply(&loose, &[]).code,
        0,
        "the database already has these values"
    );
    let done = installation.apply(&strict("old"), &[]);
    assert_eq!(done.code, 0, "tightening needs no flag: {done:?}");
}

// rule: apply.loosening
#[test]
fn refused_loosening_generates_no_key_for_any_partner_of_the_file() {
    let installation = Installation::new();
    assert_eq!(installation.apply(&strict("old"), &[]).code, 0);
    let other = ACME.replace("acme", "aaa");
    let loose = strict("new").replace("pending", "approved");
    let done = installation.apply(&format!("{loose}{other}{KEYS}"), &[]);
    assert_eq!(done.code, 1);
    assert!(
        done.out
            .contains("partner aaa: secret key would be generated"),
        "{done:?}"
    );
    assert!(!done.out.contains("sk_test_"), "{done:?}");
    assert_eq!(
        installation.run(&["key", "list", "--partner", "aaa"]).code,
        1
    );
}

// rule: apply.loosening
#[tokio::test(flavor = "multi_thread")]
async fn disabled_pools_keep_their_protections_when_enabled_again() {
    let installation = Installation::new();
    let base = installation.open().await;
    assert_eq!(installation.apply(&strict("old"), &[]).code, 0);
    let off = format!("{ACME}[partners.pools]\nenabled = false\n");
    let done = installation.apply(&off, &[]);
    assert_eq!(done.code, 0, "an emergency needs no flag: {done:?}");
    let after = profile(&base).await.unwrap();
    assert!(!after.enabled && after.balance_gate);
    assert_eq!(after.velocity_cap, Some(25_000_000_000_000));
    let on = strict("old").replace("gate = true", "gate = false");
    let done = installation.apply(&on, &[]);
    assert_eq!(done.code, 1, "{done:?}");
    let lines = [
        "loosens: partner acme: pools.enabled false -> true\n",
        "loosens: partner acme: pools.balance_gate true -> false\n",
    ];
    assert!(done.out.starts_with(&lines.concat()), "{done:?}");
    assert_eq!(installation.apply(&strict("old"), &[]).code, 0);
    let suspended = ACME.replace("name", "status = \"suspended\"\nname");
    assert_eq!(installation.apply(&suspended, &[]).code, 0);
    assert_eq!(
        installation.apply(&on, &[]).code,
        1,
        "suspension hides no loosening"
    );
    let standing = installation.apply(&strict("old"), &[]);
    assert!(
        standing.out.starts_with("nothing to change"),
        "{standing:?}"
    );
}

// rule: apply.suspension-kept, apply.loosening-access
#[test]
fn standing_file_keeps_suspension_whose_end_needs_flag() {
    let installation = Installation::new();
    let standing = strict("old");
    assert_eq!(installation.apply(&standing, &[]).code, 0);
    let suspended = standing
        .replace(
            "name = \"Acme\"\n",
            "name = \"Acme\"\nstatus = \"suspended\"\n",
        )
        .replace(
            "[partners.pools]\n",
            "[partners.pools]\naccess = \"suspended\"\n",
        );
    let done = installation.apply(&suspended, &[]);
    assert_eq!(done.code, 0, "a suspension needs no flag: {done:?}");
    let kept = installation.apply(&standing, &[]);
    assert!(kept.out.starts_with("nothing to change"), "{kept:?}");
    let active = suspended.replace("\"suspended\"", "\"active\"");
    let refused = installation.apply(&active, &[]);
    let lines = [
        "loosens: partner acme: status suspended -> active\n",
        "loosens: partner acme: pools.access suspended -> active\n",
    ];
    assert_eq!((refused.code, refused.out), (1, lines.concat()));
    let kept = installation.apply(&suspended, &[]);
    assert!(kept.out.starts_with("nothing to change"), "{kept:?}");
    let done = installation.apply(&active, &["--allow-loosening"]);
    assert_eq!(done.code, 0, "{done:?}");
    let done = installation.apply(&standing, &[]);
    assert!(done.out.starts_with("nothing to change"), "{done:?}");
}

// rule: apply.loosening-access
#[test]
fn enabling_pools_without_gate_or_cap_needs_flag() {
    let installation = Installation::new();
    let pools = |enabled: bool, gate: bool, cap: &str| {
        format!(
            "{ACME}[partners.pools]\nenabled = {enabled}\nbalance_gate = {gate}\nvelocity_cap_usdt = \"{cap}\"\n"
        )
    };
    let loosens = "loosens: partner acme: pools.enabled false -> true\n";
    assert_eq!(installation.apply(ACME, &[]).code, 0);
    // The first table of a partner that exists.
    for (gate, cap) in [(false, "5"), (true, "none")] {
        let refused = installation.apply(&pools(true, gate, cap), &[]);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.out.starts_with(loosens), "{refused:?}");
    }
    let done = installation.apply(&pools(true, true, "5"), &[]);
    assert_eq!(done.code, 0, "both protections are on: {done:?}");
    let off = installation.apply(&pools(false, false, "5"), &["--allow-loosening"]);
    assert_eq!(off.code, 0, "{off:?}");
    let on = pools(true, false, "5");
    let refused = installation.apply(&on, &[]);
    assert_eq!((refused.code, refused.out.as_str()), (1, loosens));
    assert_eq!(installation.apply(&on, &["--allow-loosening"]).code, 0);
}

// rule: apply.loosening-access
#[test]
fn gate_that_trusts_kyc_or_raises_quota_needs_flag() {
    let installation = Installation::new();
    let gate = |lines: &str| format!("{ACME}[partners.gate]\nenabled = true\n{lines}");
    let strict = gate("live_session_quota = 5\n");
    assert_eq!(installation.apply(&strict, &[]).code, 0);
    for (lines, change) in [
        (
            "live_session_quota = 5\nkyc_trusted = true\n",
            "kyc_trusted false -> true",
        ),
        ("live_session_quota = 6\n", "live_session_quota 5 -> 6"),
        ("", "live_session_quota 5 -> none"),
    ] {
        let line = format!("loosens: partner acme: gate.{change}\n");
        let refused = installation.apply(&gate(lines), &[]);
        assert_eq!((refused.code, refused.out), (1, line.clone()));
        let allowed = installation.apply(&gate(lines), &["--allow-loosening", "--dry-run"]);
        assert_eq!(allowed.code, 0, "{allowed:?}");
        assert!(allowed.out.starts_with(&line), "{allowed:?}");
    }
    let lower = installation.apply(&gate("live_session_quota = 4\n"), &[]);
    assert_eq!(lower.code, 0, "{lower:?}");
}
