//! How the refusals of an order read from outside: of what a preview and a signed quote have in common.

use gate_core::order::OrderFault;
use gate_core::pricing::OutOfRange;
use gate_core::usecases::previewing::PreviewError;
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

pub(super) fn order_fault(fault: OrderFault) -> ApiError {
    let code = match fault {
        OrderFault::UnknownCurrency | OrderFault::UnknownAsset => "unknown_currency",
        OrderFault::UnknownNetwork => "network_not_supported",
        OrderFault::Amount(kernel::AmountFault::TooPrecise(_)) => "amount_precision",
        OrderFault::Amount(kernel::AmountFault::OutOfRange) => "amount_out_of_range",
        OrderFault::UnknownCountry
        | OrderFault::Amount(kernel::AmountFault::Malformed | kernel::AmountFault::Zero) => {
            "invalid_request"
        }
    };
    ApiError::invalid(code, format!("{fault}."))
}
