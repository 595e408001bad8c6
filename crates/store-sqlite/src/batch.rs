//! The batched writes: one transaction, with one statement per table, independent of the batch's size.
//!
//! Sets are sent as JSON: an array of rows, each an array of its columns. `json_each` reads arrays in half the time of
//! objects.

pub(crate) mod load;
pub(crate) mod write;

use async_trait::async_trait;
use instruments::failpoint::around;
use instruments::store::Transaction as Measured;
use kernel::{Mode, StoreError, StoreResult, Timestamp};
use pools_core::batch::{Decision, TransactCommand, decide_batch};
use pools_core::ports::{NewQuote, QuoteStore, TransactStore};
use pools_core::quote::Quote;

use crate::{SqliteStore, clock, errors, quotes};

#[async_trait]
impl QuoteStore for SqliteStore {
    async fn quotes_open(&self, batch: &[NewQuote]) -> StoreResult<Vec<Quote>> {
        let mut tx = self.inner.write().await?;
        let measured = Measured::begin("quotes_open");
        let now = self.inner.clock.locked(&mut tx).await?;
        self.inner.clock.check_moving()?;
        let inserting = quotes::insert_all(&mut tx, batch, now);
        let opened = around("quote.insert", inserting).await?;
        clock::put(&mut tx, now).await?;
        let committing = async { tx.commit().await.map_err(errors::commit) };
        measured.commit(committing).await?;
        Ok(opened)
    }
}

#[async_trait]
impl TransactStore for SqliteStore {
    async fn transact(&self, batch: &[TransactCommand]) -> StoreResult<Vec<Decision>> {
        let Some(mode) = TransactCommand::mode_of(batch)? else {
            return Ok(Vec::new());
        };
        // SQLite has one write lock: no other transaction changes anything before this one ends.
        let mut tx = around("transact.lock", self.inner.write()).await?;
        let mut measured = Measured::begin("transact");
        let now = self.inner.clock.locked(&mut tx).await?;
        let context = BatchContext { mode, now };
        let loading = context.load(&self.inner, &mut tx, batch);
        let mut loaded = around("transact.load", loading).await?;
        let deciding =
            async { Ok::<_, StoreError>(decide_batch(&mut loaded.state, batch, context.now)) };
        let outcomes = around("transact.decide", deciding).await?;
        if !loaded.state.opened.is_empty() {
            self.inner.clock.check_moving()?;
        }
        context.write(&mut tx, &loaded).await?;
        measured.step("none", "reserved", loaded.state.opened.len());
        let committing = async { tx.commit().await.map_err(errors::commit) };
        measured.commit(committing).await?;
        Ok(outcomes)
    }
}

#[derive(Clone, Copy)]
struct BatchContext {
    mode: Mode,
    now: Timestamp,
}
