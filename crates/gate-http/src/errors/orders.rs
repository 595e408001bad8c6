//! The error responses that previews and signed quotes share.

use gate_core::order::OrderError;
use gate_core::pricing::OutOfRange;
use gate_core::usecases::preview_quotes::PreviewError;
use http_kit::ApiError;

use crate::codes;

pub(crate) fn preview_error(error: PreviewError) -> ApiError {
    match error {
        PreviewError::Order(error) => order_error(error),
        PreviewError::UnknownMethod => ApiError::invalid_request(format!("{error}.")),
        PreviewError::OutOfRange(error) => out_of_range(error),
        PreviewError::Store(error) => error.into(),
    }
}

pub(super) fn out_of_range(error: OutOfRange) -> ApiError {
    ApiError::new(codes::AMOUNT_OUT_OF_RANGE, format!("`amount`: {error}."))
}

pub(super) fn order_error(error: OrderError) -> ApiError {
    let code = match error {
        OrderError::UnknownCurrency | OrderError::UnknownAsset => codes::UNKNOWN_CURRENCY,
        OrderError::UnknownNetwork => codes::NETWORK_NOT_SUPPORTED,
        OrderError::Amount(kernel::AmountError::TooPrecise(_)) => codes::AMOUNT_PRECISION,
        OrderError::Amount(kernel::AmountError::OutOfRange) => codes::AMOUNT_OUT_OF_RANGE,
        OrderError::UnknownCountry
        | OrderError::Amount(kernel::AmountError::Malformed | kernel::AmountError::Zero) => {
            codes::INVALID_REQUEST
        }
    };
    ApiError::new(code, format!("{error}."))
}
