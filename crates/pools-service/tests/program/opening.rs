//! Databases that the program refuses when it starts: paths that their author did not mean, and unsuitable or silent servers.

use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

use test_support::test_database::{Database, run};

use crate::served::POOLS;
use crate::server::refused;

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

// rule: base.database-suitable
#[test]
fn database_with_another_encoding_is_refused() {
    let database = Database::bare_now();
    let owning = database.owning();
    let (server, name) = owning.rsplit_once('/').unwrap();
    let latin = format!("{name}_latin");
    as_owner(
        &database,
        &format!(
            "CREATE DATABASE {latin} ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        ),
    );
    let url = format!("{server}/{latin}");
    let variables = [("DATABASE_URL", url.as_str()), ("MASTER_KEY", KEY)];
    let lines = ["migrate", "serve"].map(|command| refused(&[command], &variables, 1));
    as_owner(&database, &format!("DROP DATABASE {latin} WITH (FORCE)"));
    for line in lines {
        for part in [
            format!("database `{latin}`: its encoding is LATIN1"),
            "createdb --encoding=UTF8".to_owned(),
        ] {
            assert!(line.contains(&part), "{part}: {line}");
        }
    }
}

/// Runs a statement as the owner of the database.
fn as_owner(database: &Database, sql: &str) {
    let tokio = tokio::runtime::Runtime::new().unwrap();
    tokio.block_on(async { run(&mut database.owner().await, sql).await });
}

// rule: config.database-server
#[test]
fn service_has_the_application_name_of_its_url() {
    let database = Database::make_now();
    let serving = database.serving();
    let separator = if serving.contains('?') { '&' } else { '?' };
    let url = format!("{serving}{separator}application_name=replica-7");
    let variables = [("DATABASE_URL", url.as_str()), ("MASTER_KEY", KEY)];
    let folder = tempfile::tempdir().unwrap();
    let served = POOLS.start(folder.path(), &variables);
    // Fails if no session of this database has the name.
    let expected = "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'replica-7')
         THEN RAISE EXCEPTION 'no session is called replica-7'; END IF; END $$";
    as_owner(&database, expected);
    assert_eq!(served.end("-TERM").0, Some(0));
}

/// The server accepts connections and is silent. It closes them after five minutes, so that the test ends in any case.
// rule: config.database-hosts
#[test]
fn silent_server_is_given_up_after_the_connect_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let url = format!("postgres://penstock:hunter2@{address}/penstock");
    let variables = [
        ("DATABASE_URL", url.as_str()),
        ("DATABASE_CONNECT_TIMEOUT", "1s"),
        ("MASTER_KEY", KEY),
    ];
    let (ended, end) = mpsc::channel::<()>();
    let silent = std::thread::spawn(move || {
        // An error means that the time is up or that the test has ended.
        let _ = end.recv_timeout(Duration::from_secs(300));
        drop(listener);
    });
    for command in ["migrate", "serve"] {
        let line = refused(&[command], &variables, 1);
        for part in [
            format!("the server at {address}: no connection within 1000 ms"),
            "raise PENSTOCK_DATABASE_CONNECT_TIMEOUT".to_owned(),
        ] {
            assert!(line.contains(&part), "{part} in {line}");
        }
        assert!(!line.contains("hunter2"), "{line}");
    }
    drop(ended);
    silent.join().unwrap();
}
