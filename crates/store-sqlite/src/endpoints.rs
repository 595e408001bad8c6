//! Webhook endpoints and their sealed secrets: rows in and out.

use std::collections::BTreeMap;

use kernel::{Mode, StoreError, Timestamp};
use partner_core::events::{Endpoint, EndpointId, EndpointSecret, Service};
use partner_core::{PartnerId, Tenant};
use serde::Serialize;
use sqlx::SqliteConnection;
use store_sql::endpoints::{check_mode, secret};

use crate::errors;
use crate::row::{Columns, json, key};

pub(crate) async fn find(
    conn: &mut SqliteConnection,
    who: &Tenant,
    service: Service,
) -> Result<Option<Endpoint>, StoreError> {
    let row = sqlx::query(
        "SELECT partner_id, service, id, url FROM webhook_endpoints
         WHERE mode = ?1 AND partner_id = ?2 AND service = ?3",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(service.as_str())
    .fetch_optional(&mut *conn)
    .await
    .map_err(errors::statement)?;
    let Some(row) = row else {
        return Ok(None);
    };
    let row = Columns::new("webhook_endpoints", &row);
    let id: EndpointId = row.id("id", who.mode)?;
    Ok(Some(Endpoint {
        id,
        service,
        url: row.text("url")?.to_owned(),
        secrets: secrets(conn, who, id).await?,
    }))
}

async fn secrets(
    conn: &mut SqliteConnection,
    who: &Tenant,
    endpoint: EndpointId,
) -> Result<Vec<EndpointSecret>, StoreError> {
    let rows = sqlx::query(
        "SELECT partner_id, sealed, created_at, expires_at FROM webhook_secrets
         WHERE mode = ?1 AND partner_id = ?2 AND endpoint_id = ?3 ORDER BY place",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key(endpoint))
    .fetch_all(conn)
    .await
    .map_err(errors::statement)?;
    rows.iter()
        .map(|row| secret(&Columns::new("webhook_secrets", row)))
        .collect()
}

#[derive(Serialize)]
struct EndpointKey<'e> {
    partner: &'e str,
    endpoint: String,
}

/// The secrets of several endpoints that have not expired, the newest of each first.
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

/// Replaces the partner's endpoint for a service, with all its secrets.
pub(crate) async fn put(
    conn: &mut SqliteConnection,
    who: &Tenant,
    endpoint: &Endpoint,
) -> Result<(), StoreError> {
    check_mode(who, endpoint)?;
    sqlx::query(
        "INSERT INTO webhook_endpoints (mode, partner_id, service, id, url) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (mode, partner_id, service) DO UPDATE SET id = excluded.id, url = excluded.url",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(endpoint.service.as_str())
    .bind(key(endpoint.id))
    .bind(&endpoint.url)
    .execute(&mut *conn)
    .await
    .map_err(errors::statement)?;
    sqlx::query(
        "DELETE FROM webhook_secrets WHERE mode = ?1 AND partner_id = ?2 AND endpoint_id = ?3",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key(endpoint.id))
    .execute(&mut *conn)
    .await
    .map_err(errors::statement)?;
    for (place, secret) in (0_i64..).zip(&endpoint.secrets) {
        secret_insert(conn, who, endpoint.id, place, secret).await?;
    }
    Ok(())
}

async fn secret_insert(
    conn: &mut SqliteConnection,
    who: &Tenant,
    endpoint: EndpointId,
    place: i64,
    secret: &EndpointSecret,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO webhook_secrets (mode, partner_id, endpoint_id, place, sealed, created_at, expires_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key(endpoint))
    .bind(place)
    .bind(&secret.sealed.0)
    .bind(secret.created_at.millis())
    .bind(secret.expires_at.map(Timestamp::millis))
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}
