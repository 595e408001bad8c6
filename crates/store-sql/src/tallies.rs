//! Tallies of live sessions, one row per partner.

use async_trait::async_trait;
use gate_core::ports::TallyTx;
use gate_core::quota::{Month, Tally};
use kernel::{Cas, Seen, StoreError, StoreResult};
use partner_core::Tenant;

use crate::{Connection, Reader, Row, Statement, StoreTx, values};

#[async_trait]
impl TallyTx for StoreTx {
    async fn tally_lock(&mut self, who: &Tenant) -> StoreResult<Option<Tally>> {
        find(self.locked(who).await?, who).await
    }

    async fn tally_put(
        &mut self,
        who: &Tenant,
        before: Option<&Tally>,
        after: &Tally,
    ) -> StoreResult<Cas> {
        let count = |tally: &Tally| i64::try_from(tally.created).map_err(StoreError::unexpected);
        let (month, month_before) = (
            after.month.to_string(),
            before.map(|before| before.month.to_string()),
        );
        let values = values![
            who.mode,
            &who.partner,
            &month,
            count(after)?,
            &month_before,
            before.map(count).transpose()?,
        ];
        self.swap_around("tally.put", who, &PUT, values).await
    }
}

pub async fn get(reader: &mut dyn Reader, who: &Tenant) -> StoreResult<Seen<Option<Tally>>> {
    let tally = find(reader.connection(), who).await?;
    reader.seen(tally).await
}

async fn find(connection: &mut dyn Connection, who: &Tenant) -> StoreResult<Option<Tally>> {
    let values = values![who.mode, &who.partner];
    let row = connection.fetch_optional(&FIND, values).await?;
    row.map(|row| tally(&*row)).transpose()
}

static FIND: Statement = Statement::new(
    "session_tallies",
    "SELECT partner_id, month, created FROM session_tallies WHERE mode = $1 AND partner_id = $2",
);

pub(crate) fn tally(row: &dyn Row) -> StoreResult<Tally> {
    Ok(Tally {
        month: row.parsed("month", Month::parse)?,
        created: row.count("created")?,
    })
}

static PUT: Statement = Statement::new(
    "session_tallies",
    "INSERT INTO session_tallies (mode, partner_id, month, created) VALUES ($1, $2, $3, $4)
     ON CONFLICT (mode, partner_id) DO UPDATE SET month = excluded.month, created = excluded.created
     WHERE session_tallies.month = $5 AND session_tallies.created = $6",
);
