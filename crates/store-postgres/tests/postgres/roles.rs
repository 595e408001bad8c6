//! The role that serves adds to what has happened, and changes none of it.

use crate::fixture;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

const PAST: [&str; 4] = ["ledger_entries", "deposits", "events", "trade_transitions"];

#[tokio::test]
async fn the_past_is_not_changed_by_who_serves() {
    let store = fixture::open().await;
    let mut conn = store.database.owner().await;
    fixture::run(&mut conn, "SET ROLE penstock_serve").await;
    for table in PAST {
        for statement in [
            format!("UPDATE {table} SET created_at = 0"),
            format!("DELETE FROM {table}"),
            format!("TRUNCATE {table}"),
            format!("ALTER TABLE {table} DISABLE TRIGGER ALL"),
            format!("DROP TABLE {table}"),
        ] {
            let refused = sqlx::raw_sql(AssertSqlSafe(statement.clone()))
                .execute(&mut conn)
                .await
                .unwrap_err();
            let code = refused.as_database_error().and_then(|fault| fault.code());
            assert_eq!(code.as_deref(), Some("42501"), "{statement}");
        }
    }
    conn.close().await.unwrap();
}

/// A table that a later migration adds is named in the file too.
#[tokio::test]
async fn every_table_is_one_the_role_has_been_told_of() {
    let store = fixture::open().await;
    let mut conn = store.database.owner().await;
    let rows = sqlx::query(
        "SELECT relname, has_table_privilege('penstock_serve', oid, 'SELECT') AS read,
                has_table_privilege('penstock_serve', oid, 'INSERT') AS added,
                has_table_privilege('penstock_serve', oid, 'UPDATE') AS changed
         FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
    )
    .fetch_all(&mut conn)
    .await
    .unwrap();
    assert!(rows.len() > 20);
    let fixed = ["allowed_trade_transitions", "_sqlx_migrations"];
    for row in rows {
        let table: String = row.get("relname");
        let granted: [bool; 3] = [row.get("read"), row.get("added"), row.get("changed")];
        let served = !fixed.contains(&table.as_str());
        let changed = served && !PAST.contains(&table.as_str());
        assert_eq!(granted, [true, served, changed], "{table}");
    }
    conn.close().await.unwrap();
}
