//! The refusals of a known key or token.

use gate_core::access::GateDenial;
use gate_core::embed::TokenDenial;
use gate_core::usecases::show_session::ShowError;
use http_kit::ApiError;

use super::gate_error;
use crate::codes;

/// The 403 for a refused key. The code names the entitlement that the operator can change.
pub(crate) fn denied(denial: GateDenial) -> ApiError {
    let (code, message) = match denial {
        GateDenial::Access(denial) => return denial.into(),
        GateDenial::NotEnabled => (
            codes::GATE_NOT_ENABLED,
            "The gate is not enabled for this partner.",
        ),
        GateDenial::RailsNotEnabled => (
            codes::RAILS_NOT_ENABLED,
            "Signed quotes and rails are not enabled for this partner.",
        ),
    };
    ApiError::new(code, message)
}

/// The 403 for a token that does not allow the call.
pub(crate) fn token_denied(denial: TokenDenial) -> ApiError {
    match denial {
        TokenDenial::ScopeMissing(scope) => ApiError::new(
            codes::SCOPE_MISSING,
            format!(
                "The token lacks the scope `{}`. Bootstrap the widget with it.",
                scope.as_str()
            ),
        ),
        TokenDenial::SessionRequired => ApiError::new(
            codes::SESSION_REQUIRED,
            "The token belongs to no session. Bootstrap the widget with a client secret.",
        ),
    }
}

pub(crate) fn show_error(error: ShowError) -> ApiError {
    match error {
        ShowError::NotFound => ApiError::not_found("session"),
        ShowError::TokenExpired => http_kit::dead_token(),
        ShowError::Denied(denial) => denied(denial),
        ShowError::Failed(error) => gate_error(error),
    }
}
