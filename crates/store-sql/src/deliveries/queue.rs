//! The queue of deliveries. Workers claim deliveries by endpoint, and conclude them with the lease's token.
//!
//! A delivery is never due before the earlier open deliveries of its object. So a claim skips few rows, even if many deliveries wait
//! for a failing endpoint.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Cas, Mode, StoreResult, Timestamp};
use partner_core::PartnerId;
use partner_core::events::{EndpointId, Service};
use partner_core::ports::{ClaimRequest, ClaimedDelivery, ConcludedDelivery};
use partner_core::webhooks::delivery::{DeliveryInput, Lease};
use partner_core::webhooks::fairness::{DueEndpoint, allocate};

use super::claim::{Picked, Scan, endpoints_of, first_lease, lapse, pick, queues, take_leases};
use super::step::{Step, stored};
use super::{LeftOutRows, Rows};
use crate::{EngineTx, Reader, Row};

/// Rows by their positions in a batch; `None` for a row that is locked.
pub type FoundRows = BTreeMap<usize, Option<Box<dyn Row>>>;

/// A transaction that claims and concludes many deliveries at once. Each engine passes them to its statements in its own way: SQLite
/// as JSON, and Postgres as arrays. SQLite has one writer, so only Postgres locks rows and skips locked ones.
#[async_trait]
pub trait QueueTx: EngineTx + Sized + 'static {
    /// Identifies a delivery's row in the engine's statements.
    type Key: Clone + Ord + fmt::Display + Send + Sync + 'static;

    /// Reads the key of a delivery's row.
    fn key_of(row: &dyn Row) -> StoreResult<Self::Key>;

    /// Locks the deliveries whose lease has expired, those that expired first.
    async fn lapsed(&mut self, scan: &Scan<'_, Self::Key>, limit: i64) -> StoreResult<Rows>;

    /// Locks the first due deliveries of each endpoint, at most as many as allocated. Leaves out a delivery while an earlier delivery
    /// of its object is open.
    async fn pick(
        &mut self,
        scan: &Scan<'_, Self::Key>,
        allocated: &[(DueEndpoint, u32)],
    ) -> StoreResult<Rows>;

    /// Orders the first delivery of every endpoint before the second of any, unless [`pick`](Self::pick) has returned them so.
    fn in_turn(picked: Vec<Picked<Self::Key>>) -> Vec<Picked<Self::Key>>;

    /// The unexpired secrets of several endpoints, each endpoint's in their order.
    async fn live_secrets(
        &mut self,
        scan: &Scan<'_, Self::Key>,
        endpoints: &BTreeMap<EndpointId, &PartnerId>,
    ) -> StoreResult<Rows>;

    /// Locks the deliveries of a batch and returns them by their positions in it. Returns `None` for a delivery that another
    /// transaction has locked.
    async fn find(&mut self, batch: &[ConcludedDelivery]) -> StoreResult<FoundRows>;

    /// Writes the steps. Fails unless every row is as expected.
    async fn apply(&mut self, steps: &[Step<'_, Self::Key>]) -> StoreResult<()>;

    /// Moves the later deliveries of the objects whose deliveries were concluded. They become due with the concluded delivery if it
    /// will be retried, else now. A delivery that waits after its own failure does not become due earlier, and keeps its former instant
    /// if this is later. The others forget that they were hastened.
    async fn follow(&mut self, steps: &[Step<'_, Self::Key>], now: Timestamp) -> StoreResult<()>;
}

/// Claims due deliveries and divides them among the endpoints.
///
/// # Errors
/// [`StoreError`](kernel::StoreError) of the database, of a rejected clock, or of a delivery whose row changed although it was locked.
pub async fn claim<T: QueueTx>(
    mut tx: Box<T>,
    left_out: &LeftOutRows<T::Key>,
    request: &ClaimRequest,
) -> StoreResult<Vec<ClaimedDelivery>> {
    let now = tx.now().await?;
    let (mode, service) = (request.mode, request.service);
    let scan = Scan {
        mode,
        now,
        left_out,
    };
    let lapsed = lapse(&mut *tx, &scan).await?;
    let mut queues = queues(tx.connection(), service, &scan).await?;
    queues.retain(|queue| queue.since <= now);
    let allocated = allocate(queues, &request.capacity);
    let picked = pick(&mut *tx, &scan, &allocated).await?;
    if lapsed == 0 && picked.is_empty() {
        return Ok(Vec::new());
    }
    let lease = Lease {
        token: request.token,
        until: now.plus(request.lease),
    };
    take_leases(&mut *tx, &scan, &picked, lease).await?;
    let endpoints = endpoints_of(&mut *tx, &scan, &picked, service).await?;
    tx.commit().await?;
    picked
        .into_iter()
        .map(|picked| picked.claimed(mode, &endpoints))
        .collect()
}

/// Records the outcomes of a batch. Waits for no lock: one partner's locked delivery would delay the outcomes of every partner.
///
/// # Errors
/// [`StoreError`](kernel::StoreError) of the database, of a rejected clock, or of a delivery whose row changed although it was locked.
pub async fn conclude<T: QueueTx>(
    mut tx: Box<T>,
    left_out: &LeftOutRows<T::Key>,
    batch: &[ConcludedDelivery],
) -> StoreResult<Vec<Option<Cas>>> {
    let mut found = tx.find(batch).await?;
    let now = tx.now().await?;
    let mut outcomes = vec![Some(Cas::Lost); batch.len()];
    let mut steps = Vec::new();
    for ((place, concluded), outcome) in batch.iter().enumerate().zip(&mut outcomes) {
        let input = DeliveryInput::End(concluded.token, concluded.outcome);
        let found = found.remove(&place);
        if matches!(found, Some(None)) {
            *outcome = None;
        } else if let Some(row) = found.flatten()
            && let Some(stored) = left_out.readable(None, stored::<T>(&*row), now)
            && let Some(next) = stored.progress.advance(input, now)
        {
            *outcome = Some(Cas::Won);
            let step = Step::new(concluded.tenant.mode, &stored, next);
            steps.push(step.with_report(concluded));
        }
    }
    if steps.is_empty() {
        // A dropped transaction would release its locks later, and a repetition would find the deliveries locked.
        tx.roll_back().await?;
        return Ok(outcomes);
    }
    tx.apply(&steps).await?;
    tx.follow(&steps, now).await?;
    tx.commit().await?;
    Ok(outcomes)
}

/// The time until the next delivery of a service is due or the next lease expires.
///
/// # Errors
/// [`StoreError`](kernel::StoreError) of the database.
pub async fn next<K: Clone + Ord>(
    reader: &mut dyn Reader,
    left_out: &LeftOutRows<K>,
    mode: Mode,
    service: Service,
) -> StoreResult<Option<Duration>> {
    let now = reader.now().await?;
    let scan = Scan {
        mode,
        now,
        left_out,
    };
    let connection = reader.connection();
    let lease = first_lease(connection, mode).await?;
    let queues = queues(connection, service, &scan).await?;
    let next = queues.iter().map(|queue| queue.since).chain(lease).min();
    Ok(next.map(|next| next.since(now)))
}
