//! The form that a verifier asks the user to fill in: a flat JSON Schema object of strings. The published contract is generated
//! from these types, and a form that they do not describe invalidates the response.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use gate_core::object::JsonObject;
use gate_core::verification::form::{self, FieldFormat, FormField};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use crate::upstream::word;

/// The fields that the widget shows: a flat JSON Schema object of at most 16 KiB, without any other keyword.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Form {
    #[serde(rename = "type", deserialize_with = "word")]
    kind: FormType,
    /// At least one field by its name. The widget shows them in this order.
    #[schema(value_type = BTreeMap<String, Field>)]
    #[serde(deserialize_with = "fields")]
    properties: BTreeMap<String, Field>,
    /// The names of the fields that the user must fill in, each once.
    #[serde(default)]
    required: Vec<String>,
}

/// `object`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FormType {
    Object,
}

/// A field of the form. Its answer is a string.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Field {
    #[serde(rename = "type", deserialize_with = "word")]
    kind: FieldType,
    /// The label that the user sees; absent: the field's name.
    #[schema(value_type = String, required = false, example = "Date of birth")]
    #[serde(default, deserialize_with = "given")]
    title: Option<String>,
    /// Maximum length of the answer, in characters.
    #[schema(value_type = u64, required = false, minimum = 1)]
    #[serde(rename = "maxLength", default, deserialize_with = "given")]
    max_length: Option<u64>,
    /// The values that the user chooses from: at least one, each once.
    #[schema(value_type = Vec<String>, required = false, min_items = 1)]
    #[serde(rename = "enum", default, deserialize_with = "given")]
    choices: Option<Vec<String>>,
    /// The kind of text.
    #[schema(value_type = FieldKind, required = false)]
    #[serde(default, deserialize_with = "format")]
    format: Option<FieldKind>,
}

/// `string`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FieldType {
    String,
}

/// `date`: such as 1815-12-10. `email`: an email address.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FieldKind {
    Date,
    Email,
}

/// Parses a form. `None` if it is anything else than the contract says.
pub(crate) fn parse(text: &str) -> Option<form::Form> {
    let text = JsonObject::form(text).ok()?;
    let form: Form = serde_json::from_str(text.as_str()).ok()?;
    let fields = form.fields()?;
    Some(form::Form::new(text, fields))
}

impl Form {
    fn fields(self) -> Option<BTreeMap<String, FormField>> {
        let Self {
            kind: FormType::Object,
            properties,
            required,
        } = self;
        let mut fields = BTreeMap::new();
        for (name, field) in properties {
            fields.insert(name, field.field()?);
        }
        for name in required {
            let field = fields.get_mut(&name)?;
            if std::mem::replace(&mut field.required, true) {
                return None;
            }
        }
        (!fields.is_empty()).then_some(fields)
    }
}

impl Field {
    fn field(self) -> Option<FormField> {
        let Self {
            kind: FieldType::String,
            title,
            max_length,
            choices,
            format,
        } = self;
        let is_choice = choices.as_ref().is_none_or(|them| are_distinct(them));
        let fits = title != Some(String::new()) && max_length != Some(0) && is_choice;
        fits.then_some(FormField {
            max_length,
            choices,
            format: format.map(|kind| match kind {
                FieldKind::Date => FieldFormat::Date,
                FieldKind::Email => FieldFormat::Email,
            }),
            required: false,
        })
    }
}

/// Whether there is at least one text, and none twice.
fn are_distinct(texts: &[String]) -> bool {
    let distinct: std::collections::BTreeSet<&String> = texts.iter().collect();
    !texts.is_empty() && distinct.len() == texts.len()
}

/// Parses a keyword that may be absent, but not null.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

fn format<'de, D: Deserializer<'de>>(from: D) -> Result<Option<FieldKind>, D::Error> {
    word(from).map(Some)
}

/// Parses the fields. A name that is given twice is refused, because two readers could choose different fields.
fn fields<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Field>, D::Error> {
    struct Fields;

    impl<'de> Visitor<'de> for Fields {
        type Value = BTreeMap<String, Field>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("fields by name")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut fields = BTreeMap::new();
            while let Some((name, field)) = map.next_entry::<String, Field>()? {
                match fields.entry(name) {
                    Entry::Vacant(place) => place.insert(field),
                    Entry::Occupied(_) => return Err(A::Error::custom("a field twice")),
                };
            }
            Ok(fields)
        }
    }

    from.deserialize_map(Fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A form with this text of its properties.
    fn of(properties: &str) -> String {
        format!(r#"{{"type":"object","properties":{properties}}}"#)
    }

    /// A form with one field `a` that has these further keywords.
    fn field(keywords: &str) -> String {
        of(&format!(r#"{{"a":{{"type":"string"{keywords}}}}}"#))
    }

    // rule: verifier.http.form
    #[test]
    fn flat_form_of_strings_is_parsed_with_its_limits() {
        let text = r#"{"type":"object","properties":{
            "born":{"type":"string","title":"Date of birth","format":"date"},
            "mail":{"type":"string","format":"email","maxLength":90},
            "country":{"type":"string","enum":["DE","FR"]}},"required":["born"]}"#;
        let parsed = parse(text).unwrap();
        let empty = FormField::default;
        let expected = [
            (
                "born",
                FormField {
                    format: Some(FieldFormat::Date),
                    required: true,
                    ..empty()
                },
            ),
            (
                "mail",
                FormField {
                    format: Some(FieldFormat::Email),
                    max_length: Some(90),
                    ..empty()
                },
            ),
            (
                "country",
                FormField {
                    choices: Some(vec!["DE".to_owned(), "FR".to_owned()]),
                    ..empty()
                },
            ),
        ];
        let expected = expected.map(|(name, field)| (name.to_owned(), field));
        let text = JsonObject::form(text).unwrap();
        assert_eq!(parsed, form::Form::new(text, BTreeMap::from(expected)));
    }

    // rule: verifier.http.form
    #[test]
    fn form_of_any_other_shape_is_refused() {
        let long = "x".repeat(17_000);
        for good in [
            field(""),
            field(r#","maxLength":1"#),
            field(r#","enum":[""]"#),
        ] {
            assert!(parse(&good).is_some(), "{good}");
        }
        let good = of(r#"{"a":{"type":"string"}}"#);
        for bad in [
            r#"{"type":"object"}"#.to_owned(),
            r#"{"properties":{"a":{"type":"string"}}}"#.to_owned(),
            of("{}"),
            of(r#"[["a",{"type":"string"}]]"#),
            of(r#"{"a":{}}"#),
            of(r#"{"a":true}"#),
            of(r#"{"a":{"type":"string"},"a":{"type":"string"}}"#),
            of(r#"{"a":{"type":"object","properties":{}}}"#),
            of(r#"{"a":{"type":["string"]}}"#),
            of(r#"{"a":{"type":{"string":null}}}"#),
            of(r#"{"a":{"type":"number"}}"#),
            good.replace("object", "array"),
            good.replace("}}}", r#"}},"required":["b"]}"#),
            good.replace("}}}", r#"}},"required":["a","a"]}"#),
            good.replace("}}}", r#"}},"required":"a"}"#),
            good.replace("}}}", r#"}},"required":null}"#),
            good.replace("}}}", r#"}},"additionalProperties":false}"#),
            good.replace("}}}", r#"}},"$schema":"x"}"#),
            field(r#","title":null"#),
            field(r#","title":"""#),
            field(r#","title":1"#),
            field(r#","maxLength":0"#),
            field(r#","maxLength":1.5"#),
            field(r#","maxLength":-1"#),
            field(r#","maxLength":"9""#),
            field(r#","maxLength":null"#),
            field(r#","enum":[]"#),
            field(r#","enum":["a","a"]"#),
            field(r#","enum":[1]"#),
            field(r#","enum":null"#),
            field(r#","format":"date-time""#),
            field(r#","format":null"#),
            field(r#","pattern":"^a$""#),
            field(r#","minLength":1"#),
            field(r#","default":"a""#),
            field(&format!(r#","title":"{long}""#)),
            "[]".to_owned(),
            "{}".to_owned(),
            "\"x\"".to_owned(),
        ] {
            assert_eq!(parse(&bad), None, "{bad:.120}");
        }
    }
}
