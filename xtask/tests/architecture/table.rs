//! Which crate may import which, with the reason.

use super::Imports::{Anything, Only};
use super::Row;

pub(super) const TABLE: &[Row] = &[
    Row {
        name: "kernel",
        imports: Only(""),
        pure: Some(
            "bech32 bs58 chrono hex iso_currency ruint rust_decimal sha2 sha3 thiserror ulid",
        ),
        tests: "",
        because: "values only, including addresses with the digests that check them; every crate depends on it, so it depends on none",
    },
    Row {
        name: "partner-core",
        imports: Only("kernel"),
        pure: Some(
            "async-trait base64 chacha20poly1305 hex hkdf hmac httpdate icu_normalizer icu_properties ipnet rust_decimal secrecy serde serde_json sha2 strsim thiserror toml tracing ulid unicase url zeroize",
        ),
        tests: "",
        because: "what every product shares about partners, including the Unicode tables that compare typed texts; it knows no product",
    },
    Row {
        name: "pools-core",
        imports: Only("kernel partner-core"),
        pure: Some("async-trait hex ruint rust_decimal serde serde_json sha2 thiserror tracing"),
        tests: "",
        because: "the money rules: tested without a database, a network or a clock",
    },
    Row {
        name: "gate-core",
        imports: Only("kernel partner-core"),
        pure: Some(
            "async-trait base64 fluent-uri hex hmac iban_validate iso3166-static jsonwebtoken rust_decimal secrecy serde serde_json serde_json_canonicalizer sha2 signature strum subtle thiserror tracing url uuid",
        ),
        tests: "",
        because: "the session rules: tested without a database, a network or a clock",
    },
    Row {
        name: "provisioning",
        imports: Only("kernel partner-core pools-core gate-core"),
        pure: Some("async-trait iban_validate rust_decimal secrecy thiserror"),
        tests: "",
        because: "the declarative file has entries of every product, so this crate is above the cores; the services do not use it",
    },
    Row {
        name: "instruments",
        imports: Only("kernel"),
        pure: None,
        tests: "",
        because: "adapters of every kind call it and have failpoints, so it knows no adapter and no product; cores have no failpoints",
    },
    Row {
        name: "store-sql",
        imports: Only("kernel partner-core pools-core gate-core provisioning instruments"),
        pure: None,
        tests: "",
        because: "the statements and rows of an entity mean the same in every store, and its writes have failpoints; it knows no driver and no store",
    },
    Row {
        name: "store-postgres",
        imports: Only(
            "kernel partner-core pools-core gate-core provisioning store-sql instruments",
        ),
        pure: None,
        tests: "test-support",
        because: "implements the cores' ports and knows no caller",
    },
    Row {
        name: "store-sqlite",
        imports: Only(
            "kernel partner-core pools-core gate-core provisioning store-sql instruments",
        ),
        pure: None,
        tests: "test-support",
        because: "implements the cores' ports and knows no caller",
    },
    Row {
        name: "coordination",
        imports: Only("kernel partner-core instruments"),
        pure: None,
        tests: "test-support",
        because: "shared state outside the database decides nothing about money, so it knows no product",
    },
    Row {
        name: "providers",
        imports: Only("kernel partner-core pools-core gate-core instruments"),
        pure: None,
        tests: "test-support",
        because: "implements the ports for upstreams",
    },
    Row {
        name: "webhooks",
        imports: Only("kernel partner-core instruments"),
        pure: None,
        tests: "pools-core store-sqlite",
        because: "delivers what the port of the queue claims and decides nothing about money, so it knows no product",
    },
    Row {
        name: "http-kit",
        imports: Only("kernel partner-core instruments"),
        pure: None,
        tests: "",
        because: "the HTTP code that all APIs share; it knows no product",
    },
    Row {
        name: "pools-http",
        imports: Only("kernel partner-core pools-core http-kit instruments"),
        pure: None,
        tests: "",
        because: "wire shapes and routes; it sees use cases and never a store",
    },
    Row {
        name: "gate-http",
        imports: Only("kernel partner-core gate-core http-kit instruments"),
        pure: None,
        tests: "",
        because: "wire shapes and routes; it sees use cases and never a store",
    },
    Row {
        name: "runtime",
        imports: Only(
            "kernel partner-core pools-core gate-core provisioning store-postgres store-sqlite coordination providers webhooks http-kit instruments",
        ),
        pure: None,
        tests: "pools-http test-support",
        because: "opens the adapters and runs a service program; it knows listeners, but no routes",
    },
    Row {
        name: "pools-service",
        imports: Only("kernel partner-core pools-core http-kit pools-http runtime instruments"),
        pure: None,
        tests: "provisioning test-support",
        because: "joins one API to the runtime; it names no adapter",
    },
    Row {
        name: "gate-service",
        imports: Only("kernel partner-core gate-core http-kit gate-http runtime instruments"),
        pure: None,
        tests: "test-support",
        because: "joins one API to the runtime; it names no adapter",
    },
    Row {
        name: "penstock",
        imports: Only(
            "kernel partner-core pools-core gate-core provisioning http-kit pools-service gate-service runtime",
        ),
        pure: None,
        tests: "test-support",
        because: "the command line calls use cases and whole services, not the routes of one",
    },
    Row {
        name: "test-support",
        imports: Only(
            "kernel partner-core pools-core gate-core provisioning store-postgres providers",
        ),
        pure: None,
        tests: "",
        because: "the contract of the ports must not know which store it runs against; a test database has the Postgres store's schema, and the engine the published contract",
    },
    Row {
        name: "acceptance",
        imports: Anything,
        pure: None,
        tests: "",
        because: "tests the whole wiring",
    },
    Row {
        name: "model-check",
        imports: Only("kernel partner-core pools-core"),
        pure: None,
        tests: "",
        because: "explores the cores with its own ports; it uses no adapter, so that it stays small and fast",
    },
    Row {
        name: "reference-page",
        imports: Only("http-kit"),
        pure: None,
        tests: "pools-http gate-http",
        because: "renders the documents of any service; its test compares the pages of both, and no program renders one",
    },
    Row {
        name: "crash",
        imports: Anything,
        pure: None,
        tests: "",
        because: "kills the programs and checks them from outside",
    },
    Row {
        name: "xtask",
        imports: Only(""),
        pure: None,
        tests: "",
        because: "builds in seconds and still runs when the product does not compile",
    },
];
