//! Tests that each check of the architecture can fail.

use super::{Dependency, Package, faults_of, serializes};

/// Whether a package may have a dependency, which is a crate of this workspace or an external one.
fn may_import(package: &str, dependency: &str, ours: bool, for_tests: bool) -> bool {
    let dependency = Dependency {
        name: dependency.into(),
        ours,
        for_tests,
    };
    let package = Package {
        name: package.into(),
        dependencies: vec![dependency],
    };
    faults_of(&package).is_empty()
}

#[test]
fn crate_outside_the_table_fails() {
    assert!(!may_import("newcomer", "serde", false, false));
}

#[test]
fn import_against_the_direction_fails() {
    assert!(!may_import("kernel", "pools-core", true, false));
    assert!(!may_import("pools-http", "store-sqlite", true, false));
    assert!(may_import("pools-http", "pools-core", true, false));
}

#[test]
fn test_crate_is_for_tests_only() {
    assert!(!may_import("store-sqlite", "test-support", true, false));
    assert!(may_import("store-sqlite", "test-support", true, true));
    assert!(!may_import("runtime", "crash", true, true));
}

#[test]
fn owned_crate_stays_with_its_owner() {
    assert!(!may_import("runtime", "sqlx", false, false));
    assert!(!may_import("runtime", "sqlx", false, true));
    assert!(may_import("store-sqlite", "sqlx", false, false));
    assert!(may_import("acceptance", "axum", false, false));
}

#[test]
fn core_uses_its_pure_crates_only() {
    assert!(!may_import("pools-core", "tokio", false, false));
    assert!(may_import("pools-core", "tokio", false, true));
    assert!(!may_import("kernel", "serde", false, false));
    assert!(may_import("kernel", "chrono", false, false));
}

#[test]
fn derived_and_written_shapes_are_both_found() {
    assert!(serializes("#[derive(Debug,\n    Serialize)]\nstruct A;"));
    assert!(serializes("impl serde::Serialize for A {"));
    assert!(serializes("#[derive(serde::Serialize)]"));
    assert!(!serializes(
        "#[derive(Debug, Deserialize)]\nfn f<T: Serialize>(x: T) {}"
    ));
}
