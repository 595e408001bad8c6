//! The program's output, its listener and its shutdown.

use std::time::Duration;

use crate::served::{Served, eventually, file_for_acme, last_uses, output, provision, quote, text};

// rule: program.serve-default, program.listening-line, program.logs, config.embedded-migrates
#[test]
fn pools_service_serves_from_empty_folder_and_shuts_down() {
    let folder = tempfile::tempdir().unwrap();
    for signal in ["-TERM", "-INT"] {
        let served = Served::start(folder.path(), &[]);
        assert!(served.get("/health").starts_with("HTTP/1.1 200"));
        let ready = || served.get("/health/ready").contains(r#""database":"ok""#);
        eventually(|| ready().then_some(()));
        let refused = served.get("/v1/pools");
        assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
        let page = format!("http://{}/docs#unauthorized", served.address);
        assert!(refused.contains(&page), "{refused}");
        let reference = served.get("/docs");
        assert!(reference.contains(" id=\"unauthorized\""));
        assert_ids_are_unique(&reference);
        let (code, logged) = served.end(signal);
        assert_eq!(code, Some(0), "{logged}");
        for line in logged.lines() {
            assert!(line.starts_with("{\"timestamp\":"), "{line}");
        }
    }
    assert!(folder.path().join("penstock-data/master.key").exists());
}

// rule: cli.foreign-database
#[test]
fn pools_service_refuses_database_of_another_program_unchanged() {
    let notes = include_bytes!("../../../penstock/tests/cli/notes.sqlite");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    std::fs::write(&path, notes).unwrap();
    let url = format!("sqlite://{}", path.display());
    for command in ["serve", "migrate"] {
        let ended = output(folder.path(), &[command], &[("DATABASE_URL", &url)]);
        let stderr = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{command}: {stderr}");
        for part in [
            "PENSTOCK_DATABASE_URL: expected a Penstock database",
            "notes.db is no Penstock database: it has the table `notes`",
        ] {
            assert!(stderr.contains(part), "{command}: {part}: {stderr}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), notes, "{command}");
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 1, "{command}");
    }
}

// rule: base.database-readiness, health.ready, cli.database-faults
#[test]
fn readiness_is_503_while_the_disk_takes_no_writes_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start_to_be_limited(folder.path());
    let status = || served.get("/health/ready")[..12].to_owned();
    eventually(|| (status() == "HTTP/1.1 200").then_some(()));
    served.limit_files("1");
    eventually(|| (status() == "HTTP/1.1 503").then_some(()));
    assert!(served.get("/health").starts_with("HTTP/1.1 200"));
    for part in [
        "The database takes no writes",
        "penstock.db fails to read or write: check the disk",
    ] {
        eventually(|| served.logged().contains(part).then_some(()));
    }
    served.limit_files("unlimited");
    eventually(|| (status() == "HTTP/1.1 200").then_some(()));
    let (code, logged) = served.end("-TERM");
    assert_eq!(code, Some(0), "{logged}");
}

/// Asserts that the ids of a page are unique.
fn assert_ids_are_unique(page: &str) {
    let ids = page.split(" id=\"").skip(1);
    let mut seen = std::collections::BTreeSet::new();
    for id in ids.filter_map(|rest| rest.split('"').next()) {
        assert!(seen.insert(id), "id={id:?} occurs twice");
    }
    assert!(seen.len() > 50, "{seen:?}");
}

// rule: auth.last-use
#[test]
fn last_use_of_key_is_stored_at_most_once_a_minute() {
    const SECRET: &str = "sk_test_LastLastLastLastLastLastLastLast";
    let folder = tempfile::tempdir().unwrap();
    provision(folder.path(), &[], &file_for_acme(SECRET, None));
    assert_eq!(last_uses(folder.path()), [None]);
    let served = Served::start(folder.path(), &[]);
    let bearer = format!("Bearer {SECRET}");
    let call = || served.send("GET /v1/pools", &[("Authorization", bearer.as_str())], "");
    assert!(call().starts_with("HTTP/1.1 200"));
    let mut first = None;
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(100));
        first = last_uses(folder.path())[0];
        if first.is_some() {
            break;
        }
    }
    assert!(first.is_some(), "the first use is stored within seconds");
    assert!(call().starts_with("HTTP/1.1 200"));
    let (code, logged) = served.end("-TERM");
    assert_eq!(code, Some(0), "{logged}");
    assert_eq!(
        last_uses(folder.path()),
        [first],
        "the last use is stored at most once a minute"
    );
}

// rule: pools.quote.retention
#[test]
fn unexecuted_quotes_are_deleted_after_their_retention() {
    const SECRET: &str = "sk_test_KeepKeepKeepKeepKeepKeepKeepKeep";
    let folder = tempfile::tempdir().unwrap();
    provision(folder.path(), &[], &file_for_acme(SECRET, None));
    let bearer = format!("Bearer {SECRET}");
    let headers = [("Authorization", bearer.as_str())];
    let served = Served::start(folder.path(), &[("QUOTE_TTL", "1s")]);
    let old = quote(&served, &headers, "10.00");
    let path = format!("GET /v1/pools/quotes/{old}");
    let kept = served.send(&path, &headers, "");
    assert!(kept.starts_with("HTTP/1.1 200"), "{kept}");
    assert_eq!(served.end("-TERM").0, Some(0));
    // A service sweeps at its start and each minute.
    std::thread::sleep(Duration::from_millis(2_500));
    let served = Served::start(folder.path(), &[("QUOTE_RETENTION", "1s")]);
    eventually(|| {
        let gone = served.send(&path, &headers, "");
        gone.starts_with("HTTP/1.1 404").then_some(())
    });
    assert_eq!(served.end("-TERM").0, Some(0));
}

// rule: program.bad-configuration, config.unknown-file-key
#[test]
fn pools_service_reports_every_configuration_error_and_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("penstock.toml");
    std::fs::write(&file, "quote_tll = \"7s\"\n").unwrap();
    let ended = output(
        folder.path(),
        &["--config", "penstock.toml"],
        &[("MODE", "prod"), ("POOLS_LISTEN", "4010")],
    );
    assert_eq!(ended.status.code(), Some(2));
    assert_eq!(text(&ended.stdout), "");
    let lines: Vec<&str> = text(&ended.stderr).lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].contains("quote_tll") && lines[0].contains("quote_ttl"));
    assert!(lines[1].starts_with("PENSTOCK_MODE: expected"));
    assert!(lines[2].starts_with("PENSTOCK_POOLS_LISTEN: expected"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let unknown = output(folder.path(), &["sevre"], &[]);
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn pools_service_exits_when_its_address_is_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = output(folder.path(), &[], &[("POOLS_LISTEN", &address)]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(text(&ended.stderr).contains("PENSTOCK_POOLS_LISTEN"));
}

// rule: program.config-masked, config.unknown-variable
#[test]
fn pools_service_prints_configuration_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let variables = [
        ("MASTER_KEY", key),
        ("QUOTE_TTL", "7s"),
        ("QUOTE_TLL", "7s"),
    ];
    let ended = output(folder.path(), &["config"], &variables);
    assert_eq!(ended.status.code(), Some(0));
    let printed = text(&ended.stdout);
    assert!(printed.contains("quote_ttl = \"7s\"\n"), "{printed}");
    assert!(!printed.contains(key), "{printed}");
    assert!(text(&ended.stderr).contains("PENSTOCK_QUOTE_TLL"));
}

// rule: program.openapi, program.migrate, base.master-key-mismatch
#[test]
fn pools_service_prints_contract_and_migrates() {
    let folder = tempfile::tempdir().unwrap();
    let printed = output(folder.path(), &["openapi"], &[("MODE", "prod")]);
    assert_eq!(printed.status.code(), Some(0));
    assert!(text(&printed.stdout).starts_with("openapi: "));
    for line in [
        "the database was empty; its schema is now version ",
        "the schema is already version ",
    ] {
        let migrated = output(folder.path(), &["migrate"], &[]);
        assert_eq!(migrated.status.code(), Some(0));
        let printed = text(&migrated.stdout);
        assert!(printed.starts_with(line), "{printed}");
    }
    assert!(folder.path().join("penstock-data/penstock.db").exists());
    let other_key = [("MASTER_KEY", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")];
    Served::start(folder.path(), &[]).end("-TERM");
    let refused = output(folder.path(), &["serve"], &other_key);
    assert_eq!(refused.status.code(), Some(2));
}
