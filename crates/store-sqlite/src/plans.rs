//! Tests the query plans of the statements that must stay fast in large tables: they use an index in its order and do not sort.

use std::sync::Arc;

use kernel::{Clock, Timestamp};
use partner_core::events::Service;
use sqlx::{AssertSqlSafe, Row as _};
use store_sql::{
    contingent_credits, customer_forms, customers, deposits, ledger, quote_retention, rails,
    sessions, signed_quotes, trades, transactions, velocity, verifications,
};

use crate::{Options, SqliteStore, batch, verify};

struct FrozenClock;

impl Clock for FrozenClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0).unwrap()
    }
}

/// The scans that a plan may have: of sets passed as JSON, of a search's halving steps, of partners found one by one, and of rows
/// that were looked up before.
const MAY_BE_SCANNED: [&str; 8] = [
    "SCAN j VIRTUAL TABLE",
    "SCAN CONSTANT ROW",
    "SCAN halves",
    "SCAN each_partner",
    "SCAN back",
    "SCAN b",
    "SCAN running",
    "SCAN oldest",
];

/// A step of a plan, with the step it belongs to.
struct PlanStep {
    id: i64,
    parent: i64,
    detail: String,
}

async fn plan(statement: &str) -> Vec<String> {
    let steps = explain(statement).await;
    steps.into_iter().map(|step| step.detail).collect()
}

async fn explain(statement: &str) -> Vec<PlanStep> {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        velocity_window: std::time::Duration::ZERO,
        idempotency_ttl: std::time::Duration::ZERO,
        turn_timeout: std::time::Duration::ZERO,
    };
    let store = SqliteStore::open(
        &folder.path().join("plans.db"),
        Arc::new(FrozenClock),
        options,
    )
    .await
    .unwrap();
    let mut conn = store.inner.writer().await.unwrap();
    let explained = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
    let rows = sqlx::query(explained).fetch_all(&mut *conn).await.unwrap();
    rows.iter()
        .map(|row| PlanStep {
            id: row.get("id"),
            parent: row.get("parent"),
            detail: row.get("detail"),
        })
        .collect()
}

fn details(steps: &[PlanStep]) -> String {
    let details = steps.iter().map(|step| step.detail.as_str());
    details.collect::<Vec<_>>().join("\n")
}

async fn assert_cheap(statement: &str) -> Vec<String> {
    let plan = plan(statement).await;
    for step in &plan {
        let scans =
            step.contains("SCAN") && !MAY_BE_SCANNED.iter().any(|may| step.starts_with(may));
        assert!(
            !scans && !step.contains("TEMP B-TREE"),
            "{statement}\n{plan:#?}"
        );
    }
    plan
}

#[tokio::test]
async fn pages_of_trades_follow_the_index_of_their_filter() {
    for (statement, index) in [
        (trades::PAGE.sql.sqlite, "trades_list ("),
        (trades::PAGE_OF_SIDE.sql.sqlite, "trades_list_side ("),
        (trades::PAGE_OF_STATUS.sql.sqlite, "trades_list_status ("),
        (
            trades::PAGE_OF_SIDE_AND_STATUS.sql.sqlite,
            "trades_list_side_status (",
        ),
    ] {
        let plan = assert_cheap(statement).await.concat();
        assert!(
            plan.contains(index) && plan.contains("created_at>? AND (created_at,id)<(?,?)"),
            "{plan}"
        );
    }
}

#[tokio::test]
async fn pages_of_the_gate_follow_the_index_of_their_filter() {
    for (statement, index) in [
        (sessions::PAGE.sql.sqlite, "sessions_listed ("),
        (
            sessions::PAGE_OF_STATUS.sql.sqlite,
            "sessions_listed_by_status (",
        ),
        (transactions::PAGE.sql.sqlite, "transactions_listed ("),
        (
            transactions::PAGE_OF_STATUS.sql.sqlite,
            "transactions_listed_by_status (",
        ),
        (
            transactions::PAGE_OF_SESSION.sql.sqlite,
            "transactions_of_session (",
        ),
        (customers::PAGE.sql.sqlite, "customers_listed ("),
    ] {
        let plan = assert_cheap(statement).await.concat();
        assert!(
            plan.contains(index) && plan.contains("created_at>? AND (created_at,id)<(?,?)"),
            "{plan}"
        );
    }
    let (compared, spelled) = ("_compared=?)", "_mark=?)");
    for (statement, searches) in [
        (&customers::BY_EMAIL, &[compared][..]),
        (&customers::BY_SPELLED_EMAIL, &[spelled]),
        (&customers::BY_EXTERNAL_ID, &[compared]),
        (&customers::BY_SPELLED_EXTERNAL_ID, &[spelled]),
        (&customers::TAKEN, &[compared, spelled]),
    ] {
        let plan = assert_cheap(statement.sql.sqlite).await.concat();
        for search in searches {
            assert!(plan.contains(search), "{plan}");
        }
    }
    for (statement, index) in [
        (sessions::OVERDUE.sql.sqlite, "sessions_open ("),
        (
            rails::NOTIFIED.sql.sqlite,
            "rail_records_by_id (id=? AND mode=? AND kind=?)",
        ),
        (rails::OLDEST.sql.sqlite, "rail_records_open ("),
        (
            rails::ERASE_PAYOUTS.sql.sqlite,
            "rail_records_payouts (mode=? AND ended_at<?)",
        ),
        (
            verifications::FIND.sql.sqlite,
            "verifications_session_once (",
        ),
    ] {
        let plan = assert_cheap(statement).await.concat();
        assert!(plan.contains(index), "{plan}");
    }
}

/// The walk over all customers reads each of them once, by its key.
// rule: gate.customer.earlier
#[tokio::test]
async fn earlier_customers_are_walked_by_their_keys() {
    for (statement, search) in [
        (&customer_forms::PARTNERS, "(mode=? AND partner_id>?)"),
        (
            &customer_forms::WITHOUT,
            "(mode=? AND partner_id=? AND id>?)",
        ),
        (&customer_forms::PUT, "(mode=? AND partner_id=? AND id=?)"),
        (
            &customer_forms::HELD,
            "(mode=? AND partner_id=? AND email_compared=?)",
        ),
        (
            &customer_forms::HELD,
            "(mode=? AND partner_id=? AND external_id_compared=?)",
        ),
    ] {
        let plan = assert_cheap(statement.sql.sqlite).await.concat();
        assert!(plan.contains(search), "{plan}");
    }
}

/// A quote supersedes the one quote of its session that can be paid, however many quotes the session had before.
#[tokio::test]
async fn superseded_quotes_are_looked_up_by_their_session() {
    let plan = assert_cheap(signed_quotes::SUPERSEDE.sql.sqlite).await;
    let index = "signed_quotes_session_once (mode=? AND partner_id=? AND session_id=?)";
    assert!(plan.concat().contains(index), "{plan:?}");
}

// rule: cli.credit.once
#[tokio::test]
async fn deposits_are_looked_up_by_compared_reference() {
    let index = "deposits_compared (mode=? AND partner_id=? AND product=? AND compared=?)";
    for statement in [&deposits::FIND, &deposits::UNCOMPARED] {
        let plan = plan(statement.sql.sqlite).await.concat();
        assert!(plan.contains(index), "{plan}");
    }
}

// rule: background.isolated
#[tokio::test]
async fn reads_of_what_is_due_take_one_step_for_each_partner() {
    for (statement, index, of, at) in [
        (&sessions::OVERDUE_IN, "sessions_open", "", "expires_at"),
        (
            &rails::DUE,
            "rail_records_due_of_rail",
            " AND rail=?",
            "ask_at",
        ),
        (
            &rails::WATCHED,
            "rail_records_watched",
            " AND rail=?",
            "watch_at",
        ),
        (
            &verifications::DUE,
            "verifications_due_of_verifier",
            " AND verifier=?",
            "ask_at",
        ),
    ] {
        let plan = assert_cheap(statement.sql.sqlite).await.concat();
        let steps = format!("{index} (mode=?{of} AND partner_id>?)");
        assert_eq!(plan.matches(&steps).count(), 2, "{plan}");
        // The condition of the index of watched records is also a lower bound.
        let bounds = if at == "watch_at" {
            format!("{at}>? AND {at}<?")
        } else {
            format!("{at}<?")
        };
        let rows = format!("{index} (mode=?{of} AND partner_id=? AND {bounds})");
        assert_eq!(plan.matches(&rows).count(), 1, "{plan}");
    }
}

#[tokio::test]
async fn pages_of_the_ledger_follow_its_numbers() {
    let plan = assert_cheap(ledger::PAGE.sql.sqlite).await.concat();
    assert!(
        plan.contains("account_sequence>? AND account_sequence<?"),
        "{plan}"
    );
    let plan = assert_cheap(ledger::LAST_UP_TO.sql.sqlite).await.concat();
    assert!(plan.contains("asset=? AND account_sequence=?"), "{plan}");
}

// rule: pools.velocity.cost
#[tokio::test]
async fn velocity_window_is_read_from_index_alone() {
    for statement in [
        batch::load::CROSSED,
        velocity::OLDEST.sql.sqlite,
        velocity::NEWEST.sql.sqlite,
    ] {
        let plan = assert_cheap(statement).await.concat();
        let range = "COVERING INDEX trades_list (mode=? AND partner_id=? AND created_at>? AND created_at<?)";
        // The range is read once for the instant at which the step ends, and once for the trades up to it.
        assert_eq!(plan.matches(range).count(), 2, "{plan}");
    }
    let plan = assert_cheap(velocity::COUNTED.sql.sqlite).await.concat();
    let range = "COVERING INDEX trades_list (mode=? AND partner_id=? AND created_at>?)";
    assert!(plan.contains(range), "{plan}");
}

#[tokio::test]
async fn sweeps_follow_an_index() {
    use store_sql::idempotency::Sweep;
    for (service, table) in [
        (Service::Pools, "idempotency_keys"),
        (Service::Gate, "answers"),
    ] {
        let sweep = Sweep::of(service);
        for statement in [
            sweep.reached.sql.sqlite,
            sweep.delete.sql.sqlite,
            sweep.left.sql.sqlite,
        ] {
            let plan = assert_cheap(statement).await.concat();
            let range = format!("{table}_created_at (created_at>? AND created_at<?)");
            assert!(plan.contains(&range), "{plan}");
        }
    }
    for statement in [
        quote_retention::NEXT.sql.sqlite,
        quote_retention::DELETE.sql.sqlite,
    ] {
        let plan = assert_cheap(statement).await.concat();
        assert!(plan.contains("(mode=? AND partner_id=? AND id>?"), "{plan}");
    }
    let due = "sessions_quotes_due (mode=? AND partner_id=?";
    for (statement, searches) in [
        (signed_quotes::ENDED.sql.sqlite, &[due][..]),
        (signed_quotes::SWEPT.sql.sqlite, &[due]),
        (
            signed_quotes::DELETE_UNUSED.sql.sqlite,
            &[
                due,
                "signed_quotes_unused (mode=? AND partner_id=? AND session_id=?)",
            ],
        ),
    ] {
        let plan = assert_cheap(statement).await.concat();
        for search in searches {
            assert!(plan.contains(search), "{plan}");
        }
    }
}

#[tokio::test]
async fn export_reads_rows_of_its_partner() {
    use store_sql::exports;
    let plan = assert_cheap(exports::TRADES.sql.sqlite).await.concat();
    assert!(plan.contains("trades_list ("), "{plan}");
    let plan = assert_cheap(exports::NUMBERED.sql.sqlite).await.concat();
    assert!(
        plan.contains("account_sequence>? AND account_sequence<?"),
        "{plan}"
    );
    let plan = assert_cheap(exports::UNNUMBERED.sql.sqlite).await.concat();
    assert!(plan.contains("account_sequence=? AND rowid>?"), "{plan}");
    assert_cheap(exports::ACCOUNTS.sql.sqlite).await;
}

#[tokio::test]
async fn contingent_credit_count_reads_reserved_and_recently_settled_trades() {
    let settled = "trades_settled (mode=? AND partner_id=? AND settled_at>? AND settled_at<?)";
    let reserved = "trades_list_status (mode=? AND partner_id=? AND status=? AND created_at>?";
    let sales =
        "trades_list_side_status (mode=? AND partner_id=? AND side=? AND status=? AND created_at>?";
    // The range is read once for the instant at which the slice ends, and once for the trades up to it.
    for (statement, bound, range) in [
        (
            contingent_credits::SETTLED_FIAT.sql.sqlite,
            settled,
            settled,
        ),
        (
            contingent_credits::RESERVED_FIAT.sql.sqlite,
            reserved,
            reserved,
        ),
        (
            contingent_credits::RESERVED_CRYPTO.sql.sqlite,
            reserved,
            sales,
        ),
    ] {
        let plan = assert_cheap(statement).await.concat();
        let found = plan.matches(bound).count() + plan.matches(range).count();
        assert_eq!(found, if bound == range { 4 } else { 2 }, "{plan}");
    }
    assert_cheap(contingent_credits::ABOVE.sql.sqlite).await;
}

#[tokio::test]
async fn count_of_returnable_trades_reads_recently_settled_ones() {
    use store_sql::stats;
    for (statement, range) in [
        (stats::SLICE_END.sql.sqlite, "settled_at>?)"),
        (
            stats::SETTLED_ELSEWHERE.sql.sqlite,
            "settled_at>? AND settled_at<?)",
        ),
    ] {
        let plan = plan(statement).await.concat();
        let lookup = format!("trades_settled (mode=? AND partner_id=? AND {range}");
        assert!(plan.contains(&lookup), "{plan}");
    }
}

#[tokio::test]
async fn batch_looks_up_its_rows() {
    use batch::{load, write};
    for statement in [
        load::IDEMPOTENCY,
        load::QUOTES,
        load::TRADES,
        load::ACCOUNTS,
        load::CONTINGENT_CREDITS,
        load::VELOCITY,
        write::CONSUME,
        write::OPEN,
        write::POST,
        write::CONTINGENT_CREDITS,
        write::TOTAL,
        write::RECORD,
    ] {
        assert_cheap(statement).await;
    }
    // The statement reads the table that it writes, so SQLite copies the selected accounts, and only these, to a temporary table.
    let plan = plan(write::BALANCE).await;
    assert!(
        plan.iter()
            .any(|step| step.contains("SEARCH a USING") && step.contains("asset=?")),
        "{plan:?}"
    );
}

#[tokio::test]
async fn deliveries_are_looked_up_one_by_one() {
    use crate::deliveries::{FIND, LATER, MOVE, PICK, WRITE};
    use store_sql::deliveries::hasten::{HASTEN, OLDEST};
    for (statement, index) in [
        (&FIND, "(mode=? AND partner_id=? AND id=?)"),
        (&WRITE, "deliveries USING INTEGER PRIMARY KEY"),
        (&MOVE, "deliveries USING INTEGER PRIMARY KEY"),
        (&LATER, "d USING INTEGER PRIMARY KEY"),
        (
            &LATER,
            "deliveries_open (mode=? AND partner_id=? AND endpoint_id=? AND object_id=? AND sequence>?)",
        ),
        (
            &PICK,
            "deliveries_queue (mode=? AND endpoint_id=? AND next_attempt_at<?)",
        ),
        (&HASTEN, "deliveries USING INTEGER PRIMARY KEY"),
        (
            &HASTEN,
            "deliveries_queue (mode=? AND endpoint_id=? AND next_attempt_at>?)",
        ),
        (
            &OLDEST,
            "deliveries_listed_by_status (mode=? AND partner_id=? AND endpoint_id=? AND status=? AND created_at<?)",
        ),
    ] {
        let statement = statement.sql.sqlite;
        let plan = assert_cheap(statement).await;
        let is_used = |step: &String| step.contains(index);
        assert!(plan.iter().any(is_used), "{statement}\n{plan:#?}");
    }
}

// rule: gate.webhook-tools.cost
#[tokio::test]
async fn pages_of_deliveries_follow_the_index_of_their_filter() {
    use store_sql::deliveries::admin;
    let endpoint = "mode=? AND partner_id=? AND endpoint_id=?";
    let below = "created_at>? AND (created_at,id)<(?,?)";
    for (statement, index) in [
        (
            &admin::PAGE,
            format!("deliveries_listed ({endpoint} AND {below})"),
        ),
        (
            &admin::PAGE_OF_STATUS,
            format!("deliveries_listed_by_status ({endpoint} AND status=? AND {below})"),
        ),
    ] {
        let steps = explain(statement.sql.sqlite).await;
        let covering = format!("COVERING INDEX {index}");
        let is_used = |step: &PlanStep| step.detail.contains(&covering);
        assert!(steps.iter().any(is_used), "{}", details(&steps));
        // Only the rows of the page are sorted, outside the subquery that finds the page.
        let is_sorted = |step: &&PlanStep| step.detail.contains("TEMP B-TREE");
        let mut sorts = steps.iter().filter(is_sorted);
        assert!(sorts.all(|step| step.parent == 0), "{}", details(&steps));
    }
    let plan = assert_cheap(admin::HOLD_BACK.sql.sqlite).await.concat();
    let index = "deliveries_open (mode=? AND partner_id=? AND endpoint_id=? AND object_id=? AND sequence>?)";
    assert!(plan.contains(index), "{plan}");
}

/// SQLite prepares a statement again for every number bound to a bare `LIMIT ?`, to plan with the number. That costs more
/// than running most statements. It does not do so for `LIMIT +?`.
#[test]
fn statements_are_not_prepared_again_for_each_limit() {
    let mut folders = vec![std::path::PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src"
    ))];
    let mut read = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("plans.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let bare = ["LIMIT ?", "OFFSET ?"].map(|clause| text.contains(clause));
                assert_eq!(bare, [false; 2], "{}", path.display());
                read += 1;
            }
        }
    }
    assert!(read > 20);
}

/// A statement of an audit scans one table once and looks up other rows. It sorts nothing and keeps nothing that grows with
/// the number of rows.
#[tokio::test]
async fn audit_scans_each_table_once() {
    // The profiles are few, so their statement may sort.
    let shared = store_sql::verify::statements().filter(|one| one.table != "pools_profiles");
    for statement in [&verify::WHOLE, &verify::REFERENCES]
        .into_iter()
        .chain(shared)
    {
        let statement = statement.sql.sqlite;
        for step in plan(statement).await {
            let kept = step.contains("TEMP B-TREE")
                || step.contains("AUTOMATIC")
                || step.contains("MATERIALIZE");
            assert!(!kept, "{statement}\n{step}");
        }
        let within = nested_scans(statement).await;
        assert!(within.is_empty(), "{statement}\n{within:?}");
    }
}

/// The scans that a statement repeats for each row of another scan.
async fn nested_scans(statement: &str) -> Vec<String> {
    let steps = explain(statement).await;
    let under = |parent: i64, word: &str| {
        let mut above = steps.iter().filter(|step| step.id == parent);
        above.any(|step| step.detail.starts_with(word))
    };
    let mut nested = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let before = &steps[..number];
        let inner = under(step.parent, "CORRELATED")
            || before
                .iter()
                .any(|other| other.parent == step.parent && other.detail.starts_with("SCAN"));
        let single = step.detail.contains("pragma_");
        // The steps of a subquery are checked by themselves.
        let table = !step.detail.starts_with("SCAN (subquery");
        if step.detail.starts_with("SCAN") && inner && table && !single {
            nested.push(step.detail.clone());
        }
    }
    nested
}
