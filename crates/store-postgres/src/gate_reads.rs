//! The reads of the gate, and where its transactions begin.

use std::sync::Arc;

use async_trait::async_trait;
use gate_core::access::GateAccess;
use gate_core::branding::Branding;
use gate_core::customer::{CustomerId, SealedCustomer};
use gate_core::ports::{
    CustomerFilter, GateReads, GateStore, GateTx, SessionFilter, TransactionFilter,
};
use gate_core::profile::GateProfile;
use gate_core::quota::Tally;
use gate_core::rail::{RailId, RailRecord};
use gate_core::session::{Session, SessionId};
use gate_core::signed_quote::{Installation, SignedQuote, SignedQuoteId};
use gate_core::transaction::{RefId, Transaction};
use kernel::{Mode, Seen, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::events::Service;
use partner_core::key::KeyId;
use partner_core::ports::{AccessTx, EndpointTx};
use store_sql::{StoreTx, rails, sessions, tallies};

use crate::tx::PgTx;
use crate::{PostgresStore, branding, config, customers, endpoints, signed_quotes, transactions};

#[async_trait]
impl GateReads for PostgresStore {
    async fn gate_now(&self) -> Result<Timestamp, StoreError> {
        let mut conn = self.inner.conn().await?;
        self.instant(&mut conn).await
    }

    async fn installation_get(&self) -> Result<Installation, StoreError> {
        if let Some(known) = self.inner.identity.get() {
            return Ok(Installation(known.clone()));
        }
        let mut conn = self.inner.conn().await?;
        let identity = config::identity(&mut conn).await?;
        Ok(Installation(
            self.inner.identity.get_or_init(|| identity).clone(),
        ))
    }

    async fn session_get(
        &self,
        who: &Tenant,
        id: SessionId,
    ) -> Result<Option<Seen<Session>>, StoreError> {
        sessions::get(&mut self.inner.read().await?, who, id).await
    }

    async fn sessions_page(
        &self,
        who: &Tenant,
        filter: &SessionFilter,
        limit: u32,
    ) -> Result<Seen<Vec<Session>>, StoreError> {
        sessions::page(&mut self.inner.read().await?, who, filter, limit).await
    }

    async fn sessions_overdue(
        &self,
        who: &Tenant,
        limit: u32,
    ) -> Result<Vec<SessionId>, StoreError> {
        sessions::overdue(&mut self.inner.read().await?, who, limit).await
    }

    async fn sessions_overdue_in(
        &self,
        mode: Mode,
        limit: u32,
    ) -> Result<Vec<(Tenant, SessionId)>, StoreError> {
        sessions::overdue_in(&mut self.inner.read().await?, mode, limit).await
    }

    async fn tally_get(&self, who: &Tenant) -> Result<Seen<Option<Tally>>, StoreError> {
        tallies::get(&mut self.inner.read().await?, who).await
    }

    async fn branding_get(&self, who: &Tenant) -> Result<Seen<Branding>, StoreError> {
        let mut conn = self.inner.conn().await?;
        let found = branding::find(&mut conn, who).await?;
        self.seen_now(&mut conn, found).await
    }

    async fn transaction_get(
        &self,
        who: &Tenant,
        refid: RefId,
    ) -> Result<Option<Transaction>, StoreError> {
        let mut conn = self.inner.conn().await?;
        transactions::find(&mut conn, who, refid).await
    }

    async fn transactions_page(
        &self,
        who: &Tenant,
        filter: &TransactionFilter,
        limit: u32,
    ) -> Result<Vec<Transaction>, StoreError> {
        let mut conn = self.inner.conn().await?;
        transactions::page(&mut conn, who, filter, limit).await
    }

    async fn signed_quote_get(
        &self,
        who: &Tenant,
        id: SignedQuoteId,
    ) -> Result<Option<Seen<SignedQuote>>, StoreError> {
        let mut conn = self.inner.conn().await?;
        let quote = signed_quotes::find(&mut conn, who, id).await?;
        let seen = self.seen_now(&mut conn, quote).await?;
        Ok(seen.value.map(|value| Seen { value, at: seen.at }))
    }

    async fn rail_get(&self, who: &Tenant, id: RailId) -> Result<Option<RailRecord>, StoreError> {
        rails::get(&mut self.inner.read().await?, who, id).await
    }

    async fn rails_due(&self, mode: Mode, limit: u32) -> Result<Vec<(Tenant, RailId)>, StoreError> {
        rails::due(&mut self.inner.read().await?, mode, limit).await
    }

    async fn customer_get(
        &self,
        who: &Tenant,
        id: CustomerId,
    ) -> Result<Option<SealedCustomer>, StoreError> {
        let mut conn = self.inner.conn().await?;
        customers::find(&mut conn, who, id).await
    }

    async fn customers_page(
        &self,
        who: &Tenant,
        filter: &CustomerFilter,
        limit: u32,
    ) -> Result<Vec<SealedCustomer>, StoreError> {
        let mut conn = self.inner.conn().await?;
        customers::page(&mut conn, who, filter, limit).await
    }
}

#[async_trait]
impl GateStore for PostgresStore {
    async fn gate_begin(&self, name: &'static str) -> Result<Box<dyn GateTx>, StoreError> {
        let engine = PgTx::begin(self, name).await?;
        Ok(Box::new(StoreTx::new(Box::new(engine))))
    }
}

#[async_trait]
impl AccessTx<GateProfile> for PgTx {
    async fn access_get(
        &mut self,
        who: &Tenant,
        key: KeyId,
    ) -> Result<Option<Arc<GateAccess>>, StoreError> {
        self.access_of(who, key).await
    }
}

#[async_trait]
impl EndpointTx for PgTx {
    async fn endpoint_is_set(
        &mut self,
        who: &Tenant,
        service: Service,
    ) -> Result<bool, StoreError> {
        let found = endpoints::find(self.locked_connection(who).await?, who, service).await?;
        Ok(found.is_some())
    }
}
