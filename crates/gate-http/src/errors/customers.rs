//! How the refusals of customers read from outside.

use gate_core::customer::Unique;
use gate_core::usecases::customers::CustomerError;
use http_kit::ApiError;

use super::{answer_fault, event_fault, in_progress};

pub(crate) fn customer_error(error: CustomerError) -> ApiError {
    match error {
        CustomerError::InProgress => in_progress(),
        CustomerError::Field(fault) => ApiError::invalid_request(format!("{fault}.")),
        CustomerError::Exists(unique) => already_exists(unique),
        CustomerError::NotFound => ApiError::not_found("customer"),
        CustomerError::Answer(fault) => answer_fault(fault),
        CustomerError::Store(fault) => fault.into(),
        CustomerError::Event(fault) => event_fault(fault),
    }
}

fn already_exists(unique: Unique) -> ApiError {
    let field = match unique {
        Unique::Email => "email",
        Unique::ExternalId => "external_id",
    };
    ApiError::conflict(
        "customer_already_exists",
        format!("`{field}`: another customer has it, or a deleted one had it."),
    )
}
