//! The owners of deposit addresses and funding references: rows in and out.

use crate::conn::Conn;
use kernel::StoreError;
use partner_core::Tenant;
use pools_core::profile::PoolsProfile;

use crate::errors;

/// Gives up everything that the partner has claimed.
pub(crate) async fn release(conn: &mut Conn, who: &Tenant) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM deposit_claims WHERE mode = $1 AND owner = $2")
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .execute(conn)
        .await
        .map_err(errors::statement)?;
    Ok(())
}

/// Claims what the partner's profile says. A claim of another partner is a fault.
pub(crate) async fn claim(
    conn: &mut Conn,
    who: &Tenant,
    profile: &PoolsProfile,
) -> Result<(), StoreError> {
    release(conn, who).await?;
    for claim in profile.deposit_claims() {
        sqlx::query(
            "INSERT INTO deposit_claims (mode, kind, claim, owner) VALUES ($1, $2, $3, $4)",
        )
        .bind(who.mode.as_str())
        .bind(claim.kind.as_str())
        .bind(claim.text)
        .bind(who.partner.as_str())
        .execute(&mut *conn)
        .await
        .map_err(errors::statement)?;
    }
    Ok(())
}
