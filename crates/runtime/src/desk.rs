//! The desks where use cases hand in writes: lanes in front of the store, as many as
//! it has use for.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coordination::{BatchQueueOptions, BatchRunner, PartnerQueues};
use kernel::{Clock, Entropy, StoreError};
use pools_core::batch::{Decision, TransactCommand};
use pools_core::ports::{NewQuote, QuoteQueue, TransactPreflight, TransactQueue, TransactStore};
use pools_core::quote::Quote;
use pools_core::usecases::catch_up::CatchUpVelocity;

use crate::preflight::{CachedPreflight, RecentFunds, RecentQuotes};
use crate::store::Store;

/// Executes commands in lanes, and remembers what they spend.
#[derive(Debug)]
pub struct TransactLanes {
    lanes: PartnerQueues<TransactCommand, Decision>,
    catch_up: CatchUpVelocity,
    funds: Arc<RecentFunds>,
}

impl TransactLanes {
    /// Starts as many lanes as `store` has use for, before `books`. Must be called within a tokio runtime.
    pub fn start(
        store: &Arc<dyn Store>,
        books: Arc<dyn TransactStore>,
        window: Duration,
        entropy: &Arc<dyn Entropy>,
    ) -> Self {
        let runner: Arc<dyn BatchRunner<TransactCommand, Decision>> = Arc::new(Transacts {
            store: store.clone(),
            books,
        });
        // A command finds the trade that an earlier run of it has made.
        let options = BatchQueueOptions::new("transact").repeatable();
        let lanes = PartnerQueues::start(
            store.lanes(),
            options,
            |command| &command.scope.tenant,
            &runner,
            entropy,
        );
        let catch_up = CatchUpVelocity {
            store: store.clone(),
            window,
        };
        Self {
            lanes,
            catch_up,
            funds: Arc::default(),
        }
    }

    /// Runs what has queued and refuses the rest.
    pub async fn shut_down(&self) {
        self.lanes.shut_down().await;
    }
}

#[async_trait]
impl TransactQueue for TransactLanes {
    async fn transact(&self, command: TransactCommand) -> Result<Decision, StoreError> {
        let who = command.scope.tenant.clone();
        let queue = |command| self.lanes.submit(command);
        let decided = self.catch_up.submit(command, queue).await?;
        self.funds.note(&who, &decided);
        Ok(decided)
    }
}

/// Stores quotes in lanes, and remembers them for a while.
#[derive(Debug)]
pub struct QuoteLanes {
    lanes: PartnerQueues<NewQuote, Quote>,
    recent: Arc<RecentQuotes>,
}

impl QuoteLanes {
    /// Starts the lanes. Must be called within a tokio runtime.
    pub fn start(store: &Arc<dyn Store>, entropy: &Arc<dyn Entropy>) -> Self {
        let runner: Arc<dyn BatchRunner<NewQuote, Quote>> = Arc::new(Quotes(store.clone()));
        let options = BatchQueueOptions::new("quote");
        let lanes =
            PartnerQueues::start(store.lanes(), options, |quote| &quote.who, &runner, entropy);
        Self {
            lanes,
            recent: Arc::default(),
        }
    }

    /// Where transacts look for quotes: among those stored here lately, then in the store.
    pub fn looks(
        &self,
        transacts: &TransactLanes,
        store: Arc<dyn TransactPreflight>,
        clock: &Arc<dyn Clock>,
    ) -> CachedPreflight {
        CachedPreflight::new(&self.recent, &transacts.funds, store, clock)
    }

    /// Runs what has queued and refuses the rest.
    pub async fn shut_down(&self) {
        self.lanes.shut_down().await;
    }
}

#[async_trait]
impl QuoteQueue for QuoteLanes {
    async fn quote_open(&self, quote: NewQuote) -> Result<Quote, StoreError> {
        let who = quote.who.clone();
        let stored = self.lanes.submit(quote).await?;
        self.recent.put(who, &stored);
        Ok(stored)
    }
}

struct Transacts {
    store: Arc<dyn Store>,
    books: Arc<dyn TransactStore>,
}

#[async_trait]
impl BatchRunner<TransactCommand, Decision> for Transacts {
    async fn run(&self, batch: &[TransactCommand]) -> Result<Vec<Decision>, StoreError> {
        self.books.transact(batch).await
    }

    async fn run_unlocked(
        &self,
        batch: &[TransactCommand],
    ) -> Result<Vec<Option<Decision>>, StoreError> {
        self.books.transact_unlocked(batch).await
    }

    async fn is_reachable(&self) -> bool {
        self.store.ready().await.is_ok()
    }
}

struct Quotes(Arc<dyn Store>);

#[async_trait]
impl BatchRunner<NewQuote, Quote> for Quotes {
    async fn run(&self, batch: &[NewQuote]) -> Result<Vec<Quote>, StoreError> {
        self.0.quotes_open(batch).await
    }

    /// A quote needs no partner's lock.
    async fn run_unlocked(&self, batch: &[NewQuote]) -> Result<Vec<Option<Quote>>, StoreError> {
        let opened = self.0.quotes_open(batch).await?;
        Ok(opened.into_iter().map(Some).collect())
    }

    async fn is_reachable(&self) -> bool {
        self.0.ready().await.is_ok()
    }
}
