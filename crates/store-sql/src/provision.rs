//! The operator's transactions: partners, keys, pools and profiles.

use std::collections::BTreeMap;

use async_trait::async_trait;
use gate_core::profile::GateProfile;
use instruments::failpoint::around;
use kernel::{Cas, Mode, StoreError, Timestamp};
use partner_core::events::{Endpoint, Service};
use partner_core::key::{KeyHash, KeyId, KeyRecord, KeyTerms, NewKey};
use partner_core::ports::PartnerTx;
use partner_core::sealing::Sealed;
use partner_core::{Partner, PartnerId, Tenant};
use pools_core::profile::{Pool, PoolId, PoolsProfile};
use provisioning::ports::ProvisionTx;

use crate::{StoreTx, config, deposit_claims, endpoints, gate, keys, partners, pools};

#[async_trait]
impl PartnerTx for StoreTx {
    async fn master_key(&mut self) -> Result<Option<String>, StoreError> {
        config::current_fingerprint(self.connection()).await
    }

    async fn partner_ids(&mut self, mode: Mode) -> Result<Vec<PartnerId>, StoreError> {
        partners::ids(self.connection(), mode).await
    }

    async fn partner_lock(&mut self, who: &Tenant) -> Result<Option<Partner>, StoreError> {
        partners::find(self.locked(who).await?, who).await
    }

    async fn partner_put(&mut self, mode: Mode, partner: &Partner) -> Result<(), StoreError> {
        partners::put(self.reconfiguring(), mode, partner).await?;
        let partner = partner.id.clone();
        self.engine.lock_new(&Tenant { partner, mode }).await
    }

    async fn endpoint_get(
        &mut self,
        who: &Tenant,
        service: Service,
    ) -> Result<Option<Endpoint>, StoreError> {
        endpoints::find(self.locked(who).await?, who, service).await
    }

    async fn endpoint_put(&mut self, who: &Tenant, endpoint: &Endpoint) -> Result<(), StoreError> {
        endpoints::put(self.reconfiguring_partner(who).await?, who, endpoint).await
    }

    async fn keys_list(&mut self, who: &Tenant) -> Result<Vec<KeyRecord>, StoreError> {
        keys::list(self.locked(who).await?, who).await
    }

    async fn key_owner(
        &mut self,
        hash: &KeyHash,
    ) -> Result<Option<(PartnerId, Mode, KeyRecord)>, StoreError> {
        keys::owner(self.connection(), hash).await
    }

    async fn key_insert(&mut self, who: &Tenant, key: &NewKey) -> Result<(), StoreError> {
        keys::insert(self.reconfiguring_partner(who).await?, who, key).await
    }

    async fn key_find(&mut self, id: KeyId) -> Result<Option<(PartnerId, KeyRecord)>, StoreError> {
        keys::find(self.connection(), id).await
    }

    async fn keys_used(&mut self, who: &Tenant) -> Result<BTreeMap<KeyId, Timestamp>, StoreError> {
        keys::used(self.connection(), who).await
    }

    async fn key_texts(&mut self, who: &Tenant) -> Result<BTreeMap<KeyId, Sealed>, StoreError> {
        keys::texts(self.connection(), who).await
    }

    async fn key_describe(
        &mut self,
        who: &Tenant,
        id: KeyId,
        terms: &KeyTerms,
    ) -> Result<(), StoreError> {
        keys::describe(self.reconfiguring_partner(who).await?, who, id, terms).await
    }

    async fn key_keep_text(
        &mut self,
        who: &Tenant,
        id: KeyId,
        text: &Sealed,
    ) -> Result<Cas, StoreError> {
        keys::keep_text(self.reconfiguring_partner(who).await?, who, id, text).await
    }

    async fn key_revoke(&mut self, id: KeyId, at: Timestamp) -> Result<Cas, StoreError> {
        let Some((partner, _)) = keys::find(self.reconfiguring(), id).await? else {
            return Ok(Cas::Lost);
        };
        let mode = id.mode();
        let who = Tenant { partner, mode };
        let revoking = keys::revoke(self.locked(&who).await?, &who, id, at);
        around("key.revoke", revoking).await
    }

    async fn config_version_raise(&mut self) -> Result<(), StoreError> {
        self.engine.record_reconfigured();
        Ok(())
    }
}

#[async_trait]
impl ProvisionTx for StoreTx {
    async fn pool_get(&mut self, mode: Mode, id: PoolId) -> Result<Option<Pool>, StoreError> {
        pools::find(self.connection(), mode, id).await
    }

    async fn pool_put(&mut self, mode: Mode, pool: &Pool) -> Result<(), StoreError> {
        pools::put(self.reconfiguring(), mode, pool).await
    }

    async fn pools_list(&mut self, mode: Mode) -> Result<Vec<Pool>, StoreError> {
        pools::all(self.connection(), mode).await
    }

    async fn pools_profile_get(
        &mut self,
        who: &Tenant,
    ) -> Result<Option<PoolsProfile>, StoreError> {
        pools::profile_find(self.locked(who).await?, who).await
    }

    async fn pools_profile_put(
        &mut self,
        who: &Tenant,
        profile: &PoolsProfile,
    ) -> Result<(), StoreError> {
        pools::profile_put(self.reconfiguring_partner(who).await?, who, profile).await
    }

    async fn pools_profiles_all(
        &mut self,
        mode: Mode,
    ) -> Result<Vec<(PartnerId, PoolsProfile)>, StoreError> {
        pools::profiles_all(self.connection(), mode).await
    }

    async fn deposits_release(&mut self, who: &Tenant) -> Result<(), StoreError> {
        deposit_claims::release(self.connection(), who).await
    }

    async fn gate_profile_get(&mut self, who: &Tenant) -> Result<Option<GateProfile>, StoreError> {
        gate::profile_find(self.locked(who).await?, who).await
    }

    async fn gate_profile_put(
        &mut self,
        who: &Tenant,
        profile: &GateProfile,
    ) -> Result<(), StoreError> {
        gate::profile_put(self.reconfiguring_partner(who).await?, who, profile).await
    }
}
