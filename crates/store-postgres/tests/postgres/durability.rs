//! The level of `synchronous_commit` that transactions use, and the server's settings that a start reads.

use std::sync::Arc;
use std::time::Duration;

use sqlx::Connection as _;
use test_support::contract::Fixture as _;
use test_support::contract::outages::Writer;

use crate::fixture::{Database, open_at, run};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Records the level within each transaction that writes one of the tables.
const RECORDING: &str = "CREATE TABLE levels (source text NOT NULL, level text NOT NULL);
     CREATE FUNCTION record_level() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
     BEGIN
         INSERT INTO public.levels VALUES (TG_TABLE_NAME, current_setting('synchronous_commit'));
         RETURN NULL;
     END $$;
     CREATE TRIGGER partners_level AFTER INSERT ON partners FOR EACH STATEMENT EXECUTE FUNCTION record_level();
     CREATE TRIGGER deposits_level AFTER INSERT ON deposits FOR EACH STATEMENT EXECUTE FUNCTION record_level();
     CREATE TRIGGER quotes_level AFTER INSERT ON quotes FOR EACH STATEMENT EXECUTE FUNCTION record_level();
     CREATE TRIGGER trades_level AFTER INSERT ON trades FOR EACH STATEMENT EXECUTE FUNCTION record_level();
     CREATE TRIGGER sessions_level AFTER INSERT ON sessions FOR EACH STATEMENT EXECUTE FUNCTION record_level();
     CREATE TRIGGER deliveries_level AFTER INSERT OR UPDATE ON deliveries FOR EACH STATEMENT EXECUTE FUNCTION record_level();
     CREATE TRIGGER jumps_level AFTER UPDATE ON clock_jump FOR EACH STATEMENT EXECUTE FUNCTION record_level()";

/// A database whose sessions begin with this level.
async fn database_with(level: &str) -> Database {
    let database = Database::make().await;
    let mut owner = database.owner().await;
    let name = database.owning();
    let name = name.rsplit_once('/').unwrap().1.to_owned();
    let default = format!("ALTER DATABASE {name} SET synchronous_commit = {level}");
    run(&mut owner, &default).await;
    run(&mut owner, RECORDING).await;
    owner.close().await.unwrap();
    database
}

// rule: base.commit-durable
#[tokio::test]
async fn writes_raise_level_that_loses_acknowledged_commits() {
    for (default, used) in [
        ("off", "on"),
        ("local", "on"),
        ("on", "on"),
        ("remote_write", "remote_write"),
        ("remote_apply", "remote_apply"),
    ] {
        let database = database_with(default).await;
        let url = database.serving();
        let opened = open_at(database, &url, 8).await;
        let database = Arc::clone(&opened.database);
        // The store notes a jump of the clock, and ends it because the clock was corrected.
        let guard = Arc::clone(&opened.ports().clock);
        opened.clock().jump(DAY);
        assert!(guard.clock_check().await.unwrap().is_some());
        opened.clock().go_back(DAY);
        assert_eq!(guard.clock_check().await.unwrap(), None);
        let writer = Writer::start(opened).await;
        let quote = writer.quote().await.unwrap();
        writer.transact(&writer.command(&quote)).await.unwrap();
        writer.deliver_session().await;
        let mut owner = database.owner().await;
        let recorded: Vec<(String, String)> =
            sqlx::query_as("SELECT DISTINCT source, level FROM levels ORDER BY source, level")
                .fetch_all(&mut owner)
                .await
                .unwrap();
        owner.close().await.unwrap();
        let tables = [
            "clock_jump",
            "deliveries",
            "deposits",
            "partners",
            "quotes",
            "sessions",
            "trades",
        ];
        let expected = tables.map(|source| (source.to_owned(), used.to_owned()));
        assert_eq!(recorded, expected, "default {default}");
    }
}

// rule: base.durability-reported
#[tokio::test]
async fn open_reads_settings_that_decide_durability() {
    for (default, is_raised) in [("off", true), ("local", true), ("remote_apply", false)] {
        let database = database_with(default).await;
        let url = database.serving();
        let opened = open_at(database, &url, 8).await;
        let found = opened.store.durability();
        assert_eq!(found.synchronous_commit, default);
        assert_eq!(found.is_raised(), is_raised, "{default}");
        let mut owner = opened.database.owner().await;
        for (setting, value) in [
            ("SHOW fsync", found.fsync),
            ("SHOW full_page_writes", found.full_page_writes),
        ] {
            let shown: String = sqlx::query_scalar(setting)
                .fetch_one(&mut owner)
                .await
                .unwrap();
            assert_eq!(shown == "on", value, "{setting}");
        }
        owner.close().await.unwrap();
    }
}
