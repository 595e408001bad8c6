//! Plans of the statements that hasten deliveries, on a queue as after an outage.

use sqlx::Connection as _;
use store_sql::deliveries::hasten::{HASTEN, OLDEST};

use super::{LONG_QUEUES, assert_looked_up, database, drop_database, run};

/// One in five deliveries waits, and the others have been delivered.
const DELIVERED: &str =
    "UPDATE deliveries SET status = 'succeeded', next_attempt_at = NULL, delivered_at = created_at
     WHERE position % 10 > 1;
     ANALYZE deliveries";

// rule: webhook.drain
#[tokio::test]
async fn hastening_reads_waiting_deliveries_in_the_order_of_its_indexes() {
    let (name, mut conn) = database("hastened").await;
    run(&mut conn, LONG_QUEUES).await;
    run(&mut conn, DELIVERED).await;
    run(&mut conn, crate::waits::WRITING).await;
    let oldest = OLDEST.sql.postgres;
    assert_looked_up(&mut conn, oldest, &["deliveries_listed_by_status"]).await;
    let indexes = ["deliveries_queue", "deliveries_key"];
    assert_looked_up(&mut conn, HASTEN.sql.postgres, &indexes).await;
    run(&mut conn, "COMMIT").await;
    conn.close().await.unwrap();
    drop_database(&name).await;
}
