//! Words of closed lists: bodies have them and the contract lists them as one type of a core does.

use std::fmt;

use serde::de::{Deserializer, EnumAccess, Error, VariantAccess, Visitor};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};

/// Declares the wire types of closed lists. A row documents a type and names the core's type that it wraps.
///
/// - `Name of Core;` has the words of `Core::ALL`.
/// - `Name of Core = words;` has these words.
/// - `Name of Core, read by parse;` is also in requests.
#[macro_export]
macro_rules! words {
    ($(#[doc = $about:literal] $name:ident of $core:ty $(= $words:expr)? $(, read by $parse:path)?;)+) => {$(
        #[doc = $about]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) struct $name(pub(crate) $core);

        impl $name {
            fn words() -> &'static [&'static str] {
                static WORDS: ::std::sync::LazyLock<Vec<&'static str>> = ::std::sync::LazyLock::new(
                    || $crate::words!(@list $core $(, $words)?).into_iter().collect(),
                );
                &WORDS
            }
        }

        impl From<$core> for $name {
            fn from(value: $core) -> Self {
                Self(value)
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.0.as_str())
            }
        }

        $(
            impl<'de> ::serde::Deserialize<'de> for $name {
                fn deserialize<D: ::serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                    $crate::read_word(reader, Self::words(), $parse).map(Self)
                }
            }
        )?

        impl ::utoipa::PartialSchema for $name {
            fn schema() -> ::utoipa::openapi::RefOr<::utoipa::openapi::Schema> {
                $crate::word_schema(Self::words(), $about)
            }
        }

        impl ::utoipa::ToSchema for $name {
            fn name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
        }
    )+};
    (@list $core:ty) => {
        <$core>::ALL.map(|value| value.as_str())
    };
    (@list $core:ty, $words:expr) => {
        $words
    };
}

/// The schema of a closed list.
#[must_use]
pub fn word_schema(words: &[&str], about: &str) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(about.trim()))
        .enum_values(Some(words.iter().copied()))
        .into()
}

/// Reads a word of a closed list. An error lists the words.
///
/// # Errors
/// The text is no word of the list.
pub fn read_word<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    words: &'static [&'static str],
    parse: fn(&str) -> Option<T>,
) -> Result<T, D::Error> {
    let reader = Reader { words, parse };
    deserializer.deserialize_enum("word", words, reader)
}

struct Reader<T> {
    words: &'static [&'static str],
    parse: fn(&str) -> Option<T>,
}

impl<'de, T> Visitor<'de> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<T, A::Error> {
        let (text, variant): (String, _) = data.variant()?;
        variant.unit_variant()?;
        (self.parse)(&text).ok_or_else(|| Error::unknown_variant(&text, self.words))
    }
}
