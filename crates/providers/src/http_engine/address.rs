//! Where an engine is, and what it is shown so that it knows who asks.

use std::fmt;

use hyper::Uri;
use hyper::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

/// The URL an engine's paths lie below.
#[derive(Clone, PartialEq, Eq)]
pub struct EngineUrl(Url);

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
        (known && bare && callable).then_some(Self(url))
    }

    /// Is what is sent there encrypted?
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// A path of the contract, below this URL.
    pub(super) fn below(&self, path: &str) -> String {
        format!("{}{path}", self.0.as_str().trim_end_matches('/'))
    }
}

impl fmt::Debug for EngineUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
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
