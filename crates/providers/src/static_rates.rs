//! Rates from a file that the operator writes: `static:<file>`, read once at start.
//!
//! ```toml
//! valid_until = "2026-06-01T00:00:00Z"    # default of all pairs; a pair may have its own
//!
//! [[rates]]
//! pair = "EUR-USDT"
//! mid = "1.0850"        # crypto per fiat
//! spread_bps = 25
//! ```
//!
//! A pair has no rate from `valid_until` on. In mode live every pair needs this instant, because partners could trade against the
//! outdated rates of a forgotten file.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use kernel::rates::SourceRate;
use kernel::{Amount, Asset, Bound, Clock, Mid, Mode, Timestamp};
use partner_core::ports::RateSource;
use partner_core::tables;
use pools_core::profile::PoolId;
use rust_decimal::Decimal;
use serde::Deserialize;
use toml::Spanned;

/// Maximum spread, in basis points: the whole price.
const MAX_SPREAD_BPS: u16 = 10_000;

/// The rates of a file.
pub struct StaticRates {
    rates: BTreeMap<PoolId, Written>,
    clock: Arc<dyn Clock>,
}

/// A rate and the instant at which it expires.
#[derive(Debug, Clone, Copy)]
struct Written {
    rate: SourceRate,
    valid_until: Option<Timestamp>,
}

/// An error of the file: its line and the expected value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatesError {
    /// The file's name as the operator wrote it.
    pub file: String,
    /// The line, counted from one. `None` if the file cannot be read.
    pub line: Option<usize>,
    /// What was expected.
    pub expected: String,
}

impl fmt::Display for RatesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.expected),
            None => write!(f, "{}: {}", self.file, self.expected),
        }
    }
}

impl std::error::Error for RatesError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    valid_until: Option<Spanned<toml::Value>>,
    #[serde(default)]
    rates: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    pair: Spanned<String>,
    mid: Spanned<toml::Value>,
    spread_bps: Spanned<u16>,
    valid_until: Option<Spanned<toml::Value>>,
}

impl StaticRates {
    /// Reads a file. In mode live every pair needs `valid_until`.
    ///
    /// # Errors
    /// Every error of the file, in the order of its lines.
    pub fn read(path: &Path, mode: Mode, clock: Arc<dyn Clock>) -> Result<Self, Vec<RatesError>> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&file, &text, mode, clock),
            Err(error) => Err(vec![RatesError {
                file,
                line: None,
                expected: format!("expected a readable TOML file of [[rates]] ({error})"),
            }]),
        }
    }

    /// Reads the text of a file named `file`.
    pub fn parse(
        file: &str,
        text: &str,
        mode: Mode,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Vec<RatesError>> {
        let error = |at: Option<Range<usize>>, expected: String| RatesError {
            file: file.to_owned(),
            line: at.map(|at| line_of(text, at.start)),
            expected,
        };
        let rows: File = toml::from_str(text).map_err(|unread| {
            let at = unread.span().map_or(0, |span| span.start);
            let problem = tables::broken_syntax(text, at, unread.message());
            vec![error(unread.span(), problem)]
        })?;
        let mut faults = Vec::new();
        let of_all = instant(rows.valid_until.as_ref()).unwrap_or_else(|(at, expected)| {
            faults.push(error(Some(at), expected));
            None
        });
        let needed = mode == Mode::Live && rows.valid_until.is_none();
        let mut rates = BTreeMap::new();
        let mut first_lines = BTreeMap::new();
        for row in &rows.rates {
            match row.read(text, of_all) {
                Ok((pair, rate)) => {
                    if needed && rate.valid_until.is_none() {
                        let expected = format!(
                            "valid_until: missing for {pair}; set an instant for the pair, or for all pairs before the first [[rates]]; mode live requires it"
                        );
                        faults.push(error(Some(row.pair.span()), expected));
                    }
                    let line = line_of(text, row.pair.span().start);
                    if let Some(first) = first_lines.insert(pair, line) {
                        let expected = format!("{pair} already has a rate, on line {first}");
                        faults.push(error(Some(row.pair.span()), expected));
                    }
                    rates.insert(pair, rate);
                }
                Err(unread) => {
                    faults.extend(unread.into_iter().map(|(at, what)| error(Some(at), what)));
                }
            }
        }
        if rows.rates.is_empty() {
            faults.push(error(None, "expected at least one [[rates]]".to_owned()));
        }
        if faults.is_empty() {
            Ok(Self { rates, clock })
        } else {
            Err(faults)
        }
    }
}

#[async_trait]
impl RateSource for StaticRates {
    async fn rate(&self, fiat: Asset, crypto: Asset, _: Amount) -> Option<SourceRate> {
        let written = self.rates.get(&PoolId::of(fiat, crypto))?;
        let until = written.valid_until;
        let stands = until.is_none_or(|until| self.clock.now() < until);
        stands.then_some(written.rate)
    }
}

/// The place of an error in the text, and the expected value.
type Unread = (Range<usize>, String);

impl Row {
    fn read(
        &self,
        text: &str,
        of_all: Option<Timestamp>,
    ) -> Result<(PoolId, Written), Vec<Unread>> {
        let mut faults = Vec::new();
        let valid_until = instant(self.valid_until.as_ref()).unwrap_or_else(|unread| {
            faults.push(unread);
            None
        });
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
        if spread_bps > MAX_SPREAD_BPS {
            let expected = format!("spread_bps: expected basis points from 0 to {MAX_SPREAD_BPS}");
            faults.push((self.spread_bps.span(), expected));
        }
        match (pair, mid) {
            (Some(pair), Some(mid)) if faults.is_empty() => {
                let rate = SourceRate { mid, spread_bps };
                let valid_until = valid_until.or(of_all);
                Ok((pair, Written { rate, valid_until }))
            }
            _ => Err(faults),
        }
    }

    /// Parses a mid. A number without quotes is parsed from its text, so that it never becomes a float.
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

/// Parses an optional instant: a string, or a TOML date with an offset.
fn instant(written: Option<&Spanned<toml::Value>>) -> Result<Option<Timestamp>, Unread> {
    let Some(written) = written else {
        return Ok(None);
    };
    let text = match written.get_ref() {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Datetime(date) if date.offset.is_some() => Some(date.to_string()),
        _ => None,
    };
    let read = text.and_then(|text| Timestamp::parse(&text, Bound::Upper).ok());
    let expected = "valid_until: expected an instant such as \"2026-06-01T00:00:00Z\"";
    read.map(Some)
        .ok_or_else(|| (written.span(), expected.to_owned()))
}

/// The line, counted from one, of a byte of the text.
fn line_of(text: &str, at: usize) -> usize {
    let before = text.bytes().take(at);
    before.filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that always returns noon.
    struct FixedNoon;
    impl Clock for FixedNoon {
        fn now(&self) -> Timestamp {
            Timestamp::parse("2026-05-25T12:00:00Z", Bound::Upper).unwrap()
        }
    }

    fn parsed(text: &str, mode: Mode) -> Result<StaticRates, Vec<RatesError>> {
        StaticRates::parse("rates.toml", text, mode, Arc::new(FixedNoon))
    }

    fn faults_in(text: &str, mode: Mode) -> Vec<String> {
        let faults = parsed(text, mode).err().unwrap();
        faults.iter().map(RatesError::to_string).collect()
    }

    fn faults(text: &str) -> Vec<String> {
        faults_in(text, Mode::Test)
    }

    const EUR: &str = "[[rates]]\npair = \"EUR-USDT\"\nmid = \"1\"\nspread_bps = 1\n";
    const GBP: &str = "[[rates]]\npair = \"GBP-USDT\"\nmid = \"1\"\nspread_bps = 1\n";

    // rule: config.static-rates-expire
    #[tokio::test]
    async fn rates_end_at_valid_until() {
        let priced = async |text: &str, fiat: &str| {
            let rates = parsed(text, Mode::Live).unwrap();
            let fiat = Asset::fiat(fiat).unwrap();
            let usdt = Asset::crypto("USDT").unwrap();
            rates.rate(fiat, usdt, Amount::zero(fiat)).await.is_some()
        };
        let until = |instant: &str| format!("valid_until = {instant}\n");
        for (instant, stands) in [
            ("\"2026-05-25T12:00:00.001Z\"", true),
            ("\"2026-05-25T14:00:00+01:00\"", true),
            ("2026-05-25T12:00:01Z", true),
            ("\"2026-05-26\"", true),
            ("\"2026-05-25T12:00:00Z\"", false),
            ("2020-01-01T00:00:00Z", false),
        ] {
            assert_eq!(
                priced(&format!("{}{EUR}", until(instant)), "EUR").await,
                stands,
                "{instant}"
            );
            assert_eq!(
                priced(&format!("{EUR}{}", until(instant)), "EUR").await,
                stands,
                "{instant}"
            );
        }
        let (over, ahead) = (until("2026-05-25T11:00:00Z"), until("2026-05-25T13:00:00Z"));
        let text = format!("{over}{EUR}{ahead}{GBP}");
        assert!(
            priced(&text, "EUR").await,
            "the pair's own instant overrides the default"
        );
        assert!(!priced(&text, "GBP").await);
    }

    // rule: config.static-rates-expire
    #[test]
    fn mode_live_needs_valid_until_for_every_rate() {
        let text = format!("{EUR}valid_until = \"2026-06-01\"\n{GBP}");
        let found = faults_in(&text, Mode::Live);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("rates.toml:7: valid_until: missing for GBP-USDT; set an instant"),
            "{found:?}"
        );
        assert!(parsed(&text, Mode::Test).is_ok());
        for bad in [
            "\"tomorrow\"",
            "5",
            "2026-05-25",
            "2026-05-25T12:00:00",
            "\"\"",
        ] {
            let found = faults(&format!("valid_until = {bad}\n{EUR}"));
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(
                found[0].starts_with("rates.toml:1: valid_until: expected"),
                "{found:?}"
            );
            let found = faults(&format!("{EUR}valid_until = {bad}\n"));
            assert!(
                found[0].starts_with("rates.toml:5: valid_until: expected"),
                "{found:?}"
            );
        }
    }

    #[tokio::test]
    async fn static_rates_parse_mids_exactly() {
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
        let rates = parsed(text, Mode::Test).unwrap();
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
    fn static_rates_report_every_error_with_its_line() {
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
            "rates.toml:17: EUR-USDT already has a rate, on line 2",
        ];
        assert_eq!(faults.len(), starts.len(), "{faults:#?}");
        for (error, start) in faults.iter().zip(starts) {
            assert!(error.starts_with(start), "{error}");
        }
    }

    #[test]
    fn static_rates_refuse_unknown_and_missing_keys() {
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
    fn missing_file_is_reported_by_name() {
        let path = Path::new("no/such/rates.toml");
        let read = StaticRates::read(path, Mode::Test, Arc::new(FixedNoon));
        let faults = read.err().unwrap();
        assert!(
            faults[0]
                .to_string()
                .starts_with("no/such/rates.toml: expected")
        );
    }
}
