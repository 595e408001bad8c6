//! Parsers for the values of settings.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use partner_core::sealing::MasterKey;
use partner_core::throttle::{self, Tier};
use percent_encoding::percent_decode_str;
use providers::UpstreamUrl;
use secrecy::SecretString;
use zeroize::Zeroizing;

/// Why a text is not a value of its setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InvalidSetting {
    /// The text does not have the form that the setting expects.
    Form,
    /// The message says what was found, and the remedy.
    Because(String),
    /// The URL of an upstream has credentials or a query. The error does not repeat it, because it may contain a password.
    Credentials,
}

/// A URL without its password and query.
pub(crate) fn without_credentials(url: &str) -> String {
    let (url, query) = match url.split_once('?') {
        Some((url, _)) => (url, "?***"),
        None => (url, ""),
    };
    let masked = url.split_once("://").and_then(|(scheme, rest)| {
        let (credentials, host) = rest.rsplit_once('@')?;
        let user = credentials.split_once(':').map_or("", |(user, _)| user);
        Some(format!("{scheme}://{user}:***@{host}"))
    });
    masked.unwrap_or_else(|| url.to_owned()) + query
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RatesChoice {
    /// No source: no quote can be priced.
    None,
    /// The sandbox's fixed rates, only in mode test.
    Sandbox,
    /// A file of rates that the operator writes.
    Static(PathBuf),
    /// Sources over HTTP, which the operator's file describes.
    Http(PathBuf),
}

/// An upstream that an operator may run: the engine, the rail or the verifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamChoice {
    /// No upstream: what needs it is refused.
    None,
    /// The sandbox's, only in mode test.
    Sandbox,
    /// The operator's, over HTTP.
    Http(UpstreamUrl),
}

/// The destination of traces, and the share that is recorded.
#[derive(Debug, Clone)]
pub struct TraceExport {
    /// The collector's address. Traces are sent to `/v1/traces` below it.
    pub collector: url::Url,
    /// Sent with every request, such as the collector's key.
    pub headers: Vec<TraceHeader>,
    /// Records one trace in `one_in`.
    pub one_in: u32,
}

/// A header's name and its value, which may be a credential.
pub type TraceHeader = (String, SecretString);

kernel::closed_list! {
    /// The reader of logs.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum LogFormat {
        /// For machines: one JSON object per line.
        Json = "json",
        /// For people.
        Text = "text",
    }
}

/// Headers that the client itself sets in a request to a collector.
const SENT_BY_CLIENT: [&str; 5] = [
    "connection",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
];

/// The names of tiers, in the order they are written.
const TIERS: [&str; 3] = ["short", "medium", "long"];

/// One key, or several separated by commas or white space.
pub(crate) fn master_keys(text: &str) -> Result<Vec<MasterKey>, InvalidSetting> {
    let separator = |letter: char| letter == ',' || letter.is_whitespace();
    let parts = text.split(separator).filter(|part| !part.is_empty());
    let keys = parts.map(master_key).collect::<Result<Vec<_>, _>>()?;
    if keys.is_empty() {
        Err(InvalidSetting::Form)
    } else {
        Ok(keys)
    }
}

fn master_key(text: &str) -> Result<MasterKey, InvalidSetting> {
    let bytes = STANDARD
        .decode(text)
        .or_else(|_| STANDARD_NO_PAD.decode(text))
        .map_err(|_| InvalidSetting::Form)?;
    let bytes = Zeroizing::new(bytes);
    let key: [u8; 32] = bytes
        .as_slice()
        .try_into()
        .map_err(|_| InvalidSetting::Form)?;
    Ok(MasterKey::new(key))
}

pub(crate) fn listen(text: &str) -> Result<SocketAddr, InvalidSetting> {
    text.parse().map_err(|_| InvalidSetting::Form)
}

/// Digits and one unit: `500ms`, `15s`, `5m`, `24h`.
pub(crate) fn span_or_zero(text: &str) -> Result<Duration, InvalidSetting> {
    throttle::parse_span(text).ok_or(InvalidSetting::Form)
}

pub(crate) fn span(text: &str) -> Result<Duration, InvalidSetting> {
    span_or_zero(text).and_then(|span| form(!span.is_zero(), span))
}

pub(crate) fn timeout(text: &str) -> Result<Duration, InvalidSetting> {
    let sensible = Duration::from_millis(100)..=Duration::from_secs(60);
    span(text).and_then(|span| form(sensible.contains(&span), span))
}

pub(crate) fn spans(text: &str) -> Result<Vec<Duration>, InvalidSetting> {
    list(text).map(span).collect()
}

pub(crate) fn flag(text: &str) -> Result<bool, InvalidSetting> {
    text.parse().map_err(|_| InvalidSetting::Form)
}

pub(crate) fn switch(text: &str) -> Result<bool, InvalidSetting> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(InvalidSetting::Form),
    }
}

pub(crate) fn connections(text: &str) -> Result<u32, InvalidSetting> {
    let count: u32 = text.parse().map_err(|_| InvalidSetting::Form)?;
    form((1..=1000).contains(&count), count)
}

/// One limit: `10/60s`.
pub(crate) fn limit(text: &str) -> Result<Vec<Tier>, InvalidSetting> {
    let tiers = limits(text)?;
    form(tiers.len() == 1, tiers)
}

/// One limit in addition to a route's own limit: the tier `medium`.
pub(crate) fn ceiling(text: &str) -> Result<Vec<Tier>, InvalidSetting> {
    let tier = Tier::parse(TIERS[1], text).ok_or(InvalidSetting::Form)?;
    Ok(vec![tier])
}

/// One to three limits, the shortest window first: `10/10s,60/60s,300/1h`.
pub(crate) fn limits(text: &str) -> Result<Vec<Tier>, InvalidSetting> {
    let written: Vec<&str> = list(text).collect();
    if written.len() > TIERS.len() {
        return Err(InvalidSetting::Form);
    }
    let named = TIERS.into_iter().zip(written);
    let tiers: Vec<Tier> = named
        .map(|(name, one)| Tier::parse(name, one).ok_or(InvalidSetting::Form))
        .collect::<Result<_, _>>()?;
    form(tiers.is_sorted_by_key(|tier| tier.per), tiers)
}

/// An origin: scheme, host and an optional port.
pub(crate) fn origin(text: &str) -> Result<(), InvalidSetting> {
    let schemes = ["https://", "http://"];
    let host = schemes.iter().find_map(|scheme| text.strip_prefix(scheme));
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    form(
        host.is_some_and(|host| !host.is_empty() && host.bytes().all(letter)),
        (),
    )
}

pub(crate) fn rates(text: &str) -> Result<RatesChoice, InvalidSetting> {
    match text.split_once(':') {
        None if text == "none" => Ok(RatesChoice::None),
        None if text == "sandbox" => Ok(RatesChoice::Sandbox),
        Some(("static", file)) if !file.is_empty() => Ok(RatesChoice::Static(file.into())),
        Some(("http", file)) if !file.is_empty() => Ok(RatesChoice::Http(file.into())),
        _ => Err(InvalidSetting::Form),
    }
}

pub(crate) fn upstream(text: &str) -> Result<UpstreamChoice, InvalidSetting> {
    match text.split_once(':') {
        None if text == "none" => Ok(UpstreamChoice::None),
        None if text == "sandbox" => Ok(UpstreamChoice::Sandbox),
        _ if text.contains(['@', '?']) => Err(InvalidSetting::Credentials),
        Some(("http", url)) => UpstreamUrl::parse(url)
            .map(UpstreamChoice::Http)
            .ok_or(InvalidSetting::Form),
        _ => Err(InvalidSetting::Form),
    }
}

pub(crate) fn collector(text: &str) -> Result<url::Url, InvalidSetting> {
    let url = url::Url::parse(text).map_err(|_| InvalidSetting::Form)?;
    let bare = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    form(
        matches!(url.scheme(), "http" | "https") && url.has_host() && bare,
        url,
    )
}

/// Headers as OpenTelemetry writes them: `name=value,name=value`, with values percent-encoded where needed.
pub(crate) fn collector_headers(text: &str) -> Result<Vec<TraceHeader>, InvalidSetting> {
    list(text).map(collector_header).collect()
}

fn collector_header(text: &str) -> Result<TraceHeader, InvalidSetting> {
    let (name, value) = text.split_once('=').ok_or(InvalidSetting::Form)?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let value = percent_decode_str(value.trim()).decode_utf8();
    let value = value.map_err(|_| InvalidSetting::Form)?;
    let is_visible = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    let name = name.trim().to_ascii_lowercase();
    let fits = !name.is_empty()
        && name.bytes().all(is_token)
        && !SENT_BY_CLIENT.contains(&name.as_str())
        && !value.is_empty()
        && value.bytes().all(is_visible);
    form(fits, (name, SecretString::from(value.into_owned())))
}

pub(crate) fn one_in(text: &str) -> Result<u32, InvalidSetting> {
    let count = text.parse().map_err(|_| InvalidSetting::Form)?;
    form(is_digits(text) && (1..=1_000_000).contains(&count), count)
}

pub(crate) fn listener_connections(text: &str) -> Result<usize, InvalidSetting> {
    let count = text.parse().map_err(|_| InvalidSetting::Form)?;
    form(is_digits(text) && (1..=1_000_000).contains(&count), count)
}

pub(crate) fn file(text: &str) -> Result<PathBuf, InvalidSetting> {
    let names_file = !text.trim().is_empty() && !text.ends_with('/');
    form(names_file, PathBuf::from(text))
}

/// A header's name, or `none` for no header.
pub(crate) fn header(text: &str) -> Result<Option<String>, InvalidSetting> {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let fits = !text.is_empty() && text.len() <= 64 && text.bytes().all(letter);
    form(fits, Some(text.to_owned()).filter(|name| name != "none"))
}

fn form<T>(fits: bool, value: T) -> Result<T, InvalidSetting> {
    if fits {
        Ok(value)
    } else {
        Err(InvalidSetting::Form)
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim)
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn duration_parses_digits_and_unit() {
        for (text, millis) in [
            ("500ms", 500),
            ("15s", 15_000),
            ("5m", 300_000),
            ("24h", 86_400_000),
            ("0s", 0),
        ] {
            let read = span_or_zero(text).unwrap();
            assert_eq!(read, Duration::from_millis(millis), "{text}");
        }
        for bad in [
            "",
            "s",
            "15",
            "15 s",
            "-1s",
            "+1s",
            "1.5s",
            "1d",
            "15S",
            "99999999999h",
            "1h30m",
        ] {
            assert_eq!(span_or_zero(bad), Err(InvalidSetting::Form), "{bad}");
        }
        assert_eq!(span("0s"), Err(InvalidSetting::Form));
        assert_eq!(spans("5s, 1m,2h").unwrap().len(), 3);
        assert_eq!(spans("5s,,1m"), Err(InvalidSetting::Form));
    }

    #[test]
    fn collector_url_takes_http_and_https_without_credentials() {
        for good in [
            "http://127.0.0.1:4318",
            "https://otel.example/v1",
            "http://otel",
            "http://[::1]:4318/otlp",
        ] {
            assert!(collector(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "127.0.0.1:4318",
            "grpc://otel:4317",
            "http://",
            "http://user:pass@otel",
            "http://otel/?token=x",
        ] {
            assert_eq!(collector(bad), Err(InvalidSetting::Form), "{bad}");
        }
        assert_eq!(one_in("10"), Ok(10));
        for bad in ["", "0", "+1", "1.5", "1000001"] {
            assert_eq!(one_in(bad), Err(InvalidSetting::Form), "{bad}");
        }
    }

    #[test]
    fn collector_headers_parse_in_opentelemetry_format() {
        let read = collector_headers("Api-Key=abc%2C%20d, x-scope = 1=2").unwrap();
        let shown: Vec<_> = read
            .iter()
            .map(|(name, value)| (name.as_str(), value.expose_secret()))
            .collect();
        assert_eq!(shown, [("api-key", "abc, d"), ("x-scope", "1=2")]);
        assert!(!format!("{read:?}").contains("abc"));
        for bad in [
            "",
            "api-key",
            "=abc",
            "api-key=",
            "api key=abc",
            "api-key=a%0D%0Ab",
            "api-key=%ff",
            "Host=example",
            "content-length=3",
        ] {
            assert!(collector_headers(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn limits_parse_with_their_windows() {
        let tiers = limits("10/10s,60/60s,300/1h").unwrap();
        let shown: Vec<_> = tiers
            .iter()
            .map(|tier| (tier.name, tier.limit, tier.per.as_secs()))
            .collect();
        assert_eq!(
            shown,
            [("short", 10, 10), ("medium", 60, 60), ("long", 300, 3600)]
        );
        assert_eq!(limit("10/60s").unwrap().len(), 1);
        for bad in [
            "",
            "10",
            "0/1s",
            "10/0s",
            "10/60",
            "+1/1s",
            "5/1m,5/1s",
            "1/1s,1/2s,1/3s,1/4s",
        ] {
            assert_eq!(limits(bad), Err(InvalidSetting::Form), "{bad}");
        }
        assert_eq!(limit("1/1s,2/2s"), Err(InvalidSetting::Form));
    }

    #[test]
    fn timeout_parses_from_tenth_of_second_to_minute() {
        assert_eq!(timeout("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(timeout("60s"), Ok(Duration::from_secs(60)));
        for bad in ["0s", "99ms", "61s", "1h", "5"] {
            assert_eq!(timeout(bad), Err(InvalidSetting::Form), "{bad}");
        }
    }

    #[test]
    fn master_key_parses_32_bytes() {
        let padded = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        let key = master_key(padded).unwrap();
        let bare = master_key(padded.trim_end_matches('=')).unwrap();
        assert_eq!(key.fingerprint(), bare.fingerprint());
        for bad in [
            "",
            "AAEC",
            &padded[4..],
            "not base64 at all, but of a fair length......",
        ] {
            assert!(master_key(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn origins_parse() {
        assert!(origin("https://widget.example:8443").is_ok());
        for bad in [
            "",
            "https://",
            "widget.example",
            "https://a/b",
            "https://u@a",
            "ftp://a",
        ] {
            assert!(origin(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rates_setting_parses_every_source() {
        assert_eq!(rates("sandbox"), Ok(RatesChoice::Sandbox));
        assert_eq!(
            rates("static:r.toml"),
            Ok(RatesChoice::Static("r.toml".into()))
        );
        assert_eq!(rates("http:r.toml"), Ok(RatesChoice::Http("r.toml".into())));
        for bad in ["", "static:", "static", "http:", "Sandbox", "sandbox:"] {
            assert_eq!(rates(bad), Err(InvalidSetting::Form), "{bad}");
        }
    }

    // rule: config.engine-http, config.rail-http, config.verifier-http
    #[test]
    fn upstream_setting_parses_every_upstream() {
        let url = UpstreamUrl::parse("https://desk.example/desk").unwrap();
        let read = upstream("http:https://desk.example/desk");
        assert_eq!(read, Ok(UpstreamChoice::Http(url)));
        assert_eq!(upstream("none"), Ok(UpstreamChoice::None));
        assert_eq!(upstream("sandbox"), Ok(UpstreamChoice::Sandbox));
        for bad in [
            "",
            "http",
            "http:",
            "http:desk:9000",
            "http:ftp://e",
            "Sandbox",
        ] {
            assert_eq!(upstream(bad), Err(InvalidSetting::Form), "{bad}");
        }
        for secret in [
            "http:http://user:hunter2@e",
            "https://user:hunter2@e",
            "http:https://e?token=hunter2",
        ] {
            assert_eq!(upstream(secret), Err(InvalidSetting::Credentials));
        }
    }
}
