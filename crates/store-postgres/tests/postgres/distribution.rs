//! Checks in the catalogue that the schema can be distributed by partner, as `docs/scaling.md` describes.

use sqlx::{Connection as _, PgConnection};

use crate::fixture;

/// Lists the placement of every table.
const PAGE: &str = include_str!("../../../../docs/scaling.md");
/// Tables without a partner. They are small and rarely written, and every node has a copy.
const SHARED: [&str; 11] = [
    "_sqlx_migrations",
    "allowed_trade_transitions",
    "clock_jump",
    "config_version",
    "deposit_claims",
    "installation",
    "installation_identity",
    "installation_mode",
    "master_keys",
    "pools",
    "velocity_window",
];

async fn names(conn: &mut PgConnection, query: &'static str) -> Vec<(String, String)> {
    sqlx::query_as(query).fetch_all(conn).await.unwrap()
}

#[tokio::test]
async fn every_table_has_a_partner_or_is_shared() {
    let store = fixture::open().await;
    let mut conn = store.database.owner().await;
    let tables = names(
        &mut conn,
        "SELECT c.relname::text, coalesce(string_agg(a.attname::text, ',' ORDER BY a.attnum), '')
         FROM pg_class AS c
         LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname IN ('mode', 'partner_id') AND a.attnotnull
         WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace GROUP BY 1",
    )
    .await;
    assert!(tables.len() > 20);
    for (table, columns) in tables {
        let has_partner = columns == "mode,partner_id";
        assert_eq!(has_partner, !SHARED.contains(&table.as_str()), "{table}");
        let is_placed = PAGE.contains(&format!("'{table}'")) || table == "_sqlx_migrations";
        assert!(is_placed, "docs/scaling.md does not place {table}");
    }
    conn.close().await.unwrap();
}

/// One node can enforce a unique key only if the key names the partner.
#[tokio::test]
async fn every_unique_key_of_partner_tables_begins_with_mode_and_partner() {
    let store = fixture::open().await;
    let mut conn = store.database.owner().await;
    let keys = names(
        &mut conn,
        "SELECT i.indexrelid::regclass::text || ' on ' || i.indrelid::regclass::text,
                pg_get_indexdef(i.indexrelid, 1, true) || ',' || pg_get_indexdef(i.indexrelid, 2, true)
         FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
         WHERE i.indisunique AND c.relnamespace = 'public'::regnamespace",
    )
    .await;
    assert!(keys.len() > 25);
    for (key, led_by) in keys {
        if !SHARED
            .iter()
            .any(|table| key.ends_with(&format!(" on {table}")))
        {
            assert_eq!(led_by, "mode,partner_id", "{key}");
        }
    }
    conn.close().await.unwrap();
}

/// A reference stays on its node: both sides name the partner in the same position, or it refers to a table that every node has.
#[tokio::test]
async fn every_reference_stays_with_its_partner() {
    let store = fixture::open().await;
    let mut conn = store.database.owner().await;
    let references = names(
        &mut conn,
        "SELECT k.conname::text, k.confrelid::regclass::text || ' '
                || (SELECT string_agg(a.attname || '=' || b.attname, ',' ORDER BY n) FROM generate_series(1, 2) AS n
                    JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[n]
                    JOIN pg_attribute AS b ON b.attrelid = k.confrelid AND b.attnum = k.confkey[n])
         FROM pg_constraint AS k WHERE k.contype = 'f' AND k.connamespace = 'public'::regnamespace",
    )
    .await;
    assert!(references.len() > 15);
    for (name, to) in references {
        let (table, by) = to.split_once(' ').unwrap();
        let stays = by == "mode=mode,partner_id=partner_id";
        assert!(stays || SHARED.contains(&table), "{name}: {to}");
    }
    conn.close().await.unwrap();
}

/// Distributed databases refuse these objects or make them slow.
#[tokio::test]
async fn schema_has_nothing_that_distributed_databases_refuse() {
    let store = fixture::open().await;
    let mut conn = store.database.owner().await;
    let refused = names(
        &mut conn,
        "SELECT 'trigger', tgname::text FROM pg_trigger WHERE NOT tgisinternal
         UNION ALL SELECT 'rule', rulename::text FROM pg_rewrite AS r JOIN pg_class AS c ON c.oid = r.ev_class
                   WHERE c.relnamespace = 'public'::regnamespace
         UNION ALL SELECT 'relation of kind ' || relkind::text, relname::text FROM pg_class
                   WHERE relnamespace = 'public'::regnamespace AND relkind NOT IN ('r', 'i')
         UNION ALL SELECT 'inheritance', inhrelid::regclass::text FROM pg_inherits
         UNION ALL SELECT 'identity or generated column', attrelid::regclass::text || '.' || attname FROM pg_attribute AS a
                   JOIN pg_class AS c ON c.oid = a.attrelid
                   WHERE c.relnamespace = 'public'::regnamespace AND (attidentity <> '' OR attgenerated <> '')
         UNION ALL SELECT 'deferrable or exclusion constraint', conname::text FROM pg_constraint
                   WHERE connamespace = 'public'::regnamespace AND (condeferrable OR contype = 'x')
         UNION ALL SELECT 'referential action', conname::text FROM pg_constraint
                   WHERE connamespace = 'public'::regnamespace AND contype = 'f' AND (confupdtype <> 'a' OR confdeltype <> 'a')
         ORDER BY 1, 2",
    )
    .await;
    assert_eq!(refused, []);
    conn.close().await.unwrap();
}
