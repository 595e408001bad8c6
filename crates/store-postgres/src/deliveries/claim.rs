//! Claims: selects due deliveries within the allocated capacity, and leases them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::conn::Conn;
use kernel::{Mode, StoreError, Timestamp};
use partner_core::events::{DeliveryId, Endpoint, EndpointId, Service};
use partner_core::ports::{ClaimRequest, ClaimedDelivery, StoredEvent};
use partner_core::sealing::Sealed;
use partner_core::webhooks::delivery::{DeliveryInput, Lease};
use partner_core::webhooks::fairness::DueEndpoint;
use partner_core::{PartnerId, Tenant};
use sqlx::postgres::PgRow;
use sqlx::types::Uuid;

use super::step::{Step, apply};
use super::{LeftOut, Stored, stored};
use crate::row::{Columns, key};
use crate::{endpoints, errors};

/// Leases that one claim may end. The next claim ends the others.
const MAX_LAPSED: i64 = 1000;

/// Ends the expired leases and returns their number.
pub(super) async fn lapse(
    conn: &mut Conn,
    mode: Mode,
    now: Timestamp,
    left_out: &LeftOut,
) -> Result<usize, StoreError> {
    let rows = sqlx::query(
        "SELECT partner_id, id, status, attempts, next_attempt_at, lease_token, lease_until, delivered_at
         FROM deliveries
         WHERE status = 'in_flight' AND mode = $1 AND lease_until <= $2 AND id <> ALL($4::uuid[])
         ORDER BY lease_until LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED",
    )
    .bind(mode.as_str())
    .bind(now.millis())
    .bind(MAX_LAPSED)
    .bind(left_out.keys(now))
    .fetch_all(&mut *conn)
    .await
    .map_err(errors::statement)?;
    let mut moves = Vec::new();
    for row in &rows {
        let row = Columns::new("deliveries", row);
        let step = stored(&row)
            .and_then(|stored| Step::decided(mode, &stored, DeliveryInput::LeaseExpired, now));
        moves.extend(left_out.readable(row.get("id").ok(), step, now));
    }
    apply(conn, &moves).await?;
    Ok(moves.len())
}

/// The instant at which the first lease expires.
pub(super) async fn first_lease(
    conn: &mut Conn,
    mode: Mode,
) -> Result<Option<Timestamp>, StoreError> {
    let first: Option<i64> = sqlx::query_scalar(
        "SELECT min(lease_until) FROM deliveries WHERE status = 'in_flight' AND mode = $1",
    )
    .bind(mode.as_str())
    .fetch_one(conn)
    .await
    .map_err(errors::statement)?;
    Ok(first.and_then(Timestamp::from_millis))
}

/// The endpoints with pending deliveries, and the instant at which the first delivery of each is due.
pub(super) async fn queues(
    conn: &mut Conn,
    mode: Mode,
    service: Service,
    (left_out, now): (&LeftOut, Timestamp),
) -> Result<Vec<DueEndpoint>, StoreError> {
    let rows = sqlx::query(QUEUES)
        .bind(mode.as_str())
        .bind(service.as_str())
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    let queues = rows.iter().filter_map(|row| {
        let queue = due_endpoint(&Columns::new("deliveries", row), mode);
        left_out.readable(None, queue, now)
    });
    Ok(queues.collect())
}

fn due_endpoint(row: &Columns<&PgRow>, mode: Mode) -> Result<DueEndpoint, StoreError> {
    Ok(DueEndpoint {
        partner: row.partner()?,
        endpoint: row.id("endpoint_id", mode)?,
        since: row.instant("due")?,
    })
}

/// A delivery selected for a claim.
pub(super) struct Picked {
    stored: Stored,
    partner: PartnerId,
    id: DeliveryId,
    endpoint: EndpointId,
    url: String,
    event: StoredEvent,
}

impl Picked {
    pub(super) fn claimed(
        self,
        mode: Mode,
        endpoints: &BTreeMap<EndpointId, Arc<Endpoint>>,
    ) -> Result<ClaimedDelivery, StoreError> {
        let endpoint = endpoints
            .get(&self.endpoint)
            .ok_or_else(|| StoreError::unexpected("a delivery without an endpoint"))?;
        Ok(ClaimedDelivery {
            tenant: Tenant {
                partner: self.partner,
                mode,
            },
            id: self.id,
            attempts: self.stored.progress.attempts,
            event: self.event,
            endpoint: Arc::clone(endpoint),
        })
    }
}

/// Selects and locks deliveries for the claim. Skips those that another worker has locked, and those that cannot be read.
pub(super) async fn pick(
    conn: &mut Conn,
    mode: Mode,
    allocated: &[(DueEndpoint, u32)],
    now: Timestamp,
    left_out: &LeftOut,
) -> Result<Vec<Picked>, StoreError> {
    if allocated.is_empty() {
        return Ok(Vec::new());
    }
    let mut columns = (Vec::new(), Vec::<Uuid>::new(), Vec::new());
    for (queue, take) in allocated {
        columns.0.push(queue.partner.as_str());
        columns.1.push(key(queue.endpoint));
        columns.2.push(i64::from(*take));
    }
    let rows = sqlx::query(PICK)
        .bind(mode.as_str())
        .bind(columns.0)
        .bind(columns.1)
        .bind(columns.2)
        .bind(now.millis())
        .bind(left_out.keys(now))
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    let picked = rows.iter().filter_map(|row| {
        let key = Columns::new("deliveries", row).get("id").ok();
        left_out.readable(key, picked(row, mode), now)
    });
    Ok(picked.collect())
}

fn picked(row: &PgRow, mode: Mode) -> Result<Picked, StoreError> {
    let row = Columns::new("deliveries", row);
    Ok(Picked {
        stored: stored(&row)?,
        partner: row.partner()?,
        id: row.id("id", mode)?,
        endpoint: row.id("endpoint_id", mode)?,
        url: row.text("url")?.to_owned(),
        event: StoredEvent {
            id: row.text("event_id")?.to_owned(),
            kind: row.text("type")?.to_owned(),
            body: Sealed(row.bytes("body")?.to_vec()),
            created_at: row.instant("event_created_at")?,
        },
    })
}

/// Leases the selected deliveries.
pub(super) async fn take_leases(
    conn: &mut Conn,
    mode: Mode,
    picked: &[Picked],
    lease: Lease,
    now: Timestamp,
) -> Result<(), StoreError> {
    let moves = picked
        .iter()
        .map(|picked| Step::decided(mode, &picked.stored, DeliveryInput::Claim(lease), now))
        .collect::<Result<Vec<Step<'_>>, StoreError>>()?;
    apply(conn, &moves).await
}

/// The endpoints of the selected deliveries, with the secrets that are valid at this instant.
pub(super) async fn endpoints_of(
    conn: &mut Conn,
    request: &ClaimRequest,
    picked: &[Picked],
    (now, left_out): (Timestamp, &LeftOut),
) -> Result<BTreeMap<EndpointId, Arc<Endpoint>>, StoreError> {
    let mut wanted = BTreeMap::new();
    for picked in picked {
        wanted.insert(picked.endpoint, &picked.partner);
    }
    let mut secrets = endpoints::live_secrets(conn, request.mode, &wanted, (now, left_out)).await?;
    let mut endpoints = BTreeMap::new();
    for picked in picked {
        endpoints.entry(picked.endpoint).or_insert_with(|| {
            Arc::new(Endpoint {
                id: picked.endpoint,
                service: request.service,
                url: picked.url.clone(),
                secrets: secrets.remove(&picked.endpoint).unwrap_or_default(),
            })
        });
    }
    Ok(endpoints)
}

/// Takes one step in the index for each endpoint, independent of the number of its deliveries.
pub(super) const QUEUES: &str = "WITH RECURSIVE queues AS (
         (SELECT d.endpoint_id, d.partner_id, d.next_attempt_at AS due FROM deliveries AS d
          WHERE d.status = 'pending' AND d.mode = $1
          ORDER BY d.endpoint_id, d.next_attempt_at LIMIT 1)
         UNION ALL
         SELECT n.endpoint_id, n.partner_id, n.due
         FROM queues AS q
         CROSS JOIN LATERAL (
             SELECT d.endpoint_id, d.partner_id, d.next_attempt_at AS due FROM deliveries AS d
             WHERE d.status = 'pending' AND d.mode = $1 AND d.endpoint_id > q.endpoint_id
             ORDER BY d.endpoint_id, d.next_attempt_at LIMIT 1
         ) AS n
     )
     SELECT q.partner_id, q.endpoint_id, q.due
     FROM queues AS q
     JOIN webhook_endpoints AS w ON w.mode = $1 AND w.partner_id = q.partner_id AND w.id = q.endpoint_id
     WHERE w.service = $2";

/// Selects the first due deliveries of each endpoint, the first of every endpoint before the second of any. Skips a delivery while
/// an earlier delivery of its object is open.
///
/// The server may plan this statement while the tables are empty, and keep the plan. `OFFSET 0` keeps each subquery apart, so that
/// the plan takes the steps in the order written here. The event's key is a range in the order of `events_key`, because the planner
/// of an empty table expects the same cost of `events_object`, which would read all events of the partner.
pub(crate) const PICK: &str = "WITH taken AS MATERIALIZED (
         SELECT j.number, n.*
         FROM unnest($2::text[], $3::uuid[], $4::bigint[]) WITH ORDINALITY AS j (partner_id, endpoint_id, take, number)
         CROSS JOIN LATERAL (
             SELECT d.partner_id, d.id, d.event_id, d.endpoint_id, d.position, d.status, d.attempts, d.next_attempt_at,
                    d.lease_token, d.lease_until, d.delivered_at
             FROM deliveries AS d
             WHERE d.status = 'pending' AND d.mode = $1 AND d.partner_id = j.partner_id
               AND d.endpoint_id = j.endpoint_id AND d.next_attempt_at <= $5 AND d.id <> ALL($6::uuid[])
               AND NOT EXISTS (
                   SELECT 1 FROM deliveries AS o
                   WHERE o.status IN ('pending', 'in_flight') AND o.mode = d.mode AND o.partner_id = d.partner_id
                     AND o.endpoint_id = d.endpoint_id AND o.object_id = d.object_id AND o.position < d.position
                   OFFSET 0
               )
             ORDER BY d.next_attempt_at, d.position LIMIT j.take
             FOR NO KEY UPDATE SKIP LOCKED
         ) AS n
     ), placed AS (
         SELECT t.*, row_number() OVER (PARTITION BY t.number ORDER BY t.next_attempt_at, t.position) AS place
         FROM taken AS t
     )
     SELECT p.partner_id, p.id, p.endpoint_id, p.status, p.attempts, p.next_attempt_at, p.lease_token, p.lease_until,
            p.delivered_at, w.url, p.event_id, e.type, e.body, e.created_at AS event_created_at
     FROM placed AS p
     CROSS JOIN LATERAL (
         SELECT e.type, e.body, e.created_at FROM events AS e
         WHERE e.mode = $1 AND e.partner_id = p.partner_id AND e.id BETWEEN p.event_id AND p.event_id
         ORDER BY e.id LIMIT 1
     ) AS e
     CROSS JOIN LATERAL (
         SELECT w.url FROM webhook_endpoints AS w
         WHERE w.mode = $1 AND w.partner_id = p.partner_id AND w.id = p.endpoint_id OFFSET 0
     ) AS w
     ORDER BY p.place, p.next_attempt_at, p.position";
