//! Who may do what: a key with its partner and entitlements, read in one statement.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use crate::conn::Conn;
use async_trait::async_trait;
use kernel::{Mode, StoreError};
use partner_core::key::{KeyHash, KeyId};
use partner_core::origin::Origin;
use partner_core::pools::Pool;
use partner_core::ports::{Directory, LONGEST_CACHED};
use partner_core::{Access, PartnerId};
use sqlx::postgres::PgRow;
use sqlx::types::Uuid;
use store_sql::gate::opt_profile;
use store_sql::keys::record;
use store_sql::partners::partner;
use store_sql::pools::profile_of;

use crate::open::Inner;
use crate::partner_lock::PartnerLock;
use crate::row::{Columns, key};
use crate::{PostgresStore, config, errors, gate, pools};

/// Accesses cached for batches, at most. Above this number all are dropped.
const CACHED: usize = 10_000;

/// Accesses as of the versions of their partners' books, none older than [`LONGEST_CACHED`].
///
/// The lane reads a version with the books it takes. While it holds them nobody changes what the
/// partner may do, so while the version stands, so does what is cached under it.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    by_key: HashMap<KeyId, Cached>,
}

#[derive(Debug)]
struct Cached {
    version: i64,
    /// When the read began, on the process's monotonic clock.
    read_at: Duration,
    access: Arc<Access>,
}

impl Cached {
    /// Is it still what the partner `held` may do?
    fn is_valid(&self, partner: &PartnerId, held: PartnerLock, now: Duration) -> bool {
        let is_young = now.saturating_sub(self.read_at) < LONGEST_CACHED;
        is_young && held.version == self.version && self.access.partner.id == *partner
    }
}

#[async_trait]
impl Directory for PostgresStore {
    async fn access_find(
        &self,
        mode: Mode,
        hash: &KeyHash,
    ) -> Result<Option<Arc<Access>>, StoreError> {
        let mut conn = self.inner.conn().await?;
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
             WHERE k.hash = $2 AND k.mode = $1",
        )
        .bind(mode.as_str())
        .bind(hash.0.as_slice())
        .fetch_optional(&mut *conn)
        .await
        .map_err(errors::statement)?;
        row.map(|row| access(&row, mode).map(Arc::new)).transpose()
    }

    async fn pools_all(&self, mode: Mode) -> Result<Arc<[Pool]>, StoreError> {
        let mut conn = self.inner.conn().await?;
        Ok(pools::all(&mut conn, mode).await?.into())
    }

    async fn origins_all(&self, mode: Mode) -> Result<Arc<BTreeSet<Origin>>, StoreError> {
        let mut conn = self.inner.conn().await?;
        Ok(gate::origins_all(&mut conn, mode).await?.into())
    }

    async fn config_version(&self) -> Result<i64, StoreError> {
        let mut conn = self.inner.conn().await?;
        config::version(&mut conn).await
    }
}

fn access(row: &PgRow, mode: Mode) -> Result<Access, StoreError> {
    let partner = partner(&Columns::new("partners", row))?;
    let profile = profile_of(&Columns::new("pools_profiles", row), &partner.id)?;
    let gate = opt_profile(&Columns::new("gate_profiles", row))?;
    let key = record(&Columns::new("api_keys", row), mode)?;
    Ok(Access::new(mode, key, partner, profile).with_gate(gate.unwrap_or_default()))
}

impl Inner {
    /// The accesses of a batch's keys while the books of their partners are held; a key that the
    /// partner does not have is left out.
    pub(crate) async fn access_of(
        &self,
        conn: &mut Conn,
        mode: Mode,
        wanted: &BTreeMap<KeyId, PartnerId>,
        held: &BTreeMap<PartnerId, PartnerLock>,
    ) -> Result<BTreeMap<KeyId, Arc<Access>>, StoreError> {
        let now = self.clock.elapsed();
        let mut found = self.cached(wanted, held, now);
        let (ids, partners): (Vec<Uuid>, Vec<&str>) = wanted
            .iter()
            .filter(|(id, _)| id.mode() == mode && !found.contains_key(*id))
            .map(|(id, partner)| (key(*id), partner.as_str()))
            .unzip();
        if !ids.is_empty() {
            let read = read(conn, mode, &partners, &ids).await?;
            self.remember(&read, held, now);
            found.extend(read.into_iter().map(|access| (access.key.id, access)));
        }
        Ok(found)
    }

    fn cached(
        &self,
        wanted: &BTreeMap<KeyId, PartnerId>,
        held: &BTreeMap<PartnerId, PartnerLock>,
        now: Duration,
    ) -> BTreeMap<KeyId, Arc<Access>> {
        let cache = self.lock_cache();
        let current = |(id, partner): (&KeyId, &PartnerId)| {
            let cached = cache.by_key.get(id)?;
            let is_valid = cached.is_valid(partner, *held.get(partner)?, now);
            is_valid.then(|| (*id, Arc::clone(&cached.access)))
        };
        wanted.iter().filter_map(current).collect()
    }

    fn remember(
        &self,
        read: &[Arc<Access>],
        held: &BTreeMap<PartnerId, PartnerLock>,
        read_at: Duration,
    ) {
        let mut cache = self.lock_cache();
        if cache.by_key.len() > CACHED {
            cache.by_key.clear();
        }
        let versioned = |access: &Arc<Access>| {
            let cached = Cached {
                version: held.get(&access.partner.id)?.version,
                read_at,
                access: Arc::clone(access),
            };
            Some((access.key.id, cached))
        };
        cache.by_key.extend(read.iter().filter_map(versioned));
    }

    fn lock_cache(&self) -> MutexGuard<'_, Cache> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn read(
    conn: &mut Conn,
    mode: Mode,
    partners: &[&str],
    ids: &[Uuid],
) -> Result<Vec<Arc<Access>>, StoreError> {
    let rows = sqlx::query(READ)
        .bind(mode.as_str())
        .bind(partners)
        .bind(ids)
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    rows.iter()
        .map(|row| access(row, mode).map(Arc::new))
        .collect()
}

/// Keys with what their partners may do.
pub(crate) const READ: &str = "WITH asked AS MATERIALIZED (
         SELECT $1::text AS mode, j.* FROM unnest($2::text[], $3::uuid[]) AS j (partner_id, id)
     )
     SELECT k.partner_id, k.id, k.kind, k.prefix, k.last4, k.generated, k.created_at, k.revoked_at, k.label, k.expires_at,
            p.name AS partner_name, p.status AS partner_status,
            a.enabled, a.access, a.kyc, a.tier, a.allowed, a.balance_gate, a.velocity_cap, a.iban,
            a.funding_reference, a.terms, g.enabled AS gate_enabled, g.allowed_domains, g.flow_sessions,
            g.kyc_trusted, g.rails, g.preview_locks, g.live_session_quota, g.create_session_limit
     FROM asked AS j
     CROSS JOIN LATERAL (
         SELECT * FROM api_keys AS k
         WHERE k.mode = j.mode AND k.partner_id = j.partner_id AND k.id = j.id
         LIMIT 1
     ) AS k
     JOIN partners AS p ON p.mode = k.mode AND p.partner_id = k.partner_id
     LEFT JOIN pools_profiles AS a ON a.mode = k.mode AND a.partner_id = k.partner_id
     LEFT JOIN gate_profiles AS g ON g.mode = k.mode AND g.partner_id = k.partner_id";
