//! Networks of trusted proxies.

use std::net::IpAddr;

use ipnet::IpNet;

use super::value::{InvalidSetting, list};

/// Networks separated by commas.
pub(crate) fn proxies(text: &str) -> Result<Vec<IpNet>, InvalidSetting> {
    list(text).map(proxy).collect()
}

/// A network that a client can have. An IPv4 network in IPv6 is its IPv4 network, because the
/// service compares the addresses of IPv4 clients as IPv4.
fn proxy(text: &str) -> Result<IpNet, InvalidSetting> {
    let alone = || text.parse::<IpAddr>().map(IpNet::from);
    let written: IpNet = text
        .parse()
        .or_else(|_| alone())
        .map_err(|_| InvalidSetting::Form)?;
    let network = unmapped(written).ok_or_else(|| {
        InvalidSetting::Because(format!(
            "{text} is no network of IPv4 addresses in IPv6: its prefix is from 96 to 128"
        ))
    })?;
    let (address, first) = (network.addr(), network.network());
    if address != first {
        return Err(InvalidSetting::Because(format!(
            "{text} has bits beyond its prefix: write {} for the network, or {address} for one proxy",
            network.trunc()
        )));
    }
    if address.is_unspecified() && network.prefix_len() == network.max_prefix_len() {
        return Err(InvalidSetting::Because(format!(
            "no client has the address {text}: name the proxy's own address or network"
        )));
    }
    Ok(network)
}

/// The IPv4 network of a network of mapped addresses; `None` if it has other addresses too.
fn unmapped(network: IpNet) -> Option<IpNet> {
    let IpNet::V6(v6) = network else {
        return Some(network);
    };
    let Some(v4) = v6.addr().to_ipv4_mapped() else {
        return Some(network);
    };
    let prefix = v6.prefix_len().checked_sub(96)?;
    IpNet::new(v4.into(), prefix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: config.proxies
    #[test]
    fn networks_parse_as_clients_have_them() {
        let read = proxies("10.0.0.0/8, 192.0.2.1,2001:db8::/32").unwrap();
        let shown: Vec<String> = read.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["10.0.0.0/8", "192.0.2.1/32", "2001:db8::/32"]);
        let mapped = proxies("::ffff:10.0.0.0/104,::ffff:192.0.2.1,::ffff:0:0/96").unwrap();
        let shown: Vec<String> = mapped.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["10.0.0.0/8", "192.0.2.1/32", "0.0.0.0/0"]);
        assert_eq!(proxies("::/0").unwrap().len(), 1);
        for bad in [
            "10.0.0.0/33",
            "proxy.example",
            "::ffff:10.0.0.0/95",
            "10.0.0.5/8",
            "::ffff:10.0.0.5/104",
            "2001:db8::1/32",
            "0.0.0.0",
            "::ffff:0.0.0.0",
            "::",
        ] {
            assert!(proxies(bad).is_err(), "{bad}");
        }
    }
}
