//! JSON shapes that several resources share, and the text form of domain values.

use axum::http::{HeaderMap, HeaderName};
use gate_core::change::Change;
use gate_core::object::JsonObject;
use gate_core::pricing::Fees;
use http_kit::{ApiError, Query};
use kernel::{Bound, Timestamp};
use partner_core::page::CreatedRange;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// The page size of a list, from its `limit`.
pub(crate) fn page_size(query: &Query) -> Result<u32, ApiError> {
    Ok(query.integer("limit", 1..=100)?.unwrap_or(10))
}

/// The range of creation instants that a list is limited to. An instant between two milliseconds is rounded down in both bounds.
pub(crate) fn created(query: &Query) -> Result<CreatedRange, ApiError> {
    Ok(CreatedRange {
        after: query.instant("created_after", Bound::Upper)?,
        before: query.instant("created_before", Bound::Upper)?,
    })
}

/// The value of a header; empty if the header is repeated or is not text.
pub(crate) fn only_header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    let only = values.next().is_none();
    Some(first.to_str().ok().filter(|_| only).unwrap_or_default())
}

/// An instant as RFC 3339 in UTC with milliseconds.
pub(crate) fn instant(at: Timestamp) -> String {
    at.to_string()
}

/// Deserializes a field that is present in an update. Null clears it.
pub(crate) fn change<'de, T, D>(deserializer: D) -> Result<Change<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let value = Option::<T>::deserialize(deserializer)?;
    Ok(value.map_or(Change::Clear, Change::Set))
}

/// A partner's own JSON object, written unchanged: numbers keep every digit.
#[derive(Debug, Clone)]
pub(crate) struct Verbatim(pub(crate) JsonObject);

impl Serialize for Verbatim {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.0.as_str()).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// The fees of an order, in its currency.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Fees)]
pub(crate) struct FeesRecord {
    /// The sum of both fees.
    #[schema(example = "1.50")]
    total: String,
    /// The fee for the service.
    #[schema(example = "0.50")]
    service: String,
    /// The fee for the network.
    #[schema(example = "1.00")]
    network: String,
    /// The currency of all fees.
    #[schema(example = "EUR")]
    currency: String,
}

impl FeesRecord {
    pub(crate) fn of(fees: &Fees) -> Self {
        Self {
            total: fees.total.to_string(),
            service: fees.service.to_string(),
            network: fees.network.to_string(),
            currency: fees.total.asset().code().to_owned(),
        }
    }
}
