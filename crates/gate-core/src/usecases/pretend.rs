//! Pretending, in mode test: a customer says that the money was sent or that the card was declined, and a user decides about a verification
//! of their own.
//!
//! Only a simulated rail and verifier take part. They store nothing and answer from the request alone, so they are asked within the
//! transaction that ends the payment or the verification. What has ended before stays as it is.

use kernel::{Mode, StoreError, Upstreams};
use partner_core::Tenant;
use partner_core::races::retry_lost_races;

use super::advance_rails::{Ending, announce, end_record, order_of};
use super::context::GateContext;
use super::verify_user::{ShownVerification, after_report, shown};
use crate::embed::SessionToken;
use crate::error::GateError;
use crate::ports::{Pretence, Rail, Verifier};
use crate::rail::{PaymentId, RailRecord, RailState};
use crate::session::{Session, SessionState};
use crate::verification::{VerificationReport, VerificationState};

#[derive(Clone)]
pub struct Pretend {
    pub context: GateContext,
    pub rails: Upstreams<dyn Rail>,
    pub verifiers: Upstreams<dyn Verifier>,
}

/// Why nothing was pretended.
#[derive(Debug, thiserror::Error)]
pub enum PretendError {
    /// The token is of mode live.
    #[error("only mode test pretends")]
    LiveMode,
    /// Newer tokens of the session have ended the widget's token.
    #[error("the token has expired")]
    TokenExpired,
    /// The session has no such payment.
    #[error("no such payment of the session")]
    NoPayment,
    /// No verification of the session's user has started.
    #[error("no verification of the session has started")]
    NoVerification,
    /// The rail or the verifier is not simulated.
    #[error("the payment or verification is not simulated")]
    NotSimulated,
    /// The use case could not finish.
    #[error(transparent)]
    Failed(#[from] GateError),
}

impl From<StoreError> for PretendError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

impl Pretend {
    /// Ends a payment in the widget as its simulated rail reports after the pretence. A payment that has ended is returned as it is.
    ///
    /// # Errors
    /// [`PretendError`]
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(session.id = %token.session))]
    pub async fn pay(
        &self,
        who: &Tenant,
        token: SessionToken,
        payment: PaymentId,
        pretence: Pretence,
    ) -> Result<RailRecord, PretendError> {
        self.admit(who, token).await?;
        let found = self.context.payment_of(who, token.session, payment).await?;
        let found = found.filter(|record| record.hosted.is_some());
        let record = found.ok_or(PretendError::NoPayment)?;
        retry_lost_races(|| self.end(who, &record, pretence)).await?
    }

    /// Ends the pending verification of an open session's user. One that has ended, or whose session has, is returned as it is.
    ///
    /// # Errors
    /// [`PretendError`]
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(session.id = %token.session))]
    pub async fn decide(
        &self,
        who: &Tenant,
        token: SessionToken,
        report: &VerificationReport,
    ) -> Result<ShownVerification, PretendError> {
        self.admit(who, token).await?;
        retry_lost_races(|| self.verify(who, token, report)).await?
    }

    /// Whether anybody may pretend in the tenant's mode.
    ///
    /// # Errors
    /// [`PretendError::LiveMode`]
    pub const fn permits(who: &Tenant) -> Result<(), PretendError> {
        match who.mode {
            Mode::Live => Err(PretendError::LiveMode),
            Mode::Test => Ok(()),
        }
    }

    async fn admit(&self, who: &Tenant, token: SessionToken) -> Result<(), PretendError> {
        Self::permits(who)?;
        if self.context.admits(who, token).await? {
            Ok(())
        } else {
            Err(PretendError::TokenExpired)
        }
    }

    async fn end(
        &self,
        who: &Tenant,
        seen: &RailRecord,
        pretence: Pretence,
    ) -> Result<Result<RailRecord, PretendError>, GateError> {
        let mut tx = self.context.store.gate_begin("payment_pretend").await?;
        let session = tx.session_lock(who, seen.session).await?;
        let found = tx.rail_lock(who, seen.id).await?;
        let now = tx.now().await?;
        let Some(record) = found else {
            return Ok(Err(PretendError::NoPayment));
        };
        if record.state != RailState::Processing {
            return Ok(Ok(record));
        }
        let rail = self.rails.holder(&record.rail);
        let Some((rail, simulation)) = rail.and_then(|rail| Some((rail, rail.simulation()?)))
        else {
            return Ok(Err(PretendError::NotSimulated));
        };
        let order = order_of(&self.context, who, &record)?;
        let answer = simulation.pretend(&order, pretence).into();
        let progress = record.progress(&answer, now);
        if progress.record.state == RailState::Processing {
            return Ok(Ok(record));
        }
        let ending = Ending {
            session,
            before: record.asking,
            record: progress.record.clone(),
            now,
        };
        let ended = end_record(&self.context, tx.as_mut(), who, ending).await?;
        announce(rail.as_ref(), &progress);
        tx.commit().await?;
        Ok(Ok(ended.record))
    }

    async fn verify(
        &self,
        who: &Tenant,
        token: SessionToken,
        report: &VerificationReport,
    ) -> Result<Result<ShownVerification, PretendError>, GateError> {
        let mut tx = self
            .context
            .store
            .gate_begin("verification_pretend")
            .await?;
        let session = tx.session_lock(who, token.session).await?;
        let found = tx.verification_lock(who, token.session).await?;
        let now = tx.now().await?;
        let is_open = |it: Session| it.state == SessionState::Open && !it.is_overdue(now);
        let Some(verification) = found.filter(|it| it.state != VerificationState::Required) else {
            return Ok(Err(PretendError::NoVerification));
        };
        // After the end of the session the decision has no use.
        if verification.state.ended_at().is_some() || !session.is_some_and(is_open) {
            return Ok(Ok(shown(true, Some(&verification))));
        }
        let holder = verification.verifier.as_ref();
        let holder = holder.and_then(|name| self.verifiers.holder(name));
        let Some(verifier) = holder.filter(|it| it.is_simulated()) else {
            return Ok(Err(PretendError::NotSimulated));
        };
        let after = after_report(verifier.as_ref(), &verification, Some(report), now);
        let putting = tx.verification_put(who, &verification.asking, &after);
        putting.await?.won()?;
        tx.commit().await?;
        Ok(Ok(shown(true, Some(&after))))
    }
}
