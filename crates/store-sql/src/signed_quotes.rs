//! Signed quotes, and the terms that a rail's record has from its quote.

use gate_core::pricing::{Fees, Priced};
use gate_core::signed_quote::{QuoteTerms, SignedQuote};
use kernel::rates::Side;
use kernel::{Asset, Mode, Rate, StoreError};
use partner_core::Tenant;
use partner_core::sealing::Signature;

use crate::Row;

pub fn quote(row: &dyn Row, mode: Mode) -> Result<SignedQuote, StoreError> {
    Ok(SignedQuote {
        id: row.id("id", mode)?,
        terms: terms(row)?,
        created_at: row.instant("created_at")?,
        expires_at: row.instant("expires_at")?,
        consumed_at: row.opt_instant("consumed_at")?,
        signature: Signature(row.digest("signature")?),
    })
}

/// What a quote locks, from a row that has it among its columns.
pub fn terms(row: &dyn Row) -> Result<QuoteTerms, StoreError> {
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

/// A new quote is the tenant's, and was not redeemed.
pub fn check_new(who: &Tenant, quote: &SignedQuote) -> Result<(), StoreError> {
    if quote.id.mode() == who.mode && quote.consumed_at.is_none() {
        return Ok(());
    }
    Err(StoreError::Guard(format!(
        "signed_quotes: {} is of another mode, or was redeemed before it was given",
        quote.id
    )))
}
