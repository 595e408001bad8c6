//! Statistics of open trades. Metrics read them every few seconds, so no statement reads a whole table.

use kernel::{Mode, StoreError};
use pools_core::engine::EngineName;

use crate::trades::{held, open};
use crate::{Connection, Reader, Sql, Statement, values};

pub async fn held_elsewhere(
    reader: &mut dyn Reader,
    mode: Mode,
    engine: &EngineName,
) -> Result<Vec<(EngineName, u64)>, StoreError> {
    let values = values![mode, engine.as_str()];
    let rows = reader.connection().fetch_all(&ELSEWHERE, values).await?;
    rows.iter().map(|row| held(&**row)).collect()
}

/// Finds the reserved trades of each partner in the list's index.
pub static ELSEWHERE: Statement = Statement::per_engine(
    "trades",
    Sql {
        sqlite: concat!(
            "SELECT t.engine, count(*) AS trades
     FROM partners AS p
     CROSS JOIN trades AS t ON t.mode = p.mode AND t.partner_id = p.partner_id AND ",
            open!("t"),
            "
     WHERE p.mode = $1 AND t.engine <> $2
     GROUP BY t.engine ORDER BY t.engine"
        ),
        postgres: concat!(
            "SELECT open.engine, sum(open.trades)::bigint AS trades
     FROM books AS b
     CROSS JOIN LATERAL (
         SELECT t.engine, count(*) AS trades FROM trades AS t
         WHERE t.mode = b.mode AND t.partner_id = b.partner_id AND ",
            open!("t"),
            " AND t.engine <> $2
         GROUP BY t.engine
     ) AS open
     WHERE b.mode = $1
     GROUP BY open.engine ORDER BY open.engine"
        ),
    },
);

pub async fn claim(
    connection: &mut dyn Connection,
    mode: Mode,
    engine: &EngineName,
) -> Result<u64, StoreError> {
    let values = values![mode, engine.as_str()];
    connection.execute(&CLAIM, values).await
}

/// Finds the trades in the same way as [`ELSEWHERE`].
pub static CLAIM: Statement = Statement::per_engine(
    "trades",
    Sql {
        sqlite: concat!(
            "UPDATE trades SET engine = $2
     WHERE mode = $1 AND partner_id IN (SELECT partner_id FROM partners WHERE mode = $1) AND ",
            open!("trades"),
            "
       AND engine IS NULL"
        ),
        postgres: concat!(
            "UPDATE trades AS t SET engine = $2 FROM books AS b
     WHERE b.mode = $1 AND t.mode = b.mode AND t.partner_id = b.partner_id AND ",
            open!("t"),
            " AND t.engine IS NULL"
        ),
    },
);
