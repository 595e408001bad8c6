//! Deliveries: their rows, the columns of their states, and reads of the queue.

pub mod admin;
mod claim;
pub mod hasten;
mod left_out;
pub mod ports;
pub mod queue;
mod step;
mod watchers;

use kernel::{Mode, StoreResult};
use partner_core::Tenant;
use partner_core::events::Service;
use partner_core::ports::{DeliveryRecord, DeliveryView, QueueStats};
use partner_core::webhooks::delivery::{DeliveryState, Lease, Progress};

use crate::{Reader, Row, Sql, Statement, values};

pub use claim::{Picked, Scan};
pub use left_out::LeftOutRows;
pub use queue::{FoundRows, QueueTx};
pub use step::{Change, Step, Stored};
pub use watchers::Watchers;

/// The rows of a statement.
pub type Rows = Vec<Box<dyn Row>>;

fn progress(row: &dyn Row) -> StoreResult<Progress> {
    let due = row.opt_instant("next_attempt_at")?;
    let token = row.opt_integer("lease_token")?;
    let until = row.opt_instant("lease_until")?;
    let delivered = row.opt_instant("delivered_at")?;
    let state = match (row.text("status")?, due, token, until, delivered) {
        ("pending", Some(due), None, None, None) => DeliveryState::Pending { due },
        ("in_flight", None, Some(token), Some(until), None) => DeliveryState::InFlight(Lease {
            token: token.cast_unsigned(),
            until,
        }),
        ("succeeded", None, None, None, Some(at)) => DeliveryState::Succeeded { at },
        ("dead_lettered", None, None, None, None) => DeliveryState::DeadLettered,
        _ => return Err(row.bad("status")),
    };
    let former = match state {
        DeliveryState::Pending { .. } | DeliveryState::InFlight(_) => {
            row.opt_instant("former_attempt_at")?
        }
        // A program of an earlier version leaves the column.
        DeliveryState::Succeeded { .. } | DeliveryState::DeadLettered => None,
    };
    let attempts = row.count("attempts")?;
    Ok(Progress {
        state,
        attempts,
        former,
    })
}

fn record(row: &dyn Row, mode: Mode) -> StoreResult<DeliveryRecord> {
    Ok(DeliveryRecord {
        id: row.id("id", mode)?,
        event_id: row.text("event_id")?.to_owned(),
        progress: progress(row)?,
        last_response_status: row.opt_count("last_response_status")?,
        last_error: row.opt_string("last_error")?,
    })
}

/// A delivery as its partner sees it.
fn view(row: &dyn Row, mode: Mode) -> StoreResult<DeliveryView> {
    Ok(DeliveryView {
        record: record(row, mode)?,
        event_kind: row.text("event_type")?.to_owned(),
        target_url: row.text("target_url")?.to_owned(),
        created_at: row.instant("created_at")?,
    })
}

/// The deliveries of an object's events, in the order of the events.
pub async fn of_object(
    reader: &mut dyn Reader,
    who: &Tenant,
    object_id: &str,
) -> StoreResult<Vec<DeliveryRecord>> {
    let values = values![who.mode, &who.partner, object_id];
    let rows = reader.connection().fetch_all(&OF_OBJECT, values).await?;
    rows.iter().map(|row| record(&**row, who.mode)).collect()
}

macro_rules! of_object {
    ($join:literal, $order:literal) => {
        concat!(
            "SELECT d.partner_id, d.id, d.event_id, d.status, d.attempts, d.next_attempt_at, d.former_attempt_at,
                    d.lease_token, d.lease_until, d.last_response_status, d.last_error, d.delivered_at
             FROM events AS e
             ",
            $join,
            " deliveries AS d ON d.mode = $1 AND d.partner_id = $2 AND d.event_id = e.id
             WHERE e.mode = $1 AND e.partner_id = $2 AND e.object_id = $3
             ORDER BY ",
            $order
        )
    };
}

static OF_OBJECT: Statement = Statement::per_engine(
    "deliveries",
    Sql {
        sqlite: of_object!("CROSS JOIN", "d.sequence"),
        postgres: of_object!("JOIN", "d.position"),
    },
);

/// The counts of a queue, with the age of the delivery that has been due longest.
pub async fn stats(
    reader: &mut dyn Reader,
    mode: Mode,
    service: Service,
) -> StoreResult<QueueStats> {
    let now = reader.now().await?;
    let values = values![mode, service.as_str(), now];
    let row = reader.connection().fetch_one(&STATS, values).await?;
    Ok(QueueStats {
        due: row.count("due")?,
        scheduled: row.count("scheduled")?,
        in_flight: row.count("in_flight")?,
        oldest_due: row.opt_instant("first")?.map(|first| now.since(first)),
    })
}

/// Counts in the index, endpoint by endpoint.
static STATS: Statement = Statement::per_engine(
    "deliveries",
    Sql {
        sqlite: "SELECT coalesce(sum(due), 0) AS due, coalesce(sum(later), 0) AS scheduled,
            coalesce(sum(held), 0) AS in_flight, min(first) AS first
     FROM (
         SELECT (SELECT count(*) FROM deliveries AS d
                 WHERE d.status = 'pending' AND d.mode = $1 AND d.endpoint_id = w.id AND d.next_attempt_at <= $3) AS due,
                (SELECT count(*) FROM deliveries AS d
                 WHERE d.status = 'pending' AND d.mode = $1 AND d.endpoint_id = w.id AND d.next_attempt_at > $3) AS later,
                (SELECT min(d.next_attempt_at) FROM deliveries AS d
                 WHERE d.status = 'pending' AND d.mode = $1 AND d.endpoint_id = w.id AND d.next_attempt_at <= $3) AS first,
                0 AS held
         FROM webhook_endpoints AS w
         WHERE w.mode = $1 AND w.service = $2
         UNION ALL
         SELECT 0, 0, NULL, 1
         FROM deliveries AS d INDEXED BY deliveries_leased
         CROSS JOIN webhook_endpoints AS w ON w.mode = d.mode AND w.partner_id = d.partner_id AND w.id = d.endpoint_id
         WHERE d.status = 'in_flight' AND d.mode = $1 AND w.service = $2
     )",
        postgres: "SELECT coalesce(sum(due), 0)::bigint AS due, coalesce(sum(later), 0)::bigint AS scheduled,
            coalesce(sum(held), 0)::bigint AS in_flight, min(first) AS first
     FROM (
         SELECT count(*) FILTER (WHERE d.next_attempt_at <= $3) AS due,
                count(*) FILTER (WHERE d.next_attempt_at > $3) AS later,
                min(d.next_attempt_at) FILTER (WHERE d.next_attempt_at <= $3) AS first,
                0 AS held
         FROM webhook_endpoints AS w
         JOIN deliveries AS d ON d.status = 'pending' AND d.mode = $1 AND d.endpoint_id = w.id
         WHERE w.mode = $1 AND w.service = $2
         UNION ALL
         SELECT 0, 0, NULL, count(*)
         FROM deliveries AS d
         JOIN webhook_endpoints AS w ON w.mode = d.mode AND w.partner_id = d.partner_id AND w.id = d.endpoint_id
         WHERE d.status = 'in_flight' AND d.mode = $1 AND w.service = $2
     ) AS counted",
    },
);

/// The columns of a delivery's state.
#[derive(Debug, Clone, Copy, Default)]
struct Facts {
    due: Option<i64>,
    token: Option<i64>,
    until: Option<i64>,
    delivered: Option<i64>,
}

impl Facts {
    fn of(state: DeliveryState) -> Self {
        let none = Self::default();
        match state {
            DeliveryState::Pending { due } => Self {
                due: Some(due.millis()),
                ..none
            },
            DeliveryState::InFlight(lease) => Self {
                token: Some(lease.token.cast_signed()),
                until: Some(lease.until.millis()),
                ..none
            },
            DeliveryState::Succeeded { at } => Self {
                delivered: Some(at.millis()),
                ..none
            },
            DeliveryState::DeadLettered => none,
        }
    }
}
