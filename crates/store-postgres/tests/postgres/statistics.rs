//! What the planner knows of tables that grow: asked for by the role that serves, which owns none of them.

use partner_core::ports::Maintenance as _;
use sqlx::{Connection as _, PgConnection};

use crate::fixture;

/// A queue of one partner, as long as it gets while an endpoint is away.
const QUEUE: &str = "SET session_replication_role = replica;
     INSERT INTO deliveries (mode, partner_id, id, position, event_id, endpoint_id, object_id, status, next_attempt_at, created_at)
     SELECT 'test', 'acme', gen_random_uuid(), n, 'event-' || n, '01a20192-7efc-5783-5659-f03bb73275ca', 'object-' || n,
            'pending', n, n
     FROM generate_series(1, 2000) AS n";
/// One row, by its whole key.
const ONE: &str = "EXPLAIN SELECT FROM deliveries AS d
     WHERE d.mode = 'test' AND d.partner_id = 'acme' AND d.id = '01a20192-7efc-5783-5659-f03bb73275ca'";

async fn plan(owner: &mut PgConnection) -> String {
    let lines: Vec<String> = sqlx::query_scalar(ONE).fetch_all(owner).await.unwrap();
    lines.join("\n")
}

#[tokio::test]
async fn a_table_that_has_grown_is_looked_at_and_no_other() {
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

/// Two replicas ask at once: one of them gathers, and the other is not held up.
#[tokio::test]
async fn who_finds_it_being_done_goes_on() {
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
