//! The addresses that webhooks may reach.
//!
//! The rule applies twice: when an operator sets an endpoint, to a literal address, and when a
//! delivery connects, to each address that the name resolves to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use kernel::Mode;
use url::{Host, Position, Url};

use crate::origin::is_localhost;

kernel::closed_list! {
    /// Which addresses outside the public internet webhooks may reach.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum AllowPrivate {
        /// None: the default in live mode.
        None = "none",
        /// Loopback addresses: the default in test mode.
        Loopback = "loopback",
        /// Every address.
        All = "all",
    }
}

/// The kind of the network because of which an address is refused. `None`: webhooks may reach it.
#[must_use]
pub fn forbidden_kind(address: IpAddr, allow: AllowPrivate) -> Option<&'static str> {
    let kind = kind_of(address)?;
    match (allow, kind) {
        (AllowPrivate::All, _) | (AllowPrivate::Loopback, LOOPBACK) => None,
        (AllowPrivate::None | AllowPrivate::Loopback, _) => Some(kind),
    }
}

/// The URL of an endpoint, with a checked scheme, host and port. [`forbidden_kind`] checks the addresses that
/// its name resolves to when a delivery connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target(Url);

/// The longest URL of an endpoint.
const MAX_URL_LENGTH: usize = 2048;

/// Ports of protocols other than HTTP: name service, shells, mail, databases, caches. Such a server
/// might read a request as commands.
const OTHER_PROTOCOLS: [u16; 14] = [
    22, 23, 25, 53, 110, 143, 465, 587, 3306, 5432, 6379, 9042, 11211, 27017,
];

impl Target {
    /// Checks the URL of an endpoint.
    ///
    /// # Errors
    /// The error says what was expected. It contains no part of the URL, which may carry credentials.
    pub fn parse(text: &str, mode: Mode, allow: AllowPrivate) -> Result<Self, String> {
        let clean =
            text.len() <= MAX_URL_LENGTH && text.chars().all(|it| !it.is_control() && it != ' ');
        let Some(url) = Url::parse(text).ok().filter(|_| clean) else {
            return Err("expected a URL such as \"https://partner.example/webhooks\"".to_owned());
        };
        match (url.scheme(), mode) {
            ("https", _) | ("http", Mode::Test) => {}
            ("http", Mode::Live) => return Err("expected an https URL in live mode".to_owned()),
            _ => return Err("expected an http or https URL".to_owned()),
        }
        let target = Self(url);
        if !target.0.username().is_empty() || target.0.password().is_some() {
            return Err("expected a URL without a user name and password".to_owned());
        }
        match target.forbidden_kind_of_url(allow) {
            None => Ok(target),
            Some(kind) => Err(format!(
                "expected an address webhooks may reach; this one is {kind} (see PENSTOCK_WEBHOOK_ALLOW_PRIVATE)"
            )),
        }
    }

    fn forbidden_kind_of_url(&self, allow: AllowPrivate) -> Option<&'static str> {
        let other = allow != AllowPrivate::All && OTHER_PROTOCOLS.contains(&self.port());
        let kind = match self.host() {
            Host::Ipv4(address) => forbidden_kind(address.into(), allow),
            Host::Ipv6(address) => forbidden_kind(address.into(), allow),
            Host::Domain(name) => {
                (is_localhost(name) && allow == AllowPrivate::None).then_some(LOOPBACK)
            }
        };
        kind.or_else(|| other.then_some("a port of another protocol"))
    }

    /// Whether the connection uses TLS.
    #[must_use]
    pub fn tls(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// A name to resolve, or a literal address in any notation.
    #[must_use]
    pub fn host(&self) -> Host<&str> {
        self.0.host().unwrap_or(Host::Domain(""))
    }

    /// The port, or the scheme's default.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or(443)
    }

    /// The value of the `Host` header: the host, and the port if it is not the scheme's default.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.0.authority()
    }

    #[must_use]
    pub fn path_and_query(&self) -> &str {
        &self.0[Position::BeforePath..Position::AfterQuery]
    }
}

const LOOPBACK: &str = "loopback";
const RESERVED: &str = "reserved";

/// The networks that webhooks may not reach, each with its kind: the special-purpose ranges that are
/// not globally reachable, and one virtual address at which a large cloud serves machine metadata.
/// `None` exempts a network from a wider one. The longest prefix that contains an address decides.
const NETWORKS: [(IpNet, Option<&str>); 27] = [
    (v4([0, 0, 0, 0], 8), Some(RESERVED)),
    (v4([10, 0, 0, 0], 8), Some("private")),
    (v4([100, 64, 0, 0], 10), Some("shared (carrier-grade NAT)")),
    (v4([127, 0, 0, 0], 8), Some(LOOPBACK)),
    (v4([168, 63, 129, 16], 32), Some("a metadata service")),
    (v4([169, 254, 0, 0], 16), Some("link-local")),
    (v4([172, 16, 0, 0], 12), Some("private")),
    (v4([192, 0, 0, 0], 24), Some(RESERVED)),
    (v4([192, 0, 2, 0], 24), Some("for documentation")),
    (v4([192, 88, 99, 0], 24), Some(RESERVED)),
    (v4([192, 168, 0, 0], 16), Some("private")),
    (v4([198, 18, 0, 0], 15), Some("for benchmarks")),
    (v4([198, 51, 100, 0], 24), Some("for documentation")),
    (v4([203, 0, 113, 0], 24), Some("for documentation")),
    (v4([224, 0, 0, 0], 4), Some("multicast")),
    (v4([240, 0, 0, 0], 4), Some(RESERVED)),
    // Only global unicast is the public internet.
    (v6([0, 0, 0], 0), Some(RESERVED)),
    (v6([0x2000, 0, 0], 3), None),
    (v6([0x2001, 0, 0], 23), Some(RESERVED)),
    (v6([0x2001, 0xdb8, 0], 32), Some("for documentation")),
    (v6([0x2002, 0, 0], 16), Some(RESERVED)),
    (v6([0x3ffe, 0, 0], 16), Some(RESERVED)),
    (v6([0x3fff, 0, 0], 20), Some("for documentation")),
    (v6([0xfc00, 0, 0], 7), Some("private")),
    (v6([0xfe80, 0, 0], 10), Some("link-local")),
    (v6([0xff00, 0, 0], 8), Some("multicast")),
    (LOCALHOST_V6, Some(LOOPBACK)),
];

const LOCALHOST_V6: IpNet = network(IpAddr::V6(Ipv6Addr::LOCALHOST), 128);
/// Prefixes of 96 bits. Their addresses contain an IPv4 address, which decides.
const IPV4_COMPATIBLE: IpNet = network(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 96);
const IPV4_MAPPED: IpNet = network(IpAddr::V6(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0)), 96);
const NAT64: IpNet = v6([0x64, 0xff9b, 0], 96);

const fn v4(octets: [u8; 4], length: u8) -> IpNet {
    let [a, b, c, d] = octets;
    network(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), length)
}

const fn v6(segments: [u16; 3], length: u8) -> IpNet {
    let [a, b, c] = segments;
    network(IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), length)
}

const fn network(address: IpAddr, length: u8) -> IpNet {
    IpNet::new_assert(address, length)
}

fn kind_of(address: IpAddr) -> Option<&'static str> {
    let address = embedded_v4(address).unwrap_or(address);
    let within = NETWORKS
        .iter()
        .filter(|(network, _)| network.contains(&address));
    let longest = within.max_by_key(|(network, _)| network.prefix_len())?;
    longest.1
}

/// The IPv4 address that an IPv6 address contains. `::1` contains none: it is the loopback address.
fn embedded_v4(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(v6) = address else { return None };
    let embeds = [IPV4_COMPATIBLE, IPV4_MAPPED, NAT64]
        .iter()
        .any(|network| network.contains(&address));
    if !embeds || v6 == Ipv6Addr::LOCALHOST {
        return None;
    }
    let [.., a, b, c, d] = v6.octets();
    Some(Ipv4Addr::new(a, b, c, d).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Option<&'static str> {
        forbidden_kind(text.parse().unwrap(), AllowPrivate::None)
    }

    #[test]
    fn only_public_addresses_are_reachable() {
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
    fn loopback_is_reachable_when_allowed() {
        for (text, reachable) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("0.0.0.0", false),
            ("10.0.0.1", false),
        ] {
            let address = text.parse().unwrap();
            assert_eq!(
                forbidden_kind(address, AllowPrivate::Loopback).is_none(),
                reachable,
                "{text}"
            );
            assert_eq!(forbidden_kind(address, AllowPrivate::All), None, "{text}");
        }
    }

    // rule: apply.webhook-url, webhook.https-only
    #[test]
    fn url_is_refused_for_its_scheme_host_user_or_port() {
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
            "file:///etc/passwd",
            "gopher://partner.example/",
            "https://",
            "https://a b/",
            "https://user@partner.example/",
            "https://:pass@partner.example/",
        ] {
            assert!(live(bad).unwrap().starts_with("expected"), "{bad}");
        }
        for port in [22, 25, 5432, 6379] {
            let url = format!("https://partner.example:{port}/");
            assert!(live(&url).unwrap().contains("another protocol"), "{url}");
            assert_eq!(
                Target::parse(&url, Mode::Live, AllowPrivate::All).err(),
                None
            );
        }
    }

    // rule: apply.webhook-url, webhook.forbidden-targets
    #[test]
    fn private_address_is_refused_in_any_notation() {
        for hidden in [
            "https://127.1/",
            "https://0x7f000001/",
            "https://0x7f.1/",
            "https://2130706433/",
            "https://017700000001/",
            "https://0177.0.0.1/",
            "https://127.0.0.1./",
            "https://LOCALHOST./",
            "https://a.localhost/",
            "https://[::ffff:7f00:1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://%31%32%37.0.0.1/",
            "https://127。0。0。1/",
            "https://①②⑦.0.0.1/",
            "https://169.254.169.254/latest/meta-data",
            "https://[fd00:ec2::254]/",
        ] {
            assert!(
                live(hidden).unwrap().contains("webhooks may reach"),
                "{hidden}"
            );
        }
    }

    #[test]
    fn target_has_host_port_authority_and_path() {
        let parse = |text: &str| Target::parse(text, Mode::Test, AllowPrivate::Loopback).unwrap();
        let plain = parse("http://Partner.Example./a%20b?c=d#e");
        assert!(!plain.tls());
        assert_eq!(plain.host(), Host::Domain("partner.example."));
        assert_eq!((plain.port(), plain.authority()), (80, "partner.example."));
        assert_eq!(plain.path_and_query(), "/a%20b?c=d");
        let literal = parse("https://[::1]:8443");
        assert!(literal.tls());
        assert_eq!(literal.host(), Host::<&str>::Ipv6(Ipv6Addr::LOCALHOST));
        assert_eq!((literal.port(), literal.authority()), (8443, "[::1]:8443"));
        assert_eq!(literal.path_and_query(), "/");
    }

    fn live(text: &str) -> Option<String> {
        Target::parse(text, Mode::Live, AllowPrivate::None).err()
    }

    fn test(text: &str) -> Option<String> {
        Target::parse(text, Mode::Test, AllowPrivate::Loopback).err()
    }
}
