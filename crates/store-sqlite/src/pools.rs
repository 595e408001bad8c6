//! Pools, and partners' access to them: rows in and out.

use kernel::{Mode, StoreError};
use partner_core::{PartnerId, Tenant};
use pools_core::profile::{Pool, PoolId, PoolsProfile};
use sqlx::SqliteConnection;
use store_sql::pools::{allowed_document, networks_document, pool, profile, terms_document};

use crate::row::Columns;
use crate::{deposit_claims, errors};

pub(crate) async fn find(
    conn: &mut SqliteConnection,
    mode: Mode,
    id: PoolId,
) -> Result<Option<Pool>, StoreError> {
    let row = sqlx::query(
        "SELECT id, networks, available, native_addresses FROM pools WHERE mode = ?1 AND id = ?2",
    )
    .bind(mode.as_str())
    .bind(id.to_string())
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    row.map(|row| pool(&Columns::new("pools", &row)))
        .transpose()
}

pub(crate) async fn put(
    conn: &mut SqliteConnection,
    mode: Mode,
    pool: &Pool,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO pools (mode, id, networks, available, native_addresses) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (mode, id) DO UPDATE SET networks = excluded.networks, available = excluded.available,
             native_addresses = excluded.native_addresses",
    )
    .bind(mode.as_str())
    .bind(pool.id.to_string())
    .bind(networks_document(pool)?)
    .bind(pool.available)
    .bind(pool.native_addresses)
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}

pub(crate) async fn profile_find(
    conn: &mut SqliteConnection,
    who: &Tenant,
) -> Result<Option<PoolsProfile>, StoreError> {
    let row = sqlx::query(
        "SELECT partner_id, enabled, access, kyc, tier, allowed, balance_gate, velocity_cap, iban,
                funding_reference, terms
         FROM pools_profiles WHERE mode = ?1 AND partner_id = ?2",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    row.map(|row| profile(&Columns::new("pools_profiles", &row)))
        .transpose()
}

/// Every profile of a mode, by partner.
pub(crate) async fn profiles_all(
    conn: &mut SqliteConnection,
    mode: Mode,
) -> Result<Vec<(PartnerId, PoolsProfile)>, StoreError> {
    let rows = sqlx::query(
        "SELECT partner_id, enabled, access, kyc, tier, allowed, balance_gate, velocity_cap, iban,
                funding_reference, terms
         FROM pools_profiles WHERE mode = ?1 ORDER BY partner_id",
    )
    .bind(mode.as_str())
    .fetch_all(conn)
    .await
    .map_err(errors::statement)?;
    let rows = rows.iter().map(|row| Columns::new("pools_profiles", row));
    rows.map(|row| Ok((row.partner()?, profile(&row)?)))
        .collect()
}

pub(crate) async fn profile_put(
    conn: &mut SqliteConnection,
    who: &Tenant,
    profile: &PoolsProfile,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO pools_profiles (mode, partner_id, enabled, access, kyc, tier, allowed, balance_gate,
                                     velocity_cap, iban, funding_reference, terms, velocity_cap_since)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,
                 coalesce((SELECT max(created_at) FROM trades WHERE mode = ?1 AND partner_id = ?2), 0))
         ON CONFLICT (mode, partner_id) DO UPDATE SET
             enabled = excluded.enabled, access = excluded.access, kyc = excluded.kyc, tier = excluded.tier,
             allowed = excluded.allowed, balance_gate = excluded.balance_gate,
             velocity_cap_since = CASE WHEN velocity_cap IS excluded.velocity_cap THEN velocity_cap_since
                                  ELSE excluded.velocity_cap_since END,
             velocity_cap = excluded.velocity_cap, iban = excluded.iban,
             funding_reference = excluded.funding_reference, terms = excluded.terms",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(profile.enabled)
    .bind(profile.access.as_str())
    .bind(profile.kyc.as_str())
    .bind(&profile.tier)
    .bind(allowed_document(profile)?)
    .bind(profile.balance_gate)
    .bind(profile.velocity_cap)
    .bind(&profile.iban)
    .bind(&profile.funding_reference)
    .bind(terms_document(profile)?)
    .execute(&mut *conn)
    .await
    .map_err(errors::statement)?;
    deposit_claims::claim(conn, who, profile).await
}
