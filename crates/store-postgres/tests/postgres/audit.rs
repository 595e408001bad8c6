//! The audit on Postgres, and its documentation.

use std::sync::Arc;

use kernel::StoreError;
use partner_core::ports::{Audit as _, AuditStep};
use partner_core::sealing::{MasterKey, Sealer};

use crate::{faults, fixture};

// rule: cli.verify
#[tokio::test]
async fn documentation_lists_exactly_the_audited_invariants() {
    let opened = fixture::open().await;
    let sealer = Sealer::new(&MasterKey::new([7; 32]));
    let report = opened
        .store
        .audit(&sealer, |_| true, &|_| ())
        .await
        .unwrap();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verify.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let described: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    let checked: Vec<&str> = report.findings.iter().map(|one| one.invariant).collect();
    assert_eq!(described, checked);
}

/// An audit that ended early would look clean.
// rule: cli.verify
#[tokio::test]
async fn audit_fails_when_its_session_ends_half_way() {
    let opened = fixture::open().await;
    let sealer = Sealer::new(&MasterKey::new([7; 32]));
    let database = Arc::clone(&opened.database);
    let progress = move |step: AuditStep| {
        if step.number == step.of / 2 {
            let database = Arc::clone(&database);
            let ending = std::thread::spawn(move || {
                let tokio = tokio::runtime::Runtime::new().unwrap();
                tokio.block_on(faults::terminate(&database));
            });
            ending.join().unwrap();
        }
    };
    let audited = opened.store.audit(&sealer, |_| true, &progress).await;
    assert!(
        matches!(audited, Err(StoreError::Unavailable(_))),
        "{audited:?}"
    );
}

/// A restore leaves out constraints that its rows violate.
#[tokio::test]
async fn audit_reports_constraints_missing_from_schema() {
    let opened = fixture::open().await;
    let mut owner = opened.database.owner().await;
    sqlx::raw_sql(
        "ALTER TABLE trades DROP CONSTRAINT trades_quote;
         ALTER TABLE accounts DROP CONSTRAINT accounts_available;
         DROP INDEX rail_records_quote_once",
    )
    .execute(&mut owner)
    .await
    .unwrap();
    sqlx::Connection::close(owner).await.unwrap();
    let sealer = Sealer::new(&MasterKey::new([7; 32]));
    let report = opened
        .store
        .audit(&sealer, |_| true, &|_| ())
        .await
        .unwrap();
    let broken = report.findings.iter().filter(|one| one.count > 0);
    let broken: Vec<_> = broken.map(|one| (one.invariant, &*one.breaches)).collect();
    let lost = [
        "accounts_available",
        "rail_records_quote_once",
        "trades_quote",
    ];
    let breaches = lost.map(|name| format!("the schema has no {name}"));
    assert_eq!(broken, [("database-is-whole", &breaches[..])]);
}

/// The audit finds references in the catalogue, so it also checks those of later migrations. NULL is no reference.
#[tokio::test]
async fn audit_checks_every_reference_of_the_schema() {
    let opened = fixture::open().await;
    let mut owner = opened.database.owner().await;
    sqlx::raw_sql(
        "CREATE TABLE notes (mode text, partner_id text);
         INSERT INTO notes VALUES ('test', 'unknown'), ('test', NULL);
         ALTER TABLE notes ADD FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id) NOT VALID;
         GRANT SELECT ON notes TO PUBLIC",
    )
    .execute(&mut owner)
    .await
    .unwrap();
    sqlx::Connection::close(owner).await.unwrap();
    let sealer = Sealer::new(&MasterKey::new([7; 32]));
    let report = opened
        .store
        .audit(&sealer, |_| true, &|_| ())
        .await
        .unwrap();
    let broken = report.findings.iter().filter(|one| one.count > 0);
    let broken: Vec<_> = broken.map(|one| (one.invariant, &*one.breaches)).collect();
    let breaches = ["test/unknown in notes refers to no row of partners".to_owned()];
    assert_eq!(broken, [("rows-refer-to-rows", &breaches[..])]);
}
