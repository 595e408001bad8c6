//! What the published events of the gate share.

use std::sync::LazyLock;

use gate_core::events::TEST_EVENT;
use serde_json::{Value, json};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{Ref, RefOr, Schema};

use crate::api::EXAMPLES;

/// The description of the type of an event that is one of several.
pub(crate) const ANY_TYPE: &str = "The event's type.";

/// An event of a type, with a sample id and instant.
pub(crate) fn envelope(kind: &str, data: &Value) -> Value {
    json!({
        "id": "0b8f6f0e-2f5d-4c39-9d6c-6c1a1f0f7a11",
        "object": "event",
        "type": kind,
        "created_at": "2026-05-25T12:00:00.000Z",
        "data": data,
    })
}

/// The recorded exchanges, by operation.
static RECORDED: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(EXAMPLES).unwrap_or_default());

/// The recorded response of an operation, with some fields changed or added.
pub(crate) fn recorded(operation: &str, changes: Value) -> Value {
    let exchange = RECORDED.get(operation);
    let response = exchange.and_then(|exchange| exchange.get("response"));
    let mut object = response.cloned().unwrap_or_default();
    if let (Some(fields), Value::Object(changes)) = (object.as_object_mut(), changes) {
        fields.extend(changes);
    }
    object
}

/// The schema of an event's body, with its name. `types` describes its type, of which `sample` is one.
pub(crate) fn body(
    (name, about): (&'static str, &str),
    (types, sample): (&str, &str),
    (data, meaning): (&str, &str),
) -> (&'static str, RefOr<Schema>) {
    let (id, at) = if sample == TEST_EVENT {
        ("The event's id, a UUID.", "When it was sent.")
    } else {
        (
            "The event's id, a UUID. Deliveries can repeat, so handle each id once.",
            "When it happened.",
        )
    };
    let instant = SchemaFormat::KnownFormat(KnownFormat::DateTime);
    let mut data = Ref::from_schema_name(data);
    data.description = meaning.to_owned();
    let object = ObjectBuilder::new()
        .description(Some(about))
        .property("id", field(Type::String, id, None))
        .property("object", field(Type::String, "`event`", Some("event")))
        .property("type", field(Type::String, types, Some(sample)))
        .property(
            "created_at",
            field(Type::String, at, None).format(Some(instant)),
        )
        .property("data", data);
    let fields = ["id", "object", "type", "created_at", "data"];
    let object = fields.into_iter().fold(object, ObjectBuilder::required);
    (name, RefOr::T(Schema::Object(object.build())))
}

#[expect(
    deprecated,
    reason = "the other fields of the document have this attribute too"
)]
fn field(kind: Type, about: &str, sample: Option<&str>) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(kind)
        .description(Some(about))
        .example(sample.map(Into::into))
}
