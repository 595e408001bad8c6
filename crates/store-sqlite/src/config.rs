//! The two single rows: the installation, and the number of the configuration.

use kernel::StoreError;
use sqlx::SqliteConnection;

use crate::errors;

/// Stores a version that no process has seen: one drawn from 2^62, so that a database which lost the last change
/// in a restore does not give its version to another.
pub(crate) async fn raise(conn: &mut SqliteConnection) -> Result<(), StoreError> {
    let raised = sqlx::query(
        "UPDATE config_version SET version = 1 + (random() & 4611686018427387903) WHERE id = 1",
    )
    .execute(conn)
    .await
    .map_err(errors::statement)?
    .rows_affected();
    if raised == 1 {
        Ok(())
    } else {
        Err(errors::rows("config_version", 1, raised))
    }
}
