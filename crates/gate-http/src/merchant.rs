//! The merchant: who takes the money of a session, as its widget shows it.

use gate_core::merchant::Merchant;
use serde::Serialize;
use utoipa::ToSchema;

/// Who takes the money. A field is null unless the operator has set it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Merchant)]
pub(crate) struct MerchantRecord {
    /// The name of the company in its register, or null.
    #[schema(required = true, example = "Acme Payments GmbH")]
    legal_name: Option<String>,
    /// Where users get help: an absolute https URL, or null.
    #[schema(required = true, example = "https://shop.example/help")]
    support_url: Option<String>,
    /// The terms: an absolute https URL, or null.
    #[schema(required = true, example = "https://shop.example/terms")]
    terms_url: Option<String>,
    /// The privacy notice: an absolute https URL, or null.
    #[schema(required = true, example = "https://shop.example/privacy")]
    privacy_url: Option<String>,
}

impl MerchantRecord {
    pub(crate) fn of(merchant: &Merchant) -> Self {
        Self {
            legal_name: merchant.legal_name.clone(),
            support_url: merchant.support_url.clone(),
            terms_url: merchant.terms_url.clone(),
            privacy_url: merchant.privacy_url.clone(),
        }
    }
}
