//! Where an engine is, and what it is shown so that it knows who asks.

use std::fmt;

use hyper::Uri;
use hyper::header::HeaderValue;
use pools_core::engine::EngineName;
use secrecy::{ExposeSecret, SecretString};
use url::{Host, Url};

/// The URL an engine's paths lie below.
#[derive(Clone, PartialEq, Eq)]
pub struct EngineUrl {
    url: Url,
    name: EngineName,
}

impl EngineUrl {
    /// Reads `http://` or `https://`, a host, perhaps a port and a path. Nothing that the paths
    /// could not be put behind, and no credentials: those are not for showing.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok()?;
        let known = matches!(url.scheme(), "http" | "https") && url.has_host();
        let bare = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        // What makes requests refuses hosts that a URL may have, such as `{host}`.
        let callable = url.as_str().parse::<Uri>().is_ok();
        let name = EngineName::parse(url.as_str().trim_end_matches('/'))?;
        (known && bare && callable).then_some(Self { url, name })
    }

    /// What an engine at this URL is called: the URL in lower case up to the path, without the
    /// scheme's own port and without a slash at its end.
    pub(super) fn name(&self) -> EngineName {
        self.name.clone()
    }

    /// Is what is sent there encrypted?
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Does it name a loopback or private address itself, so that no look-up decides where it is?
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

    /// A path of the contract, below this URL.
    pub(super) fn below(&self, path: &str) -> String {
        format!("{}{path}", self.url.as_str().trim_end_matches('/'))
    }
}

impl fmt::Debug for EngineUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.as_str())
    }
}

/// What an engine is shown with every call.
#[derive(Debug)]
pub struct EngineSecret(SecretString);

impl EngineSecret {
    /// Reads 16 to 256 visible ASCII characters.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fits = (16..=256).contains(&text.len());
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        (fits && visible).then(|| Self(text.into()))
    }

    /// As it stands in the header.
    pub(super) fn bearer(&self) -> HeaderValue {
        let text = format!("Bearer {}", self.0.expose_secret());
        // Visible characters alone are a value of a header.
        let mut value = HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("Bearer"));
        value.set_sensitive(true);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_place_and_nothing_else() {
        for (text, below) in [
            ("http://127.0.0.1:9000", "http://127.0.0.1:9000/v1/depth"),
            ("https://engine.example/", "https://engine.example/v1/depth"),
            ("https://e/desk/a/", "https://e/desk/a/v1/depth"),
        ] {
            assert_eq!(EngineUrl::parse(text).unwrap().below("/v1/depth"), below);
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
            assert_eq!(EngineUrl::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn name_is_the_normalised_url() {
        for (text, name) in [
            ("HTTP://Engine.Example:80/", "http://engine.example"),
            ("https://engine.example:443", "https://engine.example"),
            ("https://e:8443/Desk/A/", "https://e:8443/Desk/A"),
        ] {
            assert_eq!(EngineUrl::parse(text).unwrap().name().as_str(), name);
        }
        let too_long = format!("https://e/{}", "x".repeat(2_048));
        assert_eq!(EngineUrl::parse(&too_long), None);
    }

    #[test]
    fn a_secret_is_long_enough_and_never_shown() {
        let secret = EngineSecret::parse("0123456789abcdef").unwrap();
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
            assert!(EngineSecret::parse(bad).is_none(), "{bad}");
        }
        assert!(EngineSecret::parse(&"x".repeat(257)).is_none());
    }
}
