//! A database server that is read-only.

use std::time::Duration;

use acceptance::{World, purchase};
use test_support::test_database::StoreKind;

/// Longer than the idle time after which a connection is tested.
const IDLE_TIME: Duration = Duration::from_millis(1_200);

/// Makes new sessions read-only and closes all others.
const READ_ONLY: &str = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$;
     SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";

// rule: base.database-refuses-writes
#[tokio::test]
async fn read_only_server_returns_503_and_leaves_no_commit_unknown() {
    if StoreKind::of_run() != StoreKind::Postgres {
        return;
    }
    let world = World::new().await;
    let (acme, pool) = (world.acme(), "EUR-USDT");
    let quote = acme.buy(pool, "100.00").await;
    world.damage(READ_ONLY).await;
    tokio::time::sleep(IDLE_TIME).await;
    for _ in 0..3 {
        let quoted = acme.ask(pool, &purchase(pool, "100.00")).await;
        quoted.refused(503, "service_unavailable");
        let transacted = acme.transact(pool, &quote, "key-1").await;
        transacted.refused(503, "service_unavailable");
    }
    let read = acme.quote(&quote).await.ok();
    assert_eq!(read["status"], "active", "reads still succeed: {read}");
    world.finish().await;
}
