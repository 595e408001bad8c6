//! The batch queues of production, with injected faults of a commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use coordination::PartnerQueues;
use kernel::{Clock, Entropy, StoreError, StoreResult};
use parking_lot::Mutex;
use partner_core::ports::Submit;
use pools_core::batch::{Decision, TransactCommand};
use pools_core::ports::{NewQuote, TransactStore};
use pools_core::quote::Quote;
use pools_core::usecases::catch_up::CatchUpVelocity;
use runtime::Store;
use runtime::preflight::{CachedPreflight, start_quote_queues, start_transact_queues};

/// A fault of the next transact's commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueFault {
    /// The transact commits, and its outcome is lost.
    CommittedUnheard,
    /// The transact does not commit, and its outcome is lost.
    LostUnheard,
    /// The store is unavailable.
    Away,
    /// The queue is full.
    Full,
    /// The batch commits, and the program panics before it replies.
    CommittedPanicked,
}

/// The queues of both kinds of writes, with what the use cases need around them.
pub(crate) struct Queues {
    pub(crate) preflight: Arc<CachedPreflight>,
    pub(crate) catch_up: CatchUpVelocity,
    transacts: PartnerQueues<TransactCommand, Decision>,
    quotes: PartnerQueues<NewQuote, Quote>,
    fault: Mutex<Option<QueueFault>>,
    panics: Arc<AtomicBool>,
}

/// A store whose next batch panics after its commit if the flag is set.
struct Panicking {
    store: Arc<dyn TransactStore>,
    panics: Arc<AtomicBool>,
}

impl Panicking {
    fn panic_once(&self) {
        let panics = self.panics.swap(false, Ordering::SeqCst);
        assert!(!panics, "between commit and response");
    }
}

#[async_trait]
impl TransactStore for Panicking {
    async fn transact(&self, batch: &[TransactCommand]) -> StoreResult<Vec<Decision>> {
        let decisions = self.store.transact(batch).await;
        self.panic_once();
        decisions
    }

    async fn transact_unlocked(
        &self,
        batch: &[TransactCommand],
    ) -> StoreResult<Vec<Option<Decision>>> {
        let decisions = self.store.transact_unlocked(batch).await;
        self.panic_once();
        decisions
    }
}

impl Queues {
    pub(crate) fn new(
        store: &Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        window: Duration,
        entropy: &Arc<dyn Entropy>,
    ) -> Self {
        let panics = Arc::<AtomicBool>::default();
        let panicking = Arc::new(Panicking {
            store: store.clone(),
            panics: Arc::clone(&panics),
        });
        let preflight = Arc::new(CachedPreflight::new(store.clone(), clock));
        Self {
            transacts: start_transact_queues(store, panicking, &preflight, entropy),
            quotes: start_quote_queues(store, &preflight, entropy),
            preflight,
            catch_up: CatchUpVelocity {
                store: store.clone(),
                window,
            },
            fault: Mutex::new(None),
            panics,
        }
    }

    /// Injects this fault into the next transact.
    pub(crate) fn fail_next(&self, fault: QueueFault) {
        *self.fault.lock() = Some(fault);
    }

    pub(crate) async fn shut_down(&self) {
        self.transacts.shut_down().await;
        self.quotes.shut_down().await;
    }
}

#[async_trait]
impl Submit<TransactCommand, Decision> for Queues {
    async fn submit(&self, command: TransactCommand) -> StoreResult<Decision> {
        let fault = self.fault.lock().take();
        match fault {
            None => self.transacts.submit(command).await,
            Some(QueueFault::CommittedUnheard) => {
                self.transacts.submit(command).await?.unwrap();
                Err(StoreError::CommitUnknown("the connection broke".into()))
            }
            Some(QueueFault::LostUnheard) => {
                Err(StoreError::CommitUnknown("the connection broke".into()))
            }
            Some(QueueFault::Away) => Err(StoreError::unavailable("the disk is away")),
            Some(QueueFault::Full) => Err(StoreError::Overloaded),
            Some(QueueFault::CommittedPanicked) => {
                self.panics.store(true, Ordering::SeqCst);
                self.transacts.submit(command).await
            }
        }
    }
}

#[async_trait]
impl Submit<NewQuote, Quote> for Queues {
    async fn submit(&self, quote: NewQuote) -> StoreResult<Quote> {
        self.quotes.submit(quote).await
    }
}
