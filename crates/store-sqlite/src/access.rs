//! A key with its partner and the partner's profile, from the directory or as of a batch's transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::{Mode, StoreResult};
use partner_core::key::KeyId;
use partner_core::{Access, PartnerId, Tenant};
use sqlx::SqliteConnection;
use store_sql::access::{StoredProfile, access};
use store_sql::config;

use crate::connection::Link;
use crate::open::Inner;
use crate::row::{Columns, json, key};
use crate::{SqliteStore, errors};

impl SqliteStore {
    /// A key of the tenant's mode with its partner and profile, if it exists.
    pub(crate) async fn read_access<P: StoredProfile>(
        &self,
        who: &Tenant,
        id: KeyId,
    ) -> StoreResult<Vec<Arc<Access<P>>>> {
        let mut conn = self.inner.reader().await?;
        read(&mut conn, who.mode, &[key(id)]).await
    }
}

impl Inner {
    /// The accesses of a batch's keys as of this transaction. Keys that do not exist are left out.
    pub(crate) async fn access_of<P: StoredProfile>(
        &self,
        conn: &mut SqliteConnection,
        mode: Mode,
        wanted: &BTreeSet<KeyId>,
    ) -> StoreResult<BTreeMap<KeyId, Arc<Access<P>>>> {
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
) -> StoreResult<Vec<Arc<Access<P>>>> {
    let rows = sqlx::query(P::BY_IDS.sqlite)
        .bind(mode.as_str())
        .bind(json(&ids)?)
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    rows.iter()
        .map(|row| access(&Columns::new("api_keys", row), mode))
        .collect()
}

/// The partners of a batch, for statements that take a set of them.
pub(crate) fn names<'p>(partners: impl Iterator<Item = &'p PartnerId>) -> BTreeSet<&'p str> {
    partners.map(PartnerId::as_str).collect()
}
