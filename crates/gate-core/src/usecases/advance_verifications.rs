//! Advancing verifications: ask the provider about those that are pending, and apply its reports.
//!
//! One transaction claims the verification with a lease, and a second one applies the report under the lease's token, as
//! for rails (`advance_rails.rs`). A verification is not asked about after its session has ended.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Mode, Readable, StoreError, StoreResult};
use partner_core::Tenant;
use partner_core::races::retry_lost_races;

use super::context::GateContext;
use super::verify_user::{CLAIM, after_report, order};
use crate::due::DueShare;
use crate::error::GateError;
use crate::ports::{HeldBy, VerificationOrder, Verifier};
use crate::rail::PollLease;
use crate::session::{SessionId, SessionState};
use crate::verification::{Verification, VerificationReport};

/// Asks providers and advances verifications.
#[derive(Clone)]
pub struct AdvanceVerifications {
    pub context: GateContext,
    /// The provider.
    pub verifier: Arc<dyn Verifier>,
}

impl AdvanceVerifications {
    /// Sessions of a mode whose verification the provider holds and is due for a poll, of each partner the longest overdue first.
    pub async fn due(
        &self,
        mode: Mode,
        share: &DueShare,
    ) -> StoreResult<Readable<(Tenant, SessionId)>> {
        let held = HeldBy {
            mode,
            upstream: &self.verifier.name(),
        };
        self.context.store.verifications_due(held, share).await
    }

    /// Whether the last polls of a partner all timed out.
    #[must_use]
    pub fn polls_hang(&self, who: &Tenant) -> bool {
        self.verifier.polls_hang(&who.partner)
    }

    /// Asks the provider about the due verification of a session and applies the report.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(session.id = %session))]
    pub async fn advance(&self, who: &Tenant, session: SessionId) -> Result<(), GateError> {
        let claiming = retry_lost_races(|| self.claim(who, session));
        let Some((order, claimed)) = claiming.await? else {
            return Ok(());
        };
        let report = self.verifier.report(&order).await;
        retry_lost_races(|| self.apply(who, &claimed, report.as_ref())).await
    }

    async fn claim(
        &self,
        who: &Tenant,
        id: SessionId,
    ) -> Result<Option<(VerificationOrder, Verification)>, GateError> {
        let mut tx = self.context.store.gate_begin("verification_claim").await?;
        let session = tx.session_lock(who, id).await?;
        let found = tx.verification_lock(who, id).await?;
        let now = tx.now().await?;
        let name = Some(self.verifier.name());
        let is_ours = |it: &Verification| it.is_due(now) && it.verifier == name;
        let Some(verification) = found.filter(is_ours) else {
            return Ok(None);
        };
        let session = session.ok_or_else(|| StoreError::unexpected(MissingSession))?;
        let is_open = session.state == SessionState::Open && !session.is_overdue(now);
        let asking = PollLease {
            attempts: verification.asking.attempts.saturating_add(1),
            token: is_open.then(|| self.context.entropy.number()),
            next_at: now.plus(if is_open { CLAIM } else { Duration::MAX }),
        };
        let before = verification.asking;
        let claimed = Verification {
            asking,
            ..verification
        };
        tx.verification_put(who, &before, &claimed).await?.won()?;
        tx.commit().await?;
        Ok(is_open.then(|| (order(who, &session, &claimed), claimed)))
    }

    async fn apply(
        &self,
        who: &Tenant,
        claimed: &Verification,
        report: Option<&VerificationReport>,
    ) -> Result<(), GateError> {
        let mut tx = self.context.store.gate_begin("verification_apply").await?;
        tx.session_lock(who, claimed.session).await?;
        let Some(found) = tx.verification_lock(who, claimed.session).await? else {
            return Ok(());
        };
        let now = tx.now().await?;
        let after = after_report(self.verifier.as_ref(), &found, report, now);
        if found.asking != claimed.asking {
            return Ok(());
        }
        let putting = tx.verification_put(who, &found.asking, &after);
        putting.await?.won()?;
        Ok(tx.commit().await?)
    }
}

/// A due verification whose session the store cannot lock.
#[derive(Debug, thiserror::Error)]
#[error("a due verification has no session")]
struct MissingSession;
