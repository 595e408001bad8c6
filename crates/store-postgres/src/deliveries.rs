//! The statements of the queue that take many deliveries. They take them as arrays, one for each column.

use std::collections::BTreeMap;
use std::fmt;

use async_trait::async_trait;
use kernel::{StoreResult, Timestamp};
use partner_core::PartnerId;
use partner_core::events::EndpointId;
use partner_core::ports::ConcludedDelivery;
use partner_core::webhooks::fairness::DueEndpoint;
use sqlx::types::Uuid;
use store_sql::Row;
use store_sql::deliveries::{FoundRows, LeftOutRows, Picked, QueueTx, Rows, Scan, Step};

use crate::connection::fetched;
use crate::row::{column, key, written};
use crate::tx::PgTx;
use crate::{PostgresStore, errors};

/// The key of a delivery's row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowKey {
    partner: String,
    id: Uuid,
}

impl fmt::Display for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.partner, written(self.id))
    }
}

/// The deliveries that could not be read.
pub(crate) type LeftOut = LeftOutRows<RowKey>;

store_sql::implement_deliveries!(PostgresStore, PgTx);

#[async_trait]
impl QueueTx for PgTx {
    type Key = RowKey;

    fn key_of(row: &dyn Row) -> StoreResult<RowKey> {
        Ok(RowKey {
            partner: row.text("partner_id")?.to_owned(),
            id: uuid(row)?,
        })
    }

    async fn lapsed(&mut self, scan: &Scan<'_, RowKey>, limit: i64) -> StoreResult<Rows> {
        let query = sqlx::query(LAPSED)
            .bind(scan.mode.as_str())
            .bind(scan.now.millis())
            .bind(limit)
            .bind(column(&scan.skipped(), |key| key.id));
        fetched("deliveries", query, self.conn()).await
    }

    async fn pick(
        &mut self,
        scan: &Scan<'_, RowKey>,
        allocated: &[(DueEndpoint, u32)],
    ) -> StoreResult<Rows> {
        let query = sqlx::query(PICK)
            .bind(scan.mode.as_str())
            .bind(column(allocated, |(queue, _)| queue.partner.as_str()))
            .bind(column(allocated, |(queue, _)| key(queue.endpoint)))
            .bind(column(allocated, |(_, take)| i64::from(*take)))
            .bind(scan.now.millis())
            .bind(column(&scan.skipped(), |key| key.id));
        fetched("deliveries", query, self.conn()).await
    }

    /// The statement returns them in this order.
    fn in_turn(picked: Vec<Picked<RowKey>>) -> Vec<Picked<RowKey>> {
        picked
    }

    async fn live_secrets(
        &mut self,
        scan: &Scan<'_, RowKey>,
        endpoints: &BTreeMap<EndpointId, &PartnerId>,
    ) -> StoreResult<Rows> {
        let (ids, partners): (Vec<Uuid>, Vec<&str>) = endpoints
            .iter()
            .map(|(endpoint, partner)| (key(*endpoint), partner.as_str()))
            .unzip();
        let query = sqlx::query(LIVE_SECRETS)
            .bind(scan.mode.as_str())
            .bind(partners)
            .bind(ids)
            .bind(scan.now.millis());
        fetched("webhook_secrets", query, self.conn()).await
    }

    async fn find(&mut self, batch: &[ConcludedDelivery]) -> StoreResult<FoundRows> {
        let mut found = FoundRows::new();
        for row in self.of_batch(FIND, batch).await? {
            found.insert(place(&*row)?, Some(row));
        }
        if found.len() < batch.len() {
            for row in self.of_batch(EXISTING, batch).await? {
                found.entry(place(&*row)?).or_insert(None);
            }
        }
        Ok(found)
    }

    async fn apply(&mut self, steps: &[Step<'_, RowKey>]) -> StoreResult<()> {
        if steps.is_empty() {
            return Ok(());
        }
        let query = sqlx::query(APPLY)
            .bind(column(steps, |step| step.mode.as_str()))
            .bind(column(steps, |step| step.key.partner.as_str()))
            .bind(column(steps, |step| step.key.id))
            .bind(column(steps, |step| step.change.was))
            .bind(column(steps, |step| step.change.had))
            .bind(column(steps, |step| step.change.status))
            .bind(column(steps, |step| i64::from(step.change.attempts)))
            .bind(column(steps, |step| step.change.due))
            .bind(column(steps, |step| step.change.former))
            .bind(column(steps, |step| step.change.token))
            .bind(column(steps, |step| step.change.until))
            .bind(column(steps, |step| step.change.delivered))
            .bind(column(steps, |step| step.change.report.is_some()))
            .bind(column(steps, |step| {
                let code = step.change.report.and_then(|(code, _)| code);
                code.map(i64::from)
            }))
            .bind(column(steps, |step| {
                step.change.report.and_then(|(_, error)| error)
            }));
        let done = query.execute(self.conn()).await;
        let written = done.map_err(errors::statement)?.rows_affected();
        errors::exactly("deliveries", steps.len(), written)
    }

    /// A delivery that another transaction has locked keeps its instant, which is not later than the attempt that was concluded.
    async fn follow(&mut self, steps: &[Step<'_, RowKey>], now: Timestamp) -> StoreResult<()> {
        let query = sqlx::query(FOLLOWERS)
            .bind(column(steps, |step| step.mode.as_str()))
            .bind(column(steps, |step| step.key.partner.as_str()))
            .bind(column(steps, |step| step.key.id))
            .bind(column(steps, |step| {
                step.change.due.unwrap_or(now.millis())
            }));
        let rows = fetched("deliveries", query, self.conn()).await?;
        let mut latest = BTreeMap::new();
        for row in &rows {
            let place = (row.text("mode")?, row.text("partner_id")?, uuid(&**row)?);
            let due = latest.entry(place).or_insert(i64::MIN);
            *due = row.integer("due")?.max(*due);
        }
        if latest.is_empty() {
            return Ok(());
        }
        let places = latest.keys();
        let query = sqlx::query(MOVE)
            .bind(places.clone().map(|place| place.0).collect::<Vec<_>>())
            .bind(places.clone().map(|place| place.1).collect::<Vec<_>>())
            .bind(places.map(|place| place.2).collect::<Vec<_>>())
            .bind(latest.values().copied().collect::<Vec<_>>());
        query
            .execute(self.conn())
            .await
            .map_err(errors::statement)?;
        Ok(())
    }
}

impl PgTx {
    /// Runs a statement about the deliveries of a batch.
    async fn of_batch(
        &mut self,
        statement: &'static str,
        batch: &[ConcludedDelivery],
    ) -> StoreResult<Rows> {
        let query = sqlx::query(statement)
            .bind(column(batch, |one| one.tenant.mode.as_str()))
            .bind(column(batch, |one| one.tenant.partner.as_str()))
            .bind(column(batch, |one| key(one.id)));
        fetched("deliveries", query, self.conn()).await
    }
}

fn uuid(row: &dyn Row) -> StoreResult<Uuid> {
    Ok(Uuid::from_u128(row.ulid("id")?.0))
}

/// The position in its batch of the delivery of a row.
fn place(row: &dyn Row) -> StoreResult<usize> {
    let place = usize::try_from(row.integer("place")?).ok();
    let place = place.and_then(|place| place.checked_sub(1));
    place.ok_or_else(|| row.bad("place"))
}

const LAPSED: &str =
    "SELECT partner_id, id, status, attempts, next_attempt_at, former_attempt_at, lease_token, lease_until, delivered_at
     FROM deliveries
     WHERE status = 'in_flight' AND mode = $1 AND lease_until <= $2 AND id <> ALL($4::uuid[])
     ORDER BY lease_until LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED";

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
                    d.former_attempt_at, d.lease_token, d.lease_until, d.delivered_at
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
     SELECT p.partner_id, p.id, p.endpoint_id, p.status, p.attempts, p.next_attempt_at, p.former_attempt_at, p.lease_token,
            p.lease_until, p.delivered_at, w.url, p.event_id, e.type, e.body, e.created_at AS event_created_at, e.trace_parent
     FROM placed AS p
     CROSS JOIN LATERAL (
         SELECT e.type, e.body, e.created_at, e.trace_parent FROM events AS e
         WHERE e.mode = $1 AND e.partner_id = p.partner_id AND e.id BETWEEN p.event_id AND p.event_id
         ORDER BY e.id LIMIT 1
     ) AS e
     CROSS JOIN LATERAL (
         SELECT w.url FROM webhook_endpoints AS w
         WHERE w.mode = $1 AND w.partner_id = p.partner_id AND w.id = p.endpoint_id OFFSET 0
     ) AS w
     ORDER BY p.place, p.next_attempt_at, p.position";

pub(crate) const LIVE_SECRETS: &str =
    "WITH asked AS MATERIALIZED (
         SELECT $1::text AS mode, j.* FROM unnest($2::text[], $3::uuid[]) AS j (partner_id, endpoint_id)
     )
     SELECT s.partner_id, s.endpoint_id AS id, s.sealed, s.created_at, s.expires_at
     FROM asked AS j
     JOIN webhook_secrets AS s
          ON s.mode = j.mode AND s.partner_id = j.partner_id AND s.endpoint_id = j.endpoint_id
     WHERE s.expires_at IS NULL OR s.expires_at > $4
     ORDER BY s.endpoint_id, s.place";

pub(crate) const FIND: &str = "SELECT j.place, d.partner_id, d.id, d.status, d.attempts, d.next_attempt_at, d.former_attempt_at,
            d.lease_token, d.lease_until, d.delivered_at
     FROM unnest($1::text[], $2::text[], $3::uuid[]) WITH ORDINALITY AS j (mode, partner_id, id, place)
     JOIN deliveries AS d ON d.mode = j.mode AND d.partner_id = j.partner_id AND d.id = j.id
     ORDER BY d.mode, d.partner_id, d.position FOR NO KEY UPDATE OF d SKIP LOCKED";

pub(crate) const EXISTING: &str = "SELECT j.place
     FROM unnest($1::text[], $2::text[], $3::uuid[]) WITH ORDINALITY AS j (mode, partner_id, id, place)
     JOIN deliveries AS d ON d.mode = j.mode AND d.partner_id = j.partner_id AND d.id = j.id";

pub(crate) const APPLY: &str =
    "UPDATE deliveries AS d SET status = n.status, attempts = n.attempts, next_attempt_at = n.due,
            former_attempt_at = n.former, lease_token = n.token, lease_until = n.until, delivered_at = n.delivered,
            last_response_status = CASE WHEN n.noted THEN n.code ELSE d.last_response_status END,
            last_error = CASE WHEN n.noted THEN n.error ELSE d.last_error END
     FROM unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[],
                 $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::boolean[], $14::bigint[], $15::text[])
          AS n (mode, partner_id, id, was, had, status, attempts, due, former, token, until, delivered, noted, code, error)
     WHERE d.mode = n.mode AND d.partner_id = n.partner_id AND d.id = n.id AND d.status = n.was
       AND d.lease_token IS NOT DISTINCT FROM n.had";

pub(crate) const FOLLOWERS: &str = "SELECT f.mode, f.partner_id, f.id, n.due
     FROM unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[]) AS n (mode, partner_id, id, due)
     JOIN deliveries AS d ON d.mode = n.mode AND d.partner_id = n.partner_id AND d.id = n.id
     JOIN deliveries AS f ON f.status IN ('pending', 'in_flight') AND f.mode = d.mode
          AND f.partner_id = d.partner_id AND f.endpoint_id = d.endpoint_id AND f.object_id = d.object_id
          AND f.position > d.position
     WHERE f.status = 'pending' AND (f.attempts = 0 OR f.next_attempt_at < n.due)
     ORDER BY f.mode, f.partner_id, f.position FOR NO KEY UPDATE OF f SKIP LOCKED";

pub(crate) const MOVE: &str = "UPDATE deliveries AS d SET next_attempt_at = n.due,
            former_attempt_at = CASE WHEN d.attempts > 0 AND d.former_attempt_at > n.due THEN d.former_attempt_at END
     FROM unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[]) AS n (mode, partner_id, id, due)
     WHERE d.mode = n.mode AND d.partner_id = n.partner_id AND d.id = n.id AND d.status = 'pending'";
