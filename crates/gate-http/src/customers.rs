//! Customers: create, list, read, update, delete.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use gate_core::catalogue::CountryCode;
use gate_core::change::Change;
use gate_core::customer::{
    Customer, CustomerDraft, CustomerId, CustomerUpdate, Deleted, is_email, is_external_id,
};
use gate_core::limits::Group;
use gate_core::usecases::customers::CustomerSearch;
use http_kit::{
    ApiError, IdempotencyHeader, IdempotentReply, Json as Body, PathId, Query, RawJson,
    ResponseBuilder, log_id,
};
use partner_core::Tenant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::{App, Entitled};
use crate::codes;
use crate::errors;
use crate::lists::CustomerList;
use crate::operation::{Admission, Operation};
use crate::wire::{Verbatim, change, created, instant, page_size};
use crate::words;

/// A new customer. Other fields, such as `kyc_status` and `mode`, are ignored.
#[derive(Deserialize, ToSchema)]
pub(crate) struct CreateCustomerRequest {
    /// Unique among your customers of the mode, in any case and normal form; returned unchanged. Invisible characters are refused.
    #[schema(example = "ann@example.com", max_length = 254)]
    email: String,
    /// Your own identifier of the customer; unique if present, in any normal form. Invisible characters are refused.
    #[schema(example = "user-1", min_length = 1, max_length = 128)]
    external_id: Option<String>,
    /// E.164 format: a plus sign and at most 15 digits.
    #[schema(example = "+4915112345678", pattern = r"^\+[1-9][0-9]{1,14}$")]
    phone: Option<String>,
    /// First name.
    #[schema(example = "Ann", max_length = 128)]
    first_name: Option<String>,
    /// Last name.
    #[schema(example = "Lee", max_length = 128)]
    last_name: Option<String>,
    /// Two-letter ISO 3166 country code, in upper or lower case.
    #[schema(example = "DE", pattern = "^[A-Za-z]{2}$")]
    country_code: Option<String>,
    /// Your own data, returned unchanged: at most 50 keys and 16 KiB. Numbers keep every digit.
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    metadata: Option<RawJson>,
}

/// Changes to a customer. Null clears a field, an absent field stays unchanged, and an unknown
/// field is refused.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateCustomerRequest {
    /// First name.
    #[serde(default, deserialize_with = "change")]
    #[schema(value_type = Option<String>, max_length = 128, example = "Anna")]
    first_name: Change,
    /// Last name.
    #[serde(default, deserialize_with = "change")]
    #[schema(value_type = Option<String>, max_length = 128, example = "Lee")]
    last_name: Change,
    /// Two-letter ISO 3166 country code, in upper or lower case.
    #[serde(default, deserialize_with = "change")]
    #[schema(value_type = Option<String>, pattern = "^[A-Za-z]{2}$", example = "FR")]
    country_code: Change,
    /// Replaces the whole object; null makes it `{}`.
    #[serde(default, deserialize_with = "change")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    metadata: Change<RawJson>,
}

/// A customer: a user whom you serve.
#[derive(Serialize, ToSchema)]
#[schema(as = Customer)]
pub(crate) struct CustomerRecord {
    /// Customer id.
    #[schema(example = "cus_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    id: String,
    /// `customer`
    #[schema(example = "customer")]
    object: &'static str,
    /// The partner that owns the customer.
    #[schema(example = "acme")]
    partner_id: String,
    /// The mode of the key that created it.
    mode: words::Mode,
    /// Your own identifier of the customer, or null.
    #[schema(required = true, example = "user-1")]
    external_id: Option<String>,
    /// The email as sent, unchanged.
    #[schema(example = "ann@example.com")]
    email: String,
    /// E.164 format, or null.
    #[schema(required = true, example = "+4915112345678")]
    phone: Option<String>,
    /// First name, or null.
    #[schema(required = true, example = "Ann")]
    first_name: Option<String>,
    /// Last name, or null.
    #[schema(required = true, example = "Lee")]
    last_name: Option<String>,
    /// Two-letter ISO 3166 country code, in upper case, or null.
    #[schema(required = true, example = "DE")]
    country_code: Option<String>,
    /// The metadata as sent, unchanged; `{}` if none was sent.
    #[schema(value_type = BTreeMap<String, Value>)]
    metadata: Verbatim,
    /// Whether the identity of the customer is verified.
    kyc_status: words::KycStatus,
    /// When the customer was created.
    #[schema(format = DateTime)]
    created_at: String,
    /// When the customer was last changed.
    #[schema(format = DateTime)]
    updated_at: String,
}

/// A deleted customer.
#[derive(Serialize, ToSchema)]
#[schema(as = DeletedCustomer)]
pub(crate) struct DeletedCustomerRecord {
    /// Customer id.
    #[schema(example = "cus_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    id: String,
    /// `customer`
    #[schema(example = "customer")]
    object: &'static str,
    /// `true`
    #[schema(example = true)]
    deleted: bool,
    /// When the customer was first deleted.
    #[schema(format = DateTime)]
    deleted_at: String,
}

pub(crate) const CREATE_CUSTOMER: Operation = Operation {
    route: || routes!(create_customer),
    admission: Admission::secret(Group::Global),
    errors: &[
        codes::BODY,
        codes::OPTIONAL_KEY,
        &[
            codes::IDEMPOTENCY_KEY_REQUIRED,
            codes::CUSTOMER_ALREADY_EXISTS,
        ],
    ],
};

/// Create a customer
///
/// An email and an `external_id` belong to one customer each and stay taken after the customer is
/// deleted. A repeat with the same `Idempotency-Key` replays the first response to the byte.
#[utoipa::path(post, path = "/v1/customers", operation_id = "createCustomer", tag = "Customers",
    params(("Idempotency-Key" = String, Header, description = "A value that you choose, the same for every retry of one operation; a UUID is recommended", example = "6f0c2f4e-8a43-4d0b-9d53-6ad4a1f0f3a1")),
    request_body = CreateCustomerRequest,
    responses((status = 201, description = "The customer", body = CustomerRecord)))]
pub(crate) async fn create_customer(
    who: Entitled,
    State(app): State<App>,
    key: IdempotencyHeader,
    response: ResponseBuilder,
    Body(request): Body<CreateCustomerRequest>,
) -> Result<IdempotentReply, ApiError> {
    let key = key.required()?;
    let customers = &app.customers;
    let reply = customers
        .create(who.tenant(), key, &request.into(), &|customer| {
            log_id(customer.id);
            response.json(StatusCode::CREATED, &record(who.tenant(), customer))
        })
        .await;
    reply.map(IdempotentReply).map_err(errors::customer_error)
}

pub(crate) const LIST_CUSTOMERS: Operation = Operation {
    route: || routes!(list_customers),
    admission: Admission::secret(Group::Global),
    errors: &[&[codes::INVALID_REQUEST]],
};

/// List customers
///
/// Newest first, without deleted customers. For the next page, send the last id as `starting_after`
/// while `has_more` is true.
#[utoipa::path(get, path = "/v1/customers", operation_id = "listCustomers", tag = "Customers",
    params(
        ("limit" = Option<u32>, Query, description = "1 to 100; 10 by default", minimum = 1, maximum = 100),
        ("starting_after" = Option<String>, Query, description = "The last id of the previous page", pattern = "^cus_(test|live)_[0-7][0-9A-HJKMNP-TV-Z]{25}$", example = "cus_test_01KSFVT4Z2V6B9C1D3F5G7H8JK"),
        ("email" = Option<String>, Query, description = "Only the customer with this email, without regard to case; write `+` as `%2B`", example = "ann@example.com"),
        ("external_id" = Option<String>, Query, description = "Only the customer with this `external_id`", example = "user-1"),
        ("created_after" = Option<String>, Query, format = DateTime, description = "Only customers created later than this instant: RFC 3339, or a date", example = "2026-05-25T00:00:00Z"),
        ("created_before" = Option<String>, Query, format = DateTime, description = "Only customers created no later than this instant: RFC 3339, or a date", example = "2026-05-26T00:00:00Z"),
    ),
    responses((status = 200, description = "A page of customers", body = CustomerList)))]
pub(crate) async fn list_customers(
    who: Entitled,
    State(app): State<App>,
    query: Query,
) -> Result<Json<CustomerList>, ApiError> {
    let limit = page_size(&query)?;
    let wanted = CustomerSearch {
        after: query.parsed("starting_after", |text| {
            CustomerId::parse(text).ok_or("expected the id of a customer")
        })?,
        email: query.parsed("email", |text| {
            let email = is_email(text).then(|| text.to_owned());
            email.ok_or("expected an email address; a `+` is written `%2B`")
        })?,
        external_id: query.parsed("external_id", |text| {
            let name = is_external_id(text).then(|| text.to_owned());
            name.ok_or("expected 1 to 128 characters")
        })?,
        created: created(&query)?,
    };
    let page = app.customers.list(who.tenant(), &wanted, limit).await?;
    Ok(CustomerList::of(page, |it| record(who.tenant(), &it)))
}

pub(crate) const GET_CUSTOMER: Operation = Operation {
    route: || routes!(get_customer),
    admission: Admission::secret(Group::Global),
    errors: &[&[codes::RESOURCE_NOT_FOUND]],
};

/// Read a customer
///
/// A deleted customer is not found, like one that never existed.
#[utoipa::path(get, path = "/v1/customers/{id}", operation_id = "getCustomer", tag = "Customers",
    params(("id" = String, Path, description = "Customer id", example = "cus_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")),
    responses((status = 200, description = "The customer", body = CustomerRecord)))]
pub(crate) async fn get_customer(
    who: Entitled,
    State(app): State<App>,
    id: PathId,
) -> Result<Json<CustomerRecord>, ApiError> {
    let id = id.parse("customer", CustomerId::parse)?;
    let found = app.customers.get(who.tenant(), id).await?;
    let customer = found.ok_or_else(|| ApiError::not_found("customer"))?;
    Ok(Json(record(who.tenant(), &customer)))
}

pub(crate) const UPDATE_CUSTOMER: Operation = Operation {
    route: || routes!(update_customer),
    admission: Admission::secret(Group::Global),
    errors: &[
        codes::BODY,
        codes::OPTIONAL_KEY,
        &[codes::RESOURCE_NOT_FOUND],
    ],
};

/// Update a customer
///
/// Changes the fields in the body and leaves all others unchanged. An update without a change
/// leaves `updated_at` unchanged and sends no event.
#[utoipa::path(patch, path = "/v1/customers/{id}", operation_id = "updateCustomer", tag = "Customers",
    params(
        ("id" = String, Path, description = "Customer id", example = "cus_test_01KSFVT4Z2V6B9C1D3F5G7H8JK"),
        ("Idempotency-Key" = Option<String>, Header, description = "A value that you choose, the same for every retry"),
    ),
    request_body = UpdateCustomerRequest,
    responses((status = 200, description = "The customer after the update", body = CustomerRecord)))]
pub(crate) async fn update_customer(
    who: Entitled,
    State(app): State<App>,
    id: PathId,
    key: IdempotencyHeader,
    response: ResponseBuilder,
    Body(request): Body<UpdateCustomerRequest>,
) -> Result<IdempotentReply, ApiError> {
    let id = id.parse("customer", CustomerId::parse)?;
    let key = key.optional()?;
    let customers = &app.customers;
    let reply = customers
        .update(who.tenant(), id, key, &request.into(), &|customer| {
            response.json(StatusCode::OK, &record(who.tenant(), customer))
        })
        .await;
    reply.map(IdempotentReply).map_err(errors::customer_error)
}

pub(crate) const DELETE_CUSTOMER: Operation = Operation {
    route: || routes!(delete_customer),
    admission: Admission::secret(Group::Global),
    errors: &[codes::OPTIONAL_KEY, &[codes::RESOURCE_NOT_FOUND]],
};

/// Delete a customer
///
/// A deleted customer is not found. Deleting it again returns the same response and has no effect.
/// Its email and `external_id` stay taken.
#[utoipa::path(delete, path = "/v1/customers/{id}", operation_id = "deleteCustomer", tag = "Customers",
    params(
        ("id" = String, Path, description = "Customer id", example = "cus_test_01KSFVT4Z2V6B9C1D3F5G7H8JK"),
        ("Idempotency-Key" = Option<String>, Header, description = "A value that you choose, the same for every retry"),
    ),
    responses((status = 200, description = "The id of the deleted customer, and when it was deleted", body = DeletedCustomerRecord)))]
pub(crate) async fn delete_customer(
    who: Entitled,
    State(app): State<App>,
    id: PathId,
    key: IdempotencyHeader,
    response: ResponseBuilder,
) -> Result<IdempotentReply, ApiError> {
    let id = id.parse("customer", CustomerId::parse)?;
    let key = key.optional()?;
    let customers = &app.customers;
    let reply = customers
        .delete(who.tenant(), id, key, &|gone| {
            response.json(StatusCode::OK, &deleted(gone))
        })
        .await;
    reply.map(IdempotentReply).map_err(errors::customer_error)
}

pub(crate) fn record(who: &Tenant, customer: &Customer) -> CustomerRecord {
    let person = &customer.person;
    CustomerRecord {
        id: customer.id.to_string(),
        object: "customer",
        partner_id: who.partner.to_string(),
        mode: who.mode.into(),
        external_id: person.external_id.clone(),
        email: person.email.clone(),
        phone: person.phone.clone(),
        first_name: person.first_name.clone(),
        last_name: person.last_name.clone(),
        country_code: person.country.as_ref().map(CountryCode::to_string),
        metadata: Verbatim(person.metadata.clone()),
        kyc_status: customer.kyc.into(),
        created_at: instant(customer.created_at),
        updated_at: instant(customer.updated_at),
    }
}

pub(crate) fn deleted(gone: &Deleted) -> DeletedCustomerRecord {
    DeletedCustomerRecord {
        id: gone.id.to_string(),
        object: "customer",
        deleted: true,
        deleted_at: instant(gone.at),
    }
}

impl From<CreateCustomerRequest> for CustomerDraft {
    fn from(request: CreateCustomerRequest) -> Self {
        Self {
            email: request.email,
            external_id: request.external_id,
            phone: request.phone,
            first_name: request.first_name,
            last_name: request.last_name,
            country_code: request.country_code,
            metadata: request.metadata.map(RawJson::into_string),
        }
    }
}

impl From<UpdateCustomerRequest> for CustomerUpdate {
    fn from(request: UpdateCustomerRequest) -> Self {
        Self {
            first_name: request.first_name,
            last_name: request.last_name,
            country_code: request.country_code,
            metadata: match request.metadata {
                Change::Keep => Change::Keep,
                Change::Clear => Change::Clear,
                Change::Set(metadata) => Change::Set(metadata.into_string()),
            },
        }
    }
}
