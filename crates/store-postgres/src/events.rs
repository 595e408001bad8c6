//! Events, and the delivery that goes with one.

use crate::conn::Conn;
use async_trait::async_trait;
use instruments::failpoint::{Step, around};
use kernel::StoreError;
use partner_core::Tenant;
use partner_core::events::NewEvent;
use partner_core::ports::{EventReads, EventTx, StoredEvent};
use store_sql::events::stored;

use crate::row::{Columns, key};
use crate::tx::PgTx;
use crate::{PostgresStore, errors};

#[async_trait]
impl EventTx for PgTx {
    async fn event_insert(&mut self, event: &NewEvent) -> Result<(), StoreError> {
        let conn = self.locked_connection(&event.tenant).await?;
        around(Step::EventInsert, insert(conn, event)).await?;
        self.queued |= around(Step::DeliveryInsert, queue(self.conn(), event)).await?;
        Ok(())
    }
}

/// Under the partner's books, so that the numbers of an object's events have no gaps.
async fn insert(conn: &mut Conn, event: &NewEvent) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO events (mode, partner_id, id, service, type, object_id, body, created_at, position)
         SELECT $1, $2, $3, $4, $5, $6, $7, $8, 1 + coalesce((
             SELECT max(e.position) FROM events AS e WHERE e.mode = $1 AND e.partner_id = $2 AND e.object_id = $6
         ), 0)",
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
/// one? Behind an earlier one of its object it is due no sooner than that; who concludes that one
/// meanwhile is waited for, or waits and then finds this one.
async fn queue(conn: &mut Conn, event: &NewEvent) -> Result<bool, StoreError> {
    sqlx::query(EARLIER)
        .bind(event.tenant.mode.as_str())
        .bind(event.tenant.partner.as_str())
        .bind(event.service.as_str())
        .bind(&event.object_id)
        .execute(&mut *conn)
        .await
        .map_err(errors::statement)?;
    let queued = sqlx::query(QUEUE)
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

/// Takes what the object still waits for.
const EARLIER: &str = "SELECT FROM deliveries AS o
     WHERE o.status IN ('pending', 'in_flight') AND o.mode = $1 AND o.partner_id = $2 AND o.object_id = $4
       AND o.endpoint_id = (SELECT w.id FROM webhook_endpoints AS w
                            WHERE w.mode = $1 AND w.partner_id = $2 AND w.service = $3)
     ORDER BY o.position FOR NO KEY UPDATE";

const QUEUE: &str =
    "INSERT INTO deliveries (mode, partner_id, id, event_id, endpoint_id, object_id, status, next_attempt_at,
                             created_at, position)
     SELECT w.mode, w.partner_id, $4, $5, w.id, $6, 'pending', greatest($7, coalesce((
                SELECT max(o.next_attempt_at) FROM deliveries AS o
                WHERE o.status IN ('pending', 'in_flight') AND o.mode = w.mode AND o.partner_id = w.partner_id
                  AND o.endpoint_id = w.id AND o.object_id = $6
            ), $7)), $7, 1 + coalesce((
                SELECT max(n.position) FROM deliveries AS n WHERE n.mode = w.mode AND n.partner_id = w.partner_id
            ), 0)
     FROM webhook_endpoints AS w WHERE w.mode = $1 AND w.partner_id = $2 AND w.service = $3";

#[async_trait]
impl EventReads for PostgresStore {
    async fn events_of(
        &self,
        who: &Tenant,
        object_id: &str,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let mut conn = self.inner.conn().await?;
        let rows = sqlx::query(
            "SELECT partner_id, id, type, body, created_at FROM events
             WHERE mode = $1 AND partner_id = $2 AND object_id = $3 ORDER BY position",
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
