//! Deletes quotes that expired some time ago and were never executed.

use std::time::Duration;

use kernel::{Mode, Readable, StoreResult, Timestamp};
use partner_core::Tenant;
use partner_core::ports::UnitOfWork as _;
use pools_core::ports::Forgotten;
use pools_core::quote::QuoteId;
use ulid::Ulid;

use crate::{Reader, Sql, Statement, StoreTx, values};

/// Partners of a mode whose next quote expired this long ago.
pub async fn overdue(
    reader: &mut dyn Reader,
    mode: Mode,
    expired_for: Duration,
    limit: u32,
) -> StoreResult<Readable<Tenant>> {
    let before = reader.now().await?.minus(expired_for);
    let values = values![mode, before, Ulid::nil(), limit];
    let rows = reader.connection().fetch_all(&OVERDUE, values).await?;
    Ok(rows.iter().map(|row| row.tenant_in(mode)).collect())
}

/// Reads the quote of each partner after the last quote that a sweep has read.
static OVERDUE: Statement = Statement::new(
    "partners",
    "SELECT p.partner_id FROM partners AS p
     LEFT JOIN quote_sweeps AS s ON s.mode = p.mode AND s.partner_id = p.partner_id
     WHERE p.mode = $1
       AND (SELECT q.expires_at FROM quotes AS q
            WHERE q.mode = p.mode AND q.partner_id = p.partner_id AND q.id > coalesce(s.quote_id, $3)
            ORDER BY q.id LIMIT 1) <= $2
     LIMIT CAST($4 AS bigint)",
);

/// Reads a partner's next quotes, deletes those that expired this long ago and were never executed, and commits.
pub async fn forget(
    mut tx: Box<StoreTx>,
    who: &Tenant,
    expired_for: Duration,
    limit: u32,
) -> StoreResult<Forgotten> {
    let before = tx.now().await?.minus(expired_for);
    let connection = tx.engine.connection();
    let values = values![who.mode, &who.partner];
    let last = connection.fetch_optional(&LAST_SWEPT, values).await?;
    let last: Option<QuoteId> = last.map(|row| row.id("quote_id", who.mode)).transpose()?;
    // Before the first sweep, it is an id below all others.
    let after = last.map_or(Ulid::nil(), |last| last.ulid());
    let values = values![who.mode, &who.partner, after, limit];
    let found: Vec<(QuoteId, Timestamp)> = connection
        .fetch_all(&NEXT, values)
        .await?
        .iter()
        .map(|row| Ok((row.id("id", who.mode)?, row.instant("expires_at")?)))
        .collect::<StoreResult<_>>()?;
    let overdue = found.iter().take_while(|(_, expired)| *expired <= before);
    let swept = overdue.clone().count();
    let Some((reached, _)) = overdue.last() else {
        return Ok(Forgotten {
            deleted: 0,
            more: false,
        });
    };
    let values = values![who.mode, &who.partner, after, *reached, before];
    let deleted = connection.execute(&DELETE, values).await?;
    let values = values![who.mode, &who.partner, *reached];
    connection.execute(&PUT, values).await?;
    tx.commit().await?;
    let more = u32::try_from(swept) == Ok(limit);
    Ok(Forgotten { deleted, more })
}

/// Deletes quotes that have no trade.
pub static DELETE: Statement = Statement::new(
    "quotes",
    "DELETE FROM quotes
     WHERE mode = $1 AND partner_id = $2 AND id > $3 AND id <= $4 AND consumed_at IS NULL AND expires_at <= $5",
);

static PUT: Statement = Statement::per_engine(
    "quote_sweeps",
    Sql {
        sqlite: "INSERT INTO quote_sweeps (mode, partner_id, quote_id) VALUES ($1, $2, $3)
                 ON CONFLICT (mode, partner_id)
                 DO UPDATE SET quote_id = max(quote_sweeps.quote_id, excluded.quote_id)",
        postgres: "INSERT INTO quote_sweeps (mode, partner_id, quote_id) VALUES ($1, $2, $3)
                   ON CONFLICT (mode, partner_id)
                   DO UPDATE SET quote_id = greatest(quote_sweeps.quote_id, excluded.quote_id)",
    },
);

/// The last quote of a partner that a sweep has read.
static LAST_SWEPT: Statement = Statement::per_engine(
    "quote_sweeps",
    Sql {
        sqlite: "SELECT partner_id, quote_id FROM quote_sweeps WHERE mode = $1 AND partner_id = $2",
        postgres: "SELECT partner_id, quote_id FROM quote_sweeps WHERE mode = $1 AND partner_id = $2 FOR UPDATE",
    },
);

/// An id begins with the instant of its creation, so the oldest quotes come first.
pub static NEXT: Statement = Statement::new(
    "quotes",
    "SELECT id, expires_at FROM quotes
     WHERE mode = $1 AND partner_id = $2 AND id > $3 ORDER BY id LIMIT CAST($4 AS bigint)",
);
