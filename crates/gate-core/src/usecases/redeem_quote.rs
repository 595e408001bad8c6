//! Redeeming a signed quote: a pay-in or a pay-out for the user of a session.
//!
//! The rail is asked what the payer needs before a transaction is opened. In it session and quote
//! are judged, the rail's own answer last, and the redemption, the record, its transaction, the events
//! and the answer are written together. What moves the money comes after the commit (`settling.rs`).

use std::fmt;
use std::sync::Arc;

use kernel::StoreError;
use partner_core::idempotency::{Fingerprint, IdempotencyKey, Scope};
use partner_core::races::{LostRace, retry_lost_races};
use partner_core::stored_response::{
    Begin, IdempotentRequest, IdempotentResponse, Render, ResponseStore, ResponseStoreError,
};
use partner_core::{Access, Denial, Tenant};
use serde_json::json;

use super::expiry::{ExpiryError, GateContext};
use crate::events::EventError;
use crate::ports::{GateTx, Rail, RailOrder};
use crate::rail::{
    Instructions, Mismatch, PollLease, RailId, RailKind, RailRecord, RailState, fits,
    user_is_approved,
};
use crate::session::{SessionAction, SessionId, SessionRefusal};
use crate::signed_quote::{QuoteClosed, SignedQuote, SignedQuoteId};
use crate::transaction::RefId;

/// Redeems quotes.
#[derive(Clone)]
pub struct RedeemQuote {
    /// The store, and what events are made with.
    pub sessions: GateContext,
    /// Keeps answers.
    pub answers: ResponseStore,
    /// What will move the money.
    pub rail: Option<Arc<dyn Rail>>,
}

impl fmt::Debug for RedeemQuote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redeeming")
    }
}

/// What is to be redeemed for whom, as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redemption {
    /// By which kind of record.
    pub kind: RailKind,
    /// `quote_id`
    pub quote: String,
    /// `session_id`
    pub session: String,
}

/// No rail is configured, so nothing can be paid in or out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no rail is configured")]
pub struct NoRail;

/// Why nothing was redeemed; the key stays free, and the quote is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RedeemError {
    /// A request with the same key is being worked on.
    #[error("a request with the same idempotency key is in progress")]
    InProgress,
    /// Nothing could move the money.
    #[error(transparent)]
    NoRail(#[from] NoRail),
    /// The rail did not say what the payer needs.
    #[error("the rail did not answer")]
    RailSilent,
    /// The key is no longer good.
    #[error(transparent)]
    Denied(#[from] Denial),
    /// No such session or quote of this partner.
    #[error("no such session or quote")]
    NotFound,
    /// The session has ended, or a payment of it is in progress.
    #[error(transparent)]
    Session(#[from] SessionRefusal),
    /// Nobody has approved the session's user.
    #[error("the session's user is not approved")]
    UserNotApproved,
    /// The quote is not one for this session.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The quote has been redeemed, or is too old.
    #[error(transparent)]
    Closed(#[from] QuoteClosed),
    /// The answer could not be given or kept.
    #[error(transparent)]
    Answer(#[from] ResponseStoreError),
    /// An event could not be made.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<ExpiryError> for RedeemError {
    fn from(error: ExpiryError) -> Self {
        match error {
            ExpiryError::Event(fault) => Self::Event(fault),
            ExpiryError::Store(error) => Self::Store(error),
        }
    }
}

impl LostRace for RedeemError {
    fn lost_race(&self) -> bool {
        match self {
            Self::Answer(fault) => fault.lost_race(),
            Self::Store(error) => error.lost_race(),
            Self::InProgress
            | Self::NoRail(_)
            | Self::RailSilent
            | Self::Denied(_)
            | Self::NotFound
            | Self::Session(_)
            | Self::UserNotApproved
            | Self::Mismatch(_)
            | Self::Closed(_)
            | Self::Event(_) => false,
        }
    }
}

impl Redemption {
    const fn route(&self) -> &'static str {
        match self.kind {
            RailKind::PayIn => "POST /v1/rails/pay_ins",
            RailKind::PayOut => "POST /v1/rails/pay_outs",
        }
    }

    fn fingerprint(&self) -> Fingerprint {
        let read = json!([self.quote, self.session]);
        Fingerprint::of(read.to_string().as_bytes())
    }

    /// What is named, if an id of this mode is.
    fn named(&self, who: &Tenant) -> (Option<SessionId>, Option<SignedQuoteId>) {
        let session = SessionId::parse(&self.session);
        let quote = SignedQuoteId::parse(&self.quote);
        (
            session.and_then(|id| id.in_mode(who.mode)),
            quote.and_then(|id| id.in_mode(who.mode)),
        )
    }
}

/// What the rail has said before anything was decided.
enum Prepared {
    /// The quote looked as if it could not be redeemed.
    NotAsked,
    /// There is none.
    NoRail,
    /// Nothing.
    Silent,
    /// What the payer of this record needs.
    Ready(RailId, Option<Instructions>),
}

impl RedeemQuote {
    /// Redeems a quote, or gives the answer its key was first given.
    ///
    /// # Errors
    /// [`RedeemError`]. An expiry of the session that was met is applied all the same.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all)]
    pub async fn redeem(
        &self,
        access: &Access,
        key: IdempotencyKey,
        asked: &Redemption,
        render: &Render<'_, RailRecord>,
    ) -> Result<IdempotentResponse, RedeemError> {
        let call = IdempotentRequest {
            scope: Scope {
                tenant: access.tenant.clone(),
                route: asked.route().to_owned(),
                key,
            },
            fingerprint: asked.fingerprint(),
        };
        let _ticket = match self.answers.enter(Some(&call)).await? {
            Begin::Answered(given) => return Ok(given),
            Begin::Busy => return Err(RedeemError::InProgress),
            Begin::Free(ticket) => ticket,
        };
        retry_lost_races(|| self.redeem_once(access, &call, asked, render)).await
    }

    async fn redeem_once(
        &self,
        access: &Access,
        call: &IdempotentRequest,
        asked: &Redemption,
        render: &Render<'_, RailRecord>,
    ) -> Result<IdempotentResponse, RedeemError> {
        let who = &access.tenant;
        let prepared = self.prepare(who, asked).await?;
        let (session_id, quote_id) = asked.named(who);
        let mut tx = self.sessions.store.gate_begin("rail_create").await?;
        let kept = self.answers.lock(tx.as_mut(), Some(call)).await?;
        let session = match session_id {
            Some(id) => tx.session_lock(who, id).await?,
            None => None,
        };
        let quote = match quote_id {
            Some(id) => tx.signed_quote_lock(who, id).await?,
            None => None,
        };
        let access = tx.access_get(who, access.key.id).await?;
        let access = access.ok_or(Denial::KeyRevoked)?;
        let now = tx.now().await?;
        // A twin may have finished since the first look.
        if let Some(given) = self.answers.given(call, kept.as_ref(), now)? {
            return Ok(given);
        }
        access.may_use_rails(now)?;
        let session = session.ok_or(RedeemError::NotFound)?;
        let used = self
            .sessions
            .act(tx.as_mut(), who, session, SessionAction::Pay, now);
        let used = used.await?;
        if let Some(refused) = used.refused {
            if used.changed {
                tx.commit().await?;
            }
            return Err(refused.into());
        }
        if !user_is_approved(&used.session, who.mode) {
            return Err(RedeemError::UserNotApproved);
        }
        let quote = quote.ok_or(RedeemError::NotFound)?;
        fits(asked.kind, &used.session, &quote.terms)?;
        quote.must_be_active(now)?;
        let (id, instructions) = match prepared {
            Prepared::Ready(id, instructions) => (id, instructions),
            Prepared::NoRail => return Err(NoRail.into()),
            Prepared::Silent => return Err(RedeemError::RailSilent),
            // What looked closed is not: look again.
            Prepared::NotAsked => return Err(StoreError::Retry.into()),
        };
        let record = RailRecord {
            id,
            quote: quote.id,
            terms: quote.terms.clone(),
            session: used.session.id,
            refid: RefId::new(who.mode, now, self.sessions.entropy.as_ref()),
            instructions,
            created_at: now,
            state: RailState::Processing,
            asking: PollLease {
                attempts: 0,
                token: None,
                next_at: now,
            },
        };
        self.write(tx.as_mut(), who, quote.consumed(now), &record)
            .await?;
        let answer = render(&record).map_err(ResponseStoreError::from)?;
        self.answers
            .keep(tx.as_mut(), Some(call), kept.as_ref(), &answer, now)
            .await?;
        tx.commit().await?;
        Ok(IdempotentResponse::Fresh(answer))
    }

    /// Asks the rail what the payer will need, unless the quote looks as if it could not be
    /// redeemed: then nothing comes of it.
    async fn prepare(&self, who: &Tenant, asked: &Redemption) -> Result<Prepared, RedeemError> {
        let Some(rail) = self.rail.as_deref() else {
            return Ok(Prepared::NoRail);
        };
        let (_, Some(quote)) = asked.named(who) else {
            return Ok(Prepared::NotAsked);
        };
        let seen = self.sessions.store.signed_quote_get(who, quote).await?;
        let Some(seen) = seen.filter(|seen| seen.value.must_be_active(seen.at).is_ok()) else {
            return Ok(Prepared::NotAsked);
        };
        let entropy = self.sessions.entropy.as_ref();
        let id = RailId::new(asked.kind, who.mode, seen.at, entropy);
        if asked.kind == RailKind::PayOut {
            return Ok(Prepared::Ready(id, None));
        }
        let order = RailOrder {
            id,
            terms: seen.value.terms,
        };
        let instructions = rail.instructions(&order).await;
        Ok(instructions.map_or(Prepared::Silent, |instructions| {
            Prepared::Ready(id, Some(instructions))
        }))
    }

    async fn write(
        &self,
        tx: &mut dyn GateTx,
        who: &Tenant,
        quote: SignedQuote,
        record: &RailRecord,
    ) -> Result<(), RedeemError> {
        let now = record.created_at;
        tx.signed_quote_consume(who, quote.id, now).await?.won()?;
        tx.transaction_insert(who, &record.transaction()).await?;
        tx.rail_insert(who, record).await?;
        let ink = self.sessions.ink();
        tx.event_insert(&ink.quote_consumed(who, &quote, now)?)
            .await?;
        tx.event_insert(&ink.rail(who, record, now)?).await?;
        Ok(())
    }
}
