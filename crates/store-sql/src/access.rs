//! A key with its partner and the partner's profile of one product, read in one statement, and the accesses that batches cache.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use gate_core::profile::GateProfile;
use kernel::{Mode, StoreResult};
use partner_core::key::{KeyHash, KeyId};
use partner_core::ports::LONGEST_CACHED;
use partner_core::{Access, PartnerId, Profile};
use pools_core::profile::PoolsProfile;

use crate::row::of_table;
use crate::{Connection, Row, Sql, Statement, gate, keys, partners, pools, values};

/// The maximum number of cached accesses of a product. Above it all are dropped.
const MAX_CACHED: usize = 10_000;

/// A product's profile. A partner may have no row for it.
#[async_trait]
pub trait StoredProfile: Profile {
    /// The table that errors name.
    const TABLE: &'static str;
    /// Finds the key of a mode (`$1`) by its hash (`$2`).
    const BY_HASH: &'static Statement;
    /// Finds keys of a mode by their ids. SQLite takes the ids as a JSON array, Postgres takes an array of partners and one of ids.
    const BY_IDS: Sql;

    /// The profile in a row of one of these statements.
    fn beside_key(row: &dyn Row, partner: &PartnerId) -> StoreResult<Self>;

    /// Reads the directory's listing.
    async fn listing(
        connection: &mut dyn Connection,
        mode: Mode,
    ) -> StoreResult<Arc<Self::Listing>>;

    /// The cache of accesses with this profile.
    fn cache(caches: &AccessCaches) -> &AccessCache<Self>;
}

/// A statement that reads keys `k` with their partners `p` and their profiles `a`.
macro_rules! keys_with {
    ($table:literal, $columns:literal, $with:literal, $from:literal, $where:literal) => {
        concat!(
            $with,
            "SELECT k.partner_id, k.id, k.kind, k.prefix, k.last4, k.generated, k.created_at, k.revoked_at, k.label,
                    k.expires_at, p.name AS partner_name, p.status AS partner_status, ",
            $columns,
            " FROM ",
            $from,
            " JOIN partners AS p ON p.mode = k.mode AND p.partner_id = k.partner_id LEFT JOIN ",
            $table,
            " AS a ON a.mode = k.mode AND a.partner_id = k.partner_id",
            $where
        )
    };
}

/// The statements of [`StoredProfile`], for a table and its columns.
macro_rules! statements {
    ($table:literal, $columns:literal) => {
        const TABLE: &'static str = $table;
        const BY_HASH: &'static Statement = &Statement::new(
            "api_keys",
            keys_with!(
                $table,
                $columns,
                "",
                "api_keys AS k",
                " WHERE k.hash = $2 AND k.mode = $1"
            ),
        );
        const BY_IDS: Sql = Sql {
            sqlite: keys_with!(
                $table,
                $columns,
                "",
                "json_each($2) AS j CROSS JOIN api_keys AS k ON k.mode = $1 AND k.id = j.value CROSS",
                ""
            ),
            postgres: keys_with!(
                $table,
                $columns,
                "WITH asked AS MATERIALIZED (
                     SELECT $1::text AS mode, j.* FROM unnest($2::text[], $3::uuid[]) AS j (partner_id, id)
                 ) ",
                "asked AS j
                 CROSS JOIN LATERAL (
                     SELECT * FROM api_keys AS k
                     WHERE k.mode = j.mode AND k.partner_id = j.partner_id AND k.id = j.id
                     LIMIT 1
                 ) AS k",
                ""
            ),
        };
    };
}

#[async_trait]
impl StoredProfile for PoolsProfile {
    statements!(
        "pools_profiles",
        "a.enabled, a.access, a.kyc, a.tier, a.allowed, a.balance_gate, a.velocity_cap, a.iban, a.funding_reference, a.terms"
    );

    fn beside_key(row: &dyn Row, partner: &PartnerId) -> StoreResult<Self> {
        pools::profile_of(row, partner)
    }

    async fn listing(
        connection: &mut dyn Connection,
        mode: Mode,
    ) -> StoreResult<Arc<Self::Listing>> {
        Ok(pools::all(connection, mode).await?.into())
    }

    fn cache(caches: &AccessCaches) -> &AccessCache<Self> {
        &caches.pools
    }
}

#[async_trait]
impl StoredProfile for GateProfile {
    statements!(
        "gate_profiles",
        "a.enabled AS gate_enabled, a.allowed_domains, a.flow_sessions, a.kyc_trusted, a.rails, a.preview_locks,
         a.live_session_quota, a.create_session_limit, a.legal_name, a.support_url, a.terms_url, a.privacy_url"
    );

    fn beside_key(row: &dyn Row, _: &PartnerId) -> StoreResult<Self> {
        Ok(gate::opt_profile(row)?.unwrap_or_default())
    }

    async fn listing(
        connection: &mut dyn Connection,
        mode: Mode,
    ) -> StoreResult<Arc<Self::Listing>> {
        Ok(gate::domains_all(connection, mode).await?.into())
    }

    fn cache(caches: &AccessCaches) -> &AccessCache<Self> {
        &caches.gate
    }
}

/// The key with this hash, with its partner and profile.
pub async fn find<P: StoredProfile>(
    connection: &mut dyn Connection,
    mode: Mode,
    hash: &KeyHash,
) -> StoreResult<Option<Arc<Access<P>>>> {
    let values = values![mode, hash.0.as_slice()];
    let row = connection.fetch_optional(P::BY_HASH, values).await?;
    row.map(|row| access(&*row, mode)).transpose()
}

/// Reads a row of [`StoredProfile::BY_HASH`] or [`StoredProfile::BY_IDS`].
pub fn access<P: StoredProfile>(row: &dyn Row, mode: Mode) -> StoreResult<Arc<Access<P>>> {
    let partner = of_table("partners", partners::partner(row))?;
    let profile = of_table(P::TABLE, P::beside_key(row, &partner.id))?;
    let key = of_table("api_keys", keys::record(row, mode))?;
    Ok(Arc::new(Access::new(mode, key, partner, profile)))
}

/// The cached accesses of each product.
#[derive(Default)]
pub struct AccessCaches {
    pools: AccessCache<PoolsProfile>,
    gate: AccessCache<GateProfile>,
}

/// Cached accesses of one product, none older than [`LONGEST_CACHED`].
///
/// A transaction reads the version of what it has locked: of the configuration on SQLite, of the partner lock on Postgres. No other
/// transaction changes the access meanwhile, so an access that was cached under this version is the current one.
pub struct AccessCache<P> {
    by_key: Mutex<HashMap<KeyId, Cached<P>>>,
}

struct Cached<P> {
    version: i64,
    read_at: Duration,
    access: Arc<Access<P>>,
}

impl<P> AccessCache<P> {
    /// The access that was cached under this version. Instants are of the process's monotonic clock.
    pub fn find(&self, key: KeyId, version: i64, now: Duration) -> Option<Arc<Access<P>>> {
        let by_key = self.lock();
        let cached = by_key.get(&key)?;
        let is_young = now.saturating_sub(cached.read_at) < LONGEST_CACHED;
        (is_young && cached.version == version).then(|| Arc::clone(&cached.access))
    }

    /// Caches an access. Its read began at `read_at`.
    pub fn keep(&self, access: &Arc<Access<P>>, version: i64, read_at: Duration) {
        let mut by_key = self.lock();
        if by_key.len() > MAX_CACHED {
            by_key.clear();
        }
        let cached = Cached {
            version,
            read_at,
            access: Arc::clone(access),
        };
        by_key.insert(access.key.id, cached);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyId, Cached<P>>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P> Default for AccessCache<P> {
    fn default() -> Self {
        let by_key = Mutex::default();
        Self { by_key }
    }
}
