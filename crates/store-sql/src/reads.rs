//! The ports of reads. A macro implements them for a store, because the ports and the store's type belong to other crates.

use gate_core::signed_quote::Installation;
use kernel::{StoreError, StoreResult};

use crate::{ReadStore, Reader, Statement};

/// The items that the implementations name.
#[doc(hidden)]
pub mod names {
    pub use async_trait::async_trait;
    pub use gate_core::branding::Branding;
    pub use gate_core::customer::{CustomerId, SealedCustomer};
    pub use gate_core::due::DueShare;
    pub use gate_core::ports::{
        CustomerFilter, CustomerForms, CustomerFormsTx, FormsPage, GateReads, HeldBy, Notified,
        SessionFilter, TransactionFilter,
    };
    pub use gate_core::quota::Tally;
    pub use gate_core::rail::{Finding, RailId, RailRecord};
    pub use gate_core::session::{Session, SessionId};
    pub use gate_core::signed_quote::{Installation, SignedQuote, SignedQuoteId};
    pub use gate_core::transaction::{RefId, Transaction};
    pub use gate_core::verification::Verification;
    pub use kernel::{Mode, Readable, Seen, StoreError, StoreResult, Timestamp, UpstreamName};
    pub use partner_core::idempotency::Scope;
    pub use partner_core::ports::{EventReads, ResponseReads, StoredEvent};
    pub use partner_core::stored_response::StoredResponse;
    pub use partner_core::{PartnerId, Tenant};

    pub use crate::{
        ReadStore, Reader, branding, customer_forms, customers, events, rails, reads, sessions,
        signed_quotes, stored_responses, tallies, transactions, verifications,
    };
}

/// The installation's identity, read once.
pub async fn installation(store: &impl ReadStore) -> StoreResult<Installation> {
    if let Some(known) = store.identity().get() {
        return Ok(Installation(known.clone()));
    }
    let mut reader = store.reader().await?;
    let row = reader.connection().fetch_optional(&IDENTITY, &[]).await?;
    let row = row.ok_or_else(|| StoreError::unexpected("installation_identity has no row"))?;
    let identity = row.text("identity")?.to_owned();
    let identity = store.identity().get_or_init(|| identity);
    Ok(Installation(identity.clone()))
}

static IDENTITY: Statement = Statement::new(
    "installation_identity",
    "SELECT identity FROM installation_identity WHERE id = 1",
);

/// Implements `GateReads`, `ResponseReads` and `EventReads` for a [`ReadStore`], and `CustomerForms`, for which the store also has
/// `begin_tx`.
#[macro_export]
macro_rules! implement_reads {
    ($store:ty) => {
        const _: () = {
            use $crate::reads::names::*;

            #[async_trait]
            impl GateReads for $store {
                async fn gate_now(&self) -> StoreResult<Timestamp> {
                    self.now().await
                }

                async fn installation_get(&self) -> StoreResult<Installation> {
                    reads::installation(self).await
                }

                async fn session_get(
                    &self,
                    who: &Tenant,
                    id: SessionId,
                ) -> StoreResult<Option<Seen<Session>>> {
                    sessions::get(&mut self.reader().await?, who, id).await
                }

                async fn sessions_page(
                    &self,
                    who: &Tenant,
                    filter: &SessionFilter,
                    limit: u32,
                ) -> StoreResult<Seen<Vec<Session>>> {
                    sessions::page(&mut self.page_reader(who).await?, who, filter, limit).await
                }

                async fn sessions_overdue(
                    &self,
                    who: &Tenant,
                    limit: u32,
                ) -> StoreResult<Vec<SessionId>> {
                    sessions::overdue(&mut self.reader().await?, who, limit).await
                }

                async fn sessions_overdue_in(
                    &self,
                    mode: Mode,
                    share: &DueShare,
                ) -> StoreResult<Readable<(Tenant, SessionId)>> {
                    sessions::overdue_in(&mut self.reader().await?, mode, share).await
                }

                async fn tally_get(&self, who: &Tenant) -> StoreResult<Seen<Option<Tally>>> {
                    tallies::get(&mut self.reader().await?, who).await
                }

                async fn branding_get(&self, who: &Tenant) -> StoreResult<Seen<Branding>> {
                    branding::get(&mut self.reader().await?, who).await
                }

                async fn transaction_get(
                    &self,
                    who: &Tenant,
                    refid: RefId,
                ) -> StoreResult<Option<Transaction>> {
                    transactions::find(self.reader().await?.connection(), who, refid).await
                }

                async fn transactions_page(
                    &self,
                    who: &Tenant,
                    filter: &TransactionFilter,
                    limit: u32,
                ) -> StoreResult<Vec<Transaction>> {
                    transactions::page(&mut self.page_reader(who).await?, who, filter, limit).await
                }

                async fn signed_quote_get(
                    &self,
                    who: &Tenant,
                    id: SignedQuoteId,
                ) -> StoreResult<Option<Seen<SignedQuote>>> {
                    signed_quotes::get(&mut self.reader().await?, who, id).await
                }

                async fn rail_get(
                    &self,
                    who: &Tenant,
                    id: RailId,
                ) -> StoreResult<Option<RailRecord>> {
                    rails::find(self.reader().await?.connection(), who, id).await
                }

                async fn payment_of_session(
                    &self,
                    who: &Tenant,
                    session: SessionId,
                ) -> StoreResult<Option<RailRecord>> {
                    rails::of_session(&mut self.reader().await?, who, session).await
                }

                async fn rails_due(
                    &self,
                    held: HeldBy<'_>,
                    share: &DueShare,
                ) -> StoreResult<Readable<(Tenant, RailId)>> {
                    rails::due(&mut self.reader().await?, held, share).await
                }

                async fn rails_watched(
                    &self,
                    held: HeldBy<'_>,
                    share: &DueShare,
                ) -> StoreResult<Readable<(Tenant, RailId)>> {
                    rails::watched(&mut self.reader().await?, held, share).await
                }

                async fn rail_notified(
                    &self,
                    mode: Mode,
                    id: RailId,
                ) -> StoreResult<Option<Notified>> {
                    rails::notified(&mut self.reader().await?, mode, id).await
                }

                async fn rails_elsewhere(
                    &self,
                    mode: Mode,
                    rails: &[UpstreamName],
                ) -> StoreResult<Vec<(UpstreamName, u64)>> {
                    rails::elsewhere(&mut self.reader().await?, mode, rails).await
                }

                async fn rails_watched_elsewhere(
                    &self,
                    mode: Mode,
                    rails: &[UpstreamName],
                ) -> StoreResult<Vec<(UpstreamName, u64)>> {
                    rails::watched_elsewhere(&mut self.reader().await?, mode, rails).await
                }

                async fn rail_open_items(&self, mode: Mode) -> StoreResult<Vec<(Finding, u64)>> {
                    rails::open_items(&mut self.reader().await?, mode).await
                }

                async fn rail_oldest(
                    &self,
                    mode: Mode,
                ) -> StoreResult<Option<std::time::Duration>> {
                    rails::oldest(&mut self.reader().await?, mode).await
                }

                async fn verification_get(
                    &self,
                    who: &Tenant,
                    session: SessionId,
                ) -> StoreResult<Option<Verification>> {
                    verifications::find(self.reader().await?.connection(), who, session).await
                }

                async fn verifications_due(
                    &self,
                    held: HeldBy<'_>,
                    share: &DueShare,
                ) -> StoreResult<Readable<(Tenant, SessionId)>> {
                    verifications::due(&mut self.reader().await?, held, share).await
                }

                async fn verifications_elsewhere(
                    &self,
                    mode: Mode,
                    verifiers: &[UpstreamName],
                ) -> StoreResult<Vec<(UpstreamName, u64)>> {
                    verifications::elsewhere(&mut self.reader().await?, mode, verifiers).await
                }

                async fn customer_get(
                    &self,
                    who: &Tenant,
                    id: CustomerId,
                ) -> StoreResult<Option<SealedCustomer>> {
                    customers::find(self.reader().await?.connection(), who, id).await
                }

                async fn customers_page(
                    &self,
                    who: &Tenant,
                    filter: &CustomerFilter,
                    limit: u32,
                ) -> StoreResult<Vec<SealedCustomer>> {
                    customers::page(&mut self.page_reader(who).await?, who, filter, limit).await
                }
            }

            #[async_trait]
            impl CustomerForms for $store {
                async fn partners_after(
                    &self,
                    mode: Mode,
                    after: Option<&PartnerId>,
                    limit: u32,
                ) -> StoreResult<FormsPage<PartnerId>> {
                    let reader = &mut self.reader().await?;
                    customer_forms::partners_after(reader, mode, after, limit).await
                }

                async fn customers_without_forms(
                    &self,
                    who: &Tenant,
                    after: Option<CustomerId>,
                    limit: u32,
                ) -> StoreResult<FormsPage<CustomerId>> {
                    let reader = &mut self.reader().await?;
                    customer_forms::without_forms(reader, who, after, limit).await
                }

                async fn forms_begin(
                    &self,
                    name: &'static str,
                ) -> StoreResult<Box<dyn CustomerFormsTx>> {
                    Ok(self.begin_tx(name).await?)
                }
            }

            #[async_trait]
            impl ResponseReads for $store {
                async fn response_get(
                    &self,
                    scope: &Scope,
                ) -> StoreResult<Seen<Option<StoredResponse>>> {
                    let ttl = self.idempotency_ttl();
                    stored_responses::get(&mut self.reader().await?, scope, ttl).await
                }
            }

            #[async_trait]
            impl EventReads for $store {
                async fn events_of(
                    &self,
                    who: &Tenant,
                    object_id: &str,
                ) -> StoreResult<Vec<StoredEvent>> {
                    events::of_object(&mut self.reader().await?, who, object_id).await
                }
            }
        };
    };
}
