//! Ports that each engine still implements for itself. `StoreTx` forwards them until their entities are converted.

use std::sync::Arc;

use async_trait::async_trait;
use gate_core::access::GateAccess;
use gate_core::branding::Branding;
use gate_core::customer::{CustomerId, CustomerIndexes, SealedCustomer, Unique};
use gate_core::ports::{BrandingTx, CustomerTx, PreviewTx, SignedQuoteTx, TransactionTx};
use gate_core::preview::{Preview, PreviewId};
use gate_core::profile::GateProfile;
use gate_core::session::SessionId;
use gate_core::signed_quote::{SignedQuote, SignedQuoteId};
use gate_core::transaction::{RefId, Transaction, TransactionState};
use kernel::{Cas, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::events::{NewEvent, Service};
use partner_core::idempotency::Scope;
use partner_core::key::KeyId;
use partner_core::ports::{AccessTx, EndpointTx, EventTx, ResponseTx};
use partner_core::stored_response::StoredResponse;

use crate::StoreTx;

/// The ports that [`StoreTx`] forwards to the engine's transaction.
pub trait Unconverted:
    ResponseTx
    + AccessTx<GateProfile>
    + PreviewTx
    + BrandingTx
    + TransactionTx
    + SignedQuoteTx
    + CustomerTx
    + EndpointTx
    + EventTx
{
}

impl<T> Unconverted for T where
    T: ResponseTx
        + AccessTx<GateProfile>
        + PreviewTx
        + BrandingTx
        + TransactionTx
        + SignedQuoteTx
        + CustomerTx
        + EndpointTx
        + EventTx
{
}

macro_rules! forward {
    ($($port:ty { $(fn $name:ident($($argument:ident: $type:ty),*) -> $output:ty;)* })*) => { $(
        #[async_trait]
        impl $port for StoreTx {
            $(async fn $name(&mut self, $($argument: $type),*) -> Result<$output, StoreError> {
                self.engine.$name($($argument),*).await
            })*
        }
    )* };
}

forward! {
    ResponseTx {
        fn answer_lock(scope: &Scope) -> Option<StoredResponse>;
        fn answer_put(scope: &Scope, kept: &StoredResponse, expired: Option<Timestamp>) -> Cas;
    }
    AccessTx<GateProfile> {
        fn access_get(who: &Tenant, key: KeyId) -> Option<Arc<GateAccess>>;
    }
    PreviewTx {
        fn preview_insert(who: &Tenant, preview: &Preview) -> ();
        fn preview_lock(who: &Tenant, id: PreviewId) -> Option<Preview>;
        fn preview_use(who: &Tenant, id: PreviewId, session: SessionId, now: Timestamp) -> Cas;
    }
    BrandingTx {
        fn branding_lock(who: &Tenant) -> Branding;
        fn branding_put(who: &Tenant, branding: &Branding) -> Cas;
    }
    TransactionTx {
        fn transaction_insert(who: &Tenant, transaction: &Transaction) -> ();
        fn transaction_end(who: &Tenant, refid: RefId, state: TransactionState) -> Cas;
    }
    SignedQuoteTx {
        fn signed_quote_insert(who: &Tenant, quote: &SignedQuote) -> ();
        fn signed_quote_lock(who: &Tenant, id: SignedQuoteId) -> Option<SignedQuote>;
        fn signed_quote_consume(who: &Tenant, id: SignedQuoteId, now: Timestamp) -> Cas;
    }
    CustomerTx {
        fn customer_taken(who: &Tenant, marks: &CustomerIndexes) -> Option<Unique>;
        fn customer_insert(who: &Tenant, customer: &SealedCustomer) -> ();
        fn customer_lock(who: &Tenant, id: CustomerId) -> Option<SealedCustomer>;
        fn customer_put(who: &Tenant, customer: &SealedCustomer) -> Cas;
    }
    EndpointTx {
        fn endpoint_is_set(who: &Tenant, service: Service) -> bool;
    }
    EventTx {
        fn event_insert(event: &NewEvent) -> ();
    }
}
