//! The version of the configuration, a table of one row.

use kernel::StoreResult;
use sqlx::SqliteConnection;

use crate::errors;

/// Stores a version that no process has seen. It is random in 2^62, so that a database that lost its last change in a
/// restore does not use the version of that change again.
pub(crate) async fn raise(conn: &mut SqliteConnection) -> StoreResult<()> {
    let raised = sqlx::query(
        "UPDATE config_version SET version = 1 + (random() & 4611686018427387903) WHERE id = 1",
    )
    .execute(conn)
    .await
    .map_err(errors::statement)?
    .rows_affected();
    errors::exactly("config_version", 1, raised)
}
