//! Tables of one row: the version of the configuration, and the mode of the installation.

use kernel::{Mode, StoreError, StoreResult};

use crate::conn::Conn;
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

/// The mode of the installation; `None` if no program has stored it, or if the schema is older than the mode.
pub(crate) async fn stored_mode(conn: &mut Conn) -> StoreResult<Option<Mode>> {
    let found = sqlx::query_scalar("SELECT mode FROM installation_mode WHERE id = 1")
        .fetch_optional(conn)
        .await;
    let found: Option<String> = match found {
        Err(error) if errors::is_missing_table(&error) => None,
        found => found.map_err(errors::statement)?,
    };
    let mode = found.map(|text| Mode::parse(&text).ok_or(text)).transpose();
    mode.map_err(|text| StoreError::unexpected(format!("installation_mode has the mode {text:?}")))
}
