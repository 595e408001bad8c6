//! The serving role writes what partners do; the operating role also provisions. Neither role changes the history.

use crate::fixture;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};

const HISTORY: [&str; 4] = ["ledger_entries", "deposits", "events", "trade_transitions"];
/// Tables that only the operating role writes.
const PROVISIONED: [&str; 9] = [
    "api_keys",
    "config_version",
    "deposit_claims",
    "gate_profiles",
    "partners",
    "pools",
    "pools_profiles",
    "webhook_endpoints",
    "webhook_secrets",
];
const ROLES: &str = include_str!("../../../../deploy/postgres/roles.sql");

async fn assert_refused(conn: &mut PgConnection, statement: &str) {
    let refused = sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
        .execute(conn)
        .await;
    let code = refused.as_ref().err().and_then(|fault| {
        let fault = fault.as_database_error()?;
        Some(fault.code()?.into_owned())
    });
    assert_eq!(code.as_deref(), Some("42501"), "{statement}: {refused:?}");
}

#[tokio::test]
async fn roles_cannot_change_history() {
    let store = fixture::open().await;
    for role in ["penstock_serve", "penstock_operate"] {
        let mut conn = store.database.owner().await;
        fixture::run(&mut conn, &format!("SET ROLE {role}")).await;
        for table in HISTORY {
            for statement in [
                format!("UPDATE {table} SET created_at = 0"),
                format!("DELETE FROM {table}"),
                format!("TRUNCATE {table}"),
                format!("ALTER TABLE {table} DISABLE TRIGGER ALL"),
                format!("DROP TABLE {table}"),
            ] {
                assert_refused(&mut conn, &statement).await;
            }
        }
        // The compared form of a deposit is no history. Everything else about it is.
        fixture::run(&mut conn, "UPDATE deposits SET compared = reference").await;
        for column in ["reference", "asset", "amount", "network", "entry_id"] {
            let statement = format!("UPDATE deposits SET {column} = {column}");
            assert_refused(&mut conn, &statement).await;
        }
        conn.close().await.unwrap();
    }
}

// rule: base.serving-role-provisions-nothing
#[tokio::test]
async fn serving_role_changes_nothing_that_the_operator_provisions() {
    let store = fixture::open().await;
    let mut conn = store.database.owner().await;
    // The grants of an earlier version of the file.
    let earlier = PROVISIONED.join(", ");
    let earlier =
        format!("GRANT INSERT, UPDATE, DELETE ON {earlier}, installation TO penstock_serve");
    fixture::run(&mut conn, &earlier).await;
    fixture::run(&mut conn, ROLES).await;
    fixture::run(&mut conn, "SET ROLE penstock_serve").await;
    for table in PROVISIONED {
        let column = if table == "config_version" {
            "id"
        } else {
            "mode"
        };
        for statement in [
            format!("UPDATE {table} SET {column} = {column}"),
            format!("INSERT INTO {table} SELECT * FROM {table}"),
            format!("DELETE FROM {table}"),
        ] {
            assert_refused(&mut conn, &statement).await;
        }
    }
    assert_refused(&mut conn, "UPDATE installation SET id = id").await;
    assert_refused(&mut conn, "DELETE FROM installation").await;
    conn.close().await.unwrap();
}

/// The file must also name the tables of later migrations.
#[tokio::test]
async fn roles_have_expected_privileges_on_every_table() {
    let store = fixture::open().await;
    let mut conn = store.database.owner().await;
    for role in ["penstock_serve", "penstock_operate"] {
        let rows = sqlx::query(
            "SELECT relname, has_table_privilege($1, oid, 'SELECT') AS read,
                    has_table_privilege($1, oid, 'INSERT') AS added,
                    has_table_privilege($1, oid, 'UPDATE') AS changed
             FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
        )
        .bind(role)
        .fetch_all(&mut conn)
        .await
        .unwrap();
        assert!(rows.len() > 20);
        for row in rows {
            let table: String = row.get("relname");
            let granted: [bool; 3] = [row.get("read"), row.get("added"), row.get("changed")];
            let serves = role == "penstock_serve";
            let expected = match table.as_str() {
                "allowed_trade_transitions" | "_sqlx_migrations" | "installation_identity" => {
                    [true, false, false]
                }
                "books" if serves => [true, false, true],
                "installation" if serves => [true, true, false],
                "installation_mode" => [true, true, false],
                // The serving role may insert only the columns of the first key.
                "master_keys" if serves => [true, false, false],
                table if serves && PROVISIONED.contains(&table) => [true, false, false],
                table => [true, true, !HISTORY.contains(&table)],
            };
            assert_eq!(granted, expected, "{role}: {table}");
        }
    }
    conn.close().await.unwrap();
}

/// The first program that opens a database stores its key. After that a service makes no key current, older or retired.
// rule: base.master-key-rotation
#[tokio::test]
async fn serving_role_stores_only_first_master_key() {
    let store = fixture::open().await;
    let mut conn = store.database.owner().await;
    fixture::run(&mut conn, "SET ROLE penstock_serve").await;
    let first = "INSERT INTO master_keys (fingerprint, number) VALUES (repeat('a', 16), 1)";
    fixture::run(&mut conn, first).await;
    for refused in [
        "INSERT INTO master_keys (fingerprint, number, state) VALUES (repeat('b', 16), 2, 'older')",
        "INSERT INTO master_keys (fingerprint, number, derived) VALUES (repeat('b', 16), 2, '\\x00')",
        "UPDATE master_keys SET state = 'older'",
        "DELETE FROM master_keys",
    ] {
        assert_refused(&mut conn, refused).await;
    }
    for number in [1, 2] {
        let again = format!(
            "INSERT INTO master_keys (fingerprint, number) VALUES (repeat('b', 16), {number})"
        );
        let refused = sqlx::raw_sql(AssertSqlSafe(again)).execute(&mut conn).await;
        let fault = refused.unwrap_err();
        let code = fault.as_database_error().unwrap().code().unwrap();
        assert!(["23505", "23514"].contains(&&*code), "{code}");
    }
    conn.close().await.unwrap();
}
