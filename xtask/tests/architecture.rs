//! Who may import what, and what a core may never contain. The tables below are the rule; the manifests and sources are
//! compared with them, so a new crate or a new import is a decision made here, in the open.

use std::collections::BTreeSet;

use xtask::source::{has_word, product_code};
use xtask::workspace::Workspace;

#[path = "architecture/table.rs"]
mod table;

/// What a crate may import; lists are words with spaces between.
struct Row {
    name: &'static str,
    /// Crates of this workspace it may import.
    imports: Imports,
    /// Where given, the only external crates it may import.
    pure: Option<&'static str>,
    /// Crates of this workspace that only its tests may import.
    tests: &'static str,
    because: &'static str,
}

enum Imports {
    Only(&'static str),
    /// A test or measuring crate; nothing may import it in turn.
    Anything,
}

use Imports::{Anything, Only};
use table::TABLE;

/// Crates that exist for tests: no crate may need them to be built.
const FOR_TESTS_ONLY: &[&str] = &[
    "acceptance",
    "crash",
    "model-check",
    "reference-page",
    "test-support",
];

/// External crates that only the named crates may use, so that each technology has one home. `acceptance` and `crash` may use all.
const OWNED: &[(&str, &[&str], &str)] = &[
    (
        "sqlx",
        &["store-postgres", "store-sqlite", "test-support"],
        "SQL belongs to the stores, and to what makes databases for their tests",
    ),
    ("redis", &["coordination"], "Redis belongs to coordination"),
    ("moka", &["coordination"], "a cache is shared state"),
    (
        "hyper-rustls",
        &["providers"],
        "calls to the operator's upstreams belong to the providers",
    ),
    (
        "axum",
        &["gate-http", "http-kit", "pools-http"],
        "HTTP belongs to the HTTP crates",
    ),
    (
        "utoipa",
        &["gate-http", "http-kit", "pools-http", "providers"],
        "a published contract is made where its shapes are: by the HTTP crates, and for an engine by the adapter that asks it",
    ),
    (
        "utoipa-axum",
        &["gate-http", "http-kit", "pools-http"],
        "the published contract belongs to the HTTP crates",
    ),
    (
        "tower",
        &["gate-http", "http-kit", "pools-http"],
        "middleware belongs to the HTTP crates",
    ),
    (
        "tower-http",
        &["http-kit"],
        "middleware belongs to the HTTP crates",
    ),
    (
        "hyper",
        &["http-kit", "penstock", "providers", "webhooks"],
        "one listener; the command line is a client of it, the worker one of the endpoints, the providers of upstreams",
    ),
    (
        "hyper-util",
        &["http-kit", "penstock", "providers", "webhooks"],
        "one listener; the command line is a client of it, the worker one of the endpoints, the providers of upstreams",
    ),
    (
        "fail",
        &["instruments"],
        "crash points are named in one place",
    ),
    (
        "prometheus-client",
        &["instruments"],
        "metrics have one home, so that their names do",
    ),
    (
        "hickory-resolver",
        &["webhooks"],
        "names of endpoints are looked up in one place, and judged there",
    ),
    (
        "tokio-rustls",
        &["webhooks"],
        "TLS towards endpoints has one home",
    ),
    (
        "rustls",
        &["coordination", "providers", "runtime", "webhooks"],
        "one home each for TLS to endpoints, to upstreams and to the collector of traces; the Redis driver needs a provider of cryptography",
    ),
    (
        "rustls-native-certs",
        &["providers", "runtime", "webhooks"],
        "one home each for TLS to endpoints, to upstreams and to the collector of traces",
    ),
    (
        "ureq",
        &["runtime"],
        "the exporter of traces runs on a thread without a runtime",
    ),
    (
        "clap",
        &["penstock", "runtime"],
        "arguments are read by the programs",
    ),
    (
        "mimalloc",
        &["gate-service", "penstock", "pools-service"],
        "a program chooses its allocator",
    ),
    (
        "tracing-subscriber",
        &["runtime"],
        "libraries emit, the runtime decides where it goes",
    ),
    (
        "tracing-opentelemetry",
        &["runtime"],
        "libraries make spans, the runtime decides where they go",
    ),
    (
        "opentelemetry",
        &["runtime"],
        "libraries make spans, the runtime decides where they go",
    ),
    (
        "opentelemetry-otlp",
        &["runtime"],
        "libraries make spans, the runtime decides where they go",
    ),
    (
        "getrandom",
        &["runtime"],
        "one implementation of the `Entropy` port",
    ),
    (
        "chacha20poly1305",
        &["partner-core"],
        "sealing has one home",
    ),
    ("hkdf", &["partner-core"], "sealing has one home"),
    (
        "icu_normalizer",
        &["partner-core"],
        "texts that must be unique are compared in one place",
    ),
    (
        "icu_properties",
        &["partner-core"],
        "texts that must be unique are checked in one place",
    ),
    (
        "unicase",
        &["partner-core"],
        "texts that must be unique are compared in one place",
    ),
    (
        "hmac",
        &["gate-core", "partner-core"],
        "events are signed in partner-core, embed tokens in gate-core",
    ),
    (
        "jsonwebtoken",
        &["gate-core"],
        "embed tokens belong to the gate",
    ),
    (
        "signature",
        &["gate-core"],
        "embed tokens belong to the gate",
    ),
];

/// Test tools any crate's tests may use; a core's tests may run their futures on tokio, the core itself may not.
const TEST_TOOLS: &[&str] = &[
    "bolero",
    "insta",
    "jsonschema",
    "mockall",
    "proptest",
    "tempfile",
    "tokio",
    "tracing-subscriber",
];

const CORES: &[&str] = &[
    "kernel",
    "partner-core",
    "pools-core",
    "gate-core",
    "provisioning",
];

/// What a core's code never says, with what it says instead.
const NEVER_IN_A_CORE: &[(&str, &str)] = &[
    ("tokio", "a core starts nothing and waits on its ports only"),
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

/// A dependency as cargo reads it from a manifest: renamed or not, the package's own name.
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
            "{}: not in the table; add its row and the reason for it",
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
    if dependency.for_tests && TEST_TOOLS.contains(&name) {
        return None;
    }
    if let Some((_, owners, reason)) = OWNED.iter().find(|(owned, ..)| *owned == name)
        && !owners.contains(&row.name)
    {
        return Some(format!("only {} may: {reason}", owners.join(", ")));
    }
    let listed = row.pure.is_none_or(|pure| lists(pure, name));
    (!listed).then(|| "a core uses the pure crates of its row only".to_owned())
}

/// The product sources of a core, as code without comments, strings and unit tests.
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

/// Whether the code gives a type a wire shape, derived or written by hand.
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
            let wrong = FOR_TESTS_ONLY.iter().filter(|name| lists(allowed, name));
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
                    "{file}: `Serialize` belongs to events.rs, other wire shapes to the HTTP crates"
                ));
            }
        }
    }
    none(&faults);
}

#[path = "architecture/itself.rs"]
mod the_checks_themselves;
