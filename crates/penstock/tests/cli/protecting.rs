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

// rule: apply.loosening, apply.loosening-access
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
    let (_, refused) = done.err.split_once('\n').unwrap();
    assert_eq!(
        refused,
        "file.toml: the file loosens what protects money: partner acme: pools.kyc pending -> approved; nothing was changed; use --allow-loosening to allow it\n"
    );
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
