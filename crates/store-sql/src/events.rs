//! Events.

use kernel::StoreError;
use partner_core::ports::StoredEvent;
use partner_core::sealing::Sealed;

use crate::Row;

pub fn stored(row: &dyn Row) -> Result<StoredEvent, StoreError> {
    Ok(StoredEvent {
        id: row.text("id")?.to_owned(),
        kind: row.text("type")?.to_owned(),
        body: Sealed(row.bytes("body")?.to_vec()),
        created_at: row.instant("created_at")?,
    })
}
