//! The requests to a verifier and its responses. The published contract is generated from these types.

mod form;

use gate_core::object::JsonObject;
use gate_core::ports::{VerificationOrder, VerificationStart};
use gate_core::verification::VerificationReport;
use gate_core::verification::form::Form;
use kernel::{Bound, Mode, Timestamp};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use url::{Host, Url};
use utoipa::ToSchema;

use crate::upstream::{Answer, Silence, optional, reference, word};

/// Maximum length of a reason, in characters.
const LONGEST_REASON: usize = 512;
/// Maximum length of a URL, in bytes.
const LONGEST_URL: usize = 2_048;

/// What is verified. It never changes under an id, and contains no personal data.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Verification {
    /// The amount of the session: a decimal string, never a number.
    #[schema(example = "100.00", pattern = "^[0-9]+(\\.[0-9]{1,8})?$")]
    amount: String,
    /// The currency of the amount.
    #[schema(example = "EUR")]
    currency: String,
    /// When the verification was made.
    #[schema(example = "2026-05-25T12:00:00.000Z", format = DateTime)]
    created_at: String,
}

impl Verification {
    pub(super) fn of(order: &VerificationOrder) -> Self {
        Self {
            amount: order.amount.as_str().to_owned(),
            currency: order.currency.code().to_owned(),
            created_at: order.created_at.to_string(),
        }
    }
}

/// The user's answers to the form.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Answers {
    /// The answers by field: a JSON object of at most 16 KiB. Each field is one of the form, every required field is present,
    /// and each answer is a string within `maxLength` and among `enum`. An optional field that the user left empty may be an
    /// empty string. Penstock does not store the answers.
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    answers: Box<RawValue>,
}

impl Answers {
    pub(super) fn of(answers: &JsonObject) -> Option<Self> {
        let answers = RawValue::from_string(answers.as_str().to_owned()).ok()?;
        Some(Self { answers })
    }
}

/// What a response says about a verification.
pub(super) trait Says: Answer {
    type Said;

    /// What the response says about a verification of this mode.
    fn said(self, mode: Mode) -> Result<Self::Said, Silence>;
}

/// A started verification: its state, and what the user must do.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct StartAnswer {
    /// The id in the path.
    #[schema(example = "ver_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    id: String,
    #[serde(deserialize_with = "word")]
    status: Status,
    /// Required for `rejected`: why, in words for the user, 1 to 512 characters without control characters.
    #[schema(example = "The document has expired.", max_length = 512)]
    #[serde(default, deserialize_with = "reason")]
    reason: Option<String>,
    /// The page that the user visits, at most 2048 bytes. Its scheme is `https`; in mode test, `http` is accepted for a loopback
    /// address or `localhost`.
    #[schema(example = "https://verifier.example/cases/8842", format = "uri")]
    #[serde(default, deserialize_with = "page")]
    url: Option<String>,
    /// The fields that the widget shows, or null.
    #[schema(value_type = Option<form::Form>)]
    #[serde(default, deserialize_with = "form")]
    form: Option<Form>,
    /// When `url` and `form` end: an RFC 3339 timestamp.
    #[schema(value_type = Option<String>, example = "2026-05-25T13:00:00Z", format = DateTime)]
    #[serde(default, deserialize_with = "instant")]
    expires_at: Option<Timestamp>,
    /// The verifier's own reference, 1 to 128 visible ASCII characters. Penstock stores it for the operator.
    #[schema(example = "case-8842", pattern = "^[!-~]{1,128}$")]
    #[serde(default, deserialize_with = "reference")]
    reference: Option<String>,
}

/// The state of a verification.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ReportAnswer {
    /// The id in the path.
    #[schema(example = "ver_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    id: String,
    #[serde(deserialize_with = "word")]
    status: Status,
    /// Required for `rejected`: why, in words for the user, 1 to 512 characters without control characters.
    #[schema(example = "The document has expired.", max_length = 512)]
    #[serde(default, deserialize_with = "reason")]
    reason: Option<String>,
}

/// `pending`: not decided, or not known yet. `approved` and `rejected` are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Pending,
    Approved,
    Rejected,
}

impl Answer for StartAnswer {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Says for StartAnswer {
    type Said = VerificationStart;

    fn said(self, mode: Mode) -> Result<VerificationStart, Silence> {
        let is_plain = self.url.as_ref().is_some_and(|it| it.starts_with("http:"));
        if mode == Mode::Live && is_plain {
            let plain = "the page of a live verification is not https";
            return Err(Silence::Contradiction(plain));
        }
        Ok(VerificationStart {
            report: self.status.report(self.reason)?,
            url: self.url,
            form: self.form,
            expires_at: self.expires_at,
            reference: self.reference,
        })
    }
}

impl Answer for ReportAnswer {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Says for ReportAnswer {
    type Said = VerificationReport;

    fn said(self, _: Mode) -> Result<VerificationReport, Silence> {
        self.status.report(self.reason)
    }
}

impl Status {
    /// The report of a status with its reason.
    fn report(self, reason: Option<String>) -> Result<VerificationReport, Silence> {
        Ok(match self {
            Self::Pending => VerificationReport::Pending,
            Self::Approved => VerificationReport::Approved,
            Self::Rejected if reason.is_none() => {
                return Err(Silence::Contradiction("the rejection has no reason"));
            }
            Self::Rejected => VerificationReport::Rejected { reason },
        })
    }
}

fn reason<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let expected = "`reason` is not 1 to 512 characters without control characters";
    optional(from, expected, |text| {
        let fits = (1..=LONGEST_REASON).contains(&text.chars().count());
        (fits && !text.chars().any(char::is_control)).then_some(text)
    })
}

fn instant<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    let expected = "`expires_at` is not an RFC 3339 timestamp";
    optional(from, expected, |text| {
        Timestamp::parse(&text, Bound::Upper).ok()
    })
}

fn page<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let expected = "`url` is not an https URL of at most 2048 bytes without credentials";
    optional(from, expected, |text| {
        let url = Url::parse(&text).ok()?;
        let safe = match url.scheme() {
            "https" => url.has_host(),
            "http" => is_loopback(&url),
            _ => false,
        };
        let bare = url.username().is_empty() && url.password().is_none();
        let text = String::from(url);
        (safe && bare && text.len() <= LONGEST_URL).then_some(text)
    })
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

fn form<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Form>, D::Error> {
    let Some(value) = Option::<Box<RawValue>>::deserialize(from)? else {
        return Ok(None);
    };
    let form = form::parse(value.get());
    form.map(Some)
        .ok_or_else(|| D::Error::custom("`form` is not a flat JSON Schema object of strings"))
}
