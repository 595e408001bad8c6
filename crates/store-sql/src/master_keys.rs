//! Master keys and sealed values: what their rows mean.

use gate_core::customer::person_place;
use gate_core::ports::kyc_place;
use kernel::StoreError;
use partner_core::events::{EndpointId, event_place, secret_place};
use partner_core::idempotency::{IdempotencyKey, Scope};
use partner_core::ports::{MasterKeyState, SealedKind, SealedRow, SealedValue, StoredMasterKey};
use partner_core::sealing::{Fingerprint, Sealed};
use partner_core::stored_response;

use crate::Row;

pub fn master_key(row: &dyn Row) -> Result<StoredMasterKey, StoreError> {
    let state = match row.text("state")? {
        "current" => MasterKeyState::Current,
        "older" => MasterKeyState::Older,
        "retired" => MasterKeyState::Retired,
        _ => return Err(row.bad("state")),
    };
    Ok(StoredMasterKey {
        fingerprint: row.parsed("fingerprint", Fingerprint::parse)?,
        number: u32::try_from(row.integer("number")?).map_err(|_| row.bad("number"))?,
        state,
        derived: row
            .opt_bytes("derived")?
            .map(|bytes| Sealed(bytes.to_vec())),
    })
}

pub fn sealed_value(kind: SealedKind, row: &dyn Row) -> Result<SealedValue, StoreError> {
    let tenant = row.tenant()?;
    let mode = tenant.mode;
    let place = match kind {
        SealedKind::Secret => secret_place(row.id::<_>("id", mode).map(|id: EndpointId| id)?),
        SealedKind::Event => event_place(&tenant, row.text("id")?),
        SealedKind::Package => kyc_place(&tenant, row.id("id", mode)?),
        SealedKind::Person => person_place(&tenant, row.id("id", mode)?),
        SealedKind::Response => stored_response::place(&Scope {
            tenant: tenant.clone(),
            route: row.text("route")?.to_owned(),
            key: row.parsed("key", |key| IdempotencyKey::parse(key.as_bytes()).ok())?,
        }),
    };
    Ok(SealedValue {
        row: SealedRow {
            tenant,
            first: row.text("k1")?.to_owned(),
            second: row.text("k2")?.to_owned(),
        },
        place,
        sealed: row.opt_bytes("sealed")?.map(|bytes| Sealed(bytes.to_vec())),
    })
}
