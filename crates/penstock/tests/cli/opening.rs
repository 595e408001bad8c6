//! Which commands make a database, and what they say where there is none.

use std::os::unix::fs::PermissionsExt as _;

use crate::fixture::{ACME, Installation, POOL};

const LIVE_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn permissions(installation: &Installation, name: &str) -> u32 {
    let file = installation.folder.path().join(name);
    let about = std::fs::metadata(&file).unwrap();
    about.permissions().mode() & 0o777
}

fn files(installation: &Installation) -> Vec<String> {
    let entries = std::fs::read_dir(installation.folder.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != "file.toml").collect();
    names.sort();
    names
}

// rule: cli.exit-codes, cli.needs-a-database
#[test]
fn a_command_that_needs_a_database_makes_none() {
    let installation = Installation::in_a_file();
    for words in [
        "verify",
        "key list --partner acme",
        "key create --partner acme --kind secret",
        "key revoke --key-id key_test_01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "balance credit --partner acme --currency EUR --amount 1.00 --ref r",
        "crypto credit --partner acme --asset USDT --network tron --amount 1 --ref r",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let done = installation.run(&words);
        assert_eq!(done.code, 2, "{words:?}: {done:?}");
        assert!(done.err.contains("there is none at"), "{done:?}");
        assert_eq!(files(&installation), [""; 0], "{words:?}");
    }
}

// rule: cli.needs-a-database, apply.dry-run
#[test]
fn a_dry_run_shows_everything_and_makes_nothing() {
    let installation = Installation::in_a_file();
    let file = format!("{POOL}{ACME}");
    let done = installation.apply(&file, &["--dry-run"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.contains("partner acme: created"), "{done:?}");
    assert_eq!(files(&installation), [""; 0]);
    let done = installation.apply(&file, &[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(files(&installation), ["master.key", "penstock.db"]);
}

// rule: base.database-file, base.master-key-file
#[test]
fn the_database_is_its_owners_alone() {
    let installation = Installation::in_a_file();
    assert_eq!(installation.apply(POOL, &[]).code, 0);
    for name in ["master.key", "penstock.db"] {
        assert_eq!(permissions(&installation, name), 0o600, "{name}");
    }
    let file = installation.folder.path().join("penstock.db");
    let shared = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(&file, shared).unwrap();
    assert_eq!(installation.run(&["verify"]).code, 0);
    let kept = permissions(&installation, "penstock.db");
    assert_eq!(kept, 0o640, "what the operator chose stays");
}

// rule: base.master-key-lost
#[test]
fn a_lost_master_key_stops_every_command_and_no_other_is_made() {
    let installation = Installation::in_a_file();
    assert_eq!(installation.apply(POOL, &[]).code, 0);
    std::fs::remove_file(installation.folder.path().join("master.key")).unwrap();
    for words in [&["verify"][..], &["apply", "-f", "file.toml"]] {
        let done = installation.run(words);
        assert_eq!(done.code, 2, "{done:?}");
        let told = done.err.contains("master.key is missing: restore");
        assert!(told && done.err.contains("webhook secrets"), "{done:?}");
        assert_eq!(files(&installation), ["penstock.db"]);
    }
}

/// Limits are the services' business: a command counts no requests.
#[test]
fn nothing_is_said_of_redis() {
    let installation = Installation::in_a_file();
    let pool = format!("{POOL}native_addresses = true\n");
    assert_eq!(installation.apply(&pool, &[]).code, 0);
    std::fs::remove_file(installation.folder.path().join("penstock.db")).unwrap();
    let live = |words: &[&str]| {
        let mut program = installation.program(words);
        program
            .env("PENSTOCK_MODE", "live")
            .env("PENSTOCK_MASTER_KEY", LIVE_KEY);
        crate::fixture::ended(program.output().unwrap())
    };
    let done = live(&["apply", "-f", "file.toml"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    let done = live(&["verify"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
}

// rule: cli.exit-codes
#[test]
fn folder_that_cannot_be_written_is_named_with_the_remedy() {
    let installation = Installation::in_a_file();
    std::fs::write(installation.folder.path().join("file"), "").unwrap();
    let key = [("PENSTOCK_MASTER_KEY", LIVE_KEY)];
    let run = installation
        .program(&["sandbox", "--dir", "file/x"])
        .envs(key)
        .output();
    let done = crate::fixture::ended(run.unwrap());
    assert_eq!(done.code, 1, "{done:?}");
    for part in [
        "the database cannot be opened: ",
        "file/x/penstock.db: ",
        "--dir",
    ] {
        assert!(done.err.contains(part), "{part}: {done:?}");
    }
    assert!(!done.err.contains("the store is unavailable"), "{done:?}");
}
