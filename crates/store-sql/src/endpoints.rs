//! Webhook endpoints and their sealed secrets.

use async_trait::async_trait;
use kernel::StoreResult;
use partner_core::Tenant;
use partner_core::events::{Endpoint, EndpointId, EndpointSecret, Service};
use partner_core::ports::EndpointTx;
use partner_core::sealing::Sealed;

use crate::store_tx::guard;
use crate::{Connection, Row, Sql, Statement, StoreTx, values};

#[async_trait]
impl EndpointTx for StoreTx {
    async fn endpoint_is_set(&mut self, who: &Tenant, service: Service) -> StoreResult<bool> {
        let found = row(self.locked(who).await?, who, service).await?;
        Ok(found.is_some())
    }
}

/// The partner's endpoint for a service, with all its secrets.
pub async fn find(
    connection: &mut dyn Connection,
    who: &Tenant,
    service: Service,
) -> StoreResult<Option<Endpoint>> {
    let Some(row) = row(connection, who, service).await? else {
        return Ok(None);
    };
    let id: EndpointId = row.id("id", who.mode)?;
    let values = values![who.mode, &who.partner, id];
    let rows = connection.fetch_all(&SECRETS, values).await?;
    let secrets: StoreResult<_> = rows.iter().map(|row| secret(&**row)).collect();
    Ok(Some(Endpoint {
        id,
        service,
        url: row.text("url")?.to_owned(),
        secrets: secrets?,
    }))
}

async fn row(
    connection: &mut dyn Connection,
    who: &Tenant,
    service: Service,
) -> StoreResult<Option<Box<dyn Row>>> {
    let values = values![who.mode, &who.partner, service.as_str()];
    connection.fetch_optional(&FIND, values).await
}

static FIND: Statement = Statement::new(
    "webhook_endpoints",
    "SELECT partner_id, service, id, url FROM webhook_endpoints
     WHERE mode = $1 AND partner_id = $2 AND service = $3",
);

static SECRETS: Statement = Statement::new(
    "webhook_secrets",
    "SELECT partner_id, sealed, created_at, expires_at FROM webhook_secrets
     WHERE mode = $1 AND partner_id = $2 AND endpoint_id = $3 ORDER BY place",
);

pub(crate) fn secret(row: &dyn Row) -> StoreResult<EndpointSecret> {
    Ok(EndpointSecret {
        sealed: Sealed(row.bytes("sealed")?.to_vec()),
        created_at: row.instant("created_at")?,
        expires_at: row.opt_instant("expires_at")?,
    })
}

/// Replaces the partner's endpoint for a service, with all its secrets. A new id takes over the waiting deliveries.
pub async fn put(
    connection: &mut dyn Connection,
    who: &Tenant,
    endpoint: &Endpoint,
) -> StoreResult<()> {
    guard(endpoint.id.mode() == who.mode, || {
        format!("webhook_endpoints: {} has another mode", endpoint.id)
    })?;
    let service = endpoint.service.as_str();
    let values = values![who.mode, &who.partner, service];
    connection.execute(&DELETE_SECRETS, values).await?;
    let values = values![who.mode, &who.partner, service, endpoint.id, &endpoint.url,];
    connection.execute(&PUT, values).await?;
    for (place, secret) in (0_i16..).zip(&endpoint.secrets) {
        let values = values![
            who.mode,
            &who.partner,
            endpoint.id,
            place,
            secret.sealed.0.as_slice(),
            secret.created_at,
            secret.expires_at,
        ];
        connection.execute(&INSERT_SECRET, values).await?;
    }
    Ok(())
}

static DELETE_SECRETS: Statement = Statement::new(
    "webhook_secrets",
    "DELETE FROM webhook_secrets
     WHERE mode = $1 AND partner_id = $2
       AND endpoint_id = (SELECT w.id FROM webhook_endpoints AS w
                          WHERE w.mode = $1 AND w.partner_id = $2 AND w.service = $3)",
);

/// On SQLite, `ON UPDATE CASCADE` moves the deliveries to a new id. Postgres moves them in the same statement, because it checks
/// references at the end of a statement.
static PUT: Statement = Statement::per_engine(
    "webhook_endpoints",
    Sql {
        sqlite: "INSERT INTO webhook_endpoints (mode, partner_id, service, id, url) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (mode, partner_id, service) DO UPDATE SET id = excluded.id, url = excluded.url",
        postgres: "WITH followed AS (
             UPDATE deliveries AS d SET endpoint_id = $4
             FROM webhook_endpoints AS w
             WHERE w.mode = $1 AND w.partner_id = $2 AND w.service = $3 AND w.id <> $4
               AND d.mode = $1 AND d.partner_id = $2 AND d.endpoint_id = w.id
         )
         INSERT INTO webhook_endpoints (mode, partner_id, service, id, url) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (mode, partner_id, service) DO UPDATE SET id = excluded.id, url = excluded.url",
    },
);

static INSERT_SECRET: Statement = Statement::new(
    "webhook_secrets",
    "INSERT INTO webhook_secrets (mode, partner_id, endpoint_id, place, sealed, created_at, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)",
);
