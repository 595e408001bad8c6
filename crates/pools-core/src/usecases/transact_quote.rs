//! Executing a firm quote, exactly once.
//!
//! Only one transact at a time works on a quote. Others wait for it, so that the engine receives one hold of a quote
//! at a time. The preflight checks access, velocity cap and balance on figures that were read outside the
//! transaction. If the figures do not allow the trade, the command is queued without a hold, because only the
//! transaction may refuse.
//!
//! The engine is asked under the trade's id, outside any transaction, before the command is queued. The engine's
//! response is checked last, so an earlier refusal has priority. After the commit the hold is confirmed; after a
//! refusal it is released, unless it was never sent. A hold that is neither confirmed nor released lapses at the engine.

use std::sync::Arc;
use std::time::Duration;

use crate::profile::{PoolId, PoolsProfile};
use kernel::{Clock, Entropy, Seen, StoreError, StoreResult};
use partner_core::idempotency::{Fingerprint, OperationKey, Scope};
use partner_core::ports::{InFlight, Ticket};
use partner_core::{Access, Tenant};

use crate::batch::{self, Decision, Refusal, TransactCommand, TransactOutcome};
use crate::ledger::EntryId;
use crate::ports::{
    Confirmation, Engine, Hold, Order, Recalled, TransactPreflight, TransactQueue, TransactSnapshot,
};
use crate::quote::{Quote, QuoteClosed, QuoteId, QuoteOutcome, Terms};
use crate::trade::{Trade, TradeId};
use crate::usecases::catch_up::CatchUpVelocity;
use crate::velocity::STEP;

/// Margin of the wait for another transact of the quote, beyond the engine's timeout. A poll's lease has the same
/// margin.
const TURN_MARGIN: Duration = Duration::from_secs(2);

/// Executes quotes.
#[derive(Clone)]
pub struct TransactQuote {
    /// The reads before the engine is asked.
    pub preflight: Arc<dyn TransactPreflight>,
    /// The queue that runs commands in batches.
    pub queue: Arc<TransactQueue>,
    /// Moves a velocity total that lags its window.
    pub catch_up: CatchUpVelocity,
    /// The liquidity engine.
    pub engine: Arc<dyn Engine>,
    /// Detects concurrent twins early.
    pub in_flight: Arc<dyn InFlight>,
    /// The clock for ids.
    pub clock: Arc<dyn Clock>,
    /// Randomness for ids.
    pub entropy: Arc<dyn Entropy>,
}

/// A transact request with a valid form.
#[derive(Debug, Clone)]
pub struct Transact {
    /// The pool in the path.
    pub pool: PoolId,
    /// The quote to execute.
    pub quote: QuoteId,
    /// The client's key, with the operation it was sent to.
    pub key: OperationKey,
}

/// Why a transact created no trade.
#[derive(Debug, thiserror::Error)]
pub enum TransactError {
    /// A request with the same key is in progress.
    #[error("a request with the same idempotency key is in progress")]
    InProgress,
    /// Another transact of the quote was still in progress when this one stopped waiting.
    #[error("another transact of the quote is in progress")]
    QuoteInProgress,
    /// A rule refused it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Transact {
    /// The fingerprint of the field that the route reads, as canonical JSON.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(format!("{{\"quoteId\":\"{}\"}}", self.quote).as_bytes())
    }
}

impl TransactQuote {
    /// Executes a quote, or returns the trade that it already has.
    ///
    /// # Errors
    /// [`TransactError`]. Unless the commit is unknown, the quote is unchanged.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(quote.id = %request.quote))]
    pub async fn transact(
        &self,
        access: &Access<PoolsProfile>,
        request: Transact,
    ) -> Result<TransactOutcome, TransactError> {
        let command = self.command(access, &request);
        let _ticket = self
            .in_flight
            .enter(&command.scope)
            .await
            .ok_or(TransactError::InProgress)?;
        let Some(turn) = self.turn(access, &request).await else {
            return self.overtaken(access, &command).await;
        };
        match self.preflight(access, &command).await? {
            Assessment::Existing(trade) => Ok(TransactOutcome::Existing(trade)),
            Assessment::Executable(quote) => self.execute(&quote, command, turn).await,
            Assessment::Refusable(quote) => {
                match self.submit(command.clone()).await {
                    // The transaction found no other reason to refuse, so the figures have changed since the
                    // preflight.
                    Ok(Err(Refusal::EngineUnavailable)) => {
                        self.execute(&quote, command, turn).await
                    }
                    decided => Ok(decided??),
                }
            }
        }
    }

    /// How long until the trade of a quote fits under the partner's velocity cap, if no other trade is created. `None` if it never
    /// does, or if the partner has no cap.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn wait_for_cap(
        &self,
        access: &Access<PoolsProfile>,
        quote: QuoteId,
    ) -> StoreResult<Option<Duration>> {
        let (who, store) = (&access.tenant, &self.catch_up.store);
        let Some(cap) = access.profile.velocity_cap else {
            return Ok(None);
        };
        let Some(quote) = store.quote_get(who, quote).await? else {
            return Ok(None);
        };
        let Some(counted) = store.counted_trades(who, STEP).await? else {
            return Ok(None);
        };
        let (notional, window) = (quote.value.terms.notional, self.catch_up.window);
        let fits_from = counted.value.fits_from(notional, cap, window);
        Ok(fits_from.map(|at| at.since(counted.at)))
    }

    /// The command of a request, for which no engine has been asked.
    fn command(&self, access: &Access<PoolsProfile>, request: &Transact) -> TransactCommand {
        let (mode, entropy) = (access.tenant.mode, self.entropy.as_ref());
        TransactCommand {
            key: access.key.id,
            scope: Scope::of_request(access.tenant.clone(), request.key.clone()),
            fingerprint: request.fingerprint(),
            pool: request.pool,
            quote: request.quote,
            trade: TradeId::new(mode, self.clock.now(), entropy),
            entry: EntryId::new(mode, self.clock.now(), entropy),
            engine: self.engine.name(),
            hold: None,
        }
    }

    /// Queues a command, and again after its velocity total has caught up.
    async fn submit(&self, command: TransactCommand) -> StoreResult<Decision> {
        let submit = |command| self.queue.submit(command);
        self.catch_up.submit(command, submit).await
    }

    /// The outcome of a transact that stopped waiting: the quote's trade, if it has one now.
    async fn overtaken(
        &self,
        access: &Access<PoolsProfile>,
        command: &TransactCommand,
    ) -> Result<TransactOutcome, TransactError> {
        let (scope, pool) = (&command.scope, &command.pool);
        let reading = self.preflight.transact_snapshot(scope, pool, command.quote);
        match assess(access, command, reading.await?)? {
            Assessment::Existing(trade) => Ok(TransactOutcome::Existing(trade)),
            Assessment::Executable(_) | Assessment::Refusable(_) => {
                Err(TransactError::QuoteInProgress)
            }
        }
    }

    /// Waits until no other transact works on the quote; `None` if that took too long.
    async fn turn(&self, access: &Access<PoolsProfile>, request: &Transact) -> Option<Ticket> {
        let scope = Scope::of_object(access.tenant.clone(), "transact of a quote", request.quote);
        let timeout = self.engine.timeout().saturating_add(TURN_MARGIN);
        self.in_flight.enter_within(&scope, timeout).await
    }

    async fn preflight(
        &self,
        access: &Access<PoolsProfile>,
        command: &TransactCommand,
    ) -> Result<Assessment, TransactError> {
        if let Some(quote) = self.recall(access, command) {
            return Ok(Assessment::Executable(quote));
        }
        let (scope, pool) = (&command.scope, &command.pool);
        let reading = self.preflight.transact_snapshot(scope, pool, command.quote);
        Ok(assess(access, command, reading.await?)?)
    }

    /// A quote that was just created, if the remembered figures allow the trade. If they do not, the stored state is read,
    /// because a refusal from memory could name another reason than the first one.
    fn recall(&self, access: &Access<PoolsProfile>, command: &TransactCommand) -> Option<Quote> {
        let tenant = &access.tenant;
        let Recalled { quote, funds, at } = self.preflight.quote_recall(tenant, command.quote)?;
        let fits = quote.terms.pool == command.pool;
        let fits = fits && batch::forecast(access, command, &quote, &funds, at).is_ok();
        fits.then_some(quote)
    }

    /// Asks the engine to hold, submits the command, and confirms or releases the hold.
    async fn execute(
        &self,
        quote: &Quote,
        mut command: TransactCommand,
        turn: Ticket,
    ) -> Result<TransactOutcome, TransactError> {
        let (trade, order) = (command.trade, order_of(&quote.terms));
        let who = command.scope.tenant.clone();
        let holding = self.engine.hold(&who, trade, &order, quote.terms.output());
        let hold = holding.await;
        command.hold = hold;
        let mut outcome = self.submit(command).await;
        // The queue ran the command again after its commit: this request has created the trade.
        if let Ok(Ok(TransactOutcome::Existing(own))) = &outcome
            && own.id == trade
        {
            outcome = Ok(Ok(TransactOutcome::Opened(own.clone())));
        }
        // After the quote has its trade, no other transact of it asks the engine.
        let _turn = (!matches!(outcome, Ok(Ok(_)))).then_some(turn);
        // The engine has nothing to confirm or to release after its refusal, or if it was never asked.
        if !matches!(hold, Some(Hold::Refused | Hold::Unsent)) {
            self.notify_engine(&who, trade, &outcome).await;
        }
        Ok(outcome??)
    }

    /// Confirms the hold after the commit, so that the engine may deliver. Releases it after a refusal, also if the engine did
    /// not respond, because it may hold anyway. Does neither after an unknown commit: every poll confirms first, and a hold
    /// without a trade lapses.
    async fn notify_engine(&self, who: &Tenant, trade: TradeId, outcome: &StoreResult<Decision>) {
        match outcome {
            Ok(Ok(TransactOutcome::Opened(_))) => {
                if self.engine.confirm(who, trade).await != Some(Confirmation::Confirmed) {
                    tracing::warn!(trade.id = %trade, "The hold of a new trade could not be confirmed; the next poll will");
                }
            }
            Err(StoreError::CommitUnknown(_)) => {}
            Ok(Ok(TransactOutcome::Existing(_)) | Err(_)) | Err(_) => {
                self.engine.release(who, trade).await;
            }
        }
    }
}

/// Assesses a command by the stored state, without the engine. A refusal here is final; everything else is checked again in
/// the batch.
fn assess(
    access: &Access<PoolsProfile>,
    command: &TransactCommand,
    Seen { value: stored, at }: Seen<TransactSnapshot>,
) -> Result<Assessment, Refusal> {
    batch::key_is_free(stored.answered.as_ref(), &command.fingerprint, at)?;
    // An id of the other mode equals no stored id.
    let named = |quote: &Quote| quote.id == command.quote && quote.terms.pool == command.pool;
    let quote = stored.quote.filter(named).ok_or(Refusal::QuoteUnknown)?;
    if let Some(trade) = stored.trade {
        return Ok(Assessment::Existing(trade));
    }
    batch::side_is_enabled(access, &quote)?;
    if let QuoteOutcome::Rejected(_) = quote.outcome {
        return Err(QuoteClosed::Rejected.into());
    }
    // The snapshot may be older than the batch: the batch decides.
    match batch::forecast(access, command, &quote, &stored.funds, at) {
        Ok(()) => Ok(Assessment::Executable(quote)),
        Err(_) => Ok(Assessment::Refusable(quote)),
    }
}

/// The result of the preflight.
enum Assessment {
    /// The quote has a trade: no engine is asked.
    Existing(Trade),
    /// Nothing refuses the trade: the engine is asked.
    Executable(Quote),
    /// The quote appears expired, or access, cap or balance appear to refuse the trade. The transaction decides,
    /// without a hold.
    Refusable(Quote),
}

/// The order of the locked terms of a quote or trade.
#[must_use]
pub fn order_of(terms: &Terms) -> Order {
    Order {
        pool: terms.pool,
        side: terms.side,
        amount: terms.input(),
        network: terms.network,
        destination: terms.destination.clone(),
    }
}
