//! The real lanes before the store, with faults of a commit to be played.

use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Clock, Entropy, StoreError};
use parking_lot::Mutex;
use pools_core::books::{Command, Outcome, Refusal};
use pools_core::ports::{NewQuote, QuoteDesk, TransactDesk};
use pools_core::quote::Quote;
use runtime::Store;
use runtime::desk::{QuoteLanes, TransactLanes};
use runtime::looks::Looks;

type Decided = Result<Outcome, Refusal>;

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
}

/// Both lanes.
#[derive(Debug)]
pub(crate) struct Desk {
    transacts: TransactLanes,
    quotes: QuoteLanes,
    fault: Mutex<Option<DeskFault>>,
}

impl Desk {
    pub(crate) fn new(store: &Arc<dyn Store>, entropy: &Arc<dyn Entropy>) -> Self {
        Self {
            transacts: TransactLanes::start(store, entropy),
            quotes: QuoteLanes::start(store, entropy),
            fault: Mutex::new(None),
        }
    }

    pub(crate) fn looks(&self, store: Arc<dyn Store>, clock: &Arc<dyn Clock>) -> Looks {
        self.quotes.looks(store, clock)
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
impl TransactDesk for Desk {
    async fn transact(&self, command: Command) -> Result<Decided, StoreError> {
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
        }
    }
}

#[async_trait]
impl QuoteDesk for Desk {
    async fn quote_open(&self, quote: NewQuote) -> Result<Quote, StoreError> {
        self.quotes.quote_open(quote).await
    }
}
