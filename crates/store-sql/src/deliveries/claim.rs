//! Claims: selects due deliveries within the allocated capacity, and leases them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::{Mode, StoreError, StoreResult, Timestamp};
use partner_core::events::{DeliveryId, Endpoint, EndpointId, EndpointSecret, Service};
use partner_core::ports::{ClaimedDelivery, StoredEvent};
use partner_core::sealing::Sealed;
use partner_core::webhooks::delivery::{DeliveryInput, Lease};
use partner_core::webhooks::fairness::DueEndpoint;
use partner_core::{PartnerId, Tenant};

use super::step::stored;
use super::{LeftOutRows, QueueTx, Step, Stored};
use crate::endpoints::secret;
use crate::events::trace_parent;
use crate::{Connection, Row, Sql, Statement, values};

/// Leases that one claim may end. The next claim ends the others.
const MAX_LAPSED: i64 = 1000;

/// A read of the queue.
#[derive(Debug)]
pub struct Scan<'s, K> {
    pub mode: Mode,
    pub now: Timestamp,
    pub(super) left_out: &'s LeftOutRows<K>,
}

impl<K: Clone + Ord> Scan<'_, K> {
    /// The rows that the read leaves out.
    #[must_use]
    pub fn skipped(&self) -> Vec<K> {
        self.left_out.keys(self.now)
    }

    fn readable<V>(&self, key: Option<K>, read: StoreResult<V>) -> Option<V> {
        self.left_out.readable(key, read, self.now)
    }
}

/// Ends the expired leases and returns their number.
pub(super) async fn lapse<T: QueueTx>(tx: &mut T, scan: &Scan<'_, T::Key>) -> StoreResult<usize> {
    let rows = tx.lapsed(scan, MAX_LAPSED).await?;
    let input = DeliveryInput::LeaseExpired;
    let moves = rows.iter().filter_map(|row| {
        let step = stored::<T>(&**row)
            .and_then(|stored| Step::decided(scan.mode, &stored, input, scan.now));
        scan.readable(T::key_of(&**row).ok(), step)
    });
    let moves: Vec<_> = moves.collect();
    tx.apply(&moves).await?;
    Ok(moves.len())
}

/// The instant at which the first lease expires.
pub(super) async fn first_lease(
    connection: &mut dyn Connection,
    mode: Mode,
) -> StoreResult<Option<Timestamp>> {
    let row = connection.fetch_one(&FIRST_LEASE, values![mode]).await?;
    Ok(row.opt_integer("first")?.and_then(Timestamp::from_millis))
}

static FIRST_LEASE: Statement = Statement::per_engine(
    "deliveries",
    Sql {
        sqlite: "SELECT min(lease_until) AS first FROM deliveries INDEXED BY deliveries_leased
     WHERE status = 'in_flight' AND mode = $1",
        postgres: "SELECT min(lease_until) AS first FROM deliveries WHERE status = 'in_flight' AND mode = $1",
    },
);

/// The endpoints with pending deliveries, and the instant at which the first delivery of each is due.
pub(super) async fn queues<K: Clone + Ord>(
    connection: &mut dyn Connection,
    service: Service,
    scan: &Scan<'_, K>,
) -> StoreResult<Vec<DueEndpoint>> {
    let values = values![scan.mode, service.as_str()];
    let rows = connection.fetch_all(&QUEUES, values).await?;
    let queues = rows.iter().map(|row| due_endpoint(&**row, scan.mode));
    let queues = queues.filter_map(|queue| scan.readable(None, queue));
    Ok(queues.collect())
}

fn due_endpoint(row: &dyn Row, mode: Mode) -> StoreResult<DueEndpoint> {
    Ok(DueEndpoint {
        partner: row.partner()?,
        endpoint: row.id("endpoint_id", mode)?,
        since: row.instant("due")?,
    })
}

/// Takes one step in the index for each endpoint, independent of the number of its deliveries.
static QUEUES: Statement = Statement::per_engine(
    "deliveries",
    Sql {
        sqlite: "WITH RECURSIVE queues (endpoint_id, partner_id, due) AS (
         SELECT * FROM (
             SELECT d.endpoint_id, d.partner_id, d.next_attempt_at FROM deliveries AS d
             WHERE d.status = 'pending' AND d.mode = $1
             ORDER BY d.endpoint_id, d.next_attempt_at LIMIT 1
         )
         UNION ALL
         SELECT d.endpoint_id, d.partner_id, d.next_attempt_at
         FROM queues AS q
         CROSS JOIN deliveries AS d ON d.sequence = (
             SELECT n.sequence FROM deliveries AS n
             WHERE n.status = 'pending' AND n.mode = $1 AND n.endpoint_id > q.endpoint_id
             ORDER BY n.endpoint_id, n.next_attempt_at LIMIT 1
         )
     )
     SELECT q.partner_id, q.endpoint_id, q.due
     FROM queues AS q
     CROSS JOIN webhook_endpoints AS w ON w.mode = $1 AND w.partner_id = q.partner_id AND w.id = q.endpoint_id
     WHERE w.service = $2",
        postgres: "WITH RECURSIVE queues AS (
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
     WHERE w.service = $2",
    },
);

/// A delivery selected for a claim.
#[derive(Debug)]
pub struct Picked<K> {
    pub stored: Stored<K>,
    pub endpoint: EndpointId,
    partner: PartnerId,
    id: DeliveryId,
    url: String,
    event: StoredEvent,
}

impl<K> Picked<K> {
    pub(super) fn claimed(
        self,
        mode: Mode,
        endpoints: &BTreeMap<EndpointId, Arc<Endpoint>>,
    ) -> StoreResult<ClaimedDelivery> {
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
            former: self.stored.progress.former,
            event: self.event,
            endpoint: Arc::clone(endpoint),
        })
    }
}

/// Selects the first due deliveries of each endpoint, the first of every endpoint before the second of any. Skips those that another
/// worker has locked, and those that cannot be read.
pub(super) async fn pick<T: QueueTx>(
    tx: &mut T,
    scan: &Scan<'_, T::Key>,
    allocated: &[(DueEndpoint, u32)],
) -> StoreResult<Vec<Picked<T::Key>>> {
    if allocated.is_empty() {
        return Ok(Vec::new());
    }
    let rows = tx.pick(scan, allocated).await?;
    let picked = rows.iter().filter_map(|row| {
        let row = &**row;
        scan.readable(T::key_of(row).ok(), picked::<T>(row, scan.mode))
    });
    Ok(T::in_turn(picked.collect()))
}

fn picked<T: QueueTx>(row: &dyn Row, mode: Mode) -> StoreResult<Picked<T::Key>> {
    Ok(Picked {
        stored: stored::<T>(row)?,
        endpoint: row.id("endpoint_id", mode)?,
        partner: row.partner()?,
        id: row.id("id", mode)?,
        url: row.text("url")?.to_owned(),
        event: StoredEvent {
            id: row.text("event_id")?.to_owned(),
            kind: row.text("type")?.to_owned(),
            body: Sealed(row.bytes("body")?.to_vec()),
            created_at: row.instant("event_created_at")?,
            trace_parent: trace_parent(row)?,
        },
    })
}

/// Leases the selected deliveries.
pub(super) async fn take_leases<T: QueueTx>(
    tx: &mut T,
    scan: &Scan<'_, T::Key>,
    picked: &[Picked<T::Key>],
    lease: Lease,
) -> StoreResult<()> {
    let input = DeliveryInput::Claim(lease);
    let moves = picked
        .iter()
        .map(|picked| Step::decided(scan.mode, &picked.stored, input, scan.now))
        .collect::<StoreResult<Vec<_>>>()?;
    tx.apply(&moves).await
}

/// The endpoints of the selected deliveries, with the secrets that are valid at this instant.
pub(super) async fn endpoints_of<T: QueueTx>(
    tx: &mut T,
    scan: &Scan<'_, T::Key>,
    picked: &[Picked<T::Key>],
    service: Service,
) -> StoreResult<BTreeMap<EndpointId, Arc<Endpoint>>> {
    let mut wanted = BTreeMap::new();
    for picked in picked {
        wanted.insert(picked.endpoint, &picked.partner);
    }
    let mut secrets = live_secrets(tx, scan, &wanted).await?;
    let mut endpoints = BTreeMap::new();
    for picked in picked {
        endpoints.entry(picked.endpoint).or_insert_with(|| {
            Arc::new(Endpoint {
                id: picked.endpoint,
                service,
                url: picked.url.clone(),
                secrets: secrets.remove(&picked.endpoint).unwrap_or_default(),
            })
        });
    }
    Ok(endpoints)
}

/// The unexpired secrets of several endpoints, the newest of each endpoint first. An endpoint with an unreadable secret gets none,
/// so that its attempts fail as if the secret did not decrypt.
async fn live_secrets<T: QueueTx>(
    tx: &mut T,
    scan: &Scan<'_, T::Key>,
    endpoints: &BTreeMap<EndpointId, &PartnerId>,
) -> StoreResult<BTreeMap<EndpointId, Vec<EndpointSecret>>> {
    let rows = tx.live_secrets(scan, endpoints).await?;
    let mut found: BTreeMap<EndpointId, Vec<EndpointSecret>> = BTreeMap::new();
    let mut without = BTreeSet::new();
    for row in &rows {
        let endpoint = row.id("id", scan.mode)?;
        match scan.readable(None, secret(&**row)) {
            Some(secret) => found.entry(endpoint).or_default().push(secret),
            None => {
                without.insert(endpoint);
            }
        }
    }
    found.retain(|endpoint, _| !without.contains(endpoint));
    Ok(found)
}
