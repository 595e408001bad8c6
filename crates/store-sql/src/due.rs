//! Reads of what is due, partner by partner, so that no partner's rows fill a read.

use gate_core::due::DueShare;
use kernel::{Mode, Readable, StoreResult, Timestamp, UpstreamName};
use partner_core::{PartnerId, Tenant};

use crate::stats::two;
use crate::{Reader, Row, Statement, values};

/// The text of a statement that reads the rows that are due at $2: of each partner after $3 at most $4, those that have been due for
/// the longest, and at most $5 in all. The table's alias is `o`.
///
/// The condition names columns without an alias. The index has mode, the columns that the condition compares, partner and `$at`, for the
/// rows of the condition only. One step in it finds the next partner, whatever
/// the number of rows, and no step is taken after enough rows were found. The order of the steps ends with `$at`, because no other
/// index has this order. SQLite's planner would take a longer index anyway, so its text names the index.
macro_rules! due_of_each_partner {
    (@partners $table:literal, $index:expr, $condition:literal, $at:literal) => {
        concat!(
            "WITH RECURSIVE each_partner (partner_id) AS (
         SELECT (SELECT n.partner_id FROM ", $table, " AS n", $index, "
                 WHERE n.mode = $1 AND ", $condition, " AND n.partner_id > $3
                 ORDER BY n.partner_id, n.", $at, " LIMIT 1)
         UNION ALL
         SELECT (SELECT n.partner_id FROM ", $table, " AS n", $index, "
                 WHERE n.mode = $1 AND ", $condition, " AND n.partner_id > each_partner.partner_id
                 ORDER BY n.partner_id, n.", $at, " LIMIT 1)
         FROM each_partner WHERE each_partner.partner_id IS NOT NULL
     )
     "
        )
    };
    (
        $table:literal where $condition:literal, $at:literal in $index:literal,
        [$first:literal $(, $column:literal)*], $also:expr
    ) => {
        $crate::Sql {
            sqlite: concat!(
                $crate::due::due_of_each_partner!(@partners $table, concat!(" INDEXED BY ", $index), $condition, $at),
                "SELECT d.partner_id, d.", $first, $(", d.", $column,)* ", d.", $at, " FROM each_partner
     CROSS JOIN ", $table, " AS d ON d.rowid IN (
         SELECT o.rowid FROM ", $table, " AS o INDEXED BY ", $index, "
         WHERE o.mode = $1 AND o.partner_id = each_partner.partner_id AND ", $condition, " AND o.", $at, " <= $2", $also, "
         ORDER BY o.", $at, " LIMIT CAST($4 AS bigint)
     )
     LIMIT CAST($5 AS bigint)"
            ),
            postgres: concat!(
                $crate::due::due_of_each_partner!(@partners $table, "", $condition, $at),
                "SELECT d.* FROM each_partner
     CROSS JOIN LATERAL (
         SELECT o.partner_id, o.", $first, $(", o.", $column,)* ", o.", $at, " FROM ", $table, " AS o
         WHERE o.mode = $1 AND o.partner_id = each_partner.partner_id AND ", $condition, " AND o.", $at, " <= $2", $also, "
         ORDER BY o.", $at, " LIMIT CAST($4 AS bigint)
     ) AS d
     LIMIT CAST($5 AS bigint)"
            ),
        }
    };
}
pub(crate) use due_of_each_partner;

/// Reads a share of what is due, at one upstream if $6 is its name. `at` is the column of the instant since when a row is due, and `id` reads the row's id.
pub(crate) async fn read<I>(
    reader: &mut dyn Reader,
    statement: &'static Statement,
    at: &'static str,
    (mode, upstream, share): (Mode, Option<&UpstreamName>, &DueShare),
    id: fn(&dyn Row, Mode) -> StoreResult<I>,
) -> StoreResult<Readable<(Tenant, I)>> {
    let now = reader.now().await?;
    let after = share.after.as_ref().map_or("", PartnerId::as_str);
    let values = values![mode, now, after, share.of_each, share.limit];
    let connection = reader.connection();
    let found = match upstream {
        None => connection.fetch_all(statement, values).await?,
        Some(name) => {
            let values = [values as &[_], values![name]].concat();
            connection.fetch_all(statement, &values).await?
        }
    };
    let read = found
        .iter()
        .map(|row| -> StoreResult<(Tenant, Timestamp, I)> {
            let who = row.tenant_in(mode)?;
            Ok((who, row.instant(at)?, id(&**row, mode)?))
        });
    let mut due: Readable<(Tenant, Timestamp, I)> = read.collect();
    // A partner's rows are together. SQLite returns them in the order in which they were inserted.
    for of_partner in due.rows.chunk_by_mut(|one, next| one.0 == next.0) {
        of_partner.sort_by_key(|(_, at, _)| *at);
    }
    let rows = due.rows.into_iter().map(|(who, _, id)| (who, id));
    Ok(Readable {
        rows: rows.collect(),
        unreadable: due.unreadable,
    })
}

/// What upstreams other than these hold in a mode, by name. There are at most two.
pub(crate) async fn elsewhere(
    reader: &mut dyn Reader,
    statement: &'static Statement,
    mode: Mode,
    names: &[UpstreamName],
) -> StoreResult<Vec<(UpstreamName, u64)>> {
    let [first, second] = two(names);
    let values = values![mode, first, second];
    let rows = reader.connection().fetch_all(statement, values).await?;
    let held = |row: &dyn Row| {
        Ok((
            row.parsed("holder", UpstreamName::parse)?,
            row.count("held")?,
        ))
    };
    rows.iter().map(|row| held(row.as_ref())).collect()
}
