//! Signed quotes: their rows and redemption, and the terms that a rail's record has from its quote.

use async_trait::async_trait;
use gate_core::ports::SignedQuoteTx;
use gate_core::pricing::{Fees, Priced};
use gate_core::signed_quote::{QuoteTerms, SignedQuote, SignedQuoteId};
use instruments::failpoint::around;
use kernel::rates::Side;
use kernel::{Asset, Cas, Mode, Rate, Seen, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::sealing::Signature;

use crate::{Connection, Reader, Row, Statement, StoreTx, values};

#[async_trait]
impl SignedQuoteTx for StoreTx {
    async fn signed_quote_insert(
        &mut self,
        who: &Tenant,
        quote: &SignedQuote,
    ) -> Result<(), StoreError> {
        let inserting = insert(self.locked(who).await?, who, quote);
        around("signed_quote.insert", inserting).await
    }

    async fn signed_quote_lock(
        &mut self,
        who: &Tenant,
        id: SignedQuoteId,
    ) -> Result<Option<SignedQuote>, StoreError> {
        find(self.locked(who).await?, who, id).await
    }

    async fn signed_quote_consume(
        &mut self,
        who: &Tenant,
        id: SignedQuoteId,
        now: Timestamp,
    ) -> Result<Cas, StoreError> {
        let consuming = consume(self.locked(who).await?, who, id, now);
        let outcome = around("signed_quote.consume", consuming).await?;
        Ok(self.record_race(outcome))
    }
}

pub async fn get(
    reader: &mut dyn Reader,
    who: &Tenant,
    id: SignedQuoteId,
) -> Result<Option<Seen<SignedQuote>>, StoreError> {
    match find(reader.connection(), who, id).await? {
        Some(quote) => reader.seen(quote).await.map(Some),
        None => Ok(None),
    }
}

async fn find(
    connection: &mut dyn Connection,
    who: &Tenant,
    id: SignedQuoteId,
) -> Result<Option<SignedQuote>, StoreError> {
    let Some(id) = id.in_mode(who.mode) else {
        return Ok(None);
    };
    let values = values![who.mode, &who.partner, id];
    let row = connection.fetch_optional(&FIND, values).await?;
    row.map(|row| quote(&*row, who.mode)).transpose()
}

static FIND: Statement = Statement::new(
    "signed_quotes",
    "SELECT partner_id, id, side, currency, asset, asset_scale, network, payment_method, fiat, crypto, rate,
            service_fee, network_fee, signature, created_at, expires_at, consumed_at
     FROM signed_quotes WHERE mode = $1 AND partner_id = $2 AND id = $3",
);

pub(crate) fn quote(row: &dyn Row, mode: Mode) -> Result<SignedQuote, StoreError> {
    Ok(SignedQuote {
        id: row.id("id", mode)?,
        terms: terms(row)?,
        created_at: row.instant("created_at")?,
        expires_at: row.instant("expires_at")?,
        consumed_at: row.opt_instant("consumed_at")?,
        signature: Signature(row.digest("signature")?),
    })
}

/// The terms of a quote, from a row that has them among its columns.
pub(crate) fn terms(row: &dyn Row) -> Result<QuoteTerms, StoreError> {
    let currency = row.parsed("currency", Asset::fiat)?;
    let scale = u8::try_from(row.small("asset_scale")?).map_err(|_| row.bad("asset_scale"))?;
    let asset = row.parsed("asset", |symbol| Asset::listed(symbol, scale))?;
    let service = row.amount("service_fee", currency)?;
    let fees = Fees::of(service, row.amount("network_fee", currency)?);
    Ok(QuoteTerms {
        side: row.parsed("side", Side::parse)?,
        network: row.text("network")?.to_owned(),
        payment_method: row.text("payment_method")?.to_owned(),
        priced: Priced {
            rate: row.parsed("rate", Rate::parse)?,
            fiat: row.amount("fiat", currency)?,
            crypto: row.amount("crypto", asset)?,
            fees: fees.ok_or_else(|| row.bad("service_fee"))?,
        },
    })
}

/// A new quote belongs to the tenant and is not redeemed.
fn check_new(who: &Tenant, quote: &SignedQuote) -> Result<(), StoreError> {
    if quote.id.mode() == who.mode && quote.consumed_at.is_none() {
        return Ok(());
    }
    Err(StoreError::Guard(format!(
        "signed_quotes: {} has another mode or is redeemed already",
        quote.id
    )))
}

async fn insert(
    connection: &mut dyn Connection,
    who: &Tenant,
    quote: &SignedQuote,
) -> Result<(), StoreError> {
    check_new(who, quote)?;
    let (terms, priced) = (&quote.terms, &quote.terms.priced);
    let (currency, asset, rate) = (terms.currency(), terms.asset(), priced.rate.to_string());
    let values = values![
        who.mode,
        &who.partner,
        quote.id,
        terms.side.as_str(),
        currency.code(),
        asset.code(),
        i16::from(asset.scale()),
        &terms.network,
        &terms.payment_method,
        priced.fiat.units(),
        priced.crypto.units(),
        &rate,
        priced.fees.service.units(),
        priced.fees.network.units(),
        quote.signature.0.as_slice(),
        quote.created_at,
        quote.expires_at,
    ];
    connection.execute(&INSERT, values).await.map(drop)
}

static INSERT: Statement = Statement::new(
    "signed_quotes",
    "INSERT INTO signed_quotes (mode, partner_id, id, side, currency, asset, asset_scale, network, payment_method,
                                fiat, crypto, rate, service_fee, network_fee, signature, created_at, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
);

async fn consume(
    connection: &mut dyn Connection,
    who: &Tenant,
    id: SignedQuoteId,
    now: Timestamp,
) -> Result<Cas, StoreError> {
    let Some(id) = id.in_mode(who.mode) else {
        return Ok(Cas::Lost);
    };
    let values = values![who.mode, &who.partner, id, now];
    Cas::from_rows(connection.execute(&CONSUME, values).await?)
}

static CONSUME: Statement = Statement::new(
    "signed_quotes",
    "UPDATE signed_quotes SET consumed_at = $4
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND consumed_at IS NULL AND expires_at > $4",
);
