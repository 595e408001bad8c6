//! Tests the query plans of the statements that must stay fast in large tables: they use an index in its order.
//!
//! The tests check the generic plans on tables with a million rows. They also run lists and sweeps, and count the pages touched.

mod hastened;
mod hosted;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::{PostgresStore, Timeouts};

fn server() -> String {
    std::env::var("PENSTOCK_TEST_POSTGRES_URL")
        .expect("PENSTOCK_TEST_POSTGRES_URL: run `cargo xtask test`, which starts a server")
}

/// Creates a migrated database. Returns its name and a connection.
async fn database(of: &str) -> (String, PgConnection) {
    let server = server();
    let name = format!("penstock_plans_{of}_{}", std::process::id());
    let mut admin = PgConnection::connect(&server).await.unwrap();
    run(&mut admin, &format!("CREATE DATABASE {name}")).await;
    admin.close().await.unwrap();
    let (rest, _) = server.rsplit_once('/').unwrap();
    let url = format!("{rest}/{name}");
    PostgresStore::migrate(&url, Timeouts::default(), None)
        .await
        .unwrap();
    (name, PgConnection::connect(&url).await.unwrap())
}

async fn drop_database(name: &str) {
    let mut admin = PgConnection::connect(&server()).await.unwrap();
    run(&mut admin, &format!("DROP DATABASE {name}")).await;
    admin.close().await.unwrap();
}

async fn run(conn: &mut PgConnection, sql: &str) {
    let statement = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    statement.execute(conn).await.unwrap();
}

/// Inserts a million trades, entries, sessions and transactions: ten thousand for each of a hundred partners, one in five hundred
/// of them open or failed. Other tables get a tenth or a hundredth. References are not checked, and the indexes are created after
/// the rows, which halves the time.
const ROWS: &str = "SET session_replication_role = replica;
     SET synchronous_commit = off;
     SET maintenance_work_mem = '256MB';
     CREATE TEMP TABLE dropped AS
     SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS made
     FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid
     WHERE c.relnamespace = 'public'::regnamespace
       AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conindid = i.indexrelid);
     DO $$ DECLARE one record; BEGIN
         FOR one IN SELECT name FROM dropped LOOP EXECUTE 'DROP INDEX ' || one.name; END LOOP;
     END $$;
     CREATE TEMP TABLE n AS
     SELECT 'p' || lpad(p::text, 3, '0') AS partner, p * 100000 + i AS number, i, i % 500 = 0 AS rare,
            lpad(p::text, 2, '0') || lpad(i::text, 6, '0') AS name,
            lpad((p * 100000 + i)::text, 32, '0')::uuid AS id
     FROM generate_series(1, 100) AS p, generate_series(1, 10000) AS i;
     INSERT INTO partners SELECT DISTINCT 'test', partner, 'P', 'active' FROM n;
     INSERT INTO books (mode, partner_id, version, at) SELECT mode, partner_id, 1, 0 FROM partners;
     INSERT INTO velocity SELECT mode, partner_id, '0', 0 FROM partners;
     INSERT INTO accounts SELECT mode, partner_id, asset, 1, 1 FROM partners, unnest('{EUR,USDT}'::text[]) AS asset;
     INSERT INTO commitments SELECT mode, partner_id, asset, 1 FROM accounts;
     INSERT INTO webhook_endpoints SELECT mode, partner_id, 'gate', gen_random_uuid(), 'u' FROM partners;
     INSERT INTO quotes
     SELECT 'test', partner, id, 'EUR-USDT', 'off_ramp', 'tron', 1, 1, '1', 0, 0, 1, NULL, NULL, number, number + 1, number
     FROM n WHERE i <= 100;
     INSERT INTO trades (mode, partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps,
                         notional, reserved, status, created_at, settled_at, fill)
     SELECT 'test', partner, id, id, 'EUR-USDT', CASE i % 4 WHEN 0 THEN 'on_ramp' ELSE 'off_ramp' END, 'tron', 1, 1, '1', 0,
            0, 1, 1, CASE WHEN rare THEN 'reserved' ELSE 'settled' END, number, CASE WHEN NOT rare THEN number END,
            CASE WHEN NOT rare THEN 'f' END
     FROM n;
     INSERT INTO ledger_entries (mode, partner_id, id, asset, debit, credit, amount, reason, account_sequence,
                                 balance_after, reference, created_at)
     SELECT 'test', partner, id, 'EUR', CASE i % 2 WHEN 0 THEN 'outside' ELSE 'reserved' END,
            CASE i % 2 WHEN 0 THEN 'partner' ELSE 'operator' END, 1, 'adjustment', CASE i % 2 WHEN 0 THEN i / 2 END,
            CASE i % 2 WHEN 0 THEN 1 END, 'r', number FROM n;
     INSERT INTO idempotency_keys SELECT 'test', partner, 'route', name, sha256('k'), id, number FROM n WHERE i <= 1000;
     INSERT INTO answers SELECT 'test', partner, 'route', name, sha256('k'), 'a', number FROM n WHERE i <= 1000;
     INSERT INTO sessions (mode, partner_id, id, amount, currency, return_url, metadata, secret_hash, kyc_pre_verified,
                           status, created_at, expires_at, expired_at)
     SELECT 'test', partner, id, '1', 'EUR', 'u', '{}', sha256('s'), false, CASE WHEN rare THEN 'open' ELSE 'expired' END,
            number, number + 1, CASE WHEN NOT rare THEN number + 1 END
     FROM n;
     INSERT INTO transactions (mode, partner_id, id, session_id, action, status, currency, created_at, completed_at)
     SELECT 'test', partner, id, id, 'on_ramp', CASE WHEN rare THEN 'failed' ELSE 'completed' END, 'EUR', number,
            CASE WHEN NOT rare THEN number END
     FROM n;
     INSERT INTO customers
     SELECT 'test', partner, id, 'p', sha256(name::bytea), sha256(name::bytea), 'unverified', number, number, NULL, 1,
            CASE WHEN i > 500 THEN sha256(name::bytea) END, CASE WHEN i > 500 THEN sha256(name::bytea) END
     FROM n WHERE i <= 1000;
     INSERT INTO events (mode, partner_id, id, service, type, object_id, body, created_at)
     SELECT 'test', partner, name, 'gate', 'webhook.test', name, 'b', number FROM n WHERE i <= 1000;
     INSERT INTO deliveries (mode, partner_id, id, position, event_id, endpoint_id, object_id, status, delivered_at,
                             created_at)
     SELECT 'test', n.partner, n.id, n.i, n.name, w.id, n.name, CASE WHEN n.rare THEN 'dead_lettered' ELSE 'succeeded' END,
            CASE WHEN NOT n.rare THEN n.number END, n.number
     FROM n JOIN webhook_endpoints AS w ON w.partner_id = n.partner
     WHERE n.i <= 1000;
     DO $$ DECLARE one record; BEGIN
         FOR one IN SELECT made FROM dropped LOOP EXECUTE one.made; END LOOP;
     END $$;
     ANALYZE";

/// Pages of the database that a look-up of a hundred rows may touch.
const MAX_PAGES: u64 = 1_000;

/// The generic plan of a statement.
async fn plan(conn: &mut PgConnection, statement: &str) -> String {
    let used = (1..).take_while(|number| statement.contains(&format!("${number}")));
    let parameters = vec!["NULL"; used.count()].join(", ");
    run(conn, &format!("PREPARE planned AS {statement}")).await;
    let explaining = format!("EXPLAIN EXECUTE planned({parameters})");
    let lines: Vec<String> = sqlx::query_scalar(AssertSqlSafe(explaining))
        .fetch_all(&mut *conn)
        .await
        .unwrap();
    run(conn, "DEALLOCATE planned").await;
    lines.join("\n")
}

/// Asserts that a statement scans no table and uses these indexes.
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

/// Runs a statement with these parameters, rolls it back, and asserts that it touched few pages.
async fn assert_touches_little(
    conn: &mut PgConnection,
    opening: &str,
    statement: &str,
    parameters: &str,
) {
    let touched = touched(conn, opening, statement, parameters).await;
    assert!(touched <= MAX_PAGES, "{touched}\n{statement}");
}

// rule: pools.velocity.cost, gate.webhook-tools.cost
#[tokio::test]
async fn statements_look_up_their_rows_among_a_million() {
    let (name, mut conn) = database("million").await;
    run(&mut conn, ROWS).await;
    reads(&mut conn).await;
    run(&mut conn, crate::waits::WRITING).await;
    writes(&mut conn).await;
    conn.close().await.unwrap();
    drop_database(&name).await;
}

/// The rows of a database in its first seconds: many partners with few rows each.
const NEW_ROWS: &str = "SET session_replication_role = replica;
     CREATE TEMP TABLE n AS SELECT 'p' || i % 1000 AS partner, i, lpad(i::text, 32, '0')::uuid AS id
     FROM generate_series(1, 4000) AS i;
     INSERT INTO partners SELECT DISTINCT 'test', partner, 'P', 'active' FROM n;
     INSERT INTO books (mode, partner_id, version, at) SELECT mode, partner_id, 1, 0 FROM partners;
     INSERT INTO velocity SELECT mode, partner_id, '0', 0 FROM partners;
     INSERT INTO accounts SELECT mode, partner_id, asset, 1, 1 FROM partners, unnest('{EUR,USDT}'::text[]) AS asset;
     INSERT INTO webhook_endpoints SELECT mode, partner_id, 'pools', gen_random_uuid(), 'u' FROM partners;
     INSERT INTO quotes
     SELECT 'test', partner, id, 'EUR-USDT', 'off_ramp', 'tron', 1, 1, '1', 0, 0, 1, NULL, NULL, i, i + 1, NULL FROM n;
     INSERT INTO events (mode, partner_id, id, service, type, object_id, body, created_at)
     SELECT 'test', partner, i, 'pools', 'webhook.test', i, 'b', i FROM n;
     INSERT INTO deliveries (mode, partner_id, id, position, event_id, endpoint_id, object_id, status, next_attempt_at, created_at)
     SELECT 'test', n.partner, n.id, n.i, n.i, w.id, n.i, 'pending', n.i, n.i
     FROM n JOIN webhook_endpoints AS w ON w.partner_id = n.partner";

/// The server plans a statement at its first use and keeps the plan. Without statistics the planner expects one or two rows for a
/// condition on the mode alone, and such a plan would read all rows of the mode for each row of a batch.
#[tokio::test]
async fn statements_look_up_whole_keys_without_statistics() {
    use crate::batch::{load, write};
    use crate::{deliveries, partner_lock};
    use gate_core::profile::GateProfile;
    use pools_core::profile::PoolsProfile;
    use store_sql::access::StoredProfile as _;
    use store_sql::deliveries::hasten;
    let (name, mut conn) = database("unknown").await;
    for rows in ["SELECT 1", NEW_ROWS] {
        run(&mut conn, rows).await;
        run(&mut conn, crate::waits::WRITING).await;
        for statement in [
            partner_lock::TAKE,
            partner_lock::TAKE_UNLOCKED,
            partner_lock::EXISTING,
            load::READ,
            load::TRADES,
            write::WRITE,
            PoolsProfile::BY_IDS.postgres,
            GateProfile::BY_IDS.postgres,
            deliveries::PICK,
            deliveries::LIVE_SECRETS,
            deliveries::FIND,
            deliveries::EXISTING,
            deliveries::APPLY,
            deliveries::FOLLOWERS,
            deliveries::MOVE,
            hasten::OLDEST.sql.postgres,
            hasten::HASTEN.sql.postgres,
        ] {
            let plan = plan(&mut conn, statement).await;
            assert!(!plan.contains("Seq Scan"), "{statement}\n{plan}");
            let of_the_mode =
                |line: &&str| line.contains("Index Cond: ") && !line.contains(" AND ");
            assert_eq!(plan.lines().find(of_the_mode), None, "{statement}\n{plan}");
        }
        run(&mut conn, "COMMIT").await;
    }
    conn.close().await.unwrap();
    drop_database(&name).await;
}

/// Two partners whose endpoints have long queues, as after an outage.
const LONG_QUEUES: &str = "SET session_replication_role = replica;
     CREATE TEMP TABLE n AS SELECT 'p' || i % 2 AS partner, i, lpad(i::text, 32, '0')::uuid AS id
     FROM generate_series(1, 4000) AS i;
     INSERT INTO partners SELECT DISTINCT 'test', partner, 'P', 'active' FROM n;
     INSERT INTO webhook_endpoints
     SELECT 'test', partner_id, 'gate', lpad(substr(partner_id, 2), 32, '0')::uuid, 'u' FROM partners;
     INSERT INTO events (mode, partner_id, id, service, type, object_id, body, created_at)
     SELECT 'test', partner, i, 'gate', 'webhook.test', i, 'b', i FROM n;
     INSERT INTO deliveries (mode, partner_id, id, position, event_id, endpoint_id, object_id, status, next_attempt_at, created_at)
     SELECT 'test', partner, id, i, i, lpad(substr(partner, 2), 32, '0')::uuid, i, 'pending', i, i FROM n";

/// A connection plans a statement while the tables are empty, and keeps the plan until the statistics are gathered.
#[tokio::test]
async fn claim_planned_on_empty_tables_reads_each_delivery_by_key() {
    use crate::deliveries::PICK;
    let (name, mut conn) = database("empty").await;
    let ends = ["0", "1"].map(|end| format!("{end:0>32}")).join(",");
    let claim = format!("'test', '{{p0,p1}}', '{{{ends}}}', '{{250,250}}', 5000, '{{}}'");
    run(&mut conn, &format!("PREPARE planned AS {PICK}")).await;
    run(&mut conn, crate::waits::WRITING).await;
    run(&mut conn, &format!("EXECUTE planned({claim})")).await;
    run(&mut conn, &format!("COMMIT; {LONG_QUEUES}")).await;
    run(&mut conn, crate::waits::WRITING).await;
    let explaining = format!("EXPLAIN (ANALYZE, BUFFERS) EXECUTE planned({claim})");
    let lines: Vec<String> = sqlx::query_scalar(AssertSqlSafe(explaining))
        .fetch_all(&mut conn)
        .await
        .unwrap();
    let plan = lines.join("\n");
    assert!(!plan.contains("Rows Removed by Join Filter"), "{plan}");
    assert!(plan.contains("using events_key"), "{plan}");
    assert!(plan.contains("using webhook_endpoints_id"), "{plan}");
    conn.close().await.unwrap();
    drop_database(&name).await;
}

/// The start of a page in the middle of a partner's rows.
const BELOW: &str = "'test', 'p050', 5005000, 'ffffffff-ffff-ffff-ffff-ffffffffffff'";
/// The instant and the id below which a first page begins.
const END: &str = "9223372036854775807, 'ffffffff-ffff-ffff-ffff-ffffffffffff'";
const ID: &str = "'test', 'p050', '00000000-0000-0000-0000-000005005000'";
/// The blind indexes of four spellings, one of which a customer has.
const SPELLINGS: &str =
    "sha256('50000001'), sha256('50000001'), sha256('absent'), sha256('absent')";

/// Checks the lists and look-ups: their indexes, and the pages that they touch.
async fn lists(conn: &mut PgConnection) {
    use store_sql::deliveries::admin;
    use store_sql::{customer_forms, customers, exports, ledger, sessions, trades, transactions};
    let (all, never) = ("0, 100", i64::MAX);
    for (statement, index, parameters) in [
        (
            trades::PAGE.sql.postgres,
            "trades_list",
            format!("{BELOW}, {all}"),
        ),
        (
            trades::PAGE_OF_SIDE.sql.postgres,
            "trades_list_side",
            format!("{BELOW}, {all}, 'on_ramp'"),
        ),
        (
            trades::PAGE_OF_STATUS.sql.postgres,
            "trades_list_status",
            format!("{BELOW}, {all}, 'reserved'"),
        ),
        (
            trades::PAGE_OF_SIDE_AND_STATUS.sql.postgres,
            "trades_list_side_status",
            format!("{BELOW}, {all}, 'on_ramp', 'reserved'"),
        ),
        (
            ledger::PAGE.sql.postgres,
            "ledger_entries_sequence",
            "'test', 'p050', 'EUR', 2500, 0, 100".to_owned(),
        ),
        (
            ledger::LAST_UP_TO.sql.postgres,
            "ledger_entries_sequence",
            "'test', 'p050', 'EUR', 5000, 5005000".to_owned(),
        ),
        (
            exports::TRADES.sql.postgres,
            "trades_list",
            format!("{BELOW}, {never}, 100"),
        ),
        (
            exports::NUMBERED.sql.postgres,
            "ledger_entries_sequence",
            "'test', 'p050', 'EUR', 2500, 5000, 100".to_owned(),
        ),
        (
            exports::UNNUMBERED.sql.postgres,
            "ledger_entries_unnumbered",
            format!(
                "'test', 'p050', 'EUR', 5005000, '{}', 0, 0, {never}, 100",
                "f".repeat(32)
            ),
        ),
        (sessions::FIND.sql.postgres, "sessions_key", ID.to_owned()),
        (
            sessions::PAGE.sql.postgres,
            "sessions_listed",
            format!("{BELOW}, {all}"),
        ),
        (
            sessions::PAGE_OF_STATUS.sql.postgres,
            "sessions_listed_by_status",
            format!("{BELOW}, {all}, 'open'"),
        ),
        (
            sessions::OVERDUE.sql.postgres,
            "sessions_open",
            format!("'test', 'p050', {never}, 100"),
        ),
        (
            sessions::OVERDUE_IN.sql.postgres,
            "sessions_open",
            format!("'test', {never}, 'p050', 10, 100"),
        ),
        (
            transactions::FIND.sql.postgres,
            "transactions_key",
            ID.to_owned(),
        ),
        (
            transactions::PAGE.sql.postgres,
            "transactions_listed",
            format!("{BELOW}, {all}"),
        ),
        (
            transactions::PAGE_OF_STATUS.sql.postgres,
            "transactions_listed_by_status",
            format!("{BELOW}, {all}, 'failed'"),
        ),
        (
            transactions::PAGE_OF_SESSION.sql.postgres,
            "transactions_of_session",
            format!("{BELOW}, {all}, NULL, '00000000-0000-0000-0000-000005004000'"),
        ),
        (customers::FIND.sql.postgres, "customers_key", ID.to_owned()),
        (
            customers::PAGE.sql.postgres,
            "customers_listed",
            format!("{BELOW}, {all}"),
        ),
        (
            customers::BY_EMAIL.sql.postgres,
            "customers_by_email",
            "'test', 'p050', sha256('50000001')".to_owned(),
        ),
        (
            customers::BY_SPELLED_EMAIL.sql.postgres,
            "customers_email",
            format!("'test', 'p050', {SPELLINGS}"),
        ),
        (
            customers::BY_EXTERNAL_ID.sql.postgres,
            "customers_by_external_id",
            "'test', 'p050', sha256('50000001')".to_owned(),
        ),
        (
            customers::BY_SPELLED_EXTERNAL_ID.sql.postgres,
            "customers_external_id",
            format!("'test', 'p050', {SPELLINGS}"),
        ),
        (
            customer_forms::PARTNERS.sql.postgres,
            "partners_key",
            "'test', 'p050', 100".to_owned(),
        ),
        (
            customer_forms::WITHOUT.sql.postgres,
            "customers_key",
            "'test', 'p050', '00000000-0000-0000-0000-000005000100', 100".to_owned(),
        ),
        (
            admin::PAGE.sql.postgres,
            "deliveries_listed",
            format!("'test', 'p050', 'gate', 100, 0, {END}, 0"),
        ),
        (
            admin::PAGE_OF_STATUS.sql.postgres,
            "deliveries_listed_by_status",
            format!("'test', 'p050', 'gate', 100, 0, {END}, 0, 'dead_lettered'"),
        ),
    ] {
        assert_looked_up(conn, statement, &[index]).await;
        assert_touches_little(conn, "BEGIN", statement, &parameters).await;
    }
}

async fn reads(conn: &mut PgConnection) {
    // Some tables are so small in this test that the planner would scan them.
    let settings = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off";
    run(conn, settings).await;
    lists(conn).await;
    pages_of_deliveries(conn).await;
    assert_looked_up(conn, store_sql::quotes::FIND.sql.postgres, &["quotes_key"]).await;
    for statement in [
        store_sql::stats::SLICE_END.sql.postgres,
        store_sql::stats::SETTLED_ELSEWHERE.sql.postgres,
    ] {
        assert_looked_up(conn, statement, &["trades_settled"]).await;
    }
}

/// A page of deliveries is read backwards from an index alone. A forward scan would read all deliveries of the partner and sort them.
async fn pages_of_deliveries(conn: &mut PgConnection) {
    use store_sql::deliveries::admin;
    for (statement, index) in [
        (admin::PAGE.sql.postgres, "deliveries_listed"),
        (
            admin::PAGE_OF_STATUS.sql.postgres,
            "deliveries_listed_by_status",
        ),
    ] {
        let plan = plan(conn, statement).await;
        let scan = format!("Index Only Scan Backward using {index} on");
        assert!(plan.contains(&scan), "{plan}");
    }
}

async fn writes(conn: &mut PgConnection) {
    use crate::batch::{load, write};
    use crate::partner_lock;
    use partner_core::events::Service;
    use store_sql::idempotency::Sweep;
    use store_sql::{
        contingent_credits, customer_forms, customers, quote_retention, quotes, sessions,
        stored_responses, transactions, velocity,
    };
    let loaded = [
        "quotes_key",
        "idempotency_keys_key",
        "accounts_key",
        "commitments_key",
        "velocity_key",
        "trades_list",
    ];
    for (statement, indexes) in [
        (partner_lock::TAKE, &["books_key"][..]),
        (partner_lock::TAKE_UNLOCKED, &["books_key"][..]),
        (partner_lock::EXISTING, &["books_key"][..]),
        (quotes::FIND.sql.postgres, &["quotes_key"]),
        (load::READ, &loaded),
        (load::TRADES, &["trades_one_per_quote"]),
        (write::WRITE, &["quotes_key", "accounts_key", "books_key"]),
        (
            contingent_credits::SETTLED_FIAT.sql.postgres,
            &["trades_settled"],
        ),
        (
            contingent_credits::RESERVED_FIAT.sql.postgres,
            &["trades_list_status"],
        ),
        (
            contingent_credits::RESERVED_CRYPTO.sql.postgres,
            &["trades_list_status"],
        ),
        (velocity::OLDEST.sql.postgres, &["trades_list"]),
        (velocity::NEWEST.sql.postgres, &["trades_list"]),
        (
            velocity::COUNTED.sql.postgres,
            &["velocity_key", "trades_list"],
        ),
        (quote_retention::NEXT.sql.postgres, &["quotes_key"]),
        (quote_retention::DELETE.sql.postgres, &["quotes_key"]),
        (sessions::FIND.sql.postgres, &["sessions_key"]),
        (sessions::APPLY.sql.postgres, &["sessions_key"]),
        (transactions::FIND.sql.postgres, &["transactions_key"]),
        (stored_responses::FIND.sql.postgres, &["answers_key"]),
        (customer_forms::PUT.sql.postgres, &["customers_key"]),
        (
            customer_forms::HELD.sql.postgres,
            &["customers_by_email", "customers_by_external_id"],
        ),
        (
            customers::TAKEN.sql.postgres,
            &[
                "customers_by_email",
                "customers_email",
                "customers_by_external_id",
                "customers_external_id",
            ],
        ),
    ] {
        assert_looked_up(conn, statement, indexes).await;
    }
    run(conn, "COMMIT").await;
    for (service, table) in [
        (Service::Pools, "idempotency_keys"),
        (Service::Gate, "answers"),
    ] {
        let sweep = Sweep::of(service);
        let created = format!("{table}_created_at");
        for (statement, parameters) in [
            (sweep.reached.sql.postgres, "0, 9000000, 99"),
            (
                sweep.delete.sql.postgres,
                "'test', 0, 100100, 9000000, 86400000",
            ),
            (sweep.left.sql.postgres, "'test', 0, 100100"),
        ] {
            let opening = crate::waits::WRITING;
            run(conn, opening).await;
            assert_looked_up(conn, statement, &[&created]).await;
            run(conn, "ROLLBACK").await;
            assert_touches_little(conn, opening, statement, parameters).await;
        }
    }
    steps(conn).await;
}

/// A step reads only the trades up to its limit, of the partner's ten thousand.
async fn steps(conn: &mut PgConnection) {
    use crate::batch::load;
    use store_sql::{contingent_credits, velocity};
    const PAGES_OF_A_HUNDRED: u64 = 150;
    let trades = "'test', 'p050'";
    let read = "'test', ARRAY['p050'], ARRAY[NULL::uuid], ARRAY['r'], ARRAY['k'], ARRAY['EUR'], ARRAY['USDT'], ARRAY[true], \
         9000000, 0, 0, ARRAY[true]";
    for (statement, parameters) in [
        (
            velocity::OLDEST.sql.postgres,
            format!("{trades}, 0, 9000000"),
        ),
        (
            velocity::NEWEST.sql.postgres,
            format!("{trades}, 0, 9000000"),
        ),
        (velocity::COUNTED.sql.postgres, trades.to_owned()),
        (
            contingent_credits::SETTLED_FIAT.sql.postgres,
            format!("{trades}, 'EUR-', 0, 9000000, 0"),
        ),
        (load::READ, read.to_owned()),
    ] {
        let opening = crate::waits::WRITING;
        let few = touched(conn, opening, statement, &format!("{parameters}, 99")).await;
        let many = touched(conn, opening, statement, &format!("{parameters}, 99999")).await;
        assert!(few <= PAGES_OF_A_HUNDRED, "{few}\n{statement}");
        assert!(
            many > few * 2,
            "a higher limit touches more pages: {many}, {few}\n{statement}"
        );
    }
}

/// The pages that a statement touches.
async fn touched(conn: &mut PgConnection, opening: &str, statement: &str, parameters: &str) -> u64 {
    run(conn, &format!("{opening}; PREPARE planned AS {statement}")).await;
    let explaining = format!("EXPLAIN (ANALYZE, BUFFERS) EXECUTE planned({parameters})");
    let lines: Vec<String> = sqlx::query_scalar(AssertSqlSafe(explaining))
        .fetch_all(&mut *conn)
        .await
        .unwrap();
    run(conn, "ROLLBACK; DEALLOCATE planned").await;
    let touched = lines.iter().find(|line| line.contains("Buffers: "));
    let numbers = touched.unwrap().split([' ', '=']);
    numbers.filter_map(|word| word.parse::<u64>().ok()).sum()
}
