//! The closed lists of the contract.

use gate_core::catalogue;
use gate_core::customer;
use gate_core::embed::Scope;
use gate_core::payout::AccountForm;
use gate_core::rail::RailStatus;
use gate_core::session;
use gate_core::signed_quote;
use gate_core::transaction;
use gate_core::usecases::preview_quotes::Unavailable;
use gate_core::verification;
use kernel::rates;
use partner_core::webhooks::delivery::DeliveryState;

http_kit::words! {
    /// Whether money is real.
    Mode of kernel::Mode;
    /// The flow of a session or transaction.
    Flow of session::Flow, read by session::Flow::parse;
    /// The direction of an order.
    Side of rates::Side, read by rates::Side::parse;
    /// The status of a session.
    SessionStatus of session::SessionStatus;
    /// How a session ended.
    EmbedOutcomeStatus of session::SessionStatus = of_ended();
    /// The status of a transaction.
    TransactionStatus of transaction::TransactionStatus;
    /// The status of a payment.
    EmbedPaymentStatus of transaction::TransactionStatus;
    /// Why the rail gives back what had arrived of a payment.
    FailureReason of gate_core::rail::FailureReason;
    /// The status of a pay-in.
    PayInStatus of RailStatus;
    /// The status of a pay-out. A pay-out whose money has left cannot be cancelled.
    PayOutStatus of RailStatus = of_pay_out();
    /// The status of a signed quote.
    SignedQuoteStatus of signed_quote::SignedQuoteStatus;
    /// The status of a verification.
    VerificationStatus of verification::VerificationStatus;
    /// Whether the identity of a customer is verified.
    KycStatus of customer::KycStatus;
    /// The status of a delivery.
    DeliveryStatus of DeliveryState = DeliveryState::WORDS;
    /// The scopes of a token.
    EmbedScope of Scope;
    /// The form of an account: with an IBAN, of the United Kingdom or of the United States.
    EmbedAccount of AccountForm;
    /// Why a user cannot be served.
    Ineligible of catalogue::Ineligible;
    /// The source of a user's country.
    GeoSource of catalogue::GeoSource;
    /// Why a method is unavailable for an order.
    PreviewUnavailable of Unavailable;
}

/// An open session has no outcome.
fn of_ended() -> impl Iterator<Item = &'static str> {
    let ended = session::SessionStatus::ALL.into_iter();
    let ended = ended.filter(|status| *status != session::SessionStatus::Open);
    ended.map(session::SessionStatus::as_str)
}

/// A cancelled pay-out is shown as failed.
fn of_pay_out() -> impl Iterator<Item = &'static str> {
    let shown = RailStatus::ALL.into_iter();
    let shown = shown.filter(|status| *status != RailStatus::Cancelled);
    shown.map(RailStatus::as_str)
}
