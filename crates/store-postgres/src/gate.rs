//! A partner's access to the gate: rows in and out.

use crate::conn::Conn;
use gate_core::profile::GateProfile;
use kernel::StoreError;
use partner_core::Tenant;
use store_sql::gate::{domains_document, profile};

use crate::errors;
use crate::row::Columns;

pub(crate) async fn profile_find(
    conn: &mut Conn,
    who: &Tenant,
) -> Result<Option<GateProfile>, StoreError> {
    let row = sqlx::query(
        "SELECT partner_id, enabled AS gate_enabled, allowed_domains, flow_sessions, kyc_trusted, rails, preview_locks,
                live_session_quota, create_session_limit
         FROM gate_profiles WHERE mode = $1 AND partner_id = $2",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    row.map(|row| profile(&Columns::new("gate_profiles", &row)))
        .transpose()
}

pub(crate) async fn profile_put(
    conn: &mut Conn,
    who: &Tenant,
    profile: &GateProfile,
) -> Result<(), StoreError> {
    let quota = profile.live_session_quota.map(i64::try_from).transpose();
    sqlx::query(
        "INSERT INTO gate_profiles (mode, partner_id, enabled, allowed_domains, flow_sessions, kyc_trusted, rails,
                                    preview_locks, live_session_quota, create_session_limit)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         ON CONFLICT (mode, partner_id) DO UPDATE SET
             enabled = excluded.enabled, allowed_domains = excluded.allowed_domains,
             flow_sessions = excluded.flow_sessions, kyc_trusted = excluded.kyc_trusted, rails = excluded.rails,
             preview_locks = excluded.preview_locks, live_session_quota = excluded.live_session_quota,
             create_session_limit = excluded.create_session_limit",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(profile.enabled)
    .bind(domains_document(profile)?)
    .bind(profile.flow_sessions)
    .bind(profile.kyc_trusted)
    .bind(profile.rails)
    .bind(profile.preview_locks)
    .bind(quota.map_err(StoreError::unexpected)?)
    .bind(profile.create_session_limit.as_ref().map(ToString::to_string))
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}
