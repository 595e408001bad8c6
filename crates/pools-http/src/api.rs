//! The pools API: its operations and the document that describes them.
//!
//! A new operation is declared beside its handler and listed here.

use http_kit::openapi::ContractError;
use http_kit::{Api, Class, Document, ErrorCode};

use crate::app::App;
use crate::event_docs::with_events;
use crate::{accounts, codes, discovery, quotes, trades};

pub(crate) const POOLS: Api<App, Class> = Api {
    name: "pools-v1",
    title: "Penstock Liquidity Pools Partner API",
    version: "2026-05-25",
    description: "\
Headless liquidity for approved partners: discover entitled pools, read capabilities, request a quote \
(firm: executable once, for a short time; indicative: a price only), execute a firm quote exactly once, \
poll until it is settled, and reconcile with trades, balance and ledger.

Money and rates are decimal strings, never floats; every `*Bps` field is an integer in basis points; \
instants are RFC 3339 in UTC. Clients ignore fields they do not know. Another partner's object reads \
exactly like one that does not exist: 404.",
    tags: &[
    ("Discovery", "The pools, and what you may do in them."),
    (
        "Quotes",
        "Prices: a firm quote can be executed once before it expires, an indicative quote is a price only.",
    ),
    ("Trades", "Executed quotes: their status and their records."),
    (
        "Funds",
        "Balances, funding instructions, and all movements.",
    ),
],
    shared_errors: &[codes::UNAUTHORIZED, codes::SECRET_KEY_IN_QUERY, codes::KEY_MODE_MISMATCH, codes::KEY_REVOKED, codes::KEY_EXPIRED, codes::ORGANIZATION_SUSPENDED, codes::RATE_LIMITED, codes::INTERNAL_ERROR, codes::OVERLOADED, codes::SERVICE_UNAVAILABLE],
    tiers: &["short", "medium"],
    examples: include_str!("examples.json"),
    complete: with_events,
    operations: &[
        &discovery::LIST_POOLS,
        &discovery::GET_CAPABILITIES,
        &quotes::CREATE_QUOTE,
        &quotes::GET_QUOTE,
        &quotes::REJECT_QUOTE,
        &trades::TRANSACT,
        &trades::GET_TRANSACTION_BY_QUOTE,
        &trades::LIST_TRADES,
        &trades::GET_TRADE,
        &accounts::GET_BALANCE,
        &accounts::GET_FUNDING_INSTRUCTIONS,
        &accounts::LIST_LEDGER_ENTRIES,
    ],
};

pub fn documents() -> Result<Vec<Document>, ContractError> {
    Ok(vec![POOLS.document()?])
}

pub fn error_codes() -> impl Iterator<Item = &'static ErrorCode> {
    codes::SHARED_ERRORS.iter().chain(codes::OF_POOLS).copied()
}
