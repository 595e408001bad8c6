//! The queue of deliveries. Workers claim deliveries by endpoint, and conclude them with the lease's token.
//!
//! A delivery is never due before the earlier open deliveries of its object. So a claim skips few rows, even if many deliveries wait
//! for a failing endpoint.

pub(crate) mod claim;
pub(crate) mod step;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::conn::Conn;
use async_trait::async_trait;
use kernel::{Cas, Mode, StoreError};
use partner_core::Tenant;
use partner_core::events::{DeliveryId, Service};
use partner_core::ports::{
    ClaimRequest, ClaimedDelivery, ConcludedDelivery, Deliveries, DeliveryAdmin, DeliveryFilter,
    DeliveryRecord, DeliveryView, QueueStats, QueueWaker,
};
use partner_core::webhooks::delivery::{DeliveryInput, Lease, Progress};
use partner_core::webhooks::fairness::allocate;
use sqlx::postgres::PgRow;
use sqlx::types::Uuid;
use store_sql::EngineTx as _;
use store_sql::deliveries::{self, LeftOutRows, admin, progress};

use crate::row::{Columns, key};
use crate::tx::PgTx;
use crate::{PostgresStore, clock, errors};
use claim::{endpoints_of, first_lease, lapse, pick, queues, take_leases};
use step::{Step, apply, follow};

/// The deliveries that could not be read.
pub(crate) type LeftOut = LeftOutRows<Uuid>;

#[async_trait]
impl Deliveries for PostgresStore {
    async fn deliveries_claim(
        &self,
        request: &ClaimRequest,
    ) -> Result<Vec<ClaimedDelivery>, StoreError> {
        let mut tx = PgTx::begin(self, "deliveries_claim").await?;
        let now = tx.instant().await?;
        let (mode, left_out) = (request.mode, &self.inner.left_out);
        let lapsed = lapse(tx.conn(), mode, now, left_out).await?;
        let mut queues = queues(tx.conn(), mode, request.service, (left_out, now)).await?;
        queues.retain(|queue| queue.since <= now);
        let allocated = allocate(queues, &request.room);
        let picked = pick(tx.conn(), mode, &allocated, now, left_out).await?;
        if lapsed == 0 && picked.is_empty() {
            return Ok(Vec::new());
        }
        let lease = Lease {
            token: request.token,
            until: now.plus(request.lease),
        };
        take_leases(tx.conn(), mode, &picked, lease, now).await?;
        let endpoints = endpoints_of(tx.conn(), request, &picked, (now, left_out)).await?;
        tx.finish().await?;
        picked
            .into_iter()
            .map(|picked| picked.claimed(mode, &endpoints))
            .collect()
    }

    /// Waits for no lock: one partner's locked delivery would delay the outcomes of every partner.
    async fn deliveries_conclude(
        &self,
        batch: &[ConcludedDelivery],
    ) -> Result<Vec<Option<Cas>>, StoreError> {
        let mut outcomes = vec![Some(Cas::Lost); batch.len()];
        if batch.is_empty() {
            return Ok(outcomes);
        }
        let mut tx = PgTx::begin(self, "deliveries_conclude").await?;
        let mut found = find(tx.conn(), batch).await?;
        if found.len() < batch.len() {
            for place in existing(tx.conn(), batch).await? {
                if !found.contains_key(&place)
                    && let Some(outcome) = outcomes.get_mut(place)
                {
                    *outcome = None;
                }
            }
        }
        let now = tx.instant().await?;
        let mut steps = Vec::new();
        for ((place, concluded), outcome) in batch.iter().enumerate().zip(&mut outcomes) {
            let input = DeliveryInput::End(concluded.token, concluded.outcome);
            if let Some(read) = found.remove(&place)
                && let Some(stored) = self.inner.left_out.readable(None, read, now)
                && let Some(next) = stored.progress.advance(input, now)
            {
                *outcome = Some(Cas::Won);
                let mode = concluded.tenant.mode;
                steps.push(Step::new(mode, &stored, next).with_report(concluded));
            }
        }
        if steps.is_empty() {
            // A dropped transaction would release its locks later, and a repetition would find the deliveries locked.
            Box::new(tx).roll_back().await?;
            return Ok(outcomes);
        }
        apply(tx.conn(), &steps).await?;
        follow(tx.conn(), &steps, now).await?;
        tx.finish().await?;
        Ok(outcomes)
    }

    async fn deliveries_next(
        &self,
        mode: Mode,
        service: Service,
    ) -> Result<Option<Duration>, StoreError> {
        let mut conn = self.inner.conn().await?;
        let server = clock::server(&mut conn).await?;
        let now = self.inner.clock.seen(server, 0)?;
        let lease = first_lease(&mut conn, mode).await?;
        let left_out = (&self.inner.left_out, now);
        let queues = queues(&mut conn, mode, service, left_out).await?;
        let next = queues.iter().map(|queue| queue.since).chain(lease).min();
        Ok(next.map(|next| next.since(now)))
    }

    async fn deliveries_of(
        &self,
        who: &Tenant,
        object_id: &str,
    ) -> Result<Vec<DeliveryRecord>, StoreError> {
        deliveries::of_object(&mut self.inner.read().await?, who, object_id).await
    }

    async fn deliveries_standing(
        &self,
        mode: Mode,
        service: Service,
    ) -> Result<QueueStats, StoreError> {
        deliveries::stats(&mut self.inner.read().await?, mode, service).await
    }

    fn deliveries_watch(&self, wake: Arc<dyn QueueWaker>) {
        self.inner.watchers.add(&wake);
    }
}

#[async_trait]
impl DeliveryAdmin for PostgresStore {
    async fn deliveries_page(
        &self,
        who: &Tenant,
        service: Service,
        filter: DeliveryFilter,
        limit: u32,
    ) -> Result<Vec<DeliveryView>, StoreError> {
        let mut reader = self.inner.read_page(who).await?;
        admin::page(&mut reader, who, service, filter, limit).await
    }

    async fn delivery_get(
        &self,
        who: &Tenant,
        service: Service,
        id: DeliveryId,
    ) -> Result<Option<DeliveryView>, StoreError> {
        admin::get(&mut self.inner.read().await?, who, service, id).await
    }

    async fn delivery_replay(
        &self,
        who: &Tenant,
        service: Service,
        id: DeliveryId,
    ) -> Result<Option<(Cas, DeliveryView)>, StoreError> {
        admin::replay(self.begin_tx("delivery_replay").await?, who, service, id).await
    }
}

/// The state of a stored delivery, with the key of its row.
struct Stored {
    partner: String,
    id: Uuid,
    progress: Progress,
}

fn stored(row: &Columns<&PgRow>) -> Result<Stored, StoreError> {
    Ok(Stored {
        partner: row.text("partner_id")?.to_owned(),
        id: row.get("id")?,
        progress: progress(row)?,
    })
}

/// The keys of a batch's deliveries, column by column.
type Keys<'b> = (Vec<&'b str>, Vec<&'b str>, Vec<Uuid>);

fn keys(batch: &[ConcludedDelivery]) -> Keys<'_> {
    let mut columns = Keys::default();
    for ConcludedDelivery { tenant, id, .. } in batch {
        columns.0.push(tenant.mode.as_str());
        columns.1.push(tenant.partner.as_str());
        columns.2.push(key(*id));
    }
    columns
}

/// The position in its batch of the delivery of a row.
fn place(row: &Columns<&PgRow>) -> Result<usize, StoreError> {
    let place = usize::try_from(row.integer("place")?).ok();
    let place = place.and_then(|place| place.checked_sub(1));
    place.ok_or_else(|| row.bad("place"))
}

/// Locks the deliveries of a batch, except those that another transaction has locked. The keys are their positions in the batch.
async fn find(
    conn: &mut Conn,
    batch: &[ConcludedDelivery],
) -> Result<BTreeMap<usize, Result<Stored, StoreError>>, StoreError> {
    let (modes, partners, ids) = keys(batch);
    let rows = sqlx::query(step::FIND)
        .bind(modes)
        .bind(partners)
        .bind(ids)
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    rows.iter()
        .map(|row| {
            let row = Columns::new("deliveries", row);
            Ok((place(&row)?, stored(&row)))
        })
        .collect()
}

/// The positions of the deliveries of a batch that exist, locked or not.
async fn existing(conn: &mut Conn, batch: &[ConcludedDelivery]) -> Result<Vec<usize>, StoreError> {
    let (modes, partners, ids) = keys(batch);
    let rows = sqlx::query(step::EXISTING)
        .bind(modes)
        .bind(partners)
        .bind(ids)
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    rows.iter()
        .map(|row| place(&Columns::new("deliveries", row)))
        .collect()
}
