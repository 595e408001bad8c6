//! An in-memory model of the store: its rows, and how a store loads and writes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::rates::SourceRate;
use kernel::{Amount, Asset, Entropy, Id, IdKind, Mode, Timestamp, UpstreamName};
use partner_core::idempotency::Scope;
use partner_core::key::KeyId;
use partner_core::{Access, PartnerId};
use pools_core::batch::{
    BatchState, IdempotencyRecord, Refusal, TransactCommand, TransactOutcome, decide_batch,
};
use pools_core::ledger::{
    Account, AccountKind, BALANCE_LIMIT, Entry, Reason, Transfer, TransferRole,
};
use pools_core::ports::Hold;
use pools_core::pricing::{Mids, price};
use pools_core::profile::{PoolId, PoolsProfile};
use pools_core::quote::{Quote, QuoteOutcome, Side, Terms};
use pools_core::trade::{EngineReport, Trade, TradeState};
use pools_core::velocity::{Velocity, cutoff};

use crate::fixtures::{
    Counter, DAY, TTL, access, destination, fingerprint, key_id, mid, noon, scope,
};

pub(crate) const KEYS: [&str; 4] = ["acme", "acme", "bolt", "cove"];
pub(crate) const POOLS: [&str; 2] = ["EUR-USDT", "EUR-USDC"];

/// All rows of the store.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Rows {
    pub(crate) quotes: BTreeMap<(PartnerId, pools_core::quote::QuoteId), Quote>,
    pub(crate) trades: BTreeMap<(PartnerId, pools_core::quote::QuoteId), Trade>,
    pub(crate) accounts: BTreeMap<(PartnerId, Asset), Account>,
    pub(crate) commitments: BTreeMap<(PartnerId, Asset), i64>,
    pub(crate) velocity: BTreeMap<PartnerId, Velocity>,
    pub(crate) answered: BTreeMap<Scope, IdempotencyRecord>,
    pub(crate) entries: Vec<(PartnerId, Entry)>,
    /// All idempotency records, including overwritten ones.
    pub(crate) all_records: Vec<(Scope, IdempotencyRecord)>,
}

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) keys: Vec<KeyId>,
    pub(crate) access: BTreeMap<KeyId, Access<PoolsProfile>>,
    pub(crate) rows: Rows,
    pub(crate) given: Vec<(PartnerId, pools_core::quote::QuoteId)>,
    ids: u64,
}

/// The inputs for a random command.
#[derive(Debug, Clone)]
pub(crate) struct Try {
    /// A random key; `None` means a key of the quote's partner.
    pub(crate) key: Option<usize>,
    pub(crate) quote: usize,
    pub(crate) pool: Option<usize>,
    pub(crate) name: u8,
    pub(crate) hold: Option<Hold>,
}

#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) key: usize,
    pub(crate) pool: usize,
    pub(crate) side: Side,
    pub(crate) hundredths: i64,
}

impl World {
    /// Three partners: one with two keys and a cap, one without a cap, one without the balance gate.
    pub(crate) fn new() -> Self {
        let pools = POOLS.map(|pool| PoolId::parse(pool).unwrap());
        let keys: Vec<KeyId> = (0..KEYS.len()).map(|at| key_id(at as u64)).collect();
        let mut all = BTreeMap::new();
        for (key, partner) in keys.iter().zip(KEYS) {
            let mut one = access(partner, *key, &pools);
            one.profile.velocity_cap = (partner != "bolt").then_some(400 * 100_000_000);
            one.profile.balance_gate = partner != "cove";
            all.insert(*key, one);
        }
        let mut world = Self {
            now: noon(),
            keys,
            access: all,
            rows: Rows::default(),
            given: Vec::new(),
            ids: 1_000,
        };
        for key in 1..KEYS.len() {
            world.credit(key, pools[0].fiat(), 50_000);
            world.credit(key, pools[0].crypto(), 20_000);
        }
        world
    }

    pub(crate) fn id<K: IdKind>(&mut self) -> Id<K> {
        self.ids += 1;
        let entropy: &dyn Entropy = &Counter::from(self.ids);
        Id::new(Mode::Test, self.now, entropy)
    }

    pub(crate) fn partner(&self, key: usize) -> PartnerId {
        self.access[&self.keys[key]].partner.id.clone()
    }

    /// Loads the rows that a batch may touch, as a store does under its locks.
    pub(crate) fn state(&self) -> BatchState {
        let cutoff = cutoff(self.now, DAY);
        BatchState {
            access: self
                .access
                .iter()
                .map(|(key, access)| (*key, Arc::new(access.clone())))
                .collect(),
            answered: self.rows.answered.clone(),
            quotes: self.rows.quotes.clone(),
            trades: self.rows.trades.clone(),
            accounts: self.rows.accounts.clone(),
            commitments: self.rows.commitments.clone(),
            velocity: self
                .rows
                .velocity
                .iter()
                .map(|(partner, total)| (partner.clone(), self.slid(partner, total, cutoff)))
                .collect(),
            window: DAY,
            idempotency_ttl: DAY,
            opened: Vec::new(),
        }
    }

    fn slid(&self, partner: &PartnerId, total: &Velocity, cutoff: Timestamp) -> Velocity {
        let (low, high) = (cutoff.min(total.floor), cutoff.max(total.floor));
        let between: Vec<i64> = self
            .counting(partner)
            .filter(|trade| trade.created_at > low && trade.created_at <= high)
            .map(|trade| trade.terms.notional)
            .collect();
        total.slide(cutoff, &between)
    }

    /// The partner's trades that are neither released nor failed.
    pub(crate) fn counting<'w>(
        &'w self,
        partner: &'w PartnerId,
    ) -> impl Iterator<Item = &'w Trade> {
        let all = self
            .rows
            .trades
            .iter()
            .filter(move |((owner, _), _)| owner == partner);
        all.map(|(_, trade)| trade).filter(|trade| {
            !matches!(
                trade.state,
                TradeState::Released { .. } | TradeState::Failed { .. }
            )
        })
    }

    /// Writes the results of a batch, as a store does before it commits.
    pub(crate) fn write(&mut self, state: &BatchState) {
        let rows = &mut self.rows;
        for opened in &state.opened {
            let (partner, scope) = (&opened.partner, &opened.scope);
            let at = (partner.clone(), opened.trade.quote);
            let quote = rows.quotes.get_mut(&at).unwrap();
            assert_eq!(
                quote.outcome,
                QuoteOutcome::Open,
                "a quote is consumed once"
            );
            quote.outcome = QuoteOutcome::Consumed(opened.trade.created_at);
            assert!(rows.trades.insert(at, opened.trade.clone()).is_none());
            rows.answered.insert(scope.clone(), opened.answered);
            rows.all_records.push((scope.clone(), opened.answered));
            let entry = opened.entry.iter().cloned();
            rows.entries
                .extend(entry.map(|entry| (partner.clone(), entry)));
        }
        for (partner, account) in state.touched_accounts() {
            let at = (partner.clone(), account.asset());
            rows.accounts.insert(at, *account);
        }
        for (partner, asset, total) in state.touched_commitments() {
            rows.commitments.insert((partner.clone(), asset), total);
        }
        for (partner, total) in state.touched_velocity() {
            rows.velocity.insert(partner.clone(), *total);
        }
        assert_eq!(
            rows.quotes, state.quotes,
            "the written rows equal the batch state"
        );
        assert_eq!(rows.trades, state.trades);
        assert_eq!(rows.accounts, state.accounts);
        assert_eq!(rows.commitments, state.commitments);
        assert_eq!(rows.answered, state.answered);
    }

    /// Runs commands in one transaction.
    pub(crate) fn transact(
        &mut self,
        batch: &[TransactCommand],
    ) -> Vec<Result<TransactOutcome, Refusal>> {
        let mut state = self.state();
        let outcomes = decide_batch(&mut state, batch, self.now);
        assert_eq!(outcomes.len(), batch.len());
        self.write(&state);
        outcomes
    }

    /// A command as the use case submits it; `None` if no quote exists.
    pub(crate) fn command(&mut self, wanted: &Try) -> Option<TransactCommand> {
        let (owner, quote) = {
            let last = self.given.len().checked_sub(1)?;
            self.given[last - wanted.quote % self.given.len().min(5)].clone()
        };
        let pool = match wanted.pool {
            Some(pool) => PoolId::parse(POOLS[pool]).unwrap(),
            None => self.rows.quotes[&(owner.clone(), quote)].terms.pool,
        };
        let own = || {
            let spare = usize::from(wanted.name.is_multiple_of(2));
            let mut keys = (0..KEYS.len()).filter(|key| self.partner(*key) == owner);
            keys.clone().nth(spare).or_else(|| keys.next())
        };
        let key = self.keys[wanted.key.or_else(own)?];
        let who = self.access[&key].tenant.clone();
        Some(TransactCommand {
            key,
            scope: scope(&who, pool, &format!("name-{}", wanted.name)),
            fingerprint: fingerprint(quote),
            pool,
            quote,
            trade: self.id(),
            entry: self.id(),
            engine: UpstreamName::built_in("engine"),
            hold: wanted.hold,
        })
    }

    pub(crate) fn give(&mut self, ask: &Ask) {
        let pool = PoolId::parse(POOLS[ask.pool]).unwrap();
        let key = self.keys[ask.key];
        let input = match ask.side {
            Side::OnRamp => pool.fiat(),
            Side::OffRamp => pool.crypto(),
        };
        let mids = Mids {
            pair: SourceRate {
                mid: mid("1.0845"),
                spread_bps: 25,
            },
            usdt: mid("1.0850"),
        };
        let terms = self.access[&key].profile.terms_in(&pool);
        let amount = Amount::from_units(ask.hundredths * 1_000_000, input).unwrap();
        let Ok(priced) = price(&pool, ask.side, amount, &mids, &terms) else {
            return;
        };
        let quote = Quote {
            id: self.id(),
            terms: Terms {
                pool,
                side: ask.side,
                network: pools_core::profile::Network::Ethereum,
                fiat: priced.fiat,
                crypto: priced.crypto,
                rate: priced.rate,
                mid: Some(priced.mid),
                spread_bps: priced.spread_bps,
                fee_bps: priced.fee_bps,
                notional: priced.notional,
                destination: (ask.side == Side::OnRamp).then(destination),
            },
            created_at: self.now,
            expires_at: self.now.plus(TTL),
            outcome: QuoteOutcome::Open,
        };
        let at = (self.partner(ask.key), quote.id);
        self.given.push(at.clone());
        self.rows.quotes.insert(at, quote);
    }

    pub(crate) fn reject(&mut self, at: usize) {
        let Some(at) = self.given.iter().rev().nth(at).cloned() else {
            return;
        };
        if let Ok(rejected) = self.rows.quotes[&at].reject(self.now) {
            self.rows.quotes.insert(at, rejected);
        }
    }

    pub(crate) fn credit(&mut self, key: usize, asset: Asset, hundredths: i64) {
        let transfer = Transfer {
            debit: AccountKind::Outside,
            credit: AccountKind::Partner,
            amount: Amount::from_units(hundredths * 1_000_000, asset).unwrap(),
            reason: Reason::PayinCredit,
        };
        let partner = self.partner(key);
        self.post(&partner, transfer, None);
        assert!(self.rows.accounts[&(partner, asset)].available.units() <= BALANCE_LIMIT);
    }

    /// Applies a report as a status poll does. Returns whether the trade changed.
    pub(crate) fn poll(&mut self, which: usize, report: EngineReport) -> bool {
        let count = self.rows.trades.len();
        let Some((at, trade)) = self.rows.trades.iter().nth(which % count.max(1)) else {
            return false;
        };
        let (at, trade) = (at.clone(), trade.clone());
        let mut after = trade.clone();
        for step in trade.steps(&report, self.now).unwrap_or_default() {
            if step.leaves_velocity {
                let total = self.rows.velocity.get_mut(&at.0).unwrap();
                *total = total.remove_trade(trade.terms.notional, trade.created_at);
            }
            if let Some((transfer, part)) = step.transfer {
                self.post(&at.0, transfer, Some((&trade, part)));
            }
            after.state = step.state;
        }
        let moved = after != trade;
        self.rows.trades.insert(at, after);
        moved
    }

    fn post(
        &mut self,
        partner: &PartnerId,
        transfer: Transfer,
        of: Option<(&Trade, TransferRole)>,
    ) {
        let asset = transfer.amount.asset();
        let at = (partner.clone(), asset);
        let account = self
            .rows
            .accounts
            .get(&at)
            .copied()
            .unwrap_or(Account::empty(asset));
        let (account, mark) = account.post(&transfer).unwrap();
        if mark.is_some() {
            self.rows.accounts.insert(at, account);
        }
        let entry = Entry {
            id: self.id(),
            transfer,
            mark,
            reference: of.map_or("deposit".to_owned(), |(trade, _)| trade.quote.to_string()),
            trade: of.map(|(trade, part)| (trade.id, part)),
            created_at: self.now,
        };
        self.rows.entries.push((partner.clone(), entry));
    }
}
