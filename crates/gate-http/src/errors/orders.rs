//! The error responses that previews and signed quotes share.

use gate_core::order::OrderError;
use gate_core::pricing::OutOfRange;
use gate_core::usecases::preview_quotes::PreviewError;
use http_kit::ApiError;

pub(crate) fn preview_error(error: PreviewError) -> ApiError {
    match error {
        PreviewError::Order(error) => order_error(error),
        PreviewError::UnknownMethod => ApiError::invalid_request(format!("{error}.")),
        PreviewError::OutOfRange(error) => out_of_range(error),
        PreviewError::Store(error) => error.into(),
    }
}

pub(super) fn out_of_range(error: OutOfRange) -> ApiError {
    ApiError::invalid("amount_out_of_range", format!("`amount`: {error}."))
}

pub(super) fn order_error(error: OrderError) -> ApiError {
    let code = match error {
        OrderError::UnknownCurrency | OrderError::UnknownAsset => "unknown_currency",
        OrderError::UnknownNetwork => "network_not_supported",
        OrderError::Amount(kernel::AmountError::TooPrecise(_)) => "amount_precision",
        OrderError::Amount(kernel::AmountError::OutOfRange) => "amount_out_of_range",
        OrderError::UnknownCountry
        | OrderError::Amount(kernel::AmountError::Malformed | kernel::AmountError::Zero) => {
            "invalid_request"
        }
    };
    ApiError::invalid(code, format!("{error}."))
}
