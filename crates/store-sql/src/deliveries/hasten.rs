//! An endpoint that was down accepts deliveries again: what waits for it becomes due.

use kernel::StoreResult;
use partner_core::Tenant;
use partner_core::events::EndpointId;
use partner_core::webhooks::delivery::MIN_OUTAGE;

use super::QueueTx;
use crate::{Reader, Sql, Statement, values};

/// Whether an endpoint was down: one of its oldest pending deliveries has failed and is older than [`MIN_OUTAGE`]. It takes no lock,
/// because most endpoints were not down.
pub async fn was_down(
    reader: &mut dyn Reader,
    who: &Tenant,
    endpoint: EndpointId,
) -> StoreResult<bool> {
    let before = reader.now().await?.minus(MIN_OUTAGE);
    let values = values![who.mode, &who.partner, endpoint, before];
    let rows = reader.connection().fetch_all(&OLDEST, values).await?;
    let attempts = rows.iter().map(|row| row.integer("attempts"));
    let attempts: Vec<i64> = attempts.collect::<StoreResult<_>>()?;
    Ok(attempts.iter().any(|count| *count > 0))
}

/// Hastens the waiting deliveries of an endpoint that are due first. Returns their number.
pub async fn hasten<T: QueueTx>(
    mut tx: Box<T>,
    who: &Tenant,
    endpoint: EndpointId,
    limit: u32,
) -> StoreResult<u64> {
    let now = tx.now().await?;
    let values = values![who.mode, &who.partner, endpoint, now, limit];
    let hastened = tx.connection().execute(&HASTEN, values).await?;
    tx.commit().await?;
    Ok(hastened)
}

/// The oldest pending deliveries that were created before an instant. The first of an object have failed if the endpoint was down; its
/// later ones have not been tried.
pub static OLDEST: Statement = Statement::per_engine(
    "deliveries",
    Sql {
        sqlite: "SELECT d.attempts FROM deliveries AS d INDEXED BY deliveries_listed_by_status
     WHERE d.mode = $1 AND d.partner_id = $2 AND d.endpoint_id = $3 AND d.status = 'pending' AND d.created_at < $4
     ORDER BY d.created_at, d.id LIMIT 100",
        postgres: "SELECT d.attempts FROM deliveries AS d
     WHERE d.mode = $1 AND d.partner_id = $2 AND d.endpoint_id = $3 AND d.status = 'pending' AND d.created_at < $4
     ORDER BY d.created_at, d.id LIMIT 100",
    },
);

/// Applies [`DeliveryInput::Hasten`](partner_core::webhooks::delivery::DeliveryInput::Hasten) to the first waiting deliveries of an
/// endpoint. An object's earlier delivery waits no longer than its later ones, so it is among them too. Postgres skips locked rows,
/// which have just been read or moved by another transaction.
pub static HASTEN: Statement = Statement::per_engine(
    "deliveries",
    Sql {
        sqlite: "UPDATE deliveries
     SET former_attempt_at = coalesce(former_attempt_at, next_attempt_at), next_attempt_at = $4
     WHERE sequence IN (
         SELECT d.sequence FROM deliveries AS d INDEXED BY deliveries_queue
         WHERE d.status = 'pending' AND d.mode = $1 AND d.partner_id = $2 AND d.endpoint_id = $3 AND d.next_attempt_at > $4
         ORDER BY d.next_attempt_at, d.sequence LIMIT CAST($5 AS bigint)
     )",
        postgres: "UPDATE deliveries AS d
     SET former_attempt_at = coalesce(d.former_attempt_at, d.next_attempt_at), next_attempt_at = $4
     WHERE d.mode = $1 AND d.partner_id = $2 AND d.id = ANY(ARRAY(
         SELECT w.id FROM deliveries AS w
         WHERE w.status = 'pending' AND w.mode = $1 AND w.partner_id = $2 AND w.endpoint_id = $3 AND w.next_attempt_at > $4
         ORDER BY w.next_attempt_at, w.position LIMIT CAST($5 AS bigint) FOR NO KEY UPDATE SKIP LOCKED
     ))",
    },
);
