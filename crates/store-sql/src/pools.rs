//! Pools, and partners' access to them: their rows and documents, and the operator's transactions about them.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use gate_core::profile::GateProfile;
use kernel::rates::SPREAD_CEILING_BPS;
use kernel::{Mode, StoreError, StoreResult};
use partner_core::origin::AllowedDomain;
use partner_core::{PartnerId, Tenant};
use pools_core::profile::{Kyc, Network, Pool, PoolId, PoolTerms, PoolsAccess, PoolsProfile};
use provisioning::ports::ProvisionTx;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::{Connection, Row, Statement, StoreTx, deposit_claims, gate, json, values};

/// The largest draw fee an operator can set.
const DRAW_FEE_CEILING_BPS: u16 = 5_000;

#[async_trait]
impl ProvisionTx for StoreTx {
    async fn pool_get(&mut self, mode: Mode, id: PoolId) -> StoreResult<Option<Pool>> {
        let id = id.to_string();
        let values = values![mode, &id];
        let row = self.connection().fetch_optional(&FIND, values).await?;
        row.map(|row| pool(&*row)).transpose()
    }

    async fn pool_put(&mut self, mode: Mode, pool: &Pool) -> StoreResult<()> {
        let networks = pool.networks.iter().map(|network| network.as_str());
        let networks = json(&networks.collect::<Vec<_>>())?;
        let id = pool.id.to_string();
        let values = values![mode, &id, &networks, pool.available, pool.native_addresses,];
        let connection = self.reconfiguring();
        connection.execute(&PUT, values).await.map(drop)
    }

    async fn pools_list(&mut self, mode: Mode) -> StoreResult<Vec<Pool>> {
        all(self.connection(), mode).await
    }

    async fn pools_profile_get(&mut self, who: &Tenant) -> StoreResult<Option<PoolsProfile>> {
        profile_find(self.locked(who).await?, who).await
    }

    async fn pools_profile_put(&mut self, who: &Tenant, profile: &PoolsProfile) -> StoreResult<()> {
        let allowed = profile.allowed.iter().map(ToString::to_string);
        let allowed = json(&allowed.collect::<Vec<_>>())?;
        let terms = profile.terms.iter();
        let terms = terms.map(|(pool, terms)| (pool.to_string(), TermsDocument::of(terms)));
        let terms = json(&terms.collect::<BTreeMap<_, _>>())?;
        let values = values![
            who.mode,
            &who.partner,
            profile.enabled,
            profile.access.as_str(),
            profile.kyc.as_str(),
            &profile.tier,
            &allowed,
            profile.balance_gate,
            profile.velocity_cap,
            &profile.iban,
            &profile.funding_reference,
            &terms,
        ];
        let connection = self.reconfiguring_partner(who).await?;
        let before = profile_find(connection, who).await?;
        connection.execute(&PROFILE_PUT, values).await?;
        deposit_claims::put(connection, who, before.as_ref(), profile).await
    }

    async fn pools_profiles_all(
        &mut self,
        mode: Mode,
    ) -> StoreResult<Vec<(PartnerId, PoolsProfile)>> {
        let values = values![mode];
        let rows = self.connection().fetch_all(&PROFILES_ALL, values).await?;
        rows.iter()
            .map(|row| Ok((row.partner()?, profile(&**row)?)))
            .collect()
    }

    async fn deposits_release(&mut self, who: &Tenant) -> StoreResult<()> {
        deposit_claims::release(self.connection(), who).await
    }

    async fn gate_profile_get(&mut self, who: &Tenant) -> StoreResult<Option<GateProfile>> {
        let values = values![who.mode, &who.partner];
        let connection = self.locked(who).await?;
        let row = connection.fetch_optional(&gate::FIND, values).await?;
        row.map(|row| gate::profile(&*row)).transpose()
    }

    async fn gate_profile_put(&mut self, who: &Tenant, profile: &GateProfile) -> StoreResult<()> {
        let domains = profile.allowed_domains.iter().map(AllowedDomain::as_str);
        let domains = json(&domains.collect::<Vec<_>>())?;
        let quota = profile.live_session_quota.map(i64::try_from).transpose();
        let limit = profile.create_session_limit.as_ref();
        let limit = limit.map(ToString::to_string);
        let merchant = &profile.merchant;
        let values = values![
            who.mode,
            &who.partner,
            profile.enabled,
            &domains,
            profile.flow_sessions,
            profile.kyc_trusted,
            profile.rails,
            profile.preview_locks,
            quota.map_err(StoreError::unexpected)?,
            &limit,
            &merchant.legal_name,
            &merchant.support_url,
            &merchant.terms_url,
            &merchant.privacy_url,
        ];
        let connection = self.reconfiguring_partner(who).await?;
        connection.execute(&gate::PUT, values).await.map(drop)
    }
}

/// Every pool of a mode, by id.
pub(crate) async fn all(connection: &mut dyn Connection, mode: Mode) -> StoreResult<Vec<Pool>> {
    let rows = connection.fetch_all(&ALL, values![mode]).await?;
    rows.iter().map(|row| pool(&**row)).collect()
}

static ALL: Statement = Statement::new(
    "pools",
    "SELECT id, networks, available, native_addresses FROM pools WHERE mode = $1 ORDER BY id",
);

static FIND: Statement = Statement::new(
    "pools",
    "SELECT id, networks, available, native_addresses FROM pools WHERE mode = $1 AND id = $2",
);

fn pool(row: &dyn Row) -> StoreResult<Pool> {
    Ok(Pool {
        id: row.parsed("id", PoolId::parse)?,
        networks: row.parsed("networks", networks)?,
        available: row.flag("available")?,
        native_addresses: row.flag("native_addresses")?,
    })
}

fn networks(text: &str) -> Option<Vec<Network>> {
    let networks: Vec<String> = serde_json::from_str(text).ok()?;
    networks.iter().map(|name| Network::parse(name)).collect()
}

static PUT: Statement = Statement::new(
    "pools",
    "INSERT INTO pools (mode, id, networks, available, native_addresses) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (mode, id) DO UPDATE SET networks = excluded.networks, available = excluded.available,
         native_addresses = excluded.native_addresses",
);

async fn profile_find(
    connection: &mut dyn Connection,
    who: &Tenant,
) -> StoreResult<Option<PoolsProfile>> {
    let values = values![who.mode, &who.partner];
    let row = connection.fetch_optional(&PROFILE_FIND, values).await?;
    row.map(|row| profile(&*row)).transpose()
}

static PROFILE_FIND: Statement = Statement::new(
    "pools_profiles",
    "SELECT partner_id, enabled, access, kyc, tier, allowed, balance_gate, velocity_cap, iban, funding_reference, terms
     FROM pools_profiles WHERE mode = $1 AND partner_id = $2",
);

static PROFILES_ALL: Statement = Statement::new(
    "pools_profiles",
    "SELECT partner_id, enabled, access, kyc, tier, allowed, balance_gate, velocity_cap, iban, funding_reference, terms
     FROM pools_profiles WHERE mode = $1 ORDER BY partner_id",
);

pub(crate) fn profile(row: &dyn Row) -> StoreResult<PoolsProfile> {
    Ok(PoolsProfile {
        enabled: row.flag("enabled")?,
        access: row.parsed("access", PoolsAccess::parse)?,
        kyc: row.parsed("kyc", Kyc::parse)?,
        tier: row.text("tier")?.to_owned(),
        allowed: row.parsed("allowed", allowed)?,
        balance_gate: row.flag("balance_gate")?,
        velocity_cap: row.opt_integer("velocity_cap")?,
        iban: row.opt_string("iban")?,
        funding_reference: row.text("funding_reference")?.to_owned(),
        terms: row.parsed("terms", terms)?,
    })
}

/// The profile, or the absent one if the statement's outer join found none.
pub(crate) fn profile_of(row: &dyn Row, partner: &PartnerId) -> StoreResult<PoolsProfile> {
    match row.opt_flag("enabled")? {
        Some(_) => profile(row),
        None => Ok(PoolsProfile::absent(partner)),
    }
}

fn allowed(text: &str) -> Option<BTreeSet<PoolId>> {
    let pools: Vec<String> = serde_json::from_str(text).ok()?;
    pools.iter().map(|pool| PoolId::parse(pool)).collect()
}

static PROFILE_PUT: Statement = Statement::new(
    "pools_profiles",
    "INSERT INTO pools_profiles (mode, partner_id, enabled, access, kyc, tier, allowed, balance_gate,
                                 velocity_cap, iban, funding_reference, terms, velocity_cap_since)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
             coalesce((SELECT max(created_at) FROM trades WHERE mode = $1 AND partner_id = $2), 0))
     ON CONFLICT (mode, partner_id) DO UPDATE SET
         enabled = excluded.enabled, access = excluded.access, kyc = excluded.kyc, tier = excluded.tier,
         allowed = excluded.allowed, balance_gate = excluded.balance_gate,
         velocity_cap_since = CASE WHEN pools_profiles.velocity_cap IS NOT DISTINCT FROM excluded.velocity_cap
                              THEN pools_profiles.velocity_cap_since
                              ELSE excluded.velocity_cap_since END,
         velocity_cap = excluded.velocity_cap, iban = excluded.iban,
         funding_reference = excluded.funding_reference, terms = excluded.terms",
);

fn terms(text: &str) -> Option<BTreeMap<PoolId, PoolTerms>> {
    let documents: BTreeMap<String, TermsDocument> = serde_json::from_str(text).ok()?;
    documents
        .into_iter()
        .map(|(pool, document)| Some((PoolId::parse(&pool)?, document.parse()?)))
        .collect()
}

/// The terms of one pool in the stored document.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TermsDocument {
    draw_fee_bps: u16,
    spread_cap_bps: u16,
    min_order_usdt: String,
    max_order_usdt: Option<String>,
    off_ramp: bool,
    crypto_deposit_address: Option<String>,
}

impl TermsDocument {
    fn of(terms: &PoolTerms) -> Self {
        Self {
            draw_fee_bps: terms.draw_fee_bps,
            spread_cap_bps: terms.spread_cap_bps,
            min_order_usdt: terms.min_order_usdt.to_string(),
            max_order_usdt: terms.max_order_usdt.map(|largest| largest.to_string()),
            off_ramp: terms.off_ramp,
            crypto_deposit_address: terms.crypto_deposit_address.clone(),
        }
    }

    fn parse(self) -> Option<PoolTerms> {
        let max_order_usdt = match self.max_order_usdt {
            None => None,
            Some(largest) => Some(Decimal::from_str_exact(&largest).ok()?),
        };
        let fits =
            self.draw_fee_bps <= DRAW_FEE_CEILING_BPS && self.spread_cap_bps <= SPREAD_CEILING_BPS;
        fits.then_some(PoolTerms {
            draw_fee_bps: self.draw_fee_bps,
            spread_cap_bps: self.spread_cap_bps,
            min_order_usdt: Decimal::from_str_exact(&self.min_order_usdt).ok()?,
            max_order_usdt,
            off_ramp: self.off_ramp,
            crypto_deposit_address: self.crypto_deposit_address,
        })
    }
}
