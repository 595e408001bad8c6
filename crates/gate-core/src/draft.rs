//! The fields of a request that creates a session, and their validation.

use crate::profile::GateProfile;
use kernel::{Asset, Mode};
use partner_core::idempotency::Fingerprint;
use serde_json::json;

use crate::amount::{AmountError, SessionAmount};
use crate::object::{JsonObject, ObjectError};
use crate::preview::PreviewId;
use crate::redirect::{RedirectError, check_redirect};
use crate::session::{Flow, Terms};

/// Maximum characters of a wallet address and of a user reference.
const MAX_TEXT_CHARS: usize = 128;
/// Maximum characters of a token and of a network, in upper case.
const MAX_CODE_CHARS: usize = 32;

/// The fields of a create request, unchanged. Objects are JSON text.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    pub amount: String,
    pub currency: String,
    pub return_url: String,
    pub cancel_url: Option<String>,
    pub target_token: Option<String>,
    pub target_network: Option<String>,
    pub flow: Option<Flow>,
    pub wallet_address: Option<String>,
    pub user_reference: Option<String>,
    pub metadata: Option<String>,
    pub quote_preview_id: Option<String>,
    pub kyc_package: Option<String>,
}

/// A validated draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidDraft {
    /// The terms of the session.
    pub terms: Terms,
    /// The partner's data about the user.
    pub kyc_package: Option<JsonObject>,
    /// The locked preview that the session uses.
    pub preview: Option<PreviewId>,
}

/// The error in a field of a create request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    #[error("`amount`: {0}")]
    Amount(AmountError),
    #[error("`currency`: expected an active ISO 4217 code")]
    UnknownCurrency,
    /// `return_url` or `cancel_url`
    #[error("`{field}`: {error}")]
    Redirect {
        field: &'static str,
        error: RedirectError,
    },
    /// `target_token`, `target_network`, `wallet_address` or `user_reference`
    #[error("`{field}`: expected at most {most} characters")]
    TooLong { field: &'static str, most: usize },
    /// `metadata` or `kyc_package`
    #[error("`{field}`: {error}")]
    Object {
        field: &'static str,
        error: ObjectError,
    },
    /// `quote_preview_id`
    #[error("`quote_preview_id`: no such locked preview")]
    UnknownPreview,
}

/// A field that the partner is not entitled to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotEntitled {
    /// A KYC package from a partner that is not trusted.
    #[error("KYC packages are not accepted from this partner")]
    KycPackage,
    /// A flow, although flow sessions are disabled for the partner.
    #[error("flow sessions are not enabled")]
    Flow,
}

impl Draft {
    /// Validates every field, in the order of the API document.
    ///
    /// # Errors
    /// The first [`DraftError`].
    pub fn validate(&self, profile: &GateProfile, mode: Mode) -> Result<ValidDraft, DraftError> {
        let amount = SessionAmount::parse(&self.amount).map_err(DraftError::Amount)?;
        let currency = Asset::fiat(&self.currency).ok_or(DraftError::UnknownCurrency)?;
        let redirect = |field, text: &str| {
            check_redirect(text, mode, &profile.allowed_domains)
                .map_err(|error| DraftError::Redirect { field, error })
        };
        redirect("return_url", &self.return_url)?;
        if let Some(text) = &self.cancel_url {
            redirect("cancel_url", text)?;
        }
        let target_token = code(self.target_token.as_deref(), "target_token")?;
        let target_network = code(self.target_network.as_deref(), "target_network")?;
        let wallet_address = self.wallet_address.as_deref();
        check_length(wallet_address, "wallet_address", MAX_TEXT_CHARS)?;
        let user_reference = self.user_reference.as_deref();
        check_length(user_reference, "user_reference", MAX_TEXT_CHARS)?;
        let metadata = object(self.metadata.as_deref(), "metadata", JsonObject::metadata)?;
        let preview = self.quote_preview_id.as_deref().map(PreviewId::parse);
        if preview == Some(None) {
            return Err(DraftError::UnknownPreview);
        }
        let package = self.kyc_package.as_deref();
        let kyc_package = object(package, "kyc_package", JsonObject::kyc_package)?;
        let terms = Terms {
            amount,
            currency,
            return_url: self.return_url.clone(),
            cancel_url: self.cancel_url.clone(),
            target_token,
            target_network,
            flow: self.flow,
            wallet_address: self.wallet_address.clone(),
            user_reference: self.user_reference.clone(),
            metadata: metadata.unwrap_or_else(JsonObject::empty),
        };
        Ok(ValidDraft {
            terms,
            kyc_package,
            preview: preview.flatten(),
        })
    }

    /// The fingerprint of the fields that the route reads.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_json(&json!([
            self.amount,
            self.currency,
            self.return_url,
            self.cancel_url,
            self.target_token,
            self.target_network,
            self.flow.map(Flow::as_str),
            self.wallet_address,
            self.user_reference,
            self.metadata,
            self.quote_preview_id,
            self.kyc_package,
        ]))
    }
}

impl ValidDraft {
    /// Checks that the partner may send the KYC package, if there is one.
    ///
    /// # Errors
    /// [`NotEntitled::KycPackage`].
    pub const fn check_kyc_package(&self, profile: &GateProfile) -> Result<(), NotEntitled> {
        if self.kyc_package.is_some() && !profile.kyc_trusted {
            Err(NotEntitled::KycPackage)
        } else {
            Ok(())
        }
    }

    /// Checks that the partner may set the flow, if one is set.
    ///
    /// # Errors
    /// [`NotEntitled::Flow`].
    pub const fn flow_is_enabled(&self, profile: &GateProfile) -> Result<(), NotEntitled> {
        if self.terms.flow.is_some() && !profile.flow_sessions {
            Err(NotEntitled::Flow)
        } else {
            Ok(())
        }
    }
}

fn check_length(text: Option<&str>, field: &'static str, most: usize) -> Result<(), DraftError> {
    let long = text.is_some_and(|text| text.chars().count() > most);
    if long {
        Err(DraftError::TooLong { field, most })
    } else {
        Ok(())
    }
}

/// A token or a network in upper case.
fn code(text: Option<&str>, field: &'static str) -> Result<Option<String>, DraftError> {
    // The upper case of a letter may have several letters, so its length counts.
    let code = text.map(str::to_uppercase);
    check_length(code.as_deref(), field, MAX_CODE_CHARS)?;
    Ok(code)
}

fn object(
    text: Option<&str>,
    field: &'static str,
    parse: fn(&str) -> Result<JsonObject, ObjectError>,
) -> Result<Option<JsonObject>, DraftError> {
    let parsed = text.map(parse).transpose();
    parsed.map_err(|error| DraftError::Object { field, error })
}

#[cfg(test)]
mod tests {
    use partner_core::origin::AllowedDomain;

    use super::*;

    fn profile() -> GateProfile {
        GateProfile {
            allowed_domains: [AllowedDomain::parse("https://shop.example", Mode::Test).unwrap()]
                .into(),
            ..GateProfile::default()
        }
    }

    fn draft() -> Draft {
        Draft {
            amount: "100.00".to_owned(),
            currency: "eur".to_owned(),
            return_url: "https://shop.example/done".to_owned(),
            ..Draft::default()
        }
    }

    fn checked(draft: &Draft) -> Result<ValidDraft, DraftError> {
        draft.validate(&profile(), Mode::Test)
    }

    // rule: gate.session.currency, gate.session.upper-case, gate.session.metadata, gate.session.amount-as-sent, gate.origin.as-sent
    #[test]
    fn codes_are_upper_cased_and_other_fields_unchanged() {
        let sent = Draft {
            amount: "0100.123".to_owned(),
            currency: "jpy".to_owned(),
            return_url: "HTTPS://SHOP.example:443/a#b".to_owned(),
            target_token: Some("usdt".to_owned()),
            target_network: Some("é".repeat(32)),
            wallet_address: Some("é".repeat(128)),
            ..draft()
        };
        let terms = checked(&sent).unwrap().terms;
        assert_eq!(terms.amount.as_str(), "0100.123");
        assert_eq!(terms.currency.code(), "JPY");
        assert_eq!(terms.return_url, "HTTPS://SHOP.example:443/a#b");
        assert_eq!(terms.target_token.as_deref(), Some("USDT"));
        assert_eq!(terms.target_network, Some("É".repeat(32)));
        assert_eq!(terms.metadata.as_str(), "{}");
        assert_eq!((terms.cancel_url, terms.flow), (None, None));
    }

    /// A draft in which every field from this one on is invalid.
    fn wrong_from(field: usize) -> Draft {
        let all: [fn(&mut Draft); 11] = [
            |it| it.amount = "1e3".to_owned(),
            |it| it.currency = "XXX".to_owned(),
            |it| it.return_url = "http://shop.example/".to_owned(),
            |it| it.cancel_url = Some("https://evil.example/".to_owned()),
            |it| it.target_token = Some("x".repeat(33)),
            |it| it.target_network = Some("ß".repeat(17)),
            |it| it.wallet_address = Some("x".repeat(129)),
            |it| it.user_reference = Some("x".repeat(129)),
            |it| it.metadata = Some("[]".to_owned()),
            |it| it.quote_preview_id = Some("0".repeat(23)),
            |it| it.kyc_package = Some("{}".to_owned()),
        ];
        let mut draft = draft();
        for spoil in all.iter().skip(field) {
            spoil(&mut draft);
        }
        draft
    }

    // rule: gate.session.order-of-checks, gate.session.text-limits, gate.session.code-limits, gate.session.preview-missing
    // rule: gate.session.currency
    #[test]
    fn fields_are_validated_in_document_order() {
        let expected = [
            "`amount`: expected a decimal string such as \"100.00\", with at most 8 fractional digits",
            "`currency`: expected an active ISO 4217 code",
            "`return_url`: expected an https URL, found `http://shop.example`",
            "`cancel_url`: `https://evil.example` is not in allowed_domains (https://shop.example); add it with `penstock apply`",
            "`target_token`: expected at most 32 characters",
            "`target_network`: expected at most 32 characters",
            "`wallet_address`: expected at most 128 characters",
            "`user_reference`: expected at most 128 characters",
            "`metadata`: expected an object",
            "`quote_preview_id`: no such locked preview",
            "`kyc_package`: expected an object with at least one key",
        ];
        for (field, error) in expected.iter().enumerate() {
            assert_eq!(checked(&wrong_from(field)).unwrap_err().to_string(), *error);
        }
        assert!(checked(&wrong_from(expected.len())).is_ok());
    }

    // rule: gate.session.kyc-trusted, gate.session.flow-not-enabled
    #[test]
    fn profile_decides_which_fields_are_refused() {
        let sent = Draft {
            flow: Some(Flow::Swap),
            kyc_package: Some("{\"level\":2}".to_owned()),
            ..draft()
        };
        let sent = checked(&sent).unwrap();
        let off = profile();
        assert_eq!(sent.check_kyc_package(&off), Err(NotEntitled::KycPackage));
        assert_eq!(sent.flow_is_enabled(&off), Err(NotEntitled::Flow));
        let on = GateProfile {
            flow_sessions: true,
            kyc_trusted: true,
            ..off.clone()
        };
        assert_eq!(
            (sent.check_kyc_package(&on), sent.flow_is_enabled(&on)),
            (Ok(()), Ok(()))
        );
        let plain = checked(&draft()).unwrap();
        assert_eq!(
            (plain.check_kyc_package(&off), plain.flow_is_enabled(&off)),
            (Ok(()), Ok(()))
        );
    }

    // rule: idempotency.gate-any-body
    #[test]
    fn fingerprint_covers_fields_that_are_read() {
        let other = Draft {
            cancel_url: Some(draft().return_url),
            ..draft()
        };
        assert_eq!(draft().fingerprint(), draft().fingerprint());
        assert_ne!(draft().fingerprint(), other.fingerprint());
    }
}
