//! The statements of the queue that take many deliveries. They take them as JSON, and name a delivery by the number of its row.

use std::collections::BTreeMap;

use async_trait::async_trait;
use kernel::{StoreResult, Timestamp};
use partner_core::events::EndpointId;
use partner_core::ports::ConcludedDelivery;
use partner_core::webhooks::fairness::DueEndpoint;
use partner_core::{PartnerId, Tenant};
use store_sql::deliveries::{Change, FoundRows, LeftOutRows, Picked, QueueTx, Rows, Scan, Step};
use store_sql::{Connection, EngineTx as _, Row, Statement, values};

use crate::row::{json, key};
use crate::tx::SqliteTx;
use crate::{SqliteStore, errors};

/// The deliveries that could not be read, by the numbers of their rows.
pub(crate) type LeftOut = LeftOutRows<i64>;

store_sql::implement_deliveries!(SqliteStore, SqliteTx);

#[async_trait]
impl QueueTx for SqliteTx {
    /// The number of the row.
    type Key = i64;

    fn key_of(row: &dyn Row) -> StoreResult<i64> {
        row.integer("sequence")
    }

    async fn lapsed(&mut self, scan: &Scan<'_, i64>, limit: i64) -> StoreResult<Rows> {
        let skipped = json(&scan.skipped())?;
        let values = values![scan.mode, scan.now, limit, &skipped];
        self.connection().fetch_all(&LAPSED, values).await
    }

    /// Endpoints with the same capacity share a statement, which reads no more deliveries than the capacity.
    async fn pick(
        &mut self,
        scan: &Scan<'_, i64>,
        allocated: &[(DueEndpoint, u32)],
    ) -> StoreResult<Rows> {
        let mut shares: BTreeMap<u32, Vec<(&str, String)>> = BTreeMap::new();
        for (queue, take) in allocated {
            let endpoint = (queue.partner.as_str(), key(queue.endpoint));
            shares.entry(*take).or_default().push(endpoint);
        }
        let skipped = json(&scan.skipped())?;
        let mut found = Vec::new();
        for (take, endpoints) in shares {
            let endpoints = json(&endpoints)?;
            let values = values![scan.mode, &endpoints, scan.now, take, &skipped];
            found.extend(self.connection().fetch_all(&PICK, values).await?);
        }
        Ok(found)
    }

    fn in_turn(mut picked: Vec<Picked<i64>>) -> Vec<Picked<i64>> {
        picked.sort_by_key(|one| (one.stored.due(), one.stored.key));
        let mut places: BTreeMap<EndpointId, usize> = BTreeMap::new();
        let mut placed = Vec::with_capacity(picked.len());
        for one in picked {
            let place = places.entry(one.endpoint).or_default();
            placed.push((*place, one));
            *place = place.saturating_add(1);
        }
        placed.sort_by_key(|(place, _)| *place);
        placed.into_iter().map(|(_, one)| one).collect()
    }

    async fn live_secrets(
        &mut self,
        scan: &Scan<'_, i64>,
        endpoints: &BTreeMap<EndpointId, &PartnerId>,
    ) -> StoreResult<Rows> {
        let keys = endpoints.iter();
        let keys = keys.map(|(endpoint, partner)| (partner.as_str(), key(*endpoint)));
        let keys = json(&keys.collect::<Vec<_>>())?;
        let values = values![scan.mode, &keys, scan.now];
        self.connection().fetch_all(&LIVE_SECRETS, values).await
    }

    /// Finds the deliveries tenant by tenant. The transaction is the only writer, so none is locked.
    async fn find(&mut self, batch: &[ConcludedDelivery]) -> StoreResult<FoundRows> {
        let mut places: BTreeMap<&Tenant, BTreeMap<String, usize>> = BTreeMap::new();
        for (place, concluded) in batch.iter().enumerate() {
            let of_tenant = places.entry(&concluded.tenant).or_default();
            of_tenant.insert(key(concluded.id), place);
        }
        let mut found = BTreeMap::new();
        for (tenant, places) in places {
            let ids: Vec<&String> = places.keys().collect();
            let ids = json(&ids)?;
            let values = values![tenant.mode, &tenant.partner, &ids];
            for row in self.connection().fetch_all(&FIND, values).await? {
                let place = places.get(row.text("id")?).copied();
                found.insert(place.ok_or_else(|| row.bad("id"))?, Some(row));
            }
        }
        Ok(found)
    }

    /// Equal changes share a statement.
    async fn apply(&mut self, steps: &[Step<'_, i64>]) -> StoreResult<()> {
        let changes = grouped(steps.iter().map(|step| (step.change, step.key)));
        for (change, sequences) in changes {
            let written = write(self.connection(), change, &sequences).await?;
            errors::exactly("deliveries", sequences.len(), written)?;
        }
        Ok(())
    }

    async fn follow(&mut self, steps: &[Step<'_, i64>], now: Timestamp) -> StoreResult<()> {
        let concluded = grouped(steps.iter().map(|step| {
            let due = step.change.due.unwrap_or(now.millis());
            (due, step.key)
        }));
        let mut latest: BTreeMap<i64, i64> = BTreeMap::new();
        for (due, concluded) in concluded {
            // The groups are in the order of their instants, so the latest instant replaces earlier ones.
            let concluded = json(&concluded)?;
            let values = values![&concluded, due];
            for row in self.connection().fetch_all(&LATER, values).await? {
                latest.insert(row.integer("sequence")?, due);
            }
        }
        let moved = grouped(latest.into_iter().map(|(sequence, due)| (due, sequence)));
        for (due, sequences) in moved {
            let sequences = json(&sequences)?;
            let values = values![&sequences, due];
            self.connection().execute(&MOVE, values).await?;
        }
        Ok(())
    }
}

/// Groups row numbers by a key.
fn grouped<K: Ord>(pairs: impl Iterator<Item = (K, i64)>) -> BTreeMap<K, Vec<i64>> {
    let mut groups: BTreeMap<K, Vec<i64>> = BTreeMap::new();
    for (key, sequence) in pairs {
        groups.entry(key).or_default().push(sequence);
    }
    groups
}

async fn write(
    connection: &mut dyn Connection,
    change: Change<'_>,
    sequences: &[i64],
) -> StoreResult<u64> {
    let sequences = json(&sequences)?;
    let (code, error) = change.report.unwrap_or_default();
    let values = values![
        &sequences,
        change.was,
        change.had,
        change.status,
        change.attempts,
        change.due,
        change.former,
        change.token,
        change.until,
        change.delivered,
        change.report.is_some(),
        code.map(i64::from),
        error,
    ];
    connection.execute(&WRITE, values).await
}

static LAPSED: Statement = Statement::new(
    "deliveries",
    "SELECT partner_id, id, sequence, status, attempts, next_attempt_at, former_attempt_at, lease_token, lease_until, delivered_at
     FROM deliveries INDEXED BY deliveries_leased
     WHERE status = 'in_flight' AND mode = $1 AND lease_until <= $2
       AND sequence NOT IN (SELECT j.value FROM json_each($4) AS j)
     ORDER BY lease_until LIMIT +$3",
);

pub(crate) static PICK: Statement = Statement::new(
    "deliveries",
    "SELECT d.partner_id, d.id, d.sequence, d.endpoint_id, d.status, d.attempts, d.next_attempt_at,
            d.former_attempt_at, d.lease_token, d.lease_until, d.delivered_at, w.url, e.id AS event_id, e.type, e.body,
            e.created_at AS event_created_at, e.trace_parent
     FROM json_each($2) AS j
     CROSS JOIN deliveries AS d ON d.sequence IN (
         SELECT n.sequence FROM deliveries AS n
         WHERE n.status = 'pending' AND n.mode = $1 AND n.partner_id = j.value ->> 0
           AND n.endpoint_id = j.value ->> 1 AND n.next_attempt_at <= $3
           AND n.sequence NOT IN (SELECT j.value FROM json_each($5) AS j)
           AND NOT EXISTS (
               SELECT 1 FROM deliveries AS o
               WHERE o.status IN ('pending', 'in_flight') AND o.mode = n.mode AND o.partner_id = n.partner_id
                 AND o.endpoint_id = n.endpoint_id AND o.object_id = n.object_id AND o.sequence < n.sequence
           )
         ORDER BY n.next_attempt_at, n.sequence LIMIT +$4
     )
     CROSS JOIN events AS e ON e.mode = d.mode AND e.partner_id = d.partner_id AND e.id = d.event_id
     CROSS JOIN webhook_endpoints AS w ON w.mode = d.mode AND w.partner_id = d.partner_id AND w.id = d.endpoint_id",
);

static LIVE_SECRETS: Statement = Statement::new(
    "webhook_secrets",
    "SELECT s.partner_id, s.endpoint_id AS id, s.sealed, s.created_at, s.expires_at
     FROM json_each($2) AS j
     CROSS JOIN webhook_secrets AS s ON s.mode = $1 AND s.partner_id = j.value ->> 0 AND s.endpoint_id = j.value ->> 1
     WHERE s.expires_at IS NULL OR s.expires_at > $3
     ORDER BY s.endpoint_id, s.place",
);

pub(crate) static FIND: Statement = Statement::new(
    "deliveries",
    "SELECT partner_id, id, sequence, status, attempts, next_attempt_at, former_attempt_at, lease_token,
            lease_until, delivered_at
     FROM deliveries
     WHERE mode = $1 AND partner_id = $2 AND id IN (SELECT j.value FROM json_each($3) AS j)",
);

pub(crate) static WRITE: Statement = Statement::new(
    "deliveries",
    "UPDATE deliveries
     SET status = $4, attempts = $5, next_attempt_at = $6, former_attempt_at = $7, lease_token = $8, lease_until = $9,
         delivered_at = $10, last_response_status = iif($11, $12, last_response_status),
         last_error = iif($11, $13, last_error)
     WHERE sequence IN (SELECT j.value FROM json_each($1) AS j) AND status = +$2 AND lease_token IS $3",
);

pub(crate) static LATER: Statement = Statement::new(
    "deliveries",
    "SELECT f.sequence
     FROM deliveries AS d
     CROSS JOIN deliveries AS f ON f.status IN ('pending', 'in_flight') AND f.mode = d.mode
          AND f.partner_id = d.partner_id AND f.endpoint_id = d.endpoint_id AND f.object_id = d.object_id
          AND f.sequence > d.sequence
     WHERE d.sequence IN (SELECT j.value FROM json_each($1) AS j)
       AND f.status = 'pending' AND (f.attempts = 0 OR f.next_attempt_at < $2)",
);

pub(crate) static MOVE: Statement = Statement::new(
    "deliveries",
    "UPDATE deliveries SET next_attempt_at = $2,
         former_attempt_at = CASE WHEN attempts > 0 AND former_attempt_at > $2 THEN former_attempt_at END
     WHERE sequence IN (SELECT j.value FROM json_each($1) AS j) AND status = 'pending'",
);
