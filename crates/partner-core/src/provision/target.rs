//! Where webhooks may go.
//!
//! The rule is used twice: when an endpoint is set, for addresses written literally, and when a
//! delivery connects, for the address a name has resolved to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use kernel::Mode;
use url::{Host, Url};

/// Which addresses that are not of the public internet webhooks may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowPrivate {
    /// None: the default in live mode.
    None,
    /// This machine: the default in test mode.
    Loopback,
    /// Every address.
    All,
}

impl AllowPrivate {
    /// What holds where the operator has not decided.
    #[must_use]
    pub const fn default_in(mode: Mode) -> Self {
        match mode {
            Mode::Test => Self::Loopback,
            Mode::Live => Self::None,
        }
    }

    /// Reads `none`, `loopback` or `all`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "none" => Some(Self::None),
            "loopback" => Some(Self::Loopback),
            "all" => Some(Self::All),
            _ => None,
        }
    }
}

/// Why an address is refused: the kind of range it lies in. `None`: it may be reached.
#[must_use]
pub fn refusal(address: IpAddr, allow: AllowPrivate) -> Option<&'static str> {
    let kind = match address {
        IpAddr::V4(v4) => kind_of_v4(v4),
        IpAddr::V6(v6) => kind_of_v6(v6),
    }?;
    match (allow, kind) {
        (AllowPrivate::All, _) | (AllowPrivate::Loopback, LOOPBACK) => None,
        (AllowPrivate::None | AllowPrivate::Loopback, _) => Some(kind),
    }
}

/// The longest URL of an endpoint.
const LONGEST: usize = 2048;

/// Judges the URL of an endpoint as written: the problem, or `None` where it may be used.
#[must_use]
pub fn url_fault(text: &str, mode: Mode, allow: AllowPrivate) -> Option<String> {
    let clean = text.len() <= LONGEST && text.chars().all(|it| !it.is_control() && it != ' ');
    let Some(url) = Url::parse(text).ok().filter(|_| clean) else {
        return Some("expected a URL such as \"https://partner.example/webhooks\"".to_owned());
    };
    match (url.scheme(), mode) {
        ("https", _) | ("http", Mode::Test) => {}
        ("http", Mode::Live) => return Some("expected an https URL in live mode".to_owned()),
        _ => return Some("expected an http or https URL".to_owned()),
    }
    let kind = match url.host()? {
        Host::Ipv4(address) => refusal(address.into(), allow),
        Host::Ipv6(address) => refusal(address.into(), allow),
        Host::Domain(name) => {
            (is_localhost(name) && allow == AllowPrivate::None).then_some(LOOPBACK)
        }
    }?;
    Some(format!(
        "expected an address webhooks may reach; this one is {kind} (see PENSTOCK_WEBHOOK_ALLOW_PRIVATE)"
    ))
}

/// Names that mean this machine whatever a resolver says.
fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

const LOOPBACK: &str = "loopback";
const RESERVED: &str = "reserved";

/// The special-purpose ranges of IPv4 that are not globally reachable, and one virtual address
/// that a large cloud serves machine metadata from.
const V4: [([u8; 4], u32, &str); 16] = [
    ([0, 0, 0, 0], 8, RESERVED),
    ([10, 0, 0, 0], 8, "private"),
    ([100, 64, 0, 0], 10, "shared (carrier-grade NAT)"),
    ([127, 0, 0, 0], 8, LOOPBACK),
    ([168, 63, 129, 16], 32, "a metadata service"),
    ([169, 254, 0, 0], 16, "link-local"),
    ([172, 16, 0, 0], 12, "private"),
    ([192, 0, 0, 0], 24, RESERVED),
    ([192, 0, 2, 0], 24, "for documentation"),
    ([192, 88, 99, 0], 24, RESERVED),
    ([192, 168, 0, 0], 16, "private"),
    ([198, 18, 0, 0], 15, "for benchmarks"),
    ([198, 51, 100, 0], 24, "for documentation"),
    ([203, 0, 113, 0], 24, "for documentation"),
    ([224, 0, 0, 0], 4, "multicast"),
    ([240, 0, 0, 0], 4, RESERVED),
];

fn kind_of_v4(address: Ipv4Addr) -> Option<&'static str> {
    let bits = u32::from(address);
    let within = |(base, length, _): &&([u8; 4], u32, &str)| {
        let mask = u32::MAX.checked_shl(32 - length).unwrap_or_default();
        bits & mask == u32::from_be_bytes(*base)
    };
    V4.iter().find(within).map(|(_, _, kind)| *kind)
}

/// Only global unicast (2000::/3) is the public internet; of it, some ranges are set apart.
/// Addresses that carry an IPv4 address are judged by it.
fn kind_of_v6(address: Ipv6Addr) -> Option<&'static str> {
    let [first, second, ..] = address.segments();
    match (first, second) {
        _ if address == Ipv6Addr::LOCALHOST => Some(LOOPBACK),
        (0, 0) => embedded_v4(address, &[0; 12])
            .or_else(|| embedded_v4(address, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]))
            .map_or(Some(RESERVED), kind_of_v4),
        (0x64, 0xff9b) => embedded_v4(address, &[0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0])
            .map_or(Some(RESERVED), kind_of_v4),
        (0x2001, 0x0db8) => Some("for documentation"),
        (0x2001, 0..=0x01ff) | (0x2002 | 0x3ffe, _) => Some(RESERVED),
        (0x3fff, 0..=0x0fff) => Some("for documentation"),
        (0x2000..=0x3fff, _) => None,
        (0xfc00..=0xfdff, _) => Some("private"),
        (0xfe80..=0xfebf, _) => Some("link-local"),
        (0xff00..=0xffff, _) => Some("multicast"),
        _ => Some(RESERVED),
    }
}

fn embedded_v4(address: Ipv6Addr, prefix: &[u8; 12]) -> Option<Ipv4Addr> {
    let octets = address.octets();
    let rest = octets.strip_prefix(prefix)?;
    let inner: [u8; 4] = rest.try_into().ok()?;
    Some(Ipv4Addr::from(inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Option<&'static str> {
        refusal(text.parse().unwrap(), AllowPrivate::None)
    }

    #[test]
    fn only_the_public_internet_is_reached() {
        for public in [
            "8.8.8.8",
            "172.15.255.255",
            "172.32.0.0",
            "100.128.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
        ] {
            assert_eq!(kind(public), None, "{public}");
        }
        for refused in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "127.8.9.1",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.168.0.1",
            "198.19.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:0:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:0a00:0001::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(kind(refused).is_some(), "{refused}");
        }
    }

    #[test]
    fn loopback_alone_can_be_let_through() {
        for (text, reached) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("0.0.0.0", false),
            ("10.0.0.1", false),
        ] {
            let address = text.parse().unwrap();
            assert_eq!(
                refusal(address, AllowPrivate::Loopback).is_none(),
                reached,
                "{text}"
            );
            assert_eq!(refusal(address, AllowPrivate::All), None, "{text}");
        }
    }

    #[test]
    fn urls_are_judged_by_what_they_mean() {
        let live = |text: &str| url_fault(text, Mode::Live, AllowPrivate::None);
        let test = |text: &str| url_fault(text, Mode::Test, AllowPrivate::Loopback);
        assert_eq!(live("https://partner.example/hooks?a=b"), None);
        assert_eq!(test("http://127.0.0.1:9999/pools"), None);
        assert_eq!(test("http://localhost:9999/pools"), None);
        assert!(
            live("http://partner.example/")
                .unwrap()
                .contains("https URL in live mode")
        );
        for bad in [
            "",
            "partner.example",
            "ftp://partner.example/",
            "https://",
            "https://a b/",
        ] {
            assert!(live(bad).unwrap().starts_with("expected"), "{bad}");
        }
        for hidden in [
            "https://127.1/",
            "https://0x7f000001/",
            "https://2130706433/",
            "https://0177.0.0.1/",
            "https://127.0.0.1./",
            "https://LOCALHOST./",
            "https://a.localhost/",
            "https://[::ffff:7f00:1]/",
            "https://%31%32%37.0.0.1/",
            "https://127。0。0。1/",
            "https://user:pass@10.0.0.1/",
            "https://169.254.169.254/latest/meta-data",
        ] {
            assert!(
                live(hidden).unwrap().contains("webhooks may reach"),
                "{hidden}"
            );
        }
    }
}
