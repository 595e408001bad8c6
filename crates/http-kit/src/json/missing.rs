//! Reports all missing fields of a body in one response.
//!
//! Deserialization stops at the first missing field. So the body is read again, with a placeholder
//! for each field reported so far, until no field is missing.

use std::borrow::Cow;

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor,
};

use super::read::{FieldError, Members, RAW};
use super::scan::{self, Node, Value};
use crate::error::ApiError;

/// The largest number of missing fields that are reported.
const MOST: usize = 32;

/// Fields of a body that its route does not read. They are ignored, but one of them may be the
/// misspelled name of a missing field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnknownFields(Vec<String>);

impl UnknownFields {
    /// The message for missing fields. It names all of them and suggests corrections of misspelled
    /// names.
    #[must_use]
    pub fn explain(&self, missing: &[&str]) -> String {
        let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
        let mut message = match names.as_slice() {
            [only] => format!("{only} is required."),
            [first @ .., last] => format!("{} and {last} are required.", first.join(", ")),
            [] => String::new(),
        };
        for name in missing {
            if let Some(sent) = self.0.iter().find(|sent| is_near(sent, name)) {
                message.push_str(&format!(
                    " `{sent}` is no field of this request: did you mean `{name}`?"
                ));
            }
        }
        message
    }
}

/// Whether a name is a likely misspelling of a known name: other case or word separators, or one or
/// two wrong letters.
fn is_near(sent: &str, known: &str) -> bool {
    let folded = |name: &str| -> String {
        let letters = name.chars().filter(|letter| !matches!(letter, '_' | '-'));
        letters.flat_map(char::to_lowercase).collect()
    };
    if sent.len() > known.len() + 8 {
        return false;
    }
    let slips = if known.len() < 6 { 1 } else { 2 };
    strsim::damerau_levenshtein(&folded(sent), &folded(known)) <= slips
}

/// Reads a body that must be one strict JSON object, and collects its unknown fields.
///
/// # Errors
/// As [`super::parse`].
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, UnknownFields), ApiError> {
    let mut unknown = UnknownFields::default();
    let mut missing: Vec<String> = Vec::new();
    loop {
        let node = scan::read_object(bytes)
            .map_err(|fault| ApiError::invalid("invalid_json", fault.to_string()))?;
        let read = T::deserialize(Completed {
            node,
            stand_ins: &missing,
            unknown: &mut unknown,
        });
        let fault = match read {
            Ok(value) if missing.is_empty() => return Ok((value, unknown)),
            Ok(_) => break,
            Err(fault) => fault,
        };
        match fault.missing_field() {
            Some(name) if missing.len() < MOST && !missing.iter().any(|known| known == name) => {
                missing.push(name.to_owned());
            }
            _ if missing.is_empty() => return Err(ApiError::invalid_request(fault.to_string())),
            // Reports the missing fields found so far instead of this later error.
            _ => break,
        }
    }
    let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
    Err(ApiError::invalid_request(unknown.explain(&missing)))
}

/// A body with placeholders for some of its fields.
struct Completed<'de, 'c> {
    node: Node<'de>,
    stand_ins: &'c [String],
    unknown: &'c mut UnknownFields,
}

impl<'de> Deserializer<'de> for Completed<'de, '_> {
    type Error = FieldError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.node.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        self.node.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        let Value::Object(mut members) = self.node.value else {
            return self.node.deserialize_any(visitor);
        };
        let is_unknown = |key: &&Cow<'_, str>| !fields.contains(&key.as_ref());
        let unknown = members.iter().map(|(key, _)| key).filter(is_unknown);
        self.unknown.0 = unknown.map(|key| key.clone().into_owned()).collect();
        members.retain(|(key, _)| !self.stand_ins.iter().any(|name| name == key));
        visitor.visit_map(CompletedMembers {
            members: Members::new(members),
            stand_ins: self.stand_ins.iter(),
            is_stand_in: false,
        })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct CompletedMembers<'de, 'c> {
    members: Members<'de>,
    stand_ins: std::slice::Iter<'c, String>,
    is_stand_in: bool,
}

impl<'de> MapAccess<'de> for CompletedMembers<'de, '_> {
    type Error = FieldError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, FieldError> {
        if !self.members.is_empty() {
            return self.members.next_key_seed(seed);
        }
        self.is_stand_in = true;
        let Some(name) = self.stand_ins.next() else {
            return Ok(None);
        };
        let name: StrDeserializer<'_, FieldError> = name.as_str().into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, FieldError> {
        if self.is_stand_in {
            seed.deserialize(StandIn)
        } else {
            self.members.next_value_seed(seed)
        }
    }
}

/// A placeholder value for any type: empty, zero, or the first allowed value.
struct StandIn;

macro_rules! zeros {
    ($($method:ident $visit:ident,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
            visitor.$visit(0)
        }
    )*};
}

impl<'de> Deserializer<'de> for StandIn {
    type Error = FieldError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_str("")
    }

    zeros! {
        deserialize_i8 visit_i8,
        deserialize_i16 visit_i16,
        deserialize_i32 visit_i32,
        deserialize_i64 visit_i64,
        deserialize_u8 visit_u8,
        deserialize_u16 visit_u16,
        deserialize_u32 visit_u32,
        deserialize_u64 visit_u64,
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_bool(false)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_none()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        if name == RAW {
            visitor.visit_borrowed_str("null")
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_seq(SeqDeserializer::new(std::iter::empty::<String>()))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_map(MapDeserializer::new(std::iter::empty::<(String, String)>()))
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
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        let word = words.first().copied().unwrap_or_default();
        let word: StrDeserializer<'_, FieldError> = word.into_deserializer();
        visitor.visit_enum(word)
    }

    serde::forward_to_deserialize_any! {
        i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple tuple_struct
        identifier ignored_any
    }
}
