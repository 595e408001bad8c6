//! Records metrics about the responses to quotes and transacts.

use http_kit::ApiError;
use instruments::trading;
use pools_core::batch::TransactOutcome;
use pools_core::usecases::create_quote::QuoteResult;

/// Records the response to a quote request and returns it.
pub(crate) fn quote(response: Result<QuoteResult, ApiError>) -> Result<QuoteResult, ApiError> {
    let (outcome, reason) = match &response {
        Ok(QuoteResult::Firm(..)) => ("firm", ""),
        Ok(QuoteResult::Indicative(..)) => ("indicative", ""),
        Ok(QuoteResult::Unavailable(reason)) => ("unavailable", reason.as_str()),
        Err(error) => (outcome_of(error), error.code()),
    };
    trading::quoted(outcome, reason);
    response
}

/// Records the response to a transact and returns it.
pub(crate) fn transact(
    response: Result<TransactOutcome, ApiError>,
) -> Result<TransactOutcome, ApiError> {
    let (outcome, reason) = match &response {
        Ok(TransactOutcome::Opened(_)) => ("opened", ""),
        Ok(TransactOutcome::Existing(_)) => ("existing", ""),
        Err(error) => (outcome_of(error), error.code()),
    };
    trading::transacted(outcome, reason);
    response
}

/// The outcome in metrics: `failed` for 500 and 503, otherwise `refused`. A 501 is a refusal, because
/// it means that selling is not enabled.
fn outcome_of(error: &ApiError) -> &'static str {
    match error.status().as_u16() {
        500 | 503 => "failed",
        _ => "refused",
    }
}
