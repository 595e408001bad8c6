//! Tallies of live sessions, one row a partner.

use async_trait::async_trait;
use gate_core::ports::TallyTx;
use gate_core::quota::Tally;
use instruments::failpoint::{Step, around};
use kernel::{Cas, StoreError};
use partner_core::Tenant;
use sqlx::SqliteConnection;
use store_sql::tallies::tally;

use crate::errors;
use crate::row::Columns;
use crate::tx::SqliteTx;

#[async_trait]
impl TallyTx for SqliteTx {
    async fn tally_lock(&mut self, who: &Tenant) -> Result<Option<Tally>, StoreError> {
        find(self.conn(), who).await
    }

    async fn tally_put(
        &mut self,
        who: &Tenant,
        before: Option<&Tally>,
        after: &Tally,
    ) -> Result<Cas, StoreError> {
        let putting = put(self.conn(), who, before, after);
        let outcome = around(Step::TallyPut, putting).await?;
        Ok(self.record_race(outcome))
    }
}

pub(crate) async fn find(
    conn: &mut SqliteConnection,
    who: &Tenant,
) -> Result<Option<Tally>, StoreError> {
    let row = sqlx::query(
        "SELECT partner_id, month, created FROM session_tallies WHERE mode = ?1 AND partner_id = ?2",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    row.map(|row| tally(&Columns::new("session_tallies", &row)))
        .transpose()
}

async fn put(
    conn: &mut SqliteConnection,
    who: &Tenant,
    before: Option<&Tally>,
    after: &Tally,
) -> Result<Cas, StoreError> {
    let count = |tally: &Tally| i64::try_from(tally.created).map_err(StoreError::unexpected);
    let written = sqlx::query(
        "INSERT INTO session_tallies (mode, partner_id, month, created) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (mode, partner_id) DO UPDATE SET month = excluded.month, created = excluded.created
         WHERE session_tallies.month = ?5 AND session_tallies.created = ?6",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(after.month.to_string())
    .bind(count(after)?)
    .bind(before.map(|before| before.month.to_string()))
    .bind(before.map(count).transpose()?)
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Cas::from_rows(written.rows_affected())
}
