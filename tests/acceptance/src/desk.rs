//! The real batch queues with injected commit faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Clock, Entropy, StoreError};
use parking_lot::Mutex;
use pools_core::batch::{Refusal, TransactCommand, TransactOutcome};
use pools_core::ports::{DecideBatch, NewQuote, QuoteQueue, TransactQueue, TransactStore};
use pools_core::quote::Quote;
use runtime::Store;
use runtime::desk::{QuoteLanes, TransactLanes};
use runtime::preflight::CachedPreflight;

type Decided = Result<TransactOutcome, Refusal>;

/// A fault of the next transact's commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeskFault {
    /// Commits, but the outcome of the commit is unknown to the caller.
    CommittedUnheard,
    /// Does not commit; the outcome of the commit is unknown to the caller.
    LostUnheard,
    /// The store is unavailable.
    Away,
    /// The queue is full.
    Full,
    /// The batch commits, then the program panics before it responds.
    CommittedPanicked,
}

/// Both batch queues.
#[derive(Debug)]
pub(crate) struct Desk {
    transacts: TransactLanes,
    quotes: QuoteLanes,
    fault: Mutex<Option<DeskFault>>,
    panics: Arc<AtomicBool>,
}

/// The store's batches. The next one panics after its commit if the test requests it.
struct Panicking {
    books: Arc<dyn TransactStore>,
    panics: Arc<AtomicBool>,
}

#[async_trait]
impl TransactStore for Panicking {
    async fn transact(
        &self,
        batch: &[TransactCommand],
        decide: DecideBatch,
    ) -> Result<Vec<Decided>, StoreError> {
        let answers = self.books.transact(batch, decide).await;
        let panics = self.panics.swap(false, Ordering::SeqCst);
        assert!(!panics, "between commit and response");
        answers
    }

    async fn transact_unlocked(
        &self,
        batch: &[TransactCommand],
        decide: DecideBatch,
    ) -> Result<Vec<Option<Decided>>, StoreError> {
        let answers = self.books.transact_unlocked(batch, decide).await;
        let panics = self.panics.swap(false, Ordering::SeqCst);
        assert!(!panics, "between commit and response");
        answers
    }
}

impl Desk {
    pub(crate) fn new(
        store: &Arc<dyn Store>,
        window: Duration,
        entropy: &Arc<dyn Entropy>,
    ) -> Self {
        let panics = Arc::<AtomicBool>::default();
        let books = Arc::new(Panicking {
            books: store.clone(),
            panics: Arc::clone(&panics),
        });
        Self {
            transacts: TransactLanes::start(store, books, window, entropy),
            quotes: QuoteLanes::start(store, entropy),
            fault: Mutex::new(None),
            panics,
        }
    }

    pub(crate) fn looks(&self, store: Arc<dyn Store>, clock: &Arc<dyn Clock>) -> CachedPreflight {
        self.quotes.looks(&self.transacts, store, clock)
    }

    /// The next transact meets this fault.
    pub(crate) fn fail_next(&self, fault: DeskFault) {
        *self.fault.lock() = Some(fault);
    }

    pub(crate) async fn shut_down(&self) {
        self.transacts.shut_down().await;
        self.quotes.shut_down().await;
    }
}

#[async_trait]
impl TransactQueue for Desk {
    async fn transact(&self, command: TransactCommand) -> Result<Decided, StoreError> {
        let fault = self.fault.lock().take();
        match fault {
            None => self.transacts.transact(command).await,
            Some(DeskFault::CommittedUnheard) => {
                self.transacts.transact(command).await?.unwrap();
                Err(StoreError::CommitUnknown("the connection broke".into()))
            }
            Some(DeskFault::LostUnheard) => {
                Err(StoreError::CommitUnknown("the connection broke".into()))
            }
            Some(DeskFault::Away) => Err(StoreError::unavailable("the disk is away")),
            Some(DeskFault::Full) => Err(StoreError::Overloaded),
            Some(DeskFault::CommittedPanicked) => {
                self.panics.store(true, Ordering::SeqCst);
                self.transacts.transact(command).await
            }
        }
    }
}

#[async_trait]
impl QuoteQueue for Desk {
    async fn quote_open(&self, quote: NewQuote) -> Result<Quote, StoreError> {
        self.quotes.quote_open(quote).await
    }
}
