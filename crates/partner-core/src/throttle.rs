//! Throttles: fixed windows, each opened by the first request in it.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// One limit: so many requests in a window of this length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tier {
    /// The name in the headers: `short`, `medium`, `long`.
    pub name: &'static str,
    /// Requests admitted in one window.
    pub limit: u32,
    /// The window's length.
    pub per: Duration,
}

/// The longest span that a setting may have.
pub const LONGEST_SPAN: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

impl Tier {
    /// Reads a limit such as `10/60s`: a count above zero, and a window in ms, s, m or h.
    #[must_use]
    pub fn parse(name: &'static str, text: &str) -> Option<Self> {
        let (count, per) = text.split_once('/')?;
        let limit = Some(count)
            .filter(|count| is_digits(count))
            .and_then(|count| count.parse().ok())
            .filter(|limit| *limit > 0)?;
        let per = parse_span(per).filter(|per| !per.is_zero())?;
        Some(Self { name, limit, per })
    }
}

/// As [`Tier::parse`] reads it, with the window in the largest unit that fits.
impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.per.as_millis();
        let (unit, size) = UNITS
            .into_iter()
            .rev()
            .find(|(_, size)| millis.is_multiple_of(u128::from(*size)))
            .unwrap_or(("ms", 1));
        let count = millis.checked_div(size.into()).unwrap_or(millis);
        write!(f, "{}/{count}{unit}", self.limit)
    }
}

const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// Reads a span such as `60s`, in ms, s, m or h.
#[must_use]
pub fn parse_span(text: &str) -> Option<Duration> {
    let (digits, millis) = UNITS.into_iter().find_map(|(unit, millis)| {
        let digits = text.strip_suffix(unit).filter(|digits| is_digits(digits))?;
        Some((digits, millis))
    })?;
    let count: u64 = digits.parse().ok()?;
    let span = Duration::from_millis(count.checked_mul(millis)?);
    (span <= LONGEST_SPAN).then_some(span)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The clients that every limit by address counts as one: an IPv4 address, or an IPv6 /64.
///
/// One IPv6 customer is given a /64 or more, so a single address says nothing about who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientNetwork(IpAddr);

impl ClientNetwork {
    /// The network of an address. An IPv4 address written as IPv6 (`::ffff:192.0.2.1`) is IPv4.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
        })
    }
}

impl fmt::Display for ClientNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => write!(f, "{address}"),
            IpAddr::V6(network) => write!(f, "{network}/64"),
        }
    }
}

/// Whose requests a bucket counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Counted {
    /// The requests of one API key, by the key's id.
    Credential(String),
    /// The requests of one client network.
    Network(ClientNetwork),
    /// The requests of one client network with one API key, by the key's id.
    CredentialFrom(String, ClientNetwork),
}

impl Counted {
    /// Whether strangers choose how many buckets there are: networks are many, keys are few.
    #[must_use]
    pub const fn is_by_network(&self) -> bool {
        match self {
            Self::Credential(_) => false,
            Self::Network(_) | Self::CredentialFrom(..) => true,
        }
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Credential(key) => f.write_str(key),
            Self::Network(network) => write!(f, "{network}"),
            Self::CredentialFrom(key, network) => write!(f, "{key} {network}"),
        }
    }
}

/// One row of counters: a caller on one route or group of routes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// The route or group of routes, such as `pools`.
    pub group: &'static str,
    /// Whose requests it counts.
    pub who: Counted,
}

/// Where a bucket stands in one tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierStatus {
    /// The tier's name.
    pub tier: &'static str,
    /// Its limit.
    pub limit: u32,
    /// Requests still admitted in the present window.
    pub remaining: u32,
    /// Until the window closes; the whole window where none is open.
    pub reset: Duration,
    /// Did this tier refuse the request?
    pub exhausted: bool,
}

/// The answer of a throttle: where the bucket stands in each tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThrottleDecision {
    /// One standing per tier, in the order asked.
    pub standings: Vec<TierStatus>,
}

impl ThrottleDecision {
    /// Was the request admitted by every tier?
    #[must_use]
    pub fn admitted(&self) -> bool {
        !self.standings.iter().any(|standing| standing.exhausted)
    }
}

/// Where requests are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountScope {
    /// In this process, which shares with nobody.
    Alone,
    /// Together with the other replicas.
    Shared,
    /// In this process for now, because what the replicas share is away.
    Apart,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tier_reads_back_as_it_is_written() {
        for (text, written) in [
            ("10/60s", "10/1m"),
            ("100/90s", "100/90s"),
            ("1/1500ms", "1/1500ms"),
            ("300/1h", "300/1h"),
        ] {
            let tier = Tier::parse("short", text).unwrap();
            assert_eq!(tier.to_string(), written);
            assert_eq!(Tier::parse("short", written), Some(tier));
        }
    }

    #[test]
    fn tier_rejects_what_is_no_limit() {
        for bad in [
            "",
            "10",
            "10/",
            "/60s",
            "0/60s",
            "10/0s",
            "-1/60s",
            "+1/60s",
            "10/60",
            "10/60d",
            "10 / 60s",
            "4294967296/1s",
            "1/99999h",
        ] {
            assert_eq!(Tier::parse("short", bad), None, "{bad}");
        }
    }

    fn network(address: &str) -> String {
        ClientNetwork::of(address.parse().unwrap()).to_string()
    }

    // rule: throttle.network
    #[test]
    fn client_network_keeps_64_bits_of_ipv6_and_all_of_ipv4() {
        for (address, expected) in [
            ("203.0.113.9", "203.0.113.9"),
            ("::ffff:203.0.113.9", "203.0.113.9"),
            ("::ffff:cb00:7109", "203.0.113.9"),
            ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
            ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
            ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
            ("::1", "::/64"),
        ] {
            assert_eq!(network(address), expected, "{address}");
        }
    }
}
