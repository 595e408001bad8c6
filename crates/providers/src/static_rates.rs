//! Rates from a file the operator writes: `static:<file>`, read once at start.
//!
//! ```toml
//! [[rates]]
//! pair = "EUR-USDT"
//! mid = "1.0850"        # crypto per fiat
//! spread_bps = 25
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use async_trait::async_trait;
use kernel::{Amount, Asset, Mid};
use partner_core::pools::PoolId;
use partner_core::ports::RateSource;
use partner_core::rates::SourceRate;
use rust_decimal::Decimal;
use serde::Deserialize;
use toml::Spanned;

/// A spread of the whole price is the largest there is.
const MOST_BPS: u16 = 10_000;

/// The rates of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticRates {
    rates: BTreeMap<PoolId, SourceRate>,
}

/// A fault of the file: where it is and what was expected there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatesFault {
    /// The file as the operator named it.
    pub file: String,
    /// The line, from one; `None` where the file cannot be read at all.
    pub line: Option<usize>,
    /// What was expected.
    pub expected: String,
}

impl fmt::Display for RatesFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.expected),
            None => write!(f, "{}: {}", self.file, self.expected),
        }
    }
}

impl std::error::Error for RatesFault {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rates: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    pair: Spanned<String>,
    mid: Spanned<toml::Value>,
    spread_bps: Spanned<u16>,
}

impl StaticRates {
    /// Reads a file.
    ///
    /// # Errors
    /// Every fault of the file, in the order of its lines.
    pub fn read(path: &Path) -> Result<Self, Vec<RatesFault>> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&file, &text),
            Err(fault) => Err(vec![RatesFault {
                file,
                line: None,
                expected: format!("expected a readable TOML file of [[rates]] ({fault})"),
            }]),
        }
    }

    /// Reads the text of a file named `file`.
    ///
    /// # Errors
    /// As [`StaticRates::read`].
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<RatesFault>> {
        let fault = |at: Option<Range<usize>>, expected: String| RatesFault {
            file: file.to_owned(),
            line: at.map(|at| line_of(text, at.start)),
            expected,
        };
        let rows: File = toml::from_str(text)
            .map_err(|unread| vec![fault(unread.span(), one_line(unread.message()))])?;
        let mut faults = Vec::new();
        let mut rates = BTreeMap::new();
        let mut first_lines = BTreeMap::new();
        for row in &rows.rates {
            match row.read(text) {
                Ok((pair, rate)) => {
                    let line = line_of(text, row.pair.span().start);
                    if let Some(first) = first_lines.insert(pair, line) {
                        let expected = format!("{pair} has a rate already, on line {first}");
                        faults.push(fault(Some(row.pair.span()), expected));
                    }
                    rates.insert(pair, rate);
                }
                Err(unread) => {
                    faults.extend(unread.into_iter().map(|(at, what)| fault(Some(at), what)));
                }
            }
        }
        if rows.rates.is_empty() {
            faults.push(fault(None, "expected at least one [[rates]]".to_owned()));
        }
        if faults.is_empty() {
            Ok(Self { rates })
        } else {
            Err(faults)
        }
    }
}

#[async_trait]
impl RateSource for StaticRates {
    async fn rate(&self, fiat: Asset, crypto: Asset, _: Amount) -> Option<SourceRate> {
        self.rates.get(&PoolId::of(fiat, crypto)).copied()
    }
}

/// Where in the text, and what was expected there.
type Unread = (Range<usize>, String);

impl Row {
    fn read(&self, text: &str) -> Result<(PoolId, SourceRate), Vec<Unread>> {
        let mut faults = Vec::new();
        let pair = PoolId::parse(self.pair.get_ref());
        if pair.is_none() {
            let expected = "pair: expected a fiat and a crypto code such as \"EUR-USDT\"";
            faults.push((self.pair.span(), expected.to_owned()));
        }
        let mid = self.mid(text);
        if mid.is_none() {
            let expected =
                "mid: expected a decimal greater than zero such as \"1.0850\", crypto per fiat";
            faults.push((self.mid.span(), expected.to_owned()));
        }
        let spread_bps = *self.spread_bps.get_ref();
        if spread_bps > MOST_BPS {
            let expected = format!("spread_bps: expected basis points from 0 to {MOST_BPS}");
            faults.push((self.spread_bps.span(), expected));
        }
        match (pair, mid) {
            (Some(pair), Some(mid)) if faults.is_empty() => {
                Ok((pair, SourceRate { mid, spread_bps }))
            }
            _ => Err(faults),
        }
    }

    /// A mid written without quotes is read by its text, so that it never becomes a float.
    fn mid(&self, text: &str) -> Option<Mid> {
        let written = match self.mid.get_ref() {
            toml::Value::String(written) => written.as_str(),
            toml::Value::Integer(_) | toml::Value::Float(_) => text.get(self.mid.span())?,
            _ => return None,
        };
        let plain = written
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        let value = Decimal::from_str_exact(written).ok().filter(|_| plain)?;
        Mid::new(value)
    }
}

/// The line, from one, that a byte of a text stands on.
fn line_of(text: &str, at: usize) -> usize {
    let before = text.bytes().take(at);
    before.filter(|byte| *byte == b'\n').count() + 1
}

fn one_line(message: &str) -> String {
    message.lines().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        let faults = StaticRates::parse("rates.toml", text).unwrap_err();
        faults.iter().map(RatesFault::to_string).collect()
    }

    #[tokio::test]
    async fn reads_mids_as_they_are_written() {
        let text = r#"
            [[rates]]
            pair = "EUR-USDT"
            mid = "1.0850"
            spread_bps = 25
            [[rates]]
            pair = "GBP-USDT"
            mid = 1.2600000000000000000000001
            spread_bps = 0
            [[rates]]
            pair = "JPY-USDT"
            mid = 2
            spread_bps = 10000
        "#;
        let rates = StaticRates::parse("rates.toml", text).unwrap();
        for (fiat, mid, bps) in [
            ("EUR", Some("1.085"), 25),
            ("GBP", Some("1.2600000000000000000000001"), 0),
            ("JPY", Some("2"), 10_000),
            ("USD", None, 0),
        ] {
            let fiat = Asset::fiat(fiat).unwrap();
            let usdt = Asset::crypto("USDT").unwrap();
            let rate = rates.rate(fiat, usdt, Amount::zero(fiat)).await;
            let shown = rate.map(|rate| rate.mid.to_string());
            assert_eq!(shown.as_deref(), mid);
            assert!(rate.is_none_or(|rate| rate.spread_bps == bps));
        }
    }

    #[test]
    fn names_every_fault_with_its_line() {
        let text = r#"[[rates]]
pair = "EUR-USDT"
mid = "1.0850"
spread_bps = 25

[[rates]]
pair = "eur-usdt"
mid = "-1"
spread_bps = 10001

[[rates]]
pair = "EUR-USDT"
mid = 1e3
spread_bps = 25

[[rates]]
pair = "EUR-USDT"
mid = "1"
spread_bps = 25
"#;
        let faults = faults(text);
        let starts = [
            "rates.toml:7: pair: expected",
            "rates.toml:8: mid: expected",
            "rates.toml:9: spread_bps: expected",
            "rates.toml:13: mid: expected",
            "rates.toml:17: EUR-USDT has a rate already, on line 2",
        ];
        assert_eq!(faults.len(), starts.len(), "{faults:#?}");
        for (fault, start) in faults.iter().zip(starts) {
            assert!(fault.starts_with(start), "{fault}");
        }
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for (text, told) in [
            ("", "rates.toml: expected at least one [[rates]]"),
            ("rate = 1", "rates.toml:1: unknown field `rate`"),
            (
                "\n[[rates]]\npair = \"EUR-USDT\"\nmid = \"1\"\nspread = 1",
                "rates.toml:5: unknown field `spread`",
            ),
            (
                "[[rates]]\npair = \"EUR-USDT\"\nmid = \"1\"\n",
                "rates.toml:1: missing field `spread_bps`",
            ),
            (
                "[[rates]]\npair = \"EUR-USDT\"\nmid = \"1\"\nspread_bps = -1",
                "rates.toml:4: ",
            ),
            ("[[rates\n", "rates.toml:1: "),
        ] {
            let faults = faults(text);
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].starts_with(told), "{}", faults[0]);
        }
        for mid in [
            "0", "0.0", "1.", ".5", "1,5", "+1", "1_000.5", "inf", "true", "\"\"", "\" 1\"",
        ] {
            let text = format!("[[rates]]\npair = \"EUR-USDT\"\nspread_bps = 1\nmid = {mid}");
            let faults = faults(&text);
            assert!(faults[0].starts_with("rates.toml:4: "), "{faults:?}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let faults = StaticRates::read(Path::new("no/such/rates.toml")).unwrap_err();
        assert!(
            faults[0]
                .to_string()
                .starts_with("no/such/rates.toml: expected")
        );
    }
}
