//! The catalogue: the countries, currencies, assets and payment methods that an operator offers, with their fees.
//!
//! Penstock reads it once at start, from the operator's file or from the built-in file. It never changes while the
//! service runs. Every currency that a country, a limit or a method names is in the catalogue.

mod country;
mod evm_chains;
mod file;
mod offer;

use std::time::Duration;

use kernel::address::{AddressError, AddressForm};
use kernel::rates::Side;
use kernel::{Amount, Asset};
use partner_core::tables::Faults;

pub use country::CountryCode;
pub(crate) use evm_chains::coin_of;
pub use offer::{Eligibility, EligibilityQuery, GeoSource, Ineligible, Region};

use crate::payout::AccountForm;
use crate::pricing::FeeSchedule;
use crate::signed_quote::{Conversion, QuoteTerms};
use crate::verification::VerificationRule;

/// The catalogue of an installation whose operator provides no file.
const BUILT_IN: &str = include_str!("catalogue/built_in.toml");

/// The whole offer of an operator. Each list has the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    countries: Vec<Country>,
    currencies: Vec<Currency>,
    assets: Vec<Listing>,
    methods: Vec<Method>,
    swaps: Vec<SwapOffer>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Country {
    /// Its ISO 3166 code.
    pub code: CountryCode,
    /// Its name, in English.
    pub name: String,
    /// The currency that its residents pay in.
    pub currency: Asset,
    /// Whether the operator serves the country. The catalogue may also name countries that it does not serve.
    pub supported: bool,
    /// When users of the country must be verified before they pay.
    pub verification: VerificationRule,
}

/// A currency. Its code and its digits are those of ISO 4217.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Currency {
    /// The currency itself.
    pub asset: Asset,
    /// The symbol shown with amounts, such as `€`.
    pub symbol: String,
    /// Its name, in English.
    pub name: String,
}

/// A crypto asset of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The asset itself, with its digits.
    pub asset: Asset,
    pub name: String,
    /// Whether the operator currently offers the asset.
    pub active: bool,
    /// The sides that it is offered on: purchases, sales or both.
    pub sides: Vec<Side>,
    /// The currencies that it is offered for; `None` means all.
    pub currencies: Option<Vec<Asset>>,
    /// The chains that it moves on. Never empty. The first chain is the default.
    pub networks: Vec<Network>,
    /// The recommended limits. They do not cause refusals.
    pub limits: Limits,
    /// Recommended limits in further currencies, at most one entry per currency.
    pub further_limits: Vec<Limits>,
}

/// A chain that an asset moves on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Its name, case-sensitive.
    pub chain: String,
    /// The contract of the asset on this chain; `None` for the chain's native asset.
    pub contract_address: Option<String>,
    /// Whether it is an EVM chain.
    pub evm: bool,
    /// The EIP-155 id of an EVM chain, if the file names it.
    pub chain_id: Option<u64>,
    /// The digits of the unit that the contract on an EVM chain counts in, if the file names them.
    pub token_decimals: Option<u8>,
    /// The fee for a payout of the asset on this chain, one amount per currency. A currency without an amount has no
    /// fee.
    pub payout_fees: Vec<Amount>,
}

/// The recommended minimum and maximum of an order in one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The minimum.
    pub min: Amount,
    /// The maximum.
    pub max: Amount,
}

/// A payment method of a purchase, or a payout method of a sale. One method id may occur once per currency, each time
/// with its own fees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    /// Its id, such as `sepa`, case-sensitive.
    pub id: String,
    pub name: String,
    /// The currency it moves.
    pub currency: Asset,
    /// On-ramp for methods that pay for purchases, off-ramp for methods that pay out sales.
    pub side: Side,
    /// The form of the account that a payout method pays to. A payout method without a form is not offered in the widget.
    pub account: Option<AccountForm>,
    /// The service fee as a share of the fiat amount, in basis points.
    pub service_bps: u16,
    /// The minimum service fee, in the currency. If the share is 0, this is a fixed fee.
    pub service_least: Amount,
    /// How long the customer can pay: the fiat of a purchase, or the asset of a sale.
    pub pay_within: Duration,
    /// How long it usually takes from the customer's payment to the delivery of a purchase, and from the arrival of the asset to the
    /// payout of a sale; `None` if the file does not say so.
    pub usual_time: Option<UsualTime>,
}

/// How long an order usually takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsualTime {
    /// The minimum, in whole seconds.
    pub from: Duration,
    /// The maximum, in whole seconds.
    pub to: Duration,
}

/// Swaps whose value is in one currency, with their fees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwapOffer {
    /// The currency of the value.
    pub currency: Asset,
    /// The service fee as a share of the value, in basis points.
    pub service_bps: u16,
    /// The minimum service fee, in the currency. If the share is 0, this is a fixed fee.
    pub service_least: Amount,
    /// How long the customer can send the source.
    pub pay_within: Duration,
    /// How long it usually takes from the arrival of the source to the delivery; `None` if the file does not say so.
    pub usual_time: Option<UsualTime>,
}

/// Why a text is not the address of a wallet on a chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WalletError {
    /// The text is not an address of the chain, or no one has its key.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The address is the contract of an asset.
    #[error(
        "this is the address of {asset} itself on {chain}, not of a wallet; coins sent to it are lost"
    )]
    Contract { asset: Asset, chain: String },
}

impl WalletError {
    /// Whether only the checksum is wrong.
    #[must_use]
    pub const fn is_checksum(&self) -> bool {
        match self {
            Self::Address(error) => error.is_checksum(),
            Self::Contract { .. } => false,
        }
    }
}

/// How long a customer can pay by card or send crypto, unless the catalogue says otherwise.
pub const PAY_WITHIN: Duration = Duration::from_mins(30);
/// How long a customer can pay by transfer, unless the catalogue says otherwise.
pub const TRANSFER_WITHIN: Duration = Duration::from_hours(3 * 24);

impl Catalogue {
    /// The built-in catalogue.
    ///
    /// # Errors
    /// [`Faults`] if the built-in file is invalid. A test proves that it is valid.
    pub fn built_in() -> Result<Self, Faults> {
        Self::parse(BUILT_IN)
    }

    /// Parses an operator's file.
    ///
    /// # Errors
    /// [`Faults`]: every error of the file, in the order of its lines.
    pub fn parse(text: &str) -> Result<Self, Faults> {
        file::parse(text)
    }

    /// All countries, including those that the operator does not serve.
    #[must_use]
    pub fn countries(&self) -> &[Country] {
        &self.countries
    }

    /// Every currency.
    #[must_use]
    pub fn currencies(&self) -> &[Currency] {
        &self.currencies
    }

    /// All assets, including inactive ones.
    #[must_use]
    pub fn assets(&self) -> &[Listing] {
        &self.assets
    }

    /// The methods of a side: payment methods of purchases, or payout methods of sales.
    pub fn methods(&self, side: Side) -> impl Iterator<Item = &Method> {
        self.methods
            .iter()
            .filter(move |method| method.side == side)
    }

    /// The country with this code.
    #[must_use]
    pub fn country(&self, code: CountryCode) -> Option<&Country> {
        self.countries.iter().find(|country| country.code == code)
    }

    /// When a user of this country must be verified. Users of an unknown country must always be.
    #[must_use]
    pub fn verification_rule(&self, code: Option<CountryCode>) -> &VerificationRule {
        code.and_then(|code| self.country(code))
            .map_or(&VerificationRule::Always, |country| &country.verification)
    }

    /// Whether the users of any supported country must be verified, for any amount.
    #[must_use]
    pub fn requires_verification(&self) -> bool {
        let mut served = self.countries.iter().filter(|country| country.supported);
        served.any(|country| country.verification != VerificationRule::Never)
    }

    /// The currency with this code. The case of the code does not matter.
    #[must_use]
    pub fn currency(&self, code: &str) -> Option<&Currency> {
        let asset = Asset::fiat(code)?;
        self.currencies.iter().find(|it| it.asset == asset)
    }

    /// The asset with this symbol. The case of the symbol does not matter.
    #[must_use]
    pub fn asset(&self, symbol: &str) -> Option<&Listing> {
        let same = |it: &&Listing| it.asset.code().eq_ignore_ascii_case(symbol);
        self.assets.iter().find(same)
    }

    /// The method with this id, for this currency and side.
    #[must_use]
    pub fn method(&self, side: Side, currency: Asset, id: &str) -> Option<&Method> {
        self.methods_for(side, currency).find(|it| it.id == id)
    }

    /// The methods for a currency and a side, in the order of the file.
    pub fn methods_for(&self, side: Side, currency: Asset) -> impl Iterator<Item = &Method> {
        self.methods(side).filter(move |it| it.currency == currency)
    }

    /// The swaps whose value is in a currency; `None` if the operator offers none.
    #[must_use]
    pub fn swaps_in(&self, currency: Asset) -> Option<&SwapOffer> {
        self.swaps.iter().find(|offer| offer.currency == currency)
    }

    /// How long the customer can pay an order of these terms. The catalogue may no longer have what the order was quoted by; then the
    /// default counts.
    #[must_use]
    pub fn pay_within(&self, terms: &QuoteTerms) -> Duration {
        let currency = terms.currency();
        let method = |side, id| self.method(side, currency, id).map(|it| it.pay_within);
        match &terms.conversion {
            Conversion::Purchase { payment_method: id } => method(Side::OnRamp, id)
                .unwrap_or_else(|| Method::default_pay_within(Side::OnRamp, id)),
            Conversion::Sale { payment_method: id } => {
                method(Side::OffRamp, id).unwrap_or(PAY_WITHIN)
            }
            Conversion::Swap(_) => self
                .swaps_in(currency)
                .map_or(PAY_WITHIN, |it| it.pay_within),
        }
    }

    /// The form of the addresses of the chain on which the customer sends crypto. `None` if the customer pays fiat, or if Penstock cannot
    /// check the chain's addresses.
    #[must_use]
    pub fn paid_address(&self, terms: &QuoteTerms) -> Option<AddressForm> {
        let paid = terms.paid();
        let listing = self.asset(paid.amount.asset().code())?;
        listing.network(paid.network?)?.address_form()
    }

    /// Checks that a text is the address of a wallet on a chain. The contract of an asset there is no wallet, whatever asset is sent.
    ///
    /// # Errors
    /// [`WalletError`].
    pub fn check_wallet(
        &self,
        chain: &str,
        form: AddressForm,
        text: &str,
    ) -> Result<(), WalletError> {
        form.check(text)?;
        let is_same = |contract: &str| match form {
            AddressForm::Evm => contract.eq_ignore_ascii_case(text),
            AddressForm::Tron | AddressForm::Solana | AddressForm::Bitcoin => contract == text,
        };
        let called = self.assets.iter().find(|listing| {
            let network = listing.network(chain);
            let contract = network.and_then(|it| it.contract_address.as_deref());
            contract.is_some_and(is_same)
        });
        match called {
            Some(listing) => Err(WalletError::Contract {
                asset: listing.asset,
                chain: chain.to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// Whether an asset can be traded for a currency on a side: the asset is offered there, and a method exists.
    #[must_use]
    pub fn is_corridor(&self, side: Side, currency: Asset, listing: &Listing) -> bool {
        listing.is_offered(side, currency) && self.methods_for(side, currency).next().is_some()
    }
}

impl Listing {
    /// The chain of the asset with this exact name.
    #[must_use]
    pub fn network(&self, chain: &str) -> Option<&Network> {
        self.networks.iter().find(|network| network.chain == chain)
    }

    /// The default chain: the first one in the file.
    #[must_use]
    pub fn default_network(&self) -> Option<&Network> {
        self.networks.first()
    }

    /// The recommended limits in a currency; the main limits if the file does not name this currency.
    #[must_use]
    pub fn limits_in(&self, currency: Option<Asset>) -> &Limits {
        let stated = |limits: &&Limits| Some(limits.min.asset()) == currency;
        self.further_limits
            .iter()
            .find(stated)
            .unwrap_or(&self.limits)
    }

    /// Whether the asset is offered on this side for this currency. Ignores whether the asset is active.
    #[must_use]
    pub fn is_offered(&self, side: Side, currency: Asset) -> bool {
        let listed = |list: &Vec<Asset>| list.contains(&currency);
        self.sides.contains(&side) && self.currencies.as_ref().is_none_or(listed)
    }
}

impl Network {
    /// The form of the chain's addresses. A chain without a form that Penstock checks is not offered in the widget.
    #[must_use]
    pub fn address_form(&self) -> Option<AddressForm> {
        AddressForm::of_chain(&self.chain, self.evm)
    }

    /// The payout fee of this chain in a currency; zero if the file does not name this currency.
    #[must_use]
    pub fn payout_fee(&self, currency: Asset) -> Amount {
        let fee = self.payout_fees.iter().find(|it| it.asset() == currency);
        fee.copied().unwrap_or(Amount::zero(currency))
    }
}

impl Method {
    /// How long a customer can pay by a method whose entry does not say so. The method `card` is paid at once, and crypto is sent at once;
    /// any other payment is a transfer.
    pub(crate) fn default_pay_within(side: Side, id: &str) -> Duration {
        match side {
            Side::OnRamp if id != "card" => TRANSFER_WITHIN,
            Side::OnRamp | Side::OffRamp => PAY_WITHIN,
        }
    }

    /// Whether the widget offers the method: it pays for purchases, or it pays out to an account whose form is known.
    #[must_use]
    pub const fn is_for_widget(&self) -> bool {
        match self.side {
            Side::OnRamp => true,
            Side::OffRamp => self.account.is_some(),
        }
    }

    /// The fees of an order by this method. Only a purchase has a network fee, because only a purchase pays the asset
    /// out on a chain.
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

impl SwapOffer {
    /// The fees of a swap whose target is paid out on a chain.
    #[must_use]
    pub fn fees(&self, network: &Network) -> FeeSchedule {
        FeeSchedule {
            service_bps: self.service_bps,
            service_least: self.service_least,
            network: network.payout_fee(self.currency),
        }
    }
}
