//! Whether an acknowledged commit survives a crash of the server.

use kernel::StoreResult;
use sqlx::{Executor as _, Row as _};

use crate::conn::Conn;
use crate::errors;

/// Sets `synchronous_commit` to `on` for the rest of the transaction if it is `off` or `local`, and returns the level that counts.
///
/// With `off` the server acknowledges a commit before it is on the disk, with `local` before a synchronous standby has it. A database
/// or a role may have such a default. Every transaction that writes contains this expression, so the default does not matter.
macro_rules! raise_synchronous_commit {
    () => {
        "set_config('synchronous_commit',
                    CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN 'on'
                         ELSE current_setting('synchronous_commit') END, true)"
    };
}
pub(crate) use raise_synchronous_commit;

/// The server's settings that decide whether an acknowledged commit survives a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durability {
    /// The level of `synchronous_commit` that a new session has.
    pub synchronous_commit: String,
    /// Whether the server flushes its log to the disk.
    pub fsync: bool,
    /// Whether the server's log repairs pages that were written in part.
    pub full_page_writes: bool,
}

impl Durability {
    /// Whether transactions that write use a higher level of `synchronous_commit` than the session's.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        matches!(self.synchronous_commit.as_str(), "off" | "local")
    }

    pub(crate) async fn read(conn: &mut Conn) -> StoreResult<Self> {
        let row = conn.fetch_one(sqlx::raw_sql(READ)).await;
        let row = row.map_err(errors::statement)?;
        let read = || {
            Ok::<_, sqlx::Error>(Self {
                synchronous_commit: row.try_get("synchronous_commit")?,
                fsync: row.try_get("fsync")?,
                full_page_writes: row.try_get("full_page_writes")?,
            })
        };
        read().map_err(errors::statement)
    }
}

/// A server that is compatible with Postgres may lack the last two settings.
const READ: &str = "SELECT current_setting('synchronous_commit') AS synchronous_commit,
        coalesce(current_setting('fsync', true), 'on') = 'on' AS fsync,
        coalesce(current_setting('full_page_writes', true), 'on') = 'on' AS full_page_writes";
