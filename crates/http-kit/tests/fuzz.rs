//! Byte fuzzing of `X-Forwarded-For`, which any client may send.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderValue};
use bolero::check;
use http_kit::TrustedProxies;

#[path = "../../../tests/bent.rs"]
mod bent;
use bent::bent;

/// Finds an address that the client chose: an entry to the left of an address that no trusted proxy
/// wrote.
#[test]
fn client_cannot_choose_forwarded_address() {
    const SOUND: [&str; 3] = ["203.0.113.9", ", ", "10.0.0.1"];
    const PARTS: [&str; 18] = [
        "10.0.0.1",
        "10.0.0.2:80",
        "203.0.113.9",
        "[2001:db8::1]",
        "[2001:db8::1]:443",
        "2001:db8::1",
        "::ffff:10.0.0.3",
        ",",
        ", ",
        " ",
        ",,",
        "unknown",
        "_hidden",
        "1",
        ".",
        ":",
        "\"",
        "\u{e9}",
    ];
    const CHOSEN: &str = "198.51.100.7";
    let proxies = TrustedProxies::new(["10.0.0.0/8".parse().unwrap()]);
    let peer: IpAddr = "10.0.0.9".parse().unwrap();
    let client = |lines: &[&str]| {
        let mut headers = HeaderMap::new();
        for line in lines {
            let value = HeaderValue::from_bytes(line.as_bytes()).unwrap();
            headers.append("x-forwarded-for", value);
        }
        proxies.client_of(peer, &headers)
    };
    check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
        let line = bent(bytes, &SOUND, &PARTS).concat();
        let found = client(&[&line]);
        let is_proxy = |address: IpAddr| address.to_string().starts_with("10.");
        let in_line = |entry: &str| {
            let entry = entry.trim();
            let bare = entry.rsplit_once(':').map_or(entry, |(host, _)| host);
            [entry, bare].iter().any(|text| {
                let text = text.trim_matches(['[', ']']);
                text.parse()
                    .is_ok_and(|it: IpAddr| it.to_canonical() == found)
            })
        };
        assert!(found == peer || line.split(',').any(in_line), "{line}");
        // The client's text is to the left of what proxies append.
        if !is_proxy(found) {
            assert_eq!(client(&[&format!("{CHOSEN},{line}")]), found, "{line}");
            assert_eq!(client(&[CHOSEN, &line]), found, "{line}");
        }
        let stranger: IpAddr = "203.0.113.77".parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.append("x-forwarded-for", HeaderValue::from_static(CHOSEN));
        assert_eq!(proxies.client_of(stranger, &headers), stranger);
    });
}
