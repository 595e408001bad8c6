//! Webhook endpoints and their sealed secrets: rows in and out.

use std::collections::BTreeMap;

use crate::conn::Conn;
use kernel::{Mode, StoreError, Timestamp};
use partner_core::events::{Endpoint, EndpointId, EndpointSecret, Service};
use partner_core::{PartnerId, Tenant};
use sqlx::types::Uuid;
use store_sql::endpoints::{check_mode, secret};

use crate::errors;
use crate::row::{Columns, key};

pub(crate) async fn find(
    conn: &mut Conn,
    who: &Tenant,
    service: Service,
) -> Result<Option<Endpoint>, StoreError> {
    let row = sqlx::query(
        "SELECT partner_id, service, id, url FROM webhook_endpoints
         WHERE mode = $1 AND partner_id = $2 AND service = $3",
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
    conn: &mut Conn,
    who: &Tenant,
    endpoint: EndpointId,
) -> Result<Vec<EndpointSecret>, StoreError> {
    let rows = sqlx::query(
        "SELECT partner_id, sealed, created_at, expires_at FROM webhook_secrets
         WHERE mode = $1 AND partner_id = $2 AND endpoint_id = $3 ORDER BY place",
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

/// The secrets of several endpoints that have not expired, the newest of each first.
pub(crate) async fn live_secrets(
    conn: &mut Conn,
    mode: Mode,
    endpoints: &BTreeMap<EndpointId, &PartnerId>,
    now: Timestamp,
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
    for row in &rows {
        let row = Columns::new("webhook_secrets", row);
        let secrets = found.entry(row.id("id", mode)?).or_default();
        secrets.push(secret(&row)?);
    }
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

/// Replaces the partner's endpoint for a service, with all its secrets. Under a new id it takes over what waits.
pub(crate) async fn put(
    conn: &mut Conn,
    who: &Tenant,
    endpoint: &Endpoint,
) -> Result<(), StoreError> {
    check_mode(who, endpoint)?;
    sqlx::query(
        "DELETE FROM webhook_secrets AS s USING webhook_endpoints AS w
         WHERE w.mode = $1 AND w.partner_id = $2 AND w.service = $3
           AND s.mode = $1 AND s.partner_id = $2 AND s.endpoint_id = w.id",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(endpoint.service.as_str())
    .execute(&mut *conn)
    .await
    .map_err(errors::statement)?;
    sqlx::query(PUT)
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(endpoint.service.as_str())
        .bind(key(endpoint.id))
        .bind(&endpoint.url)
        .execute(&mut *conn)
        .await
        .map_err(errors::statement)?;
    for (place, secret) in (0_i16..).zip(&endpoint.secrets) {
        secret_insert(conn, who, endpoint.id, place, secret).await?;
    }
    Ok(())
}

/// One statement, because references are checked when a statement ends.
const PUT: &str = "WITH followed AS (
         UPDATE deliveries AS d SET endpoint_id = $4
         FROM webhook_endpoints AS w
         WHERE w.mode = $1 AND w.partner_id = $2 AND w.service = $3 AND w.id <> $4
           AND d.mode = $1 AND d.partner_id = $2 AND d.endpoint_id = w.id
     )
     INSERT INTO webhook_endpoints (mode, partner_id, service, id, url) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (mode, partner_id, service) DO UPDATE SET id = excluded.id, url = excluded.url";

async fn secret_insert(
    conn: &mut Conn,
    who: &Tenant,
    endpoint: EndpointId,
    place: i16,
    secret: &EndpointSecret,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO webhook_secrets (mode, partner_id, endpoint_id, place, sealed, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
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
