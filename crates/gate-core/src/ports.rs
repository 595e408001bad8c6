//! What the gate domain needs of the outside, as traits.

use async_trait::async_trait;
use kernel::{Cas, Mode, Seen, StoreError};
use partner_core::Tenant;
use partner_core::ports::{AccessTx, AnswerReads, AnswerTx, EndpointTx, EventTx, Unit};
use partner_core::sealing::Sealed;

use crate::branding::Branding;
use crate::quota::Tally;
use crate::session::{Session, SessionId, SessionStatus, Step};
use crate::transaction::{RefId, Transaction, TransactionStatus};

/// Reads that can never write. Expiry is not applied here: whoever finds a session overdue at the
/// instant of the read applies it in a transaction of its own.
#[async_trait]
pub trait GateReads: AnswerReads {
    /// A session of the tenant. `Seen` carries the store's instant, taken after the row was read.
    async fn session_get(
        &self,
        who: &Tenant,
        id: SessionId,
    ) -> Result<Option<Seen<Session>>, StoreError>;

    /// A page of sessions by what is stored, by (`created_at`, id) descending, at most `limit`. An
    /// unknown cursor gives none.
    async fn sessions_page(
        &self,
        who: &Tenant,
        filter: &SessionFilter,
        limit: u32,
    ) -> Result<Seen<Vec<Session>>, StoreError>;

    /// Sessions of the tenant that are overdue and stored as open, the oldest deadline first, at
    /// most `limit`.
    async fn sessions_overdue(
        &self,
        who: &Tenant,
        limit: u32,
    ) -> Result<Vec<SessionId>, StoreError>;

    /// The same of every partner of a mode.
    async fn sessions_overdue_in(
        &self,
        mode: Mode,
        limit: u32,
    ) -> Result<Vec<(Tenant, SessionId)>, StoreError>;

    /// The tenant's tally; `None` before its first live session.
    async fn tally_get(&self, who: &Tenant) -> Result<Seen<Option<Tally>>, StoreError>;

    /// The tenant's branding; the default before it was ever set.
    async fn branding_get(&self, who: &Tenant) -> Result<Seen<Branding>, StoreError>;

    /// A transaction.
    async fn transaction_get(
        &self,
        who: &Tenant,
        refid: RefId,
    ) -> Result<Option<Transaction>, StoreError>;

    /// A page of transactions, by (`created_at`, refid) descending, at most `limit`. An unknown
    /// cursor gives none.
    async fn transactions_page(
        &self,
        who: &Tenant,
        filter: &TransactionFilter,
        limit: u32,
    ) -> Result<Vec<Transaction>, StoreError>;
}

/// What narrows a page of sessions.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionFilter {
    /// Only sessions after this one in the order of the list.
    pub after: Option<SessionId>,
    /// Only this status.
    pub status: Option<SessionStatus>,
}

/// What narrows a page of transactions.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransactionFilter {
    /// Only transactions after this one in the order of the list.
    pub after: Option<RefId>,
    /// Only this status.
    pub status: Option<TransactionStatus>,
    /// Only those of this session.
    pub session: Option<SessionId>,
}

/// Opens write transactions.
#[async_trait]
pub trait GateStore: GateReads {
    /// Opens a write transaction. `name` labels it in metrics and logs.
    async fn gate_begin(&self, name: &'static str) -> Result<Box<dyn GateTx>, StoreError>;
}

/// One transaction over every noun a gate use case may touch. Locks are taken in the order
/// answer, tally, branding, session, here and everywhere.
pub trait GateTx:
    AnswerTx + AccessTx + TallyTx + BrandingTx + SessionTx + TransactionTx + EndpointTx + EventTx + Unit
{
}
impl<T> GateTx for T where
    T: AnswerTx
        + AccessTx
        + TallyTx
        + BrandingTx
        + SessionTx
        + TransactionTx
        + EndpointTx
        + EventTx
        + Unit
{
}

/// Tallies in a transaction.
#[async_trait]
pub trait TallyTx: Send {
    /// Loads and locks.
    async fn tally_lock(&mut self, who: &Tenant) -> Result<Option<Tally>, StoreError>;

    /// Stores a tally. Guard: the stored one is still `before`, or there is none still.
    async fn tally_put(
        &mut self,
        who: &Tenant,
        before: Option<&Tally>,
        after: &Tally,
    ) -> Result<Cas, StoreError>;
}

/// Branding in a transaction.
#[async_trait]
pub trait BrandingTx: Send {
    /// Loads and locks; the default before it was ever set.
    async fn branding_lock(&mut self, who: &Tenant) -> Result<Branding, StoreError>;

    /// Stores branding. Guard: what is stored has the revision before it; of the first one, nothing
    /// is stored.
    async fn branding_put(&mut self, who: &Tenant, branding: &Branding) -> Result<Cas, StoreError>;
}

/// Sessions in a transaction.
#[async_trait]
pub trait SessionTx: Send {
    /// Inserts a new session, with the KYC package it came with, sealed for [`kyc_place`].
    async fn session_insert(
        &mut self,
        who: &Tenant,
        session: &Session,
        kyc_package: Option<&Sealed>,
    ) -> Result<(), StoreError>;

    /// Loads and locks. `None` also when the session belongs to another partner.
    async fn session_lock(
        &mut self,
        who: &Tenant,
        id: SessionId,
    ) -> Result<Option<Session>, StoreError>;

    /// Applies a step. Guard: the session is stored as open, and what completes or cancels it does
    /// so before it expires.
    async fn session_apply(
        &mut self,
        who: &Tenant,
        id: SessionId,
        step: &Step,
    ) -> Result<Cas, StoreError>;
}

/// Transactions of partners, in a transaction of the store.
#[async_trait]
pub trait TransactionTx: Send {
    /// Inserts a new transaction.
    async fn transaction_insert(
        &mut self,
        who: &Tenant,
        transaction: &Transaction,
    ) -> Result<(), StoreError>;
}

/// The place a session's KYC package is sealed for.
#[must_use]
pub fn kyc_place(who: &Tenant, session: SessionId) -> String {
    format!(
        "gate_sessions/{}/{}/{session}/kyc_package",
        who.mode, who.partner
    )
}
