//! The error responses that previews and signed quotes share.

use gate_core::order::OrderError;
use gate_core::pricing::OutOfRange;
use gate_core::usecases::preview_quotes::PreviewError;
use http_kit::ApiError;

pub(crate) fn preview_error(error: PreviewError) -> ApiError {
    match error {
        PreviewError::Order(fault) => order_fault(fault),
        PreviewError::UnknownMethod => ApiError::invalid_request(format!("{error}.")),
        PreviewError::OutOfRange(fault) => out_of_range(fault),
        PreviewError::Store(fault) => fault.into(),
    }
}

pub(super) fn out_of_range(fault: OutOfRange) -> ApiError {
    ApiError::invalid("amount_out_of_range", format!("`amount`: {fault}."))
}

pub(super) fn order_fault(fault: OrderError) -> ApiError {
    let code = match fault {
        OrderError::UnknownCurrency | OrderError::UnknownAsset => "unknown_currency",
        OrderError::UnknownNetwork => "network_not_supported",
        OrderError::Amount(kernel::AmountError::TooPrecise(_)) => "amount_precision",
        OrderError::Amount(kernel::AmountError::OutOfRange) => "amount_out_of_range",
        OrderError::UnknownCountry
        | OrderError::Amount(kernel::AmountError::Malformed | kernel::AmountError::Zero) => {
            "invalid_request"
        }
    };
    ApiError::invalid(code, format!("{fault}."))
}
