//! Opening: what has to be there, and what is said where it is not.

use std::error::Error as _;
use std::time::Duration;

use kernel::StoreError;
use partner_core::ports::Readiness as _;
use sqlx::Connection as _;
use sqlx::migrate::Migrator;
use store_contract::WINDOW;
use store_postgres::PostgresStore;

use crate::fixture::{Database, options, run};

/// For what gives up by itself much sooner.
const PATIENCE: Duration = Duration::from_secs(10);

async fn refused(url: &str) -> String {
    let refused = PostgresStore::open(url, options(WINDOW, None)).await;
    match refused.unwrap_err() {
        StoreError::Unexpected(said) => said.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_database_without_a_schema_is_refused_saying_what_to_run() {
    let database = Database::bare().await;
    let said = refused(&database.owning()).await;
    assert!(said.contains("pools-service migrate"), "{said}");
    // Two at once, and once more: the schema is made once.
    let url = database.owning();
    let (one, two) = tokio::join!(PostgresStore::migrate(&url), PostgresStore::migrate(&url));
    one.unwrap();
    two.unwrap();
    PostgresStore::migrate(&url).await.unwrap();
    let store = PostgresStore::open(&url, options(WINDOW, None))
        .await
        .unwrap();
    store.ready().await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn an_older_and_a_newer_schema_are_told_apart() {
    let database = Database::make().await;
    let mut owner = database.owner().await;
    let all = PostgresStore::open(&database.owning(), options(WINDOW, None)).await;
    let store = all.unwrap();
    run(
        &mut owner,
        "UPDATE _sqlx_migrations SET version = 9000 WHERE version = 4",
    )
    .await;
    let said = refused(&database.owning()).await;
    assert!(
        said.contains("9000") && said.contains("run the newer one"),
        "{said}"
    );
    let away = store.ready().await.unwrap_err();
    assert!(matches!(away, StoreError::Unavailable(_)), "{away:?}");
    assert!(away.source().is_some());
    run(&mut owner, "DELETE FROM _sqlx_migrations WHERE version > 1").await;
    let said = refused(&database.owning()).await;
    assert!(said.contains("pools-service migrate"), "{said}");
    let newer = "UPDATE _sqlx_migrations SET version = 9000";
    run(&mut owner, newer).await;
    let refused = PostgresStore::migrate(&database.owning()).await;
    assert!(
        matches!(refused, Err(StoreError::Unexpected(_))),
        "{refused:?}"
    );
    owner.close().await.unwrap();
}

/// Who comes after one that waits for a table waits as well: partners, while somebody reads for long.
#[tokio::test]
async fn a_migration_does_not_wait_behind_a_long_reader() {
    let database = Database::bare().await;
    let (mut owner, mut reader) = (database.owner().await, database.owner().await);
    let all = sqlx::migrate!("../../migrations/postgres");
    let before = all.iter().filter(|migration| migration.version < 11);
    let before = Migrator {
        migrations: before.cloned().collect::<Vec<_>>().into(),
        ..Migrator::DEFAULT
    };
    before.run_direct(None, &mut owner, false).await.unwrap();
    run(&mut reader, "BEGIN; SELECT FROM commitments").await;
    let url = database.owning();
    let migrating = tokio::time::timeout(PATIENCE, PostgresStore::migrate(&url));
    let refused = migrating.await.unwrap().unwrap_err();
    let StoreError::Unavailable(said) = refused else {
        panic!("{refused:?}")
    };
    assert!(said.to_string().contains("version 11"), "{said}");
    reader.close().await.unwrap();
    PostgresStore::migrate(&url).await.unwrap();
    owner.close().await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let nowhere = "postgres://nobody@127.0.0.1:1/nothing";
    let away = PostgresStore::open(nowhere, options(WINDOW, None)).await;
    assert!(matches!(away, Err(StoreError::Unavailable(_))), "{away:?}");
    let nonsense = PostgresStore::open("postgres://[", options(WINDOW, None)).await;
    assert!(matches!(nonsense, Err(StoreError::Unexpected(_))));
}
