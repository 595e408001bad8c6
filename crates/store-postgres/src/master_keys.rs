//! Master keys by name, and every value that is sealed with one.

use crate::conn::Conn;
use async_trait::async_trait;
use kernel::{Cas, StoreError};
use partner_core::ports::{
    MasterKeyStore, ResealedValue, SealedKind, SealedRow, SealedValue, StoredMasterKey,
};
use partner_core::sealing::{Fingerprint, Sealed};
use store_sql::master_keys::{master_key, sealed_value};

use crate::row::Columns;
use crate::tx::PgTx;
use crate::{PostgresStore, config, errors};

#[async_trait]
impl MasterKeyStore for PostgresStore {
    async fn master_keys(&self) -> Result<Vec<StoredMasterKey>, StoreError> {
        let mut conn = self.inner.conn().await?;
        let rows = sqlx::query(
            "SELECT fingerprint, number, state, derived FROM master_keys ORDER BY number",
        )
        .fetch_all(&mut *conn)
        .await
        .map_err(errors::statement)?;
        let keys = rows.iter();
        keys.map(|row| master_key(&*Columns::new("master_keys", row)))
            .collect()
    }

    async fn master_key_promote(
        &self,
        current: Fingerprint,
        fingerprint: Fingerprint,
        derived: &Sealed,
    ) -> Result<Cas, StoreError> {
        let mut tx = PgTx::begin(self, "master_key_promote").await?;
        let names = [current, fingerprint].map(|name| name.to_string());
        let outcome = promote(tx.conn(), &names, derived).await?;
        tx.finish().await?;
        Ok(outcome)
    }

    async fn master_keys_retire(&self, current: Fingerprint) -> Result<Cas, StoreError> {
        let mut tx = PgTx::begin(self, "master_keys_retire").await?;
        let outcome = retire(tx.conn(), &current.to_string()).await?;
        tx.finish().await?;
        Ok(outcome)
    }

    async fn sealed_page(
        &self,
        kind: SealedKind,
        after: Option<&SealedRow>,
        limit: u32,
    ) -> Result<Vec<SealedValue>, StoreError> {
        let mut conn = self.inner.conn().await?;
        let start = after.map_or(["", "", first_of(kind), second_of(kind)], |row| {
            let SealedRow {
                tenant,
                first,
                second,
            } = row;
            [tenant.mode.as_str(), tenant.partner.as_str(), first, second]
        });
        let mut query = sqlx::query(page(kind));
        for part in start {
            query = query.bind(part);
        }
        let rows = query
            .bind(i64::from(limit))
            .fetch_all(&mut *conn)
            .await
            .map_err(errors::statement)?;
        let values = rows.iter();
        values
            .map(|row| sealed_value(kind, &*Columns::new(table(kind), row)))
            .collect()
    }

    async fn sealed_replace(
        &self,
        kind: SealedKind,
        values: &[ResealedValue],
    ) -> Result<u64, StoreError> {
        let mut tx = PgTx::begin(self, "sealed_replace").await?;
        let mut replaced = 0;
        for value in values {
            let SealedRow {
                tenant,
                first,
                second,
            } = &value.row;
            replaced += sqlx::query(replace(kind))
                .bind(tenant.mode.as_str())
                .bind(tenant.partner.as_str())
                .bind(first)
                .bind(second)
                .bind(&value.new.0)
                .bind(&value.old.0)
                .execute(tx.conn())
                .await
                .map_err(errors::statement)?
                .rows_affected();
        }
        tx.finish().await?;
        Ok(replaced)
    }
}

/// Nothing if another key is current, or the new one is known already.
async fn promote(
    conn: &mut Conn,
    [current, fingerprint]: &[String; 2],
    derived: &Sealed,
) -> Result<Cas, StoreError> {
    // Taken first, so that two rotations come one after the other.
    config::hold(conn).await?;
    if store_sql::config::fingerprint_kept(conn).await?.as_deref() != Some(current) {
        return Ok(Cas::Lost);
    }
    let version = config::draw(conn).await?;
    config::put(conn, version).await?;
    let known: i64 = sqlx::query_scalar("SELECT count(*) FROM master_keys WHERE fingerprint = $1")
        .bind(fingerprint)
        .fetch_one(&mut *conn)
        .await
        .map_err(errors::statement)?;
    if known > 0 {
        return Ok(Cas::Lost);
    }
    sqlx::query("UPDATE installation SET master_key_fingerprint = $1 WHERE id = 1")
        .bind(fingerprint)
        .execute(&mut *conn)
        .await
        .map_err(errors::statement)?;
    sqlx::query("UPDATE master_keys SET state = 'older' WHERE state = 'current'")
        .execute(&mut *conn)
        .await
        .map_err(errors::statement)?;
    let inserted = sqlx::query(
        "INSERT INTO master_keys (fingerprint, number, state, derived)
         SELECT $1, max(number) + 1, 'current', $2 FROM master_keys",
    )
    .bind(fingerprint)
    .bind(&derived.0)
    .execute(&mut *conn)
    .await
    .map_err(errors::statement)?
    .rows_affected();
    Cas::from_rows(inserted)
}

async fn retire(conn: &mut Conn, current: &str) -> Result<Cas, StoreError> {
    // Taken first, so that no rotation makes another key current meanwhile.
    config::hold(conn).await?;
    if store_sql::config::fingerprint_kept(conn).await?.as_deref() != Some(current) {
        return Ok(Cas::Lost);
    }
    sqlx::query("UPDATE master_keys SET state = 'retired' WHERE state = 'older'")
        .execute(&mut *conn)
        .await
        .map_err(errors::statement)?;
    Ok(Cas::Won)
}

const fn table(kind: SealedKind) -> &'static str {
    match kind {
        SealedKind::Secret => "webhook_secrets",
        SealedKind::Event => "events",
        SealedKind::Package => "sessions",
        SealedKind::Person => "customers",
        SealedKind::Response => "answers",
    }
}

/// The least first part of a key.
const fn first_of(kind: SealedKind) -> &'static str {
    match kind {
        SealedKind::Secret | SealedKind::Package | SealedKind::Person => {
            "00000000-0000-0000-0000-000000000000"
        }
        SealedKind::Event | SealedKind::Response => "",
    }
}

/// Less than every second part of a key.
const fn second_of(kind: SealedKind) -> &'static str {
    match kind {
        SealedKind::Secret => "-1",
        _ => "",
    }
}

const fn page(kind: SealedKind) -> &'static str {
    match kind {
        SealedKind::Secret => {
            "SELECT mode, partner_id, endpoint_id AS id, endpoint_id::text AS k1, CAST(place AS TEXT) AS k2, sealed AS sealed FROM webhook_secrets
         WHERE (mode, partner_id, endpoint_id, place) > ($1, $2, $3::text::uuid, $4::text::smallint)
         ORDER BY mode, partner_id, endpoint_id, place LIMIT $5"
        }
        SealedKind::Event => {
            "SELECT mode, partner_id, id, id AS k1, '' AS k2, body AS sealed FROM events
         WHERE (mode, partner_id, id) > ($1, $2, $3) AND $4::text IS NOT NULL
         ORDER BY mode, partner_id, id LIMIT $5"
        }
        SealedKind::Package => {
            "SELECT mode, partner_id, id, id::text AS k1, '' AS k2, kyc_package AS sealed FROM sessions
         WHERE (mode, partner_id, id) > ($1, $2, $3::text::uuid) AND $4::text IS NOT NULL
         ORDER BY mode, partner_id, id LIMIT $5"
        }
        SealedKind::Person => {
            "SELECT mode, partner_id, id, id::text AS k1, '' AS k2, person AS sealed FROM customers
         WHERE (mode, partner_id, id) > ($1, $2, $3::text::uuid) AND $4::text IS NOT NULL
         ORDER BY mode, partner_id, id LIMIT $5"
        }
        SealedKind::Response => {
            "SELECT mode, partner_id, route, key, route AS k1, key AS k2, answer AS sealed FROM answers
         WHERE (mode, partner_id, route, key) > ($1, $2, $3, $4)
         ORDER BY mode, partner_id, route, key LIMIT $5"
        }
    }
}

const fn replace(kind: SealedKind) -> &'static str {
    match kind {
        SealedKind::Secret => {
            "UPDATE webhook_secrets SET sealed = $5
         WHERE mode = $1 AND partner_id = $2 AND endpoint_id = $3::text::uuid AND place = $4::text::smallint AND sealed = $6"
        }
        SealedKind::Event => {
            "UPDATE events SET body = $5
         WHERE mode = $1 AND partner_id = $2 AND id = $3 AND $4::text IS NOT NULL AND body = $6"
        }
        SealedKind::Package => {
            "UPDATE sessions SET kyc_package = $5
         WHERE mode = $1 AND partner_id = $2 AND id = $3::text::uuid AND $4::text IS NOT NULL AND kyc_package = $6"
        }
        SealedKind::Person => {
            "UPDATE customers SET person = $5
         WHERE mode = $1 AND partner_id = $2 AND id = $3::text::uuid AND $4::text IS NOT NULL AND person = $6"
        }
        SealedKind::Response => {
            "UPDATE answers SET answer = $5
         WHERE mode = $1 AND partner_id = $2 AND route = $3 AND key = $4 AND answer = $6"
        }
    }
}
