//! Constraints on requests that the macros cannot express.

use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{Object, ObjectBuilder, OneOf, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};

const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// Tightens the constraints of one operation.
pub(super) fn sharpen(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(parameter) = parameter else {
            continue;
        };
        if parameter.name == IDEMPOTENCY_KEY {
            parameter.schema = Some(idempotency_key());
        } else if let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema {
            never_null(schema);
        }
    }
    let Some(RefOr::T(body)) = &mut operation.request_body else {
        return;
    };
    for content in body.content.values_mut() {
        if let RefOr::T(content) = content
            && let Some(RefOr::T(Schema::OneOf(OneOf { items, .. }))) = &content.schema
        {
            // An optional body may be absent but not null.
            content.schema = items.iter().find(|it| matches!(it, RefOr::Ref(_))).cloned();
        }
    }
}

/// A header or a query parameter may be absent but not null.
fn never_null(schema: &mut Object) {
    if let SchemaType::Array(kinds) = &mut schema.schema_type {
        kinds.retain(|kind| *kind != Type::Null);
    }
    if let SchemaType::Array(kinds) = &schema.schema_type
        && let [only] = kinds.as_slice()
    {
        schema.schema_type = SchemaType::Type(only.clone());
    }
}

fn idempotency_key() -> RefOr<Schema> {
    let schema = ObjectBuilder::new()
        .schema_type(Type::String)
        // 1 to 255 visible ASCII characters, bare or as a quoted string.
        .pattern(Some(r#"^("[!-~]{1,255}"|[!#-~][!-~]{0,254})$"#))
        .build();
    RefOr::T(Schema::Object(schema))
}
