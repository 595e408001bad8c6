//! Web origins of a partner's pages.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use kernel::Mode;
use url::{Host, Url};

/// Scheme, host and port of a web page in the spelling of browsers: lower case, the host in punycode, without the
/// scheme's default port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(String);

impl Origin {
    /// Parses an origin as an operator writes it: `https://`, a host that may be Unicode, an optional port, and
    /// nothing after it. In test mode, `http://` is allowed for a loopback host.
    #[must_use]
    pub fn parse(text: &str, mode: Mode) -> Option<Self> {
        let (_, authority) = text.split_once("://")?;
        let odd = |it: char| {
            it.is_control()
                || it.is_whitespace()
                || matches!(it, '/' | '\\' | '?' | '#' | '@' | '*')
        };
        if authority.is_empty() || authority.contains(odd) {
            return None;
        }
        let url = Url::parse(text).ok()?;
        let is_reachable = url.host().is_some_and(is_page_host) && url.port() != Some(0);
        (is_reachable && serves_pages(&url, mode))
            .then(|| Self::of(&url))
            .flatten()
    }

    /// The origin of an http or https URL; `None` for any other URL.
    #[must_use]
    pub fn of(url: &Url) -> Option<Self> {
        let web = matches!(url.scheme(), "https" | "http");
        web.then(|| Self(url.origin().ascii_serialization()))
    }

    /// The origin of pages that this process serves over plain HTTP.
    #[must_use]
    pub fn of_address(address: SocketAddr) -> Self {
        match address.port() {
            80 => Self(format!("http://{}", Bracketed(address.ip()))),
            port => Self(format!("http://{}:{port}", Bracketed(address.ip()))),
        }
    }

    /// A stored origin: the text of [`Origin::as_str`]. `None` for any other spelling.
    #[must_use]
    pub fn stored(text: &str) -> Option<Self> {
        let origin = Self::of(&Url::parse(text).ok()?)?;
        (origin.0 == text).then_some(origin)
    }

    /// Whether an entry of a partner's `allowed_domains` allows the origin.
    #[must_use]
    pub fn is_among(&self, allowed: &BTreeSet<AllowedDomain>) -> bool {
        let any_port = || format!("{}{ANY_PORT}", self.without_port());
        allowed.contains(self.as_str()) || allowed.contains(any_port().as_str())
    }

    /// Whether a content security policy can name the origin as a source. It cannot name an IPv6 address, and a host with other
    /// characters than those of names could end the source list.
    #[must_use]
    pub fn is_policy_source(&self) -> bool {
        let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_' | ':');
        self.0
            .split_once("://")
            .is_some_and(|(_, place)| !place.is_empty() && place.chars().all(plain))
    }

    /// The scheme and the host.
    fn without_port(&self) -> &str {
        match self.0.rsplit_once(':') {
            Some((place, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => place,
            Some(_) | None => &self.0,
        }
    }

    /// The text that a browser sends in `Origin`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The end of an entry that allows every port of its host.
const ANY_PORT: &str = ":*";

/// An entry of a partner's `allowed_domains`: one origin, or in mode test every port of a loopback host, such as
/// `http://localhost:*`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllowedDomain(String);

impl AllowedDomain {
    /// Parses an entry as an operator writes it: an origin as of [`Origin::parse`], or in mode test a loopback host with the
    /// port `*`.
    #[must_use]
    pub fn parse(text: &str, mode: Mode) -> Option<Self> {
        match (text.strip_suffix(ANY_PORT), mode) {
            (Some(place), Mode::Test) => {
                Self::of_any_port(&Origin::parse(&with_some_port(place), mode)?)
            }
            (Some(_), Mode::Live) => None,
            (None, _) => Origin::parse(text, mode).map(Self::from),
        }
    }

    /// A stored entry: the text of [`AllowedDomain::as_str`]. `None` for any other spelling.
    #[must_use]
    pub fn stored(text: &str) -> Option<Self> {
        match text.strip_suffix(ANY_PORT) {
            Some(place) => Self::of_any_port(&Origin::stored(&with_some_port(place))?),
            None => Origin::stored(text).map(Self::from),
        }
    }

    /// Every port of the origin's host; `None` unless that is a loopback host.
    fn of_any_port(origin: &Origin) -> Option<Self> {
        let url = Url::parse(origin.as_str()).ok()?;
        let any_port = || Self(format!("{}{ANY_PORT}", origin.without_port()));
        url.host().is_some_and(is_loopback).then(any_port)
    }

    /// Whether a content security policy can name the entry as a source, as of [`Origin::is_policy_source`].
    #[must_use]
    pub fn is_policy_source(&self) -> bool {
        let place = self.0.strip_suffix(ANY_PORT).unwrap_or(&self.0);
        Origin(place.to_owned()).is_policy_source()
    }

    /// The text that is stored. A content security policy names the same origins by it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An origin with a port that no scheme has by default. A text that has a port already becomes invalid.
fn with_some_port(place: &str) -> String {
    format!("{place}:1")
}

impl From<Origin> for AllowedDomain {
    fn from(origin: Origin) -> Self {
        Self(origin.0)
    }
}

impl Borrow<str> for AllowedDomain {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AllowedDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

kernel::debug_as_display!(AllowedDomain);

/// Whether a URL may serve pages of a partner: `https`, or in test mode `http` on a loopback host.
#[must_use]
pub fn serves_pages(url: &Url, mode: Mode) -> bool {
    match (url.scheme(), mode) {
        ("https", _) => url.has_host(),
        ("http", Mode::Test) => url.host().is_some_and(is_loopback),
        _ => false,
    }
}

/// An IP address in the form of URLs.
struct Bracketed(IpAddr);

impl fmt::Display for Bracketed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => write!(f, "{address}"),
            IpAddr::V6(address) => write!(f, "[{address}]"),
        }
    }
}

/// The longest name of a host and the longest label of a name, in characters. DNS carries no longer ones.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// Whether a page can have a host: an address of one machine, or a name. A name has labels of letters, digits, `-` and `_`, none of
/// them empty.
fn is_page_host(host: Host<&str>) -> bool {
    let name = match host {
        Host::Ipv4(address) => return is_one_machine(IpAddr::V4(address)),
        Host::Ipv6(address) => return is_one_machine(address.to_canonical()),
        Host::Domain(name) => name.strip_suffix('.').unwrap_or(name),
    };
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let fits = |label: &str| (1..=MAX_LABEL).contains(&label.len());
    name.len() <= MAX_NAME
        && name
            .split('.')
            .all(|label| fits(label) && label.bytes().all(letter))
}

fn is_one_machine(address: IpAddr) -> bool {
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(address.is_unspecified() || address.is_multicast() || is_broadcast)
}

fn is_loopback(host: Host<&str>) -> bool {
    match host {
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
        Host::Domain(name) => is_localhost(name),
    }
}

/// Whether a host name always denotes this machine, without a resolver.
pub(crate) fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

kernel::debug_as_display!(Origin);

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, mode: Mode) -> Option<String> {
        Origin::parse(text, mode).map(|origin| origin.to_string())
    }

    // rule: gate.origin.punycode, gate.origin.default-port
    #[test]
    fn origin_has_spelling_of_browsers() {
        for (written, kept) in [
            ("https://shop.example", "https://shop.example"),
            ("HTTPS://Shop.Example:443", "https://shop.example"),
            ("https://shop.example:8443", "https://shop.example:8443"),
            ("https://bücher.example", "https://xn--bcher-kva.example"),
            (
                "https://xn--bcher-kva.example",
                "https://xn--bcher-kva.example",
            ),
            ("https://shop.example.", "https://shop.example."),
            ("http://localhost:3000", "http://localhost:3000"),
            ("http://[::1]:80", "http://[::1]"),
            ("https://192.0.2.1:8443", "https://192.0.2.1:8443"),
        ] {
            assert_eq!(read(written, Mode::Test).as_deref(), Some(kept));
            let origin = Origin::stored(kept).unwrap();
            assert_eq!(origin.as_str(), kept);
        }
    }

    // rule: gate.origin.https
    #[test]
    fn malformed_origin_is_refused() {
        for bad in [
            "",
            "shop.example",
            "https://",
            "https://shop.example/",
            "https://shop.example/path",
            "https://shop.example?x",
            "https://shop.example#x",
            "https://user@shop.example",
            "https://shop.example\\",
            "https://*.shop.example",
            "https://.shop.example",
            "https://shop..example",
            "https://shop.example;",
            "https://shop.example,b",
            "https://shop.example:0",
            "https:shop.example",
            "https://shop .example",
            "https://0.0.0.0",
            "https://224.0.0.1:8443",
            "https://255.255.255.255",
            "https://[::]",
            "https://[ff02::1]",
            "https://[::ffff:224.0.0.1]",
            "https://[::ffff:0.0.0.0]",
            &format!("https://{}.example", "a".repeat(64)),
            &format!("https://{}example", "shop.".repeat(50)),
            "null",
            "ftp://shop.example",
            "http://shop.example",
        ] {
            assert_eq!(read(bad, Mode::Test), None, "{bad}");
        }
        assert_eq!(read("http://localhost:3000", Mode::Live), None);
        assert_eq!(read("http://127.0.0.1", Mode::Live), None);
    }

    // rule: gate.origin.any-port
    #[test]
    fn any_port_is_allowed_for_loopback_host_in_mode_test_only() {
        for (written, kept) in [
            ("http://localhost:*", "http://localhost:*"),
            ("http://127.0.0.1:*", "http://127.0.0.1:*"),
            ("http://[::1]:*", "http://[::1]:*"),
            ("https://LOCALHOST:*", "https://localhost:*"),
            ("http://shop.localhost:*", "http://shop.localhost:*"),
            ("https://shop.example:8443", "https://shop.example:8443"),
        ] {
            let entry = AllowedDomain::parse(written, Mode::Test).unwrap();
            assert_eq!(entry.as_str(), kept);
            assert_eq!(AllowedDomain::stored(kept), Some(entry));
        }
        for bad in [
            "https://shop.example:*",
            "https://192.0.2.1:*",
            "http://shop.example:*",
            "http://localhost.evil.example:*",
            "http://*:*",
            "http://localhost:3000:*",
            "http://localhost:80:*",
            "http://[::1]:80:*",
            "http://localhost:**",
            "http://localhost:*/",
            "localhost:*",
            ":*",
        ] {
            assert_eq!(AllowedDomain::parse(bad, Mode::Test), None, "{bad}");
            assert_eq!(AllowedDomain::stored(bad), None, "{bad}");
        }
        for text in ["http://localhost:*", "https://localhost:*"] {
            assert_eq!(AllowedDomain::parse(text, Mode::Live), None, "{text}");
        }
        assert_eq!(AllowedDomain::parse("http://localhost*", Mode::Test), None);
        assert_eq!(AllowedDomain::stored("https://LOCALHOST:*"), None);
        assert_eq!(Origin::stored("http://localhost:*"), None);
    }

    // rule: gate.origin.any-port, gate.origin.allowed
    #[test]
    fn entry_allows_its_origin_or_every_port_of_its_host() {
        let allowed: BTreeSet<AllowedDomain> = [
            "https://shop.example",
            "http://127.0.0.1:*",
            "http://[::1]:*",
        ]
        .into_iter()
        .filter_map(AllowedDomain::stored)
        .collect();
        assert_eq!(allowed.len(), 3);
        let is_among = |text: &str| Origin::stored(text).unwrap().is_among(&allowed);
        for good in [
            "https://shop.example",
            "http://127.0.0.1",
            "http://127.0.0.1:1",
            "http://127.0.0.1:49300",
            "http://[::1]",
            "http://[::1]:5173",
        ] {
            assert!(is_among(good), "{good}");
        }
        for other in [
            "https://shop.example:8443",
            "http://shop.example",
            "https://127.0.0.1:49300",
            "http://127.0.0.2:49300",
            "http://localhost:49300",
            "http://[::2]:5173",
        ] {
            assert!(!is_among(other), "{other}");
        }
    }

    #[test]
    fn policy_can_name_every_port_of_host_but_of_no_ipv6_address() {
        for (text, named) in [
            ("http://localhost:*", true),
            ("http://127.0.0.1:*", true),
            ("https://shop.example", true),
            ("http://[::1]:*", false),
        ] {
            let entry = AllowedDomain::stored(text).unwrap();
            assert_eq!(entry.is_policy_source(), named, "{text}");
        }
    }

    // rule: gate.origin.default-port
    #[test]
    fn origin_of_ip_address_has_spelling_of_browsers() {
        for (address, origin) in [
            ("127.0.0.1:4020", "http://127.0.0.1:4020"),
            ("127.0.0.1:80", "http://127.0.0.1"),
            ("[::1]:4020", "http://[::1]:4020"),
        ] {
            let found = Origin::of_address(address.parse().unwrap());
            assert_eq!(found.as_str(), origin);
            assert_eq!(Origin::stored(origin), Some(found));
        }
    }

    #[test]
    fn policy_source_has_only_characters_of_host_names() {
        for (text, named) in [
            ("https://shop.example", true),
            ("https://shop.example.", true),
            ("https://xn--bcher-kva.example:8443", true),
            ("http://127.0.0.1:3000", true),
            ("https://a_b.example", true),
            ("http://[::1]:3000", false),
            ("https://shop.example;script-src", false),
            ("https://shop.example,b", false),
            ("https://shop.example'", false),
            ("https://shop.example\"", false),
        ] {
            let origin = Origin::of(&Url::parse(text).unwrap()).unwrap();
            assert_eq!(origin.is_policy_source(), named, "{text}");
        }
    }

    #[test]
    fn stored_origin_requires_canonical_spelling() {
        for other in [
            "https://Shop.example",
            "https://shop.example/",
            "https://shop.example:443",
            "null",
            "",
        ] {
            assert_eq!(Origin::stored(other), None, "{other}");
        }
    }
}
