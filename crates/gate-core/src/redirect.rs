//! Validation of the return URLs of a session, and of other URLs of a partner.
//!
//! A URL must be valid by RFC 3986 and by the WHATWG URL standard that browsers follow. Both parsers run, so that
//! they cannot disagree about the host.

use std::borrow::Cow;
use std::collections::BTreeSet;

use fluent_uri::Uri;
use kernel::Mode;
use partner_core::origin::{AllowedDomain, Origin, serves_pages};
use url::Url;

use crate::access::GateAccess;

/// Maximum characters of a URL.
const LONGEST: usize = 2048;

/// How many of a partner's domains an error lists.
const LISTED: usize = 5;
/// How many characters of an origin an error shows.
const SHOWN: usize = 100;

/// An origin that a partner does not allow, beside what it allows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{origin}` is not in allowed_domains ({allowed}); add it with `penstock apply`")]
pub struct OriginNotAllowed {
    origin: String,
    allowed: String,
}

impl OriginNotAllowed {
    /// Compares an origin with the partner's domains.
    ///
    /// # Errors
    /// The error names the origin and up to five domains.
    pub fn check(origin: &Origin, allowed: &BTreeSet<AllowedDomain>) -> Result<(), Self> {
        if origin.is_among(allowed) {
            return Ok(());
        }
        Err(Self {
            origin: cut(origin.as_str()).into_owned(),
            allowed: listed(allowed),
        })
    }
}

/// The first domains of a partner, and how many more there are.
pub(crate) fn listed(allowed: &BTreeSet<AllowedDomain>) -> String {
    let first = allowed.iter().take(LISTED);
    let mut shown: Vec<Cow<'_, str>> = first.map(|domain| cut(domain.as_str())).collect();
    match allowed.len().saturating_sub(LISTED) {
        0 if shown.is_empty() => shown.push("it is empty".into()),
        0 => {}
        more => shown.push(format!("and {more} more").into()),
    }
    shown.join(", ")
}

fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
        None => text.into(),
    }
}

/// Why a URL is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedirectError {
    /// Not an absolute URL of RFC 3986 without user information, at most 2,048 characters long.
    #[error(
        "expected an absolute URL such as \"https://shop.example/done\", at most 2048 characters, without user information"
    )]
    Malformed,
    /// The scheme is neither https nor, in test mode, http on a loopback host. With https, the origin may be one that the partner
    /// does not allow.
    #[error("expected an https URL, found `{found}`{}", and(.origin.as_ref()))]
    NotHttps {
        found: String,
        origin: Option<OriginNotAllowed>,
    },
    /// The origin is not in the partner's `allowed_domains`.
    #[error(transparent)]
    NotAllowed(OriginNotAllowed),
}

fn and(error: Option<&OriginNotAllowed>) -> String {
    error.map_or_else(String::new, |error| format!("; also, {error}"))
}

/// Checks a URL that a session may redirect to.
///
/// # Errors
/// [`RedirectError`], with everything that is wrong with the URL.
pub fn check_redirect(
    text: &str,
    mode: Mode,
    allowed: &BTreeSet<AllowedDomain>,
) -> Result<(), RedirectError> {
    let url = strict(text).ok_or(RedirectError::Malformed)?;
    if !serves_pages(&url, mode) {
        let found = Origin::of(&url).map_or_else(
            || format!("{}:", url.scheme()),
            |origin| origin.as_str().to_owned(),
        );
        return Err(RedirectError::NotHttps {
            found: cut(&found).into_owned(),
            origin: secure(&url).and_then(|it| OriginNotAllowed::check(&it, allowed).err()),
        });
    }
    let origin = Origin::of(&url).ok_or(RedirectError::Malformed)?;
    OriginNotAllowed::check(&origin, allowed).map_err(RedirectError::NotAllowed)
}

/// The origin that a URL would have with https.
fn secure(url: &Url) -> Option<Origin> {
    let host = url.host_str()?;
    let port = url
        .port()
        .map_or_else(String::new, |port| format!(":{port}"));
    Origin::of(&Url::parse(&format!("https://{host}{port}")).ok()?)
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

    fn allowed() -> BTreeSet<AllowedDomain> {
        [
            "https://shop.example",
            "https://shop.example:8443",
            "https://bücher.example",
            "http://localhost:3000",
            "http://127.0.0.1:*",
            "https://[2001:db8::1]",
        ]
        .iter()
        .map(|text| AllowedDomain::parse(text, Mode::Test).unwrap())
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
            "http://127.0.0.1/back",
            "http://127.0.0.1:49300/back?a=b",
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

    fn is_not_https(checked: &Result<(), RedirectError>) -> bool {
        matches!(checked, Err(RedirectError::NotHttps { .. }))
    }

    // rule: gate.origin.https, gate.origin.allowed, gate.origin.any-port
    #[test]
    fn other_scheme_and_other_origin_are_refused() {
        for bad in [
            "http://shop.example/",
            "ftp://shop.example/",
            "http://localhost.evil.example:3000/",
        ] {
            assert!(is_not_https(&checked(bad)), "{bad}");
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
            "https://127.0.0.1:3000/",
            "http://127.0.0.2:3000/",
        ] {
            let refused = checked(bad);
            assert!(
                matches!(refused, Err(RedirectError::NotAllowed(_))),
                "{bad}"
            );
        }
        for local in ["http://localhost:3000/", "http://127.0.0.1:49300/"] {
            assert!(is_not_https(&check_redirect(local, Mode::Live, &allowed())));
        }
    }

    // rule: gate.origin.names-all
    #[test]
    fn error_names_scheme_and_origin_and_the_allowed_domains() {
        let allowed: BTreeSet<AllowedDomain> = ["https://shop.example", "http://localhost:*"]
            .into_iter()
            .filter_map(AllowedDomain::stored)
            .collect();
        let message = |url: &str| {
            let refused = check_redirect(url, Mode::Test, &allowed);
            refused.unwrap_err().to_string()
        };
        let list = "is not in allowed_domains (http://localhost:*, https://shop.example); add it with `penstock apply`";
        for (url, expected) in [
            (
                "http://127.0.0.1:49300/done",
                format!("`http://127.0.0.1:49300` {list}"),
            ),
            (
                "https://SHOP.example:8443/done?x#y",
                format!("`https://shop.example:8443` {list}"),
            ),
            (
                "http://shop.example/done",
                "expected an https URL, found `http://shop.example`".to_owned(),
            ),
            (
                "http://myshop.test/done",
                format!(
                    "expected an https URL, found `http://myshop.test`; also, `https://myshop.test` {list}"
                ),
            ),
            (
                "ftp://myshop.test:2121/done",
                format!(
                    "expected an https URL, found `ftp:`; also, `https://myshop.test:2121` {list}"
                ),
            ),
            (
                "myapp://callback/done",
                format!("expected an https URL, found `myapp:`; also, `https://callback` {list}"),
            ),
        ] {
            assert_eq!(message(url), expected);
        }
    }

    // rule: gate.origin.names-all
    #[test]
    fn error_has_a_bounded_length() {
        let many = (0..40).map(|number| format!("https://{}{number}.example", "a".repeat(50)));
        let labels = ["b".repeat(60), "c".repeat(60), "example".to_owned()].join(".");
        let mut all: BTreeSet<AllowedDomain> = many
            .chain([format!("https://0{labels}")])
            .filter_map(|text| AllowedDomain::parse(&text, Mode::Test))
            .collect();
        assert_eq!(all.len(), 41);
        let url = format!("https://{labels}/");
        let refused = check_redirect(&url, Mode::Test, &all).unwrap_err();
        let message = refused.to_string();
        assert!(message.contains("cccc…` is not in"), "{message}");
        assert!(message.contains("ccc…, https://aaa"), "{message}");
        assert!(message.contains(".example, and 36 more);"), "{message}");
        assert!(message.chars().count() < 800, "{message}");
        all.clear();
        let refused = check_redirect(&url, Mode::Test, &all).unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("allowed_domains (it is empty);")
        );
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
