//! Who may do what: a key with its partner and entitlements, read in one statement.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Mode, StoreError};
use partner_core::key::{KeyHash, KeyId};
use partner_core::origin::Origin;
use partner_core::pools::Pool;
use partner_core::ports::{Directory, LONGEST_CACHED};
use partner_core::{Access, PartnerId};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;
use store_sql::gate::opt_profile;
use store_sql::keys::record;
use store_sql::partners::partner;
use store_sql::pools::profile_of;

use crate::open::Inner;
use crate::row::{Columns, json, key};
use crate::{SqliteStore, config, errors, gate, pools};

/// Accesses cached for batches, at most. Above this number all are dropped.
const CACHED: usize = 10_000;

/// Accesses as of one version of the configuration, none older than [`LONGEST_CACHED`].
///
/// The lane reads that number inside its transaction. Nobody else can write meanwhile, so while
/// it stands, so does everything cached under it.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    version: i64,
    by_key: HashMap<KeyId, Cached>,
}

#[derive(Debug)]
struct Cached {
    /// When the read began, on the process's monotonic clock.
    read_at: Duration,
    access: Arc<Access>,
}

#[async_trait]
impl Directory for SqliteStore {
    async fn access_find(
        &self,
        mode: Mode,
        hash: &KeyHash,
    ) -> Result<Option<Arc<Access>>, StoreError> {
        let mut conn = self.inner.reader().await?;
        let row = sqlx::query(
            "SELECT k.partner_id, k.id, k.kind, k.prefix, k.last4, k.generated, k.created_at, k.revoked_at, k.label,
                    k.expires_at,
                    p.name AS partner_name, p.status AS partner_status,
                    a.enabled, a.access, a.kyc, a.tier, a.allowed, a.balance_gate, a.velocity_cap, a.iban,
                    a.funding_reference, a.terms, g.enabled AS gate_enabled, g.allowed_domains, g.flow_sessions,
                    g.kyc_trusted, g.rails, g.preview_locks, g.live_session_quota,
                    g.create_session_limit
             FROM api_keys AS k
             JOIN partners AS p ON p.mode = k.mode AND p.partner_id = k.partner_id
             LEFT JOIN pools_profiles AS a ON a.mode = k.mode AND a.partner_id = k.partner_id
             LEFT JOIN gate_profiles AS g ON g.mode = k.mode AND g.partner_id = k.partner_id
             WHERE k.hash = ?2 AND k.mode = ?1",
        )
        .bind(mode.as_str())
        .bind(hash.0.as_slice())
        .fetch_optional(&mut *conn)
        .await
        .map_err(errors::statement)?;
        row.map(|row| access(&row, mode).map(Arc::new)).transpose()
    }

    async fn pools_all(&self, mode: Mode) -> Result<Arc<[Pool]>, StoreError> {
        let mut conn = self.inner.reader().await?;
        Ok(pools::all(&mut conn, mode).await?.into())
    }

    async fn origins_all(&self, mode: Mode) -> Result<Arc<BTreeSet<Origin>>, StoreError> {
        let mut conn = self.inner.reader().await?;
        Ok(gate::origins_all(&mut conn, mode).await?.into())
    }

    async fn config_version(&self) -> Result<i64, StoreError> {
        let mut conn = self.inner.reader().await?;
        config::version(&mut conn).await
    }
}

fn access(row: &SqliteRow, mode: Mode) -> Result<Access, StoreError> {
    let partner = partner(&Columns::new("partners", row))?;
    let profile = profile_of(&Columns::new("pools_profiles", row), &partner.id)?;
    let gate = opt_profile(&Columns::new("gate_profiles", row))?;
    let key = record(&Columns::new("api_keys", row), mode)?;
    Ok(Access::new(mode, key, partner, profile).with_gate(gate.unwrap_or_default()))
}

impl Inner {
    /// The accesses of a batch's keys as of this transaction; a key that is not known is left out.
    pub(crate) async fn access_of(
        &self,
        conn: &mut SqliteConnection,
        mode: Mode,
        wanted: &BTreeSet<KeyId>,
    ) -> Result<BTreeMap<KeyId, Arc<Access>>, StoreError> {
        let now = self.clock.elapsed();
        let version = config::version(conn).await?;
        let mut found = self.cached(version, wanted, now);
        let missing: Vec<String> = wanted
            .iter()
            .filter(|id| id.mode() == mode && !found.contains_key(*id))
            .map(|id| key(*id))
            .collect();
        if !missing.is_empty() {
            let read = read(conn, mode, &missing).await?;
            self.remember(version, &read, now);
            found.extend(read.into_iter().map(|access| (access.key.id, access)));
        }
        Ok(found)
    }

    fn cached(
        &self,
        version: i64,
        wanted: &BTreeSet<KeyId>,
        now: Duration,
    ) -> BTreeMap<KeyId, Arc<Access>> {
        let mut cache = self.lock_cache();
        if cache.version != version || cache.by_key.len() > CACHED {
            *cache = Cache {
                version,
                by_key: HashMap::new(),
            };
        }
        let current = |id: &KeyId| {
            let cached = cache.by_key.get(id)?;
            let is_young = now.saturating_sub(cached.read_at) < LONGEST_CACHED;
            is_young.then(|| (*id, Arc::clone(&cached.access)))
        };
        wanted.iter().filter_map(current).collect()
    }

    fn remember(&self, version: i64, read: &[Arc<Access>], read_at: Duration) {
        let mut cache = self.lock_cache();
        if cache.version == version {
            let cached = |access: &Arc<Access>| {
                let access = Arc::clone(access);
                (access.key.id, Cached { read_at, access })
            };
            cache.by_key.extend(read.iter().map(cached));
        }
    }

    fn lock_cache(&self) -> MutexGuard<'_, Cache> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn read(
    conn: &mut SqliteConnection,
    mode: Mode,
    ids: &[String],
) -> Result<Vec<Arc<Access>>, StoreError> {
    let rows = sqlx::query(
        "SELECT k.partner_id, k.id, k.kind, k.prefix, k.last4, k.generated, k.created_at, k.revoked_at, k.label,
                    k.expires_at,
                p.name AS partner_name, p.status AS partner_status,
                a.enabled, a.access, a.kyc, a.tier, a.allowed, a.balance_gate, a.velocity_cap, a.iban,
                a.funding_reference, a.terms, g.enabled AS gate_enabled, g.allowed_domains, g.flow_sessions,
                g.kyc_trusted, g.rails, g.preview_locks, g.live_session_quota,
                    g.create_session_limit
         FROM json_each(?2) AS j
         CROSS JOIN api_keys AS k ON k.mode = ?1 AND k.id = j.value
         CROSS JOIN partners AS p ON p.mode = k.mode AND p.partner_id = k.partner_id
         LEFT JOIN pools_profiles AS a ON a.mode = k.mode AND a.partner_id = k.partner_id
         LEFT JOIN gate_profiles AS g ON g.mode = k.mode AND g.partner_id = k.partner_id",
    )
    .bind(mode.as_str())
    .bind(json(&ids)?)
    .fetch_all(conn)
    .await
    .map_err(errors::statement)?;
    rows.iter()
        .map(|row| access(row, mode).map(Arc::new))
        .collect()
}

/// The partners of a batch, for statements that take a set of them.
pub(crate) fn names<'p>(partners: impl Iterator<Item = &'p PartnerId>) -> BTreeSet<&'p str> {
    partners.map(PartnerId::as_str).collect()
}
