//! Webhook endpoints and their sealed secrets.

use kernel::StoreError;
use partner_core::Tenant;
use partner_core::events::{Endpoint, EndpointSecret};
use partner_core::sealing::Sealed;

use crate::Row;

pub fn secret(row: &dyn Row) -> Result<EndpointSecret, StoreError> {
    Ok(EndpointSecret {
        sealed: Sealed(row.bytes("sealed")?.to_vec()),
        created_at: row.instant("created_at")?,
        expires_at: row.opt_instant("expires_at")?,
    })
}

/// An endpoint is of its tenant's mode.
pub fn check_mode(who: &Tenant, endpoint: &Endpoint) -> Result<(), StoreError> {
    if endpoint.id.mode() == who.mode {
        return Ok(());
    }
    Err(StoreError::Guard(format!(
        "webhook_endpoints: {} is of another mode",
        endpoint.id
    )))
}
