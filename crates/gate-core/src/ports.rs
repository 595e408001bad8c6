//! The ports of the gate domain.

mod forms;
mod upstreams;

use std::time::Duration;

use async_trait::async_trait;
use kernel::{Cas, Mode, Readable, Seen, StoreResult, Timestamp, UpstreamName};
use partner_core::Tenant;
use partner_core::export::{Pages, Window};
use partner_core::key::KeyId;
use partner_core::page::CreatedRange;
use partner_core::ports::{AccessTx, EndpointTx, EventTx, ResponseReads, ResponseTx, UnitOfWork};
use partner_core::sealing::Sealed;

use crate::branding::Branding;
use crate::customer::{CustomerId, IdentityIndexes, SealedCustomer, TextIndexes, Unique};
use crate::due::DueShare;
use crate::embed::SessionToken;
use crate::preview::{Preview, PreviewId};
use crate::profile::GateProfile;
use crate::quota::Tally;
use crate::rail::{Finding, PollLease, RailId, RailRecord};
use crate::session::{Session, SessionId, SessionStatus, Step};
use crate::signed_quote::{Installation, SignedQuote, SignedQuoteId};
use crate::transaction::{RefId, Transaction, TransactionState, TransactionStatus};
use crate::verification::Verification;

pub use forms::{CustomerForms, CustomerFormsTx, FormsPage, HeldForms};
pub use upstreams::{
    CancelReport, GivenUp, Pretence, Rail, RailOrder, RailPoll, RailSimulation, VerificationOrder,
    VerificationStart, Verifier,
};

/// Reads that never write. They do not apply expiry: a use case that reads an overdue session expires it in its own
/// transaction.
#[async_trait]
pub trait GateReads: ResponseReads {
    /// The store's clock.
    async fn gate_now(&self) -> StoreResult<Timestamp>;

    /// The name of this installation. It never changes.
    async fn installation_get(&self) -> StoreResult<Installation>;

    /// A session of the tenant. `Seen` carries the store's instant, taken after the row was read.
    async fn session_get(&self, who: &Tenant, id: SessionId) -> StoreResult<Option<Seen<Session>>>;

    /// A page of at most `limit` sessions by their stored state, by (`created_at`, id) descending. An unknown cursor
    /// returns an empty page.
    async fn sessions_page(
        &self,
        who: &Tenant,
        filter: &SessionFilter,
        limit: u32,
    ) -> StoreResult<Seen<Vec<Session>>>;

    /// Overdue sessions of the tenant that are stored as open, the oldest deadline first, at most `limit`.
    async fn sessions_overdue(&self, who: &Tenant, limit: u32) -> StoreResult<Vec<SessionId>>;

    /// Overdue sessions of a mode, as [`GateReads::sessions_overdue`] returns them for one tenant, partner by partner in the
    /// order of their ids.
    async fn sessions_overdue_in(
        &self,
        mode: Mode,
        share: &DueShare,
    ) -> StoreResult<Readable<(Tenant, SessionId)>>;

    /// The tenant's tally; `None` before its first live session.
    async fn tally_get(&self, who: &Tenant) -> StoreResult<Seen<Option<Tally>>>;

    /// The tenant's branding; the default if it was never set.
    async fn branding_get(&self, who: &Tenant) -> StoreResult<Seen<Branding>>;

    /// A transaction of the tenant.
    async fn transaction_get(&self, who: &Tenant, refid: RefId)
    -> StoreResult<Option<Transaction>>;

    /// A page of at most `limit` transactions, by (`created_at`, refid) descending. An unknown cursor returns an
    /// empty page.
    async fn transactions_page(
        &self,
        who: &Tenant,
        filter: &TransactionFilter,
        limit: u32,
    ) -> StoreResult<Vec<Transaction>>;

    /// A signed quote of the tenant.
    async fn signed_quote_get(
        &self,
        who: &Tenant,
        id: SignedQuoteId,
    ) -> StoreResult<Option<Seen<SignedQuote>>>;

    /// A rail record of the tenant.
    async fn rail_get(&self, who: &Tenant, id: RailId) -> StoreResult<Option<RailRecord>>;

    /// The newest payment of a session, on whichever route it was made.
    async fn payment_of_session(
        &self,
        who: &Tenant,
        session: SessionId,
    ) -> StoreResult<Option<RailRecord>>;

    /// Records of a mode that are processing at a rail and whose next poll is due, partner by partner in the order of their ids, of
    /// each partner the longest overdue first.
    async fn rails_due(
        &self,
        held: HeldBy<'_>,
        share: &DueShare,
    ) -> StoreResult<Readable<(Tenant, RailId)>>;

    /// Records that have ended and about which the rail must be asked again, in the order of [`GateReads::rails_due`].
    async fn rails_watched(
        &self,
        held: HeldBy<'_>,
        share: &DueShare,
    ) -> StoreResult<Readable<(Tenant, RailId)>>;

    /// The record that a notification names. `None` if it does not exist.
    async fn rail_notified(&self, mode: Mode, id: RailId) -> StoreResult<Option<Notified>>;

    /// The number of records of a mode that are processing at rails other than these, by rail. For metrics.
    async fn rails_elsewhere(
        &self,
        mode: Mode,
        rails: &[UpstreamName],
    ) -> StoreResult<Vec<(UpstreamName, u64)>>;

    /// The number of records of a mode that have ended and are watched at rails other than these, by rail. For metrics.
    async fn rails_watched_elsewhere(
        &self,
        mode: Mode,
        rails: &[UpstreamName],
    ) -> StoreResult<Vec<(UpstreamName, u64)>>;

    /// The number of records of a mode that an operator must look at, by finding. For metrics.
    async fn rail_open_items(&self, mode: Mode) -> StoreResult<Vec<(Finding, u64)>>;

    /// The age of the oldest record of a mode that is processing, for metrics. An implementation must not scan a table.
    async fn rail_oldest(&self, mode: Mode) -> StoreResult<Option<Duration>>;

    /// The verification of a session of the tenant.
    async fn verification_get(
        &self,
        who: &Tenant,
        session: SessionId,
    ) -> StoreResult<Option<Verification>>;

    /// Sessions of a mode whose verification is pending at a verifier and due for a poll, in the order of [`GateReads::rails_due`].
    async fn verifications_due(
        &self,
        held: HeldBy<'_>,
        share: &DueShare,
    ) -> StoreResult<Readable<(Tenant, SessionId)>>;

    /// The number of verifications of a mode that are pending at verifiers other than these, by verifier. For metrics.
    async fn verifications_elsewhere(
        &self,
        mode: Mode,
        verifiers: &[UpstreamName],
    ) -> StoreResult<Vec<(UpstreamName, u64)>>;

    /// A customer of the tenant, also if it is deleted.
    async fn customer_get(
        &self,
        who: &Tenant,
        id: CustomerId,
    ) -> StoreResult<Option<SealedCustomer>>;

    /// A page of at most `limit` customers that are not deleted, by (`created_at`, id) descending. A deleted customer
    /// is still a valid cursor; an unknown cursor returns an empty page.
    async fn customers_page(
        &self,
        who: &Tenant,
        filter: &CustomerFilter,
        limit: u32,
    ) -> StoreResult<Vec<SealedCustomer>>;
}

/// What an upstream holds in a mode.
#[derive(Debug, Clone, Copy)]
pub struct HeldBy<'u> {
    pub mode: Mode,
    pub upstream: &'u UpstreamName,
}

/// A record that a notification names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notified {
    pub who: Tenant,
    /// The rail that holds it.
    pub rail: UpstreamName,
    /// Whether [`RailTx::rail_wake`] would bring its next poll forward.
    pub is_asleep: bool,
}

/// Filters of a page of sessions.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionFilter {
    /// Only sessions after this one in the order of the list.
    pub after: Option<SessionId>,
    /// Only sessions with this status.
    pub status: Option<SessionStatus>,
    /// Only sessions created within this range.
    pub created: CreatedRange,
}

/// Filters of a page of transactions.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransactionFilter {
    /// Only transactions after this one in the order of the list.
    pub after: Option<RefId>,
    /// Only transactions with this status.
    pub status: Option<TransactionStatus>,
    /// Only transactions of this session.
    pub session: Option<SessionId>,
    /// Only transactions created within this range.
    pub created: CreatedRange,
}

/// Filters of a page of customers.
#[derive(Debug, Clone, Copy, Default)]
pub struct CustomerFilter {
    /// Only customers after this one in the order of the list.
    pub after: Option<CustomerId>,
    /// Only the customer with this email.
    pub email: Option<TextIndexes>,
    /// Only the customer with this `external_id`.
    pub external_id: Option<TextIndexes>,
    /// Only customers created within this range.
    pub created: CreatedRange,
}

/// What an operator exports of the gate.
#[async_trait]
pub trait GateExports: Send + Sync {
    /// The rail records created in a window, by id.
    async fn payments_export(
        &self,
        who: &Tenant,
        window: Window,
    ) -> StoreResult<Box<dyn Pages<RailRecord>>>;
}

/// Deletes quotes of the widget that were not redeemed when their session ended.
#[async_trait]
pub trait UnusedQuotes: Send + Sync {
    /// Partners of a mode with ended sessions whose unused quotes were not deleted yet, at most `limit`.
    async fn unused_quotes_due(&self, mode: Mode, limit: u32) -> StoreResult<Readable<Tenant>>;

    /// Deletes at most `limit` unused quotes of about `limit` ended sessions of a partner, the ones with the earliest deadlines.
    /// A session whose unused quotes are all deleted is not due again. Returns how many quotes were deleted.
    async fn unused_quotes_delete(&self, who: &Tenant, limit: u32) -> StoreResult<u64>;
}

/// Opens write transactions.
#[async_trait]
pub trait GateStore: GateReads {
    /// Opens a write transaction. `name` labels it in metrics and logs.
    async fn gate_begin(&self, name: &'static str) -> StoreResult<Box<dyn GateTx>>;
}

/// The sealed texts of publishable keys.
#[async_trait]
pub trait PublishableKeyTx: Send {
    /// The newest key of the tenant that is active at an instant. `None` also if its text was never stored, as that of old keys.
    async fn publishable_key_newest(
        &mut self,
        who: &Tenant,
        now: Timestamp,
    ) -> StoreResult<Option<(KeyId, Sealed)>>;
}

/// One transaction over every entity that a gate use case touches. Every use case takes its locks in the order
/// response, tally, preview, branding, session, signed quote, verification, rail record, customer.
pub trait GateTx:
    ResponseTx
    + AccessTx<GateProfile>
    + PublishableKeyTx
    + TallyTx
    + PreviewTx
    + BrandingTx
    + SessionTx
    + TransactionTx
    + SignedQuoteTx
    + VerificationTx
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
        + PublishableKeyTx
        + TallyTx
        + PreviewTx
        + BrandingTx
        + SessionTx
        + TransactionTx
        + SignedQuoteTx
        + VerificationTx
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
    /// Loads and locks the tally.
    async fn tally_lock(&mut self, who: &Tenant) -> StoreResult<Option<Tally>>;

    /// Stores a tally. Guard: the stored tally equals `before`; if `before` is `None`, no tally is stored.
    async fn tally_put(
        &mut self,
        who: &Tenant,
        before: Option<&Tally>,
        after: &Tally,
    ) -> StoreResult<Cas>;
}

/// Branding in a transaction.
#[async_trait]
pub trait BrandingTx: Send {
    /// Loads and locks the branding; the default if it was never set.
    async fn branding_lock(&mut self, who: &Tenant) -> StoreResult<Branding>;

    /// Stores branding. Guard: the stored revision is the one before; for the first revision, nothing is stored.
    async fn branding_put(&mut self, who: &Tenant, branding: &Branding) -> StoreResult<Cas>;
}

/// Locked previews in a transaction.
#[async_trait]
pub trait PreviewTx: Send {
    /// Inserts a new preview.
    async fn preview_insert(&mut self, who: &Tenant, preview: &Preview) -> StoreResult<()>;

    /// Loads and locks a preview. `None` also if the preview belongs to another partner.
    async fn preview_lock(&mut self, who: &Tenant, id: PreviewId) -> StoreResult<Option<Preview>>;

    /// Records the session that uses a preview. Guard: the preview is unused and has not expired.
    async fn preview_use(
        &mut self,
        who: &Tenant,
        id: PreviewId,
        session: SessionId,
        now: Timestamp,
    ) -> StoreResult<Cas>;
}

/// Sessions in a transaction.
#[async_trait]
pub trait SessionTx: Send {
    /// Inserts a new session, with its KYC package sealed for [`kyc_place`].
    async fn session_insert(
        &mut self,
        who: &Tenant,
        session: &Session,
        kyc_package: Option<&Sealed>,
    ) -> StoreResult<()>;

    /// Loads and locks a session. `None` also if the session belongs to another partner.
    async fn session_lock(&mut self, who: &Tenant, id: SessionId) -> StoreResult<Option<Session>>;

    /// Applies a step. Guard: the session is stored as open; a step that completes or cancels it is before its
    /// expiry.
    async fn session_apply(&mut self, who: &Tenant, id: SessionId, step: &Step)
    -> StoreResult<Cas>;

    /// Counts a new token of a session. Guard: the session is stored as open, and the tokens before this one were counted.
    async fn session_count_token(&mut self, who: &Tenant, token: SessionToken) -> StoreResult<Cas>;
}

/// Transactions of partners, in a store transaction.
#[async_trait]
pub trait TransactionTx: Send {
    /// Inserts a new transaction.
    async fn transaction_insert(
        &mut self,
        who: &Tenant,
        transaction: &Transaction,
    ) -> StoreResult<()>;

    /// Ends a transaction of a rail. Guard: it is processing.
    async fn transaction_end(
        &mut self,
        who: &Tenant,
        refid: RefId,
        state: TransactionState,
    ) -> StoreResult<Cas>;
}

/// Signed quotes in a transaction.
#[async_trait]
pub trait SignedQuoteTx: Send {
    /// Inserts a new quote.
    async fn signed_quote_insert(&mut self, who: &Tenant, quote: &SignedQuote) -> StoreResult<()>;

    /// Loads and locks a signed quote. `None` also if the quote belongs to another partner.
    async fn signed_quote_lock(
        &mut self,
        who: &Tenant,
        id: SignedQuoteId,
    ) -> StoreResult<Option<SignedQuote>>;

    /// Supersedes every quote of a session that is not redeemed. The session is locked.
    async fn signed_quotes_supersede(
        &mut self,
        who: &Tenant,
        session: SessionId,
        now: Timestamp,
    ) -> StoreResult<()>;

    /// Redeems a quote. Guard: it is neither redeemed nor superseded, and `now` is before its expiry.
    async fn signed_quote_consume(
        &mut self,
        who: &Tenant,
        id: SignedQuoteId,
        now: Timestamp,
    ) -> StoreResult<Cas>;
}

/// Rail records in a transaction.
#[async_trait]
pub trait RailTx: Send {
    /// Inserts a new record. Its quote and its transaction must exist.
    async fn rail_insert(&mut self, who: &Tenant, record: &RailRecord) -> StoreResult<()>;

    /// Loads and locks a rail record. `None` also if the record belongs to another partner.
    async fn rail_lock(&mut self, who: &Tenant, id: RailId) -> StoreResult<Option<RailRecord>>;

    /// Stores the poll lease of a record that is processing, and what its rail has said: the acknowledgement, the receipt and the open
    /// item. Guard: the record is processing, and its stored lease equals `before`. If the record was woken during a lease that ends
    /// here, its next poll is due since it was woken, whatever `after` says.
    async fn rail_ask(
        &mut self,
        who: &Tenant,
        before: &PollLease,
        after: &RailRecord,
    ) -> StoreResult<Cas>;

    /// Makes the next poll of a record due now, or, during a poll, as soon as that poll has ended. Guard: its next poll is later, and it
    /// was not woken before.
    async fn rail_wake(&mut self, who: &Tenant, id: RailId, now: Timestamp) -> StoreResult<Cas>;

    /// Ends a record, and stores what its rail has said. Guard: the record is processing, and its stored lease equals `before`.
    async fn rail_end(
        &mut self,
        who: &Tenant,
        before: &PollLease,
        after: &RailRecord,
    ) -> StoreResult<Cas>;

    /// Stores the next watch and the open item of a record that has ended. Guard: its stored next watch equals `before`.
    async fn rail_watch(
        &mut self,
        who: &Tenant,
        before: Option<Timestamp>,
        after: &RailRecord,
    ) -> StoreResult<Cas>;
}

/// Verifications in a transaction. A session has at most one.
#[async_trait]
pub trait VerificationTx: Send {
    /// Inserts the verification of a session. The session must exist.
    async fn verification_insert(
        &mut self,
        who: &Tenant,
        verification: &Verification,
    ) -> StoreResult<()>;

    /// Loads and locks the verification of a session. `None` also if the session belongs to another partner.
    async fn verification_lock(
        &mut self,
        who: &Tenant,
        session: SessionId,
    ) -> StoreResult<Option<Verification>>;

    /// Stores the state, the reference and the poll lease of a verification. Guard: the stored verification has not
    /// ended, and its lease equals `before`.
    async fn verification_put(
        &mut self,
        who: &Tenant,
        before: &PollLease,
        after: &Verification,
    ) -> StoreResult<Cas>;
}

/// Customers in a transaction.
#[async_trait]
pub trait CustomerTx: Send {
    /// The unique field whose text another customer of the partner has, also a deleted one. Until the end of the
    /// transaction no other transaction can take a free text.
    async fn customer_taken(
        &mut self,
        who: &Tenant,
        identity: &IdentityIndexes,
    ) -> StoreResult<Option<Unique>>;

    /// Inserts a new customer.
    async fn customer_insert(&mut self, who: &Tenant, customer: &SealedCustomer)
    -> StoreResult<()>;

    /// Loads and locks a customer, also a deleted one. `None` also if the customer belongs to another partner.
    async fn customer_lock(
        &mut self,
        who: &Tenant,
        id: CustomerId,
    ) -> StoreResult<Option<SealedCustomer>>;

    /// Stores a changed or deleted customer. Guard: the stored revision is the one before, and the customer is not
    /// deleted. The blind indexes never change.
    async fn customer_put(&mut self, who: &Tenant, customer: &SealedCustomer) -> StoreResult<Cas>;
}

/// The place that a session's KYC package is sealed for.
#[must_use]
pub fn kyc_place(who: &Tenant, session: SessionId) -> String {
    format!(
        "gate_sessions/{}/{}/{session}/kyc_package",
        who.mode, who.partner
    )
}
