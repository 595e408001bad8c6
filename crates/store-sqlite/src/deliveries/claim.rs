//! Claims: selects due deliveries within the allocated capacity, and leases them.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::{Mode, StoreError, Timestamp};
use partner_core::events::{DeliveryId, Endpoint, EndpointId, Service};
use partner_core::ports::{ClaimRequest, ClaimedDelivery, StoredEvent};
use partner_core::sealing::Sealed;
use partner_core::webhooks::delivery::{DeliveryInput, Lease};
use partner_core::webhooks::fairness::DueEndpoint;
use partner_core::{PartnerId, Tenant};
use serde::Serialize;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;
use store_sql::Row;

use super::step::{Step, apply};
use super::{LeftOut, Stored, stored};
use crate::row::{Columns, json, key};
use crate::{endpoints, errors};

/// Leases that one claim may end. The next claim ends the others.
const MAX_LAPSED: i64 = 1000;

/// Ends the expired leases and returns their number.
pub(super) async fn lapse(
    conn: &mut SqliteConnection,
    mode: Mode,
    now: Timestamp,
    left_out: &LeftOut,
) -> Result<usize, StoreError> {
    let rows = sqlx::query(
        "SELECT partner_id, id, sequence, status, attempts, next_attempt_at, lease_token, lease_until, delivered_at
         FROM deliveries INDEXED BY deliveries_leased
         WHERE status = 'in_flight' AND mode = ?1 AND lease_until <= ?2
           AND sequence NOT IN (SELECT j.value FROM json_each(?4) AS j)
         ORDER BY lease_until LIMIT +?3",
    )
    .bind(mode.as_str())
    .bind(now.millis())
    .bind(MAX_LAPSED)
    .bind(json(&left_out.keys(now))?)
    .fetch_all(&mut *conn)
    .await
    .map_err(errors::statement)?;
    let mut moves = Vec::new();
    for row in &rows {
        let row = Columns::new("deliveries", row);
        let step = stored(&row)
            .and_then(|stored| Step::decided(&stored, DeliveryInput::LeaseExpired, now));
        moves.extend(left_out.readable(row.integer("sequence").ok(), step, now));
    }
    apply(conn, &moves).await?;
    Ok(moves.len())
}

/// The instant at which the first lease expires.
pub(super) async fn first_lease(
    conn: &mut SqliteConnection,
    mode: Mode,
) -> Result<Option<Timestamp>, StoreError> {
    let first: Option<i64> = sqlx::query_scalar(
        "SELECT min(lease_until) FROM deliveries INDEXED BY deliveries_leased
         WHERE status = 'in_flight' AND mode = ?1",
    )
    .bind(mode.as_str())
    .fetch_one(conn)
    .await
    .map_err(errors::statement)?;
    Ok(first.and_then(Timestamp::from_millis))
}

/// The endpoints with pending deliveries, and the instant at which the first delivery of each is due.
pub(super) async fn queues(
    conn: &mut SqliteConnection,
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

fn due_endpoint(row: &dyn Row, mode: Mode) -> Result<DueEndpoint, StoreError> {
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

#[derive(Serialize)]
struct Share<'q> {
    partner: &'q str,
    endpoint: String,
}

/// Selects the first due deliveries of each endpoint. Skips a delivery while an earlier delivery of its object is open, and a
/// delivery that cannot be read.
///
/// The result has the first delivery of every endpoint before the second of any. Endpoints with the same capacity share a
/// statement, which reads no more deliveries than the capacity.
pub(super) async fn pick(
    conn: &mut SqliteConnection,
    mode: Mode,
    allocated: &[(DueEndpoint, u32)],
    now: Timestamp,
    left_out: &LeftOut,
) -> Result<Vec<Picked>, StoreError> {
    let mut shares: BTreeMap<u32, Vec<Share<'_>>> = BTreeMap::new();
    for (queue, take) in allocated {
        shares.entry(*take).or_default().push(Share {
            partner: queue.partner.as_str(),
            endpoint: key(queue.endpoint),
        });
    }
    let skipped = json(&left_out.keys(now))?;
    let mut found = Vec::new();
    for (take, shares) in shares {
        let rows = sqlx::query(PICK)
            .bind(mode.as_str())
            .bind(json(&shares)?)
            .bind(now.millis())
            .bind(take)
            .bind(skipped.clone())
            .fetch_all(&mut *conn)
            .await
            .map_err(errors::statement)?;
        for row in &rows {
            let columns = Columns::new("deliveries", row);
            let due = columns.integer("next_attempt_at");
            let read = due.and_then(|due| Ok((due, picked(row, mode)?)));
            found.extend(left_out.readable(columns.integer("sequence").ok(), read, now));
        }
    }
    Ok(in_turn(found))
}

/// Orders the first delivery of every endpoint before the second of any.
fn in_turn(mut found: Vec<(i64, Picked)>) -> Vec<Picked> {
    found.sort_by_key(|(due, picked)| (*due, picked.stored.sequence));
    let mut places: BTreeMap<EndpointId, usize> = BTreeMap::new();
    let mut placed = Vec::with_capacity(found.len());
    for (_, picked) in found {
        let place = places.entry(picked.endpoint).or_default();
        placed.push((*place, picked));
        *place = place.saturating_add(1);
    }
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, picked)| picked).collect()
}

fn picked(row: &SqliteRow, mode: Mode) -> Result<Picked, StoreError> {
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
    conn: &mut SqliteConnection,
    picked: &[Picked],
    lease: Lease,
    now: Timestamp,
) -> Result<(), StoreError> {
    let moves = picked
        .iter()
        .map(|picked| Step::decided(&picked.stored, DeliveryInput::Claim(lease), now))
        .collect::<Result<Vec<Step<'_>>, StoreError>>()?;
    apply(conn, &moves).await
}

/// The endpoints of the selected deliveries, with the secrets that are valid at this instant.
pub(super) async fn endpoints_of(
    conn: &mut SqliteConnection,
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
pub(crate) const QUEUES: &str = "WITH RECURSIVE queues (endpoint_id, partner_id, due) AS (
         SELECT * FROM (
             SELECT d.endpoint_id, d.partner_id, d.next_attempt_at FROM deliveries AS d
             WHERE d.status = 'pending' AND d.mode = ?1
             ORDER BY d.endpoint_id, d.next_attempt_at LIMIT 1
         )
         UNION ALL
         SELECT d.endpoint_id, d.partner_id, d.next_attempt_at
         FROM queues AS q
         CROSS JOIN deliveries AS d ON d.sequence = (
             SELECT n.sequence FROM deliveries AS n
             WHERE n.status = 'pending' AND n.mode = ?1 AND n.endpoint_id > q.endpoint_id
             ORDER BY n.endpoint_id, n.next_attempt_at LIMIT 1
         )
     )
     SELECT q.partner_id, q.endpoint_id, q.due
     FROM queues AS q
     CROSS JOIN webhook_endpoints AS w ON w.mode = ?1 AND w.partner_id = q.partner_id AND w.id = q.endpoint_id
     WHERE w.service = ?2";

pub(crate) const PICK: &str = "SELECT d.partner_id, d.id, d.sequence, d.endpoint_id, d.status, d.attempts, d.next_attempt_at,
            d.lease_token, d.lease_until, d.delivered_at, w.url, e.id AS event_id, e.type, e.body,
            e.created_at AS event_created_at
     FROM json_each(?2) AS j
     CROSS JOIN deliveries AS d ON d.sequence IN (
         SELECT n.sequence FROM deliveries AS n
         WHERE n.status = 'pending' AND n.mode = ?1 AND n.partner_id = j.value ->> 'partner'
           AND n.endpoint_id = j.value ->> 'endpoint' AND n.next_attempt_at <= ?3
           AND n.sequence NOT IN (SELECT j.value FROM json_each(?5) AS j)
           AND NOT EXISTS (
               SELECT 1 FROM deliveries AS o
               WHERE o.status IN ('pending', 'in_flight') AND o.mode = n.mode AND o.partner_id = n.partner_id
                 AND o.endpoint_id = n.endpoint_id AND o.object_id = n.object_id AND o.sequence < n.sequence
           )
         ORDER BY n.next_attempt_at, n.sequence LIMIT +?4
     )
     CROSS JOIN events AS e ON e.mode = d.mode AND e.partner_id = d.partner_id AND e.id = d.event_id
     CROSS JOIN webhook_endpoints AS w ON w.mode = d.mode AND w.partner_id = d.partner_id AND w.id = d.endpoint_id";
