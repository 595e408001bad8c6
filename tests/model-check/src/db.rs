//! The modelled store, with the guarantees of its ports: serializable transactions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::{Amount, Asset, Cas, Mode, StoreError, StoreResult, Timestamp};
use partner_core::Access;
use partner_core::events::NewEvent;
use partner_core::idempotency::Scope;
use partner_core::webhooks::delivery::{DeliveryState, Progress};
use pools_core::batch::{BatchState, IdempotencyRecord, TransactCommand};
use pools_core::ledger::{
    Account, AccountKind, Entry, EntryId, Posting, Reason, Transfer, TransferRole,
};
use pools_core::ports::Deposit;
use pools_core::profile::PoolsProfile;
use pools_core::quote::{Quote, QuoteId, QuoteOutcome, Side};
use pools_core::trade::{Lease, Step, Trade, TradeId, TradeStatus};
use pools_core::velocity::{Velocity, cutoff};

use crate::digest::Digest;
use crate::world::{IDEMPOTENCY_TTL, Numbered, WINDOW, assets, at, quote};

/// Everything that is stored.
#[derive(Debug, Clone)]
pub(crate) struct Db {
    pub(crate) access: Arc<Access<PoolsProfile>>,
    pub(crate) quotes: BTreeMap<QuoteId, Quote>,
    pub(crate) trades: BTreeMap<QuoteId, Trade>,
    pub(crate) accounts: BTreeMap<Asset, Account>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) velocity: Option<Velocity>,
    pub(crate) answered: BTreeMap<Scope, IdempotencyRecord>,
    pub(crate) deposits: BTreeMap<String, Deposit>,
    pub(crate) events: Vec<Queued>,
}

/// An event and its delivery.
#[derive(Debug, Clone)]
pub(crate) struct Queued {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) object: String,
    pub(crate) progress: Progress,
}

impl Db {
    pub(crate) fn new(access: Access<PoolsProfile>, sides: &[Side]) -> Self {
        let quotes = sides.iter().enumerate().map(|(at, side)| quote(at, *side));
        Self {
            access: Arc::new(access),
            quotes: quotes.map(|quote| (quote.id, quote)).collect(),
            trades: BTreeMap::new(),
            accounts: BTreeMap::new(),
            entries: Vec::new(),
            velocity: None,
            answered: BTreeMap::new(),
            deposits: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    /// Credits the partner's opening balance, in units of 100.
    pub(crate) fn fund(&mut self, (fiat, crypto): (u8, u8)) {
        for (asset, count) in assets().into_iter().zip([fiat, crypto]) {
            for _ in 0..count {
                let transfer = Transfer {
                    debit: AccountKind::Outside,
                    credit: AccountKind::Partner,
                    amount: Amount::parse("100", asset).unwrap(),
                    reason: Reason::Adjustment,
                };
                let before = self.account(asset);
                let (_, mark) = before.post(&transfer).unwrap();
                let id = EntryId::new(Mode::Test, at(0), &Numbered(self.entries.len() as u64));
                let entry = Entry {
                    id,
                    transfer,
                    mark,
                    reference: "funds".to_owned(),
                    trade: None,
                    created_at: at(0),
                };
                self.post(&before, &entry).unwrap();
            }
        }
    }

    pub(crate) fn trade(&self, id: TradeId) -> Option<&Trade> {
        self.trades.values().find(|trade| trade.id == id)
    }

    fn trade_mut(&mut self, id: TradeId) -> Option<&mut Trade> {
        self.trades.values_mut().find(|trade| trade.id == id)
    }

    pub(crate) fn account(&self, asset: Asset) -> Account {
        let account = self.accounts.get(&asset).copied();
        account.unwrap_or(Account::empty(asset))
    }

    /// Sums the trades that count in `(after, up_to]`.
    pub(crate) fn counting(&self, after: Timestamp, up_to: Timestamp) -> Vec<i64> {
        let counts = |trade: &&Trade| {
            trade.created_at > after
                && trade.created_at <= up_to
                && !matches!(
                    trade.state.status(),
                    TradeStatus::Released | TradeStatus::Failed
                )
        };
        let counting = self.trades.values().filter(counts);
        counting.map(|trade| trade.terms.notional).collect()
    }

    // ----- the batch queue -----

    /// Loads the batch state, as a store does under its locks.
    pub(crate) fn state(&self, now: Timestamp) -> BatchState {
        let partner = self.access.partner.id.clone();
        let of = |quote: &QuoteId| (partner.clone(), *quote);
        let slid = self.velocity.map(|velocity| {
            let cutoff = cutoff(now, WINDOW);
            let (low, high) = (cutoff.min(velocity.floor), cutoff.max(velocity.floor));
            velocity.slide(cutoff, &self.counting(low, high))
        });
        BatchState {
            access: [(self.access.key.id, Arc::clone(&self.access))].into(),
            answered: self.answered.clone(),
            quotes: self
                .quotes
                .iter()
                .map(|(id, quote)| (of(id), quote.clone()))
                .collect(),
            trades: self
                .trades
                .iter()
                .map(|(id, trade)| (of(id), trade.clone()))
                .collect(),
            accounts: self
                .accounts
                .iter()
                .map(|(asset, account)| ((partner.clone(), *asset), *account))
                .collect(),
            velocity: slid
                .map(|slid| (partner.clone(), slid))
                .into_iter()
                .collect(),
            commitments: BTreeMap::new(),
            window: WINDOW,
            idempotency_ttl: IDEMPOTENCY_TTL,
            opened: Vec::new(),
        }
    }

    /// Writes what a batch has opened; each write checks its precondition again.
    pub(crate) fn write(
        &mut self,
        state: &BatchState,
        batch: &[TransactCommand],
    ) -> StoreResult<()> {
        assert!(
            state.opened.len() <= batch.len(),
            "a command opens one trade at most"
        );
        for opened in &state.opened {
            let trade = &opened.trade;
            let quote = self
                .quotes
                .get_mut(&trade.quote)
                .ok_or_else(|| guard("quote"))?;
            if quote.outcome != QuoteOutcome::Open || trade.created_at >= quote.expires_at {
                return Err(guard("quote_consume"));
            }
            quote.outcome = QuoteOutcome::Consumed(trade.created_at);
            if self.trades.insert(trade.quote, trade.clone()).is_some() {
                return Err(guard("one trade per quote"));
            }
            self.entries.extend(opened.entry.clone());
            self.answered.insert(opened.scope.clone(), opened.answered);
        }
        for (_, account) in state.touched_accounts() {
            self.accounts.insert(account.asset(), *account);
        }
        for (_, velocity) in state.touched_velocity() {
            self.velocity = Some(*velocity);
        }
        Ok(())
    }

    // ----- transactions -----

    pub(crate) fn reject(&mut self, id: QuoteId, at: Timestamp) -> Cas {
        match self.quotes.get_mut(&id) {
            Some(quote) if quote.outcome == QuoteOutcome::Open && at < quote.expires_at => {
                quote.outcome = QuoteOutcome::Rejected(at);
                Cas::Won
            }
            _ => Cas::Lost,
        }
    }

    pub(crate) fn claim(&mut self, id: TradeId, attempt: u32, lease: Lease) -> Cas {
        match self.trade_mut(id) {
            Some(trade) if trade.attempts.checked_add(1) == Some(attempt) => {
                trade.attempts = attempt;
                trade.lease = Some(lease);
                Cas::Won
            }
            _ => Cas::Lost,
        }
    }

    pub(crate) fn unclaim(&mut self, id: TradeId, token: u64) -> Cas {
        match self.trade_mut(id) {
            Some(trade) if holds(trade, token) => {
                trade.lease = None;
                Cas::Won
            }
            _ => Cas::Lost,
        }
    }

    pub(crate) fn rest(&mut self, id: TradeId, lease: Lease) -> Cas {
        match self.trade_mut(id) {
            Some(trade) if holds(trade, lease.token) => {
                trade.lease = Some(lease);
                Cas::Won
            }
            _ => Cas::Lost,
        }
    }

    pub(crate) fn apply(&mut self, before: &Trade, steps: &[Step], token: u64) -> Cas {
        match (self.trade_mut(before.id), steps.last()) {
            (Some(trade), Some(last))
                if holds(trade, token) && trade.state.status() == before.state.status() =>
            {
                trade.state = last.state.clone();
                trade.lease = None;
                Cas::Won
            }
            _ => Cas::Lost,
        }
    }

    pub(crate) fn post(&mut self, before: &Account, entry: &Entry) -> StoreResult<()> {
        let twice = |other: &Entry| entry.trade.is_some() && other.trade == entry.trade;
        if self.entries.iter().any(twice) {
            return Err(guard("one entry per trade and part"));
        }
        if let Some(mark) = entry.mark {
            if self.account(before.asset()).sequence != before.sequence {
                return Err(StoreError::Retry);
            }
            let after = Account {
                available: mark.balance_after,
                sequence: mark.sequence,
            };
            self.accounts.insert(before.asset(), after);
        }
        self.entries.push(entry.clone());
        Ok(())
    }

    pub(crate) fn insert_event(&mut self, event: &NewEvent) -> StoreResult<()> {
        if self.events.iter().any(|other| other.id == event.id) {
            return Err(guard("one event per trade and type"));
        }
        let state = DeliveryState::Pending {
            due: event.created_at,
        };
        self.events.push(Queued {
            id: event.id.clone(),
            kind: event.kind.clone(),
            object: event.object_id.clone(),
            progress: Progress::new(state, 0),
        });
        Ok(())
    }

    /// Everything that differs from one state to another and from one scene to another.
    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        digest.add(&self.access.profile.velocity_cap);
        for quote in self.quotes.values() {
            digest.add(&(quote.terms.side, quote.outcome));
        }
        for trade in self.trades.values() {
            digest.add(&facts(trade));
        }
        for entry in &self.entries {
            digest.add(&booked(entry));
        }
        for asset in assets() {
            digest.add(&self.accounts.get(&asset));
        }
        digest.add(&self.velocity);
        for (scope, answered) in &self.answered {
            digest.add(&(
                scope.key.as_str(),
                answered.fingerprint.0,
                answered.expires_at,
            ));
        }
        digest.add(&self.deposits.keys().collect::<BTreeSet<_>>());
        for event in &self.events {
            digest.add(&(&event.id, event.progress));
        }
        digest.finish()
    }
}

/// The content of an entry, without its id.
pub(crate) fn booked(
    entry: &Entry,
) -> (
    Transfer,
    Option<Posting>,
    Option<(TradeId, TransferRole)>,
    Timestamp,
) {
    (entry.transfer, entry.mark, entry.trade, entry.created_at)
}

/// The fields of a trade that can change.
pub(crate) fn facts(trade: &Trade) -> impl std::fmt::Debug + '_ {
    (
        trade.id,
        &trade.state,
        trade.attempts,
        trade.lease,
        trade.created_at,
    )
}

fn holds(trade: &Trade, token: u64) -> bool {
    trade.lease.is_some_and(|lease| lease.token == token)
}

fn guard(name: &str) -> StoreError {
    StoreError::Guard(name.to_owned())
}
