//! Throttles with fixed windows. The first request opens a window.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// One limit: a number of requests per window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tier {
    /// The name in the headers: `short`, `medium`, `long`.
    pub name: &'static str,
    /// Maximum requests admitted in one window.
    pub limit: u32,
    /// The length of the window.
    pub per: Duration,
}

/// Maximum span of a setting.
pub const LONGEST_SPAN: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

impl Tier {
    /// Parses a limit such as `10/60s`: a count above zero, and a window in ms, s, m or h.
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

/// The form that [`Tier::parse`] reads, with the window in the largest unit that fits.
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

/// Parses a span such as `60s`, in ms, s, m or h.
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

/// The clients that every limit by address counts together: an IPv4 address, or an IPv6 /64.
///
/// An IPv6 customer has a /64 or more, so a single address does not identify a client.
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

/// The requests that a bucket counts together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Counted {
    /// The requests of one API key, by the key's id.
    Credential(String),
    /// The requests of one client network.
    Network(ClientNetwork),
    /// The requests of one client network with one API key or token, or with the tokens of one session, by the id of that.
    CredentialFrom(String, ClientNetwork),
}

impl Counted {
    /// Whether callers determine the number of such buckets: the number of networks is unbounded, the number of keys
    /// is not.
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

/// The counters of one caller on one route or group of routes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// The route or group of routes, such as `pools`.
    pub group: &'static str,
    /// The requests that it counts.
    pub who: Counted,
}

/// The status of a bucket in one tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierStatus {
    /// The tier's name.
    pub tier: &'static str,
    pub limit: u32,
    /// Requests that the current window still admits.
    pub remaining: u32,
    /// Time until the window closes; the full window if none is open.
    pub reset: Duration,
    /// Whether this tier refused the request.
    pub exhausted: bool,
}

/// The decision of a throttle, with the bucket's status in each tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThrottleDecision {
    /// One status per tier, in the order of the request.
    pub statuses: Vec<TierStatus>,
}

impl ThrottleDecision {
    /// Whether every tier admitted the request.
    #[must_use]
    pub fn admitted(&self) -> bool {
        !self.statuses.iter().any(|status| status.exhausted)
    }
}

/// Where requests are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountScope {
    /// In this process only.
    Alone,
    /// Together with the other replicas.
    Shared,
    /// Temporarily in this process, because the shared counters are unavailable.
    Apart,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tier_parses_its_own_text() {
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
    fn malformed_tier_is_refused() {
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
