//! How long the store waits for what other requests hold, and the statements that begin its transactions.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{AssertSqlSafe, SqlSafeStr as _, SqlStr};
use store_sql::TURN_TIMEOUT;

use crate::durability::raise_synchronous_commit;

/// Begins a write transaction, before its limits.
///
/// The settings are local to the transaction, so they also apply behind a pooler that assigns connections by transaction. Writes
/// look up their rows by key: a plan that scans a table while it is small would still scan it after it has grown. `jit` is off,
/// because a scan that is unavoidable gets such a high cost that the server would compile its plan each time.
pub(crate) const WRITING: &str = concat!(
    "BEGIN ISOLATION LEVEL READ COMMITTED; \
     SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off; \
     SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL jit = off; SELECT ",
    raise_synchronous_commit!()
);
/// Begins several reads of one snapshot, before their limits.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// How long a request waits for what other requests hold. The default is for services. A test that holds nothing waits longer,
/// because a busy machine may stand still for seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// For a row that another transaction has locked.
    pub lock: Duration,
    /// For a statement of a transaction. Then the server cancels it.
    pub statement: Duration,
    /// For the next statement of a transaction. Then the server ends the session.
    pub idle: Duration,
    /// For a free connection.
    pub connection: Duration,
    /// For a turn of the partner.
    pub turn: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        let statement = Duration::from_secs(2);
        Self {
            lock: Duration::from_secs(1),
            statement,
            idle: Duration::from_secs(5),
            // As long as the server lets a statement run.
            connection: statement,
            turn: TURN_TIMEOUT,
        }
    }
}

/// The statements that begin transactions, each in one exchange.
#[derive(Debug)]
pub(crate) struct Openings {
    /// Begins a write transaction.
    pub(crate) writing: SqlStr,
    /// Begins several reads of one snapshot.
    pub(crate) snapshot: SqlStr,
}

impl Openings {
    pub(crate) fn new(waits: Waits) -> Self {
        let [lock, statement, idle] =
            [waits.lock, waits.statement, waits.idle].map(|wait| wait.as_millis());
        let limits = format!(
            "SET LOCAL statement_timeout = {statement}; SET LOCAL idle_in_transaction_session_timeout = {idle}"
        );
        Self {
            writing: sql(format!(
                "{WRITING}; {limits}; SET LOCAL lock_timeout = {lock}"
            )),
            snapshot: sql(format!("{SNAPSHOT}; {limits}")),
        }
    }
}

/// Statements that contain numbers and no other variable part. Cloning them copies no text.
fn sql(statements: String) -> SqlStr {
    AssertSqlSafe(Arc::<str>::from(statements)).into_sql_str()
}
