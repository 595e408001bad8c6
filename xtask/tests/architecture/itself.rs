//! Tests that each check of the architecture can fail.

use super::{Dependency, Package, faults_of, serializes};

fn package(name: &str, dependency: &str, ours: bool, for_tests: bool) -> Package {
    let dependencies = vec![Dependency {
        name: dependency.into(),
        ours,
        for_tests,
    }];
    Package {
        name: name.into(),
        dependencies,
    }
}

#[test]
fn crate_outside_the_table_fails() {
    assert_eq!(
        faults_of(&package("newcomer", "serde", false, false)).len(),
        1
    );
}

#[test]
fn import_against_the_direction_fails() {
    assert_eq!(
        faults_of(&package("kernel", "pools-core", true, false)).len(),
        1
    );
    assert_eq!(
        faults_of(&package("pools-http", "store-sqlite", true, false)).len(),
        1
    );
    assert!(faults_of(&package("pools-http", "pools-core", true, false)).is_empty());
}

#[test]
fn test_crate_is_for_tests_only() {
    assert_eq!(
        faults_of(&package("store-sqlite", "test-support", true, false)).len(),
        1
    );
    assert!(faults_of(&package("store-sqlite", "test-support", true, true)).is_empty());
    assert_eq!(faults_of(&package("runtime", "crash", true, true)).len(), 1);
}

#[test]
fn owned_crate_stays_with_its_owner() {
    assert_eq!(
        faults_of(&package("runtime", "sqlx", false, false)).len(),
        1
    );
    assert_eq!(faults_of(&package("runtime", "sqlx", false, true)).len(), 1);
    assert!(faults_of(&package("store-sqlite", "sqlx", false, false)).is_empty());
    assert!(faults_of(&package("acceptance", "axum", false, false)).is_empty());
}

#[test]
fn core_uses_its_pure_crates_only() {
    assert_eq!(
        faults_of(&package("pools-core", "tokio", false, false)).len(),
        1
    );
    assert!(faults_of(&package("pools-core", "tokio", false, true)).is_empty());
    assert_eq!(
        faults_of(&package("kernel", "serde", false, false)).len(),
        1
    );
    assert!(faults_of(&package("kernel", "chrono", false, false)).is_empty());
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
