//! The requests to a rail and its responses. The published contract is generated from these types.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use gate_core::ports::{CancelReport, RailOrder};
use gate_core::rail::{FailureReason, Instructions, RailKind, RailReport, Receipt, Reported};
use kernel::{Amount, AmountError, Bound, Timestamp};
use serde::de::value::StringDeserializer;
use serde::de::{Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::upstream::{Answer, optional, reference, word};

/// Maximum number of instructions.
const MOST_INSTRUCTIONS: usize = 32;
/// Maximum length of an instruction's text, in characters.
const LONGEST_TEXT: usize = 512;
/// Maximum length of a code or of an instruction's name, in characters.
const LONGEST_CODE: usize = 64;
const CODE_PATTERN: &str = "^[a-z0-9_]{1,64}$";
const TEXT_PATTERN: &str = "^[^\\x00-\\x1f\\x7f-\\x9f]*$";

/// The terms of a payment. They never change under an id.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Payment {
    kind: PaymentKind,
    /// The currency of the fiat.
    #[schema(example = "EUR")]
    currency: String,
    /// The crypto asset that the payment buys or sells; in a swap, the asset that the user receives.
    #[schema(example = "USDT")]
    asset: String,
    /// The chain of the asset.
    #[schema(example = "tron")]
    network: String,
    /// The payment or payout method, as the operator's catalogue names it; absent from a swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "sepa")]
    payment_method: Option<String>,
    /// The asset that the user sends; only in a swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "USDC")]
    source_asset: Option<String>,
    /// The chain of that asset; only in a swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "ethereum")]
    source_network: Option<String>,
    /// Exactly how much of it the user sends: a decimal string, never a number; only in a swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        nullable = false,
        example = "108.25",
        pattern = "^(0|[1-9][0-9]*)(\\.[0-9]+)?$"
    )]
    source_amount: Option<String>,
    /// The fiat to collect or to send, or the value of a swap: a decimal string, never a number.
    #[schema(example = "100.00", pattern = "^(0|[1-9][0-9]*)(\\.[0-9]+)?$")]
    fiat_amount: String,
    /// The amount of the asset: a decimal string, never a number.
    #[schema(example = "107.10", pattern = "^(0|[1-9][0-9]*)(\\.[0-9]+)?$")]
    crypto_amount: String,
    /// Until when the customer can pay. Give money that comes later back, and report `failed` with the reason `expired`. Absent if the
    /// customer pays nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime, example = "2026-05-25T12:30:00.000Z")]
    pay_until: Option<String>,
    /// Where to deliver the asset; only in a hosted pay-in and in a swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8")]
    wallet_address: Option<String>,
    /// Where to pay out the fiat; only in a hosted pay-out. The catalogue's `account` of the method says which fields it has:
    /// `iban`; `sort_code` and `account_number`; or `routing_number`, `account_number` and `account_type` (`checking` or
    /// `savings`); and perhaps `account_holder`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    payout: Option<BTreeMap<String, String>>,
}

/// The direction of the fiat: `pay_in` collects it from the user, `pay_out` sends it to the user. In a `swap`, the user sends one
/// asset and receives another, and no fiat moves.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum PaymentKind {
    PayIn,
    PayOut,
    Swap,
}

impl Payment {
    pub(super) fn of(order: &RailOrder) -> Self {
        let (terms, source) = (&order.terms, order.terms.source());
        Self {
            kind: match order.id.kind() {
                RailKind::PayIn => PaymentKind::PayIn,
                RailKind::PayOut => PaymentKind::PayOut,
                RailKind::Swap => PaymentKind::Swap,
            },
            currency: terms.currency().code().to_owned(),
            asset: terms.asset().code().to_owned(),
            network: terms.network.clone(),
            payment_method: terms.payment_method().map(str::to_owned),
            source_asset: source.map(|it| it.amount.asset().code().to_owned()),
            source_network: source.map(|it| it.network.clone()),
            source_amount: source.map(|it| it.amount.to_string()),
            fiat_amount: terms.priced.fiat.to_string(),
            crypto_amount: terms.priced.crypto.to_string(),
            pay_until: order.pay_until.map(|until| until.to_string()),
            wallet_address: order.wallet_address.clone(),
            payout: order.payout.as_ref().map(|payout| payout.fields().clone()),
        }
    }
}

/// What the payer needs in order to pay.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct InstructionsAnswer {
    /// The id in the path.
    #[schema(example = "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    id: String,
    instructions: NamedTexts,
}

/// Texts by name: at most 32 names of `[a-z0-9_]{1,64}`, each once, and texts of at most 512 characters without control characters.
#[derive(Debug)]
struct NamedTexts(BTreeMap<String, String>);

/// The acceptance of a payment.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct BeginAnswer {
    /// The id in the path.
    #[schema(example = "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    id: String,
    #[serde(rename = "status", deserialize_with = "word")]
    _status: Begun,
}

/// `accepted`: the rail has stored the payment and moves its money, or has done so before, or will report it as failed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Begun {
    Accepted,
}

/// The response to a cancellation.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct CancelAnswer {
    /// The id in the path.
    #[schema(example = "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    id: String,
    #[serde(deserialize_with = "word")]
    status: Cancellation,
}

/// `cancelled`: no money has arrived or moved, and none will. `not_cancellable`: it is too late.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cancellation {
    Cancelled,
    NotCancellable,
}

/// The state of a payment.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub(super) enum Report {
    /// The payment is in progress, or its outcome is not known yet. It stays so while less than its amount has arrived.
    Processing {
        /// The id in the path.
        #[schema(example = "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
        id: String,
        /// What has arrived of what the customer pays.
        #[schema(nullable = false)]
        received: Option<ReceivedAnswer>,
    },
    /// The whole amount has moved. Final, except that the money may come back.
    Settled {
        /// The id in the path.
        #[schema(example = "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
        id: String,
        /// The rail's reference of the movement, 1 to 128 visible ASCII characters. The gate logs it for the operator.
        #[schema(example = "e2e-8842", pattern = "^[!-~]{1,128}$")]
        #[serde(default, deserialize_with = "reference")]
        reference: Option<String>,
        /// What has arrived of what the customer pays.
        #[schema(nullable = false)]
        received: Option<ReceivedAnswer>,
    },
    /// The payment could not be completed, and the rail gives back what has arrived. Final.
    Failed {
        /// The id in the path.
        #[schema(example = "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
        id: String,
        /// Why it failed. The partner sees the code.
        #[schema(example = "account_closed", pattern = "^[a-z0-9_]{1,64}$")]
        #[serde(deserialize_with = "code")]
        code: String,
        /// Why the rail gives the money back.
        #[schema(nullable = false)]
        #[serde(default, deserialize_with = "reason")]
        reason: Option<Reason>,
        /// What has arrived of what the customer pays.
        #[schema(nullable = false)]
        received: Option<ReceivedAnswer>,
    },
    /// The user has not paid, and the rail no longer takes the money. Final; never for a pay-out that is not hosted.
    Cancelled {
        /// The id in the path.
        #[schema(example = "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
        id: String,
        /// What has arrived of what the customer pays.
        #[schema(nullable = false)]
        received: Option<ReceivedAnswer>,
    },
    /// The money of a settled payment came back. Final.
    Returned {
        /// The id in the path.
        #[schema(example = "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
        id: String,
        /// What has arrived of what the customer pays.
        #[schema(nullable = false)]
        received: Option<ReceivedAnswer>,
    },
}

/// `amount_differs`: another amount arrived. `expired`: the money came after `pay_until`, or never. `returned`: the money that had moved
/// came back. `refused`: the rail, a bank or a network refused the payment.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reason {
    AmountDiffers,
    Expired,
    Returned,
    Refused,
}

/// What has arrived of what the customer pays: the fiat of a pay-in, the asset of a pay-out, the source of a swap.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ReceivedAnswer {
    /// How much in total: a decimal string, never a number. Digits beyond those of the asset are cut off. Zero: nothing has arrived.
    #[schema(example = "20.00", pattern = "^(0|[1-9][0-9]*)(\\.[0-9]+)?$")]
    #[serde(deserialize_with = "decimal")]
    amount: String,
    /// The currency of fiat.
    #[schema(nullable = false, example = "EUR")]
    currency: Option<String>,
    /// The asset of crypto.
    #[schema(nullable = false, example = "USDT")]
    asset: Option<String>,
    /// The chain of the asset.
    #[schema(nullable = false, example = "tron")]
    network: Option<String>,
    /// When it arrived. Penstock keeps the first instant of an amount.
    #[schema(nullable = false, value_type = Option<String>, format = DateTime, example = "2026-05-25T12:10:00.000Z")]
    #[serde(default, deserialize_with = "instant")]
    at: Option<Timestamp>,
}

impl Report {
    /// The rail's reference of a settled payment.
    pub(super) fn reference(&self) -> Option<&str> {
        match self {
            Self::Settled { reference, .. } => reference.as_deref(),
            Self::Processing { .. }
            | Self::Failed { .. }
            | Self::Cancelled { .. }
            | Self::Returned { .. } => None,
        }
    }
}

impl From<Report> for Reported {
    fn from(report: Report) -> Self {
        let (report, received) = match report {
            Report::Processing { received, .. } => (RailReport::InProgress, received),
            Report::Settled {
                reference,
                received,
                ..
            } => (RailReport::Settled { reference }, received),
            Report::Failed {
                code,
                reason,
                received,
                ..
            } => {
                let reason = reason.map(Into::into);
                (RailReport::Failed { code, reason }, received)
            }
            Report::Cancelled { received, .. } => (RailReport::Cancelled, received),
            Report::Returned { received, .. } => (RailReport::Returned, received),
        };
        Self {
            report,
            receipt: received.map(Into::into),
        }
    }
}

impl From<ReceivedAnswer> for Receipt {
    fn from(received: ReceivedAnswer) -> Self {
        Self {
            amount: received.amount,
            currency: received.currency,
            asset: received.asset,
            network: received.network,
            at: received.at,
        }
    }
}

impl From<Reason> for FailureReason {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::AmountDiffers => Self::AmountDiffers,
            Reason::Expired => Self::Expired,
            Reason::Returned => Self::Returned,
            Reason::Refused => Self::Refused,
        }
    }
}

impl Answer for InstructionsAnswer {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Answer for BeginAnswer {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Answer for CancelAnswer {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Answer for Report {
    fn id(&self) -> &str {
        match self {
            Self::Processing { id, .. }
            | Self::Settled { id, .. }
            | Self::Failed { id, .. }
            | Self::Cancelled { id, .. }
            | Self::Returned { id, .. } => id,
        }
    }
}

impl From<InstructionsAnswer> for Instructions {
    fn from(answer: InstructionsAnswer) -> Self {
        Self(answer.instructions.0)
    }
}

impl From<CancelAnswer> for CancelReport {
    fn from(answer: CancelAnswer) -> Self {
        match answer.status {
            Cancellation::Cancelled => Self::Cancelled,
            Cancellation::NotCancellable => Self::TooLate,
        }
    }
}

fn code<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    if is_code(&text) {
        Ok(text)
    } else {
        Err(D::Error::custom("`code` is not [a-z0-9_]{1,64}"))
    }
}

fn reason<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Reason>, D::Error> {
    optional(from, "`reason` is no reason of the contract", |text| {
        Reason::deserialize(text.into_deserializer() as StringDeserializer<D::Error>).ok()
    })
}

/// A decimal, which may be zero.
fn decimal<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    match Amount::check_grammar(&text) {
        Ok(()) | Err(AmountError::Zero) => Ok(text),
        Err(_) => Err(D::Error::custom("`received.amount` is not a decimal")),
    }
}

fn instant<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    optional(from, "`received.at` is not an RFC 3339 timestamp", |text| {
        Timestamp::parse(&text, Bound::Lower).ok()
    })
}

fn is_code(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=LONGEST_CODE).contains(&text.len()) && text.bytes().all(letter)
}

fn is_text(text: &str) -> bool {
    text.chars().count() <= LONGEST_TEXT && !text.chars().any(char::is_control)
}

impl<'de> Deserialize<'de> for NamedTexts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(NamedTextsVisitor)
    }
}

/// Reads a map without accepting a name twice: a derived map would keep the last text.
struct NamedTextsVisitor;

impl<'de> Visitor<'de> for NamedTextsVisitor {
    type Value = NamedTexts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of names and texts")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<NamedTexts, M::Error> {
        let mut named = BTreeMap::new();
        while let Some((name, text)) = map.next_entry::<String, String>()? {
            if !is_code(&name) {
                return Err(M::Error::custom(
                    "the name of an instruction is not [a-z0-9_]{1,64}",
                ));
            }
            if !is_text(&text) {
                return Err(M::Error::custom(
                    "the text of an instruction is longer than 512 characters or has a control character",
                ));
            }
            if named.insert(name, text).is_some() {
                return Err(M::Error::custom("the name of an instruction occurs twice"));
            }
            if named.len() > MOST_INSTRUCTIONS {
                return Err(M::Error::custom("more than 32 instructions"));
            }
        }
        Ok(NamedTexts(named))
    }
}

impl PartialSchema for NamedTexts {
    fn schema() -> RefOr<Schema> {
        let text = |longest, pattern| -> Schema {
            ObjectBuilder::new()
                .schema_type(Type::String)
                .max_length(Some(longest))
                .pattern(Some(pattern))
                .into()
        };
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some(
                "Texts by name, shown to the payer as they are. A name occurs once.",
            ))
            .property_names(Some(text(LONGEST_CODE, CODE_PATTERN)))
            .additional_properties(Some(text(LONGEST_TEXT, TEXT_PATTERN)))
            .max_properties(Some(MOST_INSTRUCTIONS))
            .examples([serde_json::json!({
                "iban": "DE89370400440532013000", "reference": "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
            })])
            .into()
    }
}

impl ToSchema for NamedTexts {
    fn name() -> Cow<'static, str> {
        "NamedTexts".into()
    }
}

#[cfg(test)]
mod tests;
