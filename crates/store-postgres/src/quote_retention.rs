//! Forgets quotes that were never executed, some time after they expired.

use std::time::Duration;

use crate::conn::Conn;
use async_trait::async_trait;
use kernel::{Mode, StoreError, Timestamp};
use partner_core::Tenant;
use pools_core::ports::{Forgotten, QuoteRetention};
use sqlx::types::Uuid;

use crate::row::Columns;
use crate::tx::PgTx;
use crate::{PostgresStore, errors};

#[async_trait]
impl QuoteRetention for PostgresStore {
    async fn quotes_overdue(
        &self,
        mode: Mode,
        expired_for: Duration,
        limit: u32,
    ) -> Result<Vec<Tenant>, StoreError> {
        let mut conn = self.inner.conn().await?;
        let before = self.instant(&mut conn).await?.minus(expired_for);
        let rows = sqlx::query(OVERDUE)
            .bind(mode.as_str())
            .bind(before.millis())
            .bind(i64::from(limit))
            .fetch_all(&mut *conn)
            .await
            .map_err(errors::statement)?;
        rows.iter()
            .map(|row| {
                let partner = Columns::new("partners", row).partner()?;
                Ok(Tenant { partner, mode })
            })
            .collect()
    }

    async fn quotes_forget(
        &self,
        who: &Tenant,
        expired_for: Duration,
        limit: u32,
    ) -> Result<Forgotten, StoreError> {
        let mut tx = PgTx::begin(self, "quotes_forget").await?;
        let before = tx.instant().await?.minus(expired_for);
        let after = place(tx.conn(), who).await?;
        let found = next(tx.conn(), who, after.as_ref(), limit).await?;
        let overdue = found.iter().take_while(|(_, expired)| *expired <= before);
        let looked_at = overdue.clone().count();
        let Some((reached, _)) = overdue.last() else {
            return Ok(Forgotten {
                deleted: 0,
                more: false,
            });
        };
        let deleted = sqlx::query(DELETE)
            .bind(who.mode.as_str())
            .bind(who.partner.as_str())
            .bind(after)
            .bind(reached)
            .bind(before.millis())
            .execute(tx.conn())
            .await
            .map_err(errors::statement)?
            .rows_affected();
        sqlx::query(PUT)
            .bind(who.mode.as_str())
            .bind(who.partner.as_str())
            .bind(reached)
            .execute(tx.conn())
            .await
            .map_err(errors::statement)?;
        let more = u32::try_from(looked_at) == Ok(limit);
        tx.finish().await?;
        Ok(Forgotten { deleted, more })
    }
}

/// The last quote of a partner that has been looked at.
async fn place(conn: &mut Conn, who: &Tenant) -> Result<Option<Uuid>, StoreError> {
    sqlx::query_scalar(
        "SELECT quote_id FROM quote_sweeps WHERE mode = $1 AND partner_id = $2 FOR UPDATE",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)
}

/// The next quotes of a partner in the order of their ids, each with its expiry.
async fn next(
    conn: &mut Conn,
    who: &Tenant,
    after: Option<&Uuid>,
    limit: u32,
) -> Result<Vec<(Uuid, Timestamp)>, StoreError> {
    let rows: Vec<(Uuid, i64)> = sqlx::query_as(NEXT)
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    rows.into_iter()
        .map(|(id, expires)| {
            let instant =
                Timestamp::from_millis(expires).ok_or_else(|| StoreError::Inconsistent {
                    table: "quotes",
                    column: "expires_at",
                    row: id.to_string(),
                })?;
            Ok((id, instant))
        })
        .collect()
}

/// Of each partner one quote is looked at: the next one after those that have been.
pub(crate) const OVERDUE: &str = "SELECT p.partner_id FROM partners AS p
     LEFT JOIN quote_sweeps AS s ON s.mode = p.mode AND s.partner_id = p.partner_id
     WHERE p.mode = $1
       AND (SELECT q.expires_at FROM quotes AS q
            WHERE q.mode = p.mode AND q.partner_id = p.partner_id AND q.id > coalesce(s.quote_id, '00000000-0000-0000-0000-000000000000'::uuid)
            ORDER BY q.id LIMIT 1) <= $2
     LIMIT $3";

/// Ids begin with the time at which they were made, so the oldest quotes come first.
pub(crate) const NEXT: &str = "SELECT id, expires_at FROM quotes
     WHERE mode = $1 AND partner_id = $2 AND id > coalesce($3::uuid, '00000000-0000-0000-0000-000000000000'::uuid) ORDER BY id LIMIT $4";

/// A trade keeps its quote.
pub(crate) const DELETE: &str = "DELETE FROM quotes
     WHERE mode = $1 AND partner_id = $2 AND id > coalesce($3::uuid, '00000000-0000-0000-0000-000000000000'::uuid) AND id <= $4
       AND consumed_at IS NULL AND expires_at <= $5";

const PUT: &str = "INSERT INTO quote_sweeps (mode, partner_id, quote_id) VALUES ($1, $2, $3)
     ON CONFLICT (mode, partner_id) DO UPDATE SET quote_id = greatest(quote_sweeps.quote_id, excluded.quote_id)";
