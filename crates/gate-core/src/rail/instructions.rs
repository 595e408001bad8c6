//! What a rail tells the payer, and whether it repeats what the customer confirmed.

use std::collections::BTreeMap;

use kernel::Amount;
use kernel::address::AddressForm;

use crate::signed_quote::QuoteTerms;

/// What the payer needs in order to pay: names and texts, as the rail provides them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instructions(pub BTreeMap<String, String>);

impl Instructions {
    /// The names of the instructions that differ from what the customer confirmed. `amount`, `currency`, `asset` and `network` repeat what
    /// the customer pays if they are present, and names of the order repeat the order: amounts as numbers, the others as texts. If the
    /// customer sends crypto, `address` has the form of the network's addresses; no form fits a network that Penstock cannot check.
    #[must_use]
    pub fn differences(&self, terms: &QuoteTerms, form: Option<AddressForm>) -> Vec<&str> {
        let paid = terms.paid();
        // A purchase may name what it delivers; every other payment names what the customer sends.
        let (asset, network) = match paid.network {
            None => (terms.asset(), terms.network.as_str()),
            Some(network) => (paid.amount.asset(), network),
        };
        let fits_address = |text: &str| {
            paid.network.is_none() || form.is_some_and(|form| form.check(text).is_ok())
        };
        let priced = &terms.priced;
        let source = terms.source();
        let fits = |name: &str, text: &str| match name {
            "amount" => is_amount(text, paid.amount),
            "currency" => text == terms.currency().code(),
            "asset" => text == asset.code(),
            "network" => text == network,
            "address" => fits_address(text),
            "fiat_amount" => is_amount(text, priced.fiat),
            "crypto_amount" => is_amount(text, priced.crypto),
            "source_amount" => source.is_some_and(|it| is_amount(text, it.amount)),
            "source_asset" => source.is_some_and(|it| text == it.amount.asset().code()),
            "source_network" => source.is_some_and(|it| text == it.network),
            _ => true,
        };
        let differing = self.0.iter().filter(|(name, text)| !fits(name, text));
        differing.map(|(name, _)| name.as_str()).collect()
    }
}

/// Whether a decimal text is this amount. Trailing zeros of the fraction do not matter.
fn is_amount(text: &str, amount: Amount) -> bool {
    let trimmed = match text.split_once('.') {
        Some((_, fraction)) if !fraction.is_empty() => {
            text.trim_end_matches('0').trim_end_matches('.')
        }
        Some(_) | None => text,
    };
    Amount::parse(trimmed, amount.asset()).is_ok_and(|read| read == amount)
}

#[cfg(test)]
mod tests {
    use kernel::rates::Side;
    use kernel::{Asset, Rate};

    use super::*;
    use crate::pricing::{Fees, Priced};
    use crate::signed_quote::{Conversion, Source};

    const TRON: &str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";
    const EVM: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

    fn terms(conversion: Conversion) -> QuoteTerms {
        let eur = |text| Amount::parse(text, Asset::fiat("EUR").unwrap()).unwrap();
        QuoteTerms {
            conversion,
            network: "tron".to_owned(),
            priced: Priced {
                rate: Rate::parse("1").unwrap(),
                fiat: eur("100.00"),
                crypto: Amount::parse("98.5", Asset::crypto("USDT").unwrap()).unwrap(),
                fees: Fees::of(eur("1.00"), eur("0.50")).unwrap(),
            },
        }
    }

    fn differing(
        terms: &QuoteTerms,
        form: Option<AddressForm>,
        named: &[(&str, &str)],
    ) -> Vec<String> {
        let named = named
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let instructions = Instructions(named.collect());
        let differing = instructions.differences(terms, form);
        differing.into_iter().map(str::to_owned).collect()
    }

    // rule: gate.rail.instructions-repeat-terms
    #[test]
    fn instructions_of_a_purchase_ask_for_its_fiat() {
        let terms = terms(Conversion::ramp(Side::OnRamp, "sepa".to_owned()));
        let differing = |named: &[(&str, &str)]| differing(&terms, None, named);
        for same in [
            &[][..],
            &[("amount", "100"), ("currency", "EUR"), ("iban", "DE1")],
            &[("amount", "100.00"), ("asset", "USDT"), ("network", "tron")],
            &[("amount", "100.000"), ("address", "Main Street 1")],
        ] {
            assert_eq!(differing(same), [""; 0], "{same:?}");
        }
        for (name, text) in [
            ("amount", "9100.00"),
            ("amount", "100.001"),
            ("amount", "100,00"),
            ("amount", "100.00 EUR"),
            ("amount", "-100"),
            ("amount", "1e2"),
            ("amount", ""),
            ("currency", "USD"),
            ("asset", "BTC"),
            ("network", "ethereum"),
            ("fiat_amount", "98.5"),
            ("crypto_amount", "100.00"),
            ("source_amount", "99"),
            ("source_asset", "USDC"),
        ] {
            assert_eq!(differing(&[(name, text)]), [name], "{text}");
        }
        let other = differing(&[("network", "x"), ("amount", "1"), ("currency", "USD")]);
        assert_eq!(other, ["amount", "currency", "network"]);
    }

    // rule: gate.rail.instructions-repeat-terms
    #[test]
    fn instructions_of_a_sale_and_a_swap_ask_for_the_crypto_on_its_network() {
        let sale = terms(Conversion::ramp(Side::OffRamp, "sepa".to_owned()));
        let swap = terms(Conversion::Swap(Source {
            amount: Amount::parse("99", Asset::crypto("USDC").unwrap()).unwrap(),
            network: "ethereum".to_owned(),
        }));
        let (tron, evm) = (Some(AddressForm::Tron), Some(AddressForm::Evm));
        let of_sale = [
            ("amount", "98.50"),
            ("asset", "USDT"),
            ("network", "tron"),
            ("address", TRON),
        ];
        let of_swap = [
            ("amount", "99.0"),
            ("asset", "USDC"),
            ("network", "ethereum"),
            ("address", EVM),
        ];
        assert_eq!(differing(&sale, tron, &of_sale), [""; 0]);
        assert_eq!(differing(&swap, evm, &of_swap), [""; 0]);
        let all = ["address", "amount", "asset", "network"];
        assert_eq!(differing(&sale, tron, &of_swap), all);
        assert_eq!(differing(&swap, evm, &of_sale), all);
        assert_eq!(differing(&sale, None, &of_sale), ["address"]);
        assert_eq!(differing(&sale, tron, &[("amount", "100.00")]), ["amount"]);
    }
}
