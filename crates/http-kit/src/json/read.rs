//! Reads a JSON tree into a request's fields. An error names the field and what was expected of it.
//!
//! `serde_json` reports an error as a sentence about Rust types. Here an error is a path, which `serde_path_to_error` tracks, and an
//! expectation, and becomes one sentence for the client.

use std::borrow::Cow;
use std::fmt;
use std::iter::{self, Empty};

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{self, Deserializer, Error as _, Expected, IntoDeserializer, Unexpected, Visitor};
use serde_path_to_error::{Path, Segment};

use super::scan::{Node, Value};

/// The type name with which [`super::RawJson`] requests the text of a value.
pub(super) const RAW: &str = "$http_kit::RawJson";

/// Which field could not be read, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldError {
    /// Empty for the body itself.
    field: String,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Missing,
    Expected(Cow<'static, str>),
    Other(String),
}

impl FieldError {
    fn expected(what: impl Into<Cow<'static, str>>) -> Self {
        Self {
            field: String::new(),
            what: What::Expected(what.into()),
        }
    }

    /// Puts the path of the value that could not be read before the field.
    pub(super) fn within(self, path: &Path) -> Self {
        let mut field = String::new();
        for segment in path {
            match segment {
                Segment::Seq { index } => field.push_str(&format!("[{index}]")),
                Segment::Map { key } => push_key(&mut field, key),
                Segment::Enum { .. } | Segment::Unknown => {}
            }
        }
        if !self.field.is_empty() {
            push_key(&mut field, &self.field);
        }
        Self { field, ..self }
    }

    fn is_amount(&self) -> bool {
        self.field.rsplit('.').next() == Some("amount")
    }

    /// The body's own field that is missing, if that is the error.
    pub(super) fn missing_field(&self) -> Option<&str> {
        let own = !self.field.is_empty() && !self.field.contains(['.', '[']);
        (self.what == What::Missing && own).then_some(self.field.as_str())
    }
}

/// Appends a key to a path. A key of a free map is the client's own text, so it is cut before it is echoed.
fn push_key(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.extend(key.chars().take(64));
}

/// What a text is expected to be. A number in its place is a usual mistake for an amount, so that error shows an example.
const STRING: &str = "a string";
const AMOUNT: &str = "a string such as \"100.00\"";

/// Names in quotes, with commas between them.
fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.field.is_empty() {
            Cow::Borrowed("The body")
        } else {
            Cow::Owned(format!("`{}`", self.field))
        };
        match &self.what {
            What::Missing => write!(f, "{path} is required."),
            What::Expected(expected) if expected == STRING && self.is_amount() => {
                write!(f, "{path} must be {AMOUNT}.")
            }
            What::Expected(expected) => write!(f, "{path} must be {expected}."),
            What::Other(text) => write!(f, "{path}: {text}."),
        }
    }
}

impl std::error::Error for FieldError {}

impl de::Error for FieldError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            field: String::new(),
            what: What::Other(message.to_string().trim_end_matches('.').to_owned()),
        }
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::expected(expected.to_string())
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::expected(expected.to_string())
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self::expected(expected.to_string())
    }

    fn unknown_variant(_: &str, values: &'static [&'static str]) -> Self {
        Self::expected(format!("one of {}", listed(values)))
    }

    /// The path has the field already, because it ends with the key that was read.
    fn unknown_field(_: &str, accepted: &'static [&'static str]) -> Self {
        let accepted = listed(accepted);
        Self::custom(format!(
            "this field is not accepted here; the accepted fields are {accepted}"
        ))
    }

    fn missing_field(field: &'static str) -> Self {
        Self {
            field: field.to_owned(),
            what: What::Missing,
        }
    }

    fn duplicate_field(field: &'static str) -> Self {
        let field = field.to_owned();
        let twice = Self::custom("this field stands twice");
        Self { field, ..twice }
    }
}

impl Node<'_> {
    /// A `null` where a value is required is reported as a missing field.
    fn mismatch(&self, expected: &'static str) -> FieldError {
        match self.value {
            Value::Null => FieldError {
                field: String::new(),
                what: What::Missing,
            },
            _ => FieldError::expected(expected),
        }
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
            match self.value {
                Value::Number => match self.raw.parse::<$type>() {
                    Ok(number) => visitor.$visit(number),
                    Err(_) => Err(FieldError::expected(format!(
                        "an integer from {} to {}",
                        <$type>::MIN,
                        <$type>::MAX
                    ))),
                },
                Value::StandIn => visitor.$visit(0),
                _ => Err(self.mismatch("an integer")),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = FieldError;

    /// Deserializes whole numbers only. Other numbers need [`super::RawJson`].
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number => {
                if let Ok(number) = self.raw.parse() {
                    visitor.visit_u64(number)
                } else if let Ok(number) = self.raw.parse() {
                    visitor.visit_i64(number)
                } else {
                    Err(FieldError::invalid_type(
                        Unexpected::Other("number"),
                        &visitor,
                    ))
                }
            }
            Value::Text(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Value::Text(Cow::Owned(text)) => visitor.visit_string(text),
            Value::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.into_iter())),
            Value::Object(members) => visitor.visit_map(MapDeserializer::new(members.into_iter())),
            Value::StandIn => visitor.visit_borrowed_str(""),
        }
    }

    integers! {
        deserialize_i8 visit_i8 i8,
        deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64,
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.value {
            Value::Bool(value) => visitor.visit_bool(value),
            Value::StandIn => visitor.visit_bool(false),
            _ => Err(self.mismatch("a boolean")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.value {
            Value::Text(_) | Value::StandIn => self.deserialize_any(visitor),
            _ => Err(self.mismatch(STRING)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.value {
            Value::Null | Value::StandIn => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        if name == RAW {
            visitor.visit_borrowed_str(self.raw)
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.value {
            Value::Array(_) => self.deserialize_any(visitor),
            Value::StandIn => visitor.visit_seq(NoItems::new(iter::empty())),
            _ => Err(self.mismatch("an array")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.value {
            Value::Object(_) => self.deserialize_any(visitor),
            Value::StandIn => visitor.visit_map(NoMembers::new(iter::empty())),
            _ => Err(self.mismatch("an object")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        values: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        let value = match &self.value {
            Value::Text(value) => value.as_ref(),
            Value::StandIn => values.first().copied().unwrap_or_default(),
            _ => return Err(self.mismatch(STRING)),
        };
        let value: StrDeserializer<'_, FieldError> = value.into_deserializer();
        visitor.visit_enum(value)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct
    }
}

impl<'de> IntoDeserializer<'de, FieldError> for Node<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

type NoItems<'de> = SeqDeserializer<Empty<Node<'de>>, FieldError>;
type NoMembers<'de> = MapDeserializer<'de, Empty<(&'de str, Node<'de>)>, FieldError>;
