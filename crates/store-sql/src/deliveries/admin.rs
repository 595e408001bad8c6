//! A partner's reads of its deliveries, and resends.

use kernel::{Cas, StoreResult};
use partner_core::Tenant;
use partner_core::events::{DeliveryId, Service};
use partner_core::ports::{DeliveryFilter, DeliveryView};
use partner_core::webhooks::delivery::DeliveryInput;

use super::step::{Step, stored};
use super::{QueueTx, view};
use crate::bounds::{exclusive_lower_bound, upper_bound};
use crate::{Connection, Reader, Row, Sql, Statement, values};

pub async fn page(
    reader: &mut dyn Reader,
    who: &Tenant,
    service: Service,
    filter: DeliveryFilter,
    limit: u32,
) -> StoreResult<Vec<DeliveryView>> {
    let cursor = match filter.after {
        None => None,
        Some(after) => match find(reader.connection(), &FIND, who, service, after).await? {
            None => return Ok(Vec::new()),
            Some(row) => Some((row.integer("created_at")?, after.ulid())),
        },
    };
    let (before, id) = upper_bound(filter.created.before, cursor);
    let after = exclusive_lower_bound(filter.created.after);
    let (mode, partner, skip) = (who.mode, &who.partner, filter.skip);
    let service = service.as_str();
    let connection = reader.connection();
    let rows = match filter.status {
        None => {
            let values = values![mode, partner, service, limit, skip, before, id, after];
            connection.fetch_all(&PAGE, values).await?
        }
        Some(status) => {
            let values = values![
                mode, partner, service, limit, skip, before, id, after, status
            ];
            connection.fetch_all(&PAGE_OF_STATUS, values).await?
        }
    };
    rows.iter().map(|row| view(&**row, mode)).collect()
}

/// Every column that [`view`] reads, except the endpoint's URL.
macro_rules! columns {
    () => {
        "d.partner_id, d.id, d.event_id, d.status, d.attempts, d.next_attempt_at, d.former_attempt_at, d.lease_token,
             d.lease_until, d.last_response_status, d.last_error, d.delivered_at, d.created_at, e.type AS event_type"
    };
}

/// Finds the page in the index alone and in its order, so that the cost does not depend on how many deliveries the partner has.
///
/// A partner has at most one endpoint for a service. SQLite knows this from the endpoint's key. Postgres would sort all deliveries
/// of a joined endpoint, so its statement compares with the id of the endpoint instead.
macro_rules! page {
    (sqlite, $condition:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            ", p.url AS target_url
             FROM (
                 SELECT d.sequence, w.url
                 FROM webhook_endpoints AS w
                 CROSS JOIN deliveries AS d ON d.mode = $1 AND d.partner_id = $2 AND d.endpoint_id = w.id
                 WHERE w.mode = $1 AND w.partner_id = $2 AND w.service = $3
                       AND (d.created_at, d.id) < ($6, $7) AND d.created_at > $8",
            $condition,
            " ORDER BY d.created_at DESC, d.id DESC LIMIT CAST($4 AS bigint) OFFSET CAST($5 AS bigint)
             ) AS p
             CROSS JOIN deliveries AS d ON d.sequence = p.sequence
             CROSS JOIN events AS e ON e.mode = $1 AND e.partner_id = $2 AND e.id = d.event_id
             ORDER BY d.created_at DESC, d.id DESC"
        )
    };
    (postgres, $condition:literal) => {
        concat!(
            "WITH endpoint AS MATERIALIZED (
                 SELECT w.id, w.url FROM webhook_endpoints AS w
                 WHERE w.mode = $1 AND w.partner_id = $2 AND w.service = $3
             ), page AS MATERIALIZED (
                 SELECT d.id, d.created_at FROM deliveries AS d
                 WHERE d.mode = $1 AND d.partner_id = $2 AND d.endpoint_id = (SELECT w.id FROM endpoint AS w)
                       AND (d.created_at, d.id) < ($6, $7) AND d.created_at > $8",
            $condition,
            " ORDER BY d.created_at DESC, d.id DESC LIMIT CAST($4 AS bigint) OFFSET CAST($5 AS bigint)
             )
             SELECT ",
            columns!(),
            ", (SELECT w.url FROM endpoint AS w) AS target_url
             FROM page AS p
             JOIN deliveries AS d ON d.mode = $1 AND d.partner_id = $2 AND d.id = p.id
             JOIN events AS e ON e.mode = d.mode AND e.partner_id = d.partner_id AND e.id = d.event_id
             ORDER BY p.created_at DESC, p.id DESC"
        )
    };
}

pub static PAGE: Statement = Statement::per_engine(
    "deliveries",
    Sql {
        sqlite: page!(sqlite, ""),
        postgres: page!(postgres, ""),
    },
);

pub static PAGE_OF_STATUS: Statement = Statement::per_engine(
    "deliveries",
    Sql {
        sqlite: page!(sqlite, " AND d.status = $9"),
        postgres: page!(postgres, " AND d.status = $9"),
    },
);

pub async fn get(
    reader: &mut dyn Reader,
    who: &Tenant,
    service: Service,
    id: DeliveryId,
) -> StoreResult<Option<DeliveryView>> {
    let row = find(reader.connection(), &FIND, who, service, id).await?;
    row.map(|row| view(&*row, who.mode)).transpose()
}

/// Makes a delivery due now, under the partner lock, so that no later event of its object is queued meanwhile.
pub async fn replay<T: QueueTx>(
    mut tx: Box<T>,
    who: &Tenant,
    service: Service,
    id: DeliveryId,
) -> StoreResult<Option<(Cas, DeliveryView)>> {
    let row = find(tx.locked(who).await?, &LOCK, who, service, id).await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let now = tx.now().await?;
    let mut view = view(&*row, who.mode)?;
    let stored = stored::<T>(&*row)?;
    let Some(after) = stored.progress.advance(DeliveryInput::Replay, now) else {
        tx.roll_back().await?;
        return Ok(Some((Cas::Lost, view)));
    };
    let step = Step::new(who.mode, &stored, after);
    tx.apply(&[step]).await?;
    let values = values![who.mode, &who.partner, id, now];
    tx.locked(who).await?.execute(&HOLD_BACK, values).await?;
    tx.effects().queued = true;
    tx.commit().await?;
    view.record.progress = after;
    Ok(Some((Cas::Won, view)))
}

async fn find(
    connection: &mut dyn Connection,
    statement: &'static Statement,
    who: &Tenant,
    service: Service,
    id: DeliveryId,
) -> StoreResult<Option<Box<dyn Row>>> {
    let id = id.in_mode(who.mode);
    let values = values![who.mode, &who.partner, id, service.as_str()];
    connection.fetch_optional(statement, values).await
}

macro_rules! find {
    ($key:literal, $lock:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            $key,
            ", w.url AS target_url
             FROM deliveries AS d
             JOIN events AS e ON e.mode = d.mode AND e.partner_id = d.partner_id AND e.id = d.event_id
             JOIN webhook_endpoints AS w ON w.mode = d.mode AND w.partner_id = d.partner_id AND w.id = d.endpoint_id
             WHERE d.mode = $1 AND d.partner_id = $2 AND d.id = $3 AND w.service = $4",
            $lock
        )
    };
}

static FIND: Statement = Statement::new("deliveries", find!("", ""));

/// Locks the row too and reads its key. SQLite has one writer.
static LOCK: Statement = Statement::per_engine(
    "deliveries",
    Sql {
        sqlite: find!(", d.sequence", ""),
        postgres: find!("", " FOR NO KEY UPDATE OF d"),
    },
);

/// Makes the later deliveries of the object due no sooner than the delivery that is resent now. Postgres locks the rows in the order
/// of their positions, as every transaction does.
pub static HOLD_BACK: Statement = Statement::per_engine(
    "deliveries",
    Sql {
        sqlite: "UPDATE deliveries SET next_attempt_at = $4
     FROM deliveries AS d
     WHERE d.mode = $1 AND d.partner_id = $2 AND d.id = $3 AND deliveries.status IN ('pending', 'in_flight')
       AND deliveries.mode = d.mode AND deliveries.partner_id = d.partner_id
       AND deliveries.endpoint_id = d.endpoint_id AND deliveries.object_id = d.object_id
       AND deliveries.sequence > d.sequence AND deliveries.status = 'pending' AND deliveries.next_attempt_at < $4",
        postgres: "WITH later AS (
         SELECT f.id FROM deliveries AS d
         JOIN deliveries AS f ON f.status IN ('pending', 'in_flight') AND f.mode = d.mode
              AND f.partner_id = d.partner_id AND f.endpoint_id = d.endpoint_id AND f.object_id = d.object_id
              AND f.position > d.position
         WHERE d.mode = $1 AND d.partner_id = $2 AND d.id = $3 AND f.status = 'pending' AND f.next_attempt_at < $4
         ORDER BY f.position FOR NO KEY UPDATE OF f
     )
     UPDATE deliveries AS d SET next_attempt_at = $4
     FROM later WHERE d.mode = $1 AND d.partner_id = $2 AND d.id = later.id",
    },
);
