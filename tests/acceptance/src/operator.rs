//! The operator's side: provisioning changes and credits.

use std::sync::Arc;
use std::time::Duration;

use coordination::{ConfigCache, DirectoryCache, directory_cache};
use gate_core::profile::GateProfile;
use kernel::{Amount, Asset, Clock, Mode, Timestamp};
use partner_core::events::{Endpoint, EndpointId, EndpointSecret, Service, secret_place};
use partner_core::key::{KeyId, KeyKind, KeyTerms, NewKey, PresentedKey};
use partner_core::ports::KeySweep;
use partner_core::sealing::Sealer;
use partner_core::{Partner, PartnerId, PartnerStatus, Tenant};
use pools_core::profile::{Network, Pool, PoolId, PoolTerms, PoolsProfile};
use pools_core::usecases::credit_account::{Credit, CreditAccount, CreditError, Credited};
use provisioning::ports::ProvisionTx;
use runtime::Store;
use tokio::task::JoinHandle;

use crate::clock::{ManualClock, Seeded};

/// Provisions a world and changes its provisioning.
#[derive(Debug, Clone)]
pub struct Operator {
    pub(crate) mode: Mode,
    /// The store of the service.
    pub(crate) store: Arc<dyn Store>,
    /// The same database as the operator's command line opens it.
    pub(crate) operating: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) entropy: Arc<Seeded>,
    pub(crate) sealer: Arc<Sealer>,
    pub(crate) directory: Arc<DirectoryCache<PoolsProfile>>,
    pub(crate) gate_directory: Arc<DirectoryCache<GateProfile>>,
}

/// An amount such as `100.00 EUR`.
#[must_use]
pub fn money(amount: &str, asset: &str) -> Amount {
    Amount::parse(amount, Asset::parse(asset).expect("an asset")).expect("an amount")
}

impl Operator {
    /// Watches the configuration for changes of other processes, as a service does.
    pub fn watch(&self) -> JoinHandle<()> {
        let (store, caches) = (self.store.clone(), self.caches());
        tokio::spawn(async move {
            directory_cache::watch(&*store, &caches, std::future::pending()).await;
        })
    }

    fn caches(&self) -> [Arc<dyn ConfigCache>; 2] {
        [self.directory.clone(), self.gate_directory.clone()]
    }

    /// Makes the database unavailable.
    pub async fn close_store(&self) {
        self.store.close().await;
        self.operating.close().await;
    }

    /// A partner's tenant in this mode.
    #[must_use]
    pub fn tenant(&self, partner: &str) -> Tenant {
        Tenant {
            partner: PartnerId::parse(partner).expect("a partner id"),
            mode: self.mode,
        }
    }

    async fn begin(&self) -> Box<dyn ProvisionTx> {
        self.operating
            .provision_begin("test")
            .await
            .expect("a transaction")
    }

    async fn commit(&self, mut tx: Box<dyn ProvisionTx>) {
        tx.config_version_raise().await.expect("a new version");
        tx.commit().await.expect("a commit");
        // Reloads at once: tests do not wait for this process's watcher.
        self.caches().iter().for_each(|cache| cache.invalidate());
    }

    /// Inserts or replaces a pool.
    pub async fn put_pool(&self, pool: &Pool) {
        let mut tx = self.begin().await;
        tx.pool_put(self.mode, pool).await.expect("a pool");
        self.commit(tx).await;
    }

    /// Marks a pool available or not.
    pub async fn set_available(&self, id: &str, available: bool) {
        let mut tx = self.begin().await;
        let id = PoolId::parse(id).expect("a pool id");
        let pool = tx
            .pool_get(self.mode, id)
            .await
            .expect("a read")
            .expect("the pool");
        tx.pool_put(self.mode, &Pool { available, ..pool })
            .await
            .expect("a pool");
        self.commit(tx).await;
    }

    /// Inserts or replaces a partner.
    pub async fn put_partner(&self, partner: &str, status: PartnerStatus) {
        let who = self.tenant(partner);
        let partner = Partner {
            id: who.partner,
            name: partner.to_owned(),
            status,
        };
        let mut tx = self.begin().await;
        tx.partner_put(self.mode, &partner)
            .await
            .expect("a partner");
        self.commit(tx).await;
    }

    /// Inserts or replaces a partner's access to pools.
    pub async fn put_profile(&self, partner: &str, profile: &PoolsProfile) {
        let mut tx = self.begin().await;
        tx.pools_profile_put(&self.tenant(partner), profile)
            .await
            .expect("a profile");
        self.commit(tx).await;
    }

    /// Changes a partner's access to pools.
    pub async fn change(&self, partner: &str, change: impl FnOnce(&mut PoolsProfile)) {
        let mut tx = self.begin().await;
        let found = tx
            .pools_profile_get(&self.tenant(partner))
            .await
            .expect("a read");
        let mut profile = found.expect("a profile");
        change(&mut profile);
        tx.pools_profile_put(&self.tenant(partner), &profile)
            .await
            .expect("a profile");
        self.commit(tx).await;
    }

    /// Changes a partner's terms in a pool.
    pub async fn terms(&self, partner: &str, pool: &str, change: impl FnOnce(&mut PoolTerms)) {
        let pool = PoolId::parse(pool).expect("a pool id");
        let change = |profile: &mut PoolsProfile| {
            change(profile.terms.entry(pool).or_default());
        };
        self.change(partner, change).await;
    }

    /// Stores a key; returns its id.
    pub async fn put_key(&self, partner: &str, text: &str) -> KeyId {
        let kind = if text.starts_with("sk_") {
            KeyKind::Secret
        } else {
            KeyKind::Publishable
        };
        let key = if self.mode == Mode::Test {
            NewKey::literal(kind, self.clock.now(), &*self.entropy, text).expect("a literal key")
        } else {
            let (key, _) = NewKey::generate(kind, self.mode, self.clock.now(), &*self.entropy);
            let hash = PresentedKey::parse(text).expect("a key").hash;
            NewKey { hash, ..key }
        };
        let key = key.sealing(&self.tenant(partner), text, &self.sealer, &*self.entropy);
        let key = key.expect("a sealed key");
        let mut tx = self.begin().await;
        tx.key_insert(&self.tenant(partner), &key)
            .await
            .expect("a key");
        self.commit(tx).await;
        key.record.id
    }

    /// Revokes a key.
    pub async fn revoke(&self, text: &str) {
        let mut tx = self.begin().await;
        let hash = PresentedKey::parse(text).expect("a key").hash;
        let owner = tx.key_owner(&hash).await.expect("a read");
        let (_, _, record) = owner.expect("a known key");
        let now = tx.now().await.expect("an instant");
        tx.key_revoke(record.id, now)
            .await
            .expect("a revocation")
            .won()
            .expect("a live key");
        self.commit(tx).await;
    }

    /// Sets the instant at which a key expires.
    pub async fn expire(&self, text: &str, expires_at: Timestamp) {
        let mut tx = self.begin().await;
        let hash = PresentedKey::parse(text).expect("a key").hash;
        let owner = tx.key_owner(&hash).await.expect("a read");
        let (partner, mode, record) = owner.expect("a known key");
        let terms = KeyTerms {
            label: None,
            expires_at: Some(expires_at),
        };
        let who = Tenant { partner, mode };
        let described = tx.key_describe(&who, record.id, &terms).await;
        described.expect("a known key");
        self.commit(tx).await;
    }

    /// Inserts or replaces a partner's access to the gate.
    pub async fn put_gate_profile(&self, partner: &str, profile: &GateProfile) {
        let mut tx = self.begin().await;
        tx.gate_profile_put(&self.tenant(partner), profile)
            .await
            .expect("a profile");
        self.commit(tx).await;
    }

    /// Changes a partner's access to the gate.
    pub async fn change_gate(&self, partner: &str, change: impl FnOnce(&mut GateProfile)) {
        let mut tx = self.begin().await;
        let found = tx.gate_profile_get(&self.tenant(partner)).await;
        let mut profile = found.expect("a read").expect("a profile");
        change(&mut profile);
        tx.gate_profile_put(&self.tenant(partner), &profile)
            .await
            .expect("a profile");
        self.commit(tx).await;
    }

    /// Sets a partner's webhook endpoint for a service. Nothing listens there.
    pub async fn put_endpoint(&self, partner: &str, service: Service) {
        let url = format!("http://127.0.0.1:9/{partner}");
        self.put_endpoint_at(partner, service, url).await;
    }

    /// Sets a partner's webhook endpoint for a service.
    pub async fn put_endpoint_at(&self, partner: &str, service: Service, url: String) {
        let id = EndpointId::new(self.mode, self.clock.now(), &*self.entropy);
        let secret = format!("whsec_{}=", "A".repeat(43));
        let sealed = self
            .sealer
            .seal(&secret_place(id), secret.as_bytes(), &*self.entropy);
        let endpoint = Endpoint {
            id,
            service,
            url,
            secrets: vec![EndpointSecret {
                sealed: sealed.expect("a sealed secret"),
                created_at: self.clock.now(),
                expires_at: None,
            }],
        };
        let mut tx = self.begin().await;
        tx.endpoint_put(&self.tenant(partner), &endpoint)
            .await
            .expect("an endpoint");
        self.commit(tx).await;
    }

    /// Sweeps idempotency records of a service and mode, as a process with this `ttl` does.
    pub async fn sweep_keys(&self, service: Service, mode: Mode, ttl: Duration) {
        let sweep = KeySweep {
            mode,
            service,
            after: None,
            age: ttl,
            grace: Duration::ZERO,
        };
        let swept = self.store.idempotency_sweep(&sweep, 1_000).await;
        swept.expect("a sweep");
    }

    /// Credits a deposit of fiat, or a receipt of crypto on TRON.
    pub async fn credit(&self, partner: &str, amount: &str, asset: &str) {
        let amount = money(amount, asset);
        let fiat = amount.asset().kind() == kernel::AssetKind::Fiat;
        let credit = Credit {
            amount,
            network: (!fiat).then_some(Network::Tron),
            reference: format!("{partner}-{asset}-{}", self.entropy.next()),
        };
        let credited = self.try_credit(partner, &credit).await.expect("a credit");
        assert!(credited.applied);
    }

    /// Credits, or returns the refusal.
    ///
    /// # Errors
    /// As [`CreditAccount::credit`].
    pub async fn try_credit(
        &self,
        partner: &str,
        credit: &Credit,
    ) -> Result<Credited, CreditError> {
        let crediting = CreditAccount {
            store: self.operating.clone(),
            entropy: self.entropy.clone(),
        };
        crediting.credit(&self.tenant(partner), credit).await
    }
}
