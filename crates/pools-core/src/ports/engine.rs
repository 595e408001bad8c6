//! The port to the liquidity engine.

use std::time::Duration;

use async_trait::async_trait;
use kernel::{Amount, Named};
use partner_core::Tenant;
use partner_core::ports::Ticket;

use crate::destination::Destination;
use crate::profile::{Network, PoolId};
use crate::quote::Side;
use crate::trade::{Contradiction, EngineReport, TradeId, TradeStatus};

/// The data of an order that the engine receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub pool: PoolId,
    pub side: Side,
    /// The input leg: fiat on a purchase, crypto on a sale.
    pub amount: Amount,
    /// The chain the crypto leg moves on.
    pub network: Network,
    /// The delivery target of a purchase; `None` for a sale.
    pub destination: Option<Destination>,
}

/// The liquidity engine: holds liquidity for a trade, delivers, pays out.
///
/// Every call about a trade carries its id, and a repeated call changes nothing. `None` means that the engine did not
/// respond within its timeout. No decision rests on that. The partner of a call is not sent: it only divides the calls that are in
/// flight among partners, so that other partners do not wait for one whose calls hang.
#[async_trait]
pub trait Engine: Named + Send + Sync {
    /// Whether the engine has depth for an order.
    async fn depth(&self, who: &Tenant, order: &Order) -> Option<Depth>;

    /// Holds liquidity for a trade until it is confirmed, released or lapsed. `output` is the output leg of the
    /// quote: what a purchase delivers, or what a sale pays out.
    async fn hold(
        &self,
        who: &Tenant,
        trade: TradeId,
        order: &Order,
        output: Amount,
    ) -> Option<Hold>;

    /// Confirms a hold, so that the engine may deliver.
    async fn confirm(&self, who: &Tenant, trade: TradeId) -> Option<Confirmation>;

    /// Confirms a hold for a poll that [`Engine::admit_poll`] admitted.
    async fn confirm_again(&self, who: &Tenant, trade: TradeId) -> Option<Confirmation> {
        self.confirm(who, trade).await
    }

    /// Releases a hold. The result shows whether the engine responded; only metrics need it.
    async fn release(&self, who: &Tenant, trade: TradeId) -> Option<()>;

    /// The engine's report about a trade, for a poll that [`Engine::admit_poll`] admitted.
    async fn report(&self, who: &Tenant, request: &TradeReportRequest) -> Option<EngineReport>;

    /// A permit for a poll of this partner to ask the engine; the poll drops it after the report. Without a permit the poll
    /// does not ask: too many polls are waiting for the engine. An engine that responds at once limits no poll.
    fn admit_poll(&self, _: &Tenant) -> Option<Ticket> {
        Some(Ticket(Box::new(())))
    }

    /// Notifies that a report contradicts an earlier one. Engines ignore it; a wrapper that records metrics counts
    /// it.
    fn contradicted(&self, _: &Contradiction) {}

    /// The timeout of a call. A poll's lease is derived from it.
    fn timeout(&self) -> Duration;
}

/// The depth of the engine for an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The engine has enough liquidity.
    Enough,
    /// The engine has too little liquidity.
    Insufficient,
}

/// The result of a call for a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// The liquidity is held.
    Held,
    /// The engine refused.
    Refused,
    /// The call was not sent, so the engine holds nothing.
    Unsent,
}

/// The engine's response to a confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// The hold is confirmed.
    Confirmed,
    /// The hold lapsed before the confirmation.
    Lapsed,
}

/// A request for the engine's report about a trade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TradeReportRequest {
    pub trade: TradeId,
    pub order: Order,
    /// The number of this attempt, starting at 1.
    pub attempt: u32,
    /// The status that the trade has in the store.
    pub known: TradeStatus,
}
