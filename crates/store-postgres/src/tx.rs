//! The write transaction: one struct that every noun's file gives its own small trait.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::access::GateAccess;
use gate_core::ports::{GateStore, GateTx};
use instruments::failpoint::around_commit;
use instruments::store as measured;
use kernel::{Asset, Cas, Mode, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::events::NewEvent;
use partner_core::key::KeyId;
use partner_core::ports::{PartnerStore, PartnerTx, UnitOfWork};
use pools_core::ports::{PoolsStore, PoolsTx};
use pools_core::trade::TradeStatus;
use provisioning::ports::{ProvisionStore, ProvisionTx};
use store_sql::{Connection, EngineTx, Reader as _, StoreTx, contingent_credits};

use crate::conn::Conn;
use crate::open::Inner;
use crate::partner_lock::{self, Locks, PartnerLock};
use crate::pool::Tx;
use crate::{PostgresStore, clock, config, errors, events, stats};

/// How often a transaction that holds one partner's books tries to take another's, and the wait after each try.
const TRIES_FOR_ANOTHER: u32 = 10;
const WAIT_FOR_ANOTHER: Duration = Duration::from_millis(10);

/// Dropped without commit, it rolls back.
pub(crate) struct PgTx {
    tx: Tx,
    inner: Arc<Inner>,
    name: &'static str,
    /// Has it run statements that count, before it holds any books?
    touched: bool,
    /// The books it holds, or has looked for in vain.
    held: BTreeMap<Tenant, Option<PartnerLock>>,
    /// No instant of this transaction is earlier: what it has read was written then.
    floor: i64,
    /// The last instant it was told.
    used: Option<Timestamp>,
    /// Counts how it ends.
    pub(crate) measured: measured::Transaction,
    /// Has it changed what running services cache?
    pub(crate) reconfigured: bool,
    /// Has it queued deliveries?
    pub(crate) queued: bool,
}

impl fmt::Debug for PgTx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgTx")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl PgTx {
    pub(crate) async fn begin(
        store: &PostgresStore,
        name: &'static str,
    ) -> Result<Self, StoreError> {
        let tx = store.inner.write().await?;
        Ok(Self {
            tx,
            inner: Arc::clone(&store.inner),
            name,
            touched: false,
            held: BTreeMap::new(),
            floor: 0,
            used: None,
            measured: measured::Transaction::begin(name),
            reconfigured: false,
            queued: false,
        })
    }

    /// Begins a change of the configuration. Such changes come one after the other: each begins by taking its number.
    async fn begin_change(store: &PostgresStore, name: &'static str) -> Result<Self, StoreError> {
        let mut tx = Self::begin(store, name).await?;
        config::hold(tx.conn()).await?;
        Ok(tx)
    }

    pub(crate) fn conn(&mut self) -> &mut Conn {
        self.touched = true;
        &mut self.tx
    }

    /// The connection, holding the partner's books from here to the end: nobody else writes the
    /// partner's money, or changes what the partner may do, meanwhile.
    pub(crate) async fn locked_connection(
        &mut self,
        who: &Tenant,
    ) -> Result<&mut Conn, StoreError> {
        self.hold(who).await?;
        Ok(&mut self.tx)
    }

    /// Takes the partner's books: are there any?
    pub(crate) async fn hold(&mut self, who: &Tenant) -> Result<bool, StoreError> {
        if let Some(held) = self.held.get(who) {
            return Ok(held.is_some());
        }
        let held = if self.held.values().any(Option::is_some) {
            self.hold_another(who).await?
        } else {
            self.hold_first(who).await?
        };
        self.floor = self.floor.max(held.map_or(0, |held| held.at));
        self.held.insert(who.clone(), held);
        Ok(held.is_some())
    }

    /// Takes the books of the first partner, and waits while another transaction holds them. Few transactions of a partner do so
    /// with a connection; the others wait for their turn without one.
    async fn hold_first(&mut self, who: &Tenant) -> Result<Option<PartnerLock>, StoreError> {
        let inner = Arc::clone(&self.inner);
        let turn = match inner.turns.try_take(who) {
            None if !self.touched => {
                self.tx.release().await.map_err(errors::statement)?;
                let turn = inner.turns.take(who).await?;
                self.tx = inner.write().await?;
                Some(turn)
            }
            turn => turn,
        };
        let partners = [who.partner.as_str()];
        let found = partner_lock::hold(&mut self.tx, who.mode, &partners, Locks::Wait).await;
        drop(turn);
        Ok(found?.remove(&who.partner))
    }

    /// Takes the books of one more partner. It waits a moment only, because the partners whose books it holds already wait
    /// with it; then the whole transaction is to be run again.
    async fn hold_another(&mut self, who: &Tenant) -> Result<Option<PartnerLock>, StoreError> {
        let partners = [who.partner.as_str()];
        for _ in 0..TRIES_FOR_ANOTHER {
            let found = partner_lock::hold(&mut self.tx, who.mode, &partners, Locks::Skip);
            if let Some(held) = found.await?.remove(&who.partner) {
                return Ok(Some(held));
            }
            let existing = partner_lock::existing(&mut self.tx, who.mode, &partners);
            if existing.await?.is_empty() {
                return Ok(None);
            }
            tokio::time::sleep(WAIT_FOR_ANOTHER).await;
        }
        Err(StoreError::Retry)
    }

    /// Opens the books of a partner who may be new, and takes them.
    pub(crate) async fn hold_new(&mut self, who: &Tenant) -> Result<(), StoreError> {
        partner_lock::open(&mut self.tx, who).await?;
        self.held.remove(who);
        self.hold(who).await.map(drop)
    }

    /// Takes the books of a partner who has to be there.
    pub(crate) async fn hold_known(&mut self, who: &Tenant) -> Result<(), StoreError> {
        if self.hold(who).await? {
            return Ok(());
        }
        let (mode, partner) = (who.mode, who.partner.as_str());
        Err(StoreError::Guard(format!(
            "books: no partner {partner} of mode {mode}"
        )))
    }

    /// A key of a partner with what the partner may do, which nobody changes while its books are
    /// held.
    pub(crate) async fn access_of(
        &mut self,
        who: &Tenant,
        key: KeyId,
    ) -> Result<Option<Arc<GateAccess>>, StoreError> {
        self.hold(who).await?;
        let Some(held) = self.held.get(who).copied().flatten() else {
            return Ok(None);
        };
        let wanted = BTreeMap::from([(key, who.partner.clone())]);
        let held = BTreeMap::from([(who.partner.clone(), held)]);
        let found = self.inner.access_of(&mut self.tx, who.mode, &wanted, &held);
        Ok(found.await?.remove(&key))
    }

    /// Sees to it that no instant of this transaction precedes what it has read.
    pub(crate) fn after(&mut self, written: Timestamp) {
        self.floor = self.floor.max(written.millis());
    }

    /// The instant of this transaction, asked of the server after whatever it holds by now.
    pub(crate) async fn instant(&mut self) -> Result<Timestamp, StoreError> {
        let server = clock::server(&mut self.tx).await?;
        let now = self.inner.clock.settle(server, self.floor)?;
        self.used = Some(now);
        Ok(now)
    }

    /// Commits, and writes how late it was; a change of configuration raises the numbers others
    /// watch, asked to or not.
    pub(crate) async fn finish(mut self) -> Result<(), StoreError> {
        let now = match self.used {
            Some(now) => now,
            // It has dated nothing, so it goes through while the clock is not believed.
            None => {
                let server = clock::server(&mut self.tx).await?;
                self.inner.clock.seen(server, self.floor)?
            }
        };
        let version = if self.reconfigured {
            Some(config::draw(&mut self.tx).await?)
        } else {
            None
        };
        for (who, _) in self.held.iter().filter(|(_, held)| held.is_some()) {
            partner_lock::keep(&mut self.tx, who, now, version).await?;
        }
        if let Some(version) = version {
            config::put(&mut self.tx, version).await?;
        }
        let (queued, inner, tx) = (self.queued, self.inner, self.tx);
        let committing = async { tx.commit().await.map_err(errors::commit) };
        let committing = around_commit(self.name, committing);
        let committed = self.measured.commit(committing).await;
        if queued {
            inner.watchers.wake();
        }
        committed
    }

    /// Passes the outcome of a guarded write on, and notes that a race was lost.
    pub(crate) fn record_race(&mut self, outcome: Cas) -> Cas {
        if outcome == Cas::Lost {
            self.measured.lost();
        }
        outcome
    }
}

#[async_trait]
impl UnitOfWork for PgTx {
    async fn now(&mut self) -> Result<Timestamp, StoreError> {
        self.instant().await
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        self.finish().await
    }
}

#[async_trait]
impl EngineTx for PgTx {
    fn connection(&mut self) -> &mut dyn Connection {
        self.conn()
    }

    async fn locked(&mut self, who: &Tenant) -> Result<&mut dyn Connection, StoreError> {
        Ok(self.locked_connection(who).await?)
    }

    async fn lock_deliveries_of_object(&mut self, event: &NewEvent) -> Result<(), StoreError> {
        events::lock_deliveries_of_object(self.locked_connection(&event.tenant).await?, event).await
    }

    async fn access_get(
        &mut self,
        who: &Tenant,
        key: KeyId,
    ) -> Result<Option<Arc<GateAccess>>, StoreError> {
        self.access_of(who, key).await
    }

    fn record_queued(&mut self) {
        self.queued = true;
    }

    async fn lock_known(&mut self, who: &Tenant) -> Result<(), StoreError> {
        self.hold_known(who).await
    }

    async fn lock_new(&mut self, who: &Tenant) -> Result<(), StoreError> {
        self.hold_new(who).await
    }

    async fn lock_config(&mut self) -> Result<(), StoreError> {
        config::hold(self.conn()).await
    }

    fn record_reconfigured(&mut self) {
        self.reconfigured = true;
    }

    fn record_lost_race(&mut self) {
        self.measured.lost();
    }

    async fn count_trade_steps(
        &mut self,
        who: &Tenant,
        statuses: &[TradeStatus],
    ) -> Result<(), StoreError> {
        for (from, to) in statuses.iter().zip(statuses.iter().skip(1)) {
            self.measured.step(from.as_str(), to.as_str(), 1);
        }
        let (Some(first), Some(last)) = (statuses.first(), statuses.last()) else {
            return Ok(());
        };
        stats::count_trade(&mut self.tx, who, *first, *last).await
    }

    async fn roll_back(self: Box<Self>) -> Result<(), StoreError> {
        self.tx.rollback().await.map_err(errors::statement)
    }
}

impl PostgresStore {
    pub(crate) async fn begin_tx(&self, name: &'static str) -> Result<Box<StoreTx>, StoreError> {
        let engine = PgTx::begin(self, name).await?;
        Ok(Box::new(StoreTx::new(Box::new(engine))))
    }
}

#[async_trait]
impl GateStore for PostgresStore {
    async fn gate_begin(&self, name: &'static str) -> Result<Box<dyn GateTx>, StoreError> {
        Ok(self.begin_tx(name).await?)
    }
}

#[async_trait]
impl PoolsStore for PostgresStore {
    async fn begin(&self, name: &'static str) -> Result<Box<dyn PoolsTx>, StoreError> {
        Ok(self.begin_tx(name).await?)
    }

    async fn commitments_above(
        &self,
        mode: Mode,
        total: i64,
    ) -> Result<Vec<(Tenant, Asset)>, StoreError> {
        contingent_credits::above(&mut self.inner.read().await?, mode, total).await
    }
}

#[async_trait]
impl PartnerStore for PostgresStore {
    async fn partner_begin(&self, name: &'static str) -> Result<Box<dyn PartnerTx>, StoreError> {
        let engine = PgTx::begin_change(self, name).await?;
        Ok(Box::new(StoreTx::new(Box::new(engine))))
    }

    async fn master_key_fingerprint(&self) -> Result<Option<String>, StoreError> {
        let mut conn = self.inner.read().await?;
        store_sql::config::fingerprint_kept(conn.connection()).await
    }

    async fn master_key_check(&self, fingerprint: &str) -> Result<String, StoreError> {
        let mut tx = PgTx::begin(self, "master_key_check").await?;
        let stored = store_sql::config::master_key(tx.connection(), fingerprint).await?;
        tx.finish().await?;
        Ok(stored)
    }
}

#[async_trait]
impl ProvisionStore for PostgresStore {
    async fn provision_begin(
        &self,
        name: &'static str,
    ) -> Result<Box<dyn ProvisionTx>, StoreError> {
        let engine = PgTx::begin_change(self, name).await?;
        Ok(Box::new(StoreTx::new(Box::new(engine))))
    }
}
