//! Wire shapes that several resources share, and how domain values are written.

use axum::http::{HeaderMap, HeaderName};
use gate_core::change::Change;
use gate_core::object::JsonObject;
use gate_core::pricing::Fees;
use kernel::Timestamp;
use kernel::rates;
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

/// What a header says. One that is repeated, or is no text, says nothing that means anything.
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

/// Which way an order goes.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents the words; values are written from the domain's own type"
)]
pub(crate) enum Side {
    OnRamp,
    OffRamp,
}

/// The same in a request.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SideWord {
    OnRamp,
    OffRamp,
}

impl From<SideWord> for rates::Side {
    fn from(word: SideWord) -> Self {
        match word {
            SideWord::OnRamp => Self::OnRamp,
            SideWord::OffRamp => Self::OffRamp,
        }
    }
}

/// What an order costs, in its currency.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Fees)]
pub(crate) struct FeesRecord {
    /// Both together.
    #[schema(example = "1.50")]
    total: String,
    /// For the service.
    #[schema(example = "0.50")]
    service: String,
    /// For the network.
    #[schema(example = "1.00")]
    network: String,
    /// The currency of all three.
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
