//! Locked previews: their rows, and their single use.

use async_trait::async_trait;
use gate_core::ports::PreviewTx;
use gate_core::preview::{Preview, PreviewId, PreviewTerms};
use gate_core::session::SessionId;
use kernel::rates::Side;
use kernel::{Asset, Cas, Mode, StoreResult, Timestamp};
use partner_core::Tenant;

use crate::{Connection, Row, Sql, Statement, StoreTx, values};

#[async_trait]
impl PreviewTx for StoreTx {
    async fn preview_insert(&mut self, who: &Tenant, preview: &Preview) -> StoreResult<()> {
        let (id, bound) = (preview.id.to_string(), &preview.bound);
        let values = values![
            who.mode,
            &who.partner,
            &id,
            bound.side.as_str(),
            bound.currency.code(),
            &bound.asset,
            bound.units,
            preview.created_at,
            preview.expires_at,
        ];
        self.insert_around("preview.insert", who, &INSERT, values)
            .await
    }

    async fn preview_lock(&mut self, who: &Tenant, id: PreviewId) -> StoreResult<Option<Preview>> {
        let id = id.to_string();
        let values = values![who.mode, &who.partner, &id];
        let connection = self.locked(who).await?;
        let row = connection.fetch_optional(&FIND, values).await?;
        row.map(|row| preview(&*row, who.mode)).transpose()
    }

    async fn preview_use(
        &mut self,
        who: &Tenant,
        id: PreviewId,
        session: SessionId,
        now: Timestamp,
    ) -> StoreResult<Cas> {
        let id = id.to_string();
        let values = values![who.mode, &who.partner, &id, session, now];
        self.swap_around("preview.use", who, &USE, values).await
    }
}

static FIND: Statement = Statement::new(
    "quote_previews",
    "SELECT partner_id, id, side, currency, asset, amount, created_at, expires_at, session_id, used_at
     FROM quote_previews WHERE mode = $1 AND partner_id = $2 AND id = $3",
);

pub(crate) fn preview(row: &dyn Row, mode: Mode) -> StoreResult<Preview> {
    let used = row.opt_id("session_id", mode)?;
    Ok(Preview {
        id: row.parsed("id", PreviewId::parse)?,
        bound: PreviewTerms {
            side: row.parsed("side", Side::parse)?,
            currency: row.parsed("currency", Asset::fiat)?,
            asset: row.text("asset")?.to_owned(),
            units: row.integer("amount")?,
        },
        created_at: row.instant("created_at")?,
        expires_at: row.instant("expires_at")?,
        used: used.zip(row.opt_instant("used_at")?),
    })
}

static INSERT: Statement = Statement::new(
    "quote_previews",
    "INSERT INTO quote_previews (mode, partner_id, id, side, currency, asset, amount, created_at, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
);

static USE: Statement = Statement::new(
    "quote_previews",
    "UPDATE quote_previews SET session_id = $4, used_at = $5
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND session_id IS NULL AND expires_at > $5",
);

/// Deletes the oldest previews that were created and expired before an instant. Returns their number.
pub async fn sweep(
    connection: &mut dyn Connection,
    before: Timestamp,
    limit: u32,
) -> StoreResult<u64> {
    connection.execute(&SWEEP, values![before, limit]).await
}

/// On Postgres, it skips previews that another transaction has locked.
static SWEEP: Statement = Statement::per_engine(
    "quote_previews",
    Sql {
        sqlite: "DELETE FROM quote_previews WHERE rowid IN (
             SELECT rowid FROM quote_previews
             WHERE created_at < $1 AND expires_at < $1 ORDER BY created_at LIMIT CAST($2 AS bigint)
         )",
        postgres: "DELETE FROM quote_previews WHERE (mode, partner_id, id) IN (
             SELECT mode, partner_id, id FROM quote_previews
             WHERE created_at < $1 AND expires_at < $1 ORDER BY created_at LIMIT CAST($2 AS bigint)
             FOR UPDATE SKIP LOCKED
         )",
    },
);
