//! Quoting a session: the signed quote that its user pays in the widget.
//!
//! The amount is bound to the session, so a request has no amount. A new quote supersedes the session's earlier one. The rate is
//! requested before the transaction.

use std::sync::Arc;
use std::time::Duration;

use kernel::rates::{Side, SourceRate};
use kernel::{Amount, Asset, StoreError};
use partner_core::Denial;
use partner_core::ports::RateSource;
use partner_core::races::retry_lost_races;

use super::context::GateContext;
use crate::access::{GateAccess, GateDenial, may_write};
use crate::catalogue::{
    Catalogue, CountryCode, Ineligible, Listing, Method, Network, SwapOffer, WalletError,
};
use crate::embed::SessionToken;
use crate::error::GateError;
use crate::pricing::{OutOfRange, SwapLeg, price, price_received, price_swap};
use crate::rail::{Mismatch, is_for};
use crate::session::{Flow, Session, SessionAction, SessionRefusal};
use crate::signed_quote::{Conversion, Installation, Issue, QuoteTerms, SignedQuote, Source};

#[derive(Clone)]
pub struct QuoteSession {
    /// The store, the sealer that signs, and the source of ids.
    pub context: GateContext,
    pub catalogue: Arc<Catalogue>,
    /// The source of rates.
    pub rates: Arc<dyn RateSource>,
    /// The time from creation to expiry.
    pub ttl: Duration,
}

/// The fields of the request, unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOrder {
    /// `side`, and what depends on it.
    pub conversion: OrderedConversion,
    pub asset: String,
    pub network: String,
    /// The user's country, as the edge names it.
    pub country: Option<CountryCode>,
}

/// What pays for the asset of an order, or is paid for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderedConversion {
    /// A purchase or a sale.
    Ramp { side: Side, payment_method: String },
    Swap {
        source_asset: String,
        source_network: String,
    },
}

/// Why a session was not quoted. Its earlier quote stays.
#[derive(Debug, thiserror::Error)]
pub enum QuoteSessionError {
    /// The partner has no such session.
    #[error("no such session")]
    NotFound,
    /// Newer tokens of the session have ended the widget's token.
    #[error("the token has expired")]
    TokenExpired,
    /// The session has ended, or a payment of it is in progress.
    #[error(transparent)]
    Session(#[from] SessionRefusal),
    #[error("`asset`: expected an asset that is offered, such as \"USDT\"")]
    UnknownAsset,
    #[error("`network`: expected a network of the asset, such as \"ethereum\"")]
    UnknownNetwork,
    #[error("`source_asset`: expected an asset that is offered, such as \"USDC\"")]
    UnknownSourceAsset,
    #[error("`source_network`: expected a network of the source asset, such as \"ethereum\"")]
    UnknownSourceNetwork,
    /// A swap of an asset for itself.
    #[error("`source_asset`: expected another asset than `asset`")]
    SameAsset,
    /// `payment_method`
    #[error(
        "`payment_method`: expected a method of the session's currency and of the side, such as \"sepa\""
    )]
    UnknownMethod,
    /// The session is for another flow, asset or network.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The session's `wallet_address` is not that of a wallet on the network.
    #[error(transparent)]
    Wallet(#[from] WalletError),
    /// The catalogue does not offer the order.
    #[error("the order is not offered: {}", .0.as_str())]
    NotOffered(Ineligible),
    /// No source has a fresh rate.
    #[error("there is no rate at present")]
    RateUnavailable,
    /// The session's amount has more digits than its currency, or a leg is out of range.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// The API key was revoked, or the partner may not use the gate.
    #[error(transparent)]
    Denied(#[from] GateDenial),
    /// The use case could not finish.
    #[error(transparent)]
    Failed(#[from] GateError),
}

impl From<StoreError> for QuoteSessionError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

/// A checked order.
struct Checked<'c> {
    amount: Amount,
    listing: &'c Listing,
    network: &'c Network,
    by: CheckedConversion<'c>,
}

enum CheckedConversion<'c> {
    Ramp(&'c Method),
    Swap {
        source: &'c Listing,
        source_network: &'c Network,
        offer: &'c SwapOffer,
    },
}

/// The chain of an asset with this name, if Penstock can check its addresses.
fn network_of<'c>(listing: &'c Listing, chain: &str) -> Option<&'c Network> {
    let network = listing.network(chain);
    network.filter(|network| network.address_form().is_some())
}

impl QuoteSession {
    /// Quotes the session of a token, if it is open.
    ///
    /// # Errors
    /// [`QuoteSessionError`]. A refusal because of a due expiry still commits the expiry.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(session.id = %token.session))]
    pub async fn quote(
        &self,
        access: &GateAccess,
        token: SessionToken,
        order: &SessionOrder,
    ) -> Result<SignedQuote, QuoteSessionError> {
        let found = self.context.expire_if_due(&access.tenant, token.session);
        let session = found.await?.ok_or(QuoteSessionError::NotFound)?;
        if !session.admits(token) {
            return Err(QuoteSessionError::TokenExpired);
        }
        let now = self.context.store.gate_now().await?;
        if let Some(refusal) = session.advance(SessionAction::Pay, now).refused {
            return Err(refusal.into());
        }
        let terms = self.terms(&session, order).await?;
        let installation = self.context.store.installation_get().await?;
        retry_lost_races(|| self.write(access, token, &terms, &installation)).await?
    }

    async fn terms(
        &self,
        session: &Session,
        order: &SessionOrder,
    ) -> Result<QuoteTerms, QuoteSessionError> {
        let checked = self.check(session, order)?;
        let (asset, amount) = (checked.listing.asset, checked.amount);
        let rate = self.rate(session, asset, amount).await?;
        let (conversion, priced) = match checked.by {
            CheckedConversion::Ramp(method) => {
                let schedule = method.fees(checked.network);
                let priced = match method.side {
                    Side::OnRamp => price(Side::OnRamp, amount, asset, &rate, &schedule),
                    Side::OffRamp => price_received(amount, asset, &rate, &schedule),
                };
                (Conversion::ramp(method.side, method.id.clone()), priced?)
            }
            CheckedConversion::Swap {
                source,
                source_network,
                offer,
            } => {
                let source_rate = self.rate(session, source.asset, amount).await?;
                let sent = SwapLeg {
                    asset: source.asset,
                    rate: &source_rate,
                };
                let received = SwapLeg { asset, rate: &rate };
                let swap = price_swap(amount, sent, received, &offer.fees(checked.network))?;
                let source = Source {
                    amount: swap.sent,
                    network: source_network.chain.clone(),
                };
                (Conversion::Swap(source), swap.priced)
            }
        };
        Ok(QuoteTerms {
            conversion,
            network: checked.network.chain.clone(),
            priced,
        })
    }

    async fn rate(
        &self,
        session: &Session,
        asset: Asset,
        amount: Amount,
    ) -> Result<SourceRate, QuoteSessionError> {
        let rate = self.rates.rate(session.terms.currency, asset, amount).await;
        rate.ok_or(QuoteSessionError::RateUnavailable)
    }

    fn check(
        &self,
        session: &Session,
        order: &SessionOrder,
    ) -> Result<Checked<'_>, QuoteSessionError> {
        let listing = self.catalogue.asset(&order.asset);
        let listing = listing.ok_or(QuoteSessionError::UnknownAsset)?;
        let network = network_of(listing, &order.network);
        let network = network.ok_or(QuoteSessionError::UnknownNetwork)?;
        let by = self.check_conversion(session, order, listing, network)?;
        self.check_wallet(session, &by, network)?;
        let amount = session.terms.fiat();
        Ok(Checked {
            amount: amount.ok_or(Mismatch("amount"))?,
            listing,
            network,
            by,
        })
    }

    fn check_conversion(
        &self,
        session: &Session,
        order: &SessionOrder,
        listing: &Listing,
        network: &Network,
    ) -> Result<CheckedConversion<'_>, QuoteSessionError> {
        let (currency, country) = (session.terms.currency, order.country);
        match &order.conversion {
            OrderedConversion::Ramp {
                side,
                payment_method,
            } => {
                let side = *side;
                is_for(session, side.into(), listing.asset, &network.chain)?;
                let method = self.catalogue.method(side, currency, payment_method);
                let method = method.filter(|method| method.is_for_widget());
                let method = method.ok_or(QuoteSessionError::UnknownMethod)?;
                self.catalogue
                    .offers(side, currency, listing, country)
                    .map_err(QuoteSessionError::NotOffered)?;
                Ok(CheckedConversion::Ramp(method))
            }
            OrderedConversion::Swap {
                source_asset,
                source_network,
            } => {
                let source = self.catalogue.asset(source_asset);
                let source = source.ok_or(QuoteSessionError::UnknownSourceAsset)?;
                let source_network = network_of(source, source_network);
                let source_network =
                    source_network.ok_or(QuoteSessionError::UnknownSourceNetwork)?;
                if source.asset == listing.asset {
                    return Err(QuoteSessionError::SameAsset);
                }
                is_for(session, Flow::Swap, listing.asset, &network.chain)?;
                self.catalogue
                    .offers_swap(currency, source, listing, country)
                    .map_err(QuoteSessionError::NotOffered)?;
                let offer = self.catalogue.swaps_in(currency);
                let closed = QuoteSessionError::NotOffered(Ineligible::CorridorNotAvailable);
                Ok(CheckedConversion::Swap {
                    source,
                    source_network,
                    offer: offer.ok_or(closed)?,
                })
            }
        }
    }

    /// Checks the session's `wallet_address`, if it has one and the order delivers to it.
    fn check_wallet(
        &self,
        session: &Session,
        by: &CheckedConversion<'_>,
        network: &Network,
    ) -> Result<(), WalletError> {
        let is_delivered = match by {
            CheckedConversion::Ramp(method) => method.side == Side::OnRamp,
            CheckedConversion::Swap { .. } => true,
        };
        let wallet = session.terms.wallet_address.as_deref();
        match (wallet, network.address_form()) {
            (Some(wallet), Some(form)) if is_delivered => {
                self.catalogue.check_wallet(&network.chain, form, wallet)
            }
            _ => Ok(()),
        }
    }

    async fn write(
        &self,
        access: &GateAccess,
        token: SessionToken,
        terms: &QuoteTerms,
        installation: &Installation,
    ) -> Result<Result<SignedQuote, QuoteSessionError>, GateError> {
        let (who, id) = (&access.tenant, token.session);
        let mut tx = self.context.store.gate_begin("session_quote").await?;
        let session = tx.session_lock(who, id).await?;
        let stored = tx.access_get(who, access.key.id).await?;
        let now = tx.now().await?;
        let stored = stored.ok_or(GateDenial::Access(Denial::KeyRevoked));
        if let Err(denial) = stored.and_then(|stored| may_write(&stored, now)) {
            return Ok(Err(denial.into()));
        }
        let Some(session) = session else {
            return Ok(Err(QuoteSessionError::NotFound));
        };
        if !session.admits(token) {
            return Ok(Err(QuoteSessionError::TokenExpired));
        }
        let paying = self
            .context
            .act(tx.as_mut(), who, session, SessionAction::Pay, now)
            .await?;
        if let Some(refused) = paying.refused {
            if paying.changed {
                tx.commit().await?;
            }
            return Ok(Err(refused.into()));
        }
        let issue = Issue {
            installation,
            tenant: who,
        };
        let (context, terms) = (&self.context, terms.clone());
        let quote = context.sign_quote(issue, terms, Some(id), now, self.ttl)?;
        tx.signed_quotes_supersede(who, id, now).await?;
        tx.signed_quote_insert(who, &quote).await?;
        tx.commit().await?;
        Ok(Ok(quote))
    }
}
