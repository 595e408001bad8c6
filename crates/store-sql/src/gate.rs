//! A partner's access to the gate.

use std::collections::BTreeSet;

use gate_core::merchant::Merchant;
use gate_core::profile::{GateProfile, create_session_limit};
use kernel::{Mode, StoreResult};
use partner_core::origin::AllowedDomain;

use crate::{Connection, Row, Statement, values};

pub(crate) static FIND: Statement = Statement::new(
    "gate_profiles",
    "SELECT partner_id, enabled AS gate_enabled, allowed_domains, flow_sessions, kyc_trusted, rails, preview_locks,
            live_session_quota, create_session_limit, legal_name, support_url, terms_url, privacy_url
     FROM gate_profiles WHERE mode = $1 AND partner_id = $2",
);

/// The profile, or `None` if the statement's outer join found none.
pub(crate) fn opt_profile(row: &dyn Row) -> StoreResult<Option<GateProfile>> {
    match row.opt_flag("gate_enabled")? {
        Some(_) => profile(row).map(Some),
        None => Ok(None),
    }
}

pub(crate) fn profile(row: &dyn Row) -> StoreResult<GateProfile> {
    Ok(GateProfile {
        enabled: row.flag("gate_enabled")?,
        allowed_domains: domains(row)?,
        flow_sessions: row.flag("flow_sessions")?,
        kyc_trusted: row.flag("kyc_trusted")?,
        rails: row.flag("rails")?,
        preview_locks: row.flag("preview_locks")?,
        live_session_quota: row.opt_count("live_session_quota")?,
        create_session_limit: row.opt_parsed("create_session_limit", create_session_limit)?,
        merchant: Merchant {
            legal_name: row.opt_string("legal_name")?,
            support_url: row.opt_string("support_url")?,
            terms_url: row.opt_string("terms_url")?,
            privacy_url: row.opt_string("privacy_url")?,
        },
    })
}

/// Every domain that an active partner of a mode allows.
pub(crate) async fn domains_all(
    connection: &mut dyn Connection,
    mode: Mode,
) -> StoreResult<BTreeSet<AllowedDomain>> {
    let mut all = BTreeSet::new();
    for row in connection.fetch_all(&DOMAINS, values![mode]).await? {
        all.extend(domains(&*row)?);
    }
    Ok(all)
}

static DOMAINS: Statement = Statement::new(
    "gate_profiles",
    "SELECT g.partner_id, g.allowed_domains
     FROM gate_profiles AS g
     JOIN partners AS p ON p.mode = g.mode AND p.partner_id = g.partner_id
     WHERE g.mode = $1 AND p.status = 'active'",
);

/// The domains that a profile allows.
fn domains(row: &dyn Row) -> StoreResult<BTreeSet<AllowedDomain>> {
    row.parsed("allowed_domains", |text| {
        let domains: Vec<String> = serde_json::from_str(text).ok()?;
        domains
            .iter()
            .map(|domain| AllowedDomain::stored(domain))
            .collect()
    })
}

pub(crate) static PUT: Statement = Statement::new(
    "gate_profiles",
    "INSERT INTO gate_profiles (mode, partner_id, enabled, allowed_domains, flow_sessions, kyc_trusted, rails,
                                preview_locks, live_session_quota, create_session_limit, legal_name, support_url,
                                terms_url, privacy_url)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
     ON CONFLICT (mode, partner_id) DO UPDATE SET
         enabled = excluded.enabled, allowed_domains = excluded.allowed_domains,
         flow_sessions = excluded.flow_sessions, kyc_trusted = excluded.kyc_trusted, rails = excluded.rails,
         preview_locks = excluded.preview_locks, live_session_quota = excluded.live_session_quota,
         create_session_limit = excluded.create_session_limit, legal_name = excluded.legal_name,
         support_url = excluded.support_url, terms_url = excluded.terms_url, privacy_url = excluded.privacy_url",
);
