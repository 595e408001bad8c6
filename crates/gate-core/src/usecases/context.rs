//! The shared dependencies of the gate's use cases, and the one way to apply an action to a session.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Entropy, StoreResult, Timestamp};
use partner_core::Tenant;
use partner_core::sealing::Sealer;

use crate::embed::SessionToken;
use crate::error::GateError;
use crate::events::{EventFactory, RenderResource, Resource};
use crate::idempotent::Decision;
use crate::ports::{GateStore, GateTx};
use crate::rail::{PaymentId, RailId, RailKind, RailRecord};
use crate::session::{Session, SessionAction, SessionId, SessionRefusal};
use crate::signed_quote::{Issue, Lifetime, QuoteTerms, SignedQuote, SignedQuoteId, Unsigned};

/// The shared dependencies of the gate's use cases. It applies session actions, a due expiry first.
#[derive(Clone)]
pub struct GateContext {
    pub store: Arc<dyn GateStore>,
    /// Seals event bodies and personal data.
    pub sealer: Arc<Sealer>,
    /// Makes ids.
    pub entropy: Arc<dyn Entropy>,
    /// Renders what events are about.
    pub render: RenderResource,
}

/// A session after an action.
#[derive(Debug)]
pub(super) struct SessionChange {
    /// The session after the step.
    pub(super) session: Session,
    /// Whether a step was written.
    pub(super) changed: bool,
    /// Why the action was refused.
    pub(super) refused: Option<SessionRefusal>,
}

impl SessionChange {
    /// The decision if the action was refused. A due expiry is committed with the refusal.
    pub(super) fn refusal<T, E: From<SessionRefusal>>(&self) -> Option<Decision<T, E>> {
        let refusal = E::from(self.refused?);
        Some(if self.changed {
            Decision::RefusedWithWrites(refusal)
        } else {
            Decision::Refused(refusal)
        })
    }
}

impl GateContext {
    /// Whether a widget's token still counts in its session, for a call that does not read the session. An absent session
    /// is left to the call.
    pub(super) async fn admits(&self, who: &Tenant, token: SessionToken) -> StoreResult<bool> {
        let found = self.store.session_get(who, token.session).await?;
        Ok(found.is_none_or(|seen| seen.value.admits(token)))
    }

    /// The session's payment of this id. The id does not say the kind of its record.
    pub(super) async fn payment_of(
        &self,
        who: &Tenant,
        session: SessionId,
        payment: PaymentId,
    ) -> StoreResult<Option<RailRecord>> {
        for kind in RailKind::ALL {
            let id = RailId::of_payment(kind, payment);
            let found = self.store.rail_get(who, id).await?;
            if let Some(record) = found.filter(|record| record.session == session) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Applies an action to a locked session: writes its step and the step's event.
    pub(super) async fn act(
        &self,
        tx: &mut dyn GateTx,
        who: &Tenant,
        session: Session,
        act: SessionAction,
        now: Timestamp,
    ) -> Result<SessionChange, GateError> {
        let decision = session.advance(act, now);
        let Some(step) = decision.step else {
            return Ok(SessionChange {
                session,
                changed: false,
                refused: decision.refused,
            });
        };
        tx.session_apply(who, session.id, &step).await?.won()?;
        let session = session.after(&step);
        let (kind, resource) = (step.event.as_str(), Resource::Session(&session));
        let event = self.events().event(who, kind, resource, now)?;
        tx.event_insert(&event).await?;
        Ok(SessionChange {
            session,
            changed: true,
            refused: decision.refused,
        })
    }

    /// Makes and signs a quote that expires after `ttl`. Only its session, if it has one, may redeem it.
    pub(super) fn sign_quote(
        &self,
        issue: Issue<'_>,
        terms: QuoteTerms,
        session: Option<SessionId>,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<SignedQuote, Unsigned> {
        let id = SignedQuoteId::new(issue.tenant.mode, now, self.entropy.as_ref());
        let lifetime = Lifetime {
            from: now,
            until: now.plus(ttl),
        };
        SignedQuote::give(id, terms, session, lifetime, issue, &self.sealer)
    }

    pub(super) fn events(&self) -> EventFactory<'_> {
        EventFactory {
            sealer: &self.sealer,
            entropy: self.entropy.as_ref(),
            render: self.render,
        }
    }
}
