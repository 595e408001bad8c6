//! The catalogue: what an operator offers where, in which currency, for which asset, by which
//! method, and what that costs.
//!
//! It is read once, from the operator's own file or the built-in one, and never changes while a
//! service runs. Whatever it names belongs to it: the currency of a country, of a limit and of a
//! method is a currency of the catalogue.

mod country;
mod file;
mod offer;

use kernel::rates::Side;
use kernel::{Amount, Asset};
use partner_core::tables::Faults;

pub use country::CountryCode;
pub use offer::{Eligibility, Enquiry, GeoSource, Ineligible, Region};

use crate::pricing::FeeSchedule;

/// What every installation offers whose operator says nothing else.
const BUILT_IN: &str = include_str!("catalogue/built_in.toml");

/// Everything an operator offers, each list in the order of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    countries: Vec<Country>,
    currencies: Vec<Currency>,
    assets: Vec<Listing>,
    methods: Vec<Method>,
}

/// A country.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Country {
    /// Its ISO 3166 code.
    pub code: CountryCode,
    /// Its name, in English.
    pub name: String,
    /// What its people pay in.
    pub currency: Asset,
    /// Is it served, or only known not to be?
    pub supported: bool,
}

/// A currency. Its code and its digits are those of ISO 4217.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Currency {
    /// The currency itself.
    pub asset: Asset,
    /// What stands beside amounts, such as `€`.
    pub symbol: String,
    /// Its name, in English.
    pub name: String,
}

/// A crypto asset that is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The asset itself, with its digits.
    pub asset: Asset,
    /// Its name.
    pub name: String,
    /// Is it offered at present?
    pub active: bool,
    /// Which ways it can go.
    pub sides: Vec<Side>,
    /// The currencies it is offered for; `None`: all.
    pub currencies: Option<Vec<Asset>>,
    /// The chains it moves on; the first is taken where none is named. Never empty.
    pub networks: Vec<Network>,
    /// What the operator advises. Nothing is refused by it.
    pub limits: Limits,
    /// The same in further currencies, once each.
    pub further_limits: Vec<Limits>,
}

/// A chain that an asset moves on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Its name, in which case matters.
    pub chain: String,
    /// The asset's contract on it; `None`: the asset is the chain's own.
    pub contract_address: Option<String>,
    /// Is it an EVM chain?
    pub evm: bool,
    /// What paying the asset out on it costs, by currency; nothing in a currency that is left out.
    pub payout_fees: Vec<Amount>,
}

/// Between which amounts, in a currency, an order makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The least.
    pub min: Amount,
    /// The most.
    pub max: Amount,
}

/// A way to pay in (on a purchase) or to be paid out (on a sale). A method's id can stand for
/// several currencies, each with its own cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    /// Its id, such as `sepa`, in which case matters.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The currency it moves.
    pub currency: Asset,
    /// Purchases are paid by it, or sales paid out.
    pub side: Side,
    /// What the service takes of the fiat, in basis points.
    pub service_bps: u16,
    /// The least the service takes, in the currency. With no share it is a fixed price.
    pub service_least: Amount,
}

impl Catalogue {
    /// The one every installation has whose operator gives no other.
    ///
    /// # Errors
    /// [`Faults`]; a test sees that there are none.
    pub fn built_in() -> Result<Self, Faults> {
        Self::parse(BUILT_IN)
    }

    /// Reads an operator's file.
    ///
    /// # Errors
    /// [`Faults`]: all of them, in the order of their lines.
    pub fn parse(text: &str) -> Result<Self, Faults> {
        file::parse(text)
    }

    /// Every country, served or not.
    #[must_use]
    pub fn countries(&self) -> &[Country] {
        &self.countries
    }

    /// Every currency.
    #[must_use]
    pub fn currencies(&self) -> &[Currency] {
        &self.currencies
    }

    /// Every asset, offered at present or not.
    #[must_use]
    pub fn assets(&self) -> &[Listing] {
        &self.assets
    }

    /// Every method of a side: ways to pay in on a purchase, to be paid out on a sale.
    pub fn methods(&self, side: Side) -> impl Iterator<Item = &Method> {
        self.methods
            .iter()
            .filter(move |method| method.side == side)
    }

    /// A country.
    #[must_use]
    pub fn country(&self, code: CountryCode) -> Option<&Country> {
        self.countries.iter().find(|country| country.code == code)
    }

    /// A currency by its code, upper-cased.
    #[must_use]
    pub fn currency(&self, code: &str) -> Option<&Currency> {
        let asset = Asset::fiat(code)?;
        self.currencies.iter().find(|it| it.asset == asset)
    }

    /// An asset by its symbol, upper-cased.
    #[must_use]
    pub fn asset(&self, symbol: &str) -> Option<&Listing> {
        let same = |it: &&Listing| it.asset.code().eq_ignore_ascii_case(symbol);
        self.assets.iter().find(same)
    }

    /// The method of an id that moves a currency on a side.
    #[must_use]
    pub fn method(&self, side: Side, currency: Asset, id: &str) -> Option<&Method> {
        self.methods_for(side, currency).find(|it| it.id == id)
    }

    /// The methods that move a currency on a side, in the operator's order.
    pub fn methods_for(&self, side: Side, currency: Asset) -> impl Iterator<Item = &Method> {
        self.methods(side).filter(move |it| it.currency == currency)
    }

    /// Can an asset be bought with, or sold for, a currency: is it offered so, and is there a
    /// method to pay by?
    #[must_use]
    pub fn is_corridor(&self, side: Side, currency: Asset, listing: &Listing) -> bool {
        listing.is_offered(side, currency) && self.methods_for(side, currency).next().is_some()
    }
}

impl Listing {
    /// A chain of the asset, by its exact name.
    #[must_use]
    pub fn network(&self, chain: &str) -> Option<&Network> {
        self.networks.iter().find(|network| network.chain == chain)
    }

    /// The chain that is taken where none is named: the operator's first.
    #[must_use]
    pub fn default_network(&self) -> Option<&Network> {
        self.networks.first()
    }

    /// What the operator advises in a currency; the first limits where none are stated in it.
    #[must_use]
    pub fn limits_in(&self, currency: Option<Asset>) -> &Limits {
        let stated = |limits: &&Limits| Some(limits.min.asset()) == currency;
        self.further_limits
            .iter()
            .find(stated)
            .unwrap_or(&self.limits)
    }

    /// Does it go this way for this currency? Whether it is active is another question.
    #[must_use]
    pub fn is_offered(&self, side: Side, currency: Asset) -> bool {
        let listed = |list: &Vec<Asset>| list.contains(&currency);
        self.sides.contains(&side) && self.currencies.as_ref().is_none_or(listed)
    }
}

impl Network {
    /// What paying the asset out on this chain costs in a currency.
    #[must_use]
    pub fn payout_fee(&self, currency: Asset) -> Amount {
        let fee = self.payout_fees.iter().find(|it| it.asset() == currency);
        fee.copied().unwrap_or(Amount::zero(currency))
    }
}

impl Method {
    /// What an order by this method costs. A purchase pays the asset out on a network and bears
    /// its cost; a sale pays fiat out and bears none.
    #[must_use]
    pub fn fees(&self, network: &Network) -> FeeSchedule {
        FeeSchedule {
            service_bps: self.service_bps,
            service_least: self.service_least,
            network: match self.side {
                Side::OnRamp => network.payout_fee(self.currency),
                Side::OffRamp => Amount::zero(self.currency),
            },
        }
    }
}
