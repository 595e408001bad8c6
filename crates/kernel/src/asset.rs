//! Currencies and crypto assets, with the number of digits each can have.

use std::fmt;

use iso_currency::{Currency, Flag};

use crate::amount::UNITS_SCALE;

/// A fiat currency or a crypto asset: its code and its scale. Cheap to copy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asset {
    code: Code,
    kind: AssetKind,
    scale: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AssetKind {
    /// An active ISO 4217 currency.
    Fiat,
    /// A crypto asset.
    Crypto,
}

/// The built-in crypto assets with their scale.
const BUILT_IN: [(&str, u8); 4] = [("USDT", 6), ("USDC", 6), ("BTC", 8), ("ETH", 8)];

impl Asset {
    /// The currency of a code, upper-cased; its scale is the minor unit of ISO 4217.
    ///
    /// Returns `None` for funds, metals, test codes and superseded currencies.
    #[must_use]
    pub fn fiat(code: &str) -> Option<Self> {
        let code = Code::upper(code)?;
        let currency = Currency::from_code(code.as_str())?;
        // The Venezuelan bolívar has two codes and both are active in the standard's list.
        let counts = |flag: &Flag| match flag {
            Flag::Superseded(_) => currency == Currency::VES,
            Flag::Fund | Flag::Special => false,
        };
        let scale = u8::try_from(currency.exponent()?).ok()?;
        currency.flags().iter().all(counts).then_some(Self {
            code,
            kind: AssetKind::Fiat,
            scale,
        })
    }

    /// A built-in crypto asset, by its symbol, upper-cased.
    #[must_use]
    pub fn crypto(symbol: &str) -> Option<Self> {
        let code = Code::upper(symbol)?;
        let (_, scale) = BUILT_IN.iter().find(|(known, _)| *known == code.as_str())?;
        Some(Self {
            code,
            kind: AssetKind::Crypto,
            scale: *scale,
        })
    }

    /// A crypto asset of a catalogue, with a scale of at most 8. A built-in asset keeps its own scale. Returns `None` for the code
    /// of a currency.
    #[must_use]
    pub fn listed(symbol: &str, scale: u8) -> Option<Self> {
        let code = Code::upper(symbol)?;
        let known = Self::parse(symbol);
        let fits = scale <= UNITS_SCALE;
        let asset = Self {
            code,
            kind: AssetKind::Crypto,
            scale,
        };
        (fits && known.is_none_or(|known| known == asset)).then_some(asset)
    }

    /// The currency or built-in crypto asset of a code. No crypto symbol is also a currency code.
    #[must_use]
    pub fn parse(code: &str) -> Option<Self> {
        Self::fiat(code).or_else(|| Self::crypto(code))
    }

    /// The code in upper case, such as `EUR` or `USDT`.
    #[must_use]
    pub fn code(&self) -> &str {
        self.code.as_str()
    }

    /// The kind: currency or crypto asset.
    #[must_use]
    pub const fn kind(&self) -> AssetKind {
        self.kind
    }

    /// Fractional digits that an amount of the asset may have: 0 to 8.
    #[must_use]
    pub const fn scale(&self) -> u8 {
        self.scale
    }
}

impl fmt::Display for Asset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

crate::debug_as_display!(Asset);

/// Up to twelve upper-case letters and digits, kept inline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Code([u8; 12]);

impl Code {
    fn upper(text: &str) -> Option<Self> {
        let fits =
            (2..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !fits {
            return None;
        }
        let mut code = [0; 12];
        for (slot, byte) in code.iter_mut().zip(text.bytes()) {
            *slot = byte.to_ascii_uppercase();
        }
        Some(Self(code))
    }

    fn as_str(&self) -> &str {
        let end = self
            .0
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(self.0.len());
        self.0
            .get(..end)
            .and_then(|code| std::str::from_utf8(code).ok())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every active currency of ISO 4217, without funds, metals and codes without money.
    const ACTIVE: &str = "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL \
        BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB \
        EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD \
        JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK \
        MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN \
        PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB \
        TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF \
        XPF YER ZAR ZMW ZWG";
    const WITHOUT_MINOR_UNITS: &str =
        "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF";
    const WITH_THREE_DIGITS: &str = "BHD IQD JOD KWD LYD OMR TND";

    // rule: money.fiat-digits, pools.quote.unknown-currency
    #[test]
    fn only_active_currencies_are_fiat() {
        let letters = || ('A'..='Z').map(String::from);
        let two =
            || letters().flat_map(move |first| letters().map(move |next| first.clone() + &next));
        let codes = two().flat_map(|start| letters().map(move |last| start.clone() + &last));
        let known: Vec<(String, u8)> = codes
            .filter_map(|code| Asset::fiat(&code).map(|asset| (code, asset.scale())))
            .collect();
        let lists = |list: &str, code: &str| list.split_whitespace().any(|item| item == code);
        let scale = |code: &str| match code {
            code if lists(WITHOUT_MINOR_UNITS, code) => 0,
            code if lists(WITH_THREE_DIGITS, code) => 3,
            _ => 2,
        };
        let expected: Vec<(String, u8)> = ACTIVE
            .split_whitespace()
            .map(|code| (code.to_owned(), scale(code)))
            .collect();
        assert_eq!(known, expected);
    }

    #[test]
    fn fiat_has_minor_units_of_iso_4217() {
        for (code, scale) in [
            ("EUR", 2),
            ("eur", 2),
            ("JPY", 0),
            ("BHD", 3),
            ("VES", 2),
            ("XAF", 0),
            ("XCG", 2),
        ] {
            let asset = Asset::fiat(code).unwrap();
            assert_eq!(
                (asset.scale(), asset.kind()),
                (scale, AssetKind::Fiat),
                "{code}"
            );
        }
    }

    #[test]
    fn fiat_refuses_codes_without_money() {
        for code in [
            "XXX", "XTS", "XAU", "XAG", "XDR", "CLF", "CHE", "USN", "BOV", "HRK", "ABC", "EURO",
            "", "€", "EUR ",
        ] {
            assert!(Asset::fiat(code).is_none(), "{code}");
        }
    }

    // rule: money.crypto-digits, pools.quote.codes-upper-cased
    #[test]
    fn crypto_has_built_in_assets() {
        assert_eq!(Asset::crypto("usdt").unwrap().code(), "USDT");
        for (symbol, scale) in [("USDT", 6), ("USDC", 6), ("BTC", 8), ("ETH", 8)] {
            assert_eq!(Asset::crypto(symbol).unwrap().scale(), scale, "{symbol}");
        }
        assert_eq!(Asset::parse("BTC").unwrap().scale(), 8);
        assert!(Asset::crypto("DOGE").is_none());
        assert!(Asset::crypto("EUR").is_none());
    }

    // rule: money.crypto-digits
    #[test]
    fn catalogue_adds_assets_without_changing_existing_ones() {
        let sol = Asset::listed("sol", 8).unwrap();
        assert_eq!((sol.code(), sol.scale()), ("SOL", 8));
        assert_eq!(Asset::listed("USDT", 6), Asset::crypto("USDT"));
        for (symbol, scale) in [("USDT", 8), ("EUR", 2), ("SOL", 9), ("S", 8), ("SÖL", 8)] {
            assert!(Asset::listed(symbol, scale).is_none(), "{symbol} {scale}");
        }
    }
}
