//! A key with its partner and the partner's profile, from the directory or as of a batch's transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Mode, StoreError};
use partner_core::key::{KeyHash, KeyId};
use partner_core::ports::{ConfigVersions, Directory};
use partner_core::{Access, PartnerId, Tenant};
use sqlx::postgres::PgRow;
use sqlx::types::Uuid;
use store_sql::access::{self, StoredProfile};
use store_sql::{Reader as _, config};

use crate::conn::Conn;
use crate::open::Inner;
use crate::partner_lock::PartnerLock;
use crate::row::{Columns, key};
use crate::{PostgresStore, errors};

#[async_trait]
impl ConfigVersions for PostgresStore {
    async fn config_version(&self) -> Result<i64, StoreError> {
        config::version(self.inner.read().await?.connection()).await
    }
}

#[async_trait]
impl<P: StoredProfile> Directory<P> for PostgresStore {
    async fn access_find(
        &self,
        mode: Mode,
        hash: &KeyHash,
    ) -> Result<Option<Arc<Access<P>>>, StoreError> {
        let mut conn = self.inner.conn().await?;
        let row = sqlx::query(P::BY_HASH)
            .bind(mode.as_str())
            .bind(hash.0.as_slice())
            .fetch_optional(&mut *conn)
            .await
            .map_err(errors::statement)?;
        row.map(|row| access(&row, mode)).transpose()
    }

    async fn access_of(
        &self,
        who: &Tenant,
        id: KeyId,
    ) -> Result<Option<Arc<Access<P>>>, StoreError> {
        if id.mode() != who.mode {
            return Ok(None);
        }
        let mut conn = self.inner.conn().await?;
        let found = read(&mut conn, who.mode, &[who.partner.as_str()], &[key(id)]).await?;
        let mut found = found.into_iter();
        Ok(found.find(|access: &Arc<Access<P>>| access.partner.id == who.partner))
    }

    async fn listing(&self, mode: Mode) -> Result<Arc<P::Listing>, StoreError> {
        P::listing(self.inner.read().await?.connection(), mode).await
    }
}

fn access<P: StoredProfile>(row: &PgRow, mode: Mode) -> Result<Arc<Access<P>>, StoreError> {
    access::access(|table| Columns::new(table, row), mode)
}

impl Inner {
    /// The accesses of a batch's keys while their partners are locked. Keys that the partner does not have are left out.
    pub(crate) async fn access_of<P: StoredProfile>(
        &self,
        conn: &mut Conn,
        mode: Mode,
        wanted: &BTreeMap<KeyId, PartnerId>,
        held: &BTreeMap<PartnerId, PartnerLock>,
    ) -> Result<BTreeMap<KeyId, Arc<Access<P>>>, StoreError> {
        let now = self.clock.elapsed();
        let cache = P::cache(&self.access);
        let mut found = BTreeMap::new();
        let (mut partners, mut ids) = (Vec::new(), Vec::new());
        for (id, partner) in wanted {
            let cached = held
                .get(partner)
                .and_then(|held| cache.find(*id, held.version, now))
                .filter(|access| access.partner.id == *partner);
            match cached {
                Some(access) => drop(found.insert(*id, access)),
                None if id.mode() == mode => {
                    partners.push(partner.as_str());
                    ids.push(key(*id));
                }
                None => {}
            }
        }
        if !ids.is_empty() {
            for access in read(conn, mode, &partners, &ids).await? {
                if let Some(held) = held.get(&access.partner.id) {
                    cache.keep(&access, held.version, now);
                }
                found.insert(access.key.id, access);
            }
        }
        Ok(found)
    }
}

async fn read<P: StoredProfile>(
    conn: &mut Conn,
    mode: Mode,
    partners: &[&str],
    ids: &[Uuid],
) -> Result<Vec<Arc<Access<P>>>, StoreError> {
    let rows = sqlx::query(P::BY_IDS.postgres)
        .bind(mode.as_str())
        .bind(partners)
        .bind(ids)
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    rows.iter().map(|row| access(row, mode)).collect()
}
