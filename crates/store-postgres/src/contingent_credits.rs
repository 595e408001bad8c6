//! Contingent credits (table `commitments`): kept as a total, and recounted from the trades in slices.

use crate::conn::Conn;
use kernel::{Asset, AssetKind, Mode, StoreError, Timestamp};
use partner_core::Tenant;
use pools_core::contingent_credit::{Amounts, Range, Recount};
use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::Query;

use crate::errors;
use crate::row::Columns;

/// What trades of a range may still credit to an account.
pub(crate) async fn refundable(
    conn: &mut Conn,
    who: &Tenant,
    asset: Asset,
    range: Range,
    limit: u32,
) -> Result<Amounts, StoreError> {
    let leg = match asset.kind() {
        AssetKind::Fiat => format!("{}-", asset.code()),
        AssetKind::Crypto => format!("-{}", asset.code()),
    };
    let offset = i64::from(limit.saturating_sub(1));
    let query = match (range, asset.kind()) {
        // A settled trade gives no crypto back.
        (Range::Settled { .. }, AssetKind::Crypto) => return Ok(Amounts::default()),
        (
            Range::Settled {
                after,
                up_to,
                made_after,
            },
            AssetKind::Fiat,
        ) => of(SETTLED_FIAT, who, &leg)
            .bind(after.millis())
            .bind(up_to.millis())
            .bind(made_after.millis())
            .bind(offset),
        (Range::Reserved { after }, AssetKind::Fiat) => of(RESERVED_FIAT, who, &leg)
            .bind(after.millis())
            .bind(offset),
        (Range::Reserved { after }, AssetKind::Crypto) => of(RESERVED_CRYPTO, who, &leg)
            .bind(after.millis())
            .bind(offset),
    };
    let row = query.fetch_one(conn).await.map_err(errors::statement)?;
    store_sql::contingent_credits::amounts(&Columns::new("trades", &row))
}

fn of<'q>(
    statement: &'static str,
    who: &'q Tenant,
    leg: &'q str,
) -> Query<'q, Postgres, PgArguments> {
    let query = sqlx::query(statement);
    query
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(leg)
}

/// What a return of a settled trade would credit: of a purchase what it reserved, of a sale its fiat. Reads up to the instant of
/// one trade, that after the first $7, so that the next slice begins after it.
pub(crate) const SETTLED_FIAT: &str = "WITH bound AS MATERIALIZED (
         SELECT (SELECT t.settled_at FROM trades AS t
                 WHERE t.mode = $1 AND t.partner_id = $2 AND t.status = 'settled'
                   AND t.settled_at > $4 AND t.settled_at <= $5
                 ORDER BY t.settled_at LIMIT 1 OFFSET $7) AS reached
     ), x AS (
         SELECT CASE t.side WHEN 'on_ramp' THEN t.reserved ELSE t.fiat END AS amount
         FROM trades AS t
         WHERE t.mode = $1 AND t.partner_id = $2 AND t.status = 'settled' AND t.settled_at > $4
           AND t.settled_at <= coalesce((SELECT reached FROM bound), $5) AND t.created_at > $6
           AND left(t.pool, length($3)) = $3
     )
     SELECT (SELECT reached FROM bound) AS reached, coalesce(sum(x.amount / 100000000), 0)::bigint AS whole,
            coalesce(sum(x.amount % 100000000), 0)::bigint AS rest
     FROM x";

/// A reserved purchase gives back what it reserved, and a sale its fiat once it has settled and is returned.
pub(crate) const RESERVED_FIAT: &str = "WITH bound AS MATERIALIZED (
         SELECT (SELECT t.created_at FROM trades AS t
                 WHERE t.mode = $1 AND t.partner_id = $2 AND t.status = 'reserved' AND t.created_at > $4
                 ORDER BY t.created_at LIMIT 1 OFFSET $5) AS reached
     ), x AS (
         SELECT CASE t.side WHEN 'on_ramp' THEN t.reserved ELSE t.fiat END AS amount
         FROM trades AS t
         WHERE t.mode = $1 AND t.partner_id = $2 AND t.status = 'reserved' AND t.created_at > $4
           AND t.created_at <= coalesce((SELECT reached FROM bound), 9223372036854775807)
           AND left(t.pool, length($3)) = $3
     )
     SELECT (SELECT reached FROM bound) AS reached, coalesce(sum(x.amount / 100000000), 0)::bigint AS whole,
            coalesce(sum(x.amount % 100000000), 0)::bigint AS rest
     FROM x";

/// A reserved sale gives its crypto back.
pub(crate) const RESERVED_CRYPTO: &str = "WITH bound AS MATERIALIZED (
         SELECT (SELECT t.created_at FROM trades AS t
                 WHERE t.mode = $1 AND t.partner_id = $2 AND t.status = 'reserved' AND t.created_at > $4
                 ORDER BY t.created_at LIMIT 1 OFFSET $5) AS reached
     ), x AS (
         SELECT t.reserved AS amount
         FROM trades AS t
         WHERE t.mode = $1 AND t.partner_id = $2 AND t.status = 'reserved' AND t.created_at > $4
           AND t.created_at <= coalesce((SELECT reached FROM bound), 9223372036854775807)
           AND t.side = 'off_ramp' AND right(t.pool, length($3)) = $3
     )
     SELECT (SELECT reached FROM bound) AS reached, coalesce(sum(x.amount / 100000000), 0)::bigint AS whole,
            coalesce(sum(x.amount % 100000000), 0)::bigint AS rest
     FROM x";

pub(crate) async fn get(
    conn: &mut Conn,
    who: &Tenant,
    asset: Asset,
) -> Result<Option<i64>, StoreError> {
    let row = sqlx::query(
        "SELECT total FROM commitments WHERE mode = $1 AND partner_id = $2 AND asset = $3",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(asset.code())
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    row.map(|row| Columns::new("commitments", &row).integer("total"))
        .transpose()
}

pub(crate) async fn recount(
    conn: &mut Conn,
    who: &Tenant,
    asset: Asset,
) -> Result<Option<Recount>, StoreError> {
    let row = sqlx::query(
        "SELECT begun_at, ended_at, settled, reserved, total FROM recounts
         WHERE mode = $1 AND partner_id = $2 AND asset = $3",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(asset.code())
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    row.map(|row| store_sql::contingent_credits::recount(&Columns::new("recounts", &row)))
        .transpose()
}

pub(crate) async fn put_recount(
    conn: &mut Conn,
    who: &Tenant,
    asset: Asset,
    recount: &Recount,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO recounts (mode, partner_id, asset, begun_at, ended_at, settled, reserved, total)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (mode, partner_id, asset) DO UPDATE SET
             begun_at = excluded.begun_at, ended_at = excluded.ended_at, settled = excluded.settled,
             reserved = excluded.reserved, total = excluded.total",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(asset.code())
    .bind(recount.begun_at.millis())
    .bind(recount.ended_at.map(Timestamp::millis))
    .bind(recount.settled.millis())
    .bind(recount.reserved.millis())
    .bind(recount.total)
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}

pub(crate) async fn put(
    conn: &mut Conn,
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
    conn: &mut Conn,
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
