//! The URL of an upstream, and the secret that identifies Penstock to it.

use std::fmt;

use hyper::Uri;
use hyper::header::HeaderValue;
use kernel::UpstreamName;
use partner_core::webhooks::notification::NotificationSecret;
use secrecy::{ExposeSecret, SecretString};
use url::{Host, Url};

/// The base URL of the paths of an engine, a rail or a verifier.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamUrl {
    url: Url,
    name: UpstreamName,
}

impl UpstreamUrl {
    /// Parses `http://` or `https://`, a host, an optional port and an optional path. Refuses a query or fragment, because paths
    /// are appended, and credentials, because the URL is shown.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok()?;
        let known = matches!(url.scheme(), "http" | "https") && url.has_host();
        let bare = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        // The HTTP client refuses some hosts that a URL may have, such as `{host}`.
        let callable = url.as_str().parse::<Uri>().is_ok();
        let name = UpstreamName::parse(url.as_str().trim_end_matches('/'))?;
        (known && bare && callable).then_some(Self { url, name })
    }

    /// The default name of an engine: its URL with scheme and host in lower case, without a default port and without a slash at
    /// the end.
    #[must_use]
    pub fn name(&self) -> UpstreamName {
        self.name.clone()
    }

    /// The default name of a rail or a verifier: host, port unless it is the default one, and path.
    #[must_use]
    pub fn place(&self) -> UpstreamName {
        let name = self.name.as_str();
        let place = name.split_once("://").map_or(name, |(_, place)| place);
        // A part of a name that is not empty is a name.
        UpstreamName::parse(place).unwrap_or_else(|| self.name.clone())
    }

    /// Whether requests to the URL are encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Whether the host is itself a loopback or private address, so that no DNS lookup is needed.
    #[must_use]
    pub fn is_private(&self) -> bool {
        match self.url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback() || address.is_private(),
            Some(Host::Ipv6(address)) => match address.to_ipv4_mapped() {
                Some(address) => address.is_loopback() || address.is_private(),
                None => address.is_loopback() || address.is_unique_local(),
            },
            Some(Host::Domain(_)) | None => false,
        }
    }

    /// The URL of a path of the contract.
    pub(crate) fn below(&self, path: &str) -> String {
        format!("{}{path}", self.url.as_str().trim_end_matches('/'))
    }
}

impl fmt::Debug for UpstreamUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.as_str())
    }
}

/// The secret that an engine, a rail or a verifier receives with every call.
#[derive(Debug)]
pub struct UpstreamSecret(SecretString);

impl UpstreamSecret {
    /// Parses 16 to 256 visible ASCII characters.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fits = (16..=256).contains(&text.len());
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        (fits && visible).then(|| Self(text.into()))
    }

    /// The secret as the key of the notifications that an upstream sends.
    #[must_use]
    pub fn notifications(&self) -> NotificationSecret {
        NotificationSecret::new(self.0.clone())
    }

    /// The value of the header `Authorization`.
    pub(crate) fn bearer(&self) -> HeaderValue {
        let text = format!("Bearer {}", self.0.expose_secret());
        // Every text of visible characters is a valid header value.
        let mut value = HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("Bearer"));
        value.set_sensitive(true);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstream_url_refuses_credentials_queries_and_fragments() {
        for (text, below) in [
            ("http://127.0.0.1:9000", "http://127.0.0.1:9000/v1/depth"),
            ("https://engine.example/", "https://engine.example/v1/depth"),
            ("https://e/desk/a/", "https://e/desk/a/v1/depth"),
        ] {
            assert_eq!(UpstreamUrl::parse(text).unwrap().below("/v1/depth"), below);
        }
        for bad in [
            "",
            "engine.example",
            "ftp://e",
            "http://",
            "http://user:hunter2@e",
            "http://e?token=x",
            "http://e#x",
            "http://{host}:9000",
        ] {
            assert_eq!(UpstreamUrl::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn name_is_the_normalised_url() {
        for (text, name) in [
            ("HTTP://Engine.Example:80/", "http://engine.example"),
            ("https://engine.example:443", "https://engine.example"),
            ("https://e:8443/Desk/A/", "https://e:8443/Desk/A"),
        ] {
            assert_eq!(UpstreamUrl::parse(text).unwrap().name().as_str(), name);
        }
        let too_long = format!("https://e/{}", "x".repeat(2_048));
        assert_eq!(UpstreamUrl::parse(&too_long), None);
    }

    #[test]
    fn upstream_secret_has_minimum_length_and_is_never_shown() {
        let secret = UpstreamSecret::parse("0123456789abcdef").unwrap();
        assert_eq!(secret.bearer(), "Bearer 0123456789abcdef");
        for shown in [format!("{secret:?}"), format!("{:?}", secret.bearer())] {
            assert!(!shown.contains("0123456789abcdef"), "{shown}");
        }
        for bad in [
            "",
            "0123456789abcde",
            "0123456789 abcdef",
            "0123456789abcdeé",
        ] {
            assert!(UpstreamSecret::parse(bad).is_none(), "{bad}");
        }
        assert!(UpstreamSecret::parse(&"x".repeat(257)).is_none());
    }
}
