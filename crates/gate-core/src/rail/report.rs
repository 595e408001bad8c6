//! What a rail answers to a poll.

use std::cmp::Ordering;

use kernel::{Amount, Timestamp};

use super::Contradiction;
use crate::signed_quote::QuoteTerms;

kernel::closed_list! {
    /// Why a rail did not carry out a payment and gave the money back.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum FailureReason {
        /// Another amount arrived than the payment's.
        AmountDiffers = "amount_differs",
        /// The money came after the deadline, or never.
        Expired = "expired",
        /// The money that had moved came back.
        Returned = "returned",
        /// The rail, a bank or a network refused the payment.
        Refused = "refused",
    }
}

/// The report of a rail about a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RailReport {
    /// The rail is processing the payment.
    InProgress,
    /// The money has moved.
    Settled {
        /// The rail's reference of the movement.
        reference: Option<String>,
    },
    /// The rail could not complete the payment, and gives the money back.
    Failed {
        /// The failure code of the rail.
        code: String,
        reason: Option<FailureReason>,
    },
    /// The payer has not paid.
    Cancelled,
    /// The money of a settled payment came back.
    Returned,
}

/// The failure code of a payment whose money came back before its settlement was seen.
pub(super) const RETURNED: &str = "returned";

/// What a rail says has arrived of a payment, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// A decimal, which may be zero.
    pub amount: String,
    /// The currency of fiat.
    pub currency: Option<String>,
    /// The asset of crypto, with its network.
    pub asset: Option<String>,
    pub network: Option<String>,
    /// When it arrived; `None` if the rail does not say.
    pub at: Option<Timestamp>,
}

/// What has arrived of what the customer pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// In the asset of the payment, rounded down to its digits.
    pub amount: Amount,
    /// When the rail saw it, or else when the report was applied.
    pub at: Timestamp,
}

impl Receipt {
    /// What has arrived of a payment with these terms.
    ///
    /// # Errors
    /// [`Contradiction::OtherAsset`] if it is not what the customer pays: another currency, asset or network, or no amount.
    pub fn of(&self, terms: &QuoteTerms, now: Timestamp) -> Result<Received, Contradiction> {
        let paid = terms.paid();
        let asset = paid.amount.asset();
        let is_paid = |said: &Option<String>| said.as_deref().is_none_or(|it| it == asset.code());
        let fits = match paid.network {
            None => is_paid(&self.currency) && self.asset.is_none() && self.network.is_none(),
            Some(network) => {
                let said = self.network.as_deref();
                is_paid(&self.asset)
                    && self.currency.is_none()
                    && said.is_none_or(|it| it == network)
            }
        };
        let amount = Amount::parse_floor(&self.amount, asset);
        match amount {
            Ok(amount) if fits => Ok(Received {
                amount,
                at: self.at.unwrap_or(now),
            }),
            Ok(_) | Err(_) => Err(Contradiction::OtherAsset),
        }
    }
}

impl Received {
    /// How it compares with what the customer pays.
    #[must_use]
    pub fn against(&self, terms: &QuoteTerms) -> Ordering {
        self.amount.units().cmp(&terms.paid().amount.units())
    }
}

/// A report, with what it says has arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    pub report: RailReport,
    pub receipt: Option<Receipt>,
}

/// The answer of a rail to a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RailAnswer {
    /// There is no valid answer. Nothing is decided.
    Silent,
    /// The rail has accepted the payment, and has not reported it.
    Accepted,
    /// The rail does not know the payment.
    Unknown,
    Reported(Reported),
}

impl From<RailReport> for RailAnswer {
    fn from(report: RailReport) -> Self {
        Self::Reported(Reported {
            report,
            receipt: None,
        })
    }
}
