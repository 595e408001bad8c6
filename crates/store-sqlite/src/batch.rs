//! The batched writes: one transaction, and one statement per table, whatever the batch's size.
//!
//! The sets travel as JSON: an array of rows, each an array of its columns, which `json_each`
//! takes apart in half the time it takes for objects.

pub(crate) mod load;
pub(crate) mod write;

use std::collections::BTreeSet;

use async_trait::async_trait;
use instruments::failpoint::{Step, around};
use instruments::store::Transaction as Measured;
use kernel::planted::{self, planted};
use kernel::{Mode, StoreError, Timestamp};
use pools_core::batch::{Decision, TransactCommand, decide_batch};
use pools_core::ports::{NewQuote, QuoteStore, TransactStore};
use pools_core::quote::Quote;

use crate::{SqliteStore, clock, errors, quotes};

#[async_trait]
impl QuoteStore for SqliteStore {
    async fn quotes_open(&self, batch: &[NewQuote]) -> Result<Vec<Quote>, StoreError> {
        let mut tx = self.inner.write().await?;
        let measured = Measured::begin("quotes_open");
        let now = self.inner.clock.locked(&mut tx).await?;
        self.inner.clock.moving()?;
        let inserting = quotes::insert_all(&mut tx, batch, now);
        let opened = around(Step::QuoteInsert, inserting).await?;
        clock::keep(&mut tx, now).await?;
        let committing = async { tx.commit().await.map_err(errors::commit) };
        measured
            .commit(around(Step::QuoteCommit, committing))
            .await?;
        Ok(opened)
    }
}

#[async_trait]
impl TransactStore for SqliteStore {
    async fn transact(&self, batch: &[TransactCommand]) -> Result<Vec<Decision>, StoreError> {
        let Some(mode) = one_mode(batch)? else {
            return Ok(Vec::new());
        };
        let stale = planted(planted::STALE_EXPIRY).then(|| self.inner.clock.now());
        // The writer's lock is everybody's lock: from here on nothing else changes.
        let mut tx = around(Step::TransactLock, self.inner.write()).await?;
        let mut measured = Measured::begin("transact");
        let now = stale.unwrap_or(self.inner.clock.locked(&mut tx).await?);
        let lane = Lane { mode, now };
        let loading = lane.load(&self.inner, &mut tx, batch);
        let mut loaded = around(Step::TransactLoad, loading).await?;
        let judging =
            async { Ok::<_, StoreError>(decide_batch(&mut loaded.books, batch, lane.now)) };
        let outcomes = around(Step::TransactChecks, judging).await?;
        if !loaded.books.opened.is_empty() {
            self.inner.clock.moving()?;
        }
        lane.write(&mut tx, &loaded).await?;
        measured.step("none", "reserved", loaded.books.opened.len());
        let committing = async { tx.commit().await.map_err(errors::commit) };
        measured
            .commit(around(Step::TransactCommit, committing))
            .await?;
        Ok(outcomes)
    }
}

/// A process runs in one mode, so a batch has one; the books know partners by their name alone.
fn one_mode(batch: &[TransactCommand]) -> Result<Option<Mode>, StoreError> {
    let modes: BTreeSet<Mode> = batch
        .iter()
        .map(|command| command.scope.tenant.mode)
        .collect();
    if modes.len() > 1 {
        return Err(StoreError::unexpected("a batch of commands of both modes"));
    }
    Ok(modes.first().copied())
}

#[derive(Clone, Copy)]
struct Lane {
    mode: Mode,
    now: Timestamp,
}
