//! The fields of a customer in a request, and their validation.

use partner_core::idempotency::Fingerprint;
use partner_core::text::{self, RefusedCharacter};
use serde_json::json;

use super::Person;
use crate::catalogue::CountryCode;
use crate::change::Change;
use crate::object::{JsonObject, ObjectError};

/// Maximum characters of an email.
const LONGEST_EMAIL: usize = 254;
/// Maximum characters of a name and of `external_id`.
const LONGEST_NAME: usize = 128;
/// Maximum digits of a phone number, by E.164.
const PHONE_DIGITS: usize = 15;

/// The fields of a create request, unchanged. Metadata is JSON text.
#[derive(Clone, Default)]
pub struct CustomerDraft {
    pub email: String,
    pub external_id: Option<String>,
    pub phone: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub country_code: Option<String>,
    pub metadata: Option<String>,
}

kernel::debug_as_text!(CustomerDraft, "CustomerDraft");

/// The fields of an update request, unchanged. Metadata is JSON text.
#[derive(Clone, Default)]
pub struct CustomerUpdate {
    pub first_name: Change,
    pub last_name: Change,
    pub country_code: Change,
    pub metadata: Change,
}

kernel::debug_as_text!(CustomerUpdate, "CustomerUpdate");

/// A validated update.
#[derive(Clone, Default)]
pub struct Changes {
    pub(super) first_name: Change,
    pub(super) last_name: Change,
    pub(super) country: Change<CountryCode>,
    pub(super) metadata: Change<JsonObject>,
}

kernel::debug_as_text!(Changes, "Changes");

/// The error in a field of a customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CustomerFormError {
    /// `email`
    #[error(
        "`email`: expected an email address such as \"ann@example.com\", of at most 254 characters"
    )]
    Email,
    #[error("`external_id`: expected 1 to 128 characters")]
    ExternalId,
    /// A character that readers do not see, in `email` or `external_id`
    #[error("`{0}`: expected visible characters, found {1}; send it without this character")]
    Character(&'static str, RefusedCharacter),
    /// `phone`
    #[error(
        "`phone`: expected a number in the form of E.164, such as \"+4915112345678\": a plus and at most 15 digits"
    )]
    Phone,
    /// `first_name` or `last_name`
    #[error("`{0}`: expected at most 128 characters")]
    Name(&'static str),
    /// `country_code`
    #[error("`country_code`: expected the two letters of a country by ISO 3166, such as \"DE\"")]
    Country,
    #[error("`metadata`: {0}")]
    Metadata(ObjectError),
}

impl CustomerDraft {
    /// Validates every field.
    ///
    /// # Errors
    /// The first [`CustomerFormError`], in the order of the fields.
    pub fn validate(&self) -> Result<Person, CustomerFormError> {
        visible(&self.email, "email")?;
        if !is_email(&self.email) {
            return Err(CustomerFormError::Email);
        }
        if let Some(id) = &self.external_id {
            visible(id, "external_id")?;
            if !is_external_id(id) {
                return Err(CustomerFormError::ExternalId);
            }
        }
        if self.phone.as_deref().is_some_and(|it| !is_phone(it)) {
            return Err(CustomerFormError::Phone);
        }
        let named = |text: Option<&str>, field| text.map(|it| name(it, field)).transpose();
        let metadata = self.metadata.as_deref().map(metadata).transpose()?;
        Ok(Person {
            email: self.email.clone(),
            external_id: self.external_id.clone(),
            phone: self.phone.clone(),
            first_name: named(self.first_name.as_deref(), "first_name")?,
            last_name: named(self.last_name.as_deref(), "last_name")?,
            country: self.country_code.as_deref().map(country).transpose()?,
            metadata: metadata.unwrap_or_else(JsonObject::empty),
        })
    }

    /// The fingerprint of the fields that the route reads.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_json(&json!([
            self.email,
            self.external_id,
            self.phone,
            self.first_name,
            self.last_name,
            self.country_code,
            self.metadata,
        ]))
    }
}

impl CustomerUpdate {
    /// Validates every field that is set.
    ///
    /// # Errors
    /// The first [`CustomerFormError`], in the order of the fields.
    pub fn validate(&self) -> Result<Changes, CustomerFormError> {
        Ok(Changes {
            first_name: self.first_name.try_map(|it| name(it, "first_name"))?,
            last_name: self.last_name.try_map(|it| name(it, "last_name"))?,
            country: self.country_code.try_map(|it| country(it))?,
            metadata: self.metadata.try_map(|it| metadata(it))?,
        })
    }

    /// The fingerprint of the fields that the route reads.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_json(&json!([
            self.first_name.in_fingerprint(),
            self.last_name.in_fingerprint(),
            self.country_code.in_fingerprint(),
            self.metadata.in_fingerprint(),
        ]))
    }
}

/// Checks the form of an email: text, `@`, and a domain with a dot; no space and no control character.
///
/// Whether the address receives mail is not checked.
#[must_use]
pub fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else {
        return false;
    };
    let plain = |it: char| !it.is_whitespace() && !it.is_control() && it != '@';
    let labels = domain.split('.');
    text.chars().count() <= LONGEST_EMAIL
        && !local.is_empty()
        && local.chars().chain(domain.chars()).all(plain)
        && domain.contains('.')
        && labels.into_iter().all(|label| !label.is_empty())
}

/// Checks the length of the partner's own id of a customer.
#[must_use]
pub fn is_external_id(text: &str) -> bool {
    (1..=LONGEST_NAME).contains(&text.chars().count())
}

/// Checks that readers see every character of a text that must be unique.
fn visible(text: &str, field: &'static str) -> Result<(), CustomerFormError> {
    text::check(text).map_err(|refused| CustomerFormError::Character(field, refused))
}

/// Checks the E.164 form: a plus, then a country code, which does not start with 0, and the number.
fn is_phone(text: &str) -> bool {
    let digits = text.strip_prefix('+').unwrap_or_default();
    (2..=PHONE_DIGITS).contains(&digits.len())
        && !digits.starts_with('0')
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn name(text: &str, field: &'static str) -> Result<String, CustomerFormError> {
    if text.chars().count() > LONGEST_NAME {
        Err(CustomerFormError::Name(field))
    } else {
        Ok(text.to_owned())
    }
}

fn country(text: &str) -> Result<CountryCode, CustomerFormError> {
    CountryCode::parse(text).ok_or(CustomerFormError::Country)
}

fn metadata(text: &str) -> Result<JsonObject, CustomerFormError> {
    JsonObject::metadata(text).map_err(CustomerFormError::Metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> CustomerDraft {
        CustomerDraft {
            email: "Ann@Example.com".to_owned(),
            ..CustomerDraft::default()
        }
    }

    // rule: gate.customer.email-form
    #[test]
    fn email_requires_name_and_domain() {
        let long = format!("{}@example.com", "x".repeat(242));
        for good in [
            "a@b.co",
            "Ann+tag@sub.example.com",
            "änn@bücher.example",
            &long,
        ] {
            assert!(is_email(good), "{good}");
        }
        let longer = format!("x{long}");
        for bad in [
            "",
            "ann",
            "@",
            "ann@",
            "@example.com",
            "ann@example",
            "ann@.com",
            "ann@example.",
            "a@b..c",
            "a b@c.de",
            "a@b@c.de",
            " a@b.co",
            "a@b.co ",
            "a@b.co\n",
            "a\u{7f}@b.co",
            &longer,
        ] {
            assert!(!is_email(bad), "{bad}");
        }
    }

    // rule: gate.customer.visible, text.refused-characters
    #[test]
    fn email_and_external_id_have_visible_characters_only() {
        for (character, class) in [
            ('\u{200b}', "U+200B, an invisible format character"),
            ('\u{2069}', "U+2069, an invisible format character"),
            ('\u{34f}', "U+034F, an invisible character"),
            ('\u{7f}', "U+007F, a control character"),
            ('\u{2028}', "U+2028, a line separator"),
            ('\u{e000}', "U+E000, a private-use character"),
            ('\u{378}', "U+0378, an unassigned character"),
        ] {
            let of_email = CustomerDraft {
                email: format!("ca{character}t@shop.example"),
                ..draft()
            };
            let of_id = CustomerDraft {
                external_id: Some(format!("user-1{character}")),
                ..draft()
            };
            for (wrong, field) in [(of_email, "email"), (of_id, "external_id")] {
                let error = wrong.validate().unwrap_err().to_string();
                let expected = format!(
                    "`{field}`: expected visible characters, found {class}; send it without this character"
                );
                assert_eq!(error, expected);
            }
        }
        let kept = CustomerDraft {
            email: "Jo\u{308}rg@shop.example".to_owned(),
            external_id: Some("K\u{f6}ln 7".to_owned()),
            ..draft()
        };
        let person = kept.validate().unwrap();
        let unchanged = (person.email, person.external_id);
        assert_eq!(unchanged, (kept.email, kept.external_id));
    }

    // rule: gate.customer.phone-form
    #[test]
    fn phone_number_requires_e164() {
        for good in ["+12", "+4915112345678", "+123456789012345"] {
            assert!(is_phone(good), "{good}");
        }
        for bad in [
            "",
            "+",
            "+1",
            "4915112345678",
            "+0151123456",
            "+49 151 12345678",
            "+49-151",
            "+1234567890123456",
            "++49151",
            "+49a",
            "+４９１５１",
        ] {
            assert!(!is_phone(bad), "{bad}");
        }
    }

    // rule: gate.customer.fields, gate.customer.country
    #[test]
    fn draft_keeps_fields_and_upper_cases_country() {
        let sent = CustomerDraft {
            external_id: Some("é".repeat(128)),
            phone: Some("+4915112345678".to_owned()),
            first_name: Some("é".repeat(128)),
            last_name: Some(String::new()),
            country_code: Some("de".to_owned()),
            metadata: Some("{ \"n\": 1.10 }".to_owned()),
            ..draft()
        };
        let person = sent.validate().unwrap();
        assert_eq!(person.email, "Ann@Example.com");
        assert_eq!(person.external_id, sent.external_id);
        assert_eq!(person.first_name, sent.first_name);
        assert_eq!(person.last_name.as_deref(), Some(""));
        assert_eq!(
            person.country.map(|it| it.to_string()).as_deref(),
            Some("DE")
        );
        assert_eq!(person.metadata.as_str(), "{\"n\":1.10}");
        let bare = draft().validate().unwrap();
        assert_eq!(bare.metadata.as_str(), "{}");
        assert_eq!((bare.phone, bare.country), (None, None));
    }

    // rule: gate.customer.fields, error.names-the-field
    #[test]
    fn first_invalid_field_is_named() {
        let long = || Some("x".repeat(129));
        let all: [fn(&mut CustomerDraft); 7] = [
            |it| it.email = "ann".to_owned(),
            |it| it.external_id = Some(String::new()),
            |it| it.phone = Some("0151".to_owned()),
            |it| it.metadata = Some("[]".to_owned()),
            |it| it.first_name = Some("x".repeat(129)),
            |it| it.last_name = Some("x".repeat(129)),
            |it| it.country_code = Some("XX".to_owned()),
        ];
        let named = [
            "email",
            "external_id",
            "phone",
            "metadata",
            "first_name",
            "last_name",
            "country_code",
        ];
        for (from, field) in named.iter().enumerate() {
            let mut wrong = draft();
            for spoil in all.iter().skip(from) {
                spoil(&mut wrong);
            }
            let error = wrong.validate().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("`{field}`: expected")),
                "{error}"
            );
        }
        let wrong = CustomerDraft {
            external_id: long(),
            ..draft()
        };
        assert_eq!(wrong.validate(), Err(CustomerFormError::ExternalId));
        let wrong = CustomerUpdate {
            last_name: Change::Set("x".repeat(129)),
            ..CustomerUpdate::default()
        };
        let error = wrong.validate().err();
        assert_eq!(error, Some(CustomerFormError::Name("last_name")));
    }

    // rule: idempotency.gate-any-body
    #[test]
    fn fingerprint_covers_fields_that_are_read() {
        let other = CustomerDraft {
            phone: Some("+12".to_owned()),
            ..draft()
        };
        assert_eq!(draft().fingerprint(), draft().fingerprint());
        assert_ne!(draft().fingerprint(), other.fingerprint());
        let cleared = CustomerUpdate {
            first_name: Change::Clear,
            ..CustomerUpdate::default()
        };
        assert_ne!(
            cleared.fingerprint(),
            CustomerUpdate::default().fingerprint()
        );
    }
}
