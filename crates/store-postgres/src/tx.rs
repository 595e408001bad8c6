//! The write transaction.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::access::GateAccess;
use kernel::{StoreError, StoreResult, Timestamp};
use partner_core::Tenant;
use partner_core::key::KeyId;
use partner_core::ports::UnitOfWork;
use pools_core::trade::TradeStatus;
use store_sql::{Connection, Effects, EngineTx, StoreTx};

use crate::conn::Conn;
use crate::open::Inner;
use crate::partner_lock::{self, Locks, PartnerLock};
use crate::pool::Tx;
use crate::{PostgresStore, clock, config, errors, stats};

/// How often a transaction that holds one partner lock tries to take another.
const MAX_TRIES_FOR_ANOTHER: u32 = 10;
/// The pause after each of these tries.
const BACKOFF_FOR_ANOTHER: Duration = Duration::from_millis(10);

/// A write transaction. It rolls back if it is dropped before its commit.
pub(crate) struct PgTx {
    tx: Tx,
    inner: Arc<Inner>,
    /// Has the transaction run statements before it holds a partner lock?
    touched: bool,
    /// The partner locks it holds; `None` for a partner that does not exist.
    held: BTreeMap<Tenant, Option<PartnerLock>>,
    /// The earliest possible instant of this transaction: the latest instant of the rows it has read.
    floor: i64,
    /// The last instant that the transaction used.
    used: Option<Timestamp>,
    effects: Effects,
}

impl PgTx {
    pub(crate) async fn begin(store: &PostgresStore, name: &'static str) -> StoreResult<Self> {
        let tx = store.inner.write().await?;
        Ok(Self {
            tx,
            inner: Arc::clone(&store.inner),
            touched: false,
            held: BTreeMap::new(),
            floor: 0,
            used: None,
            effects: Effects::begin(name),
        })
    }

    pub(crate) fn conn(&mut self) -> &mut Conn {
        self.touched = true;
        &mut self.tx
    }

    /// Takes the partner lock. Until the transaction ends, no other transaction writes the partner's money or changes its profile or
    /// keys. Returns whether the partner exists.
    async fn lock(&mut self, who: &Tenant) -> StoreResult<bool> {
        if let Some(held) = self.held.get(who) {
            return Ok(held.is_some());
        }
        let held = if self.held.values().any(Option::is_some) {
            self.lock_another(who).await?
        } else {
            self.lock_first(who).await?
        };
        self.floor = self.floor.max(held.map_or(0, |held| held.at));
        self.held.insert(who.clone(), held);
        Ok(held.is_some())
    }

    /// Takes the lock of the first partner, and waits while another transaction holds it. Only a few transactions of a partner wait
    /// with a connection; the others wait for a turn without one.
    async fn lock_first(&mut self, who: &Tenant) -> StoreResult<Option<PartnerLock>> {
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
        let found = partner_lock::take(&mut self.tx, who.mode, &partners, Locks::Wait).await;
        drop(turn);
        Ok(found?.remove(&who.partner))
    }

    /// Takes the lock of one more partner. It waits only briefly, because the partners whose locks it already holds wait too; then it
    /// returns [`StoreError::Retry`].
    async fn lock_another(&mut self, who: &Tenant) -> StoreResult<Option<PartnerLock>> {
        let partners = [who.partner.as_str()];
        for _ in 0..MAX_TRIES_FOR_ANOTHER {
            let found = partner_lock::take(&mut self.tx, who.mode, &partners, Locks::Skip);
            if let Some(held) = found.await?.remove(&who.partner) {
                return Ok(Some(held));
            }
            let existing = partner_lock::existing(&mut self.tx, who.mode, &partners);
            if existing.await?.is_empty() {
                return Ok(None);
            }
            tokio::time::sleep(BACKOFF_FOR_ANOTHER).await;
        }
        Err(StoreError::Retry)
    }

    /// The instant of this transaction, read from the server after the locks taken so far.
    pub(crate) async fn instant(&mut self) -> StoreResult<Timestamp> {
        let server = clock::server(&mut self.tx).await?;
        let now = self.inner.clock.resolve(server, self.floor)?;
        self.used = Some(now);
        Ok(now)
    }

    /// Stores the transaction's instant and commits. A change of configuration also gets a new version, which other processes watch.
    pub(crate) async fn finish(mut self) -> StoreResult<()> {
        let now = match self.used {
            Some(now) => now,
            // The transaction has dated no row, so it commits even while the clock is rejected.
            None => {
                let server = clock::server(&mut self.tx).await?;
                self.inner.clock.seen(server, self.floor)?
            }
        };
        let version = if self.effects.reconfigured {
            Some(config::draw(&mut self.tx).await?)
        } else {
            None
        };
        for (who, _) in self.held.iter().filter(|(_, held)| held.is_some()) {
            partner_lock::put(&mut self.tx, who, now, version).await?;
        }
        if let Some(version) = version {
            config::put(&mut self.tx, version).await?;
        }
        let (effects, inner, tx) = (self.effects, self.inner, self.tx);
        let committing = async { tx.commit().await.map_err(errors::commit) };
        effects.commit(&inner.watchers, committing).await
    }
}

#[async_trait]
impl UnitOfWork for PgTx {
    async fn now(&mut self) -> StoreResult<Timestamp> {
        self.instant().await
    }

    async fn commit(self: Box<Self>) -> StoreResult<()> {
        self.finish().await
    }
}

#[async_trait]
impl EngineTx for PgTx {
    fn connection(&mut self) -> &mut dyn Connection {
        self.conn()
    }

    fn idempotency_ttl(&self) -> Duration {
        self.inner.options.idempotency_ttl
    }

    async fn locked(&mut self, who: &Tenant) -> StoreResult<&mut dyn Connection> {
        self.lock(who).await?;
        Ok(&mut *self.tx)
    }

    fn locks_rows(&self) -> bool {
        true
    }

    /// Takes the partner lock, so the access does not change before the transaction ends.
    async fn access_get(
        &mut self,
        who: &Tenant,
        key: KeyId,
    ) -> StoreResult<Option<Arc<GateAccess>>> {
        self.lock(who).await?;
        let Some(held) = self.held.get(who).copied().flatten() else {
            return Ok(None);
        };
        let wanted = BTreeMap::from([(key, who.partner.clone())]);
        let held = BTreeMap::from([(who.partner.clone(), held)]);
        let found = self.inner.access_of(&mut self.tx, who.mode, &wanted, &held);
        Ok(found.await?.remove(&key))
    }

    fn effects(&mut self) -> &mut Effects {
        &mut self.effects
    }

    async fn lock_known(&mut self, who: &Tenant) -> StoreResult<()> {
        if self.lock(who).await? {
            return Ok(());
        }
        let (mode, partner) = (who.mode, who.partner.as_str());
        Err(StoreError::Guard(format!(
            "books: no partner {partner} of mode {mode}"
        )))
    }

    async fn lock_new(&mut self, who: &Tenant) -> StoreResult<()> {
        partner_lock::create(&mut self.tx, who).await?;
        self.held.remove(who);
        self.lock(who).await.map(drop)
    }

    async fn lock_config(&mut self) -> StoreResult<()> {
        config::lock(self.conn()).await
    }

    async fn count_trade(
        &mut self,
        who: &Tenant,
        from: TradeStatus,
        to: TradeStatus,
    ) -> StoreResult<()> {
        stats::count_trade(&mut self.tx, who, from, to).await
    }

    fn after(&mut self, read: Timestamp) {
        self.floor = self.floor.max(read.millis());
    }

    async fn roll_back(self: Box<Self>) -> StoreResult<()> {
        self.tx.rollback().await.map_err(errors::statement)
    }
}

impl PostgresStore {
    pub(crate) async fn begin_tx(&self, name: &'static str) -> StoreResult<Box<StoreTx>> {
        let engine = PgTx::begin(self, name).await?;
        Ok(Box::new(StoreTx::new(Box::new(engine))))
    }

    /// Begins a change of the configuration. It locks the configuration's version, so such changes are serial.
    pub(crate) async fn begin_change(&self, name: &'static str) -> StoreResult<Box<StoreTx>> {
        let mut engine = PgTx::begin(self, name).await?;
        config::lock(engine.conn()).await?;
        Ok(Box::new(StoreTx::new(Box::new(engine))))
    }
}
