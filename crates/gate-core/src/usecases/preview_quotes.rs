//! Previewing an order: its price by each method, at the current rate.
//!
//! A preview is not a promise. If the partner's profile locks previews, one session with the same terms may use the
//! preview.

use std::sync::Arc;
use std::time::Duration;

use crate::access::GateAccess;
use kernel::{Entropy, StoreError, StoreResult, Timestamp};
use partner_core::ports::RateSource;

use crate::catalogue::{Catalogue, Ineligible, Method};
use crate::order::{Order, OrderDraft, OrderError};
use crate::ports::GateStore;
use crate::preview::{Preview, PreviewId, PreviewTerms};
use crate::pricing::{OutOfRange, Priced};

/// Previews orders.
#[derive(Clone)]
pub struct PreviewQuotes {
    pub store: Arc<dyn GateStore>,
    /// Makes ids.
    pub entropy: Arc<dyn Entropy>,
    pub catalogue: Arc<Catalogue>,
    /// The source of rates.
    pub rates: Arc<dyn RateSource>,
    /// The time from creation to expiry.
    pub ttl: Duration,
}

/// The fields of the request, unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewDraft {
    pub order: OrderDraft,
    /// `payment_method`; `None` means all methods of the currency and side.
    pub payment_method: Option<String>,
}

/// The order, priced by each method.
#[derive(Debug)]
pub struct Previewed<'c> {
    /// The id of the lock, if the partner's profile locks previews.
    pub id: Option<PreviewId>,
    /// When the preview expires.
    pub expires_at: Timestamp,
    pub order: Order<'c>,
    /// The price by each method.
    pub options: Vec<PreviewOption<'c>>,
}

/// The order, priced by one method.
#[derive(Debug)]
pub struct PreviewOption<'c> {
    pub method: &'c Method,
    /// The price, or why there is no price.
    pub priced: Result<Priced, Unavailable>,
}

impl PreviewOption<'_> {
    fn is_out_of_range(&self) -> bool {
        matches!(self.priced, Err(Unavailable::OutOfRange))
    }
}

/// Why an order has no price by a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unavailable {
    /// The catalogue does not offer the order.
    Ineligible(Ineligible),
    /// No source has a fresh rate.
    NoRate,
    /// A leg rounds to zero, does not cover the fees, or exceeds 10^10.
    OutOfRange,
}

impl Unavailable {
    /// Every reason that a preview can give. Its currency is in the catalogue, and a country that it does not name is not checked.
    pub const ALL: [Self; 5] = [
        Self::Ineligible(Ineligible::CountryNotSupported),
        Self::Ineligible(Ineligible::AssetNotSupported),
        Self::Ineligible(Ineligible::CorridorNotAvailable),
        Self::NoRate,
        Self::OutOfRange,
    ];

    /// The text on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ineligible(reason) => reason.as_str(),
            Self::NoRate => "rate_unavailable",
            Self::OutOfRange => "amount_out_of_range",
        }
    }
}

/// Why no preview was made.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// A field is invalid.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The catalogue has no such method for the currency and side.
    #[error("`payment_method`: expected a method of the currency and side, such as \"sepa\"")]
    UnknownMethod,
    /// With every method a leg rounds to zero, does not cover the fees, or exceeds 10^10.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PreviewQuotes {
    /// Previews an order. If the partner's profile locks previews, it stores the preview.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all)]
    pub async fn preview(
        &self,
        access: &GateAccess,
        draft: &PreviewDraft,
    ) -> Result<Previewed<'_>, PreviewError> {
        let order = draft.order.validate(&self.catalogue)?;
        let methods = self.methods(&order, draft.payment_method.as_deref())?;
        let options = self.options(&order, methods).await;
        if !options.is_empty() && options.iter().all(PreviewOption::is_out_of_range) {
            return Err(OutOfRange.into());
        }
        let (id, expires_at) = if access.profile.preview_locks {
            let preview = self.lock(access, &order).await?;
            (Some(preview.id), preview.expires_at)
        } else {
            (None, self.store.gate_now().await?.plus(self.ttl))
        };
        Ok(Previewed {
            id,
            expires_at,
            order,
            options,
        })
    }

    fn methods(
        &self,
        order: &Order<'_>,
        wanted: Option<&str>,
    ) -> Result<Vec<&Method>, PreviewError> {
        let of_order = |id| self.catalogue.method(order.side, order.currency, id);
        match wanted {
            Some(id) => of_order(id)
                .map(|method| vec![method])
                .ok_or(PreviewError::UnknownMethod),
            None => Ok(self
                .catalogue
                .methods_for(order.side, order.currency)
                .collect()),
        }
    }

    /// Requests the rate once, and only if the catalogue offers the order.
    async fn options<'c>(
        &'c self,
        order: &Order<'c>,
        methods: Vec<&'c Method>,
    ) -> Vec<PreviewOption<'c>> {
        let source = match self.offers(order) {
            Err(reason) => Err(Unavailable::Ineligible(reason)),
            Ok(()) => {
                let asked = self
                    .rates
                    .rate(order.currency, order.listing.asset, order.amount);
                asked.await.ok_or(Unavailable::NoRate)
            }
        };
        let price = |method| {
            let source = source.as_ref().map_err(|reason| *reason)?;
            let priced = order.price(source, method);
            priced.map_err(|_| Unavailable::OutOfRange)
        };
        methods
            .into_iter()
            .map(|method| PreviewOption {
                method,
                priced: price(method),
            })
            .collect()
    }

    fn offers(&self, order: &Order<'_>) -> Result<(), Ineligible> {
        let (side, currency) = (order.side, order.currency);
        self.catalogue
            .offers(side, currency, order.listing, order.country)
    }

    async fn lock(&self, access: &GateAccess, order: &Order<'_>) -> StoreResult<Preview> {
        let who = &access.tenant;
        let mut tx = self.store.gate_begin("quote_preview").await?;
        let now = tx.now().await?;
        let preview = Preview {
            id: PreviewId::generate(self.entropy.as_ref()),
            bound: PreviewTerms::of(
                order.side,
                order.currency,
                order.listing.asset,
                &order.amount,
            ),
            created_at: now,
            expires_at: now.plus(self.ttl),
            used: None,
        };
        tx.preview_insert(who, &preview).await?;
        tx.commit().await?;
        Ok(preview)
    }
}
