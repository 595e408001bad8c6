//! The requests to an engine and its responses. The published contract is generated from these types.

use kernel::{Amount, Mid};
use pools_core::ports;
use pools_core::quote::Side;
use pools_core::trade::{EngineReport, Fill};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::upstream::{optional, visible, word};

const NO_FILL: &str = "`fillTxId` is not 1 to 128 visible ASCII characters";

/// An order of a partner.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Order {
    /// The pool.
    #[schema(example = "EUR-USDT")]
    pool: String,
    side: OrderSide,
    /// The amount that the partner gives: fiat on `on_ramp`, crypto on `off_ramp`.
    input: Leg,
    /// The chain of the crypto leg.
    #[schema(example = "tron")]
    network: String,
    /// The destination of a purchase; null on `off_ramp`.
    #[schema(required = true)]
    destination: Option<Destination>,
}

/// An order with its output, fixed by a firm quote.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Deal {
    order: Order,
    /// The exact amount that is delivered for a purchase or paid out for a sale.
    output: Leg,
}

/// The direction of an order: `on_ramp` takes fiat and delivers crypto, `off_ramp` takes crypto and pays fiat out.
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

/// The destination of crypto.
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

/// Whether the engine has depth for an order.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct DepthAnswer {
    #[serde(deserialize_with = "word")]
    pub(super) status: Depth,
}

/// `enough`: the engine could hold the order now. `dry`: it could not.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Depth {
    Enough,
    Dry,
}

/// Whether the engine holds liquidity for a trade.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct HoldAnswer {
    #[serde(deserialize_with = "word")]
    pub(super) status: Hold,
}

/// `held`: both legs are reserved. `refused`: neither leg is reserved, nor will be under this id.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Hold {
    Held,
    Refused,
}

/// Whether a trade's hold is valid.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ConfirmAnswer {
    #[serde(deserialize_with = "word")]
    pub(super) status: Confirmation,
}

/// `confirmed`: the engine carries out the trade, or has carried it out. `lapsed`: the hold lapsed before it was confirmed, and
/// nothing will be delivered for the trade; its report must be `released`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Confirmation {
    Confirmed,
    Lapsed,
}

/// The release of a hold.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ReleaseAnswer {
    #[serde(rename = "status", deserialize_with = "word")]
    _status: Release,
}

/// `released`: no liquidity is held under this id, nor will be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Release {
    Released,
}

/// The outcome of a trade.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub(super) enum Report {
    /// The trade is in progress, or its outcome is not known yet.
    InProgress,
    /// The trade was carried out: delivered, or paid out. Final, unless it is `returned`.
    #[serde(rename_all = "camelCase")]
    Delivered {
        /// The engine's reference of the fill, 1 to 128 visible ASCII characters. The partner sees it as `engineFillTxId`.
        #[schema(example = "fill-8842", pattern = "^[!-~]{1,128}$")]
        #[serde(deserialize_with = "fill")]
        fill_tx_id: String,
        /// The rate at which the engine filled the trade, for the operator's reports: units of the pool's crypto per unit of its
        /// fiat, on both sides. A decimal string greater than zero, of at most 28 digits. Omit it if it is not known.
        #[schema(example = "1.0849", pattern = "^(0|[1-9][0-9]*)(\\.[0-9]+)?$")]
        #[serde(default, deserialize_with = "fill_rate")]
        #[schema(value_type = Option<String>)]
        fill_rate: Option<Mid>,
    },
    /// The trade could not be completed, and nothing was delivered. Final.
    Failed,
    /// The hold was released before the engine began to deliver. Final.
    Released,
    /// The trade was delivered, and the funds came back. Final. An engine may report it although Penstock never received a `delivered`
    /// report. Penstock then settles and returns the trade at once.
    #[serde(rename_all = "camelCase")]
    Returned {
        /// The reference that the `delivered` report has, if the engine still knows it. If Penstock never received a `delivered` report
        /// and this field is absent, the trade shows `unknown:<transactId>`.
        #[schema(example = "fill-8842", pattern = "^[!-~]{1,128}$")]
        #[serde(default, deserialize_with = "optional_fill")]
        fill_tx_id: Option<String>,
    },
}

fn fill<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    visible(String::deserialize(from)?).ok_or_else(|| D::Error::custom(NO_FILL))
}

fn optional_fill<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    optional(from, NO_FILL, visible)
}

fn fill_rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Mid>, D::Error> {
    let expected = "`fillRate` is not a decimal string greater than zero";
    optional(from, expected, |text| Mid::parse(&text))
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
            Report::Released => Self::Released,
            Report::Returned { fill_tx_id } => Self::Reversed(fill_tx_id),
        }
    }
}
