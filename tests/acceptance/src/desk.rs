//! The real lanes before the store, with faults of a commit to be played.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Clock, Entropy, StoreError};
use parking_lot::Mutex;
use pools_core::batch::{Decision, TransactCommand};
use pools_core::ports::{NewQuote, QuoteQueue, TransactQueue, TransactStore};
use pools_core::quote::Quote;
use runtime::Store;
use runtime::desk::{QuoteLanes, TransactLanes};
use runtime::preflight::CachedPreflight;

/// A fault of the next transact's commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeskFault {
    /// It commits, and nobody hears of it.
    CommittedUnheard,
    /// It does not commit, and nobody can tell.
    LostUnheard,
    /// The store is away.
    Away,
    /// The queue is full.
    Full,
    /// Its batch commits, and then the program panics before anyone hears of it.
    CommittedPanicked,
}

/// Both lanes.
#[derive(Debug)]
pub(crate) struct Desk {
    transacts: TransactLanes,
    quotes: QuoteLanes,
    fault: Mutex<Option<DeskFault>>,
    panics: Arc<AtomicBool>,
}

/// The store's books, whose next batch panics after its commit if it is told to.
struct Panicking {
    books: Arc<dyn TransactStore>,
    panics: Arc<AtomicBool>,
}

#[async_trait]
impl TransactStore for Panicking {
    async fn transact(&self, batch: &[TransactCommand]) -> Result<Vec<Decision>, StoreError> {
        let answers = self.books.transact(batch).await;
        let panics = self.panics.swap(false, Ordering::SeqCst);
        assert!(!panics, "between commit and response");
        answers
    }

    async fn transact_unlocked(
        &self,
        batch: &[TransactCommand],
    ) -> Result<Vec<Option<Decision>>, StoreError> {
        let answers = self.books.transact_unlocked(batch).await;
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
    async fn transact(&self, command: TransactCommand) -> Result<Decision, StoreError> {
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
