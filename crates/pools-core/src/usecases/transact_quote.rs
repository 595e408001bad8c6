//! Executing a firm quote, exactly once.
//!
//! One transact at a time works on a quote: others wait for it, so that the engine is asked for one
//! hold of a quote at a time. Before the engine is asked, access, velocity cap and balance are judged
//! on figures that were read outside the transaction. If they speak against the trade, the command
//! enters its lane without a hold: only the transaction refuses.
//!
//! The engine is asked under the trade's id, outside any transaction, before the command enters
//! its lane; its answer is judged last, so an earlier refusal wins. After the commit the hold is
//! confirmed; any refusal lets it go. A hold that neither happened to lapses on the engine's side.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock, Entropy, Seen, StoreError};
use partner_core::Access;
use partner_core::idempotency::{Fingerprint, IdempotencyKey, Scope};
use partner_core::pools::PoolId;
use partner_core::ports::{InFlight, Ticket};

use crate::batch::{self, Decision, Refusal, TransactCommand, TransactOutcome};
use crate::ledger::EntryId;
use crate::ports::{
    Confirmation, Engine, Hold, Order, Recalled, TransactPreflight, TransactQueue, TransactSnapshot,
};
use crate::quote::{Quote, QuoteClosed, QuoteId, QuoteOutcome};
use crate::trade::{Trade, TradeId};

/// How long a transact waits for another one of its quote, beyond the engine's timeout: as long as a
/// poll's lease lasts beyond it.
const TURN_MARGIN: Duration = Duration::from_secs(2);

/// Executes quotes.
#[derive(Clone)]
pub struct TransactQuote {
    /// For the look before the engine is asked.
    pub looks: Arc<dyn TransactPreflight>,
    /// Where commands are handed in.
    pub desk: Arc<dyn TransactQueue>,
    /// The liquidity engine.
    pub engine: Arc<dyn Engine>,
    /// Detects concurrent twins early.
    pub in_flight: Arc<dyn InFlight>,
    /// For ids.
    pub clock: Arc<dyn Clock>,
    /// For ids.
    pub entropy: Arc<dyn Entropy>,
}

impl std::fmt::Debug for TransactQuote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Transacting")
    }
}

/// A transact request whose form is right.
#[derive(Debug, Clone)]
pub struct Transact {
    /// The pool in the path.
    pub pool: PoolId,
    /// The quote to execute.
    pub quote: QuoteId,
    /// The client's key.
    pub key: IdempotencyKey,
}

/// Why a transact made no trade.
#[derive(Debug, thiserror::Error)]
pub enum TransactError {
    /// A request with the same key is being worked on.
    #[error("a request with the same idempotency key is in progress")]
    InProgress,
    /// Another transact of the quote was still being worked on when this one gave up waiting.
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
    /// The route an idempotency key is scoped by.
    #[must_use]
    pub fn route(&self) -> String {
        format!("POST /v1/pools/{}/transact", self.pool)
    }

    /// The fingerprint of what the route reads: the canonical JSON of its one field.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(format!("{{\"quoteId\":\"{}\"}}", self.quote).as_bytes())
    }
}

impl TransactQuote {
    /// Executes a quote, or returns the trade it has already.
    ///
    /// # Errors
    /// [`TransactError`]; the quote is then as it was.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(quote.id = %request.quote))]
    pub async fn transact(
        &self,
        access: &Access,
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
        match self.find(access, &command).await? {
            Looked::Existing(trade) => Ok(TransactOutcome::Existing(trade)),
            Looked::Executable(quote) => self.execute(&quote, command, turn).await,
            Looked::Refusable(quote) => {
                let refused = self.desk.transact(command.clone()).await;
                match refused {
                    // What spoke against it has changed since.
                    Ok(Err(Refusal::EngineUnavailable)) => {
                        self.execute(&quote, command, turn).await
                    }
                    decided => Ok(decided??),
                }
            }
        }
    }

    /// The command of a request, for which no engine has been asked.
    fn command(&self, access: &Access, request: &Transact) -> TransactCommand {
        let (mode, entropy) = (access.tenant.mode, self.entropy.as_ref());
        TransactCommand {
            key: access.key.id,
            scope: Scope {
                tenant: access.tenant.clone(),
                route: request.route(),
                key: request.key.clone(),
            },
            fingerprint: request.fingerprint(),
            pool: request.pool,
            quote: request.quote,
            trade: TradeId::new(mode, self.clock.now(), entropy),
            entry: EntryId::new(mode, self.clock.now(), entropy),
            engine: self.engine.name(),
            hold: None,
        }
    }

    /// Answers a transact that gave up waiting: with the quote's trade, if it has one by now.
    async fn overtaken(
        &self,
        access: &Access,
        command: &TransactCommand,
    ) -> Result<TransactOutcome, TransactError> {
        let (scope, pool) = (&command.scope, &command.pool);
        let seen = self.looks.transact_look(scope, pool, command.quote).await?;
        match self.look(access, command, seen)? {
            Looked::Existing(trade) => Ok(TransactOutcome::Existing(trade)),
            Looked::Executable(_) | Looked::Refusable(_) => Err(TransactError::QuoteInProgress),
        }
    }

    /// Waits until no other transact works on the quote; `None` if that took too long.
    async fn turn(&self, access: &Access, request: &Transact) -> Option<Ticket> {
        let scope = Scope::of_object(access.tenant.clone(), "transact of a quote", request.quote);
        let patience = self.engine.timeout().saturating_add(TURN_MARGIN);
        self.in_flight.enter_within(&scope, patience).await
    }

    async fn find(
        &self,
        access: &Access,
        command: &TransactCommand,
    ) -> Result<Looked, TransactError> {
        if let Some(quote) = self.recall(access, command) {
            return Ok(Looked::Executable(quote));
        }
        let (scope, pool) = (&command.scope, &command.pool);
        let looking = self.looks.transact_look(scope, pool, command.quote);
        Ok(self.look(access, command, looking.await?)?)
    }

    /// A quote that was just made, where only the lane can have anything against it. Refused on what
    /// is remembered, it might be refused for another reason than the first.
    fn recall(&self, access: &Access, command: &TransactCommand) -> Option<Quote> {
        let tenant = &access.tenant;
        let Recalled { quote, funds, at } = self.looks.quote_recall(tenant, command.quote)?;
        let fits = quote.terms.pool == command.pool;
        let fits = fits && batch::forecast(access, command, &quote, &funds, at).is_ok();
        fits.then_some(quote)
    }

    /// Answers what needs no engine from what is stored already. Everything found here is final,
    /// or judged again inside the lane.
    fn look(
        &self,
        access: &Access,
        command: &TransactCommand,
        Seen { value: look, at }: Seen<TransactSnapshot>,
    ) -> Result<Looked, Refusal> {
        batch::key_is_free(look.answered.as_ref(), &command.fingerprint, at)?;
        // An id of the other mode equals none that is stored here.
        let named = |quote: &Quote| quote.id == command.quote && quote.terms.pool == command.pool;
        let quote = look.quote.filter(named).ok_or(Refusal::QuoteUnknown)?;
        if let Some(trade) = look.trade {
            return Ok(Looked::Existing(trade));
        }
        batch::side_is_enabled(access, &quote)?;
        if let QuoteOutcome::Rejected(_) = quote.fate {
            return Err(QuoteClosed::Rejected.into());
        }
        // The look may be a moment older than the lane: the lane decides.
        match batch::forecast(access, command, &quote, &look.funds, at) {
            Ok(()) => Ok(Looked::Executable(quote)),
            Err(_) => Ok(Looked::Refusable(quote)),
        }
    }

    /// Asks the engine to hold, has the command decided, and tells the engine how it ended.
    async fn execute(
        &self,
        quote: &Quote,
        mut command: TransactCommand,
        turn: Ticket,
    ) -> Result<TransactOutcome, TransactError> {
        let (trade, order) = (command.trade, order_of(quote));
        let hold = self.engine.hold(trade, &order, quote.terms.output()).await;
        command.hold = hold;
        let mut outcome = self.desk.transact(command).await;
        // The lane ran the command again after its commit: this request has made the trade.
        if let Ok(Ok(TransactOutcome::Existing(own))) = &outcome
            && own.id == trade
        {
            outcome = Ok(Ok(TransactOutcome::Opened(own.clone())));
        }
        // Once the quote has its trade, no other transact of it asks the engine.
        let _turn = (!matches!(outcome, Ok(Ok(_)))).then_some(turn);
        if hold != Some(Hold::Refused) {
            self.tell_engine(trade, &outcome).await;
        }
        Ok(outcome??)
    }

    /// After the commit a hold is confirmed, so that the engine may deliver; after a refusal it is
    /// let go, also where the engine did not answer: it may hold all the same. After an unknown
    /// commit neither: every poll confirms first, and a hold without a trade lapses.
    async fn tell_engine(&self, trade: TradeId, outcome: &Result<Decision, StoreError>) {
        match outcome {
            Ok(Ok(TransactOutcome::Opened(_))) => {
                if self.engine.confirm(trade).await != Some(Confirmation::Confirmed) {
                    tracing::warn!(trade.id = %trade, "The hold of a new trade could not be confirmed; the next poll will");
                }
            }
            Err(StoreError::CommitUnknown(_)) => {}
            Ok(Ok(TransactOutcome::Existing(_)) | Err(_)) | Err(_) => {
                self.engine.let_go(trade).await;
            }
        }
    }
}

/// What is known before the engine is asked.
enum Looked {
    /// The quote has a trade: no engine is asked.
    Existing(Trade),
    /// The engine is to be asked.
    Executable(Quote),
    /// It looks expired, or access, cap or balance speak against it: the lane decides, without an
    /// engine's answer.
    Refusable(Quote),
}

/// The order a quote or trade stands for.
#[must_use]
pub fn order_of(quote: &Quote) -> Order {
    order_of_terms(&quote.terms)
}

/// The order behind locked terms.
#[must_use]
pub fn order_of_terms(terms: &crate::quote::Terms) -> Order {
    Order {
        pool: terms.pool,
        side: terms.side,
        amount: terms.input(),
        network: terms.network,
        destination: terms.destination.clone(),
    }
}
