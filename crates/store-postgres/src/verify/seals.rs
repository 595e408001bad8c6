//! What is sealed opens with the master key, and is what its row says.

use kernel::StoreError;
use partner_core::Tenant;
use partner_core::events::{EndpointId, Service, event_place, secret_place};
use partner_core::sealing::{SealBroken, Sealed, Sealer};
use serde::Deserialize;
use sqlx::postgres::PgRow;

use super::{Breaches, Work, named};
use crate::row::Columns;

impl Work<'_> {
    pub(super) async fn seals(&mut self) -> Result<(), StoreError> {
        self.secrets().await?;
        self.bodies().await
    }

    /// Without its secret nothing can be signed for an endpoint.
    async fn secrets(&mut self) -> Result<(), StoreError> {
        let name = "secret-can-be-opened";
        let sealer = self.sealer;
        let mut breaches = Breaches::default();
        self.each(name, SECRETS, |row| {
            if secret(sealer, row)?.is_err() {
                let secret = named(row, "secret of endpoint")?;
                breaches.add(|| format!("{secret} does not open"));
            }
            Ok(())
        })
        .await?;
        self.found(name, breaches);
        Ok(())
    }

    /// A body opens, and says the id, the type and the object of its row.
    async fn bodies(&mut self) -> Result<(), StoreError> {
        let name = "event-body-is-of-its-event";
        let sealer = self.sealer;
        let mut breaches = Breaches::default();
        self.each(name, BODIES, |row| {
            let wrong = match body(sealer, row)? {
                Err(SealBroken) => Some("does not open"),
                Ok(body) if !says(row, &body)? => Some("tells of another one"),
                Ok(_) => None,
            };
            if let Some(wrong) = wrong {
                let event = named(row, "event")?;
                breaches.add(|| format!("{event} has a body that {wrong}"));
            }
            Ok(())
        })
        .await?;
        self.found(name, breaches);
        Ok(())
    }
}

pub(super) const SECRETS: &str =
    "SELECT mode, partner_id, endpoint_id AS id, sealed FROM webhook_secrets";

pub(super) const BODIES: &str =
    "SELECT mode, partner_id, id, service, type, object_id, body FROM events";

/// What every body of the pools service begins with.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct About {
    event_id: String,
    #[serde(rename = "type")]
    kind: String,
    transact_id: String,
}

type Opened = Result<Vec<u8>, SealBroken>;

fn secret(sealer: &Sealer, row: &PgRow) -> Result<Opened, StoreError> {
    let row = Columns::new("webhook_secrets", row);
    let mode = row.mode()?;
    let endpoint: EndpointId = row.id("id", mode)?;
    let sealed = Sealed(row.bytes("sealed")?.to_vec());
    Ok(sealer.open(&secret_place(endpoint), &sealed))
}

fn body(sealer: &Sealer, row: &PgRow) -> Result<Opened, StoreError> {
    let row = Columns::new("events", row);
    let who = Tenant {
        partner: row.partner()?,
        mode: row.mode()?,
    };
    let sealed = Sealed(row.bytes("body")?.to_vec());
    Ok(sealer.open(&event_place(&who, row.text("id")?), &sealed))
}

fn says(row: &PgRow, body: &[u8]) -> Result<bool, StoreError> {
    let row = Columns::new("events", row);
    if row.text("service")? != Service::Pools.as_str() {
        return Ok(true);
    }
    let Ok(about) = serde_json::from_slice::<About>(body) else {
        return Ok(false);
    };
    Ok(about.event_id == row.text("id")?
        && about.kind == row.text("type")?
        && about.transact_id == row.text("object_id")?)
}
