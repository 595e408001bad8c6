//! Transactions: a partner's data for reconciliation.

use axum::Json;
use axum::extract::State;
use gate_core::limits::Group;
use gate_core::ports::TransactionFilter;
use gate_core::session::SessionId;
use gate_core::transaction::{RefId, Transaction, TransactionStatus};
use http_kit::{ApiError, PathId, Query};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::{App, Entitled};
use crate::codes;
use crate::lists::TransactionList;
use crate::operation::{Admission, Operation};
use crate::wire::{created, instant, page_size};
use crate::words;

/// A payment of a session. Unknown values are null.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Transaction)]
pub(crate) struct TransactionRecord {
    /// `transaction`
    #[schema(example = "transaction")]
    object: &'static str,
    /// A reference that may be shared with support.
    #[schema(example = "test_tx_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    refid: String,
    /// The session of the transaction.
    #[schema(example = "gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    session_id: String,
    /// Whether the user buys, sells or swaps.
    action: words::Flow,
    /// Branch on this.
    status: words::TransactionStatus,
    /// The asset, or null.
    #[schema(required = true)]
    token: Option<String>,
    /// The chain, or null.
    #[schema(required = true)]
    network: Option<String>,
    /// ISO 4217 code.
    #[schema(example = "EUR")]
    currency: String,
    /// The payment or payout method, or null.
    #[schema(required = true)]
    payment_method: Option<String>,
    /// The fiat side, or null.
    #[schema(required = true)]
    fiat_amount: Option<String>,
    /// The crypto side, or null.
    #[schema(required = true)]
    token_amount: Option<String>,
    /// Output per input before fees, or null.
    #[schema(required = true)]
    exchange_rate: Option<String>,
    /// Total fees, in the currency, or null.
    #[schema(required = true)]
    total_fees: Option<String>,
    /// The reference of the local rail, or null.
    #[schema(required = true)]
    local_rail_transaction_id: Option<String>,
    /// When the transaction was created.
    #[schema(format = DateTime)]
    created_at: String,
    /// When the transaction was completed, or null.
    #[schema(required = true, format = DateTime)]
    completed_at: Option<String>,
}

pub(crate) const LIST_TRANSACTIONS: Operation = Operation {
    route: || routes!(list_transactions),
    admission: Admission::secret(Group::ListTransactions),
    errors: &[&[codes::INVALID_REQUEST]],
};

/// List transactions
///
/// Newest first. For the next page, send the last `refid` as `starting_after` while `has_more` is true.
#[utoipa::path(get, path = "/v1/transactions", operation_id = "listTransactions", tag = "Transactions",
    params(
        ("limit" = Option<u32>, Query, description = "1 to 100; 10 by default", minimum = 1, maximum = 100),
        ("starting_after" = Option<String>, Query, description = "The last `refid` of the previous page", pattern = "^(test|live)_tx_[0-7][0-9A-HJKMNP-TV-Z]{25}$", example = "test_tx_01KSFVT4Z2V6B9C1D3F5G7H8JK"),
        ("status" = Option<words::TransactionStatus>, Query, description = "Only transactions with this status"),
        ("created_after" = Option<String>, Query, format = DateTime, description = "Only transactions created later than this instant: RFC 3339, or a date", example = "2026-05-25T00:00:00Z"),
        ("created_before" = Option<String>, Query, format = DateTime, description = "Only transactions created no later than this instant: RFC 3339, or a date", example = "2026-05-26T00:00:00Z"),
        ("session_id" = Option<String>, Query, description = "Only transactions of this session", pattern = "^gs_(test|live)_[0-7][0-9A-HJKMNP-TV-Z]{25}$", example = "gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK"),
    ),
    responses((status = 200, description = "A page of transactions", body = TransactionList)))]
pub(crate) async fn list_transactions(
    who: Entitled,
    State(app): State<App>,
    query: Query,
) -> Result<Json<TransactionList>, ApiError> {
    let limit = page_size(&query)?;
    let statuses = TransactionStatus::ALL.map(|status| (status.as_str(), status));
    let filter = TransactionFilter {
        after: query.parsed("starting_after", |text| {
            RefId::parse(text).ok_or("expected the refid of a transaction")
        })?,
        status: query.one_of("status", &statuses)?,
        session: query.parsed("session_id", |text| {
            SessionId::parse(text).ok_or("expected the id of a session")
        })?,
        created: created(&query)?,
    };
    let reading = &app.reading;
    let page = reading.transactions(who.tenant(), &filter, limit).await?;
    Ok(TransactionList::of(page, record))
}

pub(crate) const RETRIEVE_TRANSACTION: Operation = Operation {
    route: || routes!(retrieve_transaction),
    admission: Admission::secret(Group::Global),
    errors: &[&[codes::RESOURCE_NOT_FOUND]],
};

/// Read a transaction
///
/// Finds the transaction by its reference, which is safe to show to users and to support.
#[utoipa::path(get, path = "/v1/transactions/{refid}", operation_id = "retrieveTransaction", tag = "Transactions",
    params(("refid" = String, Path, description = "The transaction's reference", example = "test_tx_01KSFVT4Z2V6B9C1D3F5G7H8JK")),
    responses((status = 200, description = "The transaction", body = TransactionRecord)))]
pub(crate) async fn retrieve_transaction(
    who: Entitled,
    State(app): State<App>,
    refid: PathId,
) -> Result<Json<TransactionRecord>, ApiError> {
    let refid = refid.parse("transaction", RefId::parse)?;
    let found = app.reading.transaction(who.tenant(), refid).await?;
    Ok(Json(record(
        found.ok_or_else(|| ApiError::not_found("transaction"))?,
    )))
}

fn record(transaction: Transaction) -> TransactionRecord {
    TransactionRecord {
        object: "transaction",
        refid: transaction.refid.to_string(),
        session_id: transaction.session.to_string(),
        action: transaction.action.into(),
        status: transaction.state.status().into(),
        token: transaction.token,
        network: transaction.network,
        currency: transaction.currency,
        payment_method: transaction.payment_method,
        fiat_amount: transaction.fiat_amount,
        token_amount: transaction.token_amount,
        exchange_rate: transaction.exchange_rate,
        total_fees: transaction.total_fees,
        local_rail_transaction_id: transaction.local_rail_transaction_id,
        created_at: instant(transaction.created_at),
        completed_at: transaction.state.completed_at().map(instant),
    }
}
