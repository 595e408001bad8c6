//! Verification of a session's user: whether one is needed, its start, and the refusal of a payment for it.
//!
//! A start stores the verification before it asks the provider, so a provider that knows a verification is asked about it
//! until it has decided. `url` and `form` are asked for at every start and never stored. The answers to a form are checked
//! against it before the provider receives them.

use std::sync::Arc;
use std::time::Duration;

use kernel::{StoreError, StoreResult, Timestamp, TraceParent, Upstreams};
use partner_core::Tenant;
use partner_core::races::retry_lost_races;

use super::context::GateContext;
use crate::catalogue::{Catalogue, CountryCode};
use crate::embed::SessionToken;
use crate::error::GateError;
use crate::events::{KYC_REQUIRED, Resource};
use crate::object::JsonObject;
use crate::ports::{GateTx, VerificationOrder, VerificationStart, Verifier};
use crate::rail::PollLease;
use crate::session::{NotOpen, Session, SessionAction, SessionRefusal, SessionState};
use crate::verification::form::{AnswerError, Form};
use crate::verification::{
    Need, Verification, VerificationId, VerificationReport, VerificationState, VerificationStatus,
    needed,
};

/// Timeout of the calls of one start or one poll together.
pub const VERIFIER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long no other caller asks the provider: its timeout and 2 s more.
pub(super) const CLAIM: Duration = VERIFIER_TIMEOUT.saturating_add(Duration::from_secs(2));
/// Shortest and longest backoff after a poll without a decision.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// What each poll adds to the backoff. The next poll is then never far from a user who has just finished: after a
/// minute the backoff is about 4 s, after ten about 11 s.
const BACKOFF_PER_POLL: Duration = Duration::from_millis(100);

/// Verifies the users of sessions.
#[derive(Clone)]
pub struct VerifyUser {
    pub context: GateContext,
    /// Says per country when a verification is needed.
    pub catalogue: Arc<Catalogue>,
    /// The providers.
    pub verifiers: Upstreams<dyn Verifier>,
}

/// The request to start a verification.
#[derive(Debug, Clone, Copy, Default)]
pub struct StartRequest<'r> {
    /// The user's answers to the form.
    pub answers: Option<&'r JsonObject>,
    /// The user's country, as the edge names it.
    pub country: Option<CountryCode>,
    /// The position of the request in its trace.
    pub trace_parent: Option<TraceParent>,
}

/// The verification of a session, as the widget reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownVerification {
    pub status: VerificationStatus,
    /// The provider's reason for a rejection.
    pub reason: Option<String>,
}

/// The result of a start: the verification, and what the user must do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedVerification {
    /// The verification.
    pub shown: ShownVerification,
    /// The page of the provider that the user visits.
    pub url: Option<String>,
    /// The fields that the widget shows.
    pub form: Option<Form>,
    /// When `url` and `form` end.
    pub expires_at: Option<Timestamp>,
}

/// Why a payment was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VerificationRefusal {
    /// The user must be verified first.
    #[error("the session's user must be verified")]
    Required,
    /// The provider rejected the user.
    #[error("the session's user was rejected")]
    Rejected,
}

/// Why a verification did not start.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The request has answers, and no form is asked for.
    #[error("no form is asked for")]
    FormNotAsked,
    /// The answers do not match the form.
    #[error(transparent)]
    Answers(#[from] AnswerError),
    /// The provider did not respond. Nothing is decided, and the start can be repeated.
    #[error("the verifier did not answer")]
    VerifierSilent,
    /// The partner has no such session.
    #[error("no such session")]
    NotFound,
    /// Newer tokens of the session have ended the widget's token.
    #[error("the token has expired")]
    TokenExpired,
    /// The session has ended.
    #[error(transparent)]
    Session(#[from] SessionRefusal),
    /// The use case could not finish.
    #[error(transparent)]
    Failed(#[from] GateError),
}

/// What a start found or stored.
enum Opening {
    /// Nothing: the user needs no verification.
    NotNeeded,
    /// A verification about which no provider is asked: it has ended, or its provider is not configured.
    Unasked(Verification),
    /// A verification about which the provider is asked.
    Asked(Box<Opened>),
}

/// The verification that a start found or stored, and about which it asks the provider.
struct Opened {
    session: Session,
    verification: Verification,
    /// Whether this start stored it as pending, so that the provider cannot know it.
    is_new: bool,
}

impl VerifyUser {
    /// The verification of a session, as its widget reads it. The caller has applied a due expiry.
    pub async fn status(
        &self,
        who: &Tenant,
        session: &Session,
        country: Option<CountryCode>,
    ) -> StoreResult<ShownVerification> {
        let found = self.context.store.verification_get(who, session.id).await?;
        let needed = self.needed(who, session, country);
        Ok(shown(needed, found.as_ref()))
    }

    /// Checks in the transaction of a payment that the session's user may pay. The first refusal stores the verification
    /// and emits `kyc.required`, so the caller commits the transaction also after a refusal. The session is locked. A stored
    /// verification decides, whatever the country of this request is.
    ///
    /// # Errors
    /// [`GateError`]. The inner result is the refusal.
    pub async fn require(
        &self,
        tx: &mut dyn GateTx,
        who: &Tenant,
        session: &Session,
        country: Option<CountryCode>,
        now: Timestamp,
    ) -> Result<Result<(), VerificationRefusal>, GateError> {
        let Some(found) = tx.verification_lock(who, session.id).await? else {
            if !self.needed(who, session, country) {
                return Ok(Ok(()));
            }
            self.require_new(tx, who, session, now).await?;
            return Ok(Err(VerificationRefusal::Required));
        };
        Ok(match found.state {
            VerificationState::Approved { .. } => Ok(()),
            VerificationState::Rejected { .. } => Err(VerificationRefusal::Rejected),
            VerificationState::Required | VerificationState::Pending => {
                Err(VerificationRefusal::Required)
            }
        })
    }

    /// Starts the verification of a token's session, or returns the one that has started, and submits the user's answers to the
    /// form. A user who needs none gets the status `not_required`, and without a verifier the status stays `required`. The
    /// answers are not stored.
    ///
    /// # Errors
    /// [`VerifyError`]. A refusal because of a due expiry still commits the expiry (rule `gate.session.lazy-expiry`).
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(session.id = %token.session))]
    pub async fn start(
        &self,
        who: &Tenant,
        token: SessionToken,
        asked: StartRequest<'_>,
    ) -> Result<StartedVerification, VerifyError> {
        let answers = asked.answers;
        let opening = retry_lost_races(|| self.open(who, token, asked));
        let opened = match opening.await?? {
            Opening::NotNeeded if answers.is_some() => return Err(VerifyError::FormNotAsked),
            Opening::NotNeeded => return Ok(started(shown(false, None), None)),
            Opening::Unasked(found) if answers.is_some() && found.state.ended_at().is_none() => {
                return Err(VerifyError::FormNotAsked);
            }
            Opening::Unasked(found) => return Ok(started(shown(true, Some(&found)), None)),
            Opening::Asked(opened) => opened,
        };
        // `open` asks only about a verification whose provider is configured.
        let verifier = self.holder(&opened.verification);
        let verifier = verifier.ok_or(VerifyError::VerifierSilent)?;
        let order = order(who, &opened.session, &opened.verification);
        let response = verifier.start(&order).await;
        let response = response.ok_or(VerifyError::VerifierSilent)?;
        let (response, refusal) = match answers {
            None => (response, Ok(())),
            Some(answers) => submit(verifier, &order, answers, response, opened.is_new).await,
        };
        let applying = retry_lost_races(|| self.apply(verifier, who, &opened, &response));
        let after = applying.await?;
        refusal?;
        Ok(started(shown(true, Some(&after)), Some(response)))
    }

    /// Stores the verification if it is needed and absent: as pending, or as required if no verifier is configured.
    async fn open(
        &self,
        who: &Tenant,
        token: SessionToken,
        asked: StartRequest<'_>,
    ) -> Result<Result<Opening, VerifyError>, GateError> {
        let mut tx = self.context.store.gate_begin("verification_start").await?;
        let Some(session) = tx.session_lock(who, token.session).await? else {
            return Ok(Err(VerifyError::NotFound));
        };
        if !session.admits(token) {
            return Ok(Err(VerifyError::TokenExpired));
        }
        let found = tx.verification_lock(who, session.id).await?;
        let now = tx.now().await?;
        let touched = self
            .context
            .act(tx.as_mut(), who, session, SessionAction::Touch, now)
            .await?;
        let session = touched.session;
        if session.state != SessionState::Open {
            if touched.changed {
                tx.commit().await?;
            }
            let ended = SessionRefusal::NotOpen(NotOpen(session.state.status()));
            return Ok(Err(ended.into()));
        }
        if found.is_none() && !self.needed(who, &session, asked.country) {
            return Ok(Ok(Opening::NotNeeded));
        }
        let opening = match found {
            Some(found) if found.state != VerificationState::Required => {
                if self.holder(&found).is_none() {
                    return Ok(Ok(Opening::Unasked(found)));
                }
                (found, false)
            }
            found => {
                let Some(verifier) = self.verifiers.present.as_deref() else {
                    if let Some(required) = found {
                        return Ok(Ok(Opening::Unasked(required)));
                    }
                    let required = self.require_new(tx.as_mut(), who, &session, now).await?;
                    tx.commit().await?;
                    return Ok(Ok(Opening::Unasked(required)));
                };
                let id = VerificationId::new(who.mode, now, self.context.entropy.as_ref());
                let required = VerificationState::Required;
                let before = found.clone();
                let pending = Verification {
                    verifier: Some(verifier.name()),
                    state: VerificationState::Pending,
                    // The first poll is due after the start has had its time.
                    asking: PollLease::first_due(now.plus(CLAIM)),
                    trace_parent: asked.trace_parent,
                    ..found.unwrap_or_else(|| Verification::new(id, session.id, required, now))
                };
                self.begin(tx.as_mut(), who, &session, before, &pending)
                    .await?;
                tx.commit().await?;
                (pending, true)
            }
        };
        let (verification, is_new) = opening;
        Ok(Ok(Opening::Asked(Box::new(Opened {
            session,
            verification,
            is_new,
        }))))
    }

    /// The provider that is asked about a verification; `None` if it has ended, or if its provider is not configured.
    fn holder(&self, verification: &Verification) -> Option<&dyn Verifier> {
        let name = verification.verifier.as_ref();
        let name = name.filter(|_| verification.state == VerificationState::Pending)?;
        self.verifiers.holder(name).map(AsRef::as_ref)
    }

    /// Stores a verification that has not started.
    async fn require_new(
        &self,
        tx: &mut dyn GateTx,
        who: &Tenant,
        session: &Session,
        now: Timestamp,
    ) -> Result<Verification, GateError> {
        let id = VerificationId::new(who.mode, now, self.context.entropy.as_ref());
        let required = Verification::new(id, session.id, VerificationState::Required, now);
        self.insert(tx, who, session, &required).await?;
        Ok(required)
    }

    /// Stores a verification as pending.
    async fn begin(
        &self,
        tx: &mut dyn GateTx,
        who: &Tenant,
        session: &Session,
        before: Option<Verification>,
        pending: &Verification,
    ) -> Result<(), GateError> {
        match before {
            None => self.insert(tx, who, session, pending).await,
            Some(required) => {
                let putting = tx.verification_put(who, &required.asking, pending);
                Ok(putting.await?.won()?)
            }
        }
    }

    /// Inserts a verification with the event that announces it.
    async fn insert(
        &self,
        tx: &mut dyn GateTx,
        who: &Tenant,
        session: &Session,
        verification: &Verification,
    ) -> Result<(), GateError> {
        tx.verification_insert(who, verification).await?;
        let resource = Resource::Session(session);
        let at = verification.created_at;
        let events = self.context.events();
        let event = events.event(who, KYC_REQUIRED, resource, at)?;
        tx.event_insert(&event).await?;
        Ok(())
    }

    /// Applies the provider's response to a start.
    async fn apply(
        &self,
        verifier: &dyn Verifier,
        who: &Tenant,
        opened: &Opened,
        response: &VerificationStart,
    ) -> Result<Verification, GateError> {
        let session = opened.session.id;
        let mut tx = self.context.store.gate_begin("verification_open").await?;
        tx.session_lock(who, session).await?;
        let found = tx.verification_lock(who, session).await?;
        let found =
            found.ok_or_else(|| StoreError::unexpected("verifications: the row is gone"))?;
        let now = tx.now().await?;
        let after = after_report(verifier, &found, Some(&response.report), now);
        if found.state.ended_at().is_some() {
            return Ok(found);
        }
        let after = Verification {
            reference: response.reference.clone().or(after.reference),
            ..after
        };
        let putting = tx.verification_put(who, &found.asking, &after);
        putting.await?.won()?;
        tx.commit().await?;
        Ok(after)
    }

    /// Whether the user of a session without a verification must be verified.
    fn needed(&self, who: &Tenant, session: &Session, country: Option<CountryCode>) -> bool {
        let rule = self.catalogue.verification_rule(country);
        let facts = Need {
            amount: &session.terms.amount,
            currency: session.terms.currency,
            kyc_pre_verified: session.kyc_pre_verified,
        };
        needed(who.mode, rule, &facts)
    }
}

pub(super) fn shown(needed: bool, verification: Option<&Verification>) -> ShownVerification {
    let state = verification.map(|it| &it.state);
    let status = VerificationStatus::shown(needed, state);
    let reason = state.and_then(VerificationState::reason);
    ShownVerification {
        status,
        reason: reason.map(str::to_owned),
    }
}

/// The result of a start. Only a pending verification needs something of the user.
fn started(shown: ShownVerification, response: Option<VerificationStart>) -> StartedVerification {
    let pending = shown.status == VerificationStatus::Pending;
    let (url, form, expires_at) = match response {
        Some(it) if pending => (it.url, it.form, it.expires_at),
        _ => (None, None, None),
    };
    StartedVerification {
        shown,
        url,
        form,
        expires_at,
    }
}

/// What the provider receives.
pub(super) fn order(
    who: &Tenant,
    session: &Session,
    verification: &Verification,
) -> VerificationOrder {
    VerificationOrder {
        partner: who.partner.clone(),
        id: verification.id,
        amount: session.terms.amount.clone(),
        currency: session.terms.currency,
        created_at: verification.created_at,
        trace_parent: verification.trace_parent,
    }
}

/// Submits the answers to the form of a start, or refuses them. After answers that decide nothing the provider says again
/// what the user must do. Answers that are repeated after a decision are not refused.
async fn submit(
    verifier: &dyn Verifier,
    order: &VerificationOrder,
    answers: &JsonObject,
    start: VerificationStart,
    is_new: bool,
) -> (VerificationStart, Result<(), VerifyError>) {
    let pending = start.report == VerificationReport::Pending;
    if !pending && !is_new {
        return (start, Ok(()));
    }
    let Some(form) = start.form.as_ref().filter(|_| pending) else {
        return (start, Err(VerifyError::FormNotAsked));
    };
    if let Err(error) = form.check(answers) {
        return (start, Err(error.into()));
    }
    let Some(report) = verifier.submit(order, answers).await else {
        return (start, Err(VerifyError::VerifierSilent));
    };
    if report == VerificationReport::Pending
        && let Some(next) = verifier.start(order).await
    {
        return (next, Ok(()));
    }
    let received = VerificationStart {
        report,
        url: None,
        form: None,
        expires_at: None,
        reference: start.reference,
    };
    (received, Ok(()))
}

/// The verification after a response of the provider, or after none, with the time of the next poll. A contradiction
/// changes nothing.
pub(super) fn after_report(
    verifier: &dyn Verifier,
    verification: &Verification,
    report: Option<&VerificationReport>,
    now: Timestamp,
) -> Verification {
    let before = &verification.asking;
    let rested = Verification {
        asking: PollLease {
            token: None,
            next_at: now.plus(backoff(before.attempts)),
            ..*before
        },
        ..verification.clone()
    };
    let Some(report) = report else {
        return rested;
    };
    match verification.advance(report, now) {
        Ok(Some(step)) => rested.after(step),
        Ok(None) => rested,
        // A user decides meanwhile.
        Err(_) if verifier.is_simulated() => rested,
        Err(contradiction) => {
            tracing::error!(
                session.id = %verification.session,
                verification.id = %verification.id,
                "{contradiction}"
            );
            verifier.contradicted(&contradiction);
            rested
        }
    }
}

/// The backoff after this many polls.
fn backoff(attempts: u32) -> Duration {
    BACKOFF_PER_POLL
        .saturating_mul(attempts)
        .clamp(MIN_BACKOFF, MAX_BACKOFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_by_a_tenth_of_a_second_up_to_one_minute() {
        let backoffs: Vec<u128> = [0, 1, 10, 11, 100, 600, 601, u32::MAX]
            .map(|attempts| backoff(attempts).as_millis())
            .into();
        let expected = [1_000, 1_000, 1_000, 1_100, 10_000, 60_000, 60_000, 60_000];
        assert_eq!(backoffs, expected);
        assert!(CLAIM > VERIFIER_TIMEOUT);
    }
}
