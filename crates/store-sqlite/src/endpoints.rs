//! The secrets of the endpoints in a claim.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{Mode, StoreError, Timestamp};
use partner_core::PartnerId;
use partner_core::events::{EndpointId, EndpointSecret};
use serde::Serialize;
use sqlx::SqliteConnection;
use store_sql::endpoints::secret;

use crate::deliveries::LeftOut;
use crate::errors;
use crate::row::{Columns, json, key};

#[derive(Serialize)]
struct EndpointKey<'e> {
    partner: &'e str,
    endpoint: String,
}

/// The unexpired secrets of several endpoints, the newest of each endpoint first. An endpoint with an unreadable secret gets none,
/// so that its attempts fail as if the secret did not decrypt.
pub(crate) async fn live_secrets(
    conn: &mut SqliteConnection,
    mode: Mode,
    endpoints: &BTreeMap<EndpointId, &PartnerId>,
    (now, left_out): (Timestamp, &LeftOut),
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
    let mut without = BTreeSet::new();
    for row in &rows {
        let row = Columns::new("webhook_secrets", row);
        let endpoint = row.id("id", mode)?;
        match left_out.readable(None, secret(&row), now) {
            Some(secret) => found.entry(endpoint).or_default().push(secret),
            None => {
                without.insert(endpoint);
            }
        }
    }
    found.retain(|endpoint, _| !without.contains(endpoint));
    Ok(found)
}
