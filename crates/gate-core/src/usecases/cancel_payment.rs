//! Cancelling a payment that its user has given up. The rail decides whether it still can be cancelled.

use kernel::{StoreError, Upstreams};
use partner_core::Tenant;
use partner_core::races::retry_lost_races;

use super::advance_rails::{Ending, announce, end_record, order_of};
use super::context::GateContext;
use super::watch_rails::note;
use crate::embed::SessionToken;
use crate::error::GateError;
use crate::ports::{CancelReport, GivenUp, Rail};
use crate::rail::{PaymentId, RailRecord, RailReport, RailState};

#[derive(Clone)]
pub struct CancelPayment {
    pub context: GateContext,
    pub rails: Upstreams<dyn Rail>,
}

/// Why a payment was not cancelled.
#[derive(Debug, thiserror::Error)]
pub enum CancelError {
    /// Newer tokens of the session have ended the widget's token.
    #[error("the token has expired")]
    TokenExpired,
    /// The session has no such payment.
    #[error("no such payment of the session")]
    NotFound,
    /// The payment is over, or the rail no longer cancels it.
    #[error("the payment can no longer be cancelled")]
    TooLate,
    /// The rail that holds the payment is not configured, so it was not asked.
    #[error("the rail that holds the payment is not configured")]
    RailElsewhere,
    /// The rail did not respond.
    #[error("the rail did not answer")]
    RailSilent,
    /// The use case could not finish.
    #[error(transparent)]
    Failed(#[from] GateError),
}

impl From<StoreError> for CancelError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

impl CancelPayment {
    /// Cancels the payment of this id, for a token of its session.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(session.id = %token.session))]
    pub async fn cancel(
        &self,
        who: &Tenant,
        token: SessionToken,
        payment: PaymentId,
    ) -> Result<RailRecord, CancelError> {
        if !self.context.admits(who, token).await? {
            return Err(CancelError::TokenExpired);
        }
        let record = self.context.payment_of(who, token.session, payment).await?;
        let record = record.ok_or(CancelError::NotFound)?;
        // The partner itself began a payment that is not hosted, on the rail routes.
        if record.state != RailState::Processing || record.hosted.is_none() {
            return Err(CancelError::TooLate);
        }
        let rail = self.rails.holder(&record.rail);
        let rail = rail.ok_or(CancelError::RailElsewhere)?.as_ref();
        let order = order_of(&self.context, who, &record)?;
        match rail.cancel(&order, GivenUp::ByCustomer).await {
            None => Err(CancelError::RailSilent),
            Some(CancelReport::TooLate) => {
                retry_lost_races(|| self.acknowledge(who, &record)).await?;
                Err(CancelError::TooLate)
            }
            Some(CancelReport::Cancelled) => {
                retry_lost_races(|| self.end(rail, who, &record)).await?
            }
        }
    }

    /// Remembers that the rail knows the payment, so that it never begins again.
    async fn acknowledge(&self, who: &Tenant, seen: &RailRecord) -> Result<(), GateError> {
        if seen.acknowledged_at.is_some() {
            return Ok(());
        }
        let mut tx = self.context.store.gate_begin("payment_cancel").await?;
        let found = tx.rail_lock(who, seen.id).await?;
        let now = tx.now().await?;
        let is_open =
            |it: &RailRecord| it.state == RailState::Processing && it.acknowledged_at.is_none();
        let Some(record) = found.filter(is_open) else {
            return Ok(());
        };
        let before = record.asking;
        let acknowledged = RailRecord {
            acknowledged_at: Some(now),
            ..record
        };
        tx.rail_ask(who, &before, &acknowledged).await?.won()?;
        Ok(tx.commit().await?)
    }

    /// Ends the record as cancelled. A report that was applied meanwhile stands.
    async fn end(
        &self,
        rail: &dyn Rail,
        who: &Tenant,
        seen: &RailRecord,
    ) -> Result<Result<RailRecord, CancelError>, GateError> {
        let mut tx = self.context.store.gate_begin("payment_cancel").await?;
        let session = tx.session_lock(who, seen.session).await?;
        let found = tx.rail_lock(who, seen.id).await?;
        let now = tx.now().await?;
        let Some(record) = found else {
            return Ok(Err(CancelError::NotFound));
        };
        if let RailState::Cancelled { .. } = record.state {
            return Ok(Ok(record));
        }
        let answer = RailReport::Cancelled.into();
        if record.state != RailState::Processing {
            drop(tx);
            note(&self.context, rail, who, &record, &answer).await?;
            return Ok(Err(CancelError::TooLate));
        }
        let progress = record.progress(&answer, now);
        let ending = Ending {
            session,
            before: record.asking,
            record: progress.record.clone(),
            now,
        };
        let ended = end_record(&self.context, tx.as_mut(), who, ending).await?;
        announce(rail, &progress);
        tx.commit().await?;
        Ok(Ok(ended.record))
    }
}
