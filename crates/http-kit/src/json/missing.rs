//! Reports all missing fields of a body in one response.
//!
//! Deserialization stops at the first missing field. So the body is read again, with a placeholder
//! for each field reported so far, until no field is missing.

use std::borrow::Cow;

use serde::de::{DeserializeOwned, Deserializer, Visitor};

use super::read::FieldError;
use super::scan::{self, Node, Value};
use crate::codes;
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

/// Reads a body that must be one strict JSON object, and which of its fields are unknown.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, UnknownFields), ApiError> {
    let mut unknown = UnknownFields::default();
    let mut missing: Vec<String> = Vec::new();
    loop {
        let node = scan::read_object(bytes)
            .map_err(|error| ApiError::new(codes::INVALID_JSON, error.to_string()))?;
        let read: Result<T, _> = serde_path_to_error::deserialize(Completed {
            node,
            missing: &missing,
            unknown: &mut unknown,
        });
        let error = match read {
            Ok(value) if missing.is_empty() => return Ok((value, unknown)),
            Ok(_) => break,
            Err(error) => {
                let path = error.path().clone();
                error.into_inner().within(&path)
            }
        };
        match error.missing_field() {
            Some(name) if missing.len() < MOST && !missing.iter().any(|known| known == name) => {
                missing.push(name.to_owned());
            }
            _ if missing.is_empty() => return Err(ApiError::invalid_request(error.to_string())),
            // The missing fields were found before this error.
            _ => break,
        }
    }
    let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
    Err(ApiError::invalid_request(unknown.explain(&missing)))
}

/// A body whose missing fields have stand-ins.
struct Completed<'de, 'c> {
    node: Node<'de>,
    missing: &'c [String],
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
        mut self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        if let Value::Object(members) = &mut self.node.value {
            let unknown = members.iter().map(|(key, _)| key);
            let unknown = unknown.filter(|key| !fields.contains(&key.as_ref()));
            self.unknown.0 = unknown.map(|key| key.clone().into_owned()).collect();
            members.retain(|(key, _)| !self.missing.iter().any(|name| name == key));
            let stand_ins = self.missing.iter().map(|name| {
                let (raw, value) = ("null", Value::StandIn);
                (Cow::Owned(name.clone()), Node { raw, value })
            });
            members.extend(stand_ins);
        }
        self.node.deserialize_struct(name, fields, visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
