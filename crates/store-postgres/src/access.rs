//! A key with its partner and the partner's profile, from the directory or as of a batch's transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::{Mode, StoreResult};
use partner_core::key::KeyId;
use partner_core::{Access, PartnerId, Tenant};
use sqlx::types::Uuid;
use store_sql::access::{StoredProfile, access};

use crate::conn::Conn;
use crate::open::Inner;
use crate::partner_lock::PartnerLock;
use crate::row::{Columns, key};
use crate::{PostgresStore, errors};

impl PostgresStore {
    /// A key of the tenant's mode with its partner and profile, if it exists.
    pub(crate) async fn read_access<P: StoredProfile>(
        &self,
        who: &Tenant,
        id: KeyId,
    ) -> StoreResult<Vec<Arc<Access<P>>>> {
        let mut conn = self.inner.conn().await?;
        read(&mut conn, who.mode, &[who.partner.as_str()], &[key(id)]).await
    }
}

impl Inner {
    /// The accesses of a batch's keys while their partners are locked. Keys that the partner does not have are left out.
    pub(crate) async fn access_of<P: StoredProfile>(
        &self,
        conn: &mut Conn,
        mode: Mode,
        wanted: &BTreeMap<KeyId, PartnerId>,
        held: &BTreeMap<PartnerId, PartnerLock>,
    ) -> StoreResult<BTreeMap<KeyId, Arc<Access<P>>>> {
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
) -> StoreResult<Vec<Arc<Access<P>>>> {
    let rows = sqlx::query(P::BY_IDS.postgres)
        .bind(mode.as_str())
        .bind(partners)
        .bind(ids)
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    rows.iter()
        .map(|row| access(&Columns::new("api_keys", row), mode))
        .collect()
}
