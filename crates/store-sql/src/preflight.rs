//! The preflight of a transact: what it reads before it calls the engine.

use std::time::Duration;

use kernel::{Seen, StoreResult};
use partner_core::idempotency::Scope;
use pools_core::ports::TransactSnapshot;
use pools_core::profile::PoolId;
use pools_core::quote::{Quote, QuoteId, QuoteOutcome};

use crate::idempotency::opt_answered;
use crate::ledger::funds;
use crate::quotes::opt_quote;
use crate::row::of_table;
use crate::{Reader, Sql, Statement, trades, values};

/// The idempotency record, the quote and the partner's funds, from one statement and thus from one snapshot. A quote that is open in
/// this snapshot has no trade in it. A second statement finds the trade of a consumed quote.
pub async fn read(
    reader: &mut dyn Reader,
    scope: &Scope,
    pool: &PoolId,
    quote: QuoteId,
    ttl: Duration,
) -> StoreResult<Seen<TransactSnapshot>> {
    let tenant = &scope.tenant;
    let (fiat, crypto) = (pool.fiat(), pool.crypto());
    let values = values![
        tenant.mode,
        &tenant.partner,
        &scope.route,
        scope.key.as_str(),
        quote.in_mode(tenant.mode),
        fiat.code(),
        crypto.code(),
    ];
    let row = reader.connection().fetch_one(&READ, values).await?;
    let mut at = reader.instant_of(&*row)?;
    let mut snapshot = TransactSnapshot {
        answered: of_table("idempotency_keys", opt_answered(&*row, ttl))?,
        quote: opt_quote(&*row, tenant.mode)?,
        trade: None,
        funds: of_table("accounts", funds(&*row, pool))?,
    };
    let consumed = |quote: &Quote| matches!(quote.outcome, QuoteOutcome::Consumed(_));
    if snapshot.quote.as_ref().is_some_and(consumed)
        && let Some(trade) = trades::get_by_quote(reader, tenant, quote).await?
    {
        (snapshot.trade, at) = (Some(trade.value), trade.at);
    }
    let value = snapshot;
    Ok(Seen { value, at })
}

macro_rules! read {
    ($clock:literal) => {
        concat!(
            "SELECT ",
            $clock,
            "i.fingerprint, i.created_at AS key_created_at, i.expires_at AS key_expires_at,
                ",
            $crate::quote_columns!("q."),
            ",
                f.available AS fiat_available, f.sequence AS fiat_sequence,
                y.available AS crypto_available, y.sequence AS crypto_sequence, v.total, v.floor
             FROM (SELECT 1) AS one
             LEFT JOIN idempotency_keys AS i ON i.mode = $1 AND i.partner_id = $2 AND i.route = $3 AND i.key = $4
             LEFT JOIN quotes AS q ON q.mode = $1 AND q.partner_id = $2 AND q.id = $5
             LEFT JOIN accounts AS f ON f.mode = $1 AND f.partner_id = $2 AND f.asset = $6
             LEFT JOIN accounts AS y ON y.mode = $1 AND y.partner_id = $2 AND y.asset = $7
             LEFT JOIN velocity AS v ON v.mode = $1 AND v.partner_id = $2"
        )
    };
}

static READ: Statement = Statement::per_engine(
    "quotes",
    Sql {
        sqlite: read!(""),
        postgres: read!("(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS clock, "),
    },
);
