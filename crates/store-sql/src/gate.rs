//! A partner's access to the gate.

use std::collections::BTreeSet;

use gate_core::profile::{GateProfile, create_session_limit};
use kernel::{Mode, StoreError};
use partner_core::origin::Origin;

use crate::{Connection, Row, Statement, json, values};

/// The profile in a row that may have none beside it.
pub fn opt_profile(row: &dyn Row) -> Result<Option<GateProfile>, StoreError> {
    match row.opt_flag("gate_enabled")? {
        Some(_) => profile(row).map(Some),
        None => Ok(None),
    }
}

pub fn profile(row: &dyn Row) -> Result<GateProfile, StoreError> {
    Ok(GateProfile {
        enabled: row.flag("gate_enabled")?,
        allowed_domains: domains(row)?,
        flow_sessions: row.flag("flow_sessions")?,
        kyc_trusted: row.flag("kyc_trusted")?,
        rails: row.flag("rails")?,
        preview_locks: row.flag("preview_locks")?,
        live_session_quota: row.opt_count("live_session_quota")?,
        create_session_limit: row.opt_parsed("create_session_limit", create_session_limit)?,
    })
}

/// Every origin that an active partner of a mode allows.
pub async fn origins_all(
    connection: &mut dyn Connection,
    mode: Mode,
) -> Result<BTreeSet<Origin>, StoreError> {
    let mut origins = BTreeSet::new();
    for row in connection.fetch_all(&ORIGINS, values![mode]).await? {
        origins.extend(domains(&*row)?);
    }
    Ok(origins)
}

static ORIGINS: Statement = Statement::new(
    "gate_profiles",
    "SELECT g.partner_id, g.allowed_domains
     FROM gate_profiles AS g
     JOIN partners AS p ON p.mode = g.mode AND p.partner_id = g.partner_id
     WHERE g.mode = $1 AND p.status = 'active'",
);

/// The origins that a profile allows.
fn domains(row: &dyn Row) -> Result<BTreeSet<Origin>, StoreError> {
    row.parsed("allowed_domains", |text| {
        let origins: Vec<String> = serde_json::from_str(text).ok()?;
        origins
            .iter()
            .map(|origin| Origin::stored(origin))
            .collect()
    })
}

/// The column `allowed_domains` of a profile.
pub fn domains_document(profile: &GateProfile) -> Result<String, StoreError> {
    let domains = profile.allowed_domains.iter().map(Origin::as_str);
    json(&domains.collect::<Vec<_>>())
}
