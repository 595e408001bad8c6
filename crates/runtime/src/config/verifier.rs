//! The settings of the verifier.

use providers::{UpstreamSecret, UpstreamUrl};

use super::setting::{Default, Setting, Visibility};
use super::value::{self, InvalidSetting};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifierChoice {
    /// No verifier: a user who must be verified cannot pay.
    None,
    /// The sandbox's verifier, only in mode test.
    Sandbox,
    /// The operator's verifier over HTTP.
    Http(UpstreamUrl),
}

pub(crate) static VERIFIER: Setting<VerifierChoice> = Setting::new(
    "VERIFIER",
    Default::ByMode("sandbox", "none"),
    parse,
    "none, sandbox or http:<url>",
    "the verifier of sessions' users",
);
pub(crate) static VERIFIER_SECRET: Setting<UpstreamSecret> = Setting::new(
    "VERIFIER_SECRET",
    Default::Unset,
    value::upstream_secret,
    "16 to 256 visible ASCII characters",
    "the secret sent with every call to a verifier over HTTP",
)
.shown(Visibility::Masked);
fn parse(text: &str) -> Result<VerifierChoice, InvalidSetting> {
    match text.split_once(':') {
        None if text == "none" => Ok(VerifierChoice::None),
        None if text == "sandbox" => Ok(VerifierChoice::Sandbox),
        // The error does not repeat the URL, which may contain a password or a token.
        _ if text.contains(['@', '?']) => Err(InvalidSetting::Unsupported(
            "expected http:<url> without credentials and query: its secret belongs in PENSTOCK_VERIFIER_SECRET",
        )),
        Some(("http", url)) => UpstreamUrl::parse(url)
            .map(VerifierChoice::Http)
            .ok_or(InvalidSetting::Form),
        _ => Err(InvalidSetting::Form),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: config.verifier-http
    #[test]
    fn verifier_setting_parses_every_verifier() {
        let url = UpstreamUrl::parse("https://verifier.example/desk").unwrap();
        let read = parse("http:https://verifier.example/desk");
        assert_eq!(read, Ok(VerifierChoice::Http(url)));
        assert_eq!(parse("none"), Ok(VerifierChoice::None));
        assert_eq!(parse("sandbox"), Ok(VerifierChoice::Sandbox));
        for bad in ["", "http", "http:", "http:verifier:9200", "http:ftp://v"] {
            assert_eq!(parse(bad), Err(InvalidSetting::Form), "{bad}");
        }
        for secret in ["http:http://user:hunter2@v", "http:https://v?token=hunter2"] {
            let unread = parse(secret);
            assert!(matches!(unread, Err(InvalidSetting::Unsupported(_))));
        }
    }
}
