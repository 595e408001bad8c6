//! What a preview or a signed quote is asked for, judged by the catalogue.

use kernel::rates::{Side, SourceRate};
use kernel::{Amount, AmountError, Asset};

use crate::catalogue::{Catalogue, CountryCode, Listing, Method, Network};
use crate::pricing::{OutOfRange, Priced, price};

/// An order as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderDraft {
    /// `currency`
    pub currency: String,
    /// `asset`
    pub asset: String,
    /// `amount`, of the leg that the user gives.
    pub amount: String,
    /// `side`
    pub side: Side,
    /// `network`; `None`: the one the catalogue lists first.
    pub network: Option<String>,
    /// `country_code`
    pub country_code: Option<String>,
}

/// An order whose fields are right. Whether it can be served is another question.
#[derive(Debug, Clone)]
pub struct Order<'c> {
    /// Which way it goes.
    pub side: Side,
    /// What the user pays, or is paid, in.
    pub currency: Asset,
    /// What the user buys or sells.
    pub listing: &'c Listing,
    /// The chain it moves on.
    pub network: &'c Network,
    /// Where the user is, where that was said.
    pub country: Option<CountryCode>,
    /// The leg the user gives.
    pub amount: Amount,
}

/// What is wrong with a field of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// `currency`
    #[error("`currency`: expected an ISO 4217 code that is in the catalogue, such as \"EUR\"")]
    UnknownCurrency,
    /// `asset`
    #[error(
        "`asset`: expected 2 to 12 letters and digits that are in the catalogue, such as \"USDT\""
    )]
    UnknownAsset,
    /// `network`
    #[error("`network`: expected a network of the asset, such as \"ethereum\"")]
    UnknownNetwork,
    /// `country_code`
    #[error("`country_code`: expected an ISO 3166 code of two letters, such as \"DE\"")]
    UnknownCountry,
    /// `amount`
    #[error("`amount`: {0}")]
    Amount(AmountError),
}

impl OrderDraft {
    /// Judges the fields, in the order currency, asset, network, country, amount.
    ///
    /// # Errors
    /// [`OrderError`]: the first there is.
    pub fn judge<'c>(&self, catalogue: &'c Catalogue) -> Result<Order<'c>, OrderError> {
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
    /// Prices the order by a method.
    ///
    /// # Errors
    /// [`OutOfRange`].
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
    fn an_order_is_of_the_leg_the_user_gives() {
        let catalogue = Catalogue::built_in().unwrap();
        let bought = draft().judge(&catalogue).unwrap();
        assert_eq!(bought.amount.asset().code(), "EUR");
        assert_eq!(bought.network.chain, "tron");
        let sale = OrderDraft {
            amount: "100.123456".to_owned(),
            side: Side::OffRamp,
            network: Some("ethereum".to_owned()),
            ..draft()
        };
        let sold = sale.judge(&catalogue).unwrap();
        assert_eq!(sold.amount.asset().code(), "USDT");
        assert_eq!(sold.network.chain, "ethereum");
    }

    // rule: gate.order.catalogue, gate.order.digits
    #[test]
    fn each_field_has_its_own_fault() {
        let catalogue = Catalogue::built_in().unwrap();
        let fault = |change: fn(&mut OrderDraft)| {
            let mut draft = draft();
            change(&mut draft);
            draft.judge(&catalogue).unwrap_err()
        };
        assert_eq!(
            fault(|it| it.currency = "CHF".to_owned()),
            OrderError::UnknownCurrency
        );
        assert_eq!(
            fault(|it| it.asset = "DOGE".to_owned()),
            OrderError::UnknownAsset
        );
        assert_eq!(
            fault(|it| it.asset = "U".to_owned()),
            OrderError::UnknownAsset
        );
        assert_eq!(
            fault(|it| it.network = Some("Tron".to_owned())),
            OrderError::UnknownNetwork
        );
        assert_eq!(
            fault(|it| it.country_code = Some("ZZ".to_owned())),
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
            let fault = draft.judge(&catalogue).unwrap_err();
            assert_eq!(fault, OrderError::Amount(expected), "{amount}");
        }
    }
}
