//! The requests to an engine and its responses. The published contract is generated from these types.

use kernel::{Amount, Mid};
use pools_core::ports;
use pools_core::quote::Side;
use pools_core::trade::{EngineReport, Fill};
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// Maximum length of a fill's reference, in characters.
const LONGEST_FILL: usize = 128;

/// What a partner orders.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Order {
    /// The pool.
    #[schema(example = "EUR-USDT")]
    pool: String,
    side: OrderSide,
    /// What the partner gives: fiat on `on_ramp`, crypto on `off_ramp`.
    input: Leg,
    /// The chain the crypto leg moves on.
    #[schema(example = "tron")]
    network: String,
    /// Where a purchase is delivered; null on `off_ramp`.
    #[schema(required = true)]
    destination: Option<Destination>,
}

/// An order with what it comes to, fixed by a firm quote.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Deal {
    order: Order,
    /// What is delivered of a purchase, or paid out of a sale: exactly this.
    output: Leg,
}

/// Which way an order goes: `on_ramp` takes fiat and delivers crypto, `off_ramp` takes crypto and pays fiat out.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum OrderSide {
    OnRamp,
    OffRamp,
}

/// An amount of one asset.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Leg {
    /// A decimal string, never a number.
    #[schema(example = "100.00", pattern = "^(0|[1-9][0-9]*)(\\.[0-9]+)?$")]
    amount: String,
    /// The code of a currency or a crypto asset.
    #[schema(example = "EUR")]
    asset: String,
}

/// Where crypto is delivered.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Destination {
    /// An address of the network. An EVM address on `tron` means the T-address of the same key; pools with
    /// native addresses never send one there.
    #[schema(example = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8")]
    address: String,
    /// The chain: the order's own, or another one that the partner named.
    #[schema(example = "tron")]
    network: String,
}

impl Order {
    pub(super) fn of(order: &ports::Order) -> Self {
        let destination = order.destination.as_ref().map(|to| Destination {
            address: to.address.as_str().to_owned(),
            network: to.network.as_str().to_owned(),
        });
        Self {
            pool: order.pool.to_string(),
            side: match order.side {
                Side::OnRamp => OrderSide::OnRamp,
                Side::OffRamp => OrderSide::OffRamp,
            },
            input: Leg::of(order.amount),
            network: order.network.as_str().to_owned(),
            destination,
        }
    }
}

impl Deal {
    pub(super) fn of(order: &ports::Order, output: Amount) -> Self {
        Self {
            order: Order::of(order),
            output: Leg::of(output),
        }
    }
}

impl Leg {
    fn of(amount: Amount) -> Self {
        Self {
            amount: amount.to_string(),
            asset: amount.asset().code().to_owned(),
        }
    }
}

/// Has the engine depth for an order?
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct DepthAnswer {
    #[serde(deserialize_with = "word")]
    pub(super) status: Depth,
}

/// `enough`: it could hold this now. `dry`: it could not.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Depth {
    Enough,
    Dry,
}

/// Is liquidity held for a trade?
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct HoldAnswer {
    #[serde(deserialize_with = "word")]
    pub(super) status: Hold,
}

/// `held`: both legs are reserved. `refused`: nothing is, and nothing will be under this id.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Hold {
    Held,
    Refused,
}

/// Does a trade's hold stand?
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ConfirmAnswer {
    #[serde(deserialize_with = "word")]
    pub(super) status: Confirmation,
}

/// `confirmed`: the trade is the engine's to carry out, or has been. `lapsed`: the hold was gone before it was confirmed,
/// and nothing will ever be delivered of the trade; the report has to be `released`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Confirmation {
    Confirmed,
    Lapsed,
}

/// A hold is given back.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ReleaseAnswer {
    #[serde(rename = "status", deserialize_with = "word")]
    _status: Release,
}

/// `released`: nothing is held under this id, and nothing will be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Release {
    Released,
}

/// What has become of a trade.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub(super) enum Report {
    /// It is under way, or its outcome is not known yet.
    InProgress,
    /// It was carried out: delivered, or paid out. For ever, unless it is `returned`.
    #[serde(rename_all = "camelCase")]
    Delivered {
        /// The engine's reference of what it did, 1 to 128 visible ASCII characters: shown to the partner as `engineFillTxId`.
        #[schema(example = "fill-8842", pattern = "^[!-~]{1,128}$")]
        #[serde(deserialize_with = "fill")]
        fill_tx_id: String,
        /// The rate at which you filled the trade, for the operator's reports: units of the pool's crypto per unit of its
        /// fiat, on both sides. A decimal string greater than zero, of at most 28 digits; left out where you cannot tell.
        #[schema(example = "1.0849", pattern = "^(0|[1-9][0-9]*)(\\.[0-9]+)?$")]
        #[serde(default, deserialize_with = "fill_rate")]
        #[schema(value_type = Option<String>)]
        fill_rate: Option<Mid>,
    },
    /// It was attempted and could not be completed; nothing has left. For ever.
    Failed,
    /// It was given back before anything was attempted. For ever.
    Released,
    /// It was delivered, and has come back. For ever. It may be reported although `delivered` was never asked for or never heard: Penstock
    /// then settles and returns the trade at once.
    #[serde(rename_all = "camelCase")]
    Returned {
        /// The reference that `delivered` has, if the engine still knows it. A trade whose delivery was never heard of shows
        /// `unknown:<transactId>` without it.
        #[schema(example = "fill-8842", pattern = "^[!-~]{1,128}$")]
        #[serde(default, deserialize_with = "optional_fill")]
        fill_tx_id: Option<String>,
    },
}

/// Parses a status that is a string. The derived parser would also accept `{"held": null}`.
fn word<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    T::deserialize(String::deserialize(from)?.into_deserializer())
}

fn fill<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    checked_fill(String::deserialize(from)?)
}

fn optional_fill<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    text.map(checked_fill).transpose()
}

fn checked_fill<E: serde::de::Error>(text: String) -> Result<String, E> {
    let fits = (1..=LONGEST_FILL).contains(&text.len());
    if fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(text)
    } else {
        let expected = "`fillTxId` is not 1 to 128 visible ASCII characters";
        Err(E::custom(expected))
    }
}

fn fill_rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Mid>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else {
        return Ok(None);
    };
    let expected = "`fillRate` is not a decimal string greater than zero";
    let rate = Mid::parse(&text).ok_or_else(|| serde::de::Error::custom(expected))?;
    Ok(Some(rate))
}

impl From<Depth> for ports::Depth {
    fn from(depth: Depth) -> Self {
        match depth {
            Depth::Enough => Self::Enough,
            Depth::Dry => Self::Insufficient,
        }
    }
}

impl From<Hold> for ports::Hold {
    fn from(hold: Hold) -> Self {
        match hold {
            Hold::Held => Self::Held,
            Hold::Refused => Self::Refused,
        }
    }
}

impl From<Confirmation> for ports::Confirmation {
    fn from(confirmation: Confirmation) -> Self {
        match confirmation {
            Confirmation::Confirmed => Self::Confirmed,
            Confirmation::Lapsed => Self::Lapsed,
        }
    }
}

impl From<Report> for EngineReport {
    fn from(report: Report) -> Self {
        match report {
            Report::InProgress => Self::InProgress,
            Report::Delivered {
                fill_tx_id,
                fill_rate,
            } => Self::Delivered(Fill {
                reference: fill_tx_id,
                rate: fill_rate,
            }),
            Report::Failed => Self::CannotComplete,
            Report::Released => Self::LetGo,
            Report::Returned { fill_tx_id } => Self::Reversed(fill_tx_id),
        }
    }
}
