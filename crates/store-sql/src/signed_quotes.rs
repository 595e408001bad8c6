//! Signed quotes: their rows and redemption, and the terms that a rail's record has from its quote.

use async_trait::async_trait;
use gate_core::ports::SignedQuoteTx;
use gate_core::pricing::{Fees, Priced};
use gate_core::session::{Flow, SessionId};
use gate_core::signed_quote::{Conversion, QuoteTerms, SignedQuote, SignedQuoteId, Source};
use kernel::{Asset, Cas, Mode, Rate, Seen, StoreResult, Timestamp};
use partner_core::Tenant;
use partner_core::sealing::Signature;

use crate::store_tx::guard;
use crate::{Connection, Reader, Row, Statement, StoreTx, values};

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
