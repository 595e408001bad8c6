//! A partner's access to the gate.

use std::collections::BTreeSet;

use kernel::StoreError;
use partner_core::gate::{GateProfile, create_session_limit};
use partner_core::origin::Origin;

use crate::{Row, json};

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

/// The origins that a profile allows.
pub fn domains(row: &dyn Row) -> Result<BTreeSet<Origin>, StoreError> {
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
