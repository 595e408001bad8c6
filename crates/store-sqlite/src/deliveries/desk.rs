//! Deliveries as the partner they are for sees them.

use async_trait::async_trait;
use kernel::{Cas, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::events::{DeliveryId, Service};
use partner_core::ports::{DeliveryAdmin, DeliveryFilter, DeliveryView};
use partner_core::webhooks::delivery::DeliveryInput;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;
use store_sql::deliveries::view;

use super::step::{Step, apply};
use super::{Stored, stored};
use crate::row::{Columns, own_key};
use crate::tx::SqliteTx;
use crate::{SqliteStore, errors};

#[async_trait]
impl DeliveryAdmin for SqliteStore {
    async fn deliveries_page(
        &self,
        who: &Tenant,
        service: Service,
        filter: DeliveryFilter,
        limit: u32,
    ) -> Result<Vec<DeliveryView>, StoreError> {
        let mut conn = self.inner.reader().await?;
        let rows = sqlx::query(
            "SELECT d.partner_id, d.id, d.event_id, d.status, d.attempts, d.next_attempt_at, d.lease_token,
                    d.lease_until, d.last_response_status, d.last_error, d.delivered_at, d.created_at,
                    e.type AS event_type, p.url AS target_url
             FROM (
                 SELECT d.sequence, w.url
                 FROM webhook_endpoints AS w
                 CROSS JOIN deliveries AS d ON d.mode = ?1 AND d.partner_id = ?2 AND d.endpoint_id = w.id
                 WHERE w.mode = ?1 AND w.partner_id = ?2 AND w.service = ?3 AND (?4 IS NULL OR d.status = ?4)
                 ORDER BY d.created_at DESC, d.id DESC LIMIT +?5 OFFSET +?6
             ) AS p
             CROSS JOIN deliveries AS d ON d.sequence = p.sequence
             CROSS JOIN events AS e ON e.mode = ?1 AND e.partner_id = ?2 AND e.id = d.event_id
             ORDER BY d.created_at DESC, d.id DESC",
        )
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(service.as_str())
        .bind(filter.status)
        .bind(limit)
        .bind(filter.skip)
        .fetch_all(&mut *conn)
        .await
        .map_err(errors::statement)?;
        rows.iter()
            .map(|row| view(&Columns::new("deliveries", row), who.mode))
            .collect()
    }

    async fn delivery_get(
        &self,
        who: &Tenant,
        service: Service,
        id: DeliveryId,
    ) -> Result<Option<DeliveryView>, StoreError> {
        let mut conn = self.inner.reader().await?;
        let row = find(&mut conn, who, service, id).await?;
        row.map(|row| view(&Columns::new("deliveries", &row), who.mode))
            .transpose()
    }

    async fn delivery_replay(
        &self,
        who: &Tenant,
        service: Service,
        id: DeliveryId,
    ) -> Result<Option<(Cas, DeliveryView)>, StoreError> {
        let mut tx = SqliteTx::begin(self, "delivery_replay").await?;
        let now = tx.instant().await?;
        let Some(row) = find(tx.conn(), who, service, id).await? else {
            return Ok(None);
        };
        let row = Columns::new("deliveries", &row);
        let (mut view, stored) = (view(&row, who.mode)?, stored(&row)?);
        let Some(next) = stored.progress.advance(DeliveryInput::Replay, now) else {
            return Ok(Some((Cas::Lost, view)));
        };
        apply(tx.conn(), &[Step::new(&stored, next)]).await?;
        hold_back(tx.conn(), &stored, now).await?;
        tx.queued = true;
        tx.finish().await?;
        view.record.progress = next;
        Ok(Some((Cas::Won, view)))
    }
}

/// The later ones of its object are due no sooner than what is tried again now.
async fn hold_back(
    conn: &mut SqliteConnection,
    stored: &Stored,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE deliveries SET next_attempt_at = ?2
         FROM deliveries AS d
         WHERE d.sequence = ?1 AND deliveries.status IN ('pending', 'in_flight') AND deliveries.mode = d.mode
           AND deliveries.partner_id = d.partner_id AND deliveries.endpoint_id = d.endpoint_id
           AND deliveries.object_id = d.object_id AND deliveries.sequence > d.sequence
           AND deliveries.status = 'pending' AND deliveries.next_attempt_at < ?2",
    )
    .bind(stored.sequence)
    .bind(now.millis())
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}

async fn find(
    conn: &mut SqliteConnection,
    who: &Tenant,
    service: Service,
    id: DeliveryId,
) -> Result<Option<SqliteRow>, StoreError> {
    let Some(key) = own_key(who, id) else {
        return Ok(None);
    };
    sqlx::query(
        "SELECT d.partner_id, d.id, d.event_id, d.sequence, d.status, d.attempts, d.next_attempt_at, d.lease_token,
                d.lease_until, d.last_response_status, d.last_error, d.delivered_at, d.created_at,
                e.type AS event_type, w.url AS target_url
         FROM deliveries AS d
         JOIN events AS e ON e.mode = d.mode AND e.partner_id = d.partner_id AND e.id = d.event_id
         JOIN webhook_endpoints AS w ON w.mode = d.mode AND w.partner_id = d.partner_id AND w.id = d.endpoint_id
         WHERE d.mode = ?1 AND d.partner_id = ?2 AND d.id = ?3 AND w.service = ?4",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key)
    .bind(service.as_str())
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)
}
