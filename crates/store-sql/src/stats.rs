//! Statistics of open trades and of trades that can still be returned. No statement reads a whole table.

use std::collections::BTreeMap;

use kernel::{Mode, StoreResult, Timestamp, UpstreamName};
use partner_core::ports::UnitOfWork as _;
use partner_core::{PartnerId, Tenant};
use pools_core::usecases::poll_trade::RETURN_WINDOW;

use crate::trades::{held, open};
use crate::{Connection, ReadStore, Reader, Sql, Statement, StoreTx, values};

pub async fn held_elsewhere(
    reader: &mut dyn Reader,
    mode: Mode,
    engines: &[UpstreamName],
) -> StoreResult<Vec<(UpstreamName, u64)>> {
    let [first, second] = two(engines);
    let values = values![mode, first, second];
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
     WHERE p.mode = $1 AND t.engine NOT IN ($2, $3)
     GROUP BY t.engine ORDER BY t.engine"
        ),
        postgres: concat!(
            "SELECT open.engine, sum(open.trades)::bigint AS trades
     FROM books AS b
     CROSS JOIN LATERAL (
         SELECT t.engine, count(*) AS trades FROM trades AS t
         WHERE t.mode = b.mode AND t.partner_id = b.partner_id AND ",
            open!("t"),
            " AND t.engine NOT IN ($2, $3)
         GROUP BY t.engine
     ) AS open
     WHERE b.mode = $1
     GROUP BY open.engine ORDER BY open.engine"
        ),
    },
);

/// Counts the settled trades of other engines, and those that name no engine, within the return window: partner by partner, in slices,
/// each on a connection of its own. A slice also has the further trades of the same millisecond as its last one.
pub async fn returnable_elsewhere(
    store: &impl ReadStore,
    mode: Mode,
    engines: &[UpstreamName],
    slice: u32,
) -> StoreResult<Vec<(Option<UpstreamName>, u64)>> {
    let since = store.now().await?.minus(RETURN_WINDOW);
    let mut found = BTreeMap::new();
    let mut last = None;
    while let Some(partner) = partner_after(store, mode, last.as_ref()).await? {
        let who = Tenant { partner, mode };
        let mut after = since;
        loop {
            let mut reader = store.reader().await?;
            let connection = reader.connection();
            let Some(end) = slice_end(connection, &who, after, slice).await? else {
                count(connection, &who, engines, (after, None), &mut found).await?;
                break;
            };
            count(connection, &who, engines, (after, Some(end)), &mut found).await?;
            after = end;
        }
        last = Some(who.partner);
    }
    Ok(found.into_iter().collect())
}

/// The names of at most two upstreams, for the parameters of a statement. No upstream has the empty name.
pub(crate) fn two(names: &[UpstreamName]) -> [&str; 2] {
    [0, 1].map(|place| names.get(place).map_or("", UpstreamName::as_str))
}

async fn partner_after(
    store: &impl ReadStore,
    mode: Mode,
    last: Option<&PartnerId>,
) -> StoreResult<Option<PartnerId>> {
    let mut reader = store.reader().await?;
    let values = values![mode, last.map_or("", PartnerId::as_str)];
    let row = reader.connection().fetch_optional(&NEXT_PARTNER, values);
    row.await?.map(|row| row.partner()).transpose()
}

static NEXT_PARTNER: Statement = Statement::new(
    "partners",
    "SELECT partner_id FROM partners WHERE mode = $1 AND partner_id > $2 ORDER BY partner_id LIMIT 1",
);

/// The settlement of the last trade of a slice; `None` if the slice is the last one.
async fn slice_end(
    connection: &mut dyn Connection,
    who: &Tenant,
    after: Timestamp,
    slice: u32,
) -> StoreResult<Option<Timestamp>> {
    let values = values![who.mode, &who.partner, after, slice.saturating_sub(1)];
    let row = connection.fetch_optional(&SLICE_END, values).await?;
    row.map(|row| row.instant("settled_at")).transpose()
}

/// Adds the trades of a slice. `None` is no upper bound.
async fn count(
    connection: &mut dyn Connection,
    who: &Tenant,
    engines: &[UpstreamName],
    (after, end): (Timestamp, Option<Timestamp>),
    found: &mut BTreeMap<Option<UpstreamName>, u64>,
) -> StoreResult<()> {
    let end = end.map_or(i64::MAX, Timestamp::millis);
    let [first, second] = two(engines);
    let values = values![who.mode, &who.partner, after, end, first, second];
    for row in connection.fetch_all(&SETTLED_ELSEWHERE, values).await? {
        let engine = row.opt_parsed("engine", UpstreamName::parse)?;
        let total = found.entry(engine).or_default();
        *total = total.saturating_add(row.count("trades")?);
    }
    Ok(())
}

/// SQLite's planner would choose an index of the list, which does not bound the settlement.
macro_rules! settled {
    ($what:literal, $filter:literal) => {
        Sql {
            sqlite: settled!($what, "trades INDEXED BY trades_settled", $filter),
            postgres: settled!($what, "trades", $filter),
        }
    };
    ($what:literal, $trades:literal, $filter:literal) => {
        concat!(
            "SELECT ",
            $what,
            " FROM ",
            $trades,
            " WHERE mode = $1 AND partner_id = $2 AND status = 'settled' AND settled_at > $3",
            $filter
        )
    };
}

/// The settlement of the trade after the first $4 ones.
pub static SLICE_END: Statement = Statement::per_engine(
    "trades",
    settled!(
        "settled_at",
        " ORDER BY settled_at LIMIT 1 OFFSET CAST($4 AS bigint)"
    ),
);

pub static SETTLED_ELSEWHERE: Statement = Statement::per_engine(
    "trades",
    settled!(
        "engine, count(*) AS trades",
        " AND settled_at <= $4 AND (engine NOT IN ($5, $6) OR engine IS NULL) GROUP BY engine"
    ),
);

/// Names the engine in the open trades that name none, commits, and returns their number.
pub async fn claim(mut tx: Box<StoreTx>, mode: Mode, engine: &UpstreamName) -> StoreResult<u64> {
    let values = values![mode, engine.as_str()];
    let claimed = tx.connection().execute(&CLAIM, values).await?;
    tx.commit().await?;
    Ok(claimed)
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
