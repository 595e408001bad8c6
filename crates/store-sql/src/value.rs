//! Values that are bound to the parameters of a statement.

use kernel::{Id, IdKind, Mode, Timestamp, UpstreamName};
use partner_core::PartnerId;
use ulid::Ulid;

/// A value with its type. NULL has a type too, because Postgres takes the type of a parameter from the value.
#[derive(Debug, Clone, Copy)]
pub enum Value<'v> {
    Text(Option<&'v str>),
    Bytes(Option<&'v [u8]>),
    Int(Option<i64>),
    /// A number that Postgres stores as a `smallint`.
    Small(Option<i16>),
    Flag(Option<bool>),
    /// An id: a text on SQLite, a `uuid` on Postgres.
    Id(Option<Ulid>),
}

/// The values of a statement, in the order of its parameters.
#[macro_export]
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::Value::from($value)),*] };
}

/// `From` for a type, for a reference to it and for an `Option` of it.
macro_rules! from {
    ($($type:ty: $variant:ident($read:expr);)*) => { $(
        impl From<$type> for Value<'_> {
            fn from(value: $type) -> Self {
                Self::$variant(Some($read(value)))
            }
        }
        impl From<Option<$type>> for Value<'_> {
            fn from(value: Option<$type>) -> Self {
                Self::$variant(value.map($read))
            }
        }
    )* };
}

from! {
    i64: Int(|value| value);
    u32: Int(i64::from);
    i16: Small(|value| value);
    bool: Flag(|value| value);
    Timestamp: Int(Timestamp::millis);
    Mode: Text(Mode::as_str);
}

impl<'v> From<&'v str> for Value<'v> {
    fn from(text: &'v str) -> Self {
        Self::Text(Some(text))
    }
}

impl<'v> From<Option<&'v str>> for Value<'v> {
    fn from(text: Option<&'v str>) -> Self {
        Self::Text(text)
    }
}

impl<'v> From<&'v String> for Value<'v> {
    fn from(text: &'v String) -> Self {
        Self::Text(Some(text))
    }
}

impl<'v> From<&'v Option<String>> for Value<'v> {
    fn from(text: &'v Option<String>) -> Self {
        Self::Text(text.as_deref())
    }
}

impl<'v> From<&'v PartnerId> for Value<'v> {
    fn from(partner: &'v PartnerId) -> Self {
        Self::Text(Some(partner.as_str()))
    }
}

impl<'v> From<&'v UpstreamName> for Value<'v> {
    fn from(name: &'v UpstreamName) -> Self {
        Self::Text(Some(name.as_str()))
    }
}

impl<'v> From<&'v [u8]> for Value<'v> {
    fn from(bytes: &'v [u8]) -> Self {
        Self::Bytes(Some(bytes))
    }
}

impl<'v> From<Option<&'v [u8]>> for Value<'v> {
    fn from(bytes: Option<&'v [u8]>) -> Self {
        Self::Bytes(bytes)
    }
}

impl<K: IdKind> From<Id<K>> for Value<'_> {
    fn from(id: Id<K>) -> Self {
        Self::Id(Some(id.ulid()))
    }
}

/// An id of another mode than the tenant's is bound as NULL, which equals no id.
impl<K: IdKind> From<Option<Id<K>>> for Value<'_> {
    fn from(id: Option<Id<K>>) -> Self {
        Self::Id(id.map(|id| id.ulid()))
    }
}

impl From<Ulid> for Value<'_> {
    fn from(id: Ulid) -> Self {
        Self::Id(Some(id))
    }
}
