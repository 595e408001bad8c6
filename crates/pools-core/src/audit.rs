//! Sums over stored rows for the audit of the pools. They have 128 bits, so that no total overflows.

use std::collections::{BTreeMap, VecDeque};

use partner_core::audit::Breaches;

use crate::quote::{Side, Terms};

/// Mode, partner and currency of an account, as rows have them.
pub type AccountKey = (String, String, String);

/// The name of an account in the report of a breach.
#[must_use]
pub fn shown((mode, partner, asset): &AccountKey) -> String {
    format!("{mode}/{partner} {asset}")
}

/// The state of an account after its latest audited entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountTail {
    /// The sequence number of that entry.
    pub sequence: i64,
    /// The balance after that entry.
    pub balance: i128,
    /// The instant of that entry.
    pub at: i64,
}

impl AccountTail {
    /// The state before the first entry.
    pub const NOWHERE: Self = Self {
        sequence: 0,
        balance: 0,
        at: i64::MIN,
    };

    /// Whether an entry continues this state.
    ///
    /// Its sequence number is the next one, its instant is not earlier, its balance is the previous balance plus its
    /// amount, and its balance is not negative.
    #[must_use]
    pub fn leads_to(&self, next: &Self, moved: i128) -> bool {
        Some(next.sequence) == self.sequence.checked_add(1)
            && Some(next.balance) == self.balance.checked_add(moved)
            && next.balance >= 0
            && next.at >= self.at
    }
}

/// The sums of all entries, and of the stored balances of the partners' accounts.
#[derive(Debug, Default)]
pub struct Sums {
    /// Per mode and currency, the sum of each kind of account. Partner accounts count with their stored balance. The
    /// other kinds have no stored balance, so they count with the sum of their entries.
    accounts: BTreeMap<(String, String), BTreeMap<String, i128>>,
}

impl Sums {
    /// Adds an amount to the sum of a kind of account.
    pub fn add(&mut self, (mode, _, asset): &AccountKey, kind: String, moved: i128) {
        let place = (mode.clone(), asset.clone());
        let sum = self.accounts.entry(place).or_default().entry(kind);
        let sum = sum.or_default();
        *sum = sum.saturating_add(moved);
    }

    /// The breaches of two rules: all accounts of a currency sum to zero, and no partner or reserved account is
    /// negative.
    #[must_use]
    pub fn beside_zero(&self) -> Breaches {
        let mut breaches = Breaches::default();
        for ((mode, asset), accounts) in &self.accounts {
            let total: i128 = accounts.values().sum();
            let owing = accounts
                .iter()
                .any(|(kind, sum)| *sum < 0 && matches!(kind.as_str(), "partner" | "reserved"));
            if total != 0 || owing {
                breaches.add(|| format!("{mode} {asset}: {accounts:?} come to {total}"));
            }
        }
        breaches
    }
}

/// The trades of one partner within the velocity window of its latest audited trade.
#[derive(Debug, Default)]
pub struct Window {
    /// Mode and name of the partner.
    pub partner: (String, String),
    trades: VecDeque<(i64, i64)>,
    sum: i128,
}

impl Window {
    /// Adds a trade, drops the trades that left the window, and returns the sum. Instants and `span` are in
    /// milliseconds, notionals in units of 10^-8 USDT.
    pub fn move_to(
        &mut self,
        partner: (String, String),
        at: i64,
        span: i64,
        notional: i64,
    ) -> i128 {
        if self.partner != partner {
            *self = Self {
                partner,
                ..Self::default()
            };
        }
        let cutoff = at.saturating_sub(span);
        while let Some((_, gone)) = self.trades.pop_front_if(|(made, _)| *made <= cutoff) {
            self.sum = self.sum.saturating_sub(i128::from(gone));
        }
        self.trades.push_back((at, notional));
        self.sum = self.sum.saturating_add(i128::from(notional));
        self.sum
    }
}

/// Whether the output leg is the input leg times the rate, rounded down once.
#[must_use]
pub fn follows_the_rate(terms: &Terms) -> bool {
    let output = match terms.side {
        Side::OnRamp => terms.crypto,
        Side::OffRamp => terms.fiat,
    };
    terms.rate.convert(&terms.input(), output.asset()) == Some(output)
}
