//! What an audit of the pools adds up as it goes through the rows, in 128 bits, so that no total
//! overflows.

use std::collections::{BTreeMap, VecDeque};

use partner_core::audit::Breaches;

use crate::quote::{Side, Terms};

/// Mode, partner and currency, as rows have them.
pub type AccountKey = (String, String, String);

/// A place as breaches name it.
#[must_use]
pub fn shown((mode, partner, asset): &AccountKey) -> String {
    format!("{mode}/{partner} {asset}")
}

/// Where an account's entries have led.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountTail {
    /// The number of the last one.
    pub sequence: i64,
    /// The balance after it.
    pub balance: i128,
    /// Its instant.
    pub at: i64,
}

impl AccountTail {
    /// Before the first entry.
    pub const NOWHERE: Self = Self {
        sequence: 0,
        balance: 0,
        at: i64::MIN,
    };

    /// Does an entry that moves so much follow this one? Numbered without a gap, no earlier, its
    /// balance the one before it and its amount, never negative.
    #[must_use]
    pub fn leads_to(&self, next: &Self, moved: i128) -> bool {
        Some(next.sequence) == self.sequence.checked_add(1)
            && Some(next.balance) == self.balance.checked_add(moved)
            && next.balance >= 0
            && next.at >= self.at
    }
}

/// The sums of all entries, and of what the partners' own accounts say they hold.
#[derive(Debug, Default)]
pub struct Sums {
    /// Per mode and currency: what each kind of account has come to. A partner's own stands here
    /// as it is stored; the others keep no balance, so they are their entries.
    accounts: BTreeMap<(String, String), BTreeMap<String, i128>>,
}

impl Sums {
    /// Moves an amount into an account of a kind.
    pub fn add(&mut self, (mode, _, asset): &AccountKey, kind: String, moved: i128) {
        let place = (mode.clone(), asset.clone());
        let sum = self.accounts.entry(place).or_default().entry(kind);
        let sum = sum.or_default();
        *sum = sum.saturating_add(moved);
    }

    /// Value is moved, never made: all accounts of a currency together are nothing, and nobody
    /// but the outside owes anything.
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

/// What counts of one partner's trades at the instant of the last one: its instant and notional.
#[derive(Debug, Default)]
pub struct Window {
    /// Mode and name of the partner.
    pub partner: (String, String),
    trades: VecDeque<(i64, i64)>,
    sum: i128,
}

impl Window {
    /// Takes a trade in and lets those go that are older than the span; the sum then.
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

/// Is the leg a partner gets the one it gives times the rate, rounded down once?
#[must_use]
pub fn follows_the_rate(terms: &Terms) -> bool {
    let output = match terms.side {
        Side::OnRamp => terms.crypto,
        Side::OffRamp => terms.fiat,
    };
    terms.rate.convert(&terms.input(), output.asset()) == Some(output)
}
