//! Redeeming a signed quote: a pay-in or a pay-out for the user of a session.
//!
//! The rail is asked for its payment instructions before the transaction. The transaction checks the session, then
//! the quote, then the rail's response. It writes the redemption, the record, its transaction, the events and the
//! response. The money moves after the commit (`advance_rails.rs`).

use std::sync::Arc;

use async_trait::async_trait;
use kernel::{StoreError, StoreResult, Timestamp, TraceParent, UpstreamName, Upstreams};
use partner_core::Tenant;
use partner_core::idempotency::{Fingerprint, OperationKey};
use partner_core::stored_response::{IdempotentRequest, IdempotentResponse, Render};
use serde_json::json;

use super::context::GateContext;
use super::redemption::{NewRecord, NoSession, RedemptionRows, Uninstructed, instructions, redeem};
use crate::access::{GateAccess, GateDenial, may_use_rails};
use crate::catalogue::Catalogue;
use crate::error::GateError;
use crate::idempotent::{Decision, GateWrite, Idempotent};
use crate::ports::{GateTx, Rail, RailOrder};
use crate::rail::{Instructions, Mismatch, RailId, RailKind, RailRecord, fits, user_is_approved};
use crate::session::{Session, SessionId, SessionRefusal};
use crate::signed_quote::{QuoteClosed, SignedQuote, SignedQuoteId};

#[derive(Clone)]
pub struct RedeemQuote {
    pub context: GateContext,
    /// Runs the write.
    pub idempotent: Idempotent,
    /// Says until when a payment can be made.
    pub catalogue: Arc<Catalogue>,
    pub rails: Upstreams<dyn Rail>,
}

/// The fields of the request, unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redemption {
    /// The kind of record.
    pub kind: RailKind,
    /// `quote_id`
    pub quote: String,
    /// `session_id`
    pub session: String,
    /// The position of the request in its trace. It is no part of the request's fingerprint.
    pub trace_parent: Option<TraceParent>,
}

/// No rail is configured, so no pay-in and no pay-out is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no rail is configured")]
pub struct NoRail;

/// Why nothing was redeemed. The idempotency key stays unused, and the quote is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum RedeemError {
    /// No rail is configured.
    #[error(transparent)]
    NoRail(#[from] NoRail),
    /// The rail did not return usable payment instructions.
    #[error(transparent)]
    Uninstructed(#[from] Uninstructed),
    /// The API key was revoked or has expired.
    #[error(transparent)]
    Denied(#[from] GateDenial),
    /// The partner has no such session or quote.
    #[error("no such session or quote")]
    NotFound,
    /// The session has ended, or a payment of it is in progress.
    #[error(transparent)]
    Session(#[from] SessionRefusal),
    /// The session's user is not approved.
    #[error("the session's user is not approved")]
    UserNotApproved,
    /// The quote does not match the session.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The quote was redeemed or has expired.
    #[error(transparent)]
    Closed(#[from] QuoteClosed),
    /// The use case could not finish.
    #[error(transparent)]
    Failed(#[from] GateError),
}

impl From<NoSession> for RedeemError {
    fn from(_: NoSession) -> Self {
        Self::NotFound
    }
}

impl Redemption {
    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_json(&json!([self.quote, self.session]))
    }

    /// The ids of the session and the quote if they are well-formed and of this mode.
    fn named(&self, who: &Tenant) -> (Option<SessionId>, Option<SignedQuoteId>) {
        let session = SessionId::parse(&self.session);
        let quote = SignedQuoteId::parse(&self.quote);
        (
            session.and_then(|id| id.in_mode(who.mode)),
            quote.and_then(|id| id.in_mode(who.mode)),
        )
    }
}

/// The rail's response, obtained before the transaction.
enum Prepared {
    /// The quote appeared closed, or the user not approved, so the rail was not asked.
    NotAsked,
    /// No rail is configured.
    NoRail,
    /// The rail gave no usable instructions.
    Uninstructed(Uninstructed),
    /// The rail of the new record, its id and deadline, and the instructions for its payer.
    Ready(
        UpstreamName,
        (RailId, Option<Timestamp>),
        Option<Instructions>,
    ),
}

impl RedeemQuote {
    /// Redeems a quote, or replays the response that is stored under the request's key.
    ///
    /// # Errors
    /// [`RedeemError`]. A refusal because of a due expiry still commits the expiry (rule `gate.session.lazy-expiry`).
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all)]
    pub async fn redeem(
        &self,
        access: &GateAccess,
        key: OperationKey,
        asked: &Redemption,
        render: &Render<'_, RailRecord>,
    ) -> Result<IdempotentResponse, RedeemError> {
        let request = IdempotentRequest::new(&access.tenant, key, asked.fingerprint());
        let prepare = async {
            Ok(RedemptionWrite {
                context: &self.context,
                access,
                asked,
                prepared: self.prepare(&access.tenant, asked).await?,
            })
        };
        self.idempotent.run(Some(request), prepare, render).await
    }

    /// Asks the rail for the instructions of the payer. A quote that appears closed is skipped, because it cannot be redeemed, and so is a
    /// session whose user is not approved.
    async fn prepare(&self, who: &Tenant, asked: &Redemption) -> Result<Prepared, GateError> {
        let Some(rail) = self.rails.present.as_deref() else {
            return Ok(Prepared::NoRail);
        };
        let (Some(session), Some(quote)) = asked.named(who) else {
            return Ok(Prepared::NotAsked);
        };
        let store = &self.context.store;
        let found = store.session_get(who, session).await?;
        if !found.is_some_and(|found| user_is_approved(&found.value, who.mode)) {
            return Ok(Prepared::NotAsked);
        }
        let seen = store.signed_quote_get(who, quote).await?;
        let Some(seen) = seen.filter(|seen| may_redeem(&seen.value, seen.at)) else {
            return Ok(Prepared::NotAsked);
        };
        let entropy = self.context.entropy.as_ref();
        let id = RailId::new(asked.kind, who.mode, seen.at, entropy);
        if asked.kind == RailKind::PayOut {
            return Ok(Prepared::Ready(rail.name(), (id, None), None));
        }
        let terms = seen.value.terms;
        let pay_until = Some(seen.at.plus(self.catalogue.pay_within(&terms)));
        let order = RailOrder::of_redemption(who.partner.clone(), (id, pay_until), terms);
        let given = instructions(rail, &order, &self.catalogue).await;
        Ok(match given {
            Ok(instructions) => Prepared::Ready(rail.name(), (id, pay_until), Some(instructions)),
            Err(reason) => Prepared::Uninstructed(reason),
        })
    }
}

/// Whether a quote can be redeemed on the rail routes.
fn may_redeem(quote: &SignedQuote, now: Timestamp) -> bool {
    quote.session.is_none() && quote.must_be_active(now).is_ok()
}

struct RedemptionWrite<'w> {
    context: &'w GateContext,
    access: &'w GateAccess,
    asked: &'w Redemption,
    prepared: Prepared,
}

#[async_trait]
impl GateWrite for RedemptionWrite<'_> {
    type Rows = RedemptionRows;
    type Done = RailRecord;
    type Error = RedeemError;

    fn name(&self) -> &'static str {
        "rail_create"
    }

    async fn lock(&self, tx: &mut dyn GateTx) -> StoreResult<RedemptionRows> {
        let (session, quote) = self.asked.named(&self.access.tenant);
        RedemptionRows::lock(tx, self.access, session, quote).await
    }

    async fn decide(
        &self,
        tx: &mut dyn GateTx,
        rows: RedemptionRows,
        now: Timestamp,
    ) -> Result<Decision<RailRecord, RedeemError>, GateError> {
        let who = &self.access.tenant;
        let payable = rows.payable(self.context, tx, who, may_use_rails, now);
        let (session, quote) = match payable.await? {
            Ok(payable) => payable,
            Err(refusal) => return Ok(refusal),
        };
        let quote = match self.redeemable(&session, quote, now) {
            Ok(quote) => quote,
            Err(refusal) => return Ok(Decision::Refused(refusal)),
        };
        let (rail, (id, pay_until), instructions) = match &self.prepared {
            Prepared::Ready(rail, terms, instructions) => {
                (rail.clone(), *terms, instructions.clone())
            }
            Prepared::NoRail => return Ok(Decision::Refused(NoRail.into())),
            Prepared::Uninstructed(reason) => return Ok(Decision::Refused((*reason).into())),
            // The quote was created after `prepare` looked for it. The client may retry.
            Prepared::NotAsked => return Err(StoreError::Retry.into()),
        };
        let new = NewRecord {
            id,
            rail,
            pay_until,
            trace_parent: self.asked.trace_parent,
            session: session.id,
            instructions,
            hosted: None,
        };
        let record = redeem(self.context, tx, who, quote, new, now).await?;
        Ok(Decision::Done(record))
    }
}

impl RedemptionWrite<'_> {
    /// The quote, if the session may redeem it.
    fn redeemable(
        &self,
        session: &Session,
        quote: Option<SignedQuote>,
        now: Timestamp,
    ) -> Result<SignedQuote, RedeemError> {
        if !user_is_approved(session, self.access.tenant.mode) {
            return Err(RedeemError::UserNotApproved);
        }
        // A quote of the hosted flow is for its widget alone.
        let quote = quote.filter(|quote| quote.session.is_none());
        let quote = quote.ok_or(RedeemError::NotFound)?;
        fits(self.asked.kind, session, &quote.terms)?;
        quote.must_be_active(now)?;
        Ok(quote)
    }
}
