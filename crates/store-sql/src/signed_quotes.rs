//! Signed quotes: their rows, redemption and deletion, and the terms that a rail's record has from its quote.

use async_trait::async_trait;
use gate_core::ports::SignedQuoteTx;
use gate_core::pricing::{Fees, Priced};
use gate_core::session::{Flow, SessionId};
use gate_core::signed_quote::{Conversion, QuoteTerms, SignedQuote, SignedQuoteId, Source};
use kernel::{Asset, Cas, Mode, Rate, Readable, Seen, StoreResult, Timestamp};
use partner_core::Tenant;
use partner_core::ports::UnitOfWork as _;
use partner_core::sealing::Signature;

use crate::store_tx::guard;
use crate::{Connection, Reader, Row, Sql, Statement, StoreTx, values};

#[async_trait]
impl SignedQuoteTx for StoreTx {
    async fn signed_quote_insert(&mut self, who: &Tenant, quote: &SignedQuote) -> StoreResult<()> {
        let of_mode = quote.id.mode() == who.mode
            && quote
                .session
                .is_none_or(|session| session.mode() == who.mode);
        let is_open = quote.consumed_at.is_none() && quote.superseded_at.is_none();
        guard(of_mode && is_open, || {
            let id = quote.id;
            format!("signed_quotes: {id} has another mode, or is redeemed or superseded already")
        })?;
        let (terms, priced) = (&quote.terms, &quote.terms.priced);
        let (currency, asset, rate) = (terms.currency(), terms.asset(), priced.rate.to_string());
        let source = terms.source();
        let sent = source.map(|source| source.amount.asset());
        let values = values![
            who.mode,
            &who.partner,
            quote.id,
            terms.flow().as_str(),
            currency.code(),
            asset.code(),
            i16::from(asset.scale()),
            &terms.network,
            terms.payment_method(),
            priced.fiat.units(),
            priced.crypto.units(),
            &rate,
            priced.fees.service.units(),
            priced.fees.network.units(),
            quote.signature.0.as_slice(),
            quote.created_at,
            quote.expires_at,
            quote.session,
            sent.as_ref().map(Asset::code),
            sent.map(|asset| i16::from(asset.scale())),
            source.map(|source| source.network.as_str()),
            source.map(|source| source.amount.units()),
        ];
        self.insert_around("signed_quote.insert", who, &INSERT, values)
            .await
    }

    async fn signed_quote_lock(
        &mut self,
        who: &Tenant,
        id: SignedQuoteId,
    ) -> StoreResult<Option<SignedQuote>> {
        find(self.locked(who).await?, who, id).await
    }

    async fn signed_quotes_supersede(
        &mut self,
        who: &Tenant,
        session: SessionId,
        now: Timestamp,
    ) -> StoreResult<()> {
        let values = values![who.mode, &who.partner, session.in_mode(who.mode), now];
        self.insert_around("signed_quote.supersede", who, &SUPERSEDE, values)
            .await
    }

    async fn signed_quote_consume(
        &mut self,
        who: &Tenant,
        id: SignedQuoteId,
        now: Timestamp,
    ) -> StoreResult<Cas> {
        let values = values![who.mode, &who.partner, id.in_mode(who.mode), now];
        self.swap_around("signed_quote.consume", who, &CONSUME, values)
            .await
    }
}

pub async fn get(
    reader: &mut dyn Reader,
    who: &Tenant,
    id: SignedQuoteId,
) -> StoreResult<Option<Seen<SignedQuote>>> {
    match find(reader.connection(), who, id).await? {
        Some(quote) => reader.seen(quote).await.map(Some),
        None => Ok(None),
    }
}

async fn find(
    connection: &mut dyn Connection,
    who: &Tenant,
    id: SignedQuoteId,
) -> StoreResult<Option<SignedQuote>> {
    let values = values![who.mode, &who.partner, id.in_mode(who.mode)];
    let row = connection.fetch_optional(&FIND, values).await?;
    row.map(|row| quote(&*row, who.mode)).transpose()
}

pub static FIND: Statement = Statement::new(
    "signed_quotes",
    "SELECT partner_id, id, side, currency, asset, asset_scale, network, payment_method, fiat, crypto, rate,
            service_fee, network_fee, signature, created_at, expires_at, consumed_at, session_id, superseded_at,
            source_asset, source_scale, source_network, source_amount
     FROM signed_quotes WHERE mode = $1 AND partner_id = $2 AND id = $3",
);

pub(crate) fn quote(row: &dyn Row, mode: Mode) -> StoreResult<SignedQuote> {
    Ok(SignedQuote {
        id: row.id("id", mode)?,
        terms: terms(row)?,
        session: row.opt_id("session_id", mode)?,
        created_at: row.instant("created_at")?,
        expires_at: row.instant("expires_at")?,
        consumed_at: row.opt_instant("consumed_at")?,
        superseded_at: row.opt_instant("superseded_at")?,
        signature: Signature(row.digest("signature")?),
    })
}

/// The terms of a quote, from a row that has them among its columns.
pub(crate) fn terms(row: &dyn Row) -> StoreResult<QuoteTerms> {
    let currency = row.parsed("currency", Asset::fiat)?;
    let scale = u8::try_from(row.small("asset_scale")?).map_err(|_| row.bad("asset_scale"))?;
    let asset = row.parsed("asset", |symbol| Asset::listed(symbol, scale))?;
    let service = row.amount("service_fee", currency)?;
    let fees = Fees::of(service, row.amount("network_fee", currency)?);
    Ok(QuoteTerms {
        conversion: conversion(row)?,
        network: row.text("network")?.to_owned(),
        priced: Priced {
            rate: row.parsed("rate", Rate::parse)?,
            fiat: row.amount("fiat", currency)?,
            crypto: row.amount("crypto", asset)?,
            fees: fees.ok_or_else(|| row.bad("service_fee"))?,
        },
    })
}

fn conversion(row: &dyn Row) -> StoreResult<Conversion> {
    let method = || row.text("payment_method").map(str::to_owned);
    Ok(match row.parsed("side", Flow::parse)? {
        Flow::OnRamp => Conversion::Purchase {
            payment_method: method()?,
        },
        Flow::OffRamp => Conversion::Sale {
            payment_method: method()?,
        },
        Flow::Swap => {
            let scale = u8::try_from(row.small("source_scale")?);
            let scale = scale.map_err(|_| row.bad("source_scale"))?;
            let asset = row.parsed("source_asset", |symbol| Asset::listed(symbol, scale))?;
            Conversion::Swap(Source {
                amount: row.amount("source_amount", asset)?,
                network: row.text("source_network")?.to_owned(),
            })
        }
    })
}

static INSERT: Statement = Statement::new(
    "signed_quotes",
    "INSERT INTO signed_quotes (mode, partner_id, id, side, currency, asset, asset_scale, network, payment_method,
                                fiat, crypto, rate, service_fee, network_fee, signature, created_at, expires_at,
                                session_id, source_asset, source_scale, source_network, source_amount)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)",
);

pub static SUPERSEDE: Statement = Statement::new(
    "signed_quotes",
    "UPDATE signed_quotes SET superseded_at = $4
     WHERE mode = $1 AND partner_id = $2 AND session_id = $3 AND superseded_at IS NULL AND consumed_at IS NULL",
);

pub static CONSUME: Statement = Statement::new(
    "signed_quotes",
    "UPDATE signed_quotes SET consumed_at = $4
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND consumed_at IS NULL AND superseded_at IS NULL
       AND expires_at > $4",
);

/// Partners of a mode with ended sessions whose unused quotes were not deleted yet.
pub async fn unused_due(
    reader: &mut dyn Reader,
    mode: Mode,
    limit: u32,
) -> StoreResult<Readable<Tenant>> {
    let values = values![mode, limit];
    let rows = reader.connection().fetch_all(&UNUSED_DUE, values).await?;
    Ok(rows.iter().map(|row| row.tenant_in(mode)).collect())
}

/// Deletes the unused quotes of a partner's next ended sessions, and commits. If the statement has deleted all of them, the sessions
/// are not due again.
pub async fn delete_unused(mut tx: Box<StoreTx>, who: &Tenant, limit: u32) -> StoreResult<u64> {
    let connection = tx.locked(who).await?;
    let values = values![who.mode, &who.partner, limit];
    let due = connection.fetch_all(&ENDED, values).await?;
    let Some(last) = due.last() else {
        return Ok(0);
    };
    let reached = last.instant("expires_at")?;
    let values = values![who.mode, &who.partner, reached, limit];
    let deleted = connection.execute(&DELETE_UNUSED, values).await?;
    if deleted < u64::from(limit) {
        let now = tx.now().await?;
        let values = values![who.mode, &who.partner, reached, now];
        tx.connection().execute(&SWEPT, values).await?;
    }
    tx.commit().await?;
    Ok(deleted)
}

/// The condition that the index `sessions_quotes_due` has, of the sessions `s`. No other index has the order of `expires_at` for ended
/// sessions, so Postgres reads it whatever its statistics say. SQLite's texts name it.
macro_rules! quotes_due {
    () => {
        "s.status <> 'open' AND s.quotes_deleted_at IS NULL"
    };
}

macro_rules! unused_due {
    ($index:literal) => {
        concat!(
            "SELECT p.partner_id FROM partners AS p
     WHERE p.mode = $1
       AND (SELECT s.expires_at FROM sessions AS s",
            $index,
            " WHERE s.mode = p.mode AND s.partner_id = p.partner_id AND ",
            quotes_due!(),
            " ORDER BY s.expires_at LIMIT 1) IS NOT NULL
     LIMIT CAST($2 AS bigint)"
        )
    };
}

/// Looks up one session of each partner.
static UNUSED_DUE: Statement = Statement::per_engine(
    "partners",
    Sql {
        sqlite: unused_due!(" INDEXED BY sessions_quotes_due"),
        postgres: unused_due!(""),
    },
);

macro_rules! ended {
    ($index:literal) => {
        concat!(
            "SELECT s.partner_id, s.id, s.expires_at FROM sessions AS s",
            $index,
            " WHERE s.mode = $1 AND s.partner_id = $2 AND ",
            quotes_due!(),
            " ORDER BY s.expires_at LIMIT CAST($3 AS bigint)"
        )
    };
}

/// The next ended sessions of a partner.
pub static ENDED: Statement = Statement::per_engine(
    "sessions",
    Sql {
        sqlite: ended!(" INDEXED BY sessions_quotes_due"),
        postgres: ended!(""),
    },
);

/// The unused quotes of the sessions up to a deadline, found session by session: on Postgres `OFFSET 0` keeps the planner from another
/// order of the tables. A quote is unused by the condition of the index `signed_quotes_unused`.
pub static DELETE_UNUSED: Statement = Statement::per_engine(
    "signed_quotes",
    Sql {
        sqlite: concat!(
            "DELETE FROM signed_quotes WHERE rowid IN (
         SELECT q.rowid FROM sessions AS s INDEXED BY sessions_quotes_due
         CROSS JOIN signed_quotes AS q INDEXED BY signed_quotes_unused
             ON q.mode = s.mode AND q.partner_id = s.partner_id AND q.session_id = s.id
                 AND q.session_id IS NOT NULL AND coalesce(q.consumed_at, 0) = 0
         WHERE s.mode = $1 AND s.partner_id = $2 AND s.expires_at <= $3 AND ",
            quotes_due!(),
            " LIMIT CAST($4 AS bigint)
     )"
        ),
        postgres: concat!(
            "DELETE FROM signed_quotes WHERE (mode, partner_id, id) IN (
         SELECT q.mode, q.partner_id, q.id FROM sessions AS s
         CROSS JOIN LATERAL (
             SELECT u.mode, u.partner_id, u.id FROM signed_quotes AS u
             WHERE u.mode = s.mode AND u.partner_id = s.partner_id AND u.session_id = s.id
               AND u.session_id IS NOT NULL AND coalesce(u.consumed_at, 0) = 0
             OFFSET 0
         ) AS q
         WHERE s.mode = $1 AND s.partner_id = $2 AND s.expires_at <= $3 AND ",
            quotes_due!(),
            " LIMIT CAST($4 AS bigint)
     )"
        ),
    },
);

macro_rules! swept {
    ($index:literal) => {
        concat!(
            "UPDATE sessions AS s",
            $index,
            " SET quotes_deleted_at = $4
     WHERE s.mode = $1 AND s.partner_id = $2 AND s.expires_at <= $3 AND ",
            quotes_due!()
        )
    };
}

/// The sessions up to a deadline have no unused quotes.
pub static SWEPT: Statement = Statement::per_engine(
    "sessions",
    Sql {
        sqlite: swept!(" INDEXED BY sessions_quotes_due"),
        postgres: swept!(""),
    },
);
