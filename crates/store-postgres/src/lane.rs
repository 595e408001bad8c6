//! The batched writes: five exchanges with the server, whatever the batch's size.
//!
//! Begin; take the books of the batch's partners; read everything with the clock, one row for each
//! command; decide; write everything that was opened, and count it; commit. Sets travel as arrays,
//! one for each column.

pub(crate) mod load;
pub(crate) mod write;

use std::collections::BTreeSet;

use async_trait::async_trait;
use failpoints::{Step, around};
use instruments::store::Transaction as Measured;
use kernel::{Mode, StoreError, Timestamp};
use pools_core::books::{Command, Outcome, Refusal};
use pools_core::ports::{CLOCK_TOLERANCE, DecideBatch, NewQuote, QuoteBooks, TransactBooks};
use pools_core::quote::Quote;
use sqlx::{Postgres, Transaction};

use crate::clock::StoreClock;
use crate::{PostgresStore, errors, quotes};

#[async_trait]
impl QuoteBooks for PostgresStore {
    /// Quotes move no money and wait for nobody: one statement, which commits by itself.
    async fn quotes_open(&self, batch: &[NewQuote]) -> Result<Vec<Quote>, StoreError> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let clock = &self.inner.clock;
        let mut conn = self.inner.conn().await?;
        let measured = Measured::begin("quotes_open");
        let inserting = quotes::insert_all(
            &mut conn,
            batch,
            clock.given(),
            clock.last(),
            CLOCK_TOLERANCE,
        );
        let mut opened = None;
        let committing = async {
            opened = Some(around(Step::QuoteInsert, inserting).await?);
            Ok(())
        };
        measured
            .commit(around(Step::QuoteCommit, committing))
            .await?;
        let opened = opened.ok_or_else(|| errors::rows("quotes", batch.len(), 0))?;
        let at = clock.take(opened.base, opened.at)?;
        StoreClock::moving(opened.base, at)?;
        opened.quotes(batch, at)
    }
}

#[async_trait]
impl TransactBooks for PostgresStore {
    async fn transact(
        &self,
        batch: &[Command],
        decide: DecideBatch,
    ) -> Result<Vec<Result<Outcome, Refusal>>, StoreError> {
        let Some(mode) = one_mode(batch)? else {
            return Ok(Vec::new());
        };
        let mut tx = self.inner.lane().await?;
        let mut measured = Measured::begin("transact");
        let partners = load::partners(batch);
        let locking = crate::books::hold(&mut tx, mode, &partners);
        let held = around(Step::TransactLock, locking).await?;
        let loading = load::load(&self.inner, &mut tx, mode, batch, &held);
        let mut loaded = around(Step::TransactLoad, loading).await?;
        let lane = Lane {
            mode,
            now: loaded.now,
            expired: loaded.now.minus(self.inner.options.idempotency_ttl),
        };
        let judging = async { Ok::<_, StoreError>(decide(&mut loaded.books, batch, lane.now)) };
        let outcomes = around(Step::TransactChecks, judging).await?;
        if loaded.writes_nothing() {
            tx.rollback().await.map_err(errors::statement)?;
            return Ok(outcomes);
        }
        if !loaded.books.opened.is_empty() {
            StoreClock::moving(loaded.base, lane.now)?;
        }
        around(Step::TradeInsert, lane.write(&mut tx, &loaded)).await?;
        measured.step("none", "reserved", loaded.books.opened.len());
        measured.commit(committing(tx)).await?;
        Ok(outcomes)
    }
}

async fn committing(tx: Transaction<'static, Postgres>) -> Result<(), StoreError> {
    let committing = async { tx.commit().await.map_err(errors::commit) };
    around(Step::TransactCommit, committing).await
}

/// A process runs in one mode, so a batch has one; the books know partners by their name alone.
fn one_mode(batch: &[Command]) -> Result<Option<Mode>, StoreError> {
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
    /// Idempotency records made at this instant or earlier no longer count.
    expired: Timestamp,
}
