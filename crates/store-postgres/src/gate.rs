//! A partner's access to the gate: rows in and out.

use std::collections::BTreeSet;

use kernel::{Mode, StoreError};
use partner_core::Tenant;
use partner_core::gate::GateProfile;
use partner_core::origin::Origin;
use sqlx::PgConnection;

use crate::errors;
use crate::row::{Columns, json};

pub(crate) async fn profile_find(
    conn: &mut PgConnection,
    who: &Tenant,
) -> Result<Option<GateProfile>, StoreError> {
    let row = sqlx::query(
        "SELECT partner_id, enabled AS gate_enabled, allowed_domains, flow_sessions, kyc_trusted, rails, preview_locks,
                live_session_quota
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

/// The profile in a row that may have none beside it.
pub(crate) fn opt_profile(row: &Columns<'_>) -> Result<Option<GateProfile>, StoreError> {
    match row.get::<Option<bool>>("gate_enabled")? {
        Some(_) => profile(row).map(Some),
        None => Ok(None),
    }
}

pub(crate) fn profile(row: &Columns<'_>) -> Result<GateProfile, StoreError> {
    let quota = row.opt_integer("live_session_quota")?;
    let quota = quota.map(|quota| u64::try_from(quota).map_err(|_| row.bad("live_session_quota")));
    Ok(GateProfile {
        enabled: row.flag("gate_enabled")?,
        allowed_domains: row.parsed("allowed_domains", domains)?,
        flow_sessions: row.flag("flow_sessions")?,
        kyc_trusted: row.flag("kyc_trusted")?,
        rails: row.flag("rails")?,
        preview_locks: row.flag("preview_locks")?,
        live_session_quota: quota.transpose()?,
    })
}

/// Every origin that an active partner of a mode allows.
pub(crate) async fn origins_all(
    conn: &mut PgConnection,
    mode: Mode,
) -> Result<BTreeSet<Origin>, StoreError> {
    let rows = sqlx::query(
        "SELECT g.partner_id, g.allowed_domains
         FROM gate_profiles AS g
         JOIN partners AS p ON p.mode = g.mode AND p.partner_id = g.partner_id
         WHERE g.mode = $1 AND p.status = 'active'",
    )
    .bind(mode.as_str())
    .fetch_all(conn)
    .await
    .map_err(errors::statement)?;
    let mut origins = BTreeSet::new();
    for row in &rows {
        origins.extend(Columns::new("gate_profiles", row).parsed("allowed_domains", domains)?);
    }
    Ok(origins)
}

fn domains(text: &str) -> Option<BTreeSet<Origin>> {
    let origins: Vec<String> = serde_json::from_str(text).ok()?;
    origins
        .iter()
        .map(|origin| Origin::stored(origin))
        .collect()
}

pub(crate) async fn profile_put(
    conn: &mut PgConnection,
    who: &Tenant,
    profile: &GateProfile,
) -> Result<(), StoreError> {
    let domains: Vec<&str> = profile.allowed_domains.iter().map(Origin::as_str).collect();
    let quota = profile.live_session_quota.map(i64::try_from).transpose();
    sqlx::query(
        "INSERT INTO gate_profiles (mode, partner_id, enabled, allowed_domains, flow_sessions, kyc_trusted, rails,
                                    preview_locks, live_session_quota)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (mode, partner_id) DO UPDATE SET
             enabled = excluded.enabled, allowed_domains = excluded.allowed_domains,
             flow_sessions = excluded.flow_sessions, kyc_trusted = excluded.kyc_trusted, rails = excluded.rails,
             preview_locks = excluded.preview_locks, live_session_quota = excluded.live_session_quota",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(profile.enabled)
    .bind(json(&domains)?)
    .bind(profile.flow_sessions)
    .bind(profile.kyc_trusted)
    .bind(profile.rails)
    .bind(profile.preview_locks)
    .bind(quota.map_err(StoreError::unexpected)?)
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}
