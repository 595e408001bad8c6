//! The two single rows: the installation, and the number of the configuration.

use kernel::StoreError;
use sqlx::SqliteConnection;

use crate::errors;

pub(crate) async fn version(conn: &mut SqliteConnection) -> Result<i64, StoreError> {
    sqlx::query_scalar("SELECT version FROM config_version WHERE id = 1")
        .fetch_one(conn)
        .await
        .map_err(errors::statement)
}

pub(crate) async fn raise(conn: &mut SqliteConnection) -> Result<(), StoreError> {
    let raised = sqlx::query("UPDATE config_version SET version = version + 1 WHERE id = 1")
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

/// Keeps the first fingerprint ever given; answers the one kept.
pub(crate) async fn master_key(
    conn: &mut SqliteConnection,
    fingerprint: &str,
) -> Result<String, StoreError> {
    sqlx::query(
        "INSERT INTO installation (id, master_key_fingerprint) VALUES (1, ?1) ON CONFLICT (id) DO NOTHING",
    )
    .bind(fingerprint)
    .execute(&mut *conn)
    .await
    .map_err(errors::statement)?;
    let kept = fingerprint_kept(conn).await?;
    kept.ok_or_else(|| errors::rows("installation", 1, 0))
}

/// The fingerprint kept, where there is one.
pub(crate) async fn fingerprint_kept(
    conn: &mut SqliteConnection,
) -> Result<Option<String>, StoreError> {
    sqlx::query_scalar("SELECT master_key_fingerprint FROM installation WHERE id = 1")
        .fetch_optional(conn)
        .await
        .map_err(errors::statement)
}
