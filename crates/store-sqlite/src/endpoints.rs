//! The secrets of the endpoints in a claim.

use std::collections::BTreeMap;

use kernel::{Mode, StoreError, Timestamp};
use partner_core::PartnerId;
use partner_core::events::{EndpointId, EndpointSecret};
use serde::Serialize;
use sqlx::SqliteConnection;
use store_sql::endpoints::secret;

use crate::errors;
use crate::row::{Columns, json, key};

#[derive(Serialize)]
struct EndpointKey<'e> {
    partner: &'e str,
    endpoint: String,
}

/// The unexpired secrets of several endpoints, the newest of each endpoint first.
pub(crate) async fn live_secrets(
    conn: &mut SqliteConnection,
    mode: Mode,
    endpoints: &BTreeMap<EndpointId, &PartnerId>,
    now: Timestamp,
) -> Result<BTreeMap<EndpointId, Vec<EndpointSecret>>, StoreError> {
    let keys: Vec<EndpointKey<'_>> = endpoints
        .iter()
        .map(|(endpoint, partner)| EndpointKey {
            partner: partner.as_str(),
            endpoint: key(*endpoint),
        })
        .collect();
    let rows = sqlx::query(
        "SELECT s.partner_id, s.endpoint_id AS id, s.sealed, s.created_at, s.expires_at
         FROM json_each(?2) AS j
         CROSS JOIN webhook_secrets AS s ON s.mode = ?1 AND s.partner_id = j.value ->> 'partner'
              AND s.endpoint_id = j.value ->> 'endpoint'
         WHERE s.expires_at IS NULL OR s.expires_at > ?3
         ORDER BY s.endpoint_id, s.place",
    )
    .bind(mode.as_str())
    .bind(json(&keys)?)
    .bind(now.millis())
    .fetch_all(conn)
    .await
    .map_err(errors::statement)?;
    let mut found: BTreeMap<EndpointId, Vec<EndpointSecret>> = BTreeMap::new();
    for row in &rows {
        let row = Columns::new("webhook_secrets", row);
        let secrets = found.entry(row.id("id", mode)?).or_default();
        secrets.push(secret(&row)?);
    }
    Ok(found)
}
