//! Commands without a database, or with an unusable one: which commands create it, and what the others report.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::fixture::{ACME, Done, Installation, POOL, SHOP};

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
fn command_without_database_fails_and_creates_none() {
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
        assert!(done.err.contains("there is no file at"), "{done:?}");
        assert_eq!(files(&installation), [""; 0], "{words:?}");
    }
}

// rule: cli.needs-a-database, apply.dry-run
#[test]
fn dry_run_without_database_prints_changes_and_creates_nothing() {
    let installation = Installation::in_a_file();
    let file = format!("{POOL}{ACME}{SHOP}");
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
fn new_database_is_readable_only_by_its_owner() {
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
    assert_eq!(kept, 0o640, "the operator's mode of the file is kept");
}

// rule: config.database-path, config.trimmed, cli.exit-codes
#[test]
fn path_that_the_shell_would_have_changed_is_refused_and_creates_nothing() {
    let installation = Installation::in_a_file();
    let apply = ["apply", "-f", "file.toml"];
    assert_eq!(installation.apply(POOL, &[]).code, 0);
    let before = files(&installation);
    for (words, shown) in [
        (
            [&apply[..], &["--database-url", "sqlite://~/penstock.db"]].concat(),
            "--database-url: expected sqlite://<file>: `~` in the path is not expanded",
        ),
        (
            [
                &apply[..],
                &["--database-url", "sqlite://$HOME/penstock.db"],
            ]
            .concat(),
            "--database-url: expected sqlite://<file>: `$` in the path",
        ),
        (
            vec!["sandbox", "--check", "--dir=~/sandbox"],
            "--dir: `~` in the path is not expanded",
        ),
        (
            vec!["sandbox", "--check", "--dir", "sandbox "],
            "--dir: the part \"sandbox \" of the path begins or ends with white space",
        ),
    ] {
        let done = installation.run(&words);
        assert_eq!(done.code, 2, "{words:?}: {done:?}");
        assert!(done.err.starts_with(shown), "{words:?}: {done:?}");
        assert_eq!(files(&installation), before, "{words:?}");
    }
    let padded = format!(
        "sqlite://{}/penstock.db\n",
        installation.folder.path().display()
    );
    let done = installation.run(&[&apply[..], &["--database-url", &padded]].concat());
    assert!(done.out.starts_with("nothing to change"), "{done:?}");
    assert_eq!(files(&installation), before);
}

// rule: base.master-key-lost
#[test]
fn lost_master_key_stops_every_command_and_is_not_replaced() {
    let installation = Installation::in_a_file();
    assert_eq!(installation.apply(POOL, &[]).code, 0);
    std::fs::remove_file(installation.folder.path().join("master.key")).unwrap();
    for words in [&["verify"][..], &["apply", "-f", "file.toml"]] {
        let done = installation.run(words);
        assert_eq!(done.code, 2, "{done:?}");
        let is_reported = done.err.contains("master.key is missing: restore");
        assert!(
            is_reported && done.err.contains("webhook secrets"),
            "{done:?}"
        );
        assert_eq!(files(&installation), ["penstock.db"]);
    }
}

// rule: cli.exit-codes
#[test]
fn unwritable_folder_is_reported_with_remedy() {
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

/// A SQLite database of another program, with the table `notes`.
const NOTES: &[u8] = include_bytes!("notes.sqlite");

/// The same database without a write-ahead log and with one.
fn foreign_databases() -> [Vec<u8>; 2] {
    const FORMAT_VERSIONS: std::ops::Range<usize> = 18..20;
    let mut logged = NOTES.to_vec();
    logged[FORMAT_VERSIONS].fill(2);
    [NOTES.to_vec(), logged]
}

// rule: cli.foreign-database, cli.exit-codes
#[test]
fn foreign_database_is_refused_by_every_command_unchanged() {
    let installation = Installation::in_a_file();
    let path = installation.folder.path().join("penstock.db");
    std::fs::write(installation.folder.path().join("file.toml"), POOL).unwrap();
    let commands = [
        "verify",
        "apply -f file.toml",
        "apply -f file.toml --dry-run",
        "key list --partner acme",
        "key create --partner acme --kind secret",
        "balance credit --partner acme --currency EUR --amount 1.00 --ref r",
        "export trades --partner acme --from 2026-01-01 --to 2027-01-01",
        "sandbox --dir .",
    ];
    let [plain, logged] = foreign_databases();
    for (before, commands) in [(plain, &commands[..]), (logged, &commands[..2])] {
        std::fs::write(&path, &before).unwrap();
        for words in commands {
            let words: Vec<&str> = words.split(' ').collect();
            let done = installation.run(&words);
            assert_eq!(done.code, 2, "{words:?}: {done:?}");
            for part in [
                "penstock.db is no Penstock database: it has the table `notes`",
                "name another file",
            ] {
                assert!(done.err.contains(part), "{words:?}: {part}: {done:?}");
            }
            assert_eq!(std::fs::read(&path).unwrap(), before, "{words:?}");
            assert_eq!(files(&installation), ["penstock.db"], "{words:?}");
        }
    }
}

// rule: cli.foreign-database
#[test]
fn empty_file_counts_as_missing_database() {
    let installation = Installation::in_a_file();
    let path = installation.folder.path().join("penstock.db");
    std::fs::write(&path, "").unwrap();
    let done = installation.run(&["verify"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("there is no file at"), "{done:?}");
    assert_eq!(installation.apply(POOL, &[]).code, 0);
    assert_eq!(installation.run(&["verify"]).code, 0);
}

/// Asserts that an error names the database, what is wrong with it, and the remedy.
fn assert_names(done: &Done, path: &Path, what: &str, remedy: &str) {
    let message = format!("{} {what}", path.display());
    assert!(done.err.contains(&message), "{done:?}");
    assert!(done.err.contains(remedy), "{done:?}");
    assert!(!done.err.contains("unexpected fault"), "{done:?}");
}

// rule: cli.database-faults
#[test]
fn other_file_than_sqlite_is_reported_with_remedy() {
    let installation = Installation::in_a_file();
    let path = installation.folder.path().join("penstock.db");
    let letter = "this is a letter, and a long one, not a database".repeat(100);
    std::fs::write(&path, &letter).unwrap();
    let done = installation.run(&["verify"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert_names(
        &done,
        &path,
        "is not a SQLite database: ",
        "name another file",
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), letter);
    assert_eq!(files(&installation), ["penstock.db"]);
}

// rule: cli.database-faults
#[test]
fn folder_in_place_of_database_is_reported_with_remedy() {
    let installation = Installation::in_a_file();
    let path = installation.folder.path().join("penstock.db");
    std::fs::create_dir(&path).unwrap();
    let done = installation.run(&["verify"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert_names(&done, &path, "cannot be opened: check that ", "user ");
}

// rule: cli.database-faults
#[test]
fn damaged_database_is_reported_with_remedy() {
    const PAGE: usize = 4096;
    let installation = Installation::in_a_file();
    let path = installation.folder.path().join("penstock.db");
    assert_eq!(installation.apply(POOL, &[]).code, 0);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[PAGE..].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let done = installation.run(&["verify"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert_names(&done, &path, "is damaged: ", "restore a backup");
}
