//! The write transaction.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::access::GateAccess;
use kernel::{StoreResult, Timestamp};
use partner_core::Tenant;
use partner_core::key::KeyId;
use partner_core::ports::UnitOfWork;
use pools_core::trade::TradeStatus;
use sqlx::{Sqlite, SqliteConnection, Transaction};
use store_sql::{Connection, Effects, EngineTx, StoreTx};

use crate::connection::Link;
use crate::open::Inner;
use crate::{SqliteStore, clock, config, errors};

/// A write transaction. It rolls back if it is dropped before its commit.
pub(crate) struct SqliteTx {
    tx: Link<Transaction<'static, Sqlite>>,
    inner: Arc<Inner>,
    /// The last instant that the transaction used.
    used: Option<Timestamp>,
    effects: Effects,
}

impl SqliteTx {
    pub(crate) async fn begin(store: &SqliteStore, name: &'static str) -> StoreResult<Self> {
        let tx = Link(store.inner.write().await?);
        Ok(Self {
            tx,
            inner: Arc::clone(&store.inner),
            used: None,
            effects: Effects::begin(name),
        })
    }

    pub(crate) fn conn(&mut self) -> &mut SqliteConnection {
        &mut self.tx.0
    }

    /// The instant of this transaction. Only the first call reads the stored instant.
    pub(crate) async fn instant(&mut self) -> StoreResult<Timestamp> {
        let now = match self.used {
            Some(_) => self.inner.clock.resolve()?,
            None => self.inner.clock.locked(&mut self.tx.0).await?,
        };
        self.used = Some(now);
        Ok(now)
    }

    /// Stores the transaction's instant and commits. A change of configuration also gets a new version, which other processes watch.
    pub(crate) async fn finish(mut self) -> StoreResult<()> {
        // A transaction that used no instant has dated no row, so it commits even while the clock is rejected.
        let now = match self.used {
            Some(now) => now,
            None => self.inner.clock.seen(&mut self.tx.0).await?,
        };
        clock::put(&mut self.tx.0, now).await?;
        if self.effects.reconfigured {
            config::raise(&mut self.tx.0).await?;
        }
        let (effects, inner, tx) = (self.effects, self.inner, self.tx.0);
        let committing = async { tx.commit().await.map_err(errors::commit) };
        effects.commit(&inner.watchers, committing).await
    }
}

#[async_trait]
impl UnitOfWork for SqliteTx {
    async fn now(&mut self) -> StoreResult<Timestamp> {
        self.instant().await
    }

    async fn commit(self: Box<Self>) -> StoreResult<()> {
        self.finish().await
    }
}

#[async_trait]
impl EngineTx for SqliteTx {
    fn connection(&mut self) -> &mut dyn Connection {
        &mut self.tx
    }

    fn idempotency_ttl(&self) -> Duration {
        self.inner.options.idempotency_ttl
    }

    async fn lock_known(&mut self, _: &Tenant) -> StoreResult<()> {
        Ok(())
    }

    async fn lock_new(&mut self, _: &Tenant) -> StoreResult<()> {
        Ok(())
    }

    async fn lock_config(&mut self) -> StoreResult<()> {
        Ok(())
    }

    /// Takes no lock: a write transaction holds the database's write lock.
    async fn locked(&mut self, _: &Tenant) -> StoreResult<&mut dyn Connection> {
        Ok(&mut self.tx)
    }

    fn locks_rows(&self) -> bool {
        false
    }

    async fn access_get(
        &mut self,
        who: &Tenant,
        key: KeyId,
    ) -> StoreResult<Option<Arc<GateAccess>>> {
        let wanted = BTreeSet::from([key]);
        let found = self.inner.access_of(&mut self.tx.0, who.mode, &wanted);
        let found: Option<Arc<GateAccess>> = found.await?.remove(&key);
        Ok(found.filter(|access| access.tenant == *who))
    }

    fn effects(&mut self) -> &mut Effects {
        &mut self.effects
    }

    async fn count_trade(&mut self, _: &Tenant, _: TradeStatus, _: TradeStatus) -> StoreResult<()> {
        Ok(())
    }

    fn after(&mut self, _: Timestamp) {}

    async fn roll_back(self: Box<Self>) -> StoreResult<()> {
        self.tx.0.rollback().await.map_err(errors::statement)
    }
}

impl SqliteStore {
    pub(crate) async fn begin_tx(&self, name: &'static str) -> StoreResult<Box<StoreTx>> {
        let engine = SqliteTx::begin(self, name).await?;
        Ok(Box::new(StoreTx::new(Box::new(engine))))
    }

    /// Begins a change of the configuration. No other transaction writes at the same time.
    pub(crate) async fn begin_change(&self, name: &'static str) -> StoreResult<Box<StoreTx>> {
        self.begin_tx(name).await
    }
}
