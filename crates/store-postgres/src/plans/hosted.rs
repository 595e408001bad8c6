//! Plans of the statements of hosted payments, quotes of sessions, verifications and the widget's reads: each looks up its rows by a
//! whole key, whatever the planner knows about the tables.

use sqlx::{Connection as _, PgConnection};
use store_sql::{customers, keys, rails, sessions, signed_quotes, transactions, verifications};

use super::{database, drop_database, plan, run};

/// Twenty thousand payments, two thousand for each of ten partners. All have ended.
const ENDED: &str = "SET session_replication_role = replica;
     CREATE TEMP TABLE n AS SELECT 'p' || i % 10 AS partner, i, lpad(i::text, 32, '0')::uuid AS id
     FROM generate_series(1, 20000) AS i;
     INSERT INTO partners SELECT DISTINCT 'test', partner, 'P', 'active' FROM n;
     INSERT INTO books (mode, partner_id, version, at) SELECT mode, partner_id, 1, 0 FROM partners;
     INSERT INTO api_keys (mode, partner_id, id, hash, kind, prefix, last4, generated, created_at, publishable_sealed)
     SELECT 'test', partner, id, sha256(id::text::bytea), 'publishable', 'pk_test', 'last', true, i, 's' FROM n WHERE i <= 1000;
     INSERT INTO sessions (mode, partner_id, id, amount, currency, return_url, metadata, secret_hash, kyc_pre_verified,
                           status, created_at, expires_at, expired_at)
     SELECT 'test', partner, id, '1', 'EUR', 'u', '{}', sha256('s'), false, 'expired', i, i + 1, i + 1 FROM n;
     INSERT INTO transactions (mode, partner_id, id, session_id, action, status, currency, created_at)
     SELECT 'test', partner, id, id, 'on_ramp', 'failed', 'EUR', i FROM n;
     INSERT INTO signed_quotes (mode, partner_id, id, side, currency, asset, asset_scale, network, payment_method, fiat, crypto,
                                rate, service_fee, network_fee, signature, created_at, expires_at, consumed_at, session_id)
     SELECT 'test', partner, id, 'off_ramp', 'EUR', 'USDT', 6, 'tron', 'sepa', 1, 1, '1', 0, 0, sha256('s'), i, i + 9, i + 1, id
     FROM n;
     INSERT INTO rail_records (mode, partner_id, id, kind, quote_id, session_id, transaction_id, instructions, status,
                               failure_code, created_at, ended_at, attempts, ask_at, hosted, payout)
     SELECT 'test', partner, id, 'pay_out', id, id, id, '{}', 'failed', 'c', i, i + 1, 1, i, true, 'p' FROM n;
     INSERT INTO verifications (mode, partner_id, id, session_id, status, created_at, ended_at, attempts, ask_at)
     SELECT 'test', partner, id, id, 'approved', i, i + 1, 1, i FROM n;
     INSERT INTO customers
     SELECT 'test', partner, id, 'p', sha256(id::text::bytea), sha256(id::text::bytea), 'unverified', i, i, NULL, 1 FROM n";
/// All payments are in progress, and all quotes can be redeemed.
const IN_PROGRESS: &str = "SET session_replication_role = replica;
     UPDATE sessions SET status = 'open', expired_at = NULL;
     UPDATE transactions SET status = 'processing';
     UPDATE signed_quotes SET consumed_at = NULL;
     UPDATE rail_records SET status = 'processing', failure_code = NULL, ended_at = NULL;
     UPDATE verifications SET status = 'pending', ended_at = NULL";

/// The planner's statistics of tables.
#[derive(Debug, Clone, Copy)]
enum Statistics {
    /// The tables are new.
    OfNothing,
    /// Gathered when the tables were empty.
    OfEmptyTables,
    /// None, as after a crash of the server.
    Lost,
    /// Gathered when no payment was in progress.
    Old,
    /// Gathered now.
    Current,
}

impl Statistics {
    const ALL: [Self; 5] = [
        Self::OfNothing,
        Self::OfEmptyTables,
        Self::Lost,
        Self::Old,
        Self::Current,
    ];

    const fn exist(self) -> bool {
        match self {
            Self::OfNothing | Self::OfEmptyTables | Self::Lost => false,
            Self::Old | Self::Current => true,
        }
    }

    async fn prepare(self, conn: &mut PgConnection) {
        // Otherwise the server may gather statistics of its own meanwhile.
        let tables = "DO $$ DECLARE one record; BEGIN
             FOR one IN SELECT oid::regclass AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
             LOOP EXECUTE 'ALTER TABLE ' || one.name || ' SET (autovacuum_enabled = false)'; END LOOP;
         END $$";
        run(conn, tables).await;
        let steps: &[&str] = match self {
            Self::OfNothing => &[],
            Self::OfEmptyTables => &["ANALYZE", ENDED, IN_PROGRESS],
            Self::Lost => &[ENDED, IN_PROGRESS],
            Self::Old => &[ENDED, "ANALYZE", IN_PROGRESS],
            Self::Current => &[ENDED, IN_PROGRESS, "ANALYZE"],
        };
        for step in steps {
            run(conn, step).await;
        }
    }
}

/// A statement, and what is searched for in each index that it must use.
type Lookup = (&'static str, &'static [&'static str]);

/// The payments of a session, by one of its two indexes.
const PAYMENT: &str = "(session_id = ";

/// The next partner, and what is due of each partner.
const DUE_SESSIONS: &[&str] = &[
    "(partner_id > $3)",
    "(partner_id = each_partner.partner_id) AND (expires_at <= $2)",
];
const WATCHED_RECORDS: &[&str] = &[
    "(partner_id > $3)",
    "(partner_id = each_partner.partner_id) AND (watch_at <= $2)",
];
const DUE_RECORDS: &[&str] = &[
    "(partner_id > $3)",
    "(partner_id = each_partner.partner_id) AND (ask_at <= $2)",
];

/// Statements that read outside a transaction that writes.
const READS: &[Lookup] = &[
    (sessions::FIND.sql.postgres, &["(id = $3)", PAYMENT]),
    (
        sessions::PAGE.sql.postgres,
        &["(ROW(created_at, id) < ROW($3, $4))", PAYMENT],
    ),
    (
        sessions::PAGE_OF_STATUS.sql.postgres,
        &["(ROW(created_at, id) < ROW($3, $4))", PAYMENT],
    ),
    (sessions::OVERDUE.sql.postgres, &["(expires_at <= $3)"]),
    (sessions::OVERDUE_IN.sql.postgres, DUE_SESSIONS),
    (
        rails::FIND.sql.postgres,
        &["(id = $3)", "(id = r.quote_id)"],
    ),
    (
        rails::NEWEST_OF_SESSION.sql.postgres,
        &["(session_id = $3)", "(id = r.quote_id)"],
    ),
    (rails::DUE.sql.postgres, DUE_RECORDS),
    (rails::WATCHED.sql.postgres, WATCHED_RECORDS),
    (rails::NOTIFIED.sql.postgres, &["(id = $2)"]),
    (signed_quotes::FIND.sql.postgres, &["(id = $3)"]),
    (verifications::FIND.sql.postgres, &["(session_id = $3)"]),
    (verifications::DUE.sql.postgres, DUE_RECORDS),
    (transactions::FIND.sql.postgres, &["(id = $3)"]),
    (customers::FIND.sql.postgres, &["(id = $3)"]),
    // A partner has few keys.
    (
        keys::NEWEST_PUBLISHABLE.sql.postgres,
        &["(partner_id = $2)"],
    ),
];

/// Statements of a transaction that writes.
const WRITES: &[Lookup] = &[
    (sessions::FIND.sql.postgres, &["(id = $3)", PAYMENT]),
    (sessions::APPLY.sql.postgres, &["(id = $3)", PAYMENT]),
    (sessions::COUNT_TOKEN.sql.postgres, &["(id = $3)"]),
    (
        rails::FIND.sql.postgres,
        &["(id = $3)", "(id = r.quote_id)"],
    ),
    (
        rails::NEWEST_OF_SESSION.sql.postgres,
        &["(session_id = $3)", "(id = r.quote_id)"],
    ),
    (rails::ASK.sql.postgres, &["(id = $3)"]),
    (rails::END.sql.postgres, &["(id = $3)"]),
    (rails::WATCH.sql.postgres, &["(id = $3)"]),
    (
        rails::ERASE_PAYOUTS.sql.postgres,
        &["(ended_at <= $2)", ".id)"],
    ),
    (signed_quotes::FIND.sql.postgres, &["(id = $3)"]),
    (
        signed_quotes::SUPERSEDE.sql.postgres,
        &["(session_id = $3)"],
    ),
    (signed_quotes::CONSUME.sql.postgres, &["(id = $3)"]),
    (signed_quotes::ENDED.sql.postgres, &["(partner_id = $2)"]),
    (
        signed_quotes::DELETE_UNUSED.sql.postgres,
        &["(expires_at <= $3)", "(session_id = s.id)", ".id)"],
    ),
    (signed_quotes::SWEPT.sql.postgres, &["(expires_at <= $3)"]),
    (verifications::FIND.sql.postgres, &["(session_id = $3)"]),
    (verifications::PUT.sql.postgres, &["(id = $3)"]),
    (transactions::FIND.sql.postgres, &["(id = $3)"]),
    (transactions::END.sql.postgres, &["(id = $3)"]),
];

/// What begins a read of a long-lived connection, whose plans are generic after some executions.
const READING: &str =
    "BEGIN; SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off";

/// What is wrong with the plan of a statement.
fn fault(plan: &str, searches: &[&str], statistics: Statistics) -> Option<String> {
    let conditions: Vec<&str> = plan
        .lines()
        .filter(|line| line.contains("Index Cond: "))
        .collect();
    let is_searched = |what: &&str| conditions.iter().any(|line| line.contains(what));
    if plan.contains("Seq Scan") {
        return Some("a table is scanned".to_owned());
    }
    // An empty table of keys may be planned by `api_keys_named`. Its statistics are gathered, and the plan is made again, at five pages.
    let is_wide = |line: &&&str| !line.contains(" AND ");
    if let Some(wide) = conditions.iter().find(is_wide)
        && !plan.contains("api_keys_named")
    {
        return Some(format!("all rows of the mode are read:{wide}"));
    }
    // Without statistics all keys that begin with the mode and the partner look the same, until the next two seconds have passed.
    let missing = searches
        .iter()
        .find(|what| statistics.exist() && !is_searched(what));
    missing.map(|what| format!("no index is searched for {what}"))
}

#[tokio::test]
async fn hosted_flow_looks_up_whole_keys_whatever_statistics_say() {
    let mut faults = Vec::new();
    for statistics in Statistics::ALL {
        let (name, mut conn) = database("hosted").await;
        statistics.prepare(&mut conn).await;
        for (opening, lookups) in [(READING, READS), (crate::waits::WRITING, WRITES)] {
            run(&mut conn, opening).await;
            for (statement, searches) in lookups {
                let plan = plan(&mut conn, statement).await;
                if let Some(fault) = fault(&plan, searches, statistics) {
                    faults.push(format!("{statistics:?}: {fault}\n{statement}\n{plan}"));
                }
            }
            run(&mut conn, "ROLLBACK").await;
        }
        conn.close().await.unwrap();
        drop_database(&name).await;
    }
    assert!(
        faults.is_empty(),
        "{}\n{}",
        faults.len(),
        faults.join("\n\n")
    );
}
