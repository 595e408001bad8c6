//! Checks which crate may import which, and what a core must not contain. The tests compare the manifests and sources with the tables of
//! this file and of `architecture/table.rs`, so every new crate and every new import needs an entry there.

use std::collections::BTreeSet;

use xtask::source::{has_word, product_code};
use xtask::workspace::Workspace;

#[path = "architecture/table.rs"]
mod table;

/// The crates that a crate may import. Lists are words separated by spaces.
struct Row {
    name: &'static str,
    /// Crates of this workspace that it may import.
    imports: Imports,
    /// The only external crates that it may import; `None` allows all.
    pure: Option<&'static str>,
    /// Crates of this workspace that only its tests may import.
    tests: &'static str,
    because: &'static str,
}

enum Imports {
    Only(&'static str),
    /// A test or benchmark crate, which no crate may import.
    Anything,
}

use Imports::{Anything, Only};
use table::TABLE;

/// Crates that exist for tests. The build of a product crate must not need them.
const FOR_TESTS_ONLY: &str = "acceptance crash model-check reference-page test-support";

/// External crates, the only crates that may use them, and the reason. `acceptance` and `crash` may use all.
const OWNED: &[(&str, &str, &str)] = &[
    (
        "sqlx",
        "store-postgres store-sqlite test-support",
        "SQL belongs to the stores, and to the crate that creates their test databases",
    ),
    ("redis", "coordination", "Redis belongs to coordination"),
    ("moka", "coordination", "a cache is shared state"),
    (
        "hyper-rustls",
        "providers",
        "calls to the operator's upstreams belong to the providers",
    ),
    (
        "axum utoipa-axum tower",
        "gate-http http-kit pools-http",
        "HTTP, its middleware and the published contract belong to the HTTP crates",
    ),
    (
        "utoipa",
        "gate-http http-kit pools-http providers",
        "the crate with the wire shapes publishes the contract: an HTTP crate, or the adapter of an upstream",
    ),
    (
        "tower-http",
        "http-kit",
        "middleware belongs to the HTTP crates",
    ),
    (
        "hyper hyper-util",
        "http-kit penstock providers webhooks",
        "one listener; the command line is a client of it, the worker one of the endpoints, the providers of upstreams",
    ),
    ("fail", "instruments", "crash points are named in one place"),
    (
        "prometheus-client",
        "instruments",
        "one crate names all metrics",
    ),
    (
        "hickory-resolver",
        "webhooks",
        "one crate resolves and checks the names of endpoints",
    ),
    (
        "tokio-rustls",
        "webhooks",
        "one crate opens TLS connections to endpoints",
    ),
    (
        "rustls",
        "coordination providers runtime webhooks",
        "one crate each opens TLS connections to endpoints, to upstreams and to the trace collector; the Redis driver needs a cryptography provider",
    ),
    (
        "rustls-native-certs",
        "providers runtime webhooks",
        "one crate each opens TLS connections to endpoints, to upstreams and to the trace collector",
    ),
    (
        "ureq",
        "runtime",
        "the exporter of traces runs on a thread without a runtime",
    ),
    ("clap", "penstock runtime", "the programs read arguments"),
    (
        "mimalloc",
        "gate-service penstock pools-service",
        "a program chooses its allocator",
    ),
    (
        "tracing-subscriber",
        "runtime",
        "libraries emit log lines, the runtime chooses their destination",
    ),
    (
        "tracing-opentelemetry opentelemetry opentelemetry-otlp",
        "runtime",
        "libraries make spans, the runtime decides where they go",
    ),
    (
        "getrandom",
        "runtime",
        "one implementation of the `Entropy` port",
    ),
    (
        "chacha20poly1305 hkdf",
        "partner-core",
        "sealing has one home",
    ),
    (
        "icu_normalizer icu_properties unicase",
        "partner-core",
        "texts that must be unique are checked and compared in one place",
    ),
    (
        "hmac",
        "gate-core partner-core",
        "events are signed in partner-core, embed tokens in gate-core",
    ),
    (
        "jsonwebtoken signature",
        "gate-core",
        "embed tokens belong to the gate",
    ),
];

/// Test tools that the tests of every crate may use. The tests of a core may run futures on tokio, the core itself must not.
const TEST_TOOLS: &str =
    "bolero insta jsonschema mockall proptest tempfile tokio tracing-subscriber";

const CORES: &[&str] = &[
    "kernel",
    "partner-core",
    "pools-core",
    "gate-core",
    "provisioning",
];

/// Words that the code of a core must not contain, with the replacement.
const NEVER_IN_A_CORE: &[(&str, &str)] = &[
    (
        "tokio",
        "a core starts no task and waits only for its ports",
    ),
    ("sqlx", "a store's types stay in the store"),
    ("axum", "HTTP stays in the HTTP crates"),
    ("Utc::now", "take a `Timestamp`"),
    ("SystemTime::now", "take a `Timestamp`"),
    ("Instant::now", "take a `Timestamp`"),
    ("rand::", "take the `Entropy` port"),
    ("getrandom", "take the `Entropy` port"),
    (
        "HashMap",
        "use a BTreeMap: its order is the same in every run",
    ),
    (
        "HashSet",
        "use a BTreeSet: its order is the same in every run",
    ),
];

/// A dependency of a manifest, under the name of its package even if it is renamed.
struct Dependency {
    name: String,
    ours: bool,
    for_tests: bool,
}

struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

type Result<T> = xtask::Result<T>;

fn packages() -> Result<Vec<Package>> {
    let metadata = Workspace::find()?.metadata()?;
    let listed = metadata
        .get("packages")
        .and_then(|list| list.as_array())
        .ok_or("cargo metadata lists no packages")?;
    listed.iter().map(package).collect()
}

fn package(value: &serde_json::Value) -> Result<Package> {
    let name = value["name"]
        .as_str()
        .ok_or("a package without name")?
        .to_owned();
    let listed = value["dependencies"]
        .as_array()
        .ok_or("a package without dependencies")?;
    let dependencies = listed.iter().map(dependency).collect::<Result<_>>()?;
    Ok(Package { name, dependencies })
}

fn dependency(value: &serde_json::Value) -> Result<Dependency> {
    Ok(Dependency {
        name: value["name"]
            .as_str()
            .ok_or("a dependency without name")?
            .to_owned(),
        ours: value["path"].is_string(),
        for_tests: value["kind"] == "dev",
    })
}

fn row(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}

fn faults_of(package: &Package) -> Vec<String> {
    let Some(row) = row(&package.name) else {
        return vec![format!(
            "{}: not in the table; add a row with its reason",
            package.name
        )];
    };
    package
        .dependencies
        .iter()
        .filter_map(|dependency| fault(row, dependency))
        .collect()
}

fn fault(row: &Row, dependency: &Dependency) -> Option<String> {
    let problem = match (dependency.ours, &row.imports) {
        (_, Anything) => None,
        (true, Only(allowed)) => ours(row, allowed, dependency),
        (false, Only(_)) => external(row, dependency),
    };
    problem.map(|problem| format!("{} -> {}: {problem}", row.name, dependency.name))
}

fn ours(row: &Row, allowed: &str, dependency: &Dependency) -> Option<String> {
    let name = dependency.name.as_str();
    if lists(allowed, name) || dependency.for_tests && lists(row.tests, name) {
        return None;
    }
    Some(format!("not allowed: {}", row.because))
}

fn lists(words: &str, name: &str) -> bool {
    words.split_whitespace().any(|word| word == name)
}

fn external(row: &Row, dependency: &Dependency) -> Option<String> {
    let name = dependency.name.as_str();
    if dependency.for_tests && lists(TEST_TOOLS, name) {
        return None;
    }
    if let Some((_, owners, reason)) = OWNED.iter().find(|(owned, ..)| lists(owned, name))
        && !lists(owners, row.name)
    {
        return Some(format!("only {owners} may: {reason}"));
    }
    let listed = row.pure.is_none_or(|pure| lists(pure, name));
    (!listed).then(|| "a core may use only the pure crates of its row".to_owned())
}

/// Returns the product sources of a core without comments, strings and unit tests.
fn core_sources(core: &str) -> Result<Vec<(String, String)>> {
    let workspace = Workspace::find()?;
    let folder = format!("crates/{core}/src/");
    let mut sources = Vec::new();
    for file in workspace.files()? {
        let is_test =
            file.ends_with("/tests.rs") || file.ends_with("_tests.rs") || file.contains("/tests/");
        if file.starts_with(&folder) && file.ends_with(".rs") && !is_test {
            let text = workspace
                .text(&file)?
                .ok_or_else(|| format!("{file} is not UTF-8"))?;
            sources.push((file, product_code(&text)));
        }
    }
    Ok(sources)
}

/// Returns whether the code implements `Serialize` for a type, by a derive or by hand.
fn serializes(code: &str) -> bool {
    let derived = code.split("derive(").skip(1).any(|rest| {
        let list = rest.split(')').next().unwrap_or_default();
        has_word(list, "Serialize")
    });
    derived
        || code
            .lines()
            .any(|line| has_word(line, "impl") && line.contains("Serialize for "))
}

fn none(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn every_import_is_in_the_table() {
    let packages = packages().unwrap();
    none(&packages.iter().flat_map(faults_of).collect::<Vec<_>>());
}

#[test]
fn table_names_existing_crates_only() {
    let names: BTreeSet<String> = packages()
        .unwrap()
        .into_iter()
        .map(|package| package.name)
        .collect();
    let gone: Vec<String> = TABLE
        .iter()
        .filter(|row| !names.contains(row.name))
        .map(|row| format!("{}: no such crate", row.name))
        .collect();
    none(&gone);
}

#[test]
fn product_crates_import_no_test_crate() {
    let mut faults = Vec::new();
    for row in TABLE {
        if let Only(allowed) = row.imports {
            let wrong = FOR_TESTS_ONLY
                .split(' ')
                .filter(|name| lists(allowed, name));
            faults.extend(wrong.map(|name| format!("{} allows {name}", row.name)));
        }
    }
    none(&faults);
}

#[test]
fn cores_know_no_runtime_no_clock_and_no_chance() {
    let mut faults = Vec::new();
    for core in CORES {
        for (file, code) in core_sources(core).unwrap() {
            for (number, line) in code.lines().enumerate() {
                let found = NEVER_IN_A_CORE
                    .iter()
                    .filter(|(word, _)| has_word(line, word));
                faults.extend(
                    found.map(|(word, instead)| {
                        format!("{file}:{}: `{word}`: {instead}", number + 1)
                    }),
                );
            }
        }
    }
    none(&faults);
}

#[test]
fn only_events_of_a_core_have_a_wire_shape() {
    let mut faults = Vec::new();
    for core in ["partner-core", "pools-core", "gate-core", "provisioning"] {
        for (file, code) in core_sources(core).unwrap() {
            let events = file.ends_with("/events.rs") || file.contains("/events/");
            if !events && serializes(&code) {
                faults.push(format!(
                    "{file}: in a core only events.rs implements `Serialize`; other wire shapes belong to the HTTP crates"
                ));
            }
        }
    }
    none(&faults);
}

#[path = "architecture/itself.rs"]
mod the_checks_themselves;
