//! Statistics of growing tables, gathered by the serving role, which does not own the tables.

use partner_core::ports::Maintenance as _;
use sqlx::{Connection as _, PgConnection};

use crate::fixture;

/// A long delivery queue of one partner, as after an outage of an endpoint.
const QUEUE: &str = "SET session_replication_role = replica;
     INSERT INTO deliveries (mode, partner_id, id, position, event_id, endpoint_id, object_id, status, next_attempt_at, created_at)
     SELECT 'test', 'acme', gen_random_uuid(), n, 'event-' || n, '01a20192-7efc-5783-5659-f03bb73275ca', 'object-' || n,
            'pending', n, n
     FROM generate_series(1, 2000) AS n";
/// Reads one row by its whole key.
const ONE: &str = "EXPLAIN SELECT FROM deliveries AS d
     WHERE d.mode = 'test' AND d.partner_id = 'acme' AND d.id = '01a20192-7efc-5783-5659-f03bb73275ca'";

async fn plan(owner: &mut PgConnection) -> String {
    let lines: Vec<String> = sqlx::query_scalar(ONE).fetch_all(owner).await.unwrap();
    lines.join("\n")
}

#[tokio::test]
async fn statistics_are_gathered_only_for_grown_tables() {
    let fixture = fixture::open().await;
    let mut owner = fixture.database.owner().await;
    sqlx::raw_sql(QUEUE).execute(&mut owner).await.unwrap();
    assert_eq!(fixture.store.gather_statistics().await.unwrap(), 1);
    let known: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_stats WHERE tablename = 'deliveries' AND attname IN ('mode', 'partner_id', 'id')",
    )
    .fetch_one(&mut owner)
    .await
    .unwrap();
    assert_eq!(known, 3);
    let plan = plan(&mut owner).await;
    assert!(plan.contains("deliveries_key"), "{plan}");
    assert_eq!(fixture.store.gather_statistics().await.unwrap(), 0);
    owner.close().await.unwrap();
}

/// If two replicas gather together, one gathers and the other does not wait.
#[tokio::test]
async fn gathering_skips_table_that_another_session_analyzes() {
    let fixture = fixture::open().await;
    let mut owner = fixture.database.owner().await;
    sqlx::raw_sql(QUEUE).execute(&mut owner).await.unwrap();
    let gathering = "BEGIN; LOCK TABLE deliveries IN SHARE UPDATE EXCLUSIVE MODE";
    sqlx::raw_sql(gathering).execute(&mut owner).await.unwrap();
    assert_eq!(fixture.store.gather_statistics().await.unwrap(), 0);
    sqlx::raw_sql("ROLLBACK").execute(&mut owner).await.unwrap();
    assert_eq!(fixture.store.gather_statistics().await.unwrap(), 1);
    owner.close().await.unwrap();
}
