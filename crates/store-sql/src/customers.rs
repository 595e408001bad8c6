//! Customers, sealed as they are kept.

use gate_core::customer::{CustomerIndexes, KycStatus, SealedCustomer};
use kernel::{Mode, StoreError};
use partner_core::Tenant;
use partner_core::sealing::{BlindIndex, Sealed};

use crate::Row;

pub fn customer(row: &dyn Row, mode: Mode) -> Result<SealedCustomer, StoreError> {
    Ok(SealedCustomer {
        id: row.id("id", mode)?,
        person: Sealed(row.bytes("person")?.to_vec()),
        marks: CustomerIndexes {
            email: BlindIndex(row.digest("email_mark")?),
            external_id: row.opt_digest("external_id_mark")?.map(BlindIndex),
        },
        kyc: row.parsed("kyc_status", KycStatus::parse)?,
        created_at: row.instant("created_at")?,
        updated_at: row.instant("updated_at")?,
        deleted_at: row.opt_instant("deleted_at")?,
        revision: row.integer("revision")?,
    })
}

/// A new customer is the tenant's, and there.
pub fn check_new(who: &Tenant, customer: &SealedCustomer) -> Result<(), StoreError> {
    if customer.id.mode() == who.mode && customer.deleted_at.is_none() {
        return Ok(());
    }
    Err(StoreError::Guard(format!(
        "customers: {} is of another mode, or deleted before it was there",
        customer.id
    )))
}
