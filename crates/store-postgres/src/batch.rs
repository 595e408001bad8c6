//! The batched writes: five exchanges with the server, independent of the batch's size.
//!
//! The exchanges are: begin; take the batch's partner locks; read the batch state and the clock, one row for each command;
//! write the opened trades and count the rows; commit. Sets are sent as arrays, one for each column. A batch leaves out partners
//! whose lock another transaction holds, so that no other partner waits for them.

pub(crate) mod load;
pub(crate) mod write;

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use instruments::failpoint::around;
use instruments::store::Transaction as Measured;
use kernel::{Mode, StoreError, StoreResult, Timestamp};
use partner_core::PartnerId;
use pools_core::batch::{Decision, TransactCommand, decide_batch};
use pools_core::ports::{CLOCK_TOLERANCE, NewQuote, QuoteStore, TransactStore};
use pools_core::quote::Quote;
use store_sql::quotes::inserted;

use crate::clock::StoreClock;
use crate::conn::Conn;
use crate::partner_lock::{Locks, PartnerLock};
use crate::pool::Tx;
use crate::{PostgresStore, errors, partner_lock, quotes};

#[async_trait]
impl QuoteStore for PostgresStore {
    /// Inserts the quotes with one statement that commits by itself. Quotes move no money, so they need no lock.
    async fn quotes_open(&self, batch: &[NewQuote]) -> StoreResult<Vec<Quote>> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let clock = &self.inner.clock;
        let mut conn = self.inner.writing_conn().await?;
        let measured = Measured::begin("quotes_open");
        let inserting = quotes::insert_all(&mut conn, batch, clock.instants(), CLOCK_TOLERANCE);
        let mut opened = None;
        let committing = async {
            opened = Some(around("quote.insert", inserting).await?);
            Ok(())
        };
        measured.commit(committing).await?;
        let opened = opened.ok_or_else(|| errors::rows("quotes", batch.len(), 0))?;
        let at = clock.take(opened.base, opened.at)?;
        StoreClock::check_moving(opened.base, at)?;
        inserted(batch, at, opened.rows)
    }
}

#[async_trait]
impl TransactStore for PostgresStore {
    async fn transact(&self, batch: &[TransactCommand]) -> StoreResult<Vec<Decision>> {
        let Some(mode) = TransactCommand::mode_of(batch)? else {
            return Ok(Vec::new());
        };
        let mut tx = self.inner.write().await?;
        let measured = Measured::begin("transact");
        let held = lock(&mut tx, mode, batch, Locks::Wait).await?;
        self.transact_locked(tx, measured, (mode, batch, &held))
            .await
    }

    async fn transact_unlocked(
        &self,
        batch: &[TransactCommand],
    ) -> StoreResult<Vec<Option<Decision>>> {
        let Some(mode) = TransactCommand::mode_of(batch)? else {
            return Ok(Vec::new());
        };
        let mut tx = self.inner.batch_tx().await?;
        let measured = Measured::begin("transact");
        let held = lock(&mut tx, mode, batch, Locks::Skip).await?;
        let locked = locked(&mut tx, mode, batch, &held).await?;
        if locked.is_empty() {
            let decided = self.transact_locked(tx, measured, (mode, batch, &held));
            return Ok(decided.await?.into_iter().map(Some).collect());
        }
        let is_locked = |command: &&TransactCommand| locked.contains(&command.scope.tenant.partner);
        let free: Vec<TransactCommand> = batch
            .iter()
            .filter(|one| !is_locked(one))
            .cloned()
            .collect();
        if free.is_empty() {
            tx.rollback().await.map_err(errors::statement)?;
            return Ok(batch.iter().map(|_| None).collect());
        }
        let decided = self.transact_locked(tx, measured, (mode, &free, &held));
        let mut decided = decided.await?.into_iter();
        let each = batch
            .iter()
            .map(|one| (!is_locked(&one)).then(|| decided.next()));
        Ok(each.map(Option::flatten).collect())
    }
}

impl PostgresStore {
    /// Runs a batch after its partner locks were taken.
    async fn transact_locked(
        &self,
        mut tx: Tx,
        mut measured: Measured,
        (mode, batch, held): (Mode, &[TransactCommand], &BTreeMap<PartnerId, PartnerLock>),
    ) -> StoreResult<Vec<Decision>> {
        let loading = load::load(&self.inner, &mut tx, mode, batch, held);
        let mut loaded = around("transact.load", loading).await?;
        let context = BatchContext {
            mode,
            now: loaded.now,
        };
        let deciding =
            async { Ok::<_, StoreError>(decide_batch(&mut loaded.state, batch, context.now)) };
        let outcomes = around("transact.decide", deciding).await?;
        if loaded.writes_nothing() {
            tx.rollback().await.map_err(errors::statement)?;
            return Ok(outcomes);
        }
        if !loaded.state.opened.is_empty() {
            StoreClock::check_moving(loaded.base, context.now)?;
        }
        around("trade.insert", context.write(&mut tx, &loaded)).await?;
        measured.step("none", "reserved", loaded.state.opened.len());
        let committing = async { tx.commit().await.map_err(errors::commit) };
        measured.commit(committing).await?;
        Ok(outcomes)
    }
}

async fn lock(
    tx: &mut Conn,
    mode: Mode,
    batch: &[TransactCommand],
    locks: Locks,
) -> StoreResult<BTreeMap<PartnerId, PartnerLock>> {
    let partners = load::partners(batch);
    let locking = partner_lock::take(tx, mode, &partners, locks);
    around("transact.lock", locking).await
}

/// The partners of a batch whose lock another transaction holds. Queries the database only if some locks are missing.
async fn locked(
    tx: &mut Conn,
    mode: Mode,
    batch: &[TransactCommand],
    held: &BTreeMap<PartnerId, PartnerLock>,
) -> StoreResult<BTreeSet<PartnerId>> {
    let is_held = |name: &str| held.keys().any(|partner| partner.as_str() == name);
    let mut missing = load::partners(batch);
    missing.retain(|name| !is_held(name));
    if missing.is_empty() {
        return Ok(BTreeSet::new());
    }
    partner_lock::existing(tx, mode, &missing).await
}

#[derive(Clone, Copy)]
struct BatchContext {
    mode: Mode,
    now: Timestamp,
}
