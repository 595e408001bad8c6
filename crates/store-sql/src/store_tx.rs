//! The write transaction of both engines. Each entity's file implements its port for it.

use std::sync::Arc;

use async_trait::async_trait;
use gate_core::access::GateAccess;
use gate_core::profile::GateProfile;
use instruments::failpoint::around;
use kernel::{Cas, StoreError, StoreResult, Timestamp, TraceParent};
use partner_core::Tenant;
use partner_core::key::KeyId;
use partner_core::ports::{AccessTx, UnitOfWork};

use crate::{Connection, EngineTx, Statement, Value};

/// A write transaction. It rolls back if it is dropped before its commit.
pub struct StoreTx {
    pub(crate) engine: Box<dyn EngineTx>,
    /// The request that has caused the events, if no request does the work.
    pub(crate) cause: Option<TraceParent>,
}

impl StoreTx {
    #[must_use]
    pub fn new(engine: Box<dyn EngineTx>) -> Self {
        Self {
            engine,
            cause: None,
        }
    }

    /// See [`EngineTx::locked`].
    pub(crate) async fn locked(&mut self, who: &Tenant) -> StoreResult<&mut dyn Connection> {
        self.engine.locked(who).await
    }

    /// See [`EngineTx::connection`].
    pub(crate) fn connection(&mut self) -> &mut dyn Connection {
        self.engine.connection()
    }

    /// The connection without a lock, for a change of the configuration.
    pub(crate) fn reconfiguring(&mut self) -> &mut dyn Connection {
        self.engine.effects().reconfigured = true;
        self.engine.connection()
    }

    /// The connection for a change of a partner's configuration. The partner must exist.
    pub(crate) async fn reconfiguring_partner(
        &mut self,
        who: &Tenant,
    ) -> StoreResult<&mut dyn Connection> {
        self.engine.effects().reconfigured = true;
        self.engine.lock_known(who).await?;
        Ok(self.engine.connection())
    }

    /// Runs a write of a partner between the two points of a step.
    pub(crate) async fn insert_around(
        &mut self,
        step: &'static str,
        who: &Tenant,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> StoreResult<()> {
        let writing = self.locked(who).await?.execute(statement, values);
        around(step, writing).await.map(drop)
    }

    /// Runs a guarded write of one row of a partner between the two points of a step, and counts a lost race.
    pub(crate) async fn swap_around(
        &mut self,
        step: &'static str,
        who: &Tenant,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> StoreResult<Cas> {
        let writing = self.locked(who).await?.execute(statement, values);
        let written = around(step, writing).await?;
        Ok(self.record_race(Cas::from_rows(written)?))
    }

    /// Returns the outcome of a guarded write, and counts a lost race.
    pub(crate) fn record_race(&mut self, outcome: Cas) -> Cas {
        if outcome == Cas::Lost {
            self.engine.effects().measured.lost();
        }
        outcome
    }
}

/// Refuses a write that breaks a rule of its entity.
pub(crate) fn guard(fits: bool, breach: impl FnOnce() -> String) -> StoreResult<()> {
    if fits {
        return Ok(());
    }
    Err(StoreError::Guard(breach()))
}

/// Refuses a write that changed an unexpected number of rows.
pub fn exactly(table: &'static str, expected: usize, written: u64) -> StoreResult<()> {
    if usize::try_from(written) == Ok(expected) {
        return Ok(());
    }
    Err(rows(table, expected, written))
}

/// The error of a write that changed an unexpected number of rows.
pub fn rows(table: &'static str, expected: usize, written: u64) -> StoreError {
    StoreError::Guard(format!(
        "{table}: {expected} rows expected, {written} written"
    ))
}

#[async_trait]
impl UnitOfWork for StoreTx {
    async fn now(&mut self) -> StoreResult<Timestamp> {
        self.engine.now().await
    }

    async fn commit(self: Box<Self>) -> StoreResult<()> {
        self.engine.commit().await
    }
}

#[async_trait]
impl AccessTx<GateProfile> for StoreTx {
    async fn access_get(
        &mut self,
        who: &Tenant,
        key: KeyId,
    ) -> StoreResult<Option<Arc<GateAccess>>> {
        self.engine.access_get(who, key).await
    }
}
