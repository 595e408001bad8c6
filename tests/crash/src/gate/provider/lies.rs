//! The lies of a provider. It has at most one about a payment or a user.

use kernel::Timestamp;
use serde_json::{Map, Value, json};

use super::terms::{EVM_ADDRESS, LESS, TRON_ADDRESS, Terms};
use super::word::{Arrived, Report};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gate) enum Lie {
    // Instructions that differ from what the customer confirmed. No payment may follow from them.
    AsksOtherAmount,
    AsksOtherCurrency,
    AsksOtherAsset,
    AsksOtherNetwork,
    AsksOtherAddress,
    AsksForAnother,

    // Reports that are untrue or invalid for a while.
    /// 404, although it knows the payment.
    Forgets,
    /// The 404 of a proxy.
    IsHidden,
    NamesAnother,
    IsSilent,
    LessArrived,
    MoreArrived,
    OtherCurrencyArrived,
    OtherAssetArrived,
    OtherNetworkArrived,
    SettlesWithLess,

    /// Another status after the gate has stored the end.
    ChangesEnd,
}

impl Lie {
    const OF_INSTRUCTIONS: [Self; 6] = [
        Self::AsksOtherAmount,
        Self::AsksOtherCurrency,
        Self::AsksOtherAsset,
        Self::AsksOtherNetwork,
        Self::AsksOtherAddress,
        Self::AsksForAnother,
    ];
    const OF_REPORTS: [Self; 10] = [
        Self::Forgets,
        Self::IsHidden,
        Self::NamesAnother,
        Self::IsSilent,
        Self::LessArrived,
        Self::MoreArrived,
        Self::OtherCurrencyArrived,
        Self::OtherAssetArrived,
        Self::OtherNetworkArrived,
        Self::SettlesWithLess,
    ];
    const OF_USERS: [Self; 4] = [
        Self::Forgets,
        Self::IsHidden,
        Self::NamesAnother,
        Self::IsSilent,
    ];

    /// Chooses the lie about a payment. Most payments have no lie.
    pub(super) fn about_payment(chance: &mut fastrand::Rng) -> Option<Self> {
        match chance.u8(0..100) {
            0..=11 => chance.choice(Self::OF_INSTRUCTIONS),
            12..=31 => chance.choice(Self::OF_REPORTS),
            32..=44 => Some(Self::ChangesEnd),
            _ => None,
        }
    }

    /// Chooses the lie about a user. Most users have no lie.
    pub(super) fn about_user(chance: &mut fastrand::Rng) -> Option<Self> {
        match chance.u8(0..100) {
            0..=29 => chance.choice(Self::OF_USERS),
            _ => None,
        }
    }

    pub(super) fn is_about_reports(self) -> bool {
        Self::OF_REPORTS.contains(&self)
    }

    /// Makes instructions differ from the terms. Other lies, and another address for a customer who pays fiat, change nothing.
    pub(super) fn misdirect(self, terms: &Terms, instructions: &mut Map<String, Value>) {
        let paid = terms.paid();
        let (name, text) = match (self, paid.network) {
            (Self::AsksOtherAmount, _) => ("amount", paid.more()),
            (Self::AsksOtherCurrency, _) => ("currency", "USD".to_owned()),
            (Self::AsksOtherAsset, _) => ("asset", "BTC".to_owned()),
            (Self::AsksOtherNetwork, _) => ("network", "solana".to_owned()),
            (Self::AsksOtherAddress, Some("tron")) => ("address", EVM_ADDRESS.to_owned()),
            (Self::AsksOtherAddress, Some(_)) => ("address", TRON_ADDRESS.to_owned()),
            _ => return,
        };
        instructions.insert(name.to_owned(), json!(text));
    }

    /// The untrue report; `None` if the lie is about something else, or sends no valid report.
    pub(super) fn report(self, terms: &Terms, now: Timestamp) -> Option<Report> {
        let paid = terms.paid();
        let amount = paid.amount.to_owned();
        let other = Arrived::Other;
        let (status, arrived, amount, change) = match self {
            Self::LessArrived => ("processing", Arrived::Less, LESS.to_owned(), None),
            Self::MoreArrived => ("processing", Arrived::More, paid.more(), None),
            Self::SettlesWithLess => ("settled", Arrived::Less, LESS.to_owned(), None),
            Self::OtherCurrencyArrived => ("settled", other, amount, Some(("currency", "USD"))),
            Self::OtherAssetArrived => ("settled", other, amount, Some(("asset", "BTC"))),
            Self::OtherNetworkArrived => ("settled", other, amount, Some(("network", "solana"))),
            _ => return None,
        };
        let mut received = paid.received(&amount, now);
        if let Some((name, text)) = change {
            received.insert(name.to_owned(), json!(text));
        }
        Some(Report::of(status).with_received(arrived, received))
    }
}
