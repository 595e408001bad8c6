//! The secrets of the endpoints in a claim.

use std::collections::{BTreeMap, BTreeSet};

use crate::conn::Conn;
use kernel::{Mode, StoreError, Timestamp};
use partner_core::PartnerId;
use partner_core::events::{EndpointId, EndpointSecret};
use sqlx::types::Uuid;
use store_sql::endpoints::secret;

use crate::deliveries::LeftOut;
use crate::errors;
use crate::row::{Columns, key};

/// The unexpired secrets of several endpoints, the newest of each endpoint first. An endpoint with an unreadable secret gets none,
/// so that its attempts fail as if the secret did not decrypt.
pub(crate) async fn live_secrets(
    conn: &mut Conn,
    mode: Mode,
    endpoints: &BTreeMap<EndpointId, &PartnerId>,
    (now, left_out): (Timestamp, &LeftOut),
) -> Result<BTreeMap<EndpointId, Vec<EndpointSecret>>, StoreError> {
    let (ids, partners): (Vec<Uuid>, Vec<&str>) = endpoints
        .iter()
        .map(|(endpoint, partner)| (key(*endpoint), partner.as_str()))
        .unzip();
    let rows = sqlx::query(LIVE_SECRETS)
        .bind(mode.as_str())
        .bind(partners)
        .bind(ids)
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

pub(crate) const LIVE_SECRETS: &str =
    "WITH asked AS MATERIALIZED (
         SELECT $1::text AS mode, j.* FROM unnest($2::text[], $3::uuid[]) AS j (partner_id, endpoint_id)
     )
     SELECT s.partner_id, s.endpoint_id AS id, s.sealed, s.created_at, s.expires_at
     FROM asked AS j
     JOIN webhook_secrets AS s
          ON s.mode = j.mode AND s.partner_id = j.partner_id AND s.endpoint_id = j.endpoint_id
     WHERE s.expires_at IS NULL OR s.expires_at > $4
     ORDER BY s.endpoint_id, s.place";
