//! How quotes and transacts were answered, counted where the answer is known.

use http_kit::ApiError;
use instruments::trading;
use pools_core::books::Outcome;
use pools_core::usecases::quoting::Offer;

/// Counts the answer to a quote request and passes it on.
pub(crate) fn quote(answer: Result<Offer, ApiError>) -> Result<Offer, ApiError> {
    let (outcome, reason) = match &answer {
        Ok(Offer::Firm(..)) => ("firm", ""),
        Ok(Offer::Indicative(..)) => ("indicative", ""),
        Ok(Offer::Unavailable(reason)) => ("unavailable", reason.as_str()),
        Err(error) => (ending(error), error.code()),
    };
    trading::quoted(outcome, reason);
    answer
}

/// Counts the answer to a transact and passes it on.
pub(crate) fn transact(answer: Result<Outcome, ApiError>) -> Result<Outcome, ApiError> {
    let (outcome, reason) = match &answer {
        Ok(Outcome::Opened(_)) => ("opened", ""),
        Ok(Outcome::Existing(_)) => ("existing", ""),
        Err(error) => (ending(error), error.code()),
    };
    trading::transacted(outcome, reason);
    answer
}

/// A refusal is somebody's choice; 500 and 503 are not, while 501 says that selling is not enabled.
fn ending(error: &ApiError) -> &'static str {
    match error.status().as_u16() {
        500 | 503 => "failed",
        _ => "refused",
    }
}
