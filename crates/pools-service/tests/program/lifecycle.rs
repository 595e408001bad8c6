//! The program's output, its listener and its shutdown.

use std::time::Duration;

use crate::served::{POOLS, eventually, file_for_acme, last_uses, provision, quote, text};

// rule: program.serve-default, program.listening-line, program.logs, config.embedded-migrates, base.installation-named
#[test]
fn pools_service_serves_from_empty_folder_and_shuts_down() {
    let folder = tempfile::tempdir().unwrap();
    let served = POOLS.start(folder.path(), &[]);
    assert!(served.get("/health").starts_with("HTTP/1.1 200"));
    let ready = || served.get("/health/ready").contains(r#""database":"ok""#);
    eventually(|| ready().then_some(()));
    let refused = served.get("/v1/pools");
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let page = format!("http://{}/docs#unauthorized", served.address);
    assert!(refused.contains(&page), "{refused}");
    assert!(served.get("/docs").contains(" id=\"unauthorized\""));
    let (code, logged) = served.end("-INT");
    assert_eq!(code, Some(0), "{logged}");
    for line in logged.lines() {
        assert!(line.starts_with("{\"timestamp\":"), "{line}");
    }
    let file = folder.path().join("penstock-data/penstock.db");
    let opened = logged
        .lines()
        .find(|line| line.contains("Opened the database"));
    for part in [
        "\"mode\":\"test\"",
        "\"database.kind\":\"sqlite\"",
        &format!("\"database.name\":\"{}\"", file.display()),
    ] {
        assert!(
            opened.is_some_and(|line| line.contains(part)),
            "{part}: {logged}"
        );
    }
    assert!(folder.path().join("penstock-data/master.key").exists());
}

// rule: program.shutdown
#[test]
fn closed_terminal_stops_the_service_as_a_termination_does() {
    let folder = tempfile::tempdir().unwrap();
    let (code, logged) = POOLS.start(folder.path(), &[]).end("-HUP");
    assert_eq!(code, Some(0), "{logged}");
    assert!(logged.contains("\"process.signal\":\"SIGHUP\""), "{logged}");
}

// rule: config.library-settings
#[test]
fn wrong_setting_of_a_library_stops_the_service_before_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["serve", "config"] {
        for (name, value, message) in [
            (
                "RUST_LOG",
                "warning",
                "RUST_LOG: expected levels such as info",
            ),
            (
                "SSL_CERT_FILE",
                "nowhere.pem",
                "SSL_CERT_FILE: expected a file with certificates",
            ),
        ] {
            let mut program = POOLS.command(folder.path(), &[]);
            let ended = program.arg(command).env(name, value).output().unwrap();
            let stderr = text(&ended.stderr);
            assert_eq!(ended.status.code(), Some(2), "{command}: {stderr}");
            assert!(stderr.starts_with(message), "{command}: {stderr}");
            assert_eq!(stderr.lines().count(), 1, "{command}: {stderr}");
        }
    }
    let left = std::fs::read_dir(folder.path()).unwrap();
    assert_eq!(left.count(), 0, "nothing is created");
}

// rule: cli.output-written
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    for words in ["openapi", "config", "migrate", "--help", "--version"] {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let mut program = POOLS.command(folder.path(), &[]);
        let ended = program.arg(words).stdout(full.unwrap()).output().unwrap();
        let stderr = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{words}: {stderr}");
        assert!(
            stderr.contains("cannot write to stdout ("),
            "{words}: {stderr}"
        );
    }
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
        let ended = POOLS.output(folder.path(), &[command], &[("DATABASE_URL", &url)]);
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
    let served = POOLS.start_after(folder.path(), "trap '' XFSZ", &[]);
    let status = || served.get("/health/ready")[..12].to_owned();
    eventually(|| (status() == "HTTP/1.1 200").then_some(()));
    served.limit("--fsize=1:");
    eventually(|| (status() == "HTTP/1.1 503").then_some(()));
    assert!(served.get("/health").starts_with("HTTP/1.1 200"));
    for part in [
        "The database takes no writes",
        "penstock.db fails to read or write: check the disk",
    ] {
        eventually(|| served.logged().contains(part).then_some(()));
    }
    served.limit("--fsize=unlimited:");
    eventually(|| (status() == "HTTP/1.1 200").then_some(()));
    let (code, logged) = served.end("-TERM");
    assert_eq!(code, Some(0), "{logged}");
}

// rule: auth.last-use
#[test]
fn last_use_of_key_is_stored_at_most_once_a_minute() {
    const SECRET: &str = "sk_test_LastLastLastLastLastLastLastLast";
    let folder = tempfile::tempdir().unwrap();
    provision(folder.path(), &[], &file_for_acme(SECRET, None));
    assert_eq!(last_uses(folder.path()), [None]);
    let served = POOLS.start(folder.path(), &[]);
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
    let served = POOLS.start(folder.path(), &[("QUOTE_TTL", "1s")]);
    let old = quote(&served, &headers, "10.00");
    let path = format!("GET /v1/pools/quotes/{old}");
    let kept = served.send(&path, &headers, "");
    assert!(kept.starts_with("HTTP/1.1 200"), "{kept}");
    assert_eq!(served.end("-TERM").0, Some(0));
    // A service sweeps at its start and each minute.
    std::thread::sleep(Duration::from_millis(2_500));
    let served = POOLS.start(folder.path(), &[("QUOTE_RETENTION", "1s")]);
    eventually(|| {
        let gone = served.send(&path, &headers, "");
        gone.starts_with("HTTP/1.1 404").then_some(())
    });
    assert_eq!(served.end("-TERM").0, Some(0));
}
