//! Events, and the delivery that each event queues.

use async_trait::async_trait;
use instruments::failpoint::around;
use instruments::trace;
use kernel::{StoreResult, TraceParent};
use partner_core::Tenant;
use partner_core::events::NewEvent;
use partner_core::ports::{EventTx, StoredEvent};
use partner_core::sealing::Sealed;

use crate::{EngineTx, Reader, Row, Sql, Statement, StoreTx, values};

#[async_trait]
impl EventTx for StoreTx {
    fn caused_by(&mut self, request: Option<TraceParent>) {
        self.cause = request;
    }

    async fn event_insert(&mut self, event: &NewEvent) -> StoreResult<()> {
        let trace_parent = trace::cause().or(self.cause).map(|it| it.to_string());
        let values = values![
            event.tenant.mode,
            &event.tenant.partner,
            &event.id,
            event.service.as_str(),
            &event.kind,
            &event.object_id,
            event.body.0.as_slice(),
            event.created_at,
            &trace_parent,
        ];
        self.insert_around("event.insert", &event.tenant, &INSERT, values)
            .await?;
        let queued = around("delivery.insert", queue(&mut *self.engine, event)).await?;
        if queued > 0 {
            self.engine.effects().queued = true;
        }
        Ok(())
    }
}

/// Postgres numbers an object's events. The partner lock prevents gaps. SQLite orders them by `rowid`.
static INSERT: Statement = Statement::per_engine(
    "events",
    Sql {
        sqlite: "INSERT INTO events (mode, partner_id, id, service, type, object_id, body, created_at, trace_parent)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        postgres: "INSERT INTO events (mode, partner_id, id, service, type, object_id, body, created_at, trace_parent, position)
         SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, 1 + coalesce((
             SELECT max(e.position) FROM events AS e WHERE e.mode = $1 AND e.partner_id = $2 AND e.object_id = $6
         ), 0)",
    },
);

/// Inserts the delivery, and returns 0 if the partner has no endpoint for the service.
async fn queue(engine: &mut dyn EngineTx, event: &NewEvent) -> StoreResult<u64> {
    if engine.locks_rows() {
        let values = values![
            event.tenant.mode,
            &event.tenant.partner,
            event.service.as_str(),
            &event.object_id,
        ];
        let connection = engine.locked(&event.tenant).await?;
        connection.execute(&LOCK, values).await?;
    }
    let values = values![
        event.tenant.mode,
        &event.tenant.partner,
        event.service.as_str(),
        event.delivery,
        &event.id,
        &event.object_id,
        event.created_at,
    ];
    let connection = engine.locked(&event.tenant).await?;
    connection.execute(&QUEUE, values).await
}

/// Locks the object's open deliveries. A transaction that concludes one of them has either committed before, or finds the new
/// delivery after it. Only Postgres runs the statement.
static LOCK: Statement = Statement::new(
    "deliveries",
    "SELECT FROM deliveries AS o
     WHERE o.status IN ('pending', 'in_flight') AND o.mode = $1 AND o.partner_id = $2 AND o.object_id = $4
       AND o.endpoint_id = (SELECT w.id FROM webhook_endpoints AS w
                            WHERE w.mode = $1 AND w.partner_id = $2 AND w.service = $3)
     ORDER BY o.position FOR NO KEY UPDATE",
);

/// A delivery is due no sooner than the earlier ones of its object to the same endpoint. SQLite numbers deliveries itself.
static QUEUE: Statement = Statement::per_engine(
    "deliveries",
    Sql {
        sqlite: "INSERT INTO deliveries (mode, partner_id, id, event_id, endpoint_id, object_id, status, next_attempt_at,
                                 created_at)
         SELECT w.mode, w.partner_id, $4, $5, w.id, $6, 'pending', max($7, coalesce((
                    SELECT max(o.next_attempt_at) FROM deliveries AS o
                    WHERE o.status IN ('pending', 'in_flight') AND o.mode = w.mode AND o.partner_id = w.partner_id
                      AND o.endpoint_id = w.id AND o.object_id = $6
                ), $7)), $7
         FROM webhook_endpoints AS w WHERE w.mode = $1 AND w.partner_id = $2 AND w.service = $3",
        postgres: "INSERT INTO deliveries (mode, partner_id, id, event_id, endpoint_id, object_id, status, next_attempt_at,
                                 created_at, position)
         SELECT w.mode, w.partner_id, $4, $5, w.id, $6, 'pending', greatest($7, coalesce((
                    SELECT max(o.next_attempt_at) FROM deliveries AS o
                    WHERE o.status IN ('pending', 'in_flight') AND o.mode = w.mode AND o.partner_id = w.partner_id
                      AND o.endpoint_id = w.id AND o.object_id = $6
                ), $7)), $7, 1 + coalesce((
                    SELECT max(n.position) FROM deliveries AS n WHERE n.mode = w.mode AND n.partner_id = w.partner_id
                ), 0)
         FROM webhook_endpoints AS w WHERE w.mode = $1 AND w.partner_id = $2 AND w.service = $3",
    },
);

/// The events about an object, in order.
pub async fn of_object(
    reader: &mut dyn Reader,
    who: &Tenant,
    object_id: &str,
) -> StoreResult<Vec<StoredEvent>> {
    let values = values![who.mode, &who.partner, object_id];
    let rows = reader.connection().fetch_all(&OF_OBJECT, values).await?;
    rows.iter().map(|row| stored(&**row)).collect()
}

static OF_OBJECT: Statement = Statement::per_engine(
    "events",
    Sql {
        sqlite: "SELECT partner_id, id, type, body, created_at, trace_parent FROM events
         WHERE mode = $1 AND partner_id = $2 AND object_id = $3 ORDER BY rowid",
        postgres: "SELECT partner_id, id, type, body, created_at, trace_parent FROM events
         WHERE mode = $1 AND partner_id = $2 AND object_id = $3 ORDER BY position",
    },
);

fn stored(row: &dyn Row) -> StoreResult<StoredEvent> {
    Ok(StoredEvent {
        id: row.text("id")?.to_owned(),
        kind: row.text("type")?.to_owned(),
        body: Sealed(row.bytes("body")?.to_vec()),
        created_at: row.instant("created_at")?,
        trace_parent: trace_parent(row)?,
    })
}

/// The trace parent of a row of an event.
pub(crate) fn trace_parent(row: &dyn Row) -> StoreResult<Option<TraceParent>> {
    row.opt_parsed("trace_parent", |text| TraceParent::parse(text.as_bytes()))
}
