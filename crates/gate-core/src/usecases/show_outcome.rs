//! Showing how a session ended, to a page that has its client secret.

use std::time::Duration;

use kernel::Timestamp;

use super::bootstrap_embed::{BootstrapEmbed, BootstrapError, PageHeaders};
use crate::access::GateAccess;
use crate::branding::Branding;
use crate::error::GateError;
use crate::rail::RailRecord;
use crate::session::{NotOpen, Session};

/// How long after its end the outcome of a session is shown.
const SHOWN_FOR: Duration = Duration::from_hours(30 * 24);

/// Shows the outcomes of sessions.
#[derive(Clone)]
pub struct ShowOutcome {
    /// Knows which pages may ask, and which session a client secret names.
    pub bootstrapping: BootstrapEmbed,
}

/// How a session ended.
#[derive(Debug)]
pub struct Outcome {
    pub session: Session,
    /// When the session ended.
    pub ended_at: Timestamp,
    /// The appearance of the widget.
    pub branding: Branding,
    /// The newest payment.
    pub payment: Option<RailRecord>,
}

/// Why no outcome is shown.
#[derive(Debug, thiserror::Error)]
pub enum OutcomeError {
    /// A bootstrap is refused in the same way. [`BootstrapError::NotOpen`]: the session ended too long ago.
    #[error(transparent)]
    Refused(#[from] BootstrapError),
    /// The session is open, so it has no outcome yet.
    #[error("the session is still open")]
    StillOpen,
    /// The use case could not finish.
    #[error(transparent)]
    Failed(#[from] GateError),
}

impl ShowOutcome {
    /// The outcome of the session that a client secret names. If the session is overdue, it is expired first.
    pub async fn show(
        &self,
        access: &GateAccess,
        page: PageHeaders<'_>,
        client_secret: &str,
    ) -> Result<Outcome, OutcomeError> {
        let (bootstrapping, who) = (&self.bootstrapping, &access.tenant);
        bootstrapping.check_origin(access, page)?;
        let session = bootstrapping.session(who, client_secret).await?;
        let mut ended = session.state.ended().into_iter().flatten();
        let ended_at = ended.next().ok_or(OutcomeError::StillOpen)?;
        let store = &bootstrapping.context.store;
        let branding = store.branding_get(who).await.map_err(GateError::from)?;
        if branding.at > ended_at.plus(SHOWN_FOR) {
            let too_late = NotOpen(session.state.status());
            return Err(BootstrapError::NotOpen(too_late).into());
        }
        let payment = store.payment_of_session(who, session.id).await;
        Ok(Outcome {
            session,
            ended_at,
            branding: branding.value,
            payment: payment.map_err(GateError::from)?,
        })
    }
}

impl Outcome {
    /// The payment that completed the session. `None` also if the session was completed without a payment.
    #[must_use]
    pub fn completed_by(&self) -> Option<&RailRecord> {
        let refid = self.session.state.paid()?;
        self.payment.as_ref().filter(|paid| paid.refid == refid)
    }
}
