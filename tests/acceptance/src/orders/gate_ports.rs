//! The ports of the gate that wait for their turn before each call.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::access::GateAccess;
use gate_core::branding::Branding;
use gate_core::customer::{CustomerId, IdentityIndexes, SealedCustomer, Unique};
use gate_core::due::DueShare;
use gate_core::embed::SessionToken;
use gate_core::ports::{
    BrandingTx, CustomerFilter, CustomerTx, GateReads, GateStore, GateTx, HeldBy, Notified,
    PreviewTx, PublishableKeyTx, RailTx, SessionFilter, SessionTx, SignedQuoteTx, TallyTx,
    TransactionFilter, TransactionTx, VerificationTx,
};
use gate_core::preview::{Preview, PreviewId};
use gate_core::profile::GateProfile;
use gate_core::quota::Tally;
use gate_core::rail::{Finding, PollLease, RailId, RailRecord};
use gate_core::session::{Session, SessionId, Step};
use gate_core::signed_quote::{Installation, SignedQuote, SignedQuoteId};
use gate_core::transaction::{RefId, Transaction, TransactionState};
use gate_core::verification::Verification;
use kernel::{Cas, Mode, Readable, Seen, StoreResult, Timestamp, UpstreamName};
use partner_core::Tenant;
use partner_core::events::{DeliveryId, Service};
use partner_core::idempotency::Scope;
use partner_core::key::KeyId;
use partner_core::ports::{
    AccessTx, DeliveryAdmin, DeliveryFilter, DeliveryView, EndpointTx, ResponseReads, ResponseTx,
};
use partner_core::sealing::Sealed;
use partner_core::stored_response::StoredResponse;

use super::ports::{Ports, Tx};

/// Implements ports whose calls go to the store after a turn.
macro_rules! reads {
    ($($port:ident { $($call:ident($($name:ident: $of:ty),*) -> $found:ty;)* })*) => { $(
        #[async_trait]
        impl $port for Ports { $(
            async fn $call(&self, $($name: $of),*) -> StoreResult<$found> {
                self.pace.turn(false).await?;
                self.store.$call($($name),*).await
            }
        )* }
    )* };
}

/// Implements ports whose calls go to the transaction.
macro_rules! delegates {
    ($($port:ident $(<$profile:ident>)? {
        $($call:ident($($name:ident: $of:ty),*) -> $found:ty;)*
    })*) => { $(
        #[async_trait]
        impl $port $(<$profile>)? for Tx<dyn GateTx> { $(
            async fn $call(&mut self, $($name: $of),*) -> StoreResult<$found> {
                self.tx.$call($($name),*).await
            }
        )* }
    )* };
}

#[async_trait]
impl GateStore for Ports {
    async fn gate_begin(&self, name: &'static str) -> StoreResult<Box<dyn GateTx>> {
        self.pace.turn(true).await?;
        let tx = self.store.gate_begin(name).await?;
        let pace = self.pace.clone();
        Ok(Box::new(Tx { tx, pace }))
    }
}

#[async_trait]
impl DeliveryAdmin for Ports {
    async fn deliveries_page(
        &self,
        who: &Tenant,
        service: Service,
        filter: DeliveryFilter,
        limit: u32,
    ) -> StoreResult<Vec<DeliveryView>> {
        self.pace.turn(false).await?;
        self.store
            .deliveries_page(who, service, filter, limit)
            .await
    }

    async fn delivery_get(
        &self,
        who: &Tenant,
        service: Service,
        id: DeliveryId,
    ) -> StoreResult<Option<DeliveryView>> {
        self.pace.turn(false).await?;
        self.store.delivery_get(who, service, id).await
    }

    async fn delivery_replay(
        &self,
        who: &Tenant,
        service: Service,
        id: DeliveryId,
    ) -> StoreResult<Option<(Cas, DeliveryView)>> {
        self.pace.turn(true).await?;
        self.store.delivery_replay(who, service, id).await
    }
}

reads! {
    ResponseReads {
        response_get(scope: &Scope) -> Seen<Option<StoredResponse>>;
    }
    GateReads {
        gate_now() -> Timestamp;
        installation_get() -> Installation;
        session_get(who: &Tenant, id: SessionId) -> Option<Seen<Session>>;
        sessions_page(who: &Tenant, filter: &SessionFilter, limit: u32) -> Seen<Vec<Session>>;
        sessions_overdue(who: &Tenant, limit: u32) -> Vec<SessionId>;
        sessions_overdue_in(mode: Mode, share: &DueShare) -> Readable<(Tenant, SessionId)>;
        tally_get(who: &Tenant) -> Seen<Option<Tally>>;
        branding_get(who: &Tenant) -> Seen<Branding>;
        transaction_get(who: &Tenant, refid: RefId) -> Option<Transaction>;
        transactions_page(who: &Tenant, filter: &TransactionFilter, limit: u32) -> Vec<Transaction>;
        signed_quote_get(who: &Tenant, id: SignedQuoteId) -> Option<Seen<SignedQuote>>;
        rail_get(who: &Tenant, id: RailId) -> Option<RailRecord>;
        payment_of_session(who: &Tenant, session: SessionId) -> Option<RailRecord>;
        rails_due(held: HeldBy<'_>, share: &DueShare) -> Readable<(Tenant, RailId)>;
        rails_watched(held: HeldBy<'_>, share: &DueShare) -> Readable<(Tenant, RailId)>;
        rail_notified(mode: Mode, id: RailId) -> Option<Notified>;
        rails_elsewhere(mode: Mode, rails: &[UpstreamName]) -> Vec<(UpstreamName, u64)>;
        rails_watched_elsewhere(mode: Mode, rails: &[UpstreamName]) -> Vec<(UpstreamName, u64)>;
        rail_open_items(mode: Mode) -> Vec<(Finding, u64)>;
        rail_oldest(mode: Mode) -> Option<Duration>;
        verification_get(who: &Tenant, session: SessionId) -> Option<Verification>;
        verifications_due(held: HeldBy<'_>, share: &DueShare) -> Readable<(Tenant, SessionId)>;
        verifications_elsewhere(mode: Mode, verifiers: &[UpstreamName]) -> Vec<(UpstreamName, u64)>;
        customer_get(who: &Tenant, id: CustomerId) -> Option<SealedCustomer>;
        customers_page(who: &Tenant, filter: &CustomerFilter, limit: u32) -> Vec<SealedCustomer>;
    }
}

delegates! {
    ResponseTx {
        response_lock(scope: &Scope) -> Option<StoredResponse>;
        response_put(scope: &Scope, kept: &StoredResponse, expired: Option<Timestamp>) -> Cas;
    }
    AccessTx<GateProfile> {
        access_get(who: &Tenant, key: KeyId) -> Option<Arc<GateAccess>>;
    }
    PublishableKeyTx {
        publishable_key_newest(who: &Tenant, now: Timestamp) -> Option<(KeyId, Sealed)>;
    }
    TallyTx {
        tally_lock(who: &Tenant) -> Option<Tally>;
        tally_put(who: &Tenant, before: Option<&Tally>, after: &Tally) -> Cas;
    }
    PreviewTx {
        preview_insert(who: &Tenant, preview: &Preview) -> ();
        preview_lock(who: &Tenant, id: PreviewId) -> Option<Preview>;
        preview_use(who: &Tenant, id: PreviewId, session: SessionId, now: Timestamp) -> Cas;
    }
    BrandingTx {
        branding_lock(who: &Tenant) -> Branding;
        branding_put(who: &Tenant, branding: &Branding) -> Cas;
    }
    SessionTx {
        session_insert(who: &Tenant, session: &Session, kyc_package: Option<&Sealed>) -> ();
        session_lock(who: &Tenant, id: SessionId) -> Option<Session>;
        session_apply(who: &Tenant, id: SessionId, step: &Step) -> Cas;
        session_count_token(who: &Tenant, token: SessionToken) -> Cas;
    }
    TransactionTx {
        transaction_insert(who: &Tenant, transaction: &Transaction) -> ();
        transaction_end(who: &Tenant, refid: RefId, state: TransactionState) -> Cas;
    }
    SignedQuoteTx {
        signed_quote_insert(who: &Tenant, quote: &SignedQuote) -> ();
        signed_quote_lock(who: &Tenant, id: SignedQuoteId) -> Option<SignedQuote>;
        signed_quotes_supersede(who: &Tenant, session: SessionId, now: Timestamp) -> ();
        signed_quote_consume(who: &Tenant, id: SignedQuoteId, now: Timestamp) -> Cas;
    }
    VerificationTx {
        verification_insert(who: &Tenant, verification: &Verification) -> ();
        verification_lock(who: &Tenant, session: SessionId) -> Option<Verification>;
        verification_put(who: &Tenant, before: &PollLease, after: &Verification) -> Cas;
    }
    RailTx {
        rail_insert(who: &Tenant, record: &RailRecord) -> ();
        rail_lock(who: &Tenant, id: RailId) -> Option<RailRecord>;
        rail_ask(who: &Tenant, before: &PollLease, after: &RailRecord) -> Cas;
        rail_wake(who: &Tenant, id: RailId, now: Timestamp) -> Cas;
        rail_end(who: &Tenant, before: &PollLease, after: &RailRecord) -> Cas;
        rail_watch(who: &Tenant, before: Option<Timestamp>, after: &RailRecord) -> Cas;
    }
    CustomerTx {
        customer_taken(who: &Tenant, identity: &IdentityIndexes) -> Option<Unique>;
        customer_insert(who: &Tenant, customer: &SealedCustomer) -> ();
        customer_lock(who: &Tenant, id: CustomerId) -> Option<SealedCustomer>;
        customer_put(who: &Tenant, customer: &SealedCustomer) -> Cas;
    }
    EndpointTx {
        endpoint_is_set(who: &Tenant, service: Service) -> bool;
    }
}
