//! The idempotent frame: how every write of the gate that may carry an idempotency key runs.
//!
//! A replay comes before validation, and locks come before the clock. [`Idempotent::run`] rejects concurrent twins and
//! looks for a stored response. The use case then validates the request, and asks upstreams, outside any transaction.
//! Its [`GateWrite`] decides and writes in one transaction.

use std::sync::Arc;

use async_trait::async_trait;
use kernel::{StoreResult, Timestamp};
use partner_core::races::retry_lost_races;
use partner_core::stored_response::{
    Begin, IdempotentRequest, IdempotentResponse, Render, ResponseStore, ResponseStoreError,
};

use crate::error::GateError;
use crate::ports::{GateStore, GateTx};

/// Runs writes so that a repeat gets the first response.
#[derive(Clone)]
pub struct Idempotent {
    pub store: Arc<dyn GateStore>,
    /// Stores responses.
    pub responses: ResponseStore,
}

/// What one use case does inside the transaction of its write.
#[async_trait]
pub trait GateWrite: Sync {
    /// The rows that `decide` needs.
    type Rows: Send;
    /// What the response is rendered from.
    type Done: Send + Sync;
    /// The error of the use case, with its refusals.
    type Error: From<GateError> + Send;

    /// Labels the transaction in metrics and logs.
    fn name(&self) -> &'static str;

    /// Loads and locks the rows, in the order of [`GateTx`].
    async fn lock(&self, tx: &mut dyn GateTx) -> StoreResult<Self::Rows>;

    /// Decides, then writes. `now` is the store's clock, read after the locks.
    async fn decide(
        &self,
        tx: &mut dyn GateTx,
        rows: Self::Rows,
        now: Timestamp,
    ) -> Result<Decision<Self::Done, Self::Error>, GateError>;
}

/// How a write was decided.
#[derive(Debug)]
pub enum Decision<T, E> {
    /// Allowed: the response is stored and the transaction is committed.
    Done(T),
    /// Refused: the transaction is rolled back.
    Refused(E),
    /// Refused, with writes that are committed: a due expiry, or the first mark of a required verification. No response is
    /// stored.
    RefusedWithWrites(E),
}

impl Idempotent {
    /// Runs a write in one transaction and commits it with its response, or replays the stored response of the request.
    /// Rejects concurrent twins. Without a request it neither replays nor rejects. After a lost race it runs the
    /// transaction again, three times at most.
    ///
    /// `prepare` makes the write. It is awaited only if no response is stored.
    ///
    /// # Errors
    /// The refusal of the use case, or [`GateError`].
    pub async fn run<W: GateWrite>(
        &self,
        request: Option<IdempotentRequest>,
        prepare: impl Future<Output = Result<W, W::Error>>,
        render: &Render<'_, W::Done>,
    ) -> Result<IdempotentResponse, W::Error> {
        let request = request.as_ref();
        let begun = self.responses.begin(request).await;
        let _ticket = match begun.map_err(GateError::from)? {
            Begin::Replay(response) => return Ok(response),
            Begin::Proceed(ticket) => ticket,
        };
        let write = prepare.await?;
        retry_lost_races(|| self.run_once(request, &write, render)).await?
    }

    async fn run_once<W: GateWrite>(
        &self,
        request: Option<&IdempotentRequest>,
        write: &W,
        render: &Render<'_, W::Done>,
    ) -> Result<Result<IdempotentResponse, W::Error>, GateError> {
        let Self { store, responses } = self;
        let mut tx = store.gate_begin(write.name()).await?;
        let stored = responses.lock(tx.as_mut(), request).await?;
        let rows = write.lock(tx.as_mut()).await?;
        let now = tx.now().await?;
        // A twin may have committed after `begin`.
        if let Some(response) = responses.replay(request, stored.as_ref(), now)? {
            return Ok(Ok(response));
        }
        let done = match write.decide(tx.as_mut(), rows, now).await? {
            Decision::Done(done) => done,
            Decision::Refused(refusal) => return Ok(Err(refusal)),
            Decision::RefusedWithWrites(refusal) => {
                tx.commit().await?;
                return Ok(Err(refusal));
            }
        };
        let response = render(&done).map_err(ResponseStoreError::from)?;
        responses
            .store(tx.as_mut(), request, stored.as_ref(), &response, now)
            .await?;
        tx.commit().await?;
        Ok(Ok(IdempotentResponse::First(response)))
    }
}
