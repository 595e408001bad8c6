//! Previewing an order: what it would come to by each method, now.
//!
//! Nothing is promised. Where the partner's previews are locked, one session may be created that
//! agrees with the preview, and no other uses it.

use std::sync::Arc;
use std::time::Duration;

use crate::access::GateAccess;
use kernel::{Entropy, StoreError, Timestamp};
use partner_core::ports::RateSource;

use crate::catalogue::{Catalogue, Ineligible, Method};
use crate::order::{Order, OrderDraft, OrderError};
use crate::ports::GateStore;
use crate::preview::{Preview, PreviewId, PreviewTerms};
use crate::pricing::{OutOfRange, Priced};

/// Previews orders.
#[derive(Clone)]
pub struct PreviewQuotes {
    /// The store.
    pub store: Arc<dyn GateStore>,
    /// Makes ids.
    pub entropy: Arc<dyn Entropy>,
    /// What is offered.
    pub catalogue: Arc<Catalogue>,
    /// Where rates come from.
    pub rates: Arc<dyn RateSource>,
    /// How long a preview stands.
    pub ttl: Duration,
}

/// What is to be previewed, as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewDraft {
    /// The order.
    pub order: OrderDraft,
    /// `payment_method`; `None`: each there is.
    pub payment_method: Option<String>,
}

/// An order by each of its methods.
#[derive(Debug)]
pub struct Previewed<'c> {
    /// The lock, where the partner's previews have one.
    pub id: Option<PreviewId>,
    /// Until when it stands.
    pub expires_at: Timestamp,
    /// The order.
    pub order: Order<'c>,
    /// What it comes to.
    pub options: Vec<PreviewOption<'c>>,
}

/// An order by one method.
#[derive(Debug)]
pub struct PreviewOption<'c> {
    /// The method.
    pub method: &'c Method,
    /// The price, or why there is none.
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
    /// It is not offered.
    Ineligible(Ineligible),
    /// No rate is young enough.
    NoRate,
    /// A leg is nothing after the fees, or too much.
    OutOfRange,
}

impl Unavailable {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ineligible(reason) => reason.as_str(),
            Self::NoRate => "rate_unavailable",
            Self::OutOfRange => "amount_out_of_range",
        }
    }
}

/// Why there is no preview.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// A field is wrong.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The method does not move the currency this way.
    #[error("`payment_method`: expected a method of the currency and side, such as \"sepa\"")]
    UnknownMethod,
    /// By every method a leg is nothing after the fees, or too much.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PreviewQuotes {
    /// Previews an order, and locks the preview where the partner's are.
    ///
    /// # Errors
    /// [`PreviewError`].
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all)]
    pub async fn preview(
        &self,
        access: &GateAccess,
        draft: &PreviewDraft,
    ) -> Result<Previewed<'_>, PreviewError> {
        let order = draft.order.judge(&self.catalogue)?;
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

    /// The rate is asked for once, and not at all for what is not offered.
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

    async fn lock(&self, access: &GateAccess, order: &Order<'_>) -> Result<Preview, StoreError> {
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
