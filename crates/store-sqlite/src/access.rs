//! A key with its partner and the partner's profile, from the directory or as of a batch's transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Mode, StoreError};
use partner_core::key::{KeyHash, KeyId};
use partner_core::ports::{ConfigVersions, Directory};
use partner_core::{Access, PartnerId, Tenant};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;
use store_sql::access::{self, StoredProfile};
use store_sql::{Reader as _, config};

use crate::connection::Link;
use crate::open::Inner;
use crate::row::{Columns, json, key};
use crate::{SqliteStore, errors};

#[async_trait]
impl ConfigVersions for SqliteStore {
    async fn config_version(&self) -> Result<i64, StoreError> {
        config::version(self.inner.read_reserved().await?.connection()).await
    }
}

#[async_trait]
impl<P: StoredProfile> Directory<P> for SqliteStore {
    async fn access_find(
        &self,
        mode: Mode,
        hash: &KeyHash,
    ) -> Result<Option<Arc<Access<P>>>, StoreError> {
        let mut conn = self.inner.reader().await?;
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
        let mut conn = self.inner.reader().await?;
        let found = read(&mut conn, who.mode, &[key(id)]).await?;
        let mut found = found.into_iter();
        Ok(found.find(|access: &Arc<Access<P>>| access.partner.id == who.partner))
    }

    async fn listing(&self, mode: Mode) -> Result<Arc<P::Listing>, StoreError> {
        P::listing(self.inner.read().await?.connection(), mode).await
    }
}

fn access<P: StoredProfile>(row: &SqliteRow, mode: Mode) -> Result<Arc<Access<P>>, StoreError> {
    access::access(|table| Columns::new(table, row), mode)
}

impl Inner {
    /// The accesses of a batch's keys as of this transaction. Keys that do not exist are left out.
    pub(crate) async fn access_of<P: StoredProfile>(
        &self,
        conn: &mut SqliteConnection,
        mode: Mode,
        wanted: &BTreeSet<KeyId>,
    ) -> Result<BTreeMap<KeyId, Arc<Access<P>>>, StoreError> {
        let now = self.clock.elapsed();
        let version = config::version(&mut Link(&mut *conn)).await?;
        let cache = P::cache(&self.access);
        let mut found = BTreeMap::new();
        let mut missing = Vec::new();
        for id in wanted {
            match cache.find(*id, version, now) {
                Some(access) => drop(found.insert(*id, access)),
                None if id.mode() == mode => missing.push(key(*id)),
                None => {}
            }
        }
        if !missing.is_empty() {
            for access in read(conn, mode, &missing).await? {
                cache.keep(&access, version, now);
                found.insert(access.key.id, access);
            }
        }
        Ok(found)
    }
}

async fn read<P: StoredProfile>(
    conn: &mut SqliteConnection,
    mode: Mode,
    ids: &[String],
) -> Result<Vec<Arc<Access<P>>>, StoreError> {
    let rows = sqlx::query(P::BY_IDS.sqlite)
        .bind(mode.as_str())
        .bind(json(&ids)?)
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    rows.iter().map(|row| access(row, mode)).collect()
}

/// The partners of a batch, for statements that take a set of them.
pub(crate) fn names<'p>(partners: impl Iterator<Item = &'p PartnerId>) -> BTreeSet<&'p str> {
    partners.map(PartnerId::as_str).collect()
}
