//! What accounts are committed to: counted from the trades, and kept as a total.

use kernel::{Asset, AssetKind, Mode, StoreError, Timestamp};
use partner_core::Tenant;
use sqlx::PgConnection;

use crate::errors;
use crate::row::Columns;

/// What trades may still credit to an account.
pub(crate) async fn refundable(
    conn: &mut PgConnection,
    who: &Tenant,
    asset: Asset,
    settled_after: Timestamp,
) -> Result<i128, StoreError> {
    let (statement, leg) = match asset.kind() {
        AssetKind::Fiat => (REFUNDABLE_FIAT, format!("{}-", asset.code())),
        AssetKind::Crypto => (REFUNDABLE_CRYPTO, format!("-{}", asset.code())),
    };
    let row = sqlx::query(statement)
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(leg)
        .bind(settled_after.millis())
        .fetch_one(conn)
        .await
        .map_err(errors::statement)?;
    store_rows::commitments::refundable(&Columns::new("trades", &row))
}

/// A settled or open purchase gives back what it reserved, a sale its fiat.
pub(crate) const REFUNDABLE_FIAT: &str =
    "SELECT coalesce(sum(amount / 100000000), 0)::bigint AS whole,
            coalesce(sum(amount % 100000000), 0)::bigint AS rest
     FROM (
         SELECT CASE side WHEN 'on_ramp' THEN reserved ELSE fiat END AS amount
         FROM trades
         WHERE mode = $1 AND partner_id = $2 AND status = 'reserved' AND left(pool, length($3)) = $3
         UNION ALL
         SELECT CASE side WHEN 'on_ramp' THEN reserved ELSE fiat END
         FROM trades
         WHERE mode = $1 AND partner_id = $2 AND status = 'settled' AND settled_at > $4
           AND left(pool, length($3)) = $3
     ) AS back";

/// Only an open sale gives crypto back; the last parameter is not asked for.
pub(crate) const REFUNDABLE_CRYPTO: &str =
    "SELECT coalesce(sum(reserved / 100000000), 0)::bigint AS whole,
            coalesce(sum(reserved % 100000000), 0)::bigint AS rest
     FROM trades
     WHERE mode = $1 AND partner_id = $2 AND side = 'off_ramp' AND status = 'reserved'
       AND right(pool, length($3)) = $3 AND $4::bigint IS NOT NULL";

pub(crate) async fn put(
    conn: &mut PgConnection,
    who: &Tenant,
    asset: Asset,
    total: i64,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO commitments (mode, partner_id, asset, total) VALUES ($1, $2, $3, $4)
         ON CONFLICT (mode, partner_id, asset) DO UPDATE SET total = excluded.total",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(asset.code())
    .bind(total)
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}

pub(crate) async fn above(
    conn: &mut PgConnection,
    mode: Mode,
    total: i64,
) -> Result<Vec<(Tenant, Asset)>, StoreError> {
    let rows = sqlx::query(ABOVE)
        .bind(mode.as_str())
        .bind(total)
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    rows.iter()
        .map(|row| {
            let row = Columns::new("commitments", row);
            let partner = row.partner()?;
            Ok((Tenant { partner, mode }, row.asset("asset")?))
        })
        .collect()
}

pub(crate) const ABOVE: &str =
    "SELECT partner_id, asset FROM commitments WHERE mode = $1 AND total > $2";
