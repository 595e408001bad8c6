//! The desks where use cases hand in writes: lanes in front of the store, as many as
//! it has use for.

use std::sync::Arc;

use async_trait::async_trait;
use coordination::{BatchRunner, LaneOptions, Lanes};
use kernel::{Clock, Entropy, StoreError};
use pools_core::books::{Command, Outcome, Refusal, decide_batch};
use pools_core::ports::{
    NewQuote, QuoteBooks, QuoteDesk, TransactBooks, TransactDesk, TransactLooks,
};
use pools_core::quote::Quote;

use crate::looks::{Looks, RecentQuotes};
use crate::store::Store;

type Decision = Result<Outcome, Refusal>;

/// Executes commands in lanes.
#[derive(Debug)]
pub struct TransactLanes(Lanes<Command, Decision>);

impl TransactLanes {
    /// Starts the lanes. Must be called within a tokio runtime.
    pub fn start(store: &Arc<dyn Store>, entropy: &Arc<dyn Entropy>) -> Self {
        let runner: Arc<dyn BatchRunner<Command, Decision>> = Arc::new(Transacts(store.clone()));
        let options = LaneOptions::new("transact");
        Self(Lanes::start(
            store.lanes(),
            options,
            |command| &command.scope.tenant,
            &runner,
            entropy,
        ))
    }

    /// Runs what has queued and refuses the rest.
    pub async fn shut_down(&self) {
        self.0.shut_down().await;
    }
}

#[async_trait]
impl TransactDesk for TransactLanes {
    async fn transact(&self, command: Command) -> Result<Decision, StoreError> {
        self.0.submit(command).await
    }
}

/// Stores quotes in lanes, and remembers them for a while.
#[derive(Debug)]
pub struct QuoteLanes {
    lanes: Lanes<NewQuote, Quote>,
    recent: Arc<RecentQuotes>,
}

impl QuoteLanes {
    /// Starts the lanes. Must be called within a tokio runtime.
    pub fn start(store: &Arc<dyn Store>, entropy: &Arc<dyn Entropy>) -> Self {
        let runner: Arc<dyn BatchRunner<NewQuote, Quote>> = Arc::new(Quotes(store.clone()));
        let options = LaneOptions::new("quote");
        let lanes = Lanes::start(store.lanes(), options, |quote| &quote.who, &runner, entropy);
        Self {
            lanes,
            recent: Arc::default(),
        }
    }

    /// Where transacts look for quotes: among those stored here lately, then in the store.
    pub fn looks(&self, store: Arc<dyn TransactLooks>, clock: &Arc<dyn Clock>) -> Looks {
        Looks::new(&self.recent, store, clock)
    }

    /// Runs what has queued and refuses the rest.
    pub async fn shut_down(&self) {
        self.lanes.shut_down().await;
    }
}

#[async_trait]
impl QuoteDesk for QuoteLanes {
    async fn quote_open(&self, quote: NewQuote) -> Result<Quote, StoreError> {
        let who = quote.who.clone();
        let stored = self.lanes.submit(quote).await?;
        self.recent.put(who, &stored);
        Ok(stored)
    }
}

struct Transacts(Arc<dyn TransactBooks>);

#[async_trait]
impl BatchRunner<Command, Decision> for Transacts {
    async fn run(&self, batch: &[Command]) -> Result<Vec<Decision>, StoreError> {
        self.0.transact(batch, decide_batch).await
    }
}

struct Quotes(Arc<dyn QuoteBooks>);

#[async_trait]
impl BatchRunner<NewQuote, Quote> for Quotes {
    async fn run(&self, batch: &[NewQuote]) -> Result<Vec<Quote>, StoreError> {
        self.0.quotes_open(batch).await
    }
}
