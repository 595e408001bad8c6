//! The ports of the upstreams: the rail and the verifier.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Asset, Named, Timestamp, TraceParent};
use partner_core::PartnerId;

use crate::amount::SessionAmount;
use crate::object::JsonObject;
use crate::payout::Payout;
use crate::rail::{self, Finding, Instructions, RailAnswer, RailId, RailReport};
use crate::signed_quote::QuoteTerms;
use crate::verification::form::Form;
use crate::verification::{Contradiction, VerificationId, VerificationReport};

/// The data of a record that a rail receives, and the partner of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RailOrder {
    /// Divides the concurrent calls among partners. It is not sent.
    pub partner: PartnerId,
    /// The id of the record. A rail executes each id at most once.
    pub id: RailId,
    /// What to pay in, pay out or swap, and how.
    pub terms: QuoteTerms,
    /// Until when the customer can pay; `None` if the customer pays nothing.
    pub pay_until: Option<Timestamp>,
    /// Where to deliver the asset of a hosted purchase or of a swap.
    pub wallet_address: Option<String>,
    /// Where to pay out the fiat of a hosted sale; `None` for every other payment.
    pub payout: Option<Payout>,
    /// The request that made the record, for the calls that no request causes.
    pub trace_parent: Option<TraceParent>,
}

impl RailOrder {
    /// The order of a record that a partner makes on the rail routes. The rail knows its users' accounts.
    #[must_use]
    pub const fn of_redemption(
        partner: PartnerId,
        (id, pay_until): (RailId, Option<Timestamp>),
        terms: QuoteTerms,
    ) -> Self {
        Self {
            partner,
            id,
            terms,
            pay_until,
            wallet_address: None,
            payout: None,
            trace_parent: None,
        }
    }
}

/// The response of a rail to the cancellation of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelReport {
    /// The payment is cancelled for ever: no money has moved, and none will.
    Cancelled,
    /// The payment can no longer be cancelled.
    TooLate,
}

/// Who gives a payment up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenUp {
    /// Its customer, in the widget.
    ByCustomer,
    /// The gate, after the deadline.
    AtDeadline,
}

/// A poll of a record that is processing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RailPoll {
    /// Counts from 1.
    pub attempt: u32,
    /// Whether the rail may begin the payment if it does not know it. A payment that the rail has once acknowledged never begins again.
    pub may_begin: bool,
}

/// What a customer pretends to have done, in mode test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pretence {
    /// The customer has sent the money, or the card was accepted.
    Paid,
    /// The card was declined.
    Declined,
}

/// A rail that moves no money, so that its customers can pretend.
pub trait RailSimulation: Send + Sync {
    /// The report of a payment that is processing, after a pretence.
    fn pretend(&self, order: &RailOrder, pretence: Pretence) -> RailReport;
}

/// Moves fiat, and swaps assets. The calls of one poll together must respond within
/// [`RAIL_TIMEOUT`](crate::usecases::advance_rails::RAIL_TIMEOUT).
#[async_trait]
pub trait Rail: Named + Send + Sync {
    /// Returns what the payer needs: how to pay the fiat of a pay-in, or where to send the asset of a hosted pay-out or of a
    /// swap. `None` if the rail does not respond.
    ///
    /// The call precedes the record and must not move money: the record may never be created.
    async fn instructions(&self, order: &RailOrder) -> Option<Instructions>;

    /// Reports a payment that is processing. If it has not begun and may begin, the movement of its money starts.
    async fn advance(&self, order: &RailOrder, poll: RailPoll) -> RailAnswer;

    /// Reports a payment that has ended. Nothing begins.
    async fn watch(&self, order: &RailOrder) -> RailAnswer;

    /// How long to wait before the poll that follows this one, if the payment is in progress and the rail knows when it ends.
    fn ask_again(&self, _: &RailOrder, _: u32) -> Option<Duration> {
        None
    }

    /// Cancels a payment that was given up; `None` if the rail does not respond. The rail remembers the cancellation, also of a
    /// payment that has not begun.
    async fn cancel(&self, order: &RailOrder, given_up: GivenUp) -> Option<CancelReport>;

    /// Notifies that an answer cannot be true of its payment. Rails ignore it; a wrapper that records metrics counts it.
    fn contradicted(&self, _: rail::Contradiction) {}

    /// Notifies that an operator must look at a payment. Rails ignore it; a wrapper that records metrics counts it.
    fn found(&self, _: Finding) {}

    /// The simulation, if the rail moves no money. Nothing that such a rail reports needs an operator.
    fn simulation(&self) -> Option<Arc<dyn RailSimulation>> {
        None
    }

    /// Whether the last polls of this partner all timed out. Few of its records are then polled at the same time, so that those of
    /// other partners do not wait.
    fn polls_hang(&self, _: &PartnerId) -> bool {
        false
    }
}

/// The data of a verification that a provider receives, and the partner of the session. It contains no personal data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerificationOrder {
    /// Divides the concurrent calls among partners. It is not sent.
    pub partner: PartnerId,
    /// The id of the verification. A provider starts each id at most once.
    pub id: VerificationId,
    /// The amount of the session.
    pub amount: SessionAmount,
    pub currency: Asset,
    /// When the verification was made.
    pub created_at: Timestamp,
    /// The request that made it, for the calls that no request causes.
    pub trace_parent: Option<TraceParent>,
}

/// A verification that a provider has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerificationStart {
    /// The report of the provider.
    pub report: VerificationReport,
    /// The page of the provider that the user visits.
    pub url: Option<String>,
    /// The fields that the widget shows.
    pub form: Option<Form>,
    /// When `url` and `form` end.
    pub expires_at: Option<Timestamp>,
    /// The provider's own reference.
    pub reference: Option<String>,
}

/// Verifies users. `None` means that the provider gave no response, and decides nothing. The calls of one start or one
/// poll together must respond within [`VERIFIER_TIMEOUT`](crate::usecases::verify_user::VERIFIER_TIMEOUT).
#[async_trait]
pub trait Verifier: Named + Send + Sync {
    /// Starts the verification if it has not started, and says what the user must do.
    async fn start(&self, order: &VerificationOrder) -> Option<VerificationStart>;

    /// Submits the user's answers to the form. The caller does not store them.
    async fn submit(
        &self,
        order: &VerificationOrder,
        answers: &JsonObject,
    ) -> Option<VerificationReport>;

    /// Reports the state of a started verification.
    async fn report(&self, order: &VerificationOrder) -> Option<VerificationReport>;

    /// Whether the last polls of this partner all timed out, as for [`Rail::polls_hang`].
    fn polls_hang(&self, _: &PartnerId) -> bool {
        false
    }

    /// Whether the provider checks no user, so that users can decide about themselves.
    fn is_simulated(&self) -> bool {
        false
    }

    /// Notifies that a report contradicts the end of a verification. Providers ignore it; a wrapper that records
    /// metrics counts it.
    fn contradicted(&self, _: &Contradiction) {}
}
