//! Pools, and partners' access to them: what their rows and documents say.

use std::collections::{BTreeMap, BTreeSet};

use kernel::rates::SPREAD_CEILING_BPS;
use kernel::{Mode, StoreError};
use partner_core::PartnerId;
use pools_core::profile::{Kyc, Network, Pool, PoolId, PoolTerms, PoolsAccess, PoolsProfile};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::{Connection, Row, Statement, json, values};

/// The largest draw fee an operator can set.
const DRAW_FEE_CEILING_BPS: u16 = 5_000;

/// Every pool of a mode, by id.
pub async fn all(connection: &mut dyn Connection, mode: Mode) -> Result<Vec<Pool>, StoreError> {
    let rows = connection.fetch_all(&ALL, values![mode]).await?;
    rows.iter().map(|row| pool(&**row)).collect()
}

static ALL: Statement = Statement::new(
    "pools",
    "SELECT id, networks, available, native_addresses FROM pools WHERE mode = $1 ORDER BY id",
);

pub fn pool(row: &dyn Row) -> Result<Pool, StoreError> {
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

/// The column `networks` of a pool.
pub fn networks_document(pool: &Pool) -> Result<String, StoreError> {
    let networks = pool.networks.iter().map(|network| network.as_str());
    json(&networks.collect::<Vec<_>>())
}

pub fn profile(row: &dyn Row) -> Result<PoolsProfile, StoreError> {
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

/// The profile in a row that may have none beside it; then the partner's is the absent one.
pub fn profile_of(row: &dyn Row, partner: &PartnerId) -> Result<PoolsProfile, StoreError> {
    match row.opt_flag("enabled")? {
        Some(_) => profile(row),
        None => Ok(PoolsProfile::absent(partner)),
    }
}

fn allowed(text: &str) -> Option<BTreeSet<PoolId>> {
    let pools: Vec<String> = serde_json::from_str(text).ok()?;
    pools.iter().map(|pool| PoolId::parse(pool)).collect()
}

/// The column `allowed` of a profile.
pub fn allowed_document(profile: &PoolsProfile) -> Result<String, StoreError> {
    let pools = profile.allowed.iter().map(ToString::to_string);
    json(&pools.collect::<Vec<_>>())
}

fn terms(text: &str) -> Option<BTreeMap<PoolId, PoolTerms>> {
    let documents: BTreeMap<String, TermsDocument> = serde_json::from_str(text).ok()?;
    documents
        .into_iter()
        .map(|(pool, document)| Some((PoolId::parse(&pool)?, document.parse()?)))
        .collect()
}

/// The column `terms` of a profile.
pub fn terms_document(profile: &PoolsProfile) -> Result<String, StoreError> {
    let terms = profile.terms.iter();
    let documents = terms.map(|(pool, terms)| (pool.to_string(), TermsDocument::of(terms)));
    json(&documents.collect::<BTreeMap<_, _>>())
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
