//! The parts that the published contracts of upstreams are built from.

use utoipa::ToSchema;
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Required, Response, ResponseBuilder};

const JSON: &str = "application/json";

/// A request body of this schema.
pub(crate) fn body_of<T: ToSchema>() -> RequestBody {
    RequestBodyBuilder::new()
        .content(
            JSON,
            ContentBuilder::new().schema(Some(refer::<T>())).build(),
        )
        .required(Some(Required::True))
        .build()
}

/// A response of this schema.
pub(crate) fn response_of<T: ToSchema>() -> Response {
    ResponseBuilder::new()
        .description("The response")
        .content(
            JSON,
            ContentBuilder::new().schema(Some(refer::<T>())).build(),
        )
        .build()
}

fn refer<T: ToSchema>() -> Ref {
    Ref::from_schema_name(T::name())
}

/// Adds a schema and every schema that it uses.
pub(crate) fn take<T: ToSchema>(into: &mut Vec<(String, RefOr<Schema>)>) {
    into.push((T::name().into_owned(), T::schema()));
    T::schemas(into);
}
