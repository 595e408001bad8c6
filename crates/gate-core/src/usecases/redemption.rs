//! What both ways to redeem a quote share: the locks, the first checks, and the writes.

use std::sync::Arc;

use kernel::{StoreResult, Timestamp, TraceParent, UpstreamName};
use partner_core::{Denial, Tenant};

use super::context::GateContext;
use crate::access::{GateAccess, GateDenial};
use crate::catalogue::Catalogue;
use crate::embed::SessionToken;
use crate::error::GateError;
use crate::events::{QUOTE_CONSUMED, Resource};
use crate::idempotent::Decision;
use crate::ports::{GateTx, Rail, RailOrder};
use crate::rail::{Contradiction, Hosted, Instructions, PollLease, RailId, RailRecord, RailState};
use crate::session::{Session, SessionAction, SessionId, SessionRefusal};
use crate::signed_quote::{SignedQuote, SignedQuoteId};
use crate::transaction::RefId;

/// The locked rows of a redemption, and the access of its caller.
pub(super) struct RedemptionRows {
    session: Option<Session>,
    quote: Option<SignedQuote>,
    access: Option<Arc<GateAccess>>,
}

impl RedemptionRows {
    /// Locks the session, then the quote.
    pub(super) async fn lock(
        tx: &mut dyn GateTx,
        access: &GateAccess,
        session: Option<SessionId>,
        quote: Option<SignedQuoteId>,
    ) -> StoreResult<Self> {
        let who = &access.tenant;
        Ok(Self {
            session: match session {
                Some(id) => tx.session_lock(who, id).await?,
                None => None,
            },
            quote: match quote {
                Some(id) => tx.signed_quote_lock(who, id).await?,
                None => None,
            },
            access: tx.access_get(who, access.key.id).await?,
        })
    }

    /// Whether a widget's token still counts in the session. An absent session is refused later.
    pub(super) fn admits(&self, token: SessionToken) -> bool {
        let session = self.session.as_ref();
        session.is_none_or(|session| session.admits(token))
    }

    /// The session if it may be paid, with the quote if it exists. `may` checks the access as it is now.
    pub(super) async fn payable<T, E>(
        self,
        context: &GateContext,
        tx: &mut dyn GateTx,
        who: &Tenant,
        may: fn(&GateAccess, Timestamp) -> Result<(), GateDenial>,
        now: Timestamp,
    ) -> Result<Result<(Session, Option<SignedQuote>), Decision<T, E>>, GateError>
    where
        E: From<GateDenial> + From<SessionRefusal> + From<NoSession>,
    {
        let access = self.access.ok_or(GateDenial::Access(Denial::KeyRevoked));
        if let Err(denial) = access.and_then(|access| may(&access, now)) {
            return Ok(Err(Decision::Refused(denial.into())));
        }
        let Some(session) = self.session else {
            return Ok(Err(Decision::Refused(NoSession.into())));
        };
        let paying = context
            .act(tx, who, session, SessionAction::Pay, now)
            .await?;
        Ok(match paying.refusal() {
            Some(refusal) => Err(refusal),
            None => Ok((paying.session, self.quote)),
        })
    }
}

/// The partner has no session with this id.
pub(super) struct NoSession;

/// What a new record has beside its quote.
pub(super) struct NewRecord {
    pub(super) id: RailId,
    /// The rail that holds it.
    pub(super) rail: UpstreamName,
    pub(super) pay_until: Option<Timestamp>,
    pub(super) trace_parent: Option<TraceParent>,
    pub(super) session: SessionId,
    pub(super) instructions: Option<Instructions>,
    pub(super) hosted: Option<Hosted>,
}

/// Why a rail gave no instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Uninstructed {
    /// It did not respond.
    #[error("the rail did not answer")]
    Silent,
    /// What it asks for differs from what the customer confirmed.
    #[error("the rail asks for something else than what the customer confirmed")]
    OtherTerms,
}

/// Asks the rail for the instructions of a payment.
pub(super) async fn instructions(
    rail: &dyn Rail,
    order: &RailOrder,
    catalogue: &Catalogue,
) -> Result<Instructions, Uninstructed> {
    let instructions = rail.instructions(order).await;
    let instructions = instructions.ok_or(Uninstructed::Silent)?;
    let differing = instructions.differences(&order.terms, catalogue.paid_address(&order.terms));
    if differing.is_empty() {
        return Ok(instructions);
    }
    let contradiction = Contradiction::OtherTerms;
    tracing::error!(rail.id = %order.id, rail.name = %rail.name(), rail.fields = differing.join(","), "{contradiction}");
    rail.contradicted(contradiction);
    Err(Uninstructed::OtherTerms)
}

/// Writes the redemption of a quote: the record, its transaction and the events of both.
pub(super) async fn redeem(
    context: &GateContext,
    tx: &mut dyn GateTx,
    who: &Tenant,
    quote: SignedQuote,
    new: NewRecord,
    now: Timestamp,
) -> Result<RailRecord, GateError> {
    let record = RailRecord {
        id: new.id,
        quote: quote.id,
        terms: quote.terms.clone(),
        session: new.session,
        refid: RefId::new(who.mode, now, context.entropy.as_ref()),
        instructions: new.instructions,
        hosted: new.hosted,
        rail: new.rail,
        created_at: now,
        pay_until: new.pay_until,
        state: RailState::Processing,
        asking: PollLease::first_due(now),
        acknowledged_at: None,
        received: None,
        open_item: None,
        trace_parent: new.trace_parent,
        watch_at: None,
    };
    let quote = quote.consumed(now);
    tx.signed_quote_consume(who, quote.id, now).await?.won()?;
    tx.transaction_insert(who, &record.transaction()).await?;
    tx.rail_insert(who, &record).await?;
    let consumed = record.has_rail_events().then_some(QUOTE_CONSUMED);
    for (kind, resource) in [
        (consumed, Resource::SignedQuote(&quote)),
        (record.event(), Resource::Rail(&record)),
    ] {
        if let Some(kind) = kind {
            let event = context.events().event(who, kind, resource, now)?;
            tx.event_insert(&event).await?;
        }
    }
    Ok(record)
}
