//! Validation of the return URLs of a session, and of other URLs of a partner.
//!
//! A URL must be valid by RFC 3986 and by the WHATWG URL standard that browsers follow. Both parsers run, so that
//! they cannot disagree about the host.

use std::collections::BTreeSet;

use fluent_uri::Uri;
use kernel::Mode;
use partner_core::origin::{Origin, serves_pages};
use url::Url;

use crate::access::GateAccess;

/// Maximum characters of a URL.
const LONGEST: usize = 2048;

/// Why a URL is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RedirectError {
    /// Not an absolute URL of RFC 3986 without user information, at most 2,048 characters long.
    #[error(
        "expected an absolute URL such as \"https://shop.example/done\", at most 2048 characters, without user information"
    )]
    Malformed,
    /// The scheme is neither https nor, in test mode, http on a loopback host.
    #[error("expected an https URL")]
    NotHttps,
    /// The origin is not in the partner's `allowed_domains`.
    #[error("expected a URL on one of the partner's allowed domains")]
    NotAllowed,
}

/// Checks a URL that a session may redirect to.
///
/// # Errors
/// [`RedirectError`], checked in the order malformed, scheme, origin.
pub fn check_redirect(
    text: &str,
    mode: Mode,
    allowed: &BTreeSet<Origin>,
) -> Result<(), RedirectError> {
    let url = strict(text).ok_or(RedirectError::Malformed)?;
    if !serves_pages(&url, mode) {
        return Err(RedirectError::NotHttps);
    }
    let origin = Origin::of(&url).filter(|origin| allowed.contains(origin));
    origin.map(|_| ()).ok_or(RedirectError::NotAllowed)
}

/// A URL of a session if the partner still allows its origin. The partner's list may have changed since the session
/// was created.
#[must_use]
pub fn still_allowed<'u>(text: &'u str, access: &GateAccess) -> Option<&'u str> {
    let allowed = &access.profile.allowed_domains;
    let checked = check_redirect(text, access.tenant.mode, allowed);
    checked.ok().map(|()| text)
}

/// Whether the text is an absolute https URL.
#[must_use]
pub fn is_https(text: &str) -> bool {
    strict(text).is_some_and(|url| url.scheme() == "https")
}

/// Parses a URL with an authority and without user information, by both standards.
fn strict(text: &str) -> Option<Url> {
    if text.len() > LONGEST {
        return None;
    }
    let authority = Uri::parse(text).ok()?.authority()?;
    if authority.has_userinfo() || authority.host().is_empty() {
        return None;
    }
    Url::parse(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> BTreeSet<Origin> {
        [
            "https://shop.example",
            "https://shop.example:8443",
            "https://bücher.example",
            "http://localhost:3000",
            "https://[2001:db8::1]",
        ]
        .iter()
        .map(|text| Origin::parse(text, Mode::Test).unwrap())
        .collect()
    }

    fn checked(text: &str) -> Result<(), RedirectError> {
        check_redirect(text, Mode::Test, &allowed())
    }

    // rule: gate.origin.https, gate.origin.allowed, gate.origin.default-port, gate.origin.punycode, gate.origin.strict
    #[test]
    fn redirect_to_allowed_origin_passes() {
        for good in [
            "https://shop.example",
            "https://shop.example/",
            "https://shop.example/done?id=1&x=%20#paid",
            "HTTPS://SHOP.example:443/",
            "https://shop.example:/",
            "https://shop.example:8443/x",
            "https://xn--bcher-kva.example/",
            "https://XN--BCHER-KVA.example/",
            "http://localhost:3000/back",
            "https://[2001:DB8:0::1]/",
        ] {
            assert_eq!(checked(good), Ok(()), "{good}");
        }
        let longest = format!("https://shop.example/{}", "x".repeat(2048 - 21));
        assert_eq!(checked(&longest), Ok(()));
        assert_eq!(
            checked(&format!("{longest}x")),
            Err(RedirectError::Malformed)
        );
    }

    // rule: gate.origin.strict
    #[test]
    fn malformed_url_is_refused() {
        for bad in [
            "",
            "/done",
            "//shop.example/",
            "shop.example",
            "https:shop.example",
            "https:/shop.example",
            "https:///shop.example",
            "https://",
            "https://shop.example\\@evil.example/",
            "https:\\\\shop.example/",
            "https://shop.example/a b",
            "https://shop.example/\t",
            "https://shop.example/\u{0}",
            "https://shop.example/\u{7f}",
            "https://shop.example/é",
            "https://bücher.example/",
            "https://shop.example/%zz",
            "https://shop.example/<script>",
            "https://shop.example/#a#b",
            "https://user@shop.example/",
            "https://user:word@shop.example/",
            "https://@shop.example/",
            "https://shop.example@evil.example/",
            "https://shop.example:port/",
            "https://shop.example:99999/",
            "javascript:alert(1)",
            "data:text/html,x",
        ] {
            assert_eq!(checked(bad), Err(RedirectError::Malformed), "{bad}");
        }
    }

    // rule: gate.origin.https, gate.origin.allowed
    #[test]
    fn other_scheme_and_other_origin_are_refused() {
        for bad in [
            "http://shop.example/",
            "ftp://shop.example/",
            "http://localhost.evil.example:3000/",
        ] {
            assert_eq!(checked(bad), Err(RedirectError::NotHttps), "{bad}");
        }
        for bad in [
            "https://evil.example/",
            "https://shop.example.evil.example/",
            "https://evilshop.example/",
            "https://sub.shop.example/",
            "https://shop.example./",
            "https://shop.example:444/",
            "https://localhost:3000/",
            "http://localhost/",
            "http://127.0.0.1:3000/",
        ] {
            assert_eq!(checked(bad), Err(RedirectError::NotAllowed), "{bad}");
        }
        let live = check_redirect("http://localhost:3000/", Mode::Live, &allowed());
        assert_eq!(live, Err(RedirectError::NotHttps));
    }

    // rule: gate.branding.rules
    #[test]
    fn logo_requires_https() {
        assert!(is_https("https://cdn.example/logo.svg"));
        for bad in [
            "http://cdn.example/logo.svg",
            "data:image/svg+xml,x",
            "//cdn.example/logo.svg",
            "https://user@cdn.example/",
        ] {
            assert!(!is_https(bad), "{bad}");
        }
    }
}
