//! Paying a session in the widget: its user redeems the session's quote.
//!
//! A payment is a rail record, with the transaction and the settlement of one. The partner needs no rails for it. The rail is asked
//! for its instructions before the transaction; the money moves after the commit (`advance_rails.rs`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use kernel::rates::Side;
use kernel::{Mode, StoreError, StoreResult, Timestamp, TraceParent, UpstreamName, Upstreams};
use partner_core::Tenant;
use partner_core::idempotency::{Fingerprint, OperationKey};
use partner_core::sealing::SealRefused;
use partner_core::stored_response::{IdempotentRequest, IdempotentResponse, Render};
use serde_json::json;

use super::context::GateContext;
use super::redeem_quote::NoRail;
use super::redemption::{NewRecord, NoSession, RedemptionRows, Uninstructed, instructions, redeem};
use super::verify_user::{VerificationRefusal, VerifyUser};
use crate::access::{GateAccess, GateDenial, may_write};
use crate::amount::SessionAmount;
use crate::catalogue::{Catalogue, CountryCode, Network, WalletError};
use crate::embed::SessionToken;
use crate::error::GateError;
use crate::events::Resource;
use crate::idempotent::{Decision, GateWrite, Idempotent};
use crate::payout::{Payout, PayoutError};
use crate::ports::{GateTx, Rail, RailOrder};
use crate::rail::{Hosted, Instructions, RailId, RailKind, RailRecord};
use crate::session::{Session, SessionId, SessionRefusal};
use crate::signed_quote::{Conversion, QuoteClosed, QuoteTerms, SignedQuote, SignedQuoteId};
use crate::verification::TestVerification;

#[derive(Clone)]
pub struct PaySession {
    pub context: GateContext,
    /// Runs the write.
    pub idempotent: Idempotent,
    pub catalogue: Arc<Catalogue>,
    pub rails: Upstreams<dyn Rail>,
    /// Says whether the user must be verified first.
    pub verifying: VerifyUser,
}

/// The fields of the request, unchanged.
#[derive(Clone, PartialEq, Eq)]
pub struct PaymentRequest {
    /// `quote_id`
    pub quote: String,
    pub wallet_address: Option<String>,
    pub payout: Option<BTreeMap<String, String>>,
    /// The user's country, as the edge names it. A retry may come from elsewhere, so it is no part of the request's fingerprint.
    pub country: Option<CountryCode>,
    /// When the widget's token expires.
    pub until: Timestamp,
    /// The position of the request in its trace. It is no part of the request's fingerprint either.
    pub trace_parent: Option<TraceParent>,
}

/// The address and the account are personal data, so `Debug` omits them.
impl fmt::Debug for PaymentRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PaymentRequest")
            .field("quote", &self.quote)
            .finish_non_exhaustive()
    }
}

/// Why nothing was paid. The idempotency key stays unused, and the quote is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum PayError {
    /// The widget's token has expired by the clock of the store, or newer tokens of its session have ended it.
    #[error("the token has expired")]
    TokenExpired,
    /// No rail is configured.
    #[error(transparent)]
    NoRail(#[from] NoRail),
    /// The rail did not return usable payment instructions.
    #[error(transparent)]
    Uninstructed(#[from] Uninstructed),
    /// The API key was revoked, or the partner may not use the gate.
    #[error(transparent)]
    Denied(#[from] GateDenial),
    /// The session has no such quote.
    #[error("no such quote of the session")]
    NotFound,
    /// The session has ended, or a payment of it is in progress.
    #[error(transparent)]
    Session(#[from] SessionRefusal),
    /// The quote was redeemed, was superseded or has expired.
    #[error(transparent)]
    Closed(#[from] QuoteClosed),
    /// What the user gave does not fit the quote.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The user is not verified.
    #[error("{refusal}")]
    Unverified {
        refusal: VerificationRefusal,
        /// The session's amount if it asks for the verification, which only amounts of mode test do.
        test_amount: Option<SessionAmount>,
    },
    /// The use case could not finish.
    #[error(transparent)]
    Failed(#[from] GateError),
}

/// A field of the request that is malformed or does not fit the quote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// The id of the quote is malformed.
    #[error("`quote_id`: expected the id of a quote, as its creation returned it")]
    QuoteId,
    /// The purchase or swap has no address to deliver to.
    #[error("`wallet_address`: expected the address that receives the asset")]
    NoAddress,
    /// The payment delivers no crypto.
    #[error("`wallet_address`: expected only for a purchase or a swap; omit it")]
    AddressOfSale,
    /// The address is not that of a wallet on the network.
    #[error("`wallet_address`: {0}")]
    Address(#[from] WalletError),
    /// The catalogue no longer offers the quote's network, or Penstock cannot check its addresses.
    #[error("the quote's network is no longer offered; request another quote")]
    NetworkNotOffered,
    /// The session has another address, which cannot be changed.
    #[error("the session's `wallet_address` cannot be changed; omit the field")]
    OtherAddress,
    /// The payout account is absent or malformed.
    #[error(transparent)]
    Payout(#[from] PayoutError),
}

impl From<NoSession> for PayError {
    fn from(_: NoSession) -> Self {
        Self::NotFound
    }
}

impl PaymentRequest {
    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_json(&json!([self.quote, self.wallet_address, self.payout]))
    }
}

/// What was found out before the transaction.
enum Prepared {
    /// The quote appeared closed, so nothing was asked.
    NotAsked,
    /// The request does not fit the quote.
    Refused(InputError),
    /// The user was not verified, so the rail was not asked.
    Unverified,
    /// No rail is configured.
    NoRail,
    /// The rail gave no usable instructions.
    Uninstructed(Uninstructed),
    Ready(Box<Agreed>),
}

/// What the rail and the user have agreed on.
struct Agreed {
    /// The id of the new record.
    id: RailId,
    /// The rail that holds it.
    rail: UpstreamName,
    pay_until: Timestamp,
    /// What the payer needs.
    instructions: Instructions,
    /// What the user gave.
    hosted: Hosted,
}

impl PaySession {
    /// Pays the session of a token with its quote, or replays the response that is stored under the key. The key's operation
    /// contains the session: two users of one partner may send the same key. A token that has ended gets no replay either.
    ///
    /// # Errors
    /// [`PayError`]. A refusal because of a due expiry still commits the expiry.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(session.id = %token.session))]
    pub async fn pay(
        &self,
        access: &GateAccess,
        token: SessionToken,
        key: OperationKey,
        asked: &PaymentRequest,
        render: &Render<'_, RailRecord>,
    ) -> Result<IdempotentResponse, PayError> {
        let store = &self.context.store;
        let found = store.session_get(&access.tenant, token.session).await;
        let session = found.map_err(GateError::from)?.map(|seen| seen.value);
        if session
            .as_ref()
            .is_some_and(|session| !session.admits(token))
        {
            return Err(PayError::TokenExpired);
        }
        let request = IdempotentRequest::new(&access.tenant, key, asked.fingerprint());
        let quote = SignedQuoteId::parse(&asked.quote);
        let prepare = async {
            Ok(PaymentWrite {
                paying: self,
                access,
                token,
                asked,
                quote: quote.and_then(|id| id.in_mode(access.tenant.mode)),
                prepared: self.prepare(access, session.as_ref(), asked).await?,
            })
        };
        self.idempotent.run(Some(request), prepare, render).await
    }

    /// Checks what the user gave against the quote and asks the rail for the instructions. A quote that appears closed is skipped,
    /// because it cannot be redeemed.
    async fn prepare(
        &self,
        access: &GateAccess,
        session: Option<&Session>,
        asked: &PaymentRequest,
    ) -> Result<Prepared, GateError> {
        let who = &access.tenant;
        let store = &self.context.store;
        let Some(quote) = SignedQuoteId::parse(&asked.quote) else {
            return Ok(Prepared::Refused(InputError::QuoteId));
        };
        let (Some(quote), Some(session)) = (quote.in_mode(who.mode), session) else {
            return Ok(Prepared::NotAsked);
        };
        let seen = store.signed_quote_get(who, quote).await?;
        let seen = seen.filter(|seen| may_redeem(&seen.value, session.id, seen.at));
        let Some(seen) = seen else {
            return Ok(Prepared::NotAsked);
        };
        let (terms, now) = (seen.value.terms, seen.at);
        let kind = RailKind::of(terms.flow());
        let id = RailId::new(kind, who.mode, now, self.context.entropy.as_ref());
        let pay_until = now.plus(self.catalogue.pay_within(&terms));
        let order = match self.order(who, (id, pay_until, terms), session, asked) {
            Ok(order) => order,
            Err(refusal) => return Ok(Prepared::Refused(refusal)),
        };
        let verifying = &self.verifying;
        let verification = verifying.status(who, session, asked.country).await?;
        if !verification.status.allows_payment() {
            return Ok(Prepared::Unverified);
        }
        let Some(rail) = self.rails.present.as_deref() else {
            return Ok(Prepared::NoRail);
        };
        let instructions = match instructions(rail, &order, &self.catalogue).await {
            Ok(instructions) => instructions,
            Err(reason) => return Ok(Prepared::Uninstructed(reason)),
        };
        let hosted = self.seal(access, &order).map_err(StoreError::from)?;
        Ok(Prepared::Ready(Box::new(Agreed {
            id,
            rail: rail.name(),
            pay_until,
            instructions,
            hosted,
        })))
    }

    /// The order for the rail: where to deliver the asset of a purchase or swap, or where to pay out a sale.
    fn order(
        &self,
        who: &Tenant,
        (id, pay_until, terms): (RailId, Timestamp, QuoteTerms),
        session: &Session,
        asked: &PaymentRequest,
    ) -> Result<RailOrder, InputError> {
        let (wallet_address, payout) = match &terms.conversion {
            Conversion::Purchase { .. } | Conversion::Swap(_) => {
                if asked.payout.is_some() {
                    return Err(PayoutError::NotASale.into());
                }
                (Some(self.address(&terms, session, asked)?), None)
            }
            Conversion::Sale { payment_method } => {
                if asked.wallet_address.is_some() {
                    return Err(InputError::AddressOfSale);
                }
                let given = asked.payout.as_ref().ok_or(PayoutError::Missing)?;
                let catalogue = &self.catalogue;
                let method = catalogue.method(Side::OffRamp, terms.currency(), payment_method);
                let form = method.and_then(|method| method.account);
                let form = form.ok_or(PayoutError::NotOffered)?;
                (None, Some(Payout::parse(form, given)?))
            }
        };
        Ok(RailOrder {
            partner: who.partner.clone(),
            id,
            terms,
            pay_until: Some(pay_until),
            wallet_address,
            payout,
            trace_parent: None,
        })
    }

    /// The address of a purchase or swap. The session's own address cannot be changed.
    fn address(
        &self,
        terms: &QuoteTerms,
        session: &Session,
        asked: &PaymentRequest,
    ) -> Result<String, InputError> {
        let given = asked.wallet_address.as_ref();
        let address = match (&session.terms.wallet_address, given) {
            (Some(own), Some(given)) if own != given => return Err(InputError::OtherAddress),
            (Some(own), _) => own,
            (None, Some(given)) => given,
            (None, None) => return Err(InputError::NoAddress),
        };
        let listing = self.catalogue.asset(terms.asset().code());
        let network = listing.and_then(|listing| listing.network(&terms.network));
        let form = network.and_then(Network::address_form);
        let form = form.ok_or(InputError::NetworkNotOffered)?;
        self.catalogue.check_wallet(&terms.network, form, address)?;
        Ok(address.clone())
    }

    fn seal(&self, access: &GateAccess, order: &RailOrder) -> Result<Hosted, SealRefused> {
        let GateContext {
            sealer, entropy, ..
        } = &self.context;
        let who = &access.tenant;
        let sealed = order
            .payout
            .as_ref()
            .map(|payout| payout.seal(who, order.id, sealer, entropy.as_ref()))
            .transpose()?;
        Ok(Hosted {
            wallet_address: order.wallet_address.clone(),
            payout: sealed,
            rail_events: access.profile.rails_entitled().is_ok(),
        })
    }
}

/// Whether a quote can be redeemed for the session.
fn may_redeem(quote: &SignedQuote, session: SessionId, now: Timestamp) -> bool {
    quote.session == Some(session) && quote.must_be_active(now).is_ok()
}

struct PaymentWrite<'w> {
    paying: &'w PaySession,
    access: &'w GateAccess,
    token: SessionToken,
    asked: &'w PaymentRequest,
    quote: Option<SignedQuoteId>,
    prepared: Prepared,
}

#[async_trait]
impl GateWrite for PaymentWrite<'_> {
    type Rows = RedemptionRows;
    type Done = RailRecord;
    type Error = PayError;

    fn name(&self) -> &'static str {
        "payment_create"
    }

    async fn lock(&self, tx: &mut dyn GateTx) -> StoreResult<RedemptionRows> {
        RedemptionRows::lock(tx, self.access, Some(self.token.session), self.quote).await
    }

    async fn decide(
        &self,
        tx: &mut dyn GateTx,
        rows: RedemptionRows,
        now: Timestamp,
    ) -> Result<Decision<RailRecord, PayError>, GateError> {
        if now >= self.asked.until || !rows.admits(self.token) {
            return Ok(Decision::Refused(PayError::TokenExpired));
        }
        let who = &self.access.tenant;
        let context = &self.paying.context;
        let payable = rows.payable(context, tx, who, may_write, now);
        let malformed = matches!(self.prepared, Prepared::Refused(InputError::QuoteId));
        let (session, quote) = match payable.await? {
            Ok(_)
            | Err(Decision::Refused(PayError::Session(SessionRefusal::PaymentInProgress)))
                if malformed =>
            {
                return Ok(Decision::Refused(InputError::QuoteId.into()));
            }
            Ok(payable) => payable,
            Err(refusal) => return Ok(refusal),
        };
        let quote = quote.filter(|quote| quote.session == Some(session.id));
        let Some(quote) = quote else {
            return Ok(Decision::Refused(PayError::NotFound));
        };
        if let Err(closed) = quote.must_be_active(now) {
            return Ok(Decision::Refused(closed.into()));
        }
        if let Prepared::Refused(refusal) = &self.prepared {
            return Ok(Decision::Refused(refusal.clone().into()));
        }
        let verifying = &self.paying.verifying;
        let required = verifying.require(tx, who, &session, self.asked.country, now);
        if let Err(refusal) = required.await? {
            let amount = &session.terms.amount;
            let is_test = who.mode == Mode::Test && TestVerification::of(amount).is_some();
            return Ok(Decision::RefusedWithWrites(PayError::Unverified {
                refusal,
                test_amount: is_test.then(|| amount.clone()),
            }));
        }
        let agreed = match &self.prepared {
            Prepared::Ready(agreed) => agreed.as_ref(),
            Prepared::Refused(refusal) => return Ok(Decision::Refused(refusal.clone().into())),
            Prepared::NoRail => return Ok(Decision::Refused(NoRail.into())),
            Prepared::Uninstructed(reason) => return Ok(Decision::Refused((*reason).into())),
            // The quote was created, or the user was verified, after `prepare` looked. The client may retry.
            Prepared::NotAsked | Prepared::Unverified => return Err(StoreError::Retry.into()),
        };
        let new = NewRecord {
            id: agreed.id,
            rail: agreed.rail.clone(),
            pay_until: Some(agreed.pay_until),
            trace_parent: self.asked.trace_parent,
            session: session.id,
            instructions: Some(agreed.instructions.clone()),
            hosted: Some(agreed.hosted.clone()),
        };
        let record = redeem(context, tx, who, quote, new, now).await?;
        if let Some(kind) = record.session_event() {
            let resource = Resource::Payment(&session, &record);
            let event = context.events().event(who, kind, resource, now)?;
            tx.event_insert(&event).await?;
        }
        Ok(Decision::Done(record))
    }
}
