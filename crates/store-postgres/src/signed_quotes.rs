//! Signed quotes: rows in and out.

use crate::conn::Conn;
use async_trait::async_trait;
use gate_core::ports::SignedQuoteTx;
use gate_core::signed_quote::{SignedQuote, SignedQuoteId};
use instruments::failpoint::{Step, around};
use kernel::{Cas, StoreError, Timestamp};
use partner_core::Tenant;
use store_sql::signed_quotes::{check_new, quote};

use crate::errors;
use crate::row::{Columns, key, own_key};
use crate::tx::PgTx;

#[async_trait]
impl SignedQuoteTx for PgTx {
    async fn signed_quote_insert(
        &mut self,
        who: &Tenant,
        quote: &SignedQuote,
    ) -> Result<(), StoreError> {
        let inserting = insert(self.locked_connection(who).await?, who, quote);
        around(Step::SignedQuoteInsert, inserting).await
    }

    async fn signed_quote_lock(
        &mut self,
        who: &Tenant,
        id: SignedQuoteId,
    ) -> Result<Option<SignedQuote>, StoreError> {
        find(self.locked_connection(who).await?, who, id).await
    }

    async fn signed_quote_consume(
        &mut self,
        who: &Tenant,
        id: SignedQuoteId,
        now: Timestamp,
    ) -> Result<Cas, StoreError> {
        let consuming = consume(self.locked_connection(who).await?, who, id, now);
        let outcome = around(Step::SignedQuoteConsume, consuming).await?;
        Ok(self.record_race(outcome))
    }
}

pub(crate) async fn find(
    conn: &mut Conn,
    who: &Tenant,
    id: SignedQuoteId,
) -> Result<Option<SignedQuote>, StoreError> {
    let Some(key) = own_key(who, id) else {
        return Ok(None);
    };
    let row = sqlx::query(
        "SELECT partner_id, id, side, currency, asset, asset_scale, network, payment_method, fiat, crypto, rate,
                service_fee, network_fee, signature, created_at, expires_at, consumed_at
         FROM signed_quotes WHERE mode = $1 AND partner_id = $2 AND id = $3",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key)
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    row.map(|row| quote(&Columns::new("signed_quotes", &row), who.mode))
        .transpose()
}

async fn insert(conn: &mut Conn, who: &Tenant, quote: &SignedQuote) -> Result<(), StoreError> {
    check_new(who, quote)?;
    let (terms, priced) = (&quote.terms, &quote.terms.priced);
    sqlx::query(
        "INSERT INTO signed_quotes (mode, partner_id, id, side, currency, asset, asset_scale, network, payment_method,
                                    fiat, crypto, rate, service_fee, network_fee, signature, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key(quote.id))
    .bind(terms.side.as_str())
    .bind(terms.currency().code())
    .bind(terms.asset().code())
    .bind(i16::from(terms.asset().scale()))
    .bind(&terms.network)
    .bind(&terms.payment_method)
    .bind(priced.fiat.units())
    .bind(priced.crypto.units())
    .bind(priced.rate.to_string())
    .bind(priced.fees.service.units())
    .bind(priced.fees.network.units())
    .bind(quote.signature.0.as_slice())
    .bind(quote.created_at.millis())
    .bind(quote.expires_at.millis())
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}

async fn consume(
    conn: &mut Conn,
    who: &Tenant,
    id: SignedQuoteId,
    now: Timestamp,
) -> Result<Cas, StoreError> {
    let Some(key) = own_key(who, id) else {
        return Ok(Cas::Lost);
    };
    let written = sqlx::query(
        "UPDATE signed_quotes SET consumed_at = $4
         WHERE mode = $1 AND partner_id = $2 AND id = $3 AND consumed_at IS NULL AND expires_at > $4",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key)
    .bind(now.millis())
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Cas::from_rows(written.rows_affected())
}
