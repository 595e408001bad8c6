//! Executing a firm quote, exactly once.
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
use partner_core::ports::InFlight;

use crate::books::{self, Answered, Command, Outcome, Refusal};
use crate::ledger::EntryId;
use crate::ports::{Confirmation, Engine, Hold, Order, TransactDesk, TransactLook, TransactLooks};
use crate::quote::{Fate, Quote, QuoteClosed, QuoteId, QuoteStatus};
use crate::trade::{Trade, TradeId};

/// Executes quotes.
#[derive(Clone)]
pub struct Transacting {
    /// For the look before the engine is asked.
    pub looks: Arc<dyn TransactLooks>,
    /// Where commands are handed in.
    pub desk: Arc<dyn TransactDesk>,
    /// The liquidity engine.
    pub engine: Arc<dyn Engine>,
    /// Detects concurrent twins early.
    pub in_flight: Arc<dyn InFlight>,
    /// For ids.
    pub clock: Arc<dyn Clock>,
    /// For ids.
    pub entropy: Arc<dyn Entropy>,
    /// How long idempotency records count.
    pub idempotency_ttl: Duration,
}

impl std::fmt::Debug for Transacting {
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

impl Transacting {
    /// Executes a quote, or returns the trade it has already.
    ///
    /// # Errors
    /// [`TransactError`]; the quote is then as it was.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(quote.id = %request.quote))]
    pub async fn transact(
        &self,
        access: &Access,
        request: Transact,
    ) -> Result<Outcome, TransactError> {
        let scope = Scope {
            tenant: access.tenant.clone(),
            route: request.route(),
            key: request.key.clone(),
        };
        let _ticket = self
            .in_flight
            .enter(&scope)
            .await
            .ok_or(TransactError::InProgress)?;
        let fingerprint = request.fingerprint();
        let looked = match self.recall(access, &request) {
            Some(quote) => Looked::Executable(quote),
            None => {
                let seen = self.looks.transact_look(&scope, request.quote).await?;
                self.look(access, &request, &fingerprint, seen)?
            }
        };
        let quote = match looked {
            Looked::Existing(trade) => return Ok(Outcome::Existing(trade)),
            Looked::Executable(quote) => Some(quote),
            Looked::Late => None,
        };
        let trade = TradeId::new(access.tenant.mode, self.clock.now(), self.entropy.as_ref());
        let asked = quote.is_some();
        let hold = match quote {
            Some(quote) => {
                let (order, output) = (order_of(&quote), quote.terms.output());
                self.engine.hold(trade, &order, output).await
            }
            None => None,
        };
        let entry = EntryId::new(access.tenant.mode, self.clock.now(), self.entropy.as_ref());
        let key = access.key.id;
        let command = Command {
            key,
            scope,
            fingerprint,
            pool: request.pool,
            quote: request.quote,
            trade,
            entry,
            hold,
        };
        let outcome = self.desk.transact(command).await;
        if asked && hold != Some(Hold::Refused) {
            self.tell_engine(trade, &outcome).await;
        }
        Ok(outcome??)
    }

    /// A quote that was just made, where only the lane can have anything against it. Refused on what
    /// is remembered, it might be refused for another reason than the first.
    fn recall(&self, access: &Access, request: &Transact) -> Option<Quote> {
        let quote = self.looks.quote_recall(&access.tenant, request.quote)?;
        let fits = quote.terms.pool == request.pool;
        (fits && books::side_is_enabled(access, &quote).is_ok()).then_some(quote)
    }

    /// Answers what needs no engine from what is stored already. Everything found here is final,
    /// or judged again inside the lane.
    fn look(
        &self,
        access: &Access,
        request: &Transact,
        fingerprint: &Fingerprint,
        Seen { value: look, at }: Seen<TransactLook>,
    ) -> Result<Looked, Refusal> {
        let record = look.answered.map(|(fingerprint, created_at)| Answered {
            fingerprint,
            created_at,
        });
        books::key_is_free(record.as_ref(), fingerprint, at, self.idempotency_ttl)?;
        // An id of the other mode equals none that is stored here.
        let named = |quote: &Quote| quote.id == request.quote && quote.terms.pool == request.pool;
        let quote = look.quote.filter(named).ok_or(Refusal::QuoteUnknown)?;
        if let Some(trade) = look.trade {
            return Ok(Looked::Existing(trade));
        }
        books::side_is_enabled(access, &quote)?;
        match (quote.fate, quote.status(at)) {
            (Fate::Rejected(_), _) => Err(QuoteClosed::Rejected.into()),
            // The look may be a moment older than the lane: the lane decides.
            (Fate::Consumed(_), _) | (Fate::Open, QuoteStatus::Expired) => Ok(Looked::Late),
            (Fate::Open, _) => Ok(Looked::Executable(quote)),
        }
    }

    /// After the commit a hold is confirmed, so that the engine may deliver; after a refusal it is
    /// let go, also where the engine did not answer: it may hold all the same. After an unknown
    /// commit neither: every poll confirms first, and a hold without a trade lapses.
    async fn tell_engine(
        &self,
        trade: TradeId,
        outcome: &Result<Result<Outcome, Refusal>, StoreError>,
    ) {
        match outcome {
            Ok(Ok(Outcome::Opened(_))) => {
                if self.engine.confirm(trade).await != Some(Confirmation::Confirmed) {
                    tracing::warn!(trade.id = %trade, "The hold of a new trade could not be confirmed; the next poll will");
                }
            }
            Err(StoreError::CommitUnknown(_)) => {}
            Ok(Ok(Outcome::Existing(_)) | Err(_)) | Err(_) => {
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
    /// Too late by the look: the lane decides, without an engine's answer.
    Late,
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
