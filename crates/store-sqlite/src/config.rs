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

/// Stores the first fingerprint ever given and returns that of the current key.
pub(crate) async fn master_key(
    conn: &mut SqliteConnection,
    fingerprint: &str,
) -> Result<String, StoreError> {
    let stored = sqlx::query(
        "INSERT INTO installation (id, master_key_fingerprint) VALUES (1, ?1) ON CONFLICT (id) DO NOTHING",
    )
    .bind(fingerprint)
    .execute(&mut *conn)
    .await
    .map_err(errors::statement)?
    .rows_affected();
    if stored == 1 {
        sqlx::query("INSERT INTO master_keys (fingerprint, number) VALUES (?1, 1)")
            .bind(fingerprint)
            .execute(&mut *conn)
            .await
            .map_err(errors::statement)?;
    }
    let kept = fingerprint_kept(conn).await?;
    kept.ok_or_else(|| errors::rows("installation", 1, 0))
}

/// The fingerprint of the current key, if there is one.
pub(crate) async fn fingerprint_kept(
    conn: &mut SqliteConnection,
) -> Result<Option<String>, StoreError> {
    sqlx::query_scalar("SELECT master_key_fingerprint FROM installation WHERE id = 1")
        .fetch_optional(conn)
        .await
        .map_err(errors::statement)
}
