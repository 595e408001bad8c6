//! Networks of trusted proxies.

use std::net::{IpAddr, Ipv4Addr};

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
    if network.prefix_len() == 0 {
        return Err(InvalidSetting::Because(format!(
            "{text} has every address, so each client could write its own address: name the proxies' own addresses or networks"
        )));
    }
    if no_client_has(&network) {
        return Err(InvalidSetting::Because(format!(
            "no client has an address of {text}: name the proxy's own address or network"
        )));
    }
    Ok(network)
}

/// Whether no client has an address of a network: multicast, the unspecified address, and the broadcast address of IPv4.
fn no_client_has(network: &IpNet) -> bool {
    let (first, last) = (network.network(), network.broadcast());
    let is_broadcast = |address: IpAddr| address == IpAddr::V4(Ipv4Addr::BROADCAST);
    let is_single = first == last;
    let all_are_multicast = first.is_multicast() && last.is_multicast();
    all_are_multicast || (is_single && (first.is_unspecified() || is_broadcast(first)))
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
        let mapped = proxies("::ffff:10.0.0.0/104,::ffff:192.0.2.1,::ffff:0:0/97").unwrap();
        let shown: Vec<String> = mapped.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["10.0.0.0/8", "192.0.2.1/32", "0.0.0.0/1"]);
        assert_eq!(proxies("240.0.0.0/4,fe80::/10,::1").unwrap().len(), 3);
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

    // rule: config.proxies
    #[test]
    fn network_of_no_client_or_of_every_client_is_refused_with_its_remedy() {
        for (bad, because) in [
            ("0.0.0.0", "no client has an address of 0.0.0.0: "),
            ("0.0.0.0/32", "no client has an address of 0.0.0.0/32: "),
            ("::", "no client has an address of ::: "),
            ("::/128", "no client has an address of ::/128: "),
            (
                "255.255.255.255",
                "no client has an address of 255.255.255.255: ",
            ),
            (
                "::ffff:255.255.255.255",
                "no client has an address of ::ffff:255.255.255.255: ",
            ),
            ("224.0.0.0/4", "no client has an address of 224.0.0.0/4: "),
            ("239.1.2.3", "no client has an address of 239.1.2.3: "),
            (
                "::ffff:224.0.0.0/100",
                "no client has an address of ::ffff:224.0.0.0/100: ",
            ),
            ("ff00::/8", "no client has an address of ff00::/8: "),
            ("ff02::1", "no client has an address of ff02::1: "),
            ("0.0.0.0/0", "0.0.0.0/0 has every address, "),
            ("::ffff:0:0/96", "::ffff:0:0/96 has every address, "),
            ("::/0", "::/0 has every address, "),
        ] {
            // One entry is refused among others that are valid.
            let list = format!("10.0.0.0/8,{bad}");
            let Err(InvalidSetting::Because(line)) = proxies(&list) else {
                panic!("{list} is accepted");
            };
            assert!(line.starts_with(because), "{line}");
            assert!(line.contains(": name the prox"), "{line}");
        }
    }
}
