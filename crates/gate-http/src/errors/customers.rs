//! The error responses to the refusals of customers.

use gate_core::customer::Unique;
use gate_core::usecases::customers::CustomerError;
use http_kit::ApiError;

use super::gate_error;
use crate::codes;

pub(crate) fn customer_error(error: CustomerError) -> ApiError {
    match error {
        CustomerError::Field(error) => ApiError::invalid_request(format!("{error}.")),
        CustomerError::Exists(unique) => already_exists(unique),
        CustomerError::NotFound => ApiError::not_found("customer"),
        CustomerError::Failed(error) => gate_error(error),
    }
}

fn already_exists(unique: Unique) -> ApiError {
    let field = unique.as_str();
    ApiError::new(
        codes::CUSTOMER_ALREADY_EXISTS,
        format!("`{field}`: another customer has it, or a deleted one had it."),
    )
}
