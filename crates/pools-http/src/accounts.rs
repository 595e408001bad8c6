//! Balance, funding instructions and the ledger.

#[cfg(test)]
mod fuzz;

use axum::Json;
use axum::extract::State;
use http_kit::{ApiError, Class, PathId, Query};
use kernel::{Amount, Asset, Bound};
use partner_core::Access;
use pools_core::ledger::{AccountKind, Entry, EntryId};
use pools_core::ports::LedgerFilter;
use pools_core::profile::PoolsProfile;
use pools_core::usecases::queries::{AccountStatement, LedgerCursor};
use serde::Serialize;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{IntoParams, PartialSchema, ToSchema};
use utoipa_axum::routes;

use crate::app::{App, Entitled, Operation, Secret};
use crate::codes;
use crate::wire::instant;
use crate::words;

const DEFAULT_LIMIT: u32 = 50;
const LARGEST_LIMIT: u32 = 200;
const EUR: &str = "EUR";

/// Your balance and availability in one pool.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BalanceView {
    /// Pool id.
    #[schema(example = "EUR-USDT")]
    pool_id: String,
    /// Display label.
    #[schema(example = "EUR/USDT")]
    pair: String,
    /// Whether the pool is usable.
    available: bool,
    /// Partner tier.
    #[schema(example = "standard")]
    tier: String,
    /// The pools you are entitled to.
    #[schema(example = json!(["EUR-USDT"]))]
    allowed_pools: Vec<String>,
    /// Pre-funded balance in the pool's fiat. Null if the balance gate is off: you then have no
    /// pre-funded balance, which is not a balance of zero.
    #[schema(required = true, example = "1000.00")]
    balance: Option<String>,
}

/// How to fund the balance.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FundingInstructions {
    /// Currency of the deposit.
    #[schema(example = "EUR")]
    currency: String,
    /// Account to pay to; null until it is provisioned.
    #[schema(required = true, example = "DE89370400440532013000")]
    iban: Option<String>,
    /// Text to include with the deposit.
    #[schema(example = "ACME-7F3K")]
    reference: String,
    /// What to do, in words.
    instructions: String,
}

/// One movement on an account.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LedgerEntry {
    /// Entry id.
    #[schema(example = "le_test_01KSFVT4Z2V6B9C1D3F5G7H8JM")]
    id: String,
    /// Signed amount: negative debits the account.
    #[schema(example = "-100.00")]
    delta: String,
    /// The balance after this entry.
    #[schema(example = "900.00")]
    balance_after: String,
    /// Why value moved.
    reason: words::LedgerReason,
    /// The quote of a trade, or the reference of a deposit.
    #[schema(rename = "ref")]
    #[serde(rename = "ref")]
    reference: String,
    /// The trade; null for other movements.
    #[schema(required = true)]
    transact_id: Option<String>,
    /// When the entry was made. Never decreases along an account.
    #[schema(format = DateTime)]
    created_at: String,
}

/// An account with a page of its entries, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LedgerPage {
    /// The account's currency.
    #[schema(example = "EUR")]
    currency: String,
    /// The balance of the account.
    #[schema(example = "900.00")]
    available: String,
    /// The entries.
    entries: Vec<LedgerEntry>,
    /// The cursor of the next page; null on the last page.
    #[schema(required = true)]
    next_cursor: Option<String>,
    /// Whether another page follows.
    has_more: bool,
}

/// The filters of the ledger.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "documents the parameters; each is read strictly by its handler"
)]
pub(crate) struct LedgerParams {
    /// The account's currency.
    #[param(default = "EUR", example = "EUR")]
    currency: Option<String>,
    /// Entries per page, clamped to 1 to 200.
    #[param(required = false, value_type = AnyLimit, inline)]
    limit: i64,
    /// The `nextCursor` of the previous page.
    cursor: Option<String>,
    /// Inclusive lower bound on `createdAt`: RFC 3339, of which the seconds may be absent, or a date.
    created_after: Option<String>,
    /// Inclusive upper bound on `createdAt`: RFC 3339, of which the seconds may be absent, or a date.
    created_before: Option<String>,
}

/// The schema of a limit of any size. Values out of range are clamped, not refused.
struct AnyLimit;

impl PartialSchema for AnyLimit {
    fn schema() -> RefOr<Schema> {
        let whole = ObjectBuilder::new().schema_type(Type::Integer);
        whole.default(Some(DEFAULT_LIMIT.into())).into()
    }
}

impl ToSchema for AnyLimit {}

/// The parameters of funding instructions.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "documents the parameters; each is read strictly by its handler"
)]
pub(crate) struct FundingParams {
    /// Currency of the deposit; only `EUR`.
    #[param(default = "EUR", example = "EUR")]
    currency: Option<String>,
}

pub(crate) const GET_BALANCE: Operation = Operation {
    route: || routes!(get_balance),
    admission: Class::Entitled,
    errors: &[codes::ENTITLED, &[codes::RESOURCE_NOT_FOUND]],
};

/// Read your balance in a pool
///
/// Contains no access or KYC state, and no data about the liquidity of the pool.
#[utoipa::path(get, path = "/v1/pools/{id}/balance", operation_id = "getBalance", tag = "Funds",
    params(("id" = String, Path, description = "Pool id", example = "EUR-USDT")),
    responses((status = 200, description = "Your balance", body = BalanceView)))]
pub(crate) async fn get_balance(
    who: Entitled,
    State(app): State<App>,
    id: PathId,
) -> Result<Json<BalanceView>, ApiError> {
    let access = who.access();
    let pool = app.allowed_pool(access, &id).await?;
    let known = app.pools().await?;
    let balance = if access.profile.balance_gate {
        let fiat = pool.id.fiat();
        let account = app.parts().reading.account(who.tenant(), fiat).await?;
        let available = account.map_or(Amount::zero(fiat), |account| account.available);
        Some(available.to_string())
    } else {
        None
    };
    Ok(Json(BalanceView {
        pool_id: pool.id.to_string(),
        pair: pool.id.pair(),
        available: pool.available,
        tier: access.profile.tier.clone(),
        allowed_pools: access
            .profile
            .visible(&known)
            .map(|pool| pool.id.to_string())
            .collect(),
        balance,
    }))
}

pub(crate) const GET_FUNDING_INSTRUCTIONS: Operation = Operation {
    route: || routes!(get_funding_instructions),
    admission: Class::Secret,
    errors: &[&[codes::INVALID_REQUEST, codes::FUNDING_NOT_ENABLED]],
};

/// Read how to fund your balance
///
/// If `iban` is null, funding is enabled but not provisioned yet: wait rather than retry.
#[utoipa::path(get, path = "/v1/pools/funding", operation_id = "getFundingInstructions", tag = "Funds",
    params(FundingParams),
    responses((status = 200, description = "Funding instructions", body = FundingInstructions)))]
pub(crate) async fn get_funding_instructions(
    who: Secret,
    query: Query,
) -> Result<Json<FundingInstructions>, ApiError> {
    let currency = query.text("currency")?.unwrap_or(EUR).to_ascii_uppercase();
    if currency != EUR {
        return Err(ApiError::invalid_request(
            "Query parameter `currency` must be `EUR`.",
        ));
    }
    if !who.access().profile.balance_gate {
        return Err(ApiError::new(
            codes::FUNDING_NOT_ENABLED,
            "Funding is not enabled for you.",
        ));
    }
    Ok(Json(instructions(who.access(), currency)))
}

pub(crate) const LIST_LEDGER_ENTRIES: Operation = Operation {
    route: || routes!(list_ledger_entries),
    admission: Class::Secret,
    errors: &[&[codes::INVALID_REQUEST]],
};

/// List the movements on your account
///
/// Credits and debits of one currency, refunds included, newest first.
#[utoipa::path(get, path = "/v1/pools/ledger", operation_id = "listLedgerEntries", tag = "Funds",
    params(LedgerParams),
    responses((status = 200, description = "The account and a page of its entries", body = LedgerPage)))]
pub(crate) async fn list_ledger_entries(
    who: Secret,
    State(app): State<App>,
    query: Query,
) -> Result<Json<LedgerPage>, ApiError> {
    let currency = query.text("currency")?.unwrap_or(EUR);
    let asset = Asset::parse(currency).ok_or_else(no_account)?;
    let limit = query.clamped("limit", 1..=LARGEST_LIMIT)?;
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    let after = query.parsed("cursor", |text| {
        place(text).ok_or("expected a `nextCursor` of this list")
    })?;
    let filter = LedgerFilter {
        before_sequence: None,
        created_after: query.instant("created_after", Bound::Lower)?,
        created_before: query.instant("created_before", Bound::Upper)?,
    };
    let reading = &app.parts().reading;
    let statement = reading.statement(who.tenant(), asset, &filter, after, limit);
    match statement.await? {
        Some(statement) => Ok(Json(page(asset, &statement)?)),
        None if asset.code() == EUR => Ok(Json(empty_page(asset))),
        None => Err(no_account()),
    }
}

fn no_account() -> ApiError {
    ApiError::invalid_request(
        "Query parameter `currency` must be a currency you have an account in.",
    )
}

fn instructions(access: &Access<PoolsProfile>, currency: String) -> FundingInstructions {
    let reference = access.profile.funding_reference.clone();
    let instructions = match &access.profile.iban {
        Some(iban) => format!(
            "Send a SEPA transfer in EUR to {iban} with the reference {reference}. It is credited when it arrives."
        ),
        None => "Funding is enabled for you; the account to pay to is being set up.".to_owned(),
    };
    FundingInstructions {
        currency,
        iban: access.profile.iban.clone(),
        reference,
        instructions,
    }
}

/// Prefix of the ledger's cursors. A cursor is opaque to clients and holds the number and id of the
/// page's last entry.
const CURSOR_PREFIX: &str = "lc_";

fn cursor(place: LedgerCursor) -> String {
    format!("{CURSOR_PREFIX}{}_{}", place.sequence, place.entry)
}

fn place(text: &str) -> Option<LedgerCursor> {
    let (digits, entry) = text.strip_prefix(CURSOR_PREFIX)?.split_once('_')?;
    let place = LedgerCursor {
        sequence: digits.parse().ok()?,
        entry: EntryId::parse(entry)?,
    };
    (cursor(place) == text && place.sequence > 0).then_some(place)
}

fn empty_page(asset: Asset) -> LedgerPage {
    LedgerPage {
        currency: asset.to_string(),
        available: Amount::zero(asset).to_string(),
        entries: Vec::new(),
        next_cursor: None,
        has_more: false,
    }
}

fn page(asset: Asset, statement: &AccountStatement) -> Result<LedgerPage, ApiError> {
    let page = &statement.page;
    let last = page.items.last().filter(|_| page.has_more);
    let last = last.and_then(|last| {
        let sequence = last.mark?.sequence;
        let entry = last.id;
        Some(LedgerCursor { sequence, entry })
    });
    Ok(LedgerPage {
        currency: asset.to_string(),
        available: statement.account.available.to_string(),
        entries: page.items.iter().map(entry).collect::<Result<_, _>>()?,
        next_cursor: last.map(cursor),
        has_more: page.has_more,
    })
}

fn entry(entry: &Entry) -> Result<LedgerEntry, ApiError> {
    let mark = entry
        .mark
        .ok_or_else(|| ApiError::internal("a ledger entry without its number in the account"))?;
    let amount = entry.transfer.amount;
    let delta = if entry.transfer.debit == AccountKind::Partner {
        format!("-{amount}")
    } else {
        amount.to_string()
    };
    Ok(LedgerEntry {
        id: entry.id.to_string(),
        delta,
        balance_after: mark.balance_after.to_string(),
        reason: entry.transfer.reason.into(),
        reference: entry.reference.clone(),
        transact_id: entry.trade.map(|(trade, _)| trade.to_string()),
        created_at: instant(entry.created_at),
    })
}

#[cfg(test)]
mod tests {
    use kernel::Mode;
    use proptest::prelude::*;
    use ulid::Ulid;

    use super::*;

    proptest! {
        // rule: list.malformed-cursor
        #[test]
        fn every_position_has_one_cursor(sequence in 1..=i64::MAX, number in any::<u128>()) {
            let entry = EntryId::from_parts(Mode::Live, Ulid(number));
            let read = place(&cursor(LedgerCursor { sequence, entry })).unwrap();
            prop_assert_eq!((read.sequence, read.entry), (sequence, entry));
        }
    }
}
