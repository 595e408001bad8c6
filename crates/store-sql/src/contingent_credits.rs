//! Contingent credits (table `commitments`): stored as a total, and recounted from the trades in slices.

use kernel::{Asset, AssetKind, Mode, Readable, StoreResult};
use partner_core::Tenant;
use pools_core::contingent_credit::{Amounts, Range, Recount};

use crate::trades::open;
use crate::{Connection, Reader, Row, Statement, values};

/// Units of 10^-8 in a whole one.
const WHOLE: i128 = 100_000_000;

/// The amounts that trades of a range may still credit to an account.
pub(crate) async fn refundable(
    connection: &mut dyn Connection,
    who: &Tenant,
    asset: Asset,
    range: Range,
    limit: u32,
) -> StoreResult<Amounts> {
    let leg = match asset.kind() {
        AssetKind::Fiat => format!("{}-", asset.code()),
        AssetKind::Crypto => format!("-{}", asset.code()),
    };
    let offset = limit.saturating_sub(1);
    let row = match (range, asset.kind()) {
        // The return of a settled trade credits no crypto.
        (Range::Settled { .. }, AssetKind::Crypto) => return Ok(Amounts::default()),
        (
            Range::Settled {
                after,
                up_to,
                created_after,
            },
            AssetKind::Fiat,
        ) => {
            let values = values![
                who.mode,
                &who.partner,
                &leg,
                after,
                up_to,
                created_after,
                offset
            ];
            connection.fetch_one(&SETTLED_FIAT, values).await?
        }
        (Range::Reserved { after }, kind) => {
            let statement = match kind {
                AssetKind::Fiat => &RESERVED_FIAT,
                AssetKind::Crypto => &RESERVED_CRYPTO,
            };
            let values = values![who.mode, &who.partner, &leg, after, offset];
            connection.fetch_one(statement, values).await?
        }
    };
    amounts(&*row)
}

/// Whole units and fractions are summed separately, because their common sum can exceed a `bigint`.
macro_rules! refundable {
    ($bound:expr, $amounts:expr) => {
        concat!(
            "WITH bound AS MATERIALIZED (SELECT (",
            $bound,
            ") AS reached), x AS (",
            $amounts,
            ")
             SELECT (SELECT reached FROM bound) AS reached, CAST(coalesce(sum(x.amount / 100000000), 0) AS bigint) AS whole,
                    CAST(coalesce(sum(x.amount % 100000000), 0) AS bigint) AS rest
             FROM x"
        )
    };
}

/// The amount that the return of a settled trade would credit: the reserve of a purchase, the fiat of a sale. Reads up to the instant of
/// the trade after the first $7, so that the next slice begins after it.
pub static SETTLED_FIAT: Statement = Statement::new(
    "trades",
    refundable!(
        "SELECT t.settled_at FROM trades AS t
         WHERE t.mode = $1 AND t.partner_id = $2 AND t.status = 'settled' AND t.settled_at > $4 AND t.settled_at <= $5
         ORDER BY t.settled_at LIMIT 1 OFFSET CAST($7 AS bigint)",
        "SELECT CASE t.side WHEN 'on_ramp' THEN t.reserved ELSE t.fiat END AS amount
         FROM trades AS t
         WHERE t.mode = $1 AND t.partner_id = $2 AND t.status = 'settled' AND t.settled_at > $4
           AND t.settled_at <= coalesce((SELECT reached FROM bound), $5) AND t.created_at > $6
           AND substr(t.pool, 1, length($3)) = $3"
    ),
);

/// An amount of each reserved trade that fits a condition.
macro_rules! of_reserved {
    ($amount:literal, $condition:literal) => {
        refundable!(
            concat!(
                "SELECT t.created_at FROM trades AS t
         WHERE t.mode = $1 AND t.partner_id = $2 AND ",
                open!("t"),
                " AND t.created_at > $4
         ORDER BY t.created_at LIMIT 1 OFFSET CAST($5 AS bigint)"
            ),
            concat!(
                "SELECT ",
                $amount,
                " AS amount
         FROM trades AS t
         WHERE t.mode = $1 AND t.partner_id = $2 AND ",
                open!("t"),
                " AND t.created_at > $4
           AND t.created_at <= coalesce((SELECT reached FROM bound), 9223372036854775807)
           AND ",
                $condition
            )
        )
    };
}

/// A reserved purchase may credit its reserve. A reserved sale may credit its fiat if it settles and is returned.
pub static RESERVED_FIAT: Statement = Statement::new(
    "trades",
    of_reserved!(
        "CASE t.side WHEN 'on_ramp' THEN t.reserved ELSE t.fiat END",
        "substr(t.pool, 1, length($3)) = $3"
    ),
);

/// A reserved sale may credit its crypto.
pub static RESERVED_CRYPTO: Statement = Statement::new(
    "trades",
    of_reserved!(
        "t.reserved",
        "t.side = 'off_ramp' AND substr(t.pool, length(t.pool) - length($3) + 1) = $3"
    ),
);

fn amounts(row: &dyn Row) -> StoreResult<Amounts> {
    let (whole, rest) = (row.integer("whole")?, row.integer("rest")?);
    let units = i128::from(whole).saturating_mul(WHOLE);
    Ok(Amounts {
        amount: units.saturating_add(rest.into()),
        reached: row.opt_instant("reached")?,
    })
}

pub(crate) static FIND: Statement = Statement::new(
    "commitments",
    "SELECT total FROM commitments WHERE mode = $1 AND partner_id = $2 AND asset = $3",
);

pub(crate) static PUT: Statement = Statement::new(
    "commitments",
    "INSERT INTO commitments (mode, partner_id, asset, total) VALUES ($1, $2, $3, $4)
     ON CONFLICT (mode, partner_id, asset) DO UPDATE SET total = excluded.total",
);

/// The accounts of a mode whose contingent credits exceed a total.
pub async fn above(
    reader: &mut dyn Reader,
    mode: Mode,
    total: i64,
) -> StoreResult<Readable<(Tenant, Asset)>> {
    let values = values![mode, total];
    let rows = reader.connection().fetch_all(&ABOVE, values).await?;
    let accounts = rows.iter().map(|row| -> StoreResult<(Tenant, Asset)> {
        Ok((row.tenant_in(mode)?, row.asset("asset")?))
    });
    Ok(accounts.collect())
}

pub static ABOVE: Statement = Statement::new(
    "commitments",
    "SELECT partner_id, asset FROM commitments WHERE mode = $1 AND total > $2",
);

pub(crate) static FIND_RECOUNT: Statement = Statement::new(
    "recounts",
    "SELECT begun_at, ended_at, settled, reserved, total FROM recounts
     WHERE mode = $1 AND partner_id = $2 AND asset = $3",
);

/// The progress of an account's recount.
pub(crate) fn recount(row: &dyn Row) -> StoreResult<Recount> {
    Ok(Recount {
        begun_at: row.instant("begun_at")?,
        ended_at: row.opt_instant("ended_at")?,
        settled: row.instant("settled")?,
        reserved: row.instant("reserved")?,
        total: row.integer("total")?,
    })
}

pub(crate) static PUT_RECOUNT: Statement = Statement::new(
    "recounts",
    "INSERT INTO recounts (mode, partner_id, asset, begun_at, ended_at, settled, reserved, total)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT (mode, partner_id, asset) DO UPDATE SET
         begun_at = excluded.begun_at, ended_at = excluded.ended_at, settled = excluded.settled,
         reserved = excluded.reserved, total = excluded.total",
);
