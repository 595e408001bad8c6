//! Pools, and partners' access to them: rows in and out.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{Mode, StoreError};
use partner_core::Tenant;
use partner_core::pools::{
    Kyc, Network, Pool, PoolId, PoolTerms, PoolsAccess, PoolsProfile, SPREAD_CEILING_BPS,
};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use sqlx::postgres::PgRow;

use crate::errors;
use crate::row::{Columns, json};

/// The largest draw fee an operator can set.
const DRAW_FEE_CEILING_BPS: u16 = 5_000;

pub(crate) async fn all(conn: &mut PgConnection, mode: Mode) -> Result<Vec<Pool>, StoreError> {
    let rows = sqlx::query("SELECT id, networks, available FROM pools WHERE mode = $1 ORDER BY id")
        .bind(mode.as_str())
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    rows.iter().map(pool).collect()
}

pub(crate) async fn find(
    conn: &mut PgConnection,
    mode: Mode,
    id: PoolId,
) -> Result<Option<Pool>, StoreError> {
    let row = sqlx::query("SELECT id, networks, available FROM pools WHERE mode = $1 AND id = $2")
        .bind(mode.as_str())
        .bind(id.to_string())
        .fetch_optional(conn)
        .await
        .map_err(errors::statement)?;
    row.as_ref().map(pool).transpose()
}

fn pool(row: &PgRow) -> Result<Pool, StoreError> {
    let row = Columns::new("pools", row);
    let networks: Vec<String> = row.parsed("networks", |text| serde_json::from_str(text).ok())?;
    let networks = networks
        .iter()
        .map(|name| Network::parse(name))
        .collect::<Option<_>>();
    Ok(Pool {
        id: row.parsed("id", PoolId::parse)?,
        networks: networks.ok_or_else(|| row.bad("networks"))?,
        available: row.flag("available")?,
    })
}

pub(crate) async fn put(
    conn: &mut PgConnection,
    mode: Mode,
    pool: &Pool,
) -> Result<(), StoreError> {
    let networks: Vec<&str> = pool
        .networks
        .iter()
        .map(|network| network.as_str())
        .collect();
    sqlx::query(
        "INSERT INTO pools (mode, id, networks, available) VALUES ($1, $2, $3, $4)
         ON CONFLICT (mode, id) DO UPDATE SET networks = excluded.networks, available = excluded.available",
    )
    .bind(mode.as_str())
    .bind(pool.id.to_string())
    .bind(json(&networks)?)
    .bind(pool.available)
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}

pub(crate) async fn profile_find(
    conn: &mut PgConnection,
    who: &Tenant,
) -> Result<Option<PoolsProfile>, StoreError> {
    let row = sqlx::query(
        "SELECT partner_id, enabled, access, kyc, tier, allowed, balance_gate, velocity_cap, iban,
                funding_reference, terms
         FROM pools_profiles WHERE mode = $1 AND partner_id = $2",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    row.map(|row| profile(&Columns::new("pools_profiles", &row)))
        .transpose()
}

pub(crate) fn profile(row: &Columns<'_>) -> Result<PoolsProfile, StoreError> {
    Ok(PoolsProfile {
        enabled: row.flag("enabled")?,
        access: row.parsed("access", PoolsAccess::parse)?,
        kyc: row.parsed("kyc", Kyc::parse)?,
        tier: row.text("tier")?.to_owned(),
        allowed: row.parsed("allowed", allowed)?,
        balance_gate: row.flag("balance_gate")?,
        velocity_cap: row.opt_integer("velocity_cap")?,
        iban: row.opt_text("iban")?.map(str::to_owned),
        funding_reference: row.text("funding_reference")?.to_owned(),
        terms: row.parsed("terms", terms)?,
    })
}

fn allowed(text: &str) -> Option<BTreeSet<PoolId>> {
    let pools: Vec<String> = serde_json::from_str(text).ok()?;
    pools.iter().map(|pool| PoolId::parse(pool)).collect()
}

fn terms(text: &str) -> Option<BTreeMap<PoolId, PoolTerms>> {
    let documents: BTreeMap<String, TermsDocument> = serde_json::from_str(text).ok()?;
    documents
        .into_iter()
        .map(|(pool, document)| Some((PoolId::parse(&pool)?, document.parse()?)))
        .collect()
}

/// The terms in one pool as they stand in the document.
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

pub(crate) async fn profile_put(
    conn: &mut PgConnection,
    who: &Tenant,
    profile: &PoolsProfile,
) -> Result<(), StoreError> {
    let allowed: Vec<String> = profile.allowed.iter().map(ToString::to_string).collect();
    let terms: BTreeMap<String, TermsDocument> = profile
        .terms
        .iter()
        .map(|(pool, terms)| (pool.to_string(), TermsDocument::of(terms)))
        .collect();
    sqlx::query(
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
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(profile.enabled)
    .bind(profile.access.as_str())
    .bind(profile.kyc.as_str())
    .bind(&profile.tier)
    .bind(json(&allowed)?)
    .bind(profile.balance_gate)
    .bind(profile.velocity_cap)
    .bind(&profile.iban)
    .bind(&profile.funding_reference)
    .bind(json(&terms)?)
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}
