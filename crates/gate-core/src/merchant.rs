//! The merchant: who takes the money of a partner's sessions, as customers see it.

use std::ops::RangeInclusive;

use partner_core::text;

use crate::redirect::is_https;

/// Minimum and maximum characters of a legal name.
const NAME_LENGTHS: RangeInclusive<usize> = 2..=120;

/// Who takes the money. The operator sets each field, so that customers see the name of a known company.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Merchant {
    /// The name of the company in its register.
    pub legal_name: Option<String>,
    /// Where customers get help. All URLs are absolute https URLs.
    pub support_url: Option<String>,
    pub terms_url: Option<String>,
    pub privacy_url: Option<String>,
}

/// Parses a legal name, and removes the spaces around it. `None` for a name that is too short or too long, or that has a
/// character which readers do not see, such as a control character or a bidirectional override.
#[must_use]
pub fn legal_name(text: &str) -> Option<String> {
    let name = text.trim();
    let fits = NAME_LENGTHS.contains(&name.chars().count()) && text::check(name).is_ok();
    fits.then(|| name.to_owned())
}

/// Parses the URL of a page of the merchant: an absolute https URL.
#[must_use]
pub fn page_url(text: &str) -> Option<String> {
    is_https(text).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: apply.merchant
    #[test]
    fn legal_name_is_trimmed_and_readers_see_every_character() {
        let longest = "é".repeat(120);
        for name in ["AG", "Größe & Söhne GmbH", "株式会社", &longest] {
            assert_eq!(legal_name(name).as_deref(), Some(name));
            let spaced = format!(" {name}\u{a0} ");
            assert_eq!(legal_name(&spaced).as_deref(), Some(name));
        }
        let too_long = format!("{longest}é");
        for bad in [
            "",
            "  ",
            "A",
            " A ",
            "Acme\nGmbH",
            "Acme\u{0}GmbH",
            "Acme\u{7f}GmbH",
            "Acme\u{202e}GmbH",
            "Acme\u{2066}GmbH",
            "Acme\u{200b}GmbH",
            &too_long,
        ] {
            assert_eq!(legal_name(bad), None, "{bad:?}");
        }
    }
}
