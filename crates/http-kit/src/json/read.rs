//! Deserializes scanned JSON into a request's fields, with errors that name the field.
//!
//! The errors of `serde_json` describe Rust types. An error here is a path and an expected value,
//! which form one sentence for the client.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, Error as _, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, Visitor,
};

use super::scan::{Node, Value};

/// The type name with which [`super::RawJson`] requests the text of a value.
pub(super) const RAW: &str = "$http_kit::RawJson";

/// The path of an invalid field, and the error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldError {
    path: String,
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
            path: String::new(),
            what: What::Expected(what.into()),
        }
    }

    fn at_key(mut self, key: &str) -> Self {
        // The client chose the key of a map, so the key is truncated before it is echoed.
        let mut path: String = key.chars().take(64).collect();
        if !self.path.is_empty() && !self.path.starts_with('[') {
            path.push('.');
        }
        path.push_str(&self.path);
        self.path = path;
        self
    }

    fn at_index(mut self, index: usize) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
        self.path = format!("[{index}]{dot}{}", self.path);
        self
    }
}

impl FieldError {
    /// The name of a missing top-level field, if that is the error.
    pub(super) fn missing_field(&self) -> Option<&str> {
        let own = !self.path.is_empty() && !self.path.contains(['.', '[']);
        (self.what == What::Missing && own).then_some(self.path.as_str())
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() {
            Cow::Borrowed("The body")
        } else {
            Cow::Owned(format!("`{}`", self.path))
        };
        match &self.what {
            What::Missing => write!(f, "{path} is required."),
            What::Expected(expected) => write!(f, "{path} must be {expected}."),
            What::Other(text) => write!(f, "{path}: {text}."),
        }
    }
}

impl std::error::Error for FieldError {}

impl de::Error for FieldError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            path: String::new(),
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

    fn unknown_variant(_: &str, words: &'static [&'static str]) -> Self {
        let list: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        Self::expected(format!("one of {}", list.join(", ")))
    }

    fn unknown_field(field: &str, _: &'static [&'static str]) -> Self {
        Self::custom("this field is not accepted here").at_key(field)
    }

    fn missing_field(field: &'static str) -> Self {
        Self {
            path: field.to_owned(),
            what: What::Missing,
        }
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::custom("this field stands twice").at_key(field)
    }
}

impl Node<'_> {
    /// A `null` where a value is required is reported as a missing field.
    fn mismatch(&self, expected: &'static str) -> FieldError {
        match self.value {
            Value::Null => FieldError {
                path: String::new(),
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
            Value::Array(items) => visitor.visit_seq(Items {
                items: items.into_iter().enumerate(),
            }),
            Value::Object(members) => visitor.visit_map(Members::new(members)),
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
            _ => Err(self.mismatch("a boolean")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.value {
            Value::Text(_) => self.deserialize_any(visitor),
            _ => Err(self.mismatch("a string")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.value {
            Value::Null => visitor.visit_none(),
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
            _ => Err(self.mismatch("an array")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.value {
            Value::Object(_) => self.deserialize_any(visitor),
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
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        match &self.value {
            Value::Text(word) => {
                let word: StrDeserializer<'_, FieldError> = word.as_ref().into_deserializer();
                visitor.visit_enum(word)
            }
            _ => Err(self.mismatch("a string")),
        }
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

struct Items<'de> {
    items: std::iter::Enumerate<std::vec::IntoIter<Node<'de>>>,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = FieldError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, FieldError> {
        let Some((index, node)) = self.items.next() else {
            return Ok(None);
        };
        let read = seed.deserialize(node);
        read.map(Some).map_err(|fault| fault.at_index(index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

type Member<'de> = (Cow<'de, str>, Node<'de>);

pub(super) struct Members<'de> {
    members: std::vec::IntoIter<Member<'de>>,
    value: Option<Member<'de>>,
}

impl<'de> Members<'de> {
    pub(super) fn new(members: Vec<Member<'de>>) -> Self {
        Self {
            members: members.into_iter(),
            value: None,
        }
    }

    /// Whether every key has been read.
    pub(super) fn is_empty(&self) -> bool {
        self.members.len() == 0
    }
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = FieldError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, FieldError> {
        let Some((key, node)) = self.members.next() else {
            return Ok(None);
        };
        let read = match &key {
            Cow::Borrowed(key) => seed.deserialize(de::value::BorrowedStrDeserializer::new(key)),
            Cow::Owned(key) => {
                let key: StrDeserializer<'_, FieldError> = key.as_str().into_deserializer();
                seed.deserialize(key)
            }
        };
        self.value = Some((key, node));
        read.map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, FieldError> {
        let Some((key, node)) = self.value.take() else {
            return Err(FieldError::custom("a value was asked for before its key"));
        };
        let read = seed.deserialize(node);
        read.map_err(|fault| fault.at_key(&key))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.members.len())
    }
}
