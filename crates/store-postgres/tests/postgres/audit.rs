//! The audit names what its page describes, whichever store it looks at.

use partner_core::ports::Audit as _;
use partner_core::sealing::{MasterKey, Sealer};

use crate::fixture;

// rule: cli.verify
#[tokio::test]
async fn every_invariant_is_described_and_nothing_else() {
    let opened = fixture::open().await;
    let sealer = Sealer::new(&MasterKey::new([7; 32]));
    let report = opened.store.audit(&sealer, &|_| ()).await.unwrap();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verify.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let described: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    let checked: Vec<&str> = report.findings.iter().map(|one| one.invariant).collect();
    assert_eq!(described, checked);
}

/// A reference that a migration adds is asked for too.
#[tokio::test]
async fn every_reference_of_the_schema_is_asked_for() {
    let opened = fixture::open().await;
    let mut owner = opened.database.owner().await;
    let tables: Vec<(String, i64)> = sqlx::query_as(
        "SELECT conrelid::regclass::text, count(*) FROM pg_constraint
         WHERE contype = 'f' AND connamespace = 'public'::regnamespace GROUP BY 1",
    )
    .fetch_all(&mut owner)
    .await
    .unwrap();
    let statements = include_str!("../../src/verify/queries.rs");
    let asked = |table: &str| {
        let refers = format!(" in {table} refers to no row of ");
        i64::try_from(statements.matches(&refers).count()).unwrap()
    };
    for (table, references) in tables {
        assert_eq!(asked(&table), references, "{table}");
    }
    sqlx::Connection::close(owner).await.unwrap();
}
