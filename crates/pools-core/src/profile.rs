//! What the operator provisions for the pools product: pools, and a partner's terms in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kernel::Asset;
use kernel::rates::SPREAD_CEILING_BPS;
use rust_decimal::Decimal;

use crate::deposits::default_funding_reference;

/// A pool's id, `<FIAT>-<CRYPTO>`, such as `EUR-USDT`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId {
    fiat: Asset,
    crypto: Asset,
}

impl PoolId {
    /// Reads a pool's id in upper case; `None` where a leg is not known.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (fiat, crypto) = text.split_once('-')?;
        let id = Self {
            fiat: Asset::fiat(fiat)?,
            crypto: Asset::crypto(crypto)?,
        };
        (id.fiat.code() == fiat && id.crypto.code() == crypto).then_some(id)
    }

    /// The pool between two legs.
    #[must_use]
    pub const fn of(fiat: Asset, crypto: Asset) -> Self {
        Self { fiat, crypto }
    }

    /// The fiat leg.
    #[must_use]
    pub const fn fiat(&self) -> Asset {
        self.fiat
    }

    /// The crypto leg.
    #[must_use]
    pub const fn crypto(&self) -> Asset {
        self.crypto
    }

    /// The label shown to people, `EUR/USDT`. Not for machine logic.
    #[must_use]
    pub fn pair(&self) -> String {
        format!("{}/{}", self.fiat, self.crypto)
    }
}

impl fmt::Display for PoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.fiat, self.crypto)
    }
}

kernel::debug_as_display!(PoolId);

kernel::closed_list! {
    /// A chain the crypto leg can move on. Written in lower case, and only so.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Network {
        Tron = "tron",
        Ethereum = "ethereum",
        /// BNB Smart Chain.
        Bsc = "bsc",
        Polygon = "polygon",
        Solana = "solana",
    }
}

impl Network {
    /// Does an EVM address name an account on this network?
    #[must_use]
    pub const fn is_evm(self) -> bool {
        match self {
            Self::Ethereum | Self::Bsc | Self::Polygon => true,
            Self::Tron | Self::Solana => false,
        }
    }
}

/// A pool as the operator has provisioned it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    pub id: PoolId,
    /// The networks it supports, in the operator's order.
    pub networks: Vec<Network>,
    /// Whether partners may expect a quote: a snapshot, not a promise.
    pub available: bool,
    /// Whether crypto is delivered only to addresses that are native to the network.
    pub native_addresses: bool,
}

/// A partner's access to the pools product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolsProfile {
    /// Is the product on for this partner?
    pub enabled: bool,
    /// Has the operator suspended its access?
    pub access: PoolsAccess,
    /// Its KYC state.
    pub kyc: Kyc,
    /// Its tier, shown in capabilities and balance.
    pub tier: String,
    /// The pools it is entitled to.
    pub allowed: BTreeSet<PoolId>,
    /// Does buying draw on a pre-funded fiat balance?
    pub balance_gate: bool,
    /// The most it may trade in the velocity window, in units of 10^-8 USDT; `None`: no cap.
    pub velocity_cap: Option<i64>,
    /// The account its deposits go to; `None` until provisioned.
    pub iban: Option<String>,
    /// The text to include with a deposit.
    pub funding_reference: String,
    /// Its terms, per pool; a pool without terms has [`PoolTerms::default`].
    pub terms: BTreeMap<PoolId, PoolTerms>,
}

impl partner_core::Profile for PoolsProfile {
    /// Every pool, ordered by id.
    type Listing = [Pool];
    const LISTING: &'static str = "pools";
}

impl PoolsProfile {
    /// The profile of a partner without provisioned pools.
    #[must_use]
    pub fn absent(partner: &partner_core::PartnerId) -> Self {
        Self {
            enabled: false,
            access: PoolsAccess::Active,
            kyc: Kyc::Pending,
            tier: "standard".to_owned(),
            allowed: BTreeSet::new(),
            balance_gate: false,
            velocity_cap: None,
            iban: None,
            funding_reference: default_funding_reference(partner),
            terms: BTreeMap::new(),
        }
    }

    /// The terms in a pool.
    #[must_use]
    pub fn terms_in(&self, pool: &PoolId) -> PoolTerms {
        self.terms.get(pool).cloned().unwrap_or_default()
    }
}

kernel::closed_list! {
    /// Whether the operator has suspended a partner's access to pools.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum PoolsAccess {
        /// Not suspended.
        Active = "active",
        /// Refused with `pool_access_suspended`; discovery answers an empty list.
        Suspended = "suspended",
    }
}

kernel::closed_list! {
    /// A partner's KYC state. Only an approved one may quote and transact.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Kyc {
        /// Verified by the operator.
        Approved = "approved",
        /// Not verified yet.
        Pending = "pending",
        /// No longer accepted.
        Revoked = "revoked",
    }
}

/// A partner's terms in one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolTerms {
    /// Draw fee in basis points, 0 to 5,000. Not a ceiling.
    pub draw_fee_bps: u16,
    /// The most spread that can be quoted, in basis points, 0 to 50.
    pub spread_cap_bps: u16,
    /// Smallest order, in USDT.
    pub min_order_usdt: Decimal,
    /// Largest order, in USDT; `None`: no maximum.
    pub max_order_usdt: Option<Decimal>,
    /// May the partner sell in this pool?
    pub off_ramp: bool,
    /// Where the partner sends crypto it wants to sell; `None` until provisioned.
    pub crypto_deposit_address: Option<String>,
}

impl Default for PoolTerms {
    fn default() -> Self {
        Self {
            draw_fee_bps: 0,
            spread_cap_bps: SPREAD_CEILING_BPS,
            min_order_usdt: Decimal::ONE,
            max_order_usdt: None,
            off_ramp: false,
            crypto_deposit_address: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_id_requires_two_known_codes_in_upper_case() {
        let pool = PoolId::parse("EUR-USDT").unwrap();
        assert_eq!(
            (pool.to_string(), pool.pair()),
            ("EUR-USDT".to_owned(), "EUR/USDT".to_owned())
        );
        for bad in [
            "",
            "EUR",
            "EURUSDT",
            "eur-usdt",
            "USDT-EUR",
            "EUR-USDT-X",
            "EUR-DOGE",
            "XXX-USDT",
        ] {
            assert!(PoolId::parse(bad).is_none(), "{bad}");
        }
    }
}
