//! Deliveries as the partner they are for sees them.

use crate::conn::Conn;
use async_trait::async_trait;
use kernel::{Cas, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::events::{DeliveryId, Service};
use partner_core::ports::{DeliveryAdmin, DeliveryFilter, DeliveryView};
use partner_core::webhooks::delivery::DeliveryInput;
use sqlx::postgres::PgRow;
use store_sql::deliveries::view;

use super::step::{Step, apply};
use super::{Stored, stored};
use crate::row::{Columns, own_key};
use crate::tx::PgTx;
use crate::{PostgresStore, errors};

#[async_trait]
impl DeliveryAdmin for PostgresStore {
    async fn deliveries_page(
        &self,
        who: &Tenant,
        service: Service,
        filter: DeliveryFilter,
        limit: u32,
    ) -> Result<Vec<DeliveryView>, StoreError> {
        let _turn = self.inner.turns.take(who).await?;
        let mut conn = self.inner.conn().await?;
        let statement = if filter.status.is_some() {
            PAGE_OF_STATUS
        } else {
            PAGE
        };
        let mut query = sqlx::query(statement)
            .bind(who.mode.as_str())
            .bind(who.partner.as_str())
            .bind(service.as_str())
            .bind(i64::from(limit))
            .bind(i64::from(filter.skip));
        if let Some(status) = filter.status {
            query = query.bind(status);
        }
        let rows = query
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
        let mut conn = self.inner.conn().await?;
        let row = find(&mut conn, FIND, who, service, id).await?;
        row.map(|row| view(&Columns::new("deliveries", &row), who.mode))
            .transpose()
    }

    /// Under the partner's books, so that no later event of the object is queued meanwhile.
    async fn delivery_replay(
        &self,
        who: &Tenant,
        service: Service,
        id: DeliveryId,
    ) -> Result<Option<(Cas, DeliveryView)>, StoreError> {
        let mut tx = PgTx::begin(self, "delivery_replay").await?;
        let conn = tx.locked_connection(who).await?;
        let Some(row) = find(conn, TAKE, who, service, id).await? else {
            return Ok(None);
        };
        let now = tx.instant().await?;
        let row = Columns::new("deliveries", &row);
        let (mut view, stored) = (view(&row, who.mode)?, stored(&row)?);
        let Some(next) = stored.progress.advance(DeliveryInput::Replay, now) else {
            tx.leave().await?;
            return Ok(Some((Cas::Lost, view)));
        };
        apply(tx.conn(), &[Step::new(who.mode, &stored, next)]).await?;
        hold_back(tx.conn(), who, &stored, now).await?;
        tx.queued = true;
        tx.finish().await?;
        view.record.progress = next;
        Ok(Some((Cas::Won, view)))
    }
}

/// The page is found by the index alone, however many are passed over.
pub(crate) const PAGE: &str = "WITH page AS MATERIALIZED (
         SELECT d.id, d.created_at, w.url
         FROM webhook_endpoints AS w
         JOIN deliveries AS d ON d.mode = w.mode AND d.partner_id = w.partner_id AND d.endpoint_id = w.id
         WHERE w.mode = $1 AND w.partner_id = $2 AND w.service = $3
         ORDER BY d.created_at DESC, d.id DESC LIMIT $4 OFFSET $5
     )
     SELECT d.partner_id, d.id, d.event_id, d.status, d.attempts, d.next_attempt_at, d.lease_token, d.lease_until,
            d.last_response_status, d.last_error, d.delivered_at, d.created_at, e.type AS event_type,
            p.url AS target_url
     FROM page AS p
     JOIN deliveries AS d ON d.mode = $1 AND d.partner_id = $2 AND d.id = p.id
     JOIN events AS e ON e.mode = d.mode AND e.partner_id = d.partner_id AND e.id = d.event_id
     ORDER BY p.created_at DESC, p.id DESC";

pub(crate) const PAGE_OF_STATUS: &str = "WITH page AS MATERIALIZED (
         SELECT d.id, d.created_at, w.url
         FROM webhook_endpoints AS w
         JOIN deliveries AS d ON d.mode = w.mode AND d.partner_id = w.partner_id AND d.endpoint_id = w.id
         WHERE w.mode = $1 AND w.partner_id = $2 AND w.service = $3 AND d.status = $6
         ORDER BY d.created_at DESC, d.id DESC LIMIT $4 OFFSET $5
     )
     SELECT d.partner_id, d.id, d.event_id, d.status, d.attempts, d.next_attempt_at, d.lease_token, d.lease_until,
            d.last_response_status, d.last_error, d.delivered_at, d.created_at, e.type AS event_type,
            p.url AS target_url
     FROM page AS p
     JOIN deliveries AS d ON d.mode = $1 AND d.partner_id = $2 AND d.id = p.id
     JOIN events AS e ON e.mode = d.mode AND e.partner_id = d.partner_id AND e.id = d.event_id
     ORDER BY p.created_at DESC, p.id DESC";

async fn find(
    conn: &mut Conn,
    statement: &'static str,
    who: &Tenant,
    service: Service,
    id: DeliveryId,
) -> Result<Option<PgRow>, StoreError> {
    let Some(key) = own_key(who, id) else {
        return Ok(None);
    };
    sqlx::query(statement)
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(key)
        .bind(service.as_str())
        .fetch_optional(conn)
        .await
        .map_err(errors::statement)
}

const FIND: &str =
    "SELECT d.partner_id, d.id, d.event_id, d.status, d.attempts, d.next_attempt_at, d.lease_token, d.lease_until,
            d.last_response_status, d.last_error, d.delivered_at, d.created_at, e.type AS event_type,
            w.url AS target_url
     FROM deliveries AS d
     JOIN events AS e ON e.mode = d.mode AND e.partner_id = d.partner_id AND e.id = d.event_id
     JOIN webhook_endpoints AS w ON w.mode = d.mode AND w.partner_id = d.partner_id AND w.id = d.endpoint_id
     WHERE d.mode = $1 AND d.partner_id = $2 AND d.id = $3 AND w.service = $4";

/// The same, held until the transaction ends.
const TAKE: &str =
    "SELECT d.partner_id, d.id, d.event_id, d.status, d.attempts, d.next_attempt_at, d.lease_token, d.lease_until,
            d.last_response_status, d.last_error, d.delivered_at, d.created_at, e.type AS event_type,
            w.url AS target_url
     FROM deliveries AS d
     JOIN events AS e ON e.mode = d.mode AND e.partner_id = d.partner_id AND e.id = d.event_id
     JOIN webhook_endpoints AS w ON w.mode = d.mode AND w.partner_id = d.partner_id AND w.id = d.endpoint_id
     WHERE d.mode = $1 AND d.partner_id = $2 AND d.id = $3 AND w.service = $4 FOR NO KEY UPDATE OF d";

/// The later ones of its object are due no sooner than what is tried again now; taken in their
/// order, as everybody takes them.
async fn hold_back(
    conn: &mut Conn,
    who: &Tenant,
    stored: &Stored,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(HOLD_BACK)
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(stored.id)
        .bind(now.millis())
        .execute(conn)
        .await
        .map_err(errors::statement)?;
    Ok(())
}

const HOLD_BACK: &str = "WITH later AS (
         SELECT f.id FROM deliveries AS d
         JOIN deliveries AS f ON f.status IN ('pending', 'in_flight') AND f.mode = d.mode
              AND f.partner_id = d.partner_id AND f.endpoint_id = d.endpoint_id AND f.object_id = d.object_id
              AND f.position > d.position
         WHERE d.mode = $1 AND d.partner_id = $2 AND d.id = $3 AND f.status = 'pending' AND f.next_attempt_at < $4
         ORDER BY f.position FOR NO KEY UPDATE OF f
     )
     UPDATE deliveries AS d SET next_attempt_at = $4
     FROM later WHERE d.mode = $1 AND d.partner_id = $2 AND d.id = later.id";
