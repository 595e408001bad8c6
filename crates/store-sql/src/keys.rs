//! API keys.

use kernel::{Mode, StoreError};
use partner_core::key::{KeyKind, KeyRecord};

use crate::Row;

pub fn record(row: &dyn Row, mode: Mode) -> Result<KeyRecord, StoreError> {
    Ok(KeyRecord {
        id: row.id("id", mode)?,
        kind: row.parsed("kind", KeyKind::parse)?,
        prefix: row.text("prefix")?.to_owned(),
        last4: row.text("last4")?.to_owned(),
        generated: row.flag("generated")?,
        created_at: row.instant("created_at")?,
        revoked_at: row.opt_instant("revoked_at")?,
        label: row.opt_string("label")?,
        expires_at: row.opt_instant("expires_at")?,
    })
}
