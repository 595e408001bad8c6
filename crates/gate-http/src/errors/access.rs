//! The refusals of a known key.

use gate_core::access::GateDenial;
use http_kit::ApiError;

/// The 403 for a refused key. The code names the entitlement that the operator can change.
pub(crate) fn denied(denial: GateDenial) -> ApiError {
    let (code, message) = match denial {
        GateDenial::Access(denial) => return denial.into(),
        GateDenial::NotEnabled => (
            "gate_not_enabled",
            "The gate is not enabled for this partner.",
        ),
        GateDenial::RailsNotEnabled => (
            "rails_not_enabled",
            "Signed quotes and rails are not enabled for this partner.",
        ),
    };
    ApiError::forbidden(code, message)
}
