//! What the gate domain needs of the outside, as traits.

use async_trait::async_trait;
use kernel::{Cas, Mode, Seen, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::ports::{AccessTx, EndpointTx, EventTx, ResponseReads, ResponseTx, UnitOfWork};
use partner_core::sealing::{BlindIndex, Sealed};

use crate::branding::Branding;
use crate::customer::{CustomerId, CustomerIndexes, SealedCustomer, Unique};
use crate::preview::{Preview, PreviewId};
use crate::profile::GateProfile;
use crate::quota::Tally;
use crate::rail::{Instructions, PollLease, RailId, RailRecord, RailReport, RailStep};
use crate::session::{Session, SessionId, SessionStatus, Step};
use crate::signed_quote::{Installation, QuoteTerms, SignedQuote, SignedQuoteId};
use crate::transaction::{RefId, Transaction, TransactionState, TransactionStatus};

/// Reads that can never write. Expiry is not applied here: whoever finds a session overdue at the
/// instant of the read applies it in a transaction of its own.
#[async_trait]
pub trait GateReads: ResponseReads {
    /// The store's instant.
    async fn gate_now(&self) -> Result<Timestamp, StoreError>;

    /// The name of this installation. It never changes.
    async fn installation_get(&self) -> Result<Installation, StoreError>;

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

    /// A signed quote.
    async fn signed_quote_get(
        &self,
        who: &Tenant,
        id: SignedQuoteId,
    ) -> Result<Option<Seen<SignedQuote>>, StoreError>;

    /// A rail record.
    async fn rail_get(&self, who: &Tenant, id: RailId) -> Result<Option<RailRecord>, StoreError>;

    /// Records of every partner of a mode that the rail is to be asked about, the longest overdue
    /// first, at most `limit`.
    async fn rails_due(&self, mode: Mode, limit: u32) -> Result<Vec<(Tenant, RailId)>, StoreError>;

    /// A customer, also one that was deleted.
    async fn customer_get(
        &self,
        who: &Tenant,
        id: CustomerId,
    ) -> Result<Option<SealedCustomer>, StoreError>;

    /// A page of customers that are not deleted, by (`created_at`, id) descending, at most `limit`. A
    /// deleted one is a place in the list all the same; an unknown cursor gives none.
    async fn customers_page(
        &self,
        who: &Tenant,
        filter: &CustomerFilter,
        limit: u32,
    ) -> Result<Vec<SealedCustomer>, StoreError>;
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

/// What narrows a page of customers.
#[derive(Debug, Clone, Copy, Default)]
pub struct CustomerFilter {
    /// Only customers after this one in the order of the list.
    pub after: Option<CustomerId>,
    /// Only that of this email.
    pub email: Option<BlindIndex>,
    /// Only that of this name of the partner's.
    pub external_id: Option<BlindIndex>,
}

/// Opens write transactions.
#[async_trait]
pub trait GateStore: GateReads {
    /// Opens a write transaction. `name` labels it in metrics and logs.
    async fn gate_begin(&self, name: &'static str) -> Result<Box<dyn GateTx>, StoreError>;
}

/// One transaction over every noun a gate use case may touch. Locks are taken in the order
/// answer, tally, preview, branding, session, signed quote, rail
/// record, customer, here and everywhere.
pub trait GateTx:
    ResponseTx
    + AccessTx<GateProfile>
    + TallyTx
    + PreviewTx
    + BrandingTx
    + SessionTx
    + TransactionTx
    + SignedQuoteTx
    + RailTx
    + CustomerTx
    + EndpointTx
    + EventTx
    + UnitOfWork
{
}
impl<T> GateTx for T where
    T: ResponseTx
        + AccessTx<GateProfile>
        + TallyTx
        + PreviewTx
        + BrandingTx
        + SessionTx
        + TransactionTx
        + SignedQuoteTx
        + RailTx
        + CustomerTx
        + EndpointTx
        + EventTx
        + UnitOfWork
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

/// Locked previews in a transaction.
#[async_trait]
pub trait PreviewTx: Send {
    /// Inserts a new preview.
    async fn preview_insert(&mut self, who: &Tenant, preview: &Preview) -> Result<(), StoreError>;

    /// Loads and locks. `None` also when the preview belongs to another partner.
    async fn preview_lock(
        &mut self,
        who: &Tenant,
        id: PreviewId,
    ) -> Result<Option<Preview>, StoreError>;

    /// Notes the session that uses a preview. Guard: none has, and it has not expired.
    async fn preview_use(
        &mut self,
        who: &Tenant,
        id: PreviewId,
        session: SessionId,
        now: Timestamp,
    ) -> Result<Cas, StoreError>;
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

    /// Ends a transaction of a rail. Guard: it is under way.
    async fn transaction_end(
        &mut self,
        who: &Tenant,
        refid: RefId,
        state: TransactionState,
    ) -> Result<Cas, StoreError>;
}

/// Signed quotes in a transaction.
#[async_trait]
pub trait SignedQuoteTx: Send {
    /// Inserts a new quote.
    async fn signed_quote_insert(
        &mut self,
        who: &Tenant,
        quote: &SignedQuote,
    ) -> Result<(), StoreError>;

    /// Loads and locks. `None` also when the quote belongs to another partner.
    async fn signed_quote_lock(
        &mut self,
        who: &Tenant,
        id: SignedQuoteId,
    ) -> Result<Option<SignedQuote>, StoreError>;

    /// Redeems a quote. Guard: it was not, and `now` is before it expires.
    async fn signed_quote_consume(
        &mut self,
        who: &Tenant,
        id: SignedQuoteId,
        now: Timestamp,
    ) -> Result<Cas, StoreError>;
}

/// Rail records in a transaction.
#[async_trait]
pub trait RailTx: Send {
    /// Inserts a new record, whose quote and transaction are there.
    async fn rail_insert(&mut self, who: &Tenant, record: &RailRecord) -> Result<(), StoreError>;

    /// Loads and locks. `None` also when the record belongs to another partner.
    async fn rail_lock(
        &mut self,
        who: &Tenant,
        id: RailId,
    ) -> Result<Option<RailRecord>, StoreError>;

    /// Says who asks the rail about a record, or when it is asked again. Guard: the record is under
    /// way, and asked about as `before` says.
    async fn rail_ask(
        &mut self,
        who: &Tenant,
        id: RailId,
        before: &PollLease,
        after: &PollLease,
    ) -> Result<Cas, StoreError>;

    /// Applies a step. Guard: the same.
    async fn rail_apply(
        &mut self,
        who: &Tenant,
        id: RailId,
        before: &PollLease,
        step: &RailStep,
    ) -> Result<Cas, StoreError>;
}

// ---------------------------------------------------------------------------------------------
// The far end
// ---------------------------------------------------------------------------------------------

/// A record as a rail is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RailOrder {
    /// The record. Whatever a rail does, it does once under this id.
    pub id: RailId,
    /// What is to be paid in or out, and how.
    pub terms: QuoteTerms,
}

/// Moves fiat. It answers within [`RAIL_TIMEOUT`](crate::usecases::advance_rails::RAIL_TIMEOUT).
#[async_trait]
pub trait Rail: Send + Sync {
    /// What the payer of a pay-in needs; `None`: no answer. Asked before the record is there, and
    /// perhaps of one that never is: it moves nothing.
    async fn instructions(&self, order: &RailOrder) -> Option<Instructions>;

    /// Begins to move the money unless that was begun before, and says how it stands; `None`: no
    /// answer. `attempt` counts from 1.
    async fn advance(&self, order: &RailOrder, attempt: u32) -> Option<RailReport>;
}

/// Customers in a transaction.
#[async_trait]
pub trait CustomerTx: Send {
    /// Whether one of these marks is another customer's, the deleted ones' too. Until the end of the
    /// transaction nobody else takes one that is free.
    async fn customer_taken(
        &mut self,
        who: &Tenant,
        marks: &CustomerIndexes,
    ) -> Result<Option<Unique>, StoreError>;

    /// Inserts a new customer.
    async fn customer_insert(
        &mut self,
        who: &Tenant,
        customer: &SealedCustomer,
    ) -> Result<(), StoreError>;

    /// Loads and locks, also one that was deleted. `None` also when it belongs to another partner.
    async fn customer_lock(
        &mut self,
        who: &Tenant,
        id: CustomerId,
    ) -> Result<Option<SealedCustomer>, StoreError>;

    /// Stores a customer that was changed or deleted. Guard: what is stored has the revision before it
    /// and is not deleted. What it is found by never changes.
    async fn customer_put(
        &mut self,
        who: &Tenant,
        customer: &SealedCustomer,
    ) -> Result<Cas, StoreError>;
}

/// The place a session's KYC package is sealed for.
#[must_use]
pub fn kyc_place(who: &Tenant, session: SessionId) -> String {
    format!(
        "gate_sessions/{}/{}/{session}/kyc_package",
        who.mode, who.partner
    )
}
