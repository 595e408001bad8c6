//! The order of a preview or a signed quote, and its validation against the catalogue.

use kernel::rates::{Side, SourceRate};
use kernel::{Amount, AmountError, Asset};

use crate::catalogue::{Catalogue, CountryCode, Listing, Method, Network};
use crate::pricing::{OutOfRange, Priced, price};

/// The fields of an order, unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderDraft {
    pub currency: String,
    pub asset: String,
    /// `amount`, of the input leg: fiat on a purchase, crypto on a sale.
    pub amount: String,
    pub side: Side,
    /// `network`; `None` means the default network of the asset.
    pub network: Option<String>,
    pub country_code: Option<String>,
}

/// A validated order. Whether the operator offers it is checked separately.
#[derive(Debug, Clone)]
pub struct Order<'c> {
    /// Purchase or sale.
    pub side: Side,
    /// The fiat currency.
    pub currency: Asset,
    /// The crypto asset.
    pub listing: &'c Listing,
    /// The chain that the asset moves on.
    pub network: &'c Network,
    /// The country of the user, if the request names one.
    pub country: Option<CountryCode>,
    /// The input leg.
    pub amount: Amount,
}

/// The error in a field of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    #[error("`currency`: expected an ISO 4217 code that is in the catalogue, such as \"EUR\"")]
    UnknownCurrency,
    /// `asset`
    #[error(
        "`asset`: expected 2 to 12 letters and digits that are in the catalogue, such as \"USDT\""
    )]
    UnknownAsset,
    #[error("`network`: expected a network of the asset, such as \"ethereum\"")]
    UnknownNetwork,
    /// `country_code`
    #[error("`country_code`: expected an ISO 3166 code of two letters, such as \"DE\"")]
    UnknownCountry,
    #[error("`amount`: {0}")]
    Amount(AmountError),
}

impl OrderDraft {
    /// Validates the fields in the order currency, asset, network, country, amount.
    ///
    /// # Errors
    /// The first [`OrderError`].
    pub fn validate<'c>(&self, catalogue: &'c Catalogue) -> Result<Order<'c>, OrderError> {
        let currency = catalogue.currency(&self.currency);
        let currency = currency.ok_or(OrderError::UnknownCurrency)?.asset;
        let listing = catalogue.asset(&self.asset);
        let listing = listing.ok_or(OrderError::UnknownAsset)?;
        let network = match &self.network {
            Some(chain) => listing.network(chain),
            None => listing.default_network(),
        };
        let network = network.ok_or(OrderError::UnknownNetwork)?;
        let country = self.country_code.as_deref().map(CountryCode::parse);
        // `Some(None)`: the request has a code, and no country has this code.
        if country == Some(None) {
            return Err(OrderError::UnknownCountry);
        }
        let input = match self.side {
            Side::OnRamp => currency,
            Side::OffRamp => listing.asset,
        };
        Ok(Order {
            side: self.side,
            currency,
            listing,
            network,
            country: country.flatten(),
            amount: Amount::parse(&self.amount, input).map_err(OrderError::Amount)?,
        })
    }
}

impl Order<'_> {
    /// Prices the order with the fees of a method. The output leg is rounded down once.
    ///
    /// # Errors
    /// [`OutOfRange`] if a leg rounds to zero, does not cover the fees, or exceeds 10^10.
    pub fn price(&self, source: &SourceRate, method: &Method) -> Result<Priced, OutOfRange> {
        let output = match self.side {
            Side::OnRamp => self.listing.asset,
            Side::OffRamp => self.currency,
        };
        let schedule = method.fees(self.network);
        price(self.side, self.amount, output, source, &schedule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> OrderDraft {
        OrderDraft {
            currency: "eur".to_owned(),
            asset: "usdt".to_owned(),
            amount: "100.00".to_owned(),
            side: Side::OnRamp,
            network: None,
            country_code: Some("de".to_owned()),
        }
    }

    // rule: gate.order.input-leg, gate.order.digits, gate.order.codes
    #[test]
    fn order_amount_is_input_leg() {
        let catalogue = Catalogue::built_in().unwrap();
        let bought = draft().validate(&catalogue).unwrap();
        assert_eq!(bought.amount.asset().code(), "EUR");
        assert_eq!(bought.network.chain, "tron");
        let sale = OrderDraft {
            amount: "100.123456".to_owned(),
            side: Side::OffRamp,
            network: Some("ethereum".to_owned()),
            ..draft()
        };
        let sold = sale.validate(&catalogue).unwrap();
        assert_eq!(sold.amount.asset().code(), "USDT");
        assert_eq!(sold.network.chain, "ethereum");
    }

    // rule: gate.order.catalogue, gate.order.digits
    #[test]
    fn each_field_has_its_own_error() {
        let catalogue = Catalogue::built_in().unwrap();
        let error = |change: fn(&mut OrderDraft)| {
            let mut draft = draft();
            change(&mut draft);
            draft.validate(&catalogue).unwrap_err()
        };
        assert_eq!(
            error(|it| it.currency = "CHF".to_owned()),
            OrderError::UnknownCurrency
        );
        assert_eq!(
            error(|it| it.asset = "DOGE".to_owned()),
            OrderError::UnknownAsset
        );
        assert_eq!(
            error(|it| it.asset = "U".to_owned()),
            OrderError::UnknownAsset
        );
        assert_eq!(
            error(|it| it.network = Some("Tron".to_owned())),
            OrderError::UnknownNetwork
        );
        assert_eq!(
            error(|it| it.country_code = Some("ZZ".to_owned())),
            OrderError::UnknownCountry
        );
        for (amount, expected) in [
            ("1.001", AmountError::TooPrecise(2)),
            ("0", AmountError::Zero),
            ("01", AmountError::Malformed),
            ("1e3", AmountError::Malformed),
            ("10000000000.01", AmountError::OutOfRange),
        ] {
            let draft = OrderDraft {
                amount: amount.to_owned(),
                ..draft()
            };
            let error = draft.validate(&catalogue).unwrap_err();
            assert_eq!(error, OrderError::Amount(expected), "{amount}");
        }
    }
}
