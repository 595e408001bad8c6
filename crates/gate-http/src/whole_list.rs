//! Lists without pages, such as those of the catalogue.

use std::borrow::Cow;

use axum::Json;
use serde::Serialize;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// A list without further pages.
#[derive(Debug, Serialize)]
pub(crate) struct WholeList<T> {
    object: &'static str,
    data: Vec<T>,
    has_more: bool,
    url: &'static str,
}

impl<T> WholeList<T> {
    pub(crate) fn of(url: &'static str, data: impl Iterator<Item = T>) -> Json<Self> {
        Json(Self {
            object: "list",
            data: data.collect(),
            has_more: false,
            url,
        })
    }
}

/// Names the schema `CountryList` with a reference to `Country`. The macros would name it
/// `WholeList_Country` and repeat the schema of the items, which makes generated clients awkward.
impl<T: ToSchema> ToSchema for WholeList<T> {
    fn name() -> Cow<'static, str> {
        format!("{}List", T::name()).into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}

impl<T: ToSchema> PartialSchema for WholeList<T> {
    fn schema() -> RefOr<Schema> {
        let field = |kind, about| {
            ObjectBuilder::new()
                .schema_type(kind)
                .description(Some(about))
        };
        let items = ArrayBuilder::new()
            .items(Ref::from_schema_name(T::name()))
            .description(Some("Everything."));
        let object = ObjectBuilder::new()
            .description(Some("A complete list without further pages."))
            .property("object", field(Type::String, "`list`").examples(["list"]))
            .property("data", items)
            .property("has_more", field(Type::Boolean, "False.").examples([false]))
            .property("url", field(Type::String, "The path of the list."));
        let fields = ["object", "data", "has_more", "url"];
        let object = fields.into_iter().fold(object, ObjectBuilder::required);
        RefOr::T(Schema::Object(object.build()))
    }
}
