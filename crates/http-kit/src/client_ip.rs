//! Determines the client's address, through trusted proxies.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::http::HeaderMap;
use ipnet::IpNet;

/// The remote address of the connection, which the listener adds to the request's extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// The proxies whose `X-Forwarded-For` is trusted. Empty by default: any client can write this
/// header, so the client's address is then the peer's.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Arc<[IpNet]>);

impl TrustedProxies {
    /// Trusts these networks.
    #[must_use]
    pub fn new(networks: impl IntoIterator<Item = IpNet>) -> Self {
        Self(networks.into_iter().collect())
    }

    /// The client's address.
    ///
    /// It is the peer's address. If the peer is a trusted proxy, it is the right-most entry of
    /// `X-Forwarded-For` that is not a trusted proxy. Reading stops at the first entry that is not
    /// an address, because an untrusted party wrote all entries to its left.
    #[must_use]
    pub fn client_of(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if self.0.is_empty() || !self.trusts(client) {
            return client;
        }
        for value in headers.get_all("x-forwarded-for").iter().rev() {
            let Ok(list) = value.to_str() else {
                return client;
            };
            for entry in list.rsplit(',') {
                let Some(address) = read_address(entry.trim()) else {
                    return client;
                };
                client = address;
                if !self.trusts(client) {
                    return client;
                }
            }
        }
        client
    }

    /// Whether an address belongs to a trusted proxy.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// Parses an address with or without a port, IPv6 with or without brackets.
fn read_address(entry: &str) -> Option<IpAddr> {
    let address = entry
        .parse::<IpAddr>()
        .or_else(|_| entry.parse::<SocketAddr>().map(|with_port| with_port.ip()))
        .ok()
        .or_else(|| entry.strip_prefix('[')?.strip_suffix(']')?.parse().ok())?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(proxies: &[&str], peer: &str, forwarded: &[&str]) -> String {
        let proxies = TrustedProxies::new(proxies.iter().map(|net| net.parse().unwrap()));
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        proxies
            .client_of(peer.parse().unwrap(), &headers)
            .to_string()
    }

    #[test]
    fn trusts_no_proxy_by_default() {
        assert_eq!(client(&[], "203.0.113.9", &["198.51.100.1"]), "203.0.113.9");
        assert_eq!(
            client(&["10.0.0.0/8"], "203.0.113.9", &["198.51.100.1"]),
            "203.0.113.9"
        );
        assert_eq!(client(&[], "::ffff:203.0.113.9", &[]), "203.0.113.9");
    }

    #[test]
    fn takes_right_most_untrusted_address() {
        let proxies = ["10.0.0.0/8", "2001:db8::/32"];
        for (peer, forwarded, expected) in [
            ("10.0.0.1", vec!["198.51.100.1"], "198.51.100.1"),
            (
                "10.0.0.1",
                vec!["1.1.1.1, 198.51.100.1, 10.2.3.4"],
                "198.51.100.1",
            ),
            (
                "10.0.0.1",
                vec!["1.1.1.1", "198.51.100.1,10.2.3.4"],
                "198.51.100.1",
            ),
            (
                "2001:db8::1",
                vec!["[2001:4860::8]:443, 10.1.1.1:80"],
                "2001:4860::8",
            ),
            (
                "::ffff:10.0.0.1",
                vec!["::ffff:198.51.100.1"],
                "198.51.100.1",
            ),
            ("10.0.0.1", vec![], "10.0.0.1"),
            ("10.0.0.1", vec!["10.0.0.7, 10.0.0.6"], "10.0.0.7"),
            ("10.0.0.1", vec!["1.1.1.1, junk, 10.0.0.6"], "10.0.0.6"),
            ("10.0.0.1", vec!["1.1.1.1, "], "10.0.0.1"),
            ("10.0.0.1", vec!["[2001:4860::8]"], "2001:4860::8"),
        ] {
            assert_eq!(
                client(&proxies, peer, &forwarded),
                expected,
                "{forwarded:?}"
            );
        }
    }
}
