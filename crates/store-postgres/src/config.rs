//! The two single rows: the installation, and the number of the configuration.

use kernel::StoreError;
use sqlx::PgConnection;

use crate::errors;

pub(crate) async fn version(conn: &mut PgConnection) -> Result<i64, StoreError> {
    sqlx::query_scalar("SELECT version FROM config_version WHERE id = 1")
        .fetch_one(conn)
        .await
        .map_err(errors::statement)
}

/// Takes the number until the transaction ends.
pub(crate) async fn hold(conn: &mut PgConnection) -> Result<(), StoreError> {
    sqlx::query("SELECT version FROM config_version WHERE id = 1 FOR UPDATE")
        .fetch_one(conn)
        .await
        .map_err(errors::statement)?;
    Ok(())
}

pub(crate) async fn raise(conn: &mut PgConnection) -> Result<(), StoreError> {
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
    conn: &mut PgConnection,
    fingerprint: &str,
) -> Result<String, StoreError> {
    sqlx::query(
        "INSERT INTO installation (id, master_key_fingerprint) VALUES (1, $1) ON CONFLICT (id) DO NOTHING",
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
    conn: &mut PgConnection,
) -> Result<Option<String>, StoreError> {
    sqlx::query_scalar("SELECT master_key_fingerprint FROM installation WHERE id = 1")
        .fetch_optional(conn)
        .await
        .map_err(errors::statement)
}
