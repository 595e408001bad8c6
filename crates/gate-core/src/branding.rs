//! Branding: the appearance of a partner's widget.

use crate::change::Change;
use crate::redirect::is_https;

/// Maximum characters of a brand name.
const LONGEST_NAME: usize = 64;

/// The branding that a partner has set. All `None` is the default appearance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Branding {
    /// An absolute https URL. Penstock never fetches it.
    pub logo_url: Option<String>,
    /// `#RRGGBB`
    pub primary_color: Option<String>,
    /// `#RRGGBB`
    pub secondary_color: Option<String>,
    /// `#RRGGBB`
    pub accent_color: Option<String>,
    /// The name that users see.
    pub brand_name: Option<String>,
    /// Number of changes so far. The next change compares it before it writes.
    pub revision: i64,
}

/// An update, field by field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BrandingUpdate {
    pub logo_url: Change,
    pub primary_color: Change,
    pub secondary_color: Change,
    pub accent_color: Change,
    pub brand_name: Change,
}

/// The error in a field of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BrandingInputError {
    #[error("`logo_url`: expected an absolute https URL of at most 2048 characters")]
    LogoUrl,
    /// A colour.
    #[error("`{0}`: expected a colour such as \"#1A2B3C\"")]
    Color(&'static str),
    #[error("`brand_name`: expected at most 64 characters")]
    BrandName,
}

impl BrandingUpdate {
    /// Validates every field that is set.
    ///
    /// # Errors
    /// The first [`BrandingInputError`].
    pub fn validate(&self) -> Result<(), BrandingInputError> {
        let colors = [
            ("primary_color", &self.primary_color),
            ("secondary_color", &self.secondary_color),
            ("accent_color", &self.accent_color),
        ];
        if !self.logo_url.is_valid_by(|url| is_https(url)) {
            return Err(BrandingInputError::LogoUrl);
        }
        let wrong = colors
            .into_iter()
            .find(|(_, color)| !color.is_valid_by(|color| is_color(color)));
        if let Some((field, _)) = wrong {
            return Err(BrandingInputError::Color(field));
        }
        let short = |name: &String| name.chars().count() <= LONGEST_NAME;
        if !self.brand_name.is_valid_by(short) {
            return Err(BrandingInputError::BrandName);
        }
        Ok(())
    }
}

impl Branding {
    /// Merges a validated update into the branding.
    #[must_use]
    pub fn updated(&self, update: &BrandingUpdate) -> Self {
        Self {
            logo_url: update.logo_url.apply_to(self.logo_url.as_ref()),
            primary_color: update.primary_color.apply_to(self.primary_color.as_ref()),
            secondary_color: update
                .secondary_color
                .apply_to(self.secondary_color.as_ref()),
            accent_color: update.accent_color.apply_to(self.accent_color.as_ref()),
            brand_name: update.brand_name.apply_to(self.brand_name.as_ref()),
            revision: self.revision.saturating_add(1),
        }
    }
}

fn is_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or_default();
    digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(value: &str) -> Change {
        Change::Set(value.to_owned())
    }

    // rule: gate.branding.merge
    #[test]
    fn update_changes_named_fields_only() {
        let first = BrandingUpdate {
            logo_url: set("https://cdn.example/logo.svg"),
            primary_color: set("#1a2B3c"),
            brand_name: set("<b>Acme</b>"),
            ..BrandingUpdate::default()
        };
        let second = BrandingUpdate {
            logo_url: Change::Clear,
            accent_color: set("#000000"),
            ..BrandingUpdate::default()
        };
        let branding = Branding::default().updated(&first).updated(&second);
        let expected = Branding {
            logo_url: None,
            primary_color: Some("#1a2B3c".to_owned()),
            secondary_color: None,
            accent_color: Some("#000000".to_owned()),
            brand_name: Some("<b>Acme</b>".to_owned()),
            revision: 2,
        };
        assert_eq!(branding, expected);
    }

    // rule: gate.branding.rules
    #[test]
    fn each_field_has_its_rule() {
        for color in [
            "", "#12345", "#1234567", "123456", "#12345g", "red", "#12345é",
        ] {
            let update = BrandingUpdate {
                secondary_color: set(color),
                ..BrandingUpdate::default()
            };
            assert_eq!(
                update.validate(),
                Err(BrandingInputError::Color("secondary_color"))
            );
        }
        let logo = |text: &str| BrandingUpdate {
            logo_url: set(text),
            ..BrandingUpdate::default()
        };
        assert_eq!(logo("https://cdn.example/l.png").validate(), Ok(()));
        for bad in ["", "/l.png", "http://cdn.example/l.png", "data:image/png,x"] {
            assert_eq!(
                logo(bad).validate(),
                Err(BrandingInputError::LogoUrl),
                "{bad}"
            );
        }
        let name = |length: usize| BrandingUpdate {
            brand_name: set(&"é".repeat(length)),
            ..BrandingUpdate::default()
        };
        assert_eq!(name(64).validate(), Ok(()));
        assert_eq!(name(65).validate(), Err(BrandingInputError::BrandName));
    }
}
