//! Events, and the delivery that goes with one.

use async_trait::async_trait;
use instruments::failpoint::{Step, around};
use kernel::StoreError;
use partner_core::Tenant;
use partner_core::events::NewEvent;
use partner_core::ports::{EventReads, EventTx, StoredEvent};
use sqlx::SqliteConnection;
use store_sql::events::stored;

use crate::row::{Columns, key};
use crate::tx::SqliteTx;
use crate::{SqliteStore, errors};

#[async_trait]
impl EventTx for SqliteTx {
    async fn event_insert(&mut self, event: &NewEvent) -> Result<(), StoreError> {
        around(Step::EventInsert, insert(self.conn(), event)).await?;
        self.queued |= around(Step::DeliveryInsert, queue(self.conn(), event)).await?;
        Ok(())
    }
}

async fn insert(conn: &mut SqliteConnection, event: &NewEvent) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO events (mode, partner_id, id, service, type, object_id, body, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )
    .bind(event.tenant.mode.as_str())
    .bind(event.tenant.partner.as_str())
    .bind(&event.id)
    .bind(event.service.as_str())
    .bind(&event.kind)
    .bind(&event.object_id)
    .bind(&event.body.0)
    .bind(event.created_at.millis())
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}

/// One delivery where the partner has an endpoint for the service now, none otherwise: was there
/// one? Behind an earlier one of its object it is due no sooner than that.
async fn queue(conn: &mut SqliteConnection, event: &NewEvent) -> Result<bool, StoreError> {
    let queued = sqlx::query(
        "INSERT INTO deliveries (mode, partner_id, id, event_id, endpoint_id, object_id, status, next_attempt_at,
                                 created_at)
         SELECT w.mode, w.partner_id, ?4, ?5, w.id, ?6, 'pending', max(?7, coalesce((
                    SELECT max(o.next_attempt_at) FROM deliveries AS o
                    WHERE o.status IN ('pending', 'in_flight') AND o.mode = w.mode AND o.partner_id = w.partner_id
                      AND o.endpoint_id = w.id AND o.object_id = ?6
                ), ?7)), ?7
         FROM webhook_endpoints AS w WHERE w.mode = ?1 AND w.partner_id = ?2 AND w.service = ?3",
    )
    .bind(event.tenant.mode.as_str())
    .bind(event.tenant.partner.as_str())
    .bind(event.service.as_str())
    .bind(key(event.delivery))
    .bind(&event.id)
    .bind(&event.object_id)
    .bind(event.created_at.millis())
    .execute(conn)
    .await
    .map_err(errors::statement)?
    .rows_affected();
    Ok(queued > 0)
}

#[async_trait]
impl EventReads for SqliteStore {
    async fn events_of(
        &self,
        who: &Tenant,
        object_id: &str,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let mut conn = self.inner.reader().await?;
        let rows = sqlx::query(
            "SELECT partner_id, id, type, body, created_at FROM events
             WHERE mode = ?1 AND partner_id = ?2 AND object_id = ?3 ORDER BY rowid",
        )
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(object_id)
        .fetch_all(&mut *conn)
        .await
        .map_err(errors::statement)?;
        rows.iter()
            .map(|row| stored(&Columns::new("events", row)))
            .collect()
    }
}
