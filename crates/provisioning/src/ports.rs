//! The ports of the declarative file.

use async_trait::async_trait;
use gate_core::profile::GateProfile;
use kernel::{Mode, StoreResult};
use partner_core::ports::{PartnerStore, PartnerTx};
use partner_core::{PartnerId, Tenant};
use pools_core::profile::{Pool, PoolId, PoolsProfile};

/// The reads and writes of one application: partners, and the entries of both products.
#[async_trait]
pub trait ProvisionTx: PartnerTx {
    /// A pool of the mode.
    async fn pool_get(&mut self, mode: Mode, id: PoolId) -> StoreResult<Option<Pool>>;
    /// Inserts or replaces a pool.
    async fn pool_put(&mut self, mode: Mode, pool: &Pool) -> StoreResult<()>;
    /// All pools of a mode, ordered by id.
    async fn pools_list(&mut self, mode: Mode) -> StoreResult<Vec<Pool>>;
    /// A partner's access to pools; `None` if it was never provisioned.
    async fn pools_profile_get(&mut self, who: &Tenant) -> StoreResult<Option<PoolsProfile>>;
    /// Inserts or replaces a partner's access to pools, with its deposit claims ([`PoolsProfile::deposit_claims`]).
    ///
    /// If another partner of the mode has one of the claims, the error is [`StoreError::Guard`](kernel::StoreError::Guard).
    async fn pools_profile_put(&mut self, who: &Tenant, profile: &PoolsProfile) -> StoreResult<()>;
    /// All partners' access to pools in a mode, ordered by partner.
    async fn pools_profiles_all(
        &mut self,
        mode: Mode,
    ) -> StoreResult<Vec<(PartnerId, PoolsProfile)>>;
    /// Releases a partner's deposit claims, so that partners can exchange them in one transaction.
    async fn deposits_release(&mut self, who: &Tenant) -> StoreResult<()>;
    /// A partner's access to the gate; `None` if it was never provisioned.
    async fn gate_profile_get(&mut self, who: &Tenant) -> StoreResult<Option<GateProfile>>;
    /// Inserts or replaces a partner's access to the gate.
    async fn gate_profile_put(&mut self, who: &Tenant, profile: &GateProfile) -> StoreResult<()>;
}

/// Opens transactions for applying a file.
#[async_trait]
pub trait ProvisionStore: PartnerStore {
    /// Opens a write transaction. `name` labels it in metrics and logs.
    async fn provision_begin(&self, name: &'static str) -> StoreResult<Box<dyn ProvisionTx>>;
}
