//! Orders of clients, and their two legs.

use crate::money::{bought, cents, millionths, sold};

/// An asset of an account. Amounts are whole numbers of its smallest step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Asset {
    #[default]
    Eur,
    Usdt,
}

impl Asset {
    pub(crate) const ALL: [Self; 2] = [Self::Eur, Self::Usdt];

    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Eur => "EUR",
            Self::Usdt => "USDT",
        }
    }

    pub(crate) fn read(self, text: &str) -> Option<i64> {
        match self {
            Self::Eur => cents(text),
            Self::Usdt => millionths(text),
        }
    }

    /// Converts hundredths into the asset's smallest steps.
    pub(crate) const fn hundredths(self, amount: i64) -> i64 {
        match self {
            Self::Eur => amount,
            Self::Usdt => amount.saturating_mul(10_000),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Side {
    #[default]
    Purchase,
    Sale,
}

/// An order: side and amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Order {
    pub(crate) side: Side,
    /// Amount in hundredths, from which the sandbox chooses the outcome.
    hundredths: i64,
}

impl Order {
    pub(crate) const fn new(side: Side, hundredths: i64) -> Self {
        Self { side, hundredths }
    }

    /// The asset that the partner pays with.
    pub(crate) const fn pays_in(self) -> Asset {
        match self.side {
            Side::Purchase => Asset::Eur,
            Side::Sale => Asset::Usdt,
        }
    }

    /// The amount that the partner pays, in the asset's smallest steps.
    pub(crate) const fn paid(self) -> i64 {
        self.pays_in().hundredths(self.hundredths)
    }

    /// Both legs at a rate: euros and USDT.
    pub(crate) fn legs(self, rate: &str) -> Option<(i64, i64)> {
        let paid = self.paid();
        match self.side {
            Side::Purchase => Some((paid, bought(paid, rate)?)),
            Side::Sale => Some((sold(paid, rate)?, paid)),
        }
    }

    /// Ledger reasons of the debit and of the refund.
    pub(crate) const fn reasons(self) -> (&'static str, &'static str) {
        match self.side {
            Side::Purchase => ("buy_debit", "buy_refund"),
            Side::Sale => ("sell_debit", "sell_refund"),
        }
    }

    /// The refund that a trade with this status is due: asset, reason and amount.
    pub(crate) fn refund(self, status: &str, rate: &str) -> Option<(Asset, &'static str, i64)> {
        let (_, given_back) = self.reasons();
        match (status, self.side) {
            ("failed" | "released", _) | ("returned", Side::Purchase) => {
                Some((self.pays_in(), given_back, self.paid()))
            }
            // A returned payout is credited in fiat, not in the asset that was sold.
            ("returned", Side::Sale) => {
                let (fiat, _) = self.legs(rate)?;
                Some((Asset::Eur, "buy_refund", fiat))
            }
            _ => None,
        }
    }

    /// Renders the body of a request for a firm quote.
    pub(crate) fn body(self) -> String {
        let amount = decimal(self.hundredths);
        let way = match self.side {
            Side::Purchase => {
                "\"on_ramp\",\"destAddress\":\"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed\""
            }
            Side::Sale => "\"off_ramp\"",
        };
        format!(
            "{{\"side\":{way},\"fiatCurrency\":\"EUR\",\"cryptoCurrency\":\"USDT\",\"amount\":\"{amount}\"}}"
        )
    }
}

/// Renders hundredths as a decimal.
pub(crate) fn decimal(hundredths: i64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: &str = "0.91658986";

    #[test]
    fn sale_debits_crypto_and_refunds_it_after_failure() {
        let sale = Order::new(Side::Sale, 10_000);
        assert_eq!(sale.paid(), 100_000_000);
        assert_eq!(sale.legs(RATE), Some((9_165, 100_000_000)));
        let back = sale.refund("failed", RATE);
        assert_eq!(back, Some((Asset::Usdt, "sell_refund", 100_000_000)));
        let returned = sale.refund("returned", RATE);
        assert_eq!(returned, Some((Asset::Eur, "buy_refund", 9_165)));
        assert_eq!(sale.refund("settled", RATE), None);
    }

    #[test]
    fn purchase_refunds_euros() {
        let purchase = Order::new(Side::Purchase, 1_231);
        assert_eq!(purchase.paid(), 1_231);
        let returned = purchase.refund("returned", "1.07903250");
        assert_eq!(returned, Some((Asset::Eur, "buy_refund", 1_231)));
        assert!(purchase.body().contains("\"amount\":\"12.31\""));
    }
}
