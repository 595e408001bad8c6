//! The version of the configuration, a table of one row.

use crate::conn::Conn;
use kernel::StoreResult;

use crate::errors;

/// Locks the version until the transaction ends.
pub(crate) async fn lock(conn: &mut Conn) -> StoreResult<()> {
    sqlx::query("SELECT version FROM config_version WHERE id = 1 FOR UPDATE")
        .fetch_one(conn)
        .await
        .map_err(errors::statement)?;
    Ok(())
}

/// Draws a version that no process has seen. It is random in 2^52, so that a database that lost its last change in a failover
/// or a restore does not use the version of that change again. It is a separate statement, because an update of a distributed
/// table accepts no random value. A replica of an older release adds one instead, which is a new version too.
pub(crate) async fn draw(conn: &mut Conn) -> StoreResult<i64> {
    sqlx::query_scalar("SELECT 1 + floor(random() * 4503599627370496)::bigint")
        .fetch_one(conn)
        .await
        .map_err(errors::statement)
}

/// Stores a version that [`draw`] returned.
pub(crate) async fn put(conn: &mut Conn, version: i64) -> StoreResult<()> {
    let raised = sqlx::query("UPDATE config_version SET version = $1 WHERE id = 1")
        .bind(version)
        .execute(conn)
        .await
        .map_err(errors::statement)?
        .rows_affected();
    errors::exactly("config_version", 1, raised)
}
