//! How quotes and transacts were answered, counted where the answer is known.

use http_kit::ApiError;
use instruments::trading;
use pools_core::batch::TransactOutcome;
use pools_core::usecases::create_quote::QuoteResult;

/// Counts the answer to a quote request and passes it on.
pub(crate) fn quote(answer: Result<QuoteResult, ApiError>) -> Result<QuoteResult, ApiError> {
    let (outcome, reason) = match &answer {
        Ok(QuoteResult::Firm(..)) => ("firm", ""),
        Ok(QuoteResult::Indicative(..)) => ("indicative", ""),
        Ok(QuoteResult::Unavailable(reason)) => ("unavailable", reason.as_str()),
        Err(error) => (ending(error), error.code()),
    };
    trading::quoted(outcome, reason);
    answer
}

/// Counts the answer to a transact and passes it on.
pub(crate) fn transact(
    answer: Result<TransactOutcome, ApiError>,
) -> Result<TransactOutcome, ApiError> {
    let (outcome, reason) = match &answer {
        Ok(TransactOutcome::Opened(_)) => ("opened", ""),
        Ok(TransactOutcome::Existing(_)) => ("existing", ""),
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
