//! The closed lists of the contract.

use kernel::rates;
use pools_core::destination;
use pools_core::ledger::Reason;
use pools_core::profile::Network;
use pools_core::quote;
use pools_core::trade;
use pools_core::usecases::create_quote::{QuoteKind, Unavailable};

http_kit::words! {
    /// The direction of an order.
    Side of rates::Side;
    /// Whether a quote is firm or a price only.
    QuoteType of QuoteKind;
    /// A chain of the crypto leg.
    CryptoNetwork of Network;
    /// A network for delivery of crypto.
    DestNetwork of destination::DestNetwork;
    /// Why an order cannot be priced now.
    UnavailableReason of Unavailable;
    /// A quote's status, derived when it is read.
    QuoteStatus of quote::QuoteStatus;
    /// A trade's status.
    TradeStatus of trade::TradeStatus = of_trade();
    /// Why value moved.
    LedgerReason of Reason = of_entry();
}

/// No stored trade is `quoted`.
fn of_trade() -> impl Iterator<Item = &'static str> {
    let stored = trade::TradeStatus::ALL.map(trade::TradeStatus::as_str);
    ["quoted"].into_iter().chain(stored)
}

/// A settlement never moves value of the partner's own account.
fn of_entry() -> impl Iterator<Item = &'static str> {
    let own = Reason::ALL.into_iter();
    let own = own.filter(|reason| *reason != Reason::Settlement);
    own.map(Reason::as_str)
}
