//! How Postgres finds the rows of the statements that must stay cheap however large the tables
//! grow: through an index, in its order. Asked of tables with rows in them, and of the plan that is
//! made for any parameters.

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::PostgresStore;

fn server() -> String {
    std::env::var("PENSTOCK_TEST_POSTGRES_URL")
        .expect("PENSTOCK_TEST_POSTGRES_URL: run `cargo xtask test`, which starts a server")
}

/// A migrated database; its name, and a connection.
async fn database() -> (String, PgConnection) {
    let server = server();
    let name = format!("penstock_plans_{}", std::process::id());
    let mut admin = PgConnection::connect(&server).await.unwrap();
    run(&mut admin, &format!("CREATE DATABASE {name}")).await;
    admin.close().await.unwrap();
    let (rest, _) = server.rsplit_once('/').unwrap();
    let url = format!("{rest}/{name}");
    PostgresStore::migrate(&url).await.unwrap();
    (name, PgConnection::connect(&url).await.unwrap())
}

async fn run(conn: &mut PgConnection, sql: &str) {
    let statement = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    statement.execute(conn).await.unwrap();
}

/// 200 partners with a hundred of everything; what refers to what is not looked at.
const ROWS: &str = "SET session_replication_role = replica;
     CREATE TEMP TABLE n AS
     SELECT 'p' || p AS partner, p * 1000 + i AS number, gen_random_uuid() AS id, i FROM generate_series(1, 200) AS p,
            generate_series(1, 100) AS i;
     INSERT INTO partners SELECT 'test', 'p' || p, 'P', 'active' FROM generate_series(1, 200) AS p;
     INSERT INTO books (mode, partner_id, version, at) SELECT mode, partner_id, 1, 0 FROM partners;
     INSERT INTO velocity SELECT mode, partner_id, '0', 0 FROM partners;
     INSERT INTO accounts SELECT mode, partner_id, asset, 1, 1 FROM partners, unnest('{EUR,USDT}'::text[]) AS asset;
     INSERT INTO commitments SELECT mode, partner_id, asset, 1 FROM accounts;
     INSERT INTO quotes
     SELECT 'test', partner, id, 'EUR-USDT', CASE i % 2 WHEN 0 THEN 'on_ramp' ELSE 'off_ramp' END, 'tron', 1, 1, '1', 0,
            0, 1, CASE i % 2 WHEN 0 THEN 'a' END, CASE i % 2 WHEN 0 THEN 'tron' END, number, number + 1, number FROM n;
     INSERT INTO trades (mode, partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps,
                         notional, reserved, status, created_at, settled_at, fill)
     SELECT mode, partner_id, id, id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps, notional, crypto,
            CASE WHEN created_at % 5 = 0 THEN 'reserved' ELSE 'settled' END, created_at,
            CASE WHEN created_at % 5 = 0 THEN NULL ELSE created_at END, CASE WHEN created_at % 5 = 0 THEN NULL ELSE 'f' END
     FROM quotes;
     INSERT INTO ledger_entries (mode, partner_id, id, asset, debit, credit, amount, reason, account_sequence,
                                 balance_after, reference, created_at)
     SELECT 'test', partner, id, 'EUR', CASE i % 2 WHEN 0 THEN 'outside' ELSE 'reserved' END,
            CASE i % 2 WHEN 0 THEN 'partner' ELSE 'operator' END, 1, 'adjustment', CASE i % 2 WHEN 0 THEN i / 2 END,
            CASE i % 2 WHEN 0 THEN 1 END, 'r', number FROM n;
     INSERT INTO idempotency_keys SELECT 'test', partner, 'route', number::text, sha256('k'), id, number FROM n;
     ANALYZE";

/// The plan that is made for any parameters.
async fn plan(conn: &mut PgConnection, statement: &str) -> String {
    let used = (1..).take_while(|number| statement.contains(&format!("${number}")));
    let nothing = vec!["NULL"; used.count()].join(", ");
    run(conn, &format!("PREPARE planned AS {statement}")).await;
    let explaining = format!("EXPLAIN EXECUTE planned({nothing})");
    let lines: Vec<String> = sqlx::query_scalar(AssertSqlSafe(explaining))
        .fetch_all(&mut *conn)
        .await
        .unwrap();
    run(conn, "DEALLOCATE planned").await;
    lines.join("\n")
}

/// Asserts that a statement goes through no table, and uses these indexes.
async fn assert_looked_up(conn: &mut PgConnection, statement: &str, indexes: &[&str]) {
    let plan = plan(conn, statement).await;
    assert!(!plan.contains("Seq Scan"), "{statement}\n{plan}");
    let line = plan.replace('\n', " ");
    for index in indexes {
        let ways = [" using ", " on "].map(|way| format!("{way}{index} "));
        let used = ways.iter().any(|way| line.contains(way));
        assert!(used, "{index}\n{statement}\n{plan}");
    }
}

#[tokio::test]
async fn what_must_stay_cheap_is_looked_up() {
    let (name, mut conn) = database().await;
    run(&mut conn, ROWS).await;
    reads(&mut conn).await;
    run(&mut conn, crate::open::WRITING).await;
    writes(&mut conn).await;
    conn.close().await.unwrap();
    let mut admin = PgConnection::connect(&server()).await.unwrap();
    run(&mut admin, &format!("DROP DATABASE {name}")).await;
    admin.close().await.unwrap();
}

async fn reads(conn: &mut PgConnection) {
    use crate::{exports, ledger, quotes, trades};
    // Some tables are so small here that going through them is the quickest way.
    let settings = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off";
    run(conn, settings).await;
    for (statement, index) in [
        (quotes::FIND, "quotes_key"),
        (trades::PAGE, "trades_list"),
        (trades::PAGE_OF_SIDE, "trades_list_side"),
        (trades::PAGE_OF_STATUS, "trades_list_status"),
        (trades::PAGE_OF_SIDE_AND_STATUS, "trades_list_side_status"),
        (ledger::PAGE, "ledger_entries_sequence"),
        (ledger::LAST_UP_TO, "ledger_entries_sequence"),
        (exports::TRADES, "trades_list"),
        (exports::NUMBERED, "ledger_entries_sequence"),
        (exports::UNNUMBERED, "ledger_entries_unnumbered"),
    ] {
        assert_looked_up(conn, statement, &[index]).await;
    }
}

async fn writes(conn: &mut PgConnection) {
    use crate::lane::{load, write};
    use crate::{books, commitments, quotes};
    let loaded = [
        "quotes_key",
        "idempotency_keys_key",
        "accounts_key",
        "commitments_key",
        "velocity_key",
        "trades_list",
    ];
    for (statement, indexes) in [
        (books::HOLD, &["books_key"][..]),
        (quotes::FIND, &["quotes_key"]),
        (load::READ, &loaded),
        (load::TRADES, &["trades_one_per_quote"]),
        (write::WRITE, &["quotes_key", "accounts_key", "books_key"]),
        (
            commitments::REFUNDABLE_FIAT,
            &["trades_settled", "trades_list_status"],
        ),
    ] {
        assert_looked_up(conn, statement, indexes).await;
    }
}
