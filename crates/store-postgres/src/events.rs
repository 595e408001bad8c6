//! The lock that an event takes before it queues its delivery.

use kernel::StoreError;
use partner_core::events::NewEvent;

use crate::conn::Conn;
use crate::errors;

/// Locks the object's open deliveries. A transaction that concludes one of them has either committed before, or finds the new
/// delivery after it.
pub(crate) async fn lock_deliveries_of_object(
    conn: &mut Conn,
    event: &NewEvent,
) -> Result<(), StoreError> {
    sqlx::query(WAITING)
        .bind(event.tenant.mode.as_str())
        .bind(event.tenant.partner.as_str())
        .bind(event.service.as_str())
        .bind(&event.object_id)
        .execute(conn)
        .await
        .map_err(errors::statement)?;
    Ok(())
}

const WAITING: &str = "SELECT FROM deliveries AS o
     WHERE o.status IN ('pending', 'in_flight') AND o.mode = $1 AND o.partner_id = $2 AND o.object_id = $4
       AND o.endpoint_id = (SELECT w.id FROM webhook_endpoints AS w
                            WHERE w.mode = $1 AND w.partner_id = $2 AND w.service = $3)
     ORDER BY o.position FOR NO KEY UPDATE";
