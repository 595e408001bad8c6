//! Wire shapes that several resources share, and how domain values are written.

use gate_core::change::Change;
use gate_core::object::JsonObject;
use kernel::Timestamp;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// The most items of a page.
pub(crate) const LONGEST_PAGE: i64 = 100;
/// The items of a page where no number is asked for.
const PAGE: u32 = 10;

/// The `limit` of a list as it was asked for.
pub(crate) fn page_size(asked: Option<i64>) -> u32 {
    asked
        .and_then(|limit| u32::try_from(limit).ok())
        .unwrap_or(PAGE)
}

/// An instant as RFC 3339 in UTC with milliseconds.
pub(crate) fn instant(at: Timestamp) -> String {
    at.to_string()
}

/// A field of an update that stands in the body: null clears it.
pub(crate) fn change<'de, T, D>(deserializer: D) -> Result<Change<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let value = Option::<T>::deserialize(deserializer)?;
    Ok(value.map_or(Change::Clear, Change::Set))
}

/// A partner's own object, written as it was kept: its numbers keep every digit.
#[derive(Debug, Clone)]
pub(crate) struct Verbatim(pub(crate) JsonObject);

impl Serialize for Verbatim {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.0.as_str()).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Which way value goes.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents the words; values are written from the domain's own type"
)]
pub(crate) enum Flow {
    OnRamp,
    OffRamp,
    Swap,
}

/// Which data is real.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents the words; values are written from the domain's own type"
)]
pub(crate) enum Mode {
    Test,
    Live,
}
